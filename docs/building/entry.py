"""One name as Markdown: its signature, its docstring and its members."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from griffe import ParameterKind

from docs.building.source import HOST_OBJECTS, docstring_of, fields_of, members_of

MAX_SIGNATURE_CHARACTERS = 100
"""A longer signature has one line per parameter."""

STARS = {ParameterKind.var_positional: "*", ParameterKind.var_keyword: "**"}


def entry(node: Any, path: str) -> str:
    short = path.rpartition(".")[2]
    parts = [f"## `{short}`", code(declaration(node, path)), prose(docstring_of(node))]
    if node.is_class:
        parts.append("\n".join(field_line(name, field) for name, field in fields_of(node)))
        for name, member in members_of(node):
            parts += [f"### `{short}.{name}`", code(declaration(member, name)), prose(docstring_of(member))]
    return "\n\n".join(part for part in parts if part)


def field_line(name: str, field: Any) -> str:
    kind = f": `{field.annotation}`" if field.annotation else ""
    default = f" = `{field.value}`" if "class-attribute" in field.labels and "field(" not in str(field.value) else ""
    description = f" — {prose(field.docstring.value)}" if field.docstring else ""
    return f"- `{name}`{kind}{default}{description}"


def declaration(node: Any, path: str) -> str:
    if node.is_function:
        return signature(node, path)
    if not node.is_class:
        return f"{path}: {node.annotation}" if node.annotation else path
    bases = ", ".join(str(base) for base in node.bases)
    constructor = (
        ""
        if is_constructed_by_inmind(node) or "__init__" not in node.members
        else signature(node.members["__init__"], path)
    )
    return "\n\n".join(part for part in (f"class {path}({bases})" if bases else f"class {path}", constructor) if part)


def is_constructed_by_inmind(node: Any) -> bool:
    """Whether inmind and not the caller creates it: host objects and errors."""
    return node.name in HOST_OBJECTS or "InmindError" in {node.name, *(base.name for base in node.mro())}


def signature(node: Any, path: str) -> str:
    parameters = list(_parameters(node))
    returns = f" -> {node.returns}" if node.returns and node.name != "__init__" else ""
    line = f"{path}({', '.join(parameters)}){returns}"
    return (
        line
        if len(line) <= MAX_SIGNATURE_CHARACTERS
        else "\n".join([f"{path}(", *(f"    {one}," for one in parameters), f"){returns}"])
    )


def code(text: str) -> str:
    return f"```python\n{text}\n```"


def prose(text: str) -> str:
    """Return a docstring as Markdown, with `<` escaped so that it is not read as a tag."""
    return "\n".join(line if line.startswith("    ") else _escape_tags(line) for line in text.strip().splitlines())


def _parameters(node: Any) -> Iterator[str]:
    parameters = [one for one in node.parameters if one.name not in ("self", "cls")]
    named_only = [one for one in parameters if one.kind is ParameterKind.keyword_only]
    for one in parameters:
        if (
            named_only
            and one is named_only[0]
            and not any(other.kind in STARS for other in parameters[: parameters.index(one)])
        ):
            yield "*"
        annotated = f": {one.annotation}" if one.annotation else ""
        default = f" = {one.default}" if one.default is not None and one.kind not in STARS else ""
        yield f"{STARS.get(one.kind, '')}{one.name}{annotated}{default}"


def _escape_tags(line: str) -> str:
    return "".join(part if part.startswith("`") else part.replace("<", "&lt;") for part in re.split(r"(`[^`]*`)", line))

"""The tools memory_read, memory_write and memory_list: pages of memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from inmind.core.events.base import Draft, Origin
from inmind.core.events.documents import DocumentWritten
from inmind.core.text import count_noun, truncate
from inmind.documents.document import (
    MAX_LINE_CHARACTERS,
    OVERVIEW_PATH,
    resolve_path,
    split_lines,
    validate_text,
)
from inmind.documents.overview.front_matter import front_matter_error
from inmind.documents.overview.maintain import indexed_pages
from inmind.documents.overview.page import prompt_text
from inmind.documents.overview.sections import read_section, replace_section
from inmind.documents.scratchpad.state import append_text
from inmind.errors import Conflict, InvalidInput, InvalidPath, NotFound
from inmind.history.compaction.stubs import parse_location
from inmind.prompt.layers.base import Layer
from inmind.prompt.layers.scratchpad import SCRATCHPAD_PATH, parse_bool
from inmind.session.state import SessionState
from inmind.session.tools.base import ToolAnswer, ToolContext, number_argument, text_argument

MAX_LINES_READ = 400


MAX_CHARACTERS_READ = MAX_LINE_CHARACTERS
"""Limits of one `memory_read`: a longer answer would fill the context window."""


MAX_PATHS_LISTED = 100
"""Paths in one answer of `memory_list`; `from_line` continues."""


MAX_PATHS_IN_HINT = 10
"""Paths named in the error for an unknown path."""


MAX_CONFLICT_CHARACTERS = 4_000


MAX_LINE_NUMBER = 2**53


def read_page(context: ToolContext, _: Layer, arguments: dict[str, Any]) -> ToolAnswer:
    path, named_lines = parse_location(text_argument(arguments, "path"), context.state.documents.by_path)
    text = context.scratchpad_text if path == SCRATCHPAD_PATH else context.page_text(path)
    if text is None:
        raise NotFound(what="document", name=path, hint=f"available: {_paths_hint(_paths(context))}")
    lines = split_lines(text)
    start, stop = named_lines or (1, len(lines))
    first = _line_number(arguments, "from_line", start, least=1, most=len(lines))
    end = _line_number(arguments, "to_line", stop, least=first, most=max(first, MAX_LINE_NUMBER))
    line_count, size = 0, 0
    for line in lines[first - 1 : min(end, first - 1 + MAX_LINES_READ)]:
        size += len(line) + 1
        if line_count and size > MAX_CHARACTERS_READ:
            break
        line_count += 1
    excerpt = "\n".join(lines[first - 1 : first - 1 + line_count])
    last = first - 1 + line_count
    whole = first == 1 and last == len(lines)
    content = {"path": path, "text": excerpt, "from_line": first, "to_line": last, "lines": len(lines)}
    if not whole:
        more = f"; read on from_line {last + 1}" if last < len(lines) else ""
        excerpt = f"{excerpt}\n[lines {first} to {last} of {len(lines)}{more}]"
    about = path if path == SCRATCHPAD_PATH else resolve_path(path)[1]
    return ToolAnswer(text=excerpt or "(empty)", content=content, about=about, complete=whole)


def _line_number(arguments: Mapping[str, Any], key: str, default: int, *, least: int, most: int) -> int:
    number = number_argument(arguments, key) or default
    if isinstance(number, bool) or not isinstance(number, int) or not least <= number <= most:
        raise InvalidInput(field=key, value=number, expected=f"a line number from {least} to {most}")
    return number


def write_page(context: ToolContext, _: Layer, arguments: dict[str, Any]) -> ToolAnswer:
    path, lines = parse_location(text_argument(arguments, "path"), context.state.documents.by_path)
    path = _writable_path(text_argument(arguments, "path") if lines else path)
    text, section = text_argument(arguments, "text"), arguments.get("section") or ""
    adds, page = parse_bool(arguments, "append"), context.state.documents.by_path.get(path)
    before = page.text if page else ""
    if path in _archive_paths(context.state) and (section or not adds):
        message = f"Nothing was written: {path} holds archived messages. Append to it, or use another path."
        return ToolAnswer(text=message, error=True, code=InvalidPath.code)
    if section:
        old = read_section(before, text_argument(arguments, "section"))
        unseen = not context.knows(path) and old != read_section(context.page_as_seen(path), section)
        if unseen and not adds and prompt_text(old).strip():
            reason = f"you have not seen the current text under {section}: read {path}, then write again"
            message = f"Nothing was written: {reason}. It is now:\n{_cut_section(old)}"
            return ToolAnswer(text=message, error=True, code=Conflict.code)
        text = replace_section(before, section, append_text(old, text) if adds else text)
    elif adds:
        text = append_text(before, text)
    elif page is not None and not context.knows(path):
        pointer = f"[cut: read {path} for the rest; append, or write a section]"
        now = truncate(before, budget=MAX_CONFLICT_CHARACTERS, count=len, pointer=pointer)
        message = f"Nothing was written: you have not seen all of {path} as it is now. It is now:\n{now.text}"
        return ToolAnswer(text=message, about=path, complete=now.whole, error=True, code=Conflict.code)
    written = Draft(payload=DocumentWritten(path=path, text=validate_text(text)), origin=Origin.ASSISTANT)
    whole = not section and not adds
    if page is not None and not whole:  # the part that stays keeps its source and trust
        written = replace(written, sources=(page.source,), trust=page.trust)
    same, size = page is not None and text == before, len(text.encode())
    return ToolAnswer(
        text=f"{path}: {count_noun(size, 'byte')}.{_front_matter_warning(path, text)}",
        content={"path": path, "bytes": size, "changed": not same},
        drafts=() if same else (written,),
        about=path,
        complete=whole,
    )


def _archive_paths(state: SessionState) -> set[str]:
    """Pages that hold archived messages.

    Stubs refer to their lines, and the model has no other copy of the text.
    """
    return {path for one in state.history.compactions for path in one.payload.archives}


def _front_matter_warning(path: str, text: str) -> str:
    """A warning for the model if it wrote invalid front matter, which hosts read."""
    why = front_matter_error(text) if path == OVERVIEW_PATH else ""
    return f" Its front matter cannot be read: {why}. Fix it." if why else ""


def _cut_section(text: str) -> str:
    return truncate(text, budget=MAX_CONFLICT_CHARACTERS, count=len, pointer="[cut: read the page for the rest]").text


def list_pages(context: ToolContext, _: Layer, arguments: dict[str, Any]) -> ToolAnswer:
    paths = _paths(context)
    first = _line_number(arguments, "from_line", 1, least=1, most=max(1, len(paths)))
    last = min(len(paths), first - 1 + MAX_PATHS_LISTED)
    listed: list[dict[str, Any]] = []
    for path in paths[first - 1 : last]:
        text = (context.scratchpad_text if path == SCRATCHPAD_PATH else context.page_text(path)) or ""
        words = next((line.strip() for line in text.split("\n") if line.strip()), "")
        listed.append({"path": path, "bytes": len(text.encode()), "begins": words[:100]})
    lines = [f"{one['path']} ({count_noun(one['bytes'], 'byte')}): {one['begins']}" for one in listed]
    if len(lines) < len(paths):
        more = f"; list on from_line {last + 1}" if last < len(paths) else ""
        lines.append(f"[{first} to {last} of {len(paths)}, the newest pages first{more}]")
    content = {"documents": listed, "from_line": first, "all": len(paths)}
    return ToolAnswer(text="\n".join(lines) or "There are none.", content=content)


def _paths(context: ToolContext) -> list[str]:
    """Paths of fixed documents first, then pages, newest first."""
    pages = indexed_pages(context.state.documents)
    documents = {**context.resource_state.documents.by_path, **context.state.documents.by_path}
    always = sorted(path for path in documents if path not in pages)
    return [*always, *([SCRATCHPAD_PATH] if context.scratchpad_text else []), *pages]


def _paths_hint(paths: Sequence[str]) -> str:
    more = len(paths) - MAX_PATHS_IN_HINT
    return ", ".join(paths[:MAX_PATHS_IN_HINT]) + (f" and {more} more, which list shows" if more > 0 else "")


def _writable_path(path: str) -> str:
    """Check that the model may write a path.

    Documents of the resource are written by people and by dreams.
    """
    with suppress(InvalidPath):
        scope, name = resolve_path(path)
        if scope == "thread":
            return name
    raise InvalidPath(field="path", value=path, expected=f"{OVERVIEW_PATH}, detail/<name> or archive/<name>")

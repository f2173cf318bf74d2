"""The words of the source and the documentation: plain, and one for each concept.

A style that lives only in a guide is lost with the first hurried commit. Decisions (docs/decisions) are exempt: they
are never rewritten.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest
from tables import each_row

PROJECT = Path(__file__).parents[1]
SOURCE = PROJECT / "src" / "inmind"

STOP_WORDS = (
    "whoever",
    "whomever",
    "whosoever",
    "somebody",
    "nobody",
    "everybody",
    "anew",
    "abroad",
    "befall",
    "befell",
    "beget",
    "begot",
    "thereof",
    "therein",
    "hither",
    "thither",
    "whence",
    "so many",
    "of its own accord",
    "gone on with",
    "goes on with",
    "slip of the pen",
)
WORD_OF_USERS = "# a word of users"
"""Marks a line of a word table that must contain a stop word, because users write it."""

_STOP = re.compile(rf"(?<![a-z])({'|'.join(STOP_WORDS)})(?![a-z])", re.IGNORECASE)

MAX_GLOSSARY_ENTRIES = 80
MAX_FILE_LINES = 450
MAX_MIRRORED_CLASSES = 12
"""Class names that provider modules may share, since they mirror each other."""

PROVIDER_MODULES = re.compile(r"(openai|anthropic|responses)\.py$")


def test_no_text_uses_a_word_of_the_stop_list() -> None:
    texts = [*SOURCE.rglob("*.py"), *unnumbered_sql(), *documentation()]
    assert [line for path in texts for line in stop_words_in(path.read_text(), path)] == []


def test_no_test_name_uses_a_word_of_the_stop_list() -> None:
    names = [(path, name) for path in (PROJECT / "tests").rglob("test_*.py") for name in function_names(path)]
    assert [f"{path.name}: {name}" for path, name in names if _STOP.search(name.replace("_", " "))] == []


def test_no_class_name_is_used_twice() -> None:
    places: dict[str, list[str]] = defaultdict(list)
    for path in SOURCE.rglob("*.py"):
        for name in re.findall(r"^\s*class (\w+)[(:\[]", path.read_text(), re.MULTILINE):
            places[name].append(path.relative_to(SOURCE).as_posix())
    twice = {name: files for name, files in places.items() if len(files) > 1}
    mirrored = {name for name, files in twice.items() if all(PROVIDER_MODULES.search(file) for file in files)}
    assert {name: files for name, files in twice.items() if name not in mirrored} == {}
    assert len(mirrored) <= MAX_MIRRORED_CLASSES


def test_no_source_file_is_longer_than_the_limit() -> None:
    lengths = {path.relative_to(SOURCE).as_posix(): path.read_text().count("\n") for path in SOURCE.rglob("*.py")}
    assert {file: lines for file, lines in lengths.items() if lines > MAX_FILE_LINES} == {}


def test_the_glossary_is_short() -> None:
    entries = re.findall(r"^\*\*|^\| \*\*|^### ", (PROJECT / "GLOSSARY.md").read_text(), re.MULTILINE)
    assert 0 < len(entries) <= MAX_GLOSSARY_ENTRIES


def test_docstrings_begin_with_a_short_statement() -> None:
    wrong = [
        f"{path.relative_to(SOURCE)}:{getattr(node, 'lineno', 1)}: {first}"
        for path in SOURCE.rglob("*.py")
        for node, first in docstring_openings(ast.parse(path.read_text()))
        if len(first) > 110 or re.match(r"What\b", first)
    ]
    assert wrong == []


@each_row("text", ["Whoever calls it.", "made anew", "So many at most", "nobody's", "a_name_that_nobody_has"])
def test_a_stop_word_is_found(text: str) -> None:
    assert stop_words_in(text.replace("_", " "), Path("here.py"))


@pytest.mark.parametrize("text", ["a new page", "newspaper", "so manyfold"])
def test_other_words_are_let_through(text: str) -> None:
    assert stop_words_in(text, Path("here.py")) == []


def unnumbered_sql() -> Iterator[Path]:
    """SQL files except migrations, which are never edited."""
    yield from (path for path in SOURCE.rglob("*.sql") if not re.match(r"(\w+_)?\d{4}", path.name))


def documentation() -> Iterator[Path]:
    yield from PROJECT.glob("*.md")
    yield from (PROJECT / "examples").rglob("*.py")
    yield from (path for path in (PROJECT / "docs").rglob("*.md") if "decisions" not in path.parts)


def stop_words_in(text: str, path: Path) -> list[str]:
    return [
        f"{path.name}:{number}: {match.group()}: {line.strip()[:100]}"
        for number, line in enumerate(text.splitlines(), 1)
        if WORD_OF_USERS not in line and (match := _STOP.search(line))
    ]


def function_names(path: Path) -> list[str]:
    return re.findall(r"^\s*(?:async def|def|class) (\w+)", path.read_text(), re.MULTILINE)


def docstring_openings(tree: ast.Module) -> Iterator[tuple[ast.AST, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            docstring = ast.get_docstring(node)
            if docstring:
                yield node, docstring.splitlines()[0]

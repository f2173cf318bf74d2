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
    "comes home",
    "come home",
    "lets go of",
    "let go of",
    "of their own accord",
)
WORD_OF_USERS = "# a word of users"
"""Marks a line of a word table that must contain a stop word, because users write it."""

_STOP = re.compile(rf"(?<![a-z])({'|'.join(STOP_WORDS)})(?![a-z])", re.IGNORECASE)

PARTICIPLES = {"told", "said", "asked", "found", "shown", "heard", "made", "left"}
"""Names that say nothing of a value: `message`, `match`, `result` or `remaining` do."""
_PARTICIPLE = re.compile(rf"(?i)(?<![a-z])(?:{'|'.join(sorted(PARTICIPLES))})_*\s*(?:[=,:(\[)\]]|in )")
"""Finds files that may define such a name: parsing all of them takes seconds."""
STORED_NAMES = {("record.py", "made"), ("reader.py", "made")}
"""Names of a column and of a key on disk."""

MAX_GLOSSARY_ENTRIES = 80
MAX_FILE_LINES = 450
MAX_DOCSTRING_OPENING = 90
MAX_MIRRORED_CLASSES = 12
"""Class names that provider modules may share, since they mirror each other."""

DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
PROVIDER_MODULES = re.compile(r"(openai|anthropic|responses)\.py$")


def test_no_text_uses_a_word_of_the_stop_list() -> None:
    texts = [*SOURCE.rglob("*.py"), *unnumbered_sql(), *documentation()]
    assert [line for path in texts for line in stop_words_in(path.read_text(), path)] == []


def test_no_name_or_docstring_of_a_test_uses_a_word_of_the_stop_list() -> None:
    sources = ((path, path.read_text()) for path in (PROJECT / "tests").rglob("*.py"))
    wrong = [
        f"{path.name}: {text[:100]}"
        for path, source in sources
        if _STOP.search(source.replace("_", " "))  # parsing all files takes seconds
        for text in names_and_docstrings(ast.parse(source))
        if _STOP.search(text.replace("_", " "))
    ]
    assert wrong == []


def test_no_value_is_named_by_a_participle() -> None:
    paths = [path for folder in ("src", "tests", "bench", "examples") for path in (PROJECT / folder).rglob("*.py")]
    sources = {path: path.read_text() for path in paths}
    names = {path: {*defined_names(ast.parse(text))} for path, text in sources.items() if _PARTICIPLE.search(text)}
    wrong = [
        f"{path.relative_to(PROJECT)}: {name}"
        for path, defined in names.items()
        for name in defined
        if name.strip("_").lower() in PARTICIPLES and (path.name, name) not in STORED_NAMES
        if not (name == "left" and "right" in defined)
    ]
    assert wrong == []


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
        if len(first) >= MAX_DOCSTRING_OPENING or re.match(r"What\b", first)
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
    yield from (*PROJECT.glob("*.md"), PROJECT / "Makefile", PROJECT / "pyproject.toml")
    for folder in ("examples", "bench", "docs"):
        for path in (*(PROJECT / folder).rglob("*.py"), *(PROJECT / folder).rglob("*.md")):
            if "decisions" not in path.parts:
                yield path


def stop_words_in(text: str, path: Path) -> list[str]:
    return [
        f"{path.name}:{number}: {match.group()}: {line.strip()[:100]}"
        for number, line in enumerate(text.splitlines(), 1)
        if WORD_OF_USERS not in line and (match := _STOP.search(line))
    ]


def names_and_docstrings(tree: ast.Module) -> Iterator[str]:
    yield from defined_names(tree)
    yield from (ast.get_docstring(node) or "" for node in ast.walk(tree) if isinstance(node, DOCUMENTED))


def defined_names(tree: ast.Module) -> Iterator[str]:
    """Names of classes, functions, parameters and variables."""
    for node in ast.walk(tree):
        match node:
            case ast.ClassDef() | ast.FunctionDef() | ast.AsyncFunctionDef():
                yield node.name
            case ast.arg():
                yield node.arg
            case ast.Name(ctx=ast.Store()):
                yield node.id
            case _:
                pass


def docstring_openings(tree: ast.Module) -> Iterator[tuple[ast.AST, str]]:
    for node in ast.walk(tree):
        if isinstance(node, DOCUMENTED):
            docstring = ast.get_docstring(node)
            if docstring:
                yield node, docstring.splitlines()[0]

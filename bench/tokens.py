"""Error of the token estimate, by kind of text.

The texts come from installed packages: nothing is copied into the project, and the table names its sources.
"""

from __future__ import annotations

import ast
import json
import re
import sysconfig
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib.metadata import distributions
from importlib.util import find_spec
from pathlib import Path
from statistics import quantiles
from typing import Any, Union

import zstandard

from bench.table import Row, Table
from bench.tokenizers import tokenizer
from inmind.core.tokens import estimator

MAX_ERROR = 0.15
CHUNK_CHARACTERS = 1_500
"""About the length of a message."""

_MAX_CHARACTERS = 600_000
_TRANSCRIPTS = Path(__file__).parents[2] / "shared" / "data" / "taubench"

_Json = Union[str, list["_Json"], dict[str, "_Json"]]  # noqa: UP007 -- the other spelling cannot name itself


@dataclass(frozen=True, slots=True)
class Corpus:
    name: str
    source: str
    text: str

    @property
    def chunks(self) -> list[str]:
        return [self.text[start : start + CHUNK_CHARACTERS] for start in range(0, len(self.text), CHUNK_CHARACTERS)]


def run() -> list[Table]:
    corpora = (_english(), _chinese(), _json(), _code())
    rows = [_error_row(corpus) for corpus in corpora]
    notes = [
        f"{corpus.name}: {corpus.source}, {len(corpus.text) / 1000:,.0f} thousand characters." for corpus in corpora
    ]
    return [Table(f"token estimate against o200k, in chunks of {CHUNK_CHARACTERS:,} characters", rows, notes)]


def _error_row(corpus: Corpus) -> Row:
    estimate, exact = estimator(), tokenizer().count
    pairs = [(estimate(chunk), exact(chunk)) for chunk in corpus.chunks]
    total = sum(guess for guess, _ in pairs) / sum(true for _, true in pairs) - 1
    p95 = quantiles([abs(guess / true - 1) for guess, true in pairs], n=20, method="inclusive")[-1]
    return Row(
        what=corpus.name,
        measured=f"{total:+.1%} in total, 95% of chunks within {p95:.0%}",
        bar=f"<= {MAX_ERROR:.0%}",
        met=abs(total) <= MAX_ERROR,
        figures={"total": total, "p95": p95, "tokens": sum(true for _, true in pairs)},
    )


def _english() -> Corpus:
    descriptions = (str(distribution.metadata.get_payload()) for distribution in _distributions())  # usually a README
    half = _MAX_CHARACTERS // 2
    docstrings = (text for tree in _parse_sources() for text in _docstrings(tree))
    text = _join_up_to(half, descriptions) + "\n\n" + _join_up_to(half, docstrings)
    return Corpus("English", "descriptions of installed packages, docstrings of the standard library", text)


def _code() -> Corpus:
    return Corpus("code", "source of the standard library", _join_up_to(_MAX_CHARACTERS, _sources()))


def _json() -> Corpus:
    """Compact and indented records, and real tool results if transcripts are available."""
    compact = (json.dumps(_signatures(tree), separators=(",", ":")) for tree in _parse_sources())
    indented = (json.dumps(_signatures(tree), indent=2) for tree in _parse_sources(start=1))
    third = _MAX_CHARACTERS // 3
    text = "\n".join(_join_up_to(third, texts) for texts in (compact, indented, _answers()))
    return Corpus("JSON", "signatures of the standard library, recorded tool results if available", text)


def _answers() -> Iterator[str]:
    for file in sorted(_TRANSCRIPTS.glob("*.json.zst")):
        recorded = json.loads(zstandard.ZstdDecompressor().decompress(file.read_bytes(), max_output_size=1 << 30))
        for run in recorded:
            yield from (
                message["content"] for message in run["traj"] if message["role"] == "tool" and message["content"]
            )


def _chinese() -> Corpus:
    """Messages of the type checker, the only longer Chinese text among the installed packages."""
    spec = find_spec("pyright")
    bundle = Path(spec.origin).parent / "dist" / "dist" / "pyright-internal.js" if spec and spec.origin else None
    texts: list[str] = []
    if bundle and bundle.is_file():
        for literal in re.findall(r"JSON\.parse\('(\{(?:[^'\\]|\\.)*\})'\)", bundle.read_text("utf-8")):
            text = "\n".join(_strings(json.loads(_unquote(literal))))
            if _is_chinese(text):
                texts.append(text)
    if not texts:
        raise LookupError("no Chinese text found: the type checker's messages have moved")
    text = "\n".join(texts)
    source = f"messages of the type checker, simplified and traditional, {_han(text) / len(text):.0%} Han characters"
    return Corpus("Chinese", source, text)


def _is_chinese(text: str) -> bool:
    """Mostly Han characters, and hardly any kana or hangul."""
    han = _han(text)
    others = len(re.findall(r"[\u3040-\u30ff\uac00-\ud7af]", text))
    return han > len(text) / 4 and others < han / 100


def _han(text: str) -> int:
    return len(re.findall(r"[\u4e00-\u9fff]", text))


def _unquote(literal: str) -> str:
    """Return the text of a JavaScript literal in single quotes."""
    escapes = {"n": "\n", "t": "\t", "r": "\r"}
    return re.sub(
        r"\\(?:x([0-9a-f]{2})|u([0-9a-f]{4})|(.))",
        lambda m: chr(int(m[1] or m[2], 16)) if m[1] or m[2] else escapes.get(m[3], m[3]),
        literal,
    )


def _strings(value: _Json) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    else:
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _strings(inner)


def _join_up_to(characters: int, texts: Iterable[str]) -> str:
    """Join texts up to a length, each at most a tenth of it."""
    kept: list[str] = []
    for text in texts:
        room = characters - sum(map(len, kept))
        if room <= 0:
            break
        kept.append(text[: min(room, characters // 10)])
    return "\n".join(kept)


def _distributions() -> list[Any]:
    others = [distribution for distribution in distributions() if distribution.name != "inmind"]
    return sorted(others, key=lambda distribution: (distribution.name or "").lower())


def _sources(start: int = 0) -> Iterator[str]:
    """Every third module, so that a few long ones at the start of the alphabet do not dominate."""
    library = Path(sysconfig.get_paths()["stdlib"])
    for file in sorted(library.glob("*.py"))[start::3]:
        yield file.read_text("utf-8", "replace")


def _parse_sources(start: int = 0) -> Iterator[ast.Module]:
    return (ast.parse(text) for text in _sources(start))


def _docstrings(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and (text := ast.get_docstring(node)):
            yield text


def _signatures(tree: ast.Module) -> list[dict[str, Any]]:
    return [
        {
            "name": node.name,
            "line": node.lineno,
            "arguments": [{"name": argument.arg, "required": True} for argument in node.args.args],
            "returns": ast.unparse(node.returns) if node.returns else None,
            "summary": (ast.get_docstring(node) or "").partition("\n")[0],
        }
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef)
    ]

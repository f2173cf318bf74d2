"""The result of a benchmark and its printed form: what | measured | bar | verdict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

WIDTH = 100
_HEADINGS = ("what", "measured", "bar", "verdict")


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One number. Without a bar it has no verdict and is printed for comparison."""

    what: str
    measured: str
    bar: str = ""
    met: bool | None = None
    figures: Mapping[str, float | str] = field(default_factory=dict[str, float | str])
    """The same as plain numbers, for comparing two runs."""

    @property
    def verdict(self) -> str:
        return "" if self.met is None else "met" if self.met else "MISSED"

    def as_json(self) -> dict[str, Any]:
        return {
            "what": self.what,
            "measured": self.measured,
            "bar": self.bar,
            "met": self.met,
            "figures": dict(self.figures),
        }


@dataclass(frozen=True, slots=True)
class Table:
    title: str
    rows: Sequence[Row]
    notes: Sequence[str] = ()
    """Method and data of the measurement."""

    def __str__(self) -> str:
        cells = [_HEADINGS, *((row.what, row.measured, row.bar, row.verdict) for row in self.rows)]
        widths = [max(len(line[column]) for line in cells) for column in range(len(_HEADINGS))]
        ruled = [cells[0], tuple("-" * width for width in widths), *cells[1:]]
        lines = (" | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) for line in ruled)
        notes = [line for note in self.notes for line in _wrap(note)]
        return "\n".join([self.title, "", *(line.rstrip() for line in lines), *([""] if notes else []), *notes])


def _wrap(note: str) -> list[str]:
    lines = [""]
    for word in note.split():
        if lines[-1] and len(lines[-1]) + 1 + len(word) > WIDTH:
            lines.append("")
        lines[-1] = f"{lines[-1]} {word}" if lines[-1] else word
    return lines

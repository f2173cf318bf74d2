"""Sessions of the older kind, one file each: `<id>.jsonl` with a message a line, and `<id>.meta.json`.

They are read, never written: the first opening brings the messages into the journal and the file stays as it is.
"""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from inmind.errors import InvalidInput
from inmind.journal import Draft, MessageAdded, Origin
from inmind.prompt.formats import FORMATS
from inmind.prompt.formats.values import is_list, is_object

log = logging.getLogger("inmind")

_ANTHROPIC = frozenset({"tool_use", "tool_result", "thinking", "redacted_thinking"})


@dataclass(frozen=True, slots=True)
class Legacy:
    path: Path
    cwd: str
    drafts: tuple[Draft, ...]


def find_legacy(home: Path, file: str) -> Legacy | None:
    return next((_read(path) for path in sorted((home / "sessions").glob("--*--/*.jsonl")) if path.stem == file), None)


def all_legacy(home: Path) -> list[Legacy]:
    return [_read(path) for path in sorted((home / "sessions").glob("--*--/*.jsonl"))]


def _read(path: Path) -> Legacy:
    drafts: list[Draft] = []
    for number, line in enumerate(path.read_text("utf-8", errors="replace").splitlines(), start=1):
        if not line.strip():
            continue
        try:
            drafts.append(_draft(json.loads(line)))
        except (ValueError, InvalidInput) as error:
            log.warning("%s line %d is not a message and stays only in the file: %s", path.name, number, error)
    return Legacy(path=path, cwd=_cwd(path), drafts=tuple(drafts))


def _draft(line: Any) -> Draft:
    wire = line.get("message", line) if is_object(line) else line
    format = "anthropic" if _has_anthropic_blocks(wire) else "openai"
    FORMATS[format].check(wire, field="line")
    return Draft(what=MessageAdded(wire=wire, format=format), origin=Origin.FILE)


def _has_anthropic_blocks(wire: Any) -> bool:
    content = wire.get("content") if is_object(wire) else None
    return is_list(content) and any(is_object(block) and block.get("type") in _ANTHROPIC for block in content)


def _cwd(path: Path) -> str:
    """The working directory, from the file beside it; the folder's name cannot tell "-" from "/"."""
    try:
        meta = json.loads(path.with_suffix("").with_name(f"{path.stem}.meta.json").read_text("utf-8"))
        return str(meta.get("cwd", "")) if is_object(meta) else ""
    except (OSError, ValueError):
        return ""

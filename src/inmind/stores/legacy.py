"""Sessions of the older kind, one file each: `<id>.jsonl` with a message a line, and `<id>.meta.json`.

They are read, never written: the first opening brings the messages into the journal and the file stays as it is.
Nobody has watched over these files, so whatever stands there is skipped and said, and no message is trusted for more
than a person's words, whatever role it claims.
"""

from __future__ import annotations

import errno
import json
import logging
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from inmind.errors import InvalidInput
from inmind.journal import Draft, Trust
from inmind.prompt.formats import FORMATS
from inmind.prompt.formats.values import check_text, is_list, is_object
from inmind.prompt.intake import message_added

log = logging.getLogger("inmind")

_ANTHROPIC = frozenset({"tool_use", "tool_result", "thinking", "redacted_thinking"})


@dataclass(frozen=True, slots=True)
class Legacy:
    path: Path
    cwd: str
    drafts: tuple[Draft, ...]


def find_legacy(home: Path, file: str) -> Legacy | None:
    return next((found for path in _paths(home) if path.stem == file and (found := _read(path))), None)


def all_legacy(home: Path) -> list[Legacy]:
    return [found for path in _paths(home) if (found := _read(path))]


def _paths(home: Path) -> list[Path]:
    return sorted((home / "sessions").glob("--*--/*.jsonl"))


def _read(path: Path) -> Legacy | None:
    """None for what cannot be read, which is said: one odd file must not hide all other sessions."""
    try:
        text = _text(path)
    except OSError as error:
        log.warning("%s is no session of the older kind and is left alone: %s", path, error.strerror)
        return None
    drafts: list[Draft] = []
    # At "\n" and nowhere else: U+2028 and its like end a line for Python and stand inside a text for JSON.
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            drafts.append(_draft(json.loads(line)))
        except (ValueError, RecursionError, InvalidInput) as error:
            log.warning("%s line %d is not a message and stays only in the file: %s", path.name, number, error)
    return Legacy(path=path, cwd=_cwd(path), drafts=tuple(drafts))


def _text(path: Path) -> str:
    """Of a plain file: reading a pipe would wait for ever."""
    if path.exists() and not path.is_file():
        raise OSError(errno.EINVAL, "it is not a plain file")
    return path.read_bytes().decode("utf-8-sig", errors="replace")


def _draft(line: Any) -> Draft:
    wire = line.get("message", line) if is_object(line) else line
    spoken = FORMATS["anthropic" if _has_anthropic_blocks(wire) else "openai"]
    spoken.check(wire, field="line")
    draft = message_added(wire, spoken)
    return replace(draft, trust=min(draft.trusted, Trust.PERSON))


def _has_anthropic_blocks(wire: Any) -> bool:
    content = wire.get("content") if is_object(wire) else None
    return is_list(content) and any(is_object(block) and block.get("type") in _ANTHROPIC for block in content)


def _cwd(path: Path) -> str:
    """The working directory, from the file beside it; the folder's name cannot tell "-" from "/"."""
    try:
        meta = json.loads(_text(path.with_name(f"{path.stem}.meta.json")))
        cwd = meta.get("cwd", "") if is_object(meta) else ""
        check_text(cwd, "cwd")
    except (OSError, ValueError, RecursionError, InvalidInput):
        return ""
    return "" if "\x00" in cwd else cwd

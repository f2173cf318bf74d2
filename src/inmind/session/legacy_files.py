"""Sessions in the format before the journal: `<id>.jsonl` and `<id>.meta.json`.

The `.jsonl` file has one message per line. Information about a session (folder, title, model, start) is in the meta
file or in lines of the session file; the meta file takes precedence. The files are read and never written: opening such
a session imports its messages into the journal. Until then a list uses only a summary. Nothing has checked these files,
so invalid lines are skipped and logged, and no message gets more trust than a person's, for any role.
"""

from __future__ import annotations

import json
import logging
import os
from codecs import BOM_UTF8
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from inmind.core.events.base import Draft, Trust
from inmind.core.frozen import frozen
from inmind.core.json import check_text, is_list, is_object
from inmind.core.messages import FORMATS
from inmind.core.text import shorten
from inmind.errors import InvalidInput
from inmind.prompt.ingest import message_draft
from inmind.session.state import MAX_TITLE_LENGTH
from inmind.store.file_operations import open_regular_file

log = logging.getLogger("inmind")

_ANTHROPIC = frozenset({"tool_use", "tool_result", "thinking", "redacted_thinking"})

_INFO_TYPES = frozenset({"session", "session_info"})
"""Types of lines that describe the session instead of a message."""


@frozen(kw_only=True)
class LegacySession:
    """Summary of a session in the old format."""

    path: Path
    file: str
    """The path relative to the home."""
    changed: datetime
    messages: int
    """Number of lines that look like a message."""
    cwd: str = ""
    title: str = ""
    model: str = ""
    created: datetime | None = None

    @property
    def id(self) -> str:
        return unquote(self.path.stem)


def find_legacy(home: Path, is_wanted: Callable[[str], bool]) -> list[LegacySession]:
    """The sessions whose ids are wanted. Ids were unique only within a folder."""
    folders = (folder for folder in (home / "sessions").glob("--*--") if not folder.is_symlink())
    paths = sorted(path for folder in folders for path in folder.glob("*.jsonl"))
    return [one for path in paths if is_wanted(unquote(path.stem)) and (one := _read_summary(path, home))]


def read_messages(legacy: LegacySession) -> tuple[Draft, ...]:
    """All messages of a session, as drafts to import."""
    drafts: list[Draft] = []
    with open_regular_file(legacy.path) as file:
        for number, line in enumerate(file, start=1):
            if not line.strip() or _session_info(line) is not None:
                continue
            try:
                drafts.append(_message_event(_parse_line(line)))
            except (ValueError, RecursionError, InvalidInput) as error:
                name = legacy.path.name
                log.warning("%s line %d is not a message and was not imported: %s", name, number, error)
    return tuple(drafts)


def _read_summary(path: Path, home: Path) -> LegacySession | None:
    """The summary of a file; None, with a log line, if it cannot be read.

    One odd file must not hide the others.
    """
    about: dict[str, Any] = {}
    messages = 0
    try:
        with open_regular_file(path) as file:
            changed = datetime.fromtimestamp(os.fstat(file.fileno()).st_mtime, UTC)
            for line in file:
                if (info := _session_info(line)) is not None:
                    about |= info | {"created": about.get("created", info.get("timestamp"))}
                else:
                    messages += _is_object(line)
    except OSError as error:
        log.warning("%s is not a session file and is ignored: %s", path, error.strerror)
        return None
    about |= _read_meta_file(path)
    return LegacySession(
        path=path,
        file=path.relative_to(home).as_posix(),
        changed=changed,
        messages=messages,
        cwd=_first_text(about, "cwd"),
        title=shorten(_first_text(about, "title", "name"), MAX_TITLE_LENGTH),
        model=_first_text(about, "model"),
        created=_time(_first_text(about, "createdAt", "created_at", "created")),
    )


def _session_info(line: bytes) -> dict[str, Any] | None:
    """The information about the session in a line.

    None for other lines, most of which are not parsed.
    """
    if b'"session' not in line:
        return None
    try:
        value = _parse_line(line)
    except (ValueError, RecursionError):
        return None
    return value if is_object(value) and value.get("type") in _INFO_TYPES else None


def _is_object(line: bytes) -> bool:
    """True if a line looks like a JSON object. A line cut off by a crash has no end."""
    stripped = line.removeprefix(BOM_UTF8).strip()
    return stripped.startswith(b"{") and stripped.endswith(b"}")


def _parse_line(line: bytes) -> Any:
    return json.loads(line.decode("utf-8-sig", errors="replace"))


def _message_event(line: Any) -> Draft:
    wire = line.get("message", line) if is_object(line) else line
    fmt = FORMATS["anthropic" if _has_anthropic_blocks(wire) else "openai"]
    fmt.check(wire, field="line")
    draft = message_draft(wire, fmt)
    return replace(draft, trust=min(draft.effective_trust, Trust.PERSON))


def _has_anthropic_blocks(wire: Any) -> bool:
    content = wire.get("content") if is_object(wire) else None
    return is_list(content) and any(is_object(block) and block.get("type") in _ANTHROPIC for block in content)


def _read_meta_file(path: Path) -> dict[str, Any]:
    try:
        with open_regular_file(path.with_name(f"{path.stem}.meta.json")) as file:
            meta = _parse_line(file.read())
    except (OSError, ValueError, RecursionError):
        return {}
    return meta if is_object(meta) else {}


def _first_text(about: Mapping[str, Any], *keys: str) -> str:
    """The first of these keys with a non-empty, storable text."""
    for key in keys:
        value = about.get(key)
        try:
            check_text(value, key)
        except InvalidInput:
            continue
        if value and "\x00" not in value:
            return value
    return ""


def _time(text: str) -> datetime | None:
    try:
        moment = datetime.fromisoformat(text)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        return None

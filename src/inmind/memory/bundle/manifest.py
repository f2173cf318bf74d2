"""What a bundle says of itself. It is a promise that is checked, never one that is relied on."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from inmind.core.frozen import frozen
from inmind.memory.bundle.refusal import refused

FORMAT = 1
"""Raised when an older inmind could not read what is written: it says so, and what to do."""

MANIFEST, JOURNAL, KEYS, KEPT = "manifest.json", "journal.jsonl", "keys.jsonl", "kept/"

MOST_BYTES = 16 * 1_048_576


@frozen
class Entry:
    bytes: int
    sha256: str


@frozen(kw_only=True)
class Manifest:
    made: str
    """When, in UTC."""
    by: str
    """Which inmind has made it."""
    of: str
    """The resource that it is all of; empty where it is all of a home."""
    streams: int
    events: int
    keys: int
    entries: Mapping[str, Entry]
    """All but this one, by name."""
    format: int = FORMAT


def written(manifest: Manifest) -> bytes:
    return (json.dumps(asdict(manifest), ensure_ascii=False, indent=2) + "\n").encode()


def read(data: bytes) -> Manifest:
    """A newer format is told from damage before anything else is looked at."""
    try:
        said: Any = json.loads(data.decode())
        format = said["format"]
    except (ValueError, TypeError, LookupError, RecursionError) as error:
        raise refused(MANIFEST, value=str(error), expected="the manifest of a bundle") from error
    if type(format) is int and format > FORMAT:
        by = said.get("by")
        raise refused(
            MANIFEST, value=f"format {format} of inmind {by}", expected=f"format {FORMAT} or older: upgrade inmind"
        )
    try:
        entries = {name: Entry(**entry) for name, entry in said.pop("entries").items()}
        manifest = Manifest(**said, entries=entries)
    except (ValueError, TypeError, LookupError, AttributeError) as error:
        raise refused(MANIFEST, value=str(error), expected="the manifest of a bundle") from error
    texts = (manifest.made, manifest.by, manifest.of, *(entry.sha256 for entry in entries.values()))
    numbers = (format, manifest.streams, manifest.events, manifest.keys, *(entry.bytes for entry in entries.values()))
    if any(type(text) is not str for text in texts) or any(type(n) is not int or n < 0 for n in numbers):
        raise refused(MANIFEST, value=said, expected="texts and numbers where a manifest has them")
    return manifest

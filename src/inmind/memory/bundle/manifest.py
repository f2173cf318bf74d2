"""The manifest of a bundle. Everything in it is checked against the contents."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from inmind.core.frozen import frozen
from inmind.errors import InvalidInput

FORMAT = 1
"""Increased when an older inmind could not read the bundle; the older one then says so."""

MANIFEST, JOURNAL, KEYS, EXTRA_PREFIX = "manifest.json", "journal.jsonl", "keys.jsonl", "kept/"

MAX_MANIFEST_BYTES = 16 * 1_048_576


@frozen
class EntryDigest:
    bytes: int
    sha256: str


@frozen(kw_only=True)
class Manifest:
    """The fields are the keys of manifest.json."""

    made: str
    """Time of the export, in UTC."""
    by: str
    """Version of the inmind that wrote it."""
    of: str
    """The exported resource; empty for a whole home."""
    streams: int
    events: int
    keys: int
    entries: Mapping[str, EntryDigest]
    """All other entries, by name."""
    format: int = FORMAT


def encode_manifest(manifest: Manifest) -> bytes:
    return (json.dumps(asdict(manifest), ensure_ascii=False, indent=2) + "\n").encode()


def decode_manifest(data: bytes) -> Manifest:
    """Parse a manifest. A newer format is reported as such before anything else is checked."""
    try:
        values: Any = json.loads(data.decode())
        format = values["format"]
    except (ValueError, TypeError, LookupError, RecursionError) as error:
        raise bundle_error(MANIFEST, value=str(error), expected="the manifest of a bundle") from error
    if type(format) is int and format > FORMAT:
        by = values.get("by")
        raise bundle_error(
            MANIFEST, value=f"format {format} of inmind {by}", expected=f"format {FORMAT} or older: upgrade inmind"
        )
    try:
        entries = {name: EntryDigest(**entry) for name, entry in values.pop("entries").items()}
        manifest = Manifest(**values, entries=entries)
    except (ValueError, TypeError, LookupError, AttributeError) as error:
        raise bundle_error(MANIFEST, value=str(error), expected="the manifest of a bundle") from error
    texts = (manifest.made, manifest.by, manifest.of, *(entry.sha256 for entry in entries.values()))
    numbers = (format, manifest.streams, manifest.events, manifest.keys, *(entry.bytes for entry in entries.values()))
    if any(type(text) is not str for text in texts) or any(type(n) is not int or n < 0 for n in numbers):
        raise bundle_error(MANIFEST, value=values, expected="a manifest with the right types")
    return manifest


def bundle_error(entry: str, *, value: object, expected: str) -> InvalidInput:
    """The error for an invalid bundle, with the entry. It is raised before anything is written."""
    return InvalidInput(field=f"bundle {entry}" if entry else "bundle", value=value, expected=expected)

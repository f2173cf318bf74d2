"""Why a bundle is not taken: always before anything is written, and always with the entry that it is about."""

from __future__ import annotations

from inmind.errors import InvalidInput


def refused(entry: str, *, value: object, expected: str) -> InvalidInput:
    return InvalidInput(field=f"bundle {entry}" if entry else "bundle", value=value, expected=expected)

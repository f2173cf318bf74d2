"""Field names in stored events that differ from the names in the code.

An event is stored as JSON with one key for each field. Renaming a field in the code must not change what is on disk,
so the stored name of a renamed field is listed here, by class.
"""

from __future__ import annotations

from collections.abc import Mapping

STORED_NAMES: Mapping[str, Mapping[str, str]] = {}
"""Class name, then field name in the code, then key in the stored JSON."""

"""What a host or a model hands in for a scratchpad, checked once, and what of it takes effect.

An update is decided here in full, as a value: what is merged, what is deleted, and what has to be told to whoever sent
it, because it was dropped, left as it was, or not there. Deciding changes nothing, so what is refused leaves everything
as it was.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from inmind.core.encoding import to_json
from inmind.core.events.documents import ScratchpadMerged, ScratchpadWritten
from inmind.core.frozen import frozen
from inmind.documents.document import MAX_DOCUMENT_BYTES, validate_text
from inmind.documents.scratchpad.filler_values import drop_filler
from inmind.documents.scratchpad.json_input import copy_json, too_large_error
from inmind.documents.scratchpad.merge import append_text, delete_paths, json_equal, merge_update
from inmind.documents.scratchpad.paths import ABSENT, Path, format_path, is_list, is_object, parse_path, value_at
from inmind.documents.scratchpad.state import ScratchpadState
from inmind.errors import InvalidInput


@frozen(kw_only=True)
class ScratchpadUpdate:
    """What is to happen to a pad, and what is to be told about it."""

    state: ScratchpadState
    """What the pad holds afterwards."""
    changed: bool
    """Whether that is anything else than before."""
    size: int = 0
    """Bytes that an object takes as JSON, at most."""
    values: Mapping[str, Any] = field(default_factory=dict[str, Any])
    delete: tuple[Path, ...] = ()
    text: str | None = None
    """For a pad that holds text; then there are neither values nor anything to delete."""
    append: bool = False
    dropped: tuple[str, ...] = ()
    """Paths of keys that no state may have: `__proto__` and its kind."""
    filler: tuple[str, ...] = ()
    """Paths of fields that stay as they are, since the empty value sent for them was padding."""
    missing: tuple[str, ...] = ()
    """Paths that were to be deleted and are not there."""

    def event(self, pad: str) -> ScratchpadMerged | ScratchpadWritten:
        if self.text is not None:
            return ScratchpadWritten(scratchpad=pad, text=self.text, append=self.append)
        return ScratchpadMerged(scratchpad=pad, values=self.values, delete=self.delete)


def plan_object_update(
    state: ScratchpadState | None,
    values: object,
    delete: object = (),
    *,
    may_have_filler: bool = False,
    size: int = MAX_DOCUMENT_BYTES,
) -> ScratchpadUpdate:
    """An update of a pad that holds an object. `padded`: a model may have padded the values.

    `size`: what the state takes at most, where that is known. Merging adds no more than what is merged in, so nearly
    always there is no need to measure all that the pad holds.
    """
    held: Mapping[str, Any] = state if is_object(state) else {}
    copy = copy_json(values, "values")
    if not is_object(copy.value):
        raise InvalidInput(field="values", value=values, expected="an object, since this scratchpad holds one")
    requested = {path: value_at(held, path) is not ABSENT for path in _parse_paths(held, delete)}
    existing = tuple(path for path, found in requested.items() if found)
    remaining = delete_paths(held, existing)
    accepted, filler = copy.value, ()
    if may_have_filler:
        filtered = drop_filler(copy.value, remaining, delete=tuple(requested))
        accepted, filler = filtered.values, filtered.filler
    after = merge_update(remaining, accepted)
    size += _json_size(accepted)
    if size > MAX_DOCUMENT_BYTES:
        size = _json_size(after)
    if size > MAX_DOCUMENT_BYTES:
        raise too_large_error(accepted, "values")
    return ScratchpadUpdate(
        state=after,
        changed=not json_equal(after, held),
        size=size,
        values=accepted,
        delete=existing,
        dropped=copy.dropped_keys,
        filler=tuple(map(format_path, filler)),
        missing=tuple(format_path(path) for path, found in requested.items() if not found),
    )


def plan_text_update(
    state: ScratchpadState | None, text: object, *, append: bool = False, may_have_filler: bool = False
) -> ScratchpadUpdate:
    """An update of a pad that holds text: an object would overwrite it with something that it is not.

    `padded`: a model may have padded it. A blank text says nothing, so it changes nothing.
    """
    if not isinstance(text, str):
        raise InvalidInput(field="text", value=text, expected="a text, since this scratchpad holds one")
    held = state if isinstance(state, str) else ""
    if may_have_filler and not text.strip():
        return ScratchpadUpdate(
            state=held, changed=False, text=text, append=append, filler=("text",) if held and not append else ()
        )
    after = validate_text(append_text(held, validate_text(text)) if append else text)
    return ScratchpadUpdate(state=after, changed=after != held, text=text, append=append)


def _json_size(value: Mapping[str, Any]) -> int:
    return len(to_json(value).encode())


def _parse_paths(state: Mapping[str, Any], delete: object) -> list[Path]:
    """What is to be deleted. Models pad this too, with null."""
    if delete is None:
        return []
    if not is_list(delete):
        raise InvalidInput(field="delete", value=delete, expected="a list of paths")
    return [parse_path(one, state, f"delete[{place}]") for place, one in enumerate(delete)]

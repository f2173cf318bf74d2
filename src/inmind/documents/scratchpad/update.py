"""Validates an update of a scratchpad by a host or a model, and decides its effect.

The decision is a value: fields to merge and delete, and the report for the caller (dropped keys, filler, paths not
found). The state is not changed here, so a refused update has no effect.

Models with structured output put null, [], {}, "" or [""] into every field for which they have no value. Taken
literally, an update of one field would clear all others. So an empty value counts only if it is the whole update:
`{"blockers": []}` clears the blockers; together with a new goal it is filler, and the blockers stay. Updates by a host
are always taken literally.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any

from inmind.core.encoding import to_json
from inmind.core.events.documents import ScratchpadMerged, ScratchpadWritten
from inmind.core.frozen import frozen
from inmind.documents.document import MAX_DOCUMENT_BYTES, validate_text
from inmind.documents.scratchpad.state import ScratchpadState, append_text, delete_paths, json_equal, merge_update
from inmind.documents.scratchpad.values import (
    ABSENT,
    Path,
    copy_json,
    format_path,
    is_list,
    is_object,
    parse_path,
    too_large_error,
    value_at,
)
from inmind.errors import InvalidInput


def drop_filler(
    values: Mapping[str, Any], state: Mapping[str, Any], *, delete: Sequence[Path]
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return the values that take effect, and the fields that keep their value.

    `state`: the state without `delete`.
    """
    sent = [path for path, _ in leaf_values(values)]
    # A single value is meant, also if the value that it replaces is deleted with it.
    if len(sent) == 1 and all(sent[0][: len(path)] == path for path in delete):
        return dict(values), ()
    filler: list[str] = []

    def keep(update: Mapping[str, Any], held: Any, above: Path) -> dict[str, Any]:
        """`held`: the value that these values replace; that may be a scalar higher up."""
        kept: dict[str, Any] = {}
        for key, value in update.items():
            path, replaced = (*above, key), held.get(key) if is_object(held) else held
            if is_object(value) and value:
                if rest := keep(value, replaced, path):
                    kept[key] = rest
            elif is_empty(value) and not is_empty(replaced):
                filler.append(format_path(path))
            elif value is not None:  # a null for a field without a value would only be noise in the prompt
                kept[key] = value
        return kept

    return keep(values, state, ()), tuple(filler)


def is_empty(value: object) -> bool:
    """True for null, blank text, an empty object, and a list of only empty values.

    Some models fill a list with one empty item.
    """
    if isinstance(value, str):
        return not value.strip()
    return value is None or (is_object(value) and not value) or (is_list(value) and all(map(is_empty, value)))


def leaf_values(values: Mapping[str, Any], above: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Yield path and value of everything in an update that is not a non-empty object."""
    for key, value in values.items():
        path = (*above, key)
        if is_object(value) and value:
            yield from leaf_values(value, path)
        else:
            yield path, value


@frozen(kw_only=True)
class ScratchpadUpdate:
    """The effect of an update, and the report for the caller."""

    state: ScratchpadState
    """The state after the update."""
    changed: bool
    """True if the state differs from the one before."""
    values: Mapping[str, Any] = field(default_factory=dict[str, Any])
    delete: tuple[Path, ...] = ()
    text: str | None = None
    """The text written; None for an object."""
    append: bool = False
    dropped: tuple[str, ...] = ()
    """Paths of unsafe keys, like `__proto__`."""
    filler: tuple[str, ...] = ()
    """Paths that keep their value, because the empty value sent for them is filler."""
    missing: tuple[str, ...] = ()
    """Paths to delete that do not exist."""

    def event(self, pad: str) -> ScratchpadMerged | ScratchpadWritten:
        if self.text is not None:
            return ScratchpadWritten(scratchpad=pad, text=self.text, append=self.append)
        return ScratchpadMerged(scratchpad=pad, values=self.values, delete=self.delete)


def plan_object_update(
    state: ScratchpadState | None, values: object, delete: object = (), *, may_have_filler: bool = False
) -> ScratchpadUpdate:
    """Plan an update of an object. `may_have_filler`: the values come from a model."""
    held: Mapping[str, Any] = state if is_object(state) else {}
    copy = copy_json(values, "values")
    if not is_object(copy.value):
        raise InvalidInput(field="values", value=values, expected="an object, since this scratchpad holds an object")
    requested = {path: value_at(held, path) is not ABSENT for path in _parse_paths(held, delete)}
    existing = tuple(path for path, exists in requested.items() if exists)
    remaining = delete_paths(held, existing)
    accepted, filler = copy.value, ()
    if may_have_filler:
        accepted, filler = drop_filler(copy.value, remaining, delete=tuple(requested))
    after = merge_update(remaining, accepted)
    if len(to_json(after).encode()) > MAX_DOCUMENT_BYTES:
        raise too_large_error(accepted, "values")
    return ScratchpadUpdate(
        state=after,
        changed=not json_equal(after, held),
        values=accepted,
        delete=existing,
        dropped=copy.dropped_keys,
        filler=filler,
        missing=tuple(format_path(path) for path, exists in requested.items() if not exists),
    )


def plan_text_update(
    state: ScratchpadState | None, text: object, *, append: bool = False, may_have_filler: bool = False
) -> ScratchpadUpdate:
    """Plan an update of a text; an object is refused.

    `may_have_filler`: the text comes from a model. A blank text is then filler and changes nothing.
    """
    if not isinstance(text, str):
        raise InvalidInput(field="text", value=text, expected="a text, since this scratchpad holds text")
    held = state if isinstance(state, str) else ""
    if may_have_filler and not text.strip():
        return ScratchpadUpdate(
            state=held, changed=False, text=text, append=append, filler=("text",) if held and not append else ()
        )
    after = validate_text(append_text(held, validate_text(text)) if append else text)
    return ScratchpadUpdate(state=after, changed=after != held, text=text, append=append)


def _parse_paths(state: Mapping[str, Any], delete: object) -> list[Path]:
    """Parse the paths to delete; models may send null."""
    if delete is None:
        return []
    if not is_list(delete):
        raise InvalidInput(field="delete", value=delete, expected="a list of paths")
    return [parse_path(one, state, f"delete[{place}]") for place, one in enumerate(delete)]

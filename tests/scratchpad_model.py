"""A reference model of a scratchpad: updates, model calls and merges of children.

It copies everything and supports one schema. For that schema the library must give the same results.
"""

from __future__ import annotations

from copy import deepcopy
from typing import Any, cast

from hypothesis import strategies as st

State = dict[str, Any]

SCHEMA: State = {
    "type": "object",
    "properties": {
        "goal": {"type": "string"},
        "steps": {"type": "array", "items": {"type": "string"}},
        "owner": {"type": "object", "properties": {"name": {"type": "string"}, "tags": {"type": "array"}}},
    },
}

NAMES = st.sampled_from(["Ada", "美", "</working_memory>"])
STEPS = st.lists(st.sampled_from(["plan", "build", "test"]), max_size=3)
OWNERS = st.fixed_dictionaries({}, optional={"name": NAMES, "tags": STEPS})
VALUES: st.SearchStrategy[State] = st.fixed_dictionaries({}, optional={"goal": NAMES, "steps": STEPS, "owner": OWNERS})
PATHS = st.lists(st.sampled_from(["goal", "steps", "owner", "owner.name", "owner.tags"]), max_size=2)

INVALID_UPDATES: list[State] = [{"goal": 7}, {"goal": "Ada", "steps": "all"}]


@st.composite
def arguments(draw: st.DrawFn) -> State:
    """Arguments of a model's update: intended values, and null as filler."""
    values: State = {"goal": draw(NAMES)}
    if draw(st.booleans()):
        values["owner"] = {"name": draw(NAMES)}
    return values | draw(st.sampled_from([{}, {"steps": None, "delete": None}, {"delete": ["steps", "nothing.there"]}]))


def apply_update(pad: State, values: State, delete: list[str]) -> State:
    """Delete first, then merge."""
    pad = deepcopy(pad)
    for path in delete:
        above, _, last = path.rpartition(".")
        cast(State, pad.get(above, {}) if above else pad).pop(last, None)
    for key, value in values.items():
        pad[key] = {**pad[key], **value} if key == "owner" and key in pad else value
    return pad


def apply_model_update(pad: State, arguments: State) -> State:
    """Ignore values that do not match the schema, and null."""
    if arguments in INVALID_UPDATES:
        return pad
    values = {key: value for key, value in arguments.items() if key != "delete" and value is not None}
    return apply_update(pad, values, arguments.get("delete") or [])


def merge_child(base: State, ours: State, theirs: State, above: str = "") -> tuple[State, list[str]]:
    """Return `ours` with the changes from `base` to `theirs`, and the paths of conflicts.

    A change on one side is taken; a list to which both appended is combined; otherwise ours stays.
    """
    merged, conflicts = dict(ours), list[str]()
    for key in {**base, **theirs}:
        was, mine, new = (pad.get(key) for pad in (base, ours, theirs))
        if new in (was, mine):
            continue
        if key == "owner" and mine is not None and new is not None:
            merged[key], inner = merge_child(was or {}, mine, new, f"{key}.")
            conflicts += inner
        elif mine == was:
            merged[key] = new
        elif (combined := _combine(was or [], mine, new)) is not None:
            merged[key] = combined
        else:
            conflicts.append(f"{above}{key}")
    return {key: value for key, value in merged.items() if value is not None}, conflicts


def _combine(was: Any, mine: Any, new: Any) -> list[str] | None:
    if not isinstance(mine, list) or not isinstance(new, list):
        return None
    remaining = iter(cast(list[str], mine))
    if new[: len(was)] != was or not all(item in remaining for item in was):  # each is searched after the one before
        return None
    added = list(cast(list[str], mine))
    for item in was:
        added.remove(item)
    return [*cast(list[str], mine), *(item for item in cast(list[str], new)[len(was) :] if item not in added)]

"""A scratchpad as a plain model has it: what updates, a model's calls and children come to, in the fewest words.

It is far from what the library does: it copies everything, and knows one shape of state. What it says of that shape,
the library has to say too.
"""

from __future__ import annotations

from copy import deepcopy
from typing import Any, cast

from hypothesis import strategies as st

Pad = dict[str, Any]

SCHEMA: Pad = {
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
VALUES: st.SearchStrategy[Pad] = st.fixed_dictionaries({}, optional={"goal": NAMES, "steps": STEPS, "owner": OWNERS})
PATHS = st.lists(st.sampled_from(["goal", "steps", "owner", "owner.name", "owner.tags"]), max_size=2)

MISFITS: list[Pad] = [{"goal": 7}, {"goal": "Ada", "steps": "all"}]


@st.composite
def arguments(draw: st.DrawFn) -> Pad:
    """What a model sends to change something: what it means, and null where it only fills in a field."""
    meant: Pad = {"goal": draw(NAMES)}
    if draw(st.booleans()):
        meant["owner"] = {"name": draw(NAMES)}
    return meant | draw(st.sampled_from([{}, {"steps": None, "delete": None}, {"delete": ["steps", "nothing.there"]}]))


def updated(pad: Pad, values: Pad, delete: list[str]) -> Pad:
    """First what is deleted, then what is merged in."""
    pad = deepcopy(pad)
    for path in delete:
        above, _, last = path.rpartition(".")
        cast(Pad, pad.get(above, {}) if above else pad).pop(last, None)
    for key, value in values.items():
        pad[key] = {**pad[key], **value} if key == "owner" and key in pad else value
    return pad


def updated_by_model(pad: Pad, arguments: Pad) -> Pad:
    """Nothing where they do not fit the schema, and nothing by null."""
    if arguments in MISFITS:
        return pad
    values = {key: value for key, value in arguments.items() if key != "delete" and value is not None}
    return updated(pad, values, arguments.get("delete") or [])


def home(base: Pad, ours: Pad, theirs: Pad, above: str = "") -> tuple[Pad, list[str]]:
    """What ours is with the changes from base to theirs, and the paths of what both have changed.

    Whoever alone changed a field has it; a list that they appended to and we took nothing out of is joined; else ours
    stays.
    """
    merged, conflicts = dict(ours), list[str]()
    for key in {**base, **theirs}:
        was, mine, new = (pad.get(key) for pad in (base, ours, theirs))
        if new in (was, mine):
            continue
        if key == "owner" and mine is not None and new is not None:
            merged[key], inside = home(was or {}, mine, new, f"{key}.")
            conflicts += inside
        elif mine == was:
            merged[key] = new
        elif (joined := _joined(was or [], mine, new)) is not None:
            merged[key] = joined
        else:
            conflicts.append(f"{above}{key}")
    return {key: value for key, value in merged.items() if value is not None}, conflicts


def _joined(was: Any, mine: Any, new: Any) -> list[str] | None:
    if not isinstance(mine, list) or not isinstance(new, list):
        return None
    left = iter(cast(list[str], mine))
    if new[: len(was)] != was or not all(item in left for item in was):  # each is looked for behind the one before
        return None
    added = list(cast(list[str], mine))
    for item in was:
        added.remove(item)
    return [*cast(list[str], mine), *(item for item in cast(list[str], new)[len(was) :] if item not in added)]

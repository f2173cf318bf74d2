"""Properties of scratchpads for any input: no unmentioned field is lost, a refused update has no effect."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import count
from random import Random
from typing import Annotated, Any, Literal, TypeVar, Union, cast

import pytest
from builders import an_event
from hypothesis import assume, given
from hypothesis import strategies as st
from pydantic import ConfigDict, Field, create_model
from scratchpad_model import VALUES, merge_child

from inmind.core.encoding import to_json
from inmind.core.events.base import EventPayload, Trust
from inmind.core.events.codec import decode_payload, encode_payload
from inmind.core.events.documents import ScratchpadMerged, ScratchpadSetAside, ScratchpadStarted, ScratchpadWritten
from inmind.core.merge3 import merge_lines
from inmind.core.tokens import estimator
from inmind.documents.scratchpad.filler_values import is_empty
from inmind.documents.scratchpad.json_input import copy_json
from inmind.documents.scratchpad.merge import json_equal, merge_update
from inmind.documents.scratchpad.merge3 import ScratchpadMerge, merge_three_way
from inmind.documents.scratchpad.paths import ABSENT, Path, format_path, is_object, value_at
from inmind.documents.scratchpad.render import render_state, render_within
from inmind.documents.scratchpad.schema import ScratchpadSchema, compile_schema
from inmind.documents.scratchpad.state import Scratchpads
from inmind.documents.scratchpad.update import plan_object_update
from inmind.errors import InmindError, InvalidInput, SchemaViolation

Object = dict[str, Any]

# Few keys, so that states, updates and paths meet; among them the awkward ones.
KEYS = st.sampled_from(["a", "b", "c", "a.b", "/c", "", "目标"])
WORDS = st.sampled_from(["", " ", "x", "a\nb", "</x>"])
LEAVES = st.one_of(st.none(), st.booleans(), st.integers(0, 2), st.floats(0, 1), WORDS)


def values(leaves: st.SearchStrategy[Any] = LEAVES) -> st.SearchStrategy[Any]:
    return st.recursive(
        leaves,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
        max_leaves=8,
    )


OBJECTS: st.SearchStrategy[Object] = st.dictionaries(KEYS, values(), max_size=4)
PATHS: st.SearchStrategy[Path] = st.lists(KEYS, min_size=1, max_size=3).map(tuple)
DELETES: st.SearchStrategy[list[Path]] = st.lists(PATHS, max_size=2)
TEXTS = st.sampled_from(["", "a", "a\n", "a\nb", "a\nb\nc", "x", "关于我们\n"])


def leaves_of(value: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Every part that is no object with something inside, with its path."""
    if isinstance(value, Mapping) and value:
        for key, inner in cast(Mapping[str, Any], value).items():
            yield from leaves_of(inner, (*path, key))
    else:
        yield path, value


def touches(path: Path, other: Path) -> bool:
    shorter = min(len(path), len(other))
    return path[:shorter] == other[:shorter]


def copied(value: Any) -> Any:
    return json.loads(json.dumps(value))


T = TypeVar("T")


def tried(call: Callable[[], T]) -> T | InmindError:
    """What a call answers, or why it refuses."""
    try:
        return call()
    except InmindError as error:
        return error


# -- merging -----------------------------------------------------------------------------------------------


@pytest.mark.spec("C2")
@given(OBJECTS, OBJECTS, DELETES)
def test_merging_twice_is_merging_once(state: Object, update: Object, delete: list[Path]) -> None:
    once = merge_update(state, update, delete)
    assert json_equal(merge_update(once, update, delete), once)


@pytest.mark.spec("C2")
@given(OBJECTS, OBJECTS, DELETES)
def test_fields_not_in_the_update_stay(state: Object, update: Object, delete: list[Path]) -> None:
    after = merge_update(state, update, delete)
    mentioned = [*delete, *(path for path, _ in leaves_of(update))]
    for path, value in leaves_of(state):
        if not any(touches(path, other) for other in mentioned):
            assert json_equal(value_at(after, path), value)
    for path, value in leaves_of(update):
        assert value == {} or json_equal(value_at(after, path), value)


@pytest.mark.spec("C2")
@given(OBJECTS, OBJECTS, DELETES)
def test_merging_changes_neither_what_is_merged_nor_what_it_is_merged_into(
    state: Object, update: Object, delete: list[Path]
) -> None:
    before = copied([state, update, delete])
    after = merge_update(state, update, delete)
    merge_update(after, {"a": {"b": {"c": 1}}}, [("a",), ("b", "a")])
    assert json_equal(copied([state, update, delete]), before)


@pytest.mark.spec("C2")
@given(OBJECTS, OBJECTS, DELETES)
def test_merging_adds_no_more_than_what_is_merged_in(state: Object, update: Object, delete: list[Path]) -> None:
    sizes = [len(to_json(each).encode()) for each in (merge_update(state, update, delete), state, update)]
    assert sizes[0] <= sizes[1] + sizes[2]


def kinds_agree(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Where both have something, both or neither is an object."""
    for key in one.keys() & other.keys():
        objects = [isinstance(each[key], Mapping) for each in (one, other)]
        if any(objects) and (not all(objects) or not kinds_agree(one[key], other[key])):
            return False
    return True


@pytest.mark.spec("C2")
@given(OBJECTS, OBJECTS, OBJECTS)
def test_merging_is_associative_where_no_field_changes_its_kind(one: Object, two: Object, three: Object) -> None:
    """Where a scalar takes the place of an object, what was inside is gone, and the order begins to matter."""
    assume(kinds_agree(one, two) and kinds_agree(two, three) and kinds_agree(one, three))
    assert json_equal(merge_update(merge_update(one, two), three), merge_update(one, merge_update(two, three)))


# -- updates -----------------------------------------------------------------------------------------------

AWKWARD = st.one_of(
    LEAVES,
    st.sampled_from([float("nan"), b"bytes", "\x00", "\ud800", 1 << 14_000, {1: 2}, {3}, ("a",), object()]),
)
AWKWARD_KEYS = KEYS | st.sampled_from(["__proto__", "constructor", "prototype", "__class__", "\ud800", "\x00"])


def anything() -> st.SearchStrategy[Any]:
    return st.recursive(
        AWKWARD,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(AWKWARD_KEYS, inner, max_size=3),
        max_leaves=8,
    )


def keys_of(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        for key, inner in cast(Mapping[str, Any], value).items():
            yield key
            yield from keys_of(inner)
    elif isinstance(value, list):
        for inner in cast(list[Any], value):
            yield from keys_of(inner)


@pytest.mark.spec("C2", "J3")
@given(OBJECTS, anything(), st.lists(PATHS | st.sampled_from(["a", "a.b", "/a/b", "", 7, ()]), max_size=2) | AWKWARD)
def test_an_update_is_taken_or_refused_with_a_path_and_the_state_stays(
    state: Object, given_values: Any, delete: Any
) -> None:
    before = copied(state)
    update = tried(lambda: plan_object_update(state, given_values, delete))
    if isinstance(update, InmindError):
        assert isinstance(update, InvalidInput)
        assert update.field.startswith(("values", "delete"))
    else:
        assert json.loads(json.dumps(update.state)) == update.state
        assert not {"__proto__", "constructor", "prototype", "__class__"} & set(keys_of(update.state))
        event = update.event("p")
        assert decode_payload(event.kind, encode_payload(event)) == event
        assert json_equal(merge_update(state, update.values, update.delete), update.state)
    assert json_equal(state, before)


@pytest.mark.spec("C2")
@given(OBJECTS)
def test_plain_json_is_copied_unchanged(state: Object) -> None:
    found = copy_json(state, "values")
    assert json_equal(found.value, state)
    assert found.dropped_keys == ()
    assert json.dumps(found.value) == json.dumps(state)


@pytest.mark.spec("C2")
@given(OBJECTS, OBJECTS, DELETES)
def test_an_update_with_filler_never_loses_a_value(state: Object, update: Object, delete: list[Path]) -> None:
    leaves = dict(leaves_of(update)) if update else {}
    assume(len(leaves) != 1)
    assume(not any(isinstance(value_at(state, path[:end]), list) for path in delete for end in range(1, len(path))))
    after = cast(Object, plan_object_update(state, update, delete, may_have_filler=True).state)
    said = [path for path, value in leaves.items() if not is_empty(value)]
    for path, value in leaves_of(state):
        if not is_empty(value) and not any(touches(path, other) for other in [*said, *delete]):
            assert json_equal(value_at(after, path), value)
    for path in said:
        assert json_equal(value_at(after, path), leaves[path])


# -- schemas -----------------------------------------------------------------------------------------------


@st.composite
def schemas(draw: st.DrawFn, depth: int = 2) -> Object:
    """Schemas of objects whose fields are required, nested, in lists, in unions, or refer to the whole."""
    properties = draw(st.dictionaries(st.sampled_from("abc"), fields(depth), max_size=3))
    required = [name for name, field in properties.items() if "$ref" not in field and draw(st.booleans())]
    extra = draw(st.booleans())
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": extra}


def fields(depth: int) -> st.SearchStrategy[Object]:
    scalar = st.sampled_from([{"type": "string"}, {"type": "integer"}, {"type": "null"}, {"const": 1}, {"$ref": "#"}])
    if not depth:
        return scalar
    inner = schemas(depth - 1)
    return st.one_of(
        scalar,
        inner,
        inner.map(lambda schema: {"type": "array", "items": schema}),
        inner.map(lambda schema: {"anyOf": [schema, {"type": "null"}]}),
        inner.map(lambda schema: {"oneOf": [schema, {"type": "string"}]}),
    )


SCALARS: Mapping[str, st.SearchStrategy[Any]] = {"string": WORDS, "integer": st.integers(), "null": st.none()}


def finished(schema: Object, root: Object, depth: int = 3) -> st.SearchStrategy[Any]:
    """States that are all that a schema describes."""
    match schema:
        case {"$ref": _}:
            return finished(root, root, depth - 1)
        case {"const": value}:
            return st.just(value)
        case {"anyOf": several} | {"oneOf": several}:
            return st.one_of([finished(one, root, depth) for one in several])
        case {"type": "array", "items": items}:
            return st.lists(finished(items, root, depth), max_size=2)
        case {"properties": properties, "required": required}:
            known = {name: field for name, field in properties.items() if depth or "$ref" not in field}
            parts = {name: finished(field, root, depth) for name, field in known.items()}
            optional = {name: part for name, part in parts.items() if name not in required}
            return st.fixed_dictionaries({name: parts[name] for name in required}, optional=optional)
        case _:
            return SCALARS[schema["type"]]


@st.composite
def schemas_with_a_state(draw: st.DrawFn) -> tuple[Object, Object]:
    schema = draw(schemas())
    return schema, draw(finished(schema, schema))


STATES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=8,
)
SMALL: st.SearchStrategy[Object] = st.dictionaries(st.sampled_from("abc"), STATES, max_size=3)


@pytest.mark.spec("C6")
@given(schemas(), SMALL, SMALL)
def test_a_refused_state_is_invalid_and_an_accepted_one_can_be_updated(
    schema: Object, before: Object, state: Object
) -> None:
    import jsonschema_rs

    shape = compile_schema(schema)
    kept = copied([before, state])
    refused = tried(lambda: shape.check(state, before))
    if refused:
        assert isinstance(refused, SchemaViolation)
        assert not jsonschema_rs.is_valid(schema, state)
        assert shape.mismatch_reason(state) or refused.reason.startswith("required, cannot be removed")
    else:
        assert shape.mismatch_reason(state) == ""
    assert json_equal([before, state], kept)


def filled_in(state: Object, order: Random, *, first: str = "") -> Iterator[tuple[Object, Object]]:
    """Every state on the way to this one, with the one before it: one leaf after another."""
    leaves = list(leaves_of(state)) if state else []
    order.shuffle(leaves)
    leaves.sort(key=lambda leaf: len(leaf[0]) if leaf[0][-1] == first else 1_000)
    before: Object = {}
    for path, value in leaves:
        update: Any = value
        for key in reversed(path):
            update = {key: update}
        after = cast(Object, plan_object_update(before, update).state)
        yield before, after
        before = after
    assert json_equal(before, state)


@pytest.mark.spec("C6")
@given(schemas_with_a_state(), st.randoms())
def test_a_finished_state_can_be_filled_in_field_by_field_in_any_order(
    drawn: tuple[Object, Object], order: Random
) -> None:
    """Unless the schema wants exactly one of several: what is unfinished may be none of them."""
    schema, state = drawn
    assume("oneOf" not in json.dumps(schema))
    shape = compile_schema(schema)
    for before, after in filled_in(state, order):
        shape.check(after, before)


@pytest.mark.spec("C6")
@given(schemas_with_a_state())
def test_a_finished_state_fits_and_loses_nothing_that_is_required(drawn: tuple[Object, Object]) -> None:
    schema, state = drawn
    shape = compile_schema(schema)
    shape.check(state, {})
    for name in schema["required"]:
        less = merge_update(state, {}, [(name,)])
        refused = tried(lambda less=less: shape.check(less, state))
        if not less:  # everything was removed, so it starts empty
            assert refused is None
            continue
        assert isinstance(refused, SchemaViolation)
        assert refused.path == name


@pytest.mark.spec("C5")
@given(schemas_with_a_state())
def test_a_model_can_send_every_finished_state_and_delete_from_it(drawn: tuple[Object, Object]) -> None:
    import jsonschema_rs

    schema, state = drawn
    offered = jsonschema_rs.validator_for(cast(Object, compile_schema(schema).parameters))
    assert offered.is_valid({**state, "delete": ["a.b"]})
    assert offered.is_valid({"delete": []})
    assert not offered.is_valid({"delete": "a.b"})


# -- schemas, asked both ways ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Text:
    """A text field."""


@dataclass(frozen=True)
class Number:
    """A field that holds an integer."""


@dataclass(frozen=True)
class Named:
    """An object with fields, each with whether it is required; strict if it takes no others."""

    fields: tuple[tuple[str, Kind, bool], ...]
    strict: bool


@dataclass(frozen=True)
class Optionally:
    inner: Kind


@dataclass(frozen=True)
class Listed:
    inner: Kind


@dataclass(frozen=True)
class Keyed:
    inner: Kind


@dataclass(frozen=True)
class Either:
    """A union: of the alternatives that fit, or, with tags, of those that the field `kind` tells apart."""

    alternatives: tuple[Named, Named]
    tagged: bool


Kind = Text | Number | Named | Optionally | Listed | Keyed | Either
TAGS = ("one", "two")
NUMBERS = count()
"""By their names pydantic tells the alternatives of a union apart."""


@st.composite
def named(draw: st.DrawFn, depth: int) -> Named:
    names = draw(st.sets(st.sampled_from("abc"), max_size=3))
    return Named(tuple((name, draw(kinds(depth)), draw(st.booleans())) for name in sorted(names)), draw(st.booleans()))


@st.composite
def kinds(draw: st.DrawFn, depth: int) -> Kind:
    made: list[Callable[[], Kind]] = [Text, Number]
    if depth:
        inner = named(depth - 1)
        made.append(lambda: draw(inner))
        made.append(lambda: Either((draw(inner), draw(inner)), draw(st.booleans())))
    kind = draw(st.sampled_from(made))()
    around: list[Callable[[Kind], Kind]] = [lambda kind: kind, Optionally, Listed, Keyed]
    return draw(st.sampled_from(around))(kind)


def as_model(kind: Kind, tag: str = "") -> Any:
    """The pydantic type of a kind."""
    match kind:
        case Text():
            return str
        case Number():
            return int
        case Optionally(inner):
            return as_model(inner) | None
        case Listed(inner):
            return list[as_model(inner)]
        case Keyed(inner):
            return dict[str, as_model(inner)]
        case Either(alternatives, tagged=True):
            models = [as_model(one, tag) for one, tag in zip(alternatives, TAGS, strict=True)]
            return Annotated[Union[tuple(models)], Field(discriminator="kind")]  # noqa: UP007 -- there is no other way
        case Either(alternatives):
            return Union[tuple(map(as_model, alternatives))]  # noqa: UP007
        case Named(fields, strict):
            made: Any = {name: (as_model(inner), ... if needed else None) for name, inner, needed in fields}
            made |= {"kind": (Literal[tag], ...)} if tag else {}
            config = ConfigDict(extra="forbid" if strict else "ignore")
            return create_model(f"Model{next(NUMBERS)}", __config__=config, **made)


def lacks(kind: Kind, value: Any, *, tag: str = "") -> set[Path] | None:
    """What a value lacks of a kind, by the rule in its plainest words; None if it contradicts it."""
    match kind:
        case Text():
            return set() if isinstance(value, str) else None
        case Number():
            return set() if isinstance(value, int) else None
        case Optionally(inner):
            return set() if value is None else lacks(inner, value)
        case Listed(inner):
            whole = isinstance(value, list) and all(lacks(inner, one) == set() for one in cast(list[Any], value))
            return set() if whole else None
        case Keyed(inner):
            return all_of({key: lacks(inner, one) for key, one in value.items()}) if is_object(value) else None
        case Either(alternatives, tagged=True):
            said = value.get("kind") if is_object(value) else None
            meant = [pair for pair in zip(alternatives, TAGS, strict=True) if pair[1] == said]
            return lacks(meant[0][0], value, tag=meant[0][1]) if meant else None
        case Either(alternatives):
            fitting = [one for one in (lacks(each, value) for each in alternatives) if one is not None]
            return None if not fitting else set() if set() in fitting else set[Path]().union(*fitting)
        case Named(fields, strict):
            if not is_object(value) or (
                strict and {*value} - {*(name for name, _, _ in fields), *(["kind"] * bool(tag))}
            ):
                return None
            there = {name: lacks(inner, value[name]) for name, inner, _ in fields if name in value}
            inside = all_of(there)
            missing = {(name,) for name, _, needed in fields if needed and name not in value}
            return None if inside is None else inside | missing


def all_of(parts: Mapping[str, set[Path] | None]) -> set[Path] | None:
    if None in parts.values():
        return None
    return {(key, *path) for key, paths in parts.items() for path in paths or ()}


def valued(kind: Kind, *, whole: bool, tag: str = "") -> st.SearchStrategy[Any]:
    """Values of a kind; where they need not be whole, also some that lack something, and some that are none."""
    match kind:
        case Text():
            fitting: st.SearchStrategy[Any] = st.just("x")
        case Number():
            fitting = st.just(7)
        case Optionally(inner):
            fitting = st.none() | valued(inner, whole=whole)
        case Listed(inner):
            fitting = st.lists(valued(inner, whole=whole), max_size=2)
        case Keyed(inner):
            fitting = st.dictionaries(st.sampled_from(["k", "007"]), valued(inner, whole=whole), max_size=2)
        case Either(alternatives, tagged):
            one, other = (
                valued(one, whole=whole, tag=tag * tagged) for one, tag in zip(alternatives, TAGS, strict=True)
            )
            fitting = one | other
        case Named(fields, _):
            parts = {name: valued(inner, whole=whole) for name, inner, _ in fields}
            parts |= {"kind": st.just(tag)} if tag else {}
            optional = {name: parts.pop(name) for name, _, needed in fields if not (needed and whole)}
            fitting = st.fixed_dictionaries(parts, optional=optional)
    junk = st.sampled_from(["x", 7, None, {}, [], {"a": "x"}, {"kind": "two"}])
    return fitting if whole else st.integers(0, 9).flatmap(lambda dice: fitting if dice else junk)


def shapes(kind: Named) -> tuple[ScratchpadSchema, ScratchpadSchema]:
    model = as_model(kind)
    return compile_schema(model), compile_schema(model.model_json_schema())


def paths_of(state: Object) -> list[Path]:
    return [path[: end + 1] for path, _ in leaves_of(state) for end in range(len(path))]


@pytest.mark.spec("C6")
@given(named(depth=2), st.data())
def test_a_model_and_its_json_schema_take_and_refuse_the_same_updates(kind: Named, data: st.DataObject) -> None:
    """And both do what the rule says: nothing wrong, and nothing gone that is required, unless what it stood in is."""
    state: Object = {}
    both = shapes(kind)
    for _ in range(4):
        update = data.draw(valued(Named(kind.fields, strict=False), whole=False).filter(is_object))
        delete = data.draw(st.lists(st.sampled_from(paths_of(state)), max_size=1)) if state else []
        after = cast(Object, plan_object_update(state, update, delete).state)
        missing = lacks(kind, after)
        restarted = [path for path in missing or () if any(path[: len(gone)] == gone != path for gone in delete)]
        gone = [path for path in missing or () if value_at(state, path) is not ABSENT and path not in restarted]
        taken = missing is not None and not (after and gone)
        verdicts = [tried(partial(shape.check, after, state, delete)) for shape in both]
        assert [verdict is None for verdict in verdicts] == [taken, taken], (update, delete, verdicts)
        assert [shape.mismatch_reason(after) == "" for shape in both] == [missing is not None] * 2
        state = after if taken else state


@pytest.mark.spec("C6")
@given(named(depth=2), st.data())
def test_removing_never_leaves_a_complete_state_incomplete(kind: Named, data: st.DataObject) -> None:
    state = data.draw(valued(kind, whole=True))
    assume(state)
    delete = data.draw(st.lists(st.sampled_from(paths_of(state)), min_size=1, max_size=2))
    after = merge_update(state, {}, delete)
    assume(after)
    for shape in shapes(kind):
        shape.check(state, {})
        if tried(partial(shape.check, after, state, delete)) is None:
            assert lacks(kind, after) == set()


@pytest.mark.spec("C6")
@given(named(depth=2), st.data(), st.randoms())
def test_a_model_too_is_filled_in_field_by_field_in_any_order(kind: Named, data: st.DataObject, order: Random) -> None:
    """But for the field that tells the alternatives of a union apart, which comes first."""
    state = data.draw(valued(kind, whole=True))
    both = shapes(kind)
    for before, after in filled_in(state, order, first="kind"):
        for shape in both:
            shape.check(after, before)


# -- the fold ----------------------------------------------------------------------------------------------

NAMES = st.sampled_from(["p", "q"])
HAPPENINGS: st.SearchStrategy[EventPayload] = st.one_of(
    st.builds(ScratchpadStarted, NAMES, OBJECTS | TEXTS),
    st.builds(ScratchpadWritten, NAMES, TEXTS, st.booleans()),
    st.builds(ScratchpadMerged, NAMES, OBJECTS, st.lists(PATHS | st.just(()), max_size=2).map(tuple)),
    st.builds(ScratchpadSetAside, NAMES, st.just("old")),
)


@pytest.mark.spec("A2")
@given(st.lists(st.tuples(HAPPENINGS, st.sampled_from(list(Trust))), max_size=8), st.integers(0, 8))
def test_folding_on_from_a_snapshot_gives_what_folding_everything_gives(
    happenings: list[tuple[EventPayload, Trust]], at_event: int
) -> None:
    states = [Scratchpads()]
    events = [replace(an_event(what, seq), trust=trust) for seq, (what, trust) in enumerate(happenings, start=1)]
    for event in events:
        states.append(states[-1].apply(event))
    frozen = [json.dumps(state.freeze()) for state in states]
    start = min(at_event, len(events))
    again = Scratchpads.thaw(json.loads(frozen[start]), "session/s")
    for event in events[start:]:
        again = again.apply(replace(event, payload=decode_payload(event.kind, encode_payload(event.payload))))
    assert again == states[-1]
    assert [json.dumps(state.freeze()) for state in states] == frozen


# -- the block ---------------------------------------------------------------------------------------------


@pytest.mark.spec("C4")
@given(OBJECTS)
def test_an_object_in_full_is_json_of_the_same_state(state: Object) -> None:
    text = render_state(state)
    assert json_equal(json.loads(text) if text else {}, state)


@pytest.mark.spec("C4", "D3")
@given(st.dictionaries(KEYS, values(st.text(max_size=200)), max_size=8) | st.text(max_size=500), st.integers(0, 120))
def test_the_block_never_exceeds_its_budget_and_is_empty_only_when_nothing_fits(state: Any, budget: int) -> None:
    count = estimator()
    cut = render_within(state, budget=budget, count=count, path="scratchpad")
    assert count(cut.text) <= budget
    assert cut.whole == (cut.text == render_state(state))
    if not cut.whole:
        assert cut.text.endswith("in scratchpad]") or budget < 40


# -- coming home -------------------------------------------------------------------------------------------


def applied(ours: Any, came: ScratchpadMerge) -> Any:
    if isinstance(ours, str):
        return ours if came.text is None else came.text
    return merge_update(ours, came.values, came.delete)


@pytest.mark.spec("C8")
@given(st.tuples(OBJECTS, OBJECTS, OBJECTS) | st.tuples(TEXTS, TEXTS, TEXTS) | st.tuples(*[OBJECTS | TEXTS] * 3))
def test_merging_a_child_twice_changes_nothing_the_second_time(states: Sequence[Any]) -> None:
    base, ours, theirs = states
    kept = copied([base, ours, theirs])
    came = merge_three_way(base, ours, theirs)
    after = applied(ours, came)
    again = merge_three_way(base, after, theirs)
    assert json_equal(applied(after, again), after)
    told, told_again = ([clash.path for clash in each.conflicts] for each in (came, again))
    if came.text is not None and told_again:
        # Beside what the parent put in, the child took something out: afterwards it looks as if one had rewritten it.
        assert {*base.split("\n")} - {*theirs.split("\n")}
    else:
        assert told_again == told
    assert json_equal([base, ours, theirs], kept)


@pytest.mark.spec("C8")
@given(VALUES, VALUES, VALUES)
def test_a_merge_equals_the_reference_model(base: Object, ours: Object, theirs: Object) -> None:
    came = merge_three_way(base, ours, theirs)
    after, conflicts = merge_child(base, ours, theirs)
    assert applied(ours, came) == after
    assert {clash.path for clash in came.conflicts} == {*conflicts}


@st.composite
def changed_lines(draw: st.DrawFn, base: list[str], words: st.SearchStrategy[str]) -> list[str]:
    """Most of the lines, and some that were put in between and at the end."""
    changed: list[str] = []
    for line in base:
        changed += draw(st.just([]) | st.lists(words, max_size=2))
        changed += [line] * draw(st.just(True) | st.booleans())
    return changed + draw(st.lists(words, max_size=2))


@pytest.mark.spec("C8")
@given(st.lists(st.sampled_from(["", "a", "b", "c", "d"]), max_size=8), st.data())
def test_a_merged_text_has_every_added_line_and_no_removed_one(base: list[str], data: st.DataObject) -> None:
    ours = data.draw(changed_lines(base, st.sampled_from(["", "a", "p", "q"])))
    theirs = data.draw(changed_lines(base, st.sampled_from(["", "a", "p", "r"])))
    both = merge_lines(*map("\n".join, (base, ours, theirs)))
    if both is None:
        return
    lines = {*both.split("\n"), ""}
    assert {*ours, *theirs} - {*base} <= lines
    assert {line for line in base if base.count(line) == ours.count(line) == theirs.count(line) == 1} <= lines
    assert lines <= {*ours, *theirs, ""}
    if "a" not in base:
        assert lines - {*base} == {*ours, *theirs, ""} - {*base}
    if len({*base, "a", ""}) == len(base) + 2:  # among equal lines, one that was taken out may as well have been moved
        assert lines.isdisjoint({line for line in base if not (line in ours and line in theirs)})


@pytest.mark.spec("C8")
@given(st.integers(0, 8), st.data())
def test_unique_lines_are_merged_once(number: int, data: st.DataObject) -> None:
    base = [f"{at}" for at in range(number)]
    numbers = count()
    ours, theirs = (data.draw(changed_lines(base, st.builds(lambda: f"new {next(numbers)}"))) for _ in range(2))
    texts = ["\n".join(each) for each in (base, ours, theirs)]
    both = merge_lines(*texts)
    if both is not None:
        lines = both.split("\n")
        assert len(lines) == len({*lines})
        assert merge_lines(texts[0], both, texts[2]) in (both, None)


@pytest.mark.spec("C8")
@given(OBJECTS, OBJECTS, DELETES)
def test_an_unchanged_parent_gets_the_state_of_the_child(base: Object, update: Object, delete: list[Path]) -> None:
    theirs = merge_update(base, update, delete)
    came = merge_three_way(base, base, theirs)
    assert json_equal(applied(base, came), theirs)
    assert came.conflicts == ()


@pytest.mark.spec("C8")
@given(OBJECTS, OBJECTS, OBJECTS)
def test_changes_to_different_fields_are_both_merged(base: Object, one: Object, two: Object) -> None:
    two = {key: value for key, value in two.items() if key not in one}
    ours, theirs = merge_update(base, one), merge_update(base, two)
    assert json_equal(applied(ours, merge_three_way(base, ours, theirs)), merge_update(ours, two))
    assert json_equal(applied(theirs, merge_three_way(base, theirs, ours)), merge_update(theirs, one))


@pytest.mark.spec("C8")
@given(OBJECTS, OBJECTS, OBJECTS)
def test_a_change_of_the_parent_is_never_lost(base: Object, ours: Object, theirs: Object) -> None:
    after = cast(Object, applied(ours, merge_three_way(base, ours, theirs)))
    for path, value in leaves_of(ours):
        then, now = value_at(base, path), value_at(after, path)
        if value == {} or json_equal(value, then):
            continue
        if isinstance(value, list) and isinstance(now, list):
            assert json_equal(cast(list[Any], now)[: len(cast(list[Any], value))], value)
        else:
            assert json_equal(now, value), format_path(path)

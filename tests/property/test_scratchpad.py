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
from builders import an_event, through_json
from hypothesis import assume, given
from hypothesis import strategies as st
from pydantic import ConfigDict, Field, create_model
from scratchpad_model import VALUES, merge_child

from inmind.core.encoding import to_json
from inmind.core.events import decode_payload, encode_payload
from inmind.core.events.base import EventPayload, Trust
from inmind.core.events.documents import ScratchpadMerged, ScratchpadSetAside, ScratchpadStarted, ScratchpadWritten
from inmind.core.merge3 import merge_lines
from inmind.core.tokens import estimator
from inmind.documents.scratchpad.render import render_state, render_within
from inmind.documents.scratchpad.schema import ScratchpadSchema, compile_schema
from inmind.documents.scratchpad.state import (
    ScratchpadMerge,
    Scratchpads,
    is_empty,
    json_equal,
    merge_three_way,
    merge_update,
    plan_object_update,
)
from inmind.documents.scratchpad.values import ABSENT, Path, copy_json, format_path, is_object, value_at
from inmind.errors import InmindError, InvalidInput, SchemaViolation

Object = dict[str, Any]

# Few keys, some of them unusual, so that states, updates and paths overlap.
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
    """Every value except non-empty objects, with its path."""
    if isinstance(value, Mapping) and value:
        for key, inner in cast(Mapping[str, Any], value).items():
            yield from leaves_of(inner, (*path, key))
    else:
        yield path, value


def overlaps(path: Path, other: Path) -> bool:
    shorter = min(len(path), len(other))
    return path[:shorter] == other[:shorter]


def copy_of(value: Any) -> Any:
    return json.loads(json.dumps(value))


T = TypeVar("T")


def result_or_error(call: Callable[[], T]) -> T | InmindError:
    """The result of a call, or its error."""
    try:
        return call()
    except InmindError as error:
        return error


# -- merging -----------------------------------------------------------------------------------------------


@pytest.mark.spec("C2")
@given(OBJECTS, OBJECTS, DELETES)
def test_merging_twice_equals_merging_once(state: Object, update: Object, delete: list[Path]) -> None:
    once = merge_update(state, update, delete)
    assert json_equal(merge_update(once, update, delete), once)


@pytest.mark.spec("C2")
@given(OBJECTS, OBJECTS, DELETES)
def test_fields_not_in_the_update_stay(state: Object, update: Object, delete: list[Path]) -> None:
    after = merge_update(state, update, delete)
    mentioned = [*delete, *(path for path, _ in leaves_of(update))]
    for path, value in leaves_of(state):
        if not any(overlaps(path, other) for other in mentioned):
            assert json_equal(value_at(after, path), value)
    for path, value in leaves_of(update):
        assert value == {} or json_equal(value_at(after, path), value)


@pytest.mark.spec("C2")
@given(OBJECTS, OBJECTS, DELETES)
def test_merging_does_not_change_its_arguments(state: Object, update: Object, delete: list[Path]) -> None:
    before = copy_of([state, update, delete])
    after = merge_update(state, update, delete)
    merge_update(after, {"a": {"b": {"c": 1}}}, [("a",), ("b", "a")])
    assert json_equal(copy_of([state, update, delete]), before)


@pytest.mark.spec("C2")
@given(OBJECTS, OBJECTS, DELETES)
def test_a_merged_state_is_no_larger_than_state_and_update(state: Object, update: Object, delete: list[Path]) -> None:
    sizes = [len(to_json(each).encode()) for each in (merge_update(state, update, delete), state, update)]
    assert sizes[0] <= sizes[1] + sizes[2]


def kinds_agree(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """True if no field is an object in one state and another value in the other."""
    for key in one.keys() & other.keys():
        objects = [isinstance(each[key], Mapping) for each in (one, other)]
        if any(objects) and (not all(objects) or not kinds_agree(one[key], other[key])):
            return False
    return True


@pytest.mark.spec("C2")
@given(OBJECTS, OBJECTS, OBJECTS)
def test_merging_is_associative_if_no_field_changes_its_kind(one: Object, two: Object, three: Object) -> None:
    """If a scalar replaces an object, the fields inside are lost, and the order matters."""
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
def test_an_update_is_accepted_or_refused_with_a_path_and_the_state_stays(
    state: Object, given_values: Any, delete: Any
) -> None:
    before = copy_of(state)
    update = result_or_error(lambda: plan_object_update(state, given_values, delete))
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
    copy, dropped = copy_json(state, "values")
    assert json_equal(copy, state)
    assert dropped == ()
    assert json.dumps(copy) == json.dumps(state)


@pytest.mark.spec("C2")
@given(OBJECTS, OBJECTS, DELETES)
def test_an_update_with_filler_never_loses_a_value(state: Object, update: Object, delete: list[Path]) -> None:
    leaves = dict(leaves_of(update)) if update else {}
    assume(len(leaves) != 1)
    assume(not any(isinstance(value_at(state, path[:end]), list) for path in delete for end in range(1, len(path))))
    after = cast(Object, plan_object_update(state, update, delete, may_have_filler=True).state)
    set_paths = [path for path, value in leaves.items() if not is_empty(value)]
    for path, value in leaves_of(state):
        if not is_empty(value) and not any(overlaps(path, other) for other in [*set_paths, *delete]):
            assert json_equal(value_at(after, path), value)
    for path in set_paths:
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


def complete_states(schema: Object, root: Object, depth: int = 3) -> st.SearchStrategy[Any]:
    """Complete states of a schema."""
    match schema:
        case {"$ref": _}:
            return complete_states(root, root, depth - 1)
        case {"const": value}:
            return st.just(value)
        case {"anyOf": several} | {"oneOf": several}:
            return st.one_of([complete_states(one, root, depth) for one in several])
        case {"type": "array", "items": items}:
            return st.lists(complete_states(items, root, depth), max_size=2)
        case {"properties": properties, "required": required}:
            known = {name: field for name, field in properties.items() if depth or "$ref" not in field}
            parts = {name: complete_states(field, root, depth) for name, field in known.items()}
            optional = {name: part for name, part in parts.items() if name not in required}
            return st.fixed_dictionaries({name: parts[name] for name in required}, optional=optional)
        case _:
            return SCALARS[schema["type"]]


@st.composite
def schemas_with_a_state(draw: st.DrawFn) -> tuple[Object, Object]:
    schema = draw(schemas())
    return schema, draw(complete_states(schema, schema))


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
    kept = copy_of([before, state])
    refused = result_or_error(lambda: shape.check(state, before))
    if refused:
        assert isinstance(refused, SchemaViolation)
        assert not jsonschema_rs.is_valid(schema, state)
        assert shape.mismatch_reason(state) or refused.reason.startswith("required, cannot be removed")
    else:
        assert shape.mismatch_reason(state) == ""
    assert json_equal([before, state], kept)


def fill_in(state: Object, order: Random, *, first: str = "") -> Iterator[tuple[Object, Object]]:
    """Every intermediate state with its predecessor, one leaf at a time."""
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
def test_a_complete_state_can_be_filled_in_field_by_field_in_any_order(
    drawn: tuple[Object, Object], order: Random
) -> None:
    """Except with `oneOf`, since an incomplete state may match no alternative."""
    schema, state = drawn
    assume("oneOf" not in json.dumps(schema))
    shape = compile_schema(schema)
    for before, after in fill_in(state, order):
        shape.check(after, before)


@pytest.mark.spec("C6")
@given(schemas_with_a_state())
def test_a_complete_state_is_valid_and_keeps_its_required_fields(drawn: tuple[Object, Object]) -> None:
    schema, state = drawn
    shape = compile_schema(schema)
    shape.check(state, {})
    for name in schema["required"]:
        less = merge_update(state, {}, [(name,)])
        refused = result_or_error(lambda less=less: shape.check(less, state))
        if not less:  # everything was removed, so it starts empty
            assert refused is None
            continue
        assert isinstance(refused, SchemaViolation)
        assert refused.path == name


@pytest.mark.spec("C5")
@given(schemas_with_a_state())
def test_a_model_can_send_every_complete_state_and_delete_from_it(drawn: tuple[Object, Object]) -> None:
    import jsonschema_rs

    schema, state = drawn
    offered = jsonschema_rs.validator_for(cast(Object, compile_schema(schema).parameters))
    assert offered.is_valid({**state, "delete": ["a.b"]})
    assert offered.is_valid({"delete": []})
    assert not offered.is_valid({"delete": "a.b"})


# -- models and JSON schemas -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Text:
    """A text field."""


@dataclass(frozen=True)
class Number:
    """A field that holds an integer."""


@dataclass(frozen=True)
class ObjectKind:
    """An object with named fields, some required; `strict` allows no others."""

    fields: tuple[tuple[str, Kind, bool], ...]
    strict: bool


@dataclass(frozen=True)
class OptionalKind:
    inner: Kind


@dataclass(frozen=True)
class ListKind:
    inner: Kind


@dataclass(frozen=True)
class MapKind:
    inner: Kind


@dataclass(frozen=True)
class UnionKind:
    """A union of alternatives; if tagged, the field `kind` selects one."""

    alternatives: tuple[ObjectKind, ObjectKind]
    tagged: bool


Kind = Text | Number | ObjectKind | OptionalKind | ListKind | MapKind | UnionKind
TAGS = ("one", "two")
NUMBERS = count()
"""Pydantic distinguishes the alternatives of a union by their names."""


@st.composite
def object_kinds(draw: st.DrawFn, depth: int) -> ObjectKind:
    names = draw(st.sets(st.sampled_from("abc"), max_size=3))
    return ObjectKind(
        tuple((name, draw(kinds(depth)), draw(st.booleans())) for name in sorted(names)), draw(st.booleans())
    )


@st.composite
def kinds(draw: st.DrawFn, depth: int) -> Kind:
    factories: list[Callable[[], Kind]] = [Text, Number]
    if depth:
        inner = object_kinds(depth - 1)
        factories.append(lambda: draw(inner))
        factories.append(lambda: UnionKind((draw(inner), draw(inner)), draw(st.booleans())))
    kind = draw(st.sampled_from(factories))()
    around: list[Callable[[Kind], Kind]] = [lambda kind: kind, OptionalKind, ListKind, MapKind]
    return draw(st.sampled_from(around))(kind)


def as_model(kind: Kind, tag: str = "") -> Any:
    """The pydantic type of a kind."""
    match kind:
        case Text():
            return str
        case Number():
            return int
        case OptionalKind(inner):
            return as_model(inner) | None
        case ListKind(inner):
            return list[as_model(inner)]
        case MapKind(inner):
            return dict[str, as_model(inner)]
        case UnionKind(alternatives, tagged=True):
            models = [as_model(one, tag) for one, tag in zip(alternatives, TAGS, strict=True)]
            return Annotated[Union[tuple(models)], Field(discriminator="kind")]  # noqa: UP007 -- there is no other way
        case UnionKind(alternatives):
            return Union[tuple(map(as_model, alternatives))]  # noqa: UP007
        case ObjectKind(fields, strict):
            model_fields: Any = {name: (as_model(inner), ... if needed else None) for name, inner, needed in fields}
            model_fields |= {"kind": (Literal[tag], ...)} if tag else {}
            config = ConfigDict(extra="forbid" if strict else "ignore")
            return create_model(f"Model{next(NUMBERS)}", __config__=config, **model_fields)


def missing_paths(kind: Kind, value: Any, *, tag: str = "") -> set[Path] | None:
    """Missing required paths of a value, by a simple reference rule; None if it does not fit."""
    match kind:
        case Text():
            return set() if isinstance(value, str) else None
        case Number():
            return set() if isinstance(value, int) else None
        case OptionalKind(inner):
            return set() if value is None else missing_paths(inner, value)
        case ListKind(inner):
            whole = isinstance(value, list) and all(
                missing_paths(inner, one) == set() for one in cast(list[Any], value)
            )
            return set() if whole else None
        case MapKind(inner):
            return all_of({key: missing_paths(inner, one) for key, one in value.items()}) if is_object(value) else None
        case UnionKind(alternatives, tagged=True):
            tag_value = value.get("kind") if is_object(value) else None
            matching = [pair for pair in zip(alternatives, TAGS, strict=True) if pair[1] == tag_value]
            return missing_paths(matching[0][0], value, tag=matching[0][1]) if matching else None
        case UnionKind(alternatives):
            fitting = [one for one in (missing_paths(each, value) for each in alternatives) if one is not None]
            return None if not fitting else set() if set() in fitting else set[Path]().union(*fitting)
        case ObjectKind(fields, strict):
            if not is_object(value) or (
                strict and {*value} - {*(name for name, _, _ in fields), *(["kind"] * bool(tag))}
            ):
                return None
            there = {name: missing_paths(inner, value[name]) for name, inner, _ in fields if name in value}
            inside = all_of(there)
            missing = {(name,) for name, _, needed in fields if needed and name not in value}
            return None if inside is None else inside | missing


def all_of(parts: Mapping[str, set[Path] | None]) -> set[Path] | None:
    if None in parts.values():
        return None
    return {(key, *path) for key, paths in parts.items() for path in paths or ()}


def values_of(kind: Kind, *, whole: bool, tag: str = "") -> st.SearchStrategy[Any]:
    """Values of a kind; unless `whole`, also incomplete and invalid ones."""
    match kind:
        case Text():
            fitting: st.SearchStrategy[Any] = st.just("x")
        case Number():
            fitting = st.just(7)
        case OptionalKind(inner):
            fitting = st.none() | values_of(inner, whole=whole)
        case ListKind(inner):
            fitting = st.lists(values_of(inner, whole=whole), max_size=2)
        case MapKind(inner):
            fitting = st.dictionaries(st.sampled_from(["k", "007"]), values_of(inner, whole=whole), max_size=2)
        case UnionKind(alternatives, tagged):
            one, other = (
                values_of(one, whole=whole, tag=tag * tagged) for one, tag in zip(alternatives, TAGS, strict=True)
            )
            fitting = one | other
        case ObjectKind(fields, _):
            parts = {name: values_of(inner, whole=whole) for name, inner, _ in fields}
            parts |= {"kind": st.just(tag)} if tag else {}
            optional = {name: parts.pop(name) for name, _, needed in fields if not (needed and whole)}
            fitting = st.fixed_dictionaries(parts, optional=optional)
    junk = st.sampled_from(["x", 7, None, {}, [], {"a": "x"}, {"kind": "two"}])
    return fitting if whole else st.integers(0, 9).flatmap(lambda number: fitting if number else junk)


def schema_pair(kind: ObjectKind) -> tuple[ScratchpadSchema, ScratchpadSchema]:
    model = as_model(kind)
    return compile_schema(model), compile_schema(model.model_json_schema())


def paths_of(state: Object) -> list[Path]:
    return [path[: end + 1] for path, _ in leaves_of(state) for end in range(len(path))]


@pytest.mark.spec("C6")
@given(object_kinds(depth=2), st.data())
def test_a_model_and_its_json_schema_accept_the_same_updates(kind: ObjectKind, data: st.DataObject) -> None:
    """Both follow the rule: no wrong value, and no required field removed unless its parent is."""
    state: Object = {}
    both = schema_pair(kind)
    for _ in range(4):
        update = data.draw(values_of(ObjectKind(kind.fields, strict=False), whole=False).filter(is_object))
        delete = data.draw(st.lists(st.sampled_from(paths_of(state)), max_size=1)) if state else []
        after = cast(Object, plan_object_update(state, update, delete).state)
        missing = missing_paths(kind, after)
        restarted = [path for path in missing or () if any(path[: len(gone)] == gone != path for gone in delete)]
        gone = [path for path in missing or () if value_at(state, path) is not ABSENT and path not in restarted]
        accepted = missing is not None and not (after and gone)
        verdicts = [result_or_error(partial(shape.check, after, state, delete)) for shape in both]
        assert [verdict is None for verdict in verdicts] == [accepted, accepted], (update, delete, verdicts)
        assert [shape.mismatch_reason(after) == "" for shape in both] == [missing is not None] * 2
        state = after if accepted else state


@pytest.mark.spec("C6")
@given(object_kinds(depth=2), st.data())
def test_removing_never_leaves_a_complete_state_incomplete(kind: ObjectKind, data: st.DataObject) -> None:
    state = data.draw(values_of(kind, whole=True))
    assume(state)
    delete = data.draw(st.lists(st.sampled_from(paths_of(state)), min_size=1, max_size=2))
    after = merge_update(state, {}, delete)
    assume(after)
    for shape in schema_pair(kind):
        shape.check(state, {})
        if result_or_error(partial(shape.check, after, state, delete)) is None:
            assert missing_paths(kind, after) == set()


@pytest.mark.spec("C6")
@given(object_kinds(depth=2), st.data(), st.randoms())
def test_a_model_can_be_filled_in_field_by_field_in_any_order(
    kind: ObjectKind, data: st.DataObject, order: Random
) -> None:
    """Except that the tag of a union comes first."""
    state = data.draw(values_of(kind, whole=True))
    both = schema_pair(kind)
    for before, after in fill_in(state, order, first="kind"):
        for shape in both:
            shape.check(after, before)


# -- the fold ----------------------------------------------------------------------------------------------

NAMES = st.sampled_from(["p", "q"])
PAYLOADS: st.SearchStrategy[EventPayload] = st.one_of(
    st.builds(ScratchpadStarted, NAMES, OBJECTS | TEXTS),
    st.builds(ScratchpadWritten, NAMES, TEXTS, st.booleans()),
    st.builds(ScratchpadMerged, NAMES, OBJECTS, st.lists(PATHS | st.just(()), max_size=2).map(tuple)),
    st.builds(ScratchpadSetAside, NAMES, st.just("old")),
)


@pytest.mark.spec("A2")
@given(st.lists(st.tuples(PAYLOADS, st.sampled_from(list(Trust))), max_size=8), st.integers(0, 8))
def test_folding_from_a_snapshot_equals_folding_all_events(
    payloads: list[tuple[EventPayload, Trust]], at_event: int
) -> None:
    states = [Scratchpads()]
    events = [replace(an_event(payload, seq), trust=trust) for seq, (payload, trust) in enumerate(payloads, start=1)]
    for event in events:
        states.append(states[-1].apply(event))
    frozen = [to_json(state) for state in states]
    start = min(at_event, len(events))
    again = through_json(states[start])
    for event in events[start:]:
        again = again.apply(replace(event, payload=decode_payload(event.kind, encode_payload(event.payload))))
    assert again == states[-1]
    assert [to_json(state) for state in states] == frozen


# -- the block ---------------------------------------------------------------------------------------------


@pytest.mark.spec("C4")
@given(OBJECTS)
def test_an_object_in_full_is_json_of_the_same_state(state: Object) -> None:
    text = render_state(state)
    assert json_equal(json.loads(text) if text else {}, state)


@pytest.mark.spec("C4", "D3")
@given(st.dictionaries(KEYS, values(st.text(max_size=200)), max_size=8) | st.text(max_size=500), st.integers(0, 120))
def test_the_block_never_exceeds_its_budget_and_is_empty_only_if_nothing_fits(state: Any, budget: int) -> None:
    count = estimator()
    cut = render_within(state, budget=budget, count=count, path="scratchpad")
    assert count(cut.text) <= budget
    assert cut.whole == (cut.text == render_state(state))
    if not cut.whole:
        assert cut.text.endswith("in scratchpad]") or budget < 40


# -- merging a child ---------------------------------------------------------------------------------------


def apply_merge(ours: Any, merge: ScratchpadMerge) -> Any:
    if isinstance(ours, str):
        return ours if merge.text is None else merge.text
    return merge_update(ours, merge.values, merge.delete)


@pytest.mark.spec("C8")
@given(st.tuples(OBJECTS, OBJECTS, OBJECTS) | st.tuples(TEXTS, TEXTS, TEXTS) | st.tuples(*[OBJECTS | TEXTS] * 3))
def test_merging_a_child_twice_changes_nothing_the_second_time(states: Sequence[Any]) -> None:
    base, ours, theirs = states
    kept = copy_of([base, ours, theirs])
    merge = merge_three_way(base, ours, theirs)
    after = apply_merge(ours, merge)
    again = merge_three_way(base, after, theirs)
    assert json_equal(apply_merge(after, again), after)
    paths, paths_again = ([clash.path for clash in each.conflicts] for each in (merge, again))
    if merge.text is not None and paths_again:
        # The child removed lines next to added lines of the parent, which then looks like a rewritten line.
        assert {*base.split("\n")} - {*theirs.split("\n")}
    else:
        assert paths_again == paths
    assert json_equal([base, ours, theirs], kept)


@pytest.mark.spec("C8")
@given(VALUES, VALUES, VALUES)
def test_a_merge_equals_the_reference_model(base: Object, ours: Object, theirs: Object) -> None:
    merge = merge_three_way(base, ours, theirs)
    after, conflicts = merge_child(base, ours, theirs)
    assert apply_merge(ours, merge) == after
    assert {clash.path for clash in merge.conflicts} == {*conflicts}


@st.composite
def changed_lines(draw: st.DrawFn, base: list[str], words: st.SearchStrategy[str]) -> list[str]:
    """Most of the lines, with new ones between them and at the end."""
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
    merged = merge_lines(*map("\n".join, (base, ours, theirs)))
    if merged is None:
        return
    lines = {*merged.split("\n"), ""}
    assert {*ours, *theirs} - {*base} <= lines
    assert {line for line in base if base.count(line) == ours.count(line) == theirs.count(line) == 1} <= lines
    assert lines <= {*ours, *theirs, ""}
    if "a" not in base:
        assert lines - {*base} == {*ours, *theirs, ""} - {*base}
    if len({*base, "a", ""}) == len(base) + 2:  # among equal lines, a removed one may as well have been moved
        assert lines.isdisjoint({line for line in base if not (line in ours and line in theirs)})


@pytest.mark.spec("C8")
@given(st.integers(0, 8), st.data())
def test_unique_lines_are_merged_once(number: int, data: st.DataObject) -> None:
    base = [f"{at}" for at in range(number)]
    numbers = count()
    ours, theirs = (data.draw(changed_lines(base, st.builds(lambda: f"new {next(numbers)}"))) for _ in range(2))
    texts = ["\n".join(each) for each in (base, ours, theirs)]
    merged = merge_lines(*texts)
    if merged is not None:
        lines = merged.split("\n")
        assert len(lines) == len({*lines})
        assert merge_lines(texts[0], merged, texts[2]) in (merged, None)


@pytest.mark.spec("C8")
@given(OBJECTS, OBJECTS, DELETES)
def test_an_unchanged_parent_gets_the_state_of_the_child(base: Object, update: Object, delete: list[Path]) -> None:
    theirs = merge_update(base, update, delete)
    merge = merge_three_way(base, base, theirs)
    assert json_equal(apply_merge(base, merge), theirs)
    assert merge.conflicts == ()


@pytest.mark.spec("C8")
@given(OBJECTS, OBJECTS, OBJECTS)
def test_changes_to_different_fields_are_both_merged(base: Object, one: Object, two: Object) -> None:
    two = {key: value for key, value in two.items() if key not in one}
    ours, theirs = merge_update(base, one), merge_update(base, two)
    assert json_equal(apply_merge(ours, merge_three_way(base, ours, theirs)), merge_update(ours, two))
    assert json_equal(apply_merge(theirs, merge_three_way(base, theirs, ours)), merge_update(theirs, one))


@pytest.mark.spec("C8")
@given(OBJECTS, OBJECTS, OBJECTS)
def test_a_change_of_the_parent_is_never_lost(base: Object, ours: Object, theirs: Object) -> None:
    after = cast(Object, apply_merge(ours, merge_three_way(base, ours, theirs)))
    for path, value in leaves_of(ours):
        then, now = value_at(base, path), value_at(after, path)
        if value == {} or json_equal(value, then):
            continue
        if isinstance(value, list) and isinstance(now, list):
            assert json_equal(cast(list[Any], now)[: len(cast(list[Any], value))], value)
        else:
            assert json_equal(now, value), format_path(path)

"""Properties of entities: extraction never fails, and the fold keeps its invariants."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from builders import WHEN, an_event, through_json
from hypothesis import given
from hypothesis import strategies as st
from strategies import entity_sightings, json_values

from inmind.core.encoding import to_json
from inmind.core.events.base import Event, EventPayload, Origin, Trust
from inmind.core.events.session import EntitiesRestored, EntitiesSeen, EntityPinned, EntitySighting, ToolObserved
from inmind.core.tool_outcome import read_outcome
from inmind.entities.entity import EntityRules
from inmind.entities.extract.from_result import sightings_from_result
from inmind.entities.observe import Observation, draft_entity_events
from inmind.entities.references.resolve import resolve
from inmind.entities.render import render_block
from inmind.entities.serialize import deserialize, serialize
from inmind.entities.window import Entities

# -- extraction --------------------------------------------------------------------------------------------

# Keys and values with a meaning to the extractor, so that all its branches are reached.
KEYS = st.sampled_from(
    "id _id uuid key type name title node edges attributes data pages page items order_id orderIds number path content "
    "text structuredContent isError error status value first_name __typename matches #W123456 ada@example.com "
    "12345678".split()
) | st.text(max_size=8)
LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(min_value=10**25, max_value=10**40),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(),
    st.sampled_from(
        ["page-123", "#W123456", "2024-05-01", "a\nb", "{", "[]", "- a: b", "'", '"', "\x00", "x" * 300, "text"]
    ),
)
RESULTS = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(KEYS, inner, max_size=4)
        | inner.map(lambda value: json.dumps(value))
        | inner.map(repr)
        | inner.map(lambda value: [{"type": "text", "text": json.dumps(value)}])
    ),
    max_leaves=12,
)
TOOLS = st.sampled_from(
    ["get_page", "list_pages", "delete_page", "create_order", "search", "mcp__cms__get-page", ""]
) | st.text(max_size=20)
RULES = st.sampled_from(
    [
        EntityRules(),
        EntityRules(max_per_list=1, window=1),
        EntityRules(id_keys={"name": "person"}, types={"page": ["order"]}),
    ]
)


@pytest.mark.spec("B4")
@given(TOOLS, RESULTS | json_values(), RESULTS, RULES)
def test_extraction_accepts_any_value_and_is_deterministic(
    tool: str, result: Any, arguments: Any, rules: EntityRules
) -> None:
    outcome = ToolObserved(tool, arguments, result)
    before = json.dumps([result, arguments])
    things = sightings_from_result(read_outcome(outcome), rules)
    assert things == sightings_from_result(read_outcome(outcome), rules)
    assert json.dumps([result, arguments]) == before
    for one in (*things, *(part for thing in things for part in thing.parts)):
        assert one.id.strip()
        assert one.type.strip()
        assert len(one.id.splitlines()) == 1
        assert len(one.name.splitlines()) <= 1
    assert sightings_from_result(read_outcome(ToolObserved(tool, arguments, result, error=True)), rules) == ()


@pytest.mark.spec("B4")
@given(TOOLS, RESULTS)
def test_extracted_entities_can_be_stored_rendered_and_serialized(tool: str, result: Any) -> None:
    things = sightings_from_result(read_outcome(ToolObserved(tool, {}, result)))
    entities = Entities().apply(an_event(EntitiesSeen(things)))
    assert len(render_block(entities).splitlines()) >= 1 + len(entities)
    deserialize(json.loads(json.dumps(serialize(entities))))


# -- the fold ----------------------------------------------------------------------------------------------

PAYLOADS = st.one_of(
    st.lists(entity_sightings(), min_size=1, max_size=4).map(lambda seen: EntitiesSeen(tuple(seen))),
    st.lists(entity_sightings(), min_size=1, max_size=4).map(lambda seen: EntitiesRestored(tuple(seen))),
    st.builds(
        EntityPinned, st.sampled_from(["page", "media", "order"]), st.sampled_from(["page-1", "7"]), st.booleans()
    ),
)


def event(payload: EventPayload, seq: int) -> Event:
    at = WHEN + timedelta(seconds=seq)
    return Event(stream="session/s", seq=seq, at=at, payload=payload, origin=Origin.TOOL, trust=Trust.DATA)


@pytest.mark.spec("A2", "B2")
@given(st.lists(PAYLOADS, max_size=12), st.integers(1, 4))
def test_the_window_keeps_its_invariants(payloads: list[EventPayload], limit: int) -> None:
    entities = Entities()
    for seq, payload in enumerate(payloads, start=1):
        before = entities
        entities = entities.apply(event(payload, seq))
        evicted = entities.overflow(limit)
        entities = entities.evict(evicted)

        assert len(entities) <= max(limit, sum(entity.pinned for entity in entities))
        assert not any(entity.pinned for entity in evicted)
        keys = [entity.key for entity in entities]
        assert len(keys) == len(set(keys))
        assert {entity.key for entity in entities.evicted_entities}.isdisjoint(keys)
        assert {id for id, _ in before.ids} <= {id for id, _ in entities.ids}
        for entity in entities:
            assert entity.id in entities.ids
            assert entity.name
            assert entity.name not in entity.aliases
            assert all(part.id in entities.ids for part in entity.parts)
        for listing in entities.listings:
            assert len(set(listing.keys)) == len(listing.keys) > 1
            assert all(id in entities.ids for _, id in listing.keys)
        assert through_json(entities) == entities


@pytest.mark.spec("B7")
@given(st.integers(2, 9), st.data())
def test_positions_in_a_list_do_not_change_when_entries_are_used(size: int, data: st.DataObject) -> None:
    rows = [{"id": f"img-{n}00", "filename": f"{n}.jpg"} for n in range(1, size + 1)]
    outcomes = [ToolObserved("search_images", {}, {"matches": rows})]
    for row in data.draw(st.lists(st.sampled_from(rows), max_size=6)):
        tool, result = data.draw(st.sampled_from([("get_image", row), ("set_hero", {"ok": True})]))
        outcomes.append(ToolObserved(tool, {"image_id": row["id"]}, result))
    entities = Entities()
    for seq, outcome in enumerate(outcomes, start=1):
        entities = entities.apply(event(EntitiesSeen(sightings_from_result(read_outcome(outcome))), seq))
    places = "first second third fourth fifth sixth seventh eighth ninth".split()[:size]
    answers = [resolve(f"the {place} image", entities).entity for place in places]
    assert [answer and answer.id for answer in answers] == [row["id"] for row in rows]


@pytest.mark.spec("B4")
@given(st.lists(entity_sightings(), max_size=8))
def test_the_front_of_the_window_is_not_deleted(seen: list[EntitySighting]) -> None:
    entities = Entities()
    for seq, thing in enumerate(seen, start=1):
        front = {entity.key for entity in entities}
        entities = entities.apply(event(EntitiesSeen((thing,)), seq))
        if entities and entities[0].deleted:
            assert entities[0].key in front


@pytest.mark.spec("A2", "B2")
@given(st.lists(st.lists(entity_sightings(), min_size=1, max_size=3), min_size=1, max_size=8), st.integers(1, 4))
def test_folding_again_from_any_state_gives_the_same_result(batches: list[list[EntitySighting]], at: int) -> None:
    """States are immutable: a state derived from another does not change it."""
    states = [Entities()]
    for seq, batch in enumerate(batches, start=1):
        states.append(states[-1].apply(event(EntitiesSeen(tuple(batch)), seq)))
    frozen = [to_json(state) for state in states]
    start = min(at, len(batches))
    states[start].apply(event(EntitiesSeen((EntitySighting("page", "elsewhere"),)), 99))
    again = states[start]
    for seq, batch in list(enumerate(batches, start=1))[start:]:
        again = again.apply(event(EntitiesSeen(tuple(batch)), seq))
    assert again == states[-1]
    assert [to_json(state) for state in states] == frozen


@pytest.mark.spec("B2")
@given(
    st.lists(st.tuples(st.sampled_from(["get_page", "list_pages"]), st.integers(1, 4)), max_size=8), st.integers(1, 4)
)
def test_observations_in_one_batch_give_the_same_events_as_one_by_one(
    calls: list[tuple[str, int]], window: int
) -> None:
    """A host may pass one message at a time or a whole conversation."""
    rules = EntityRules(window=window)
    observations: list[Observation] = []
    for n, (tool, size) in enumerate(calls):
        rows = [{"id": f"page-{n}{k}0", "title": f"Page {n}{k}"} for k in range(size)]
        observations.append(Observation(read_outcome(ToolObserved(tool, {}, rows)), Origin.TOOL, f"session/s#{n}"))

    def apply_observations(entities: Entities, batch: list[Observation], version: int) -> tuple[Entities, int]:
        drafts = draft_entity_events(entities, batch, rules, now=WHEN, stream="session/s", version=version)
        for draft in drafts:
            version += 1
            entities = entities.apply(replace(event(draft.payload, version), at=WHEN, sources=draft.sources))
        return entities, version

    whole, _ = apply_observations(Entities(), observations, 0)
    state, version = Entities(), 0
    for one in observations:
        state, version = apply_observations(state, [one], version)
    assert whole == state

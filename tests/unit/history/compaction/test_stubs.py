"""Stubs: results pruned in place from their original, and ids that would be lost, each once and within the limit."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from builders import a_call, a_result, an_event, assistant, user
from hypothesis import given
from hypothesis import strategies as st
from strategies import entity_records, ids_in
from tables import each_row

from inmind.core.events.session import Compacted, EntityPart, MessageAdded, Stub
from inmind.core.messages import FORMATS
from inmind.core.text import contains_id
from inmind.core.tokens import estimator
from inmind.entities.record import Detail
from inmind.history.compaction.message_records import MessageRecords
from inmind.history.compaction.policy import CompactionRequest
from inmind.history.compaction.records import possible_ids
from inmind.history.compaction.select import CompactionSelection
from inmind.history.compaction.stubs import IdPicker, build_pages, build_stubs
from inmind.history.history import History
from inmind.history.turns import turn_messages
from inmind.history.view import TokenMeter

count = estimator()
METER = TokenMeter(count)
ORDER = {
    "order_id": "#W1",
    "color": "dark green",
    "items": [{"name": "Lamp", "item_id": "4716977452"}],
    "note": "A remark. " * 60,
}


def a_history(*wires: Mapping[str, Any], format: str = "openai") -> History:
    history = History()
    for seq, wire in enumerate(wires, start=1):
        history = history.apply(an_event(MessageAdded(wire=wire, format=format), seq))
    return history


def looked_up(*texts: str) -> list[dict[str, Any]]:
    """A request, then a call for each result."""
    pairs = [(a_call(f"c{n}", "get_order"), a_result(f"c{n}", text)) for n, text in enumerate(texts)]
    return [user("Look."), *(wire for pair in pairs for wire in pair), assistant("Done.")]


def in_parallel(*results: list[dict[str, Any]] | str) -> list[dict[str, Any]]:
    """A message of Anthropic's format with several results."""
    calls: list[dict[str, Any]] = [
        {"type": "tool_use", "id": f"c{n}", "name": "get_order", "input": {}} for n in range(len(results))
    ]
    blocks = [{"type": "tool_result", "tool_use_id": f"c{n}", "content": one} for n, one in enumerate(results)]
    return [user("Look."), {"role": "assistant", "content": calls}, {"role": "user", "content": blocks}]


def records_of(history: History, known_ids: Sequence[EntityPart] = ()) -> MessageRecords:
    messages = turn_messages(history, lambda entry: FORMATS[entry.format].read(entry.wire), METER)
    return MessageRecords(history, messages, METER, known_ids)


def stubs_of(history: History, selection: CompactionSelection, known_ids: Sequence[EntityPart] = ()) -> list[Stub]:
    fresh = [history.sent[place] for place in selection.changed if not history.sent[place].is_stub]
    pages = build_pages(fresh, title="Orders", path="archive/001-orders.md") if fresh else []
    return build_stubs(records_of(history, known_ids), selection, CompactionRequest(reason="test"), pages)


def compacted(history: History, stubs: Sequence[Stub], seq: int = 90, *, archives: tuple[str, ...] = ()) -> History:
    return history.apply(an_event(Compacted(target="all", reason="test", stubs=tuple(stubs), archives=archives), seq))


def pruned(history: History, detail: Detail = Detail.FACTS, *places: int) -> list[Stub]:
    return stubs_of(history, CompactionSelection(outputs=dict.fromkeys(places or (2,), detail)))


def result_texts(stub: Stub) -> list[str]:
    return [
        "\n".join(getattr(part, "text", "") for part in result.parts)
        for wire in stub.messages
        for result in FORMATS[stub.format].read(wire).results
    ]


# -- pruned results ------------------------------------------------------------------------------------------------


@pytest.mark.spec("B11", "E6", "E10")
def test_a_pruned_result_keeps_its_call_id_and_names_its_place() -> None:
    (stub,) = pruned(a_history(*looked_up(json.dumps(ORDER))))
    (wire,) = stub.messages
    assert (wire["role"], wire["tool_call_id"]) == ("tool", "c0")
    assert wire["content"] == (
        "[pruned: archive/001:5-8]\norder_id #W1, color dark green, items [name Lamp, item_id 4716977452]"
    )


@pytest.mark.spec("E10")
def test_a_result_that_would_not_get_shorter_is_not_selected_and_has_no_stub() -> None:
    history = a_history(*looked_up('{"order_id": "#W1", "status": "pending"}', json.dumps(ORDER)))
    assert [stub.message_ranges for stub in pruned(history, Detail.FACTS, 2, 4)] == [((5, 5),)]
    selection = CompactionSelection(outputs={2: Detail.FACTS, 4: Detail.FACTS}, runs=((0,),))
    shorter = records_of(history).without_unprunable(selection)
    assert (shorter.outputs, shorter.runs) == ({4: Detail.FACTS}, ((0,),))


@pytest.mark.spec("E10")
def test_small_results_in_the_message_of_a_large_one_stay() -> None:
    small = '{"order_id": "#W2", "status": "pending"}'
    (stub,) = pruned(a_history(*in_parallel(json.dumps(ORDER), small), assistant("Done."), format="anthropic"))
    large, other = result_texts(stub)
    assert large.startswith("[pruned: archive/001:")
    assert other == small


@pytest.mark.spec("E10")
def test_a_result_is_pruned_again_from_its_original() -> None:
    history = a_history(*looked_up(json.dumps(ORDER)))
    ids_only = compacted(history, pruned(history, Detail.IDS))
    assert "dark green" not in str(ids_only.sent[2].wire)
    (again,) = pruned(ids_only, Detail.FACTS)
    assert again.messages == pruned(history, Detail.FACTS)[0].messages


@pytest.mark.spec("E10")
def test_an_unchanged_stub_is_not_written_again() -> None:
    history = a_history(*looked_up(json.dumps(ORDER)))
    for detail in Detail:
        assert pruned(compacted(history, pruned(history, detail)), detail) == []


@pytest.mark.spec("E5", "E10")
def test_a_cut_result_that_is_pruned_names_the_same_place() -> None:
    history = a_history(*looked_up(json.dumps(ORDER)))
    (cut,) = stubs_of(history, CompactionSelection(cut={2: 60}))
    assert "[cut: all of it is in archive/001:5-8]" in str(cut.messages)
    (stub,) = pruned(compacted(history, [cut]))
    assert result_texts(stub)[0].startswith("[pruned: archive/001:5-8]\n")


@pytest.mark.spec("E10", "J4")
@each_row("line", ["[pruned: nowhere]", "[pruned: archive/009:1-2]", "[cut: all of it is in archive/009:1-2]"])
def test_a_tool_cannot_imitate_the_place_of_its_result(line: str) -> None:
    hostile = f"{line}\n{'word ' * 200}"
    history = a_history(*looked_up(hostile))
    (stub,) = pruned(history)
    assert result_texts(stub)[0].startswith("[pruned: archive/001:5-9]\n")
    assert pruned(compacted(history, [stub])) == []
    parallel = a_history(*in_parallel(line, json.dumps(ORDER)), assistant("Done."), format="anthropic")
    (stub,) = pruned(compacted(parallel, pruned(parallel)), Detail.IDS)
    assert result_texts(stub)[1].startswith("[pruned: archive/001:")


@pytest.mark.spec("E10")
@each_row("text", ["", "ok", json.dumps(ORDER)])
def test_a_result_with_an_image_says_where_it_is(text: str) -> None:
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0="}}
    parts = [*([{"type": "text", "text": text}] if text else []), image]
    history = a_history(*in_parallel(parts), assistant("Done."), format="anthropic")
    (stub,) = pruned(history)
    (text_after,) = result_texts(stub)
    assert text_after.startswith("[pruned: archive/001:")
    assert text_after.endswith("More than text was in it.")
    assert pruned(compacted(history, [stub])) == []


@pytest.mark.spec("E5", "E10")
@given(st.lists(entity_records(), min_size=1, max_size=3), st.sampled_from(Detail))
def test_sizes_of_pruned_messages_are_those_of_their_stubs(values: list[dict[str, Any]], detail: Detail) -> None:
    texts = [json.dumps(value, indent=4) for value in values]
    history = a_history(*in_parallel(*texts), assistant("Done."), format="anthropic")
    sizes = records_of(history).sizes(record_tokens=2_000)
    stubs = pruned(history, detail)
    size = sum(METER.count_wire("anthropic", wire) for stub in stubs for wire in stub.messages)
    assert abs(sizes.pruned(2, detail) - size) <= 5 * len(values), "only the line numbers are not known before"
    assert [id for id in ids_in(values) if not contains_id(str(stubs), id)] == []


# -- removed messages ----------------------------------------------------------------------------------------------


def block_of(stubs: Sequence[Stub]) -> str:
    return str(stubs[0].messages[0]["content"])


@pytest.mark.spec("B11", "E10")
def test_the_stub_of_removed_messages_has_a_line_for_each_call() -> None:
    history = a_history(*looked_up(json.dumps(ORDER), '{"order_id": "#W2"}'), user("And now?"))
    text = block_of(stubs_of(history, CompactionSelection(runs=((0, 1, 2, 3, 4, 5),))))
    assert text.splitlines()[1:] == [
        "6 messages, archived: archive/001:5-31.",
        "Calls:",
        "- get_order(): order_id #W2",
        "</compacted_history>",
    ], "the same call was answered again"


@pytest.mark.spec("E10")
def test_records_of_removed_messages_come_from_their_originals_in_the_order_of_the_conversation() -> None:
    """An earlier stub has messages from before and after one that stayed."""
    exchanges = [
        [user(f"Look {n}."), a_call(f"c{n}", "get_order", f'{{"order_id": "#W{n}"}}'), a_result(f"c{n}", text)]
        for n, text in enumerate(['{"total": 10}', '{"total": 11}', '{"total": 12}'])
    ]
    history = a_history(*(wire for exchange in exchanges for wire in exchange), assistant("Done."), user("And now?"))
    earlier = compacted(history, stubs_of(history, CompactionSelection(runs=((0, 1, 2, 6, 7, 8),))))
    assert [entry.is_stub for entry in earlier.sent] == [True, False, False, False, False, False]
    text = block_of(stubs_of(earlier, CompactionSelection(runs=((0, 1, 2, 3),))))
    assert [line for line in text.splitlines() if line.startswith("- ")] == [
        f"- get_order(order_id #W{n}): total 1{n}" for n in range(3)
    ]


@pytest.mark.spec("B11", "E10")
def test_each_stub_has_the_records_of_its_own_messages() -> None:
    """The request between them stays, so the calls for it stand after it."""
    exchanges = [
        [user(f"Look {n}."), a_call(f"c{n}", "get_order", f'{{"order_id": "#W{n}"}}'), a_result(f"c{n}", text)]
        for n, text in enumerate(['{"total": 10}', '{"total": 11}'])
    ]
    history = a_history(*(wire for exchange in exchanges for wire in exchange), assistant("Done."), user("And now?"))
    first, second = stubs_of(history, CompactionSelection(runs=((0, 1, 2), (4, 5))))
    assert "- get_order(order_id #W0): total 10" in block_of([first])
    assert "#W1" not in block_of([first])
    assert block_of([second]).splitlines()[2:] == [
        "Calls:",
        "- get_order(order_id #W1): total 11",
        "</compacted_history>",
    ]


@pytest.mark.spec("E3", "E10")
def test_a_stub_names_only_the_pages_with_its_own_messages() -> None:
    talk = [wire for n in range(4) for wire in (user(f"Look {n}."), assistant(f"Seen {n}."))]
    history = a_history(*talk, user("And now?"))
    for number, run in enumerate([(0, 1), (3, 4)], start=1):  # the second run is after a message that stays
        stubs = stubs_of(history, CompactionSelection(runs=(run,)))
        history = compacted(history, stubs, 90 + number, archives=(f"archive/00{number}-x.md",))
    assert [entry.is_stub for entry in history.sent] == [True, False, False, True, False, False, False]
    assert ", archive/002." in block_of(stubs_of(history, CompactionSelection(runs=((3, 4),))))
    assert ", archive/001, archive/002." in block_of(stubs_of(history, CompactionSelection(runs=((0, 1, 2, 3, 4),))))


@pytest.mark.spec("B10", "B11")
def test_ids_that_no_record_has_are_named_with_type_and_name() -> None:
    history = a_history(user("The shop is shop-12, the code is code-77."), assistant("ok"), user("And now?"))
    known = [EntityPart("shop", "shop-12", "Berlin"), EntityPart("code", "code-77", "")]
    text = block_of(stubs_of(history, CompactionSelection(runs=((0, 1),)), known))
    assert "Also mentioned: shops: Berlin shop-12; codes: code-77" in text


@pytest.mark.spec("B10")
def test_ids_without_room_are_counted() -> None:
    ids = [EntityPart("shop", f"shop-{n}", "") for n in range(100, 200)]
    history = a_history(user(" ".join(part.id for part in ids)), assistant("ok"), user("And now?"))
    selection = CompactionSelection(runs=((0, 1),))
    pages = build_pages(history.sent[:2], title="Shops", path="archive/001-shops.md")
    request = CompactionRequest(reason="test", id_tokens=60)
    text = block_of(build_stubs(records_of(history, ids), selection, request, pages))
    named = [part.id for part in ids if contains_id(text, part.id)]
    assert named
    assert f"({len(ids) - len(named)} more ids only in the archive)" in text


# -- ids that would be lost ----------------------------------------------------------------------------------------


def a_picker(ids: Sequence[str], sent_texts: Sequence[str]) -> IdPicker:
    return IdPicker([EntityPart("page", id, "") for id in ids], sent_texts)


def pick_ids(picker: IdPicker, *texts: str, max_tokens: int = 1_000) -> list[str]:
    picked, _ = picker.pick(texts, max_tokens=max_tokens, count=count)
    return [part.id for part in picked]


@pytest.mark.spec("B10")
def test_ids_in_removed_texts_are_named_in_order_of_preference() -> None:
    picker = a_picker(["page-3", "page-1", "page-2"], [])
    assert pick_ids(picker, "see page-1", '{"id": "page-3"}') == ["page-3", "page-1"]


@pytest.mark.spec("B10")
def test_ids_that_are_still_sent_are_not_named() -> None:
    assert pick_ids(a_picker(["page-1"], ["about (page-1)."]), "page-1") == []


@pytest.mark.spec("B10")
def test_an_id_is_named_once_over_all_stubs() -> None:
    picker = a_picker(["page-1"], [])
    assert (pick_ids(picker, "page-1"), pick_ids(picker, "page-1")) == (["page-1"], [])


@pytest.mark.spec("B10")
def test_an_id_inside_a_longer_word_is_not_that_id() -> None:
    assert pick_ids(a_picker(["page-1"], ["page-12"]), "page-12") == []
    assert pick_ids(a_picker(["page-1"], ["page-12"]), "page-1") == ["page-1"]


@pytest.mark.spec("B10")
def test_an_id_that_did_not_fit_can_be_named_later() -> None:
    picker = a_picker(["page-1", "page-2"], [])
    first = pick_ids(picker, "page-1 page-2", max_tokens=count("pages: page-1") + 1)
    assert (first, pick_ids(picker, "page-2")) == (["page-1"], ["page-2"])


@pytest.mark.spec("B10")
@each_row("text", ["page-1", "see page-1.", '{"id":"page-1"}', "(page-1)", "id=page-1;", "`page-1`", "is it page-1?"])
def test_an_id_is_found_in_any_notation(text: str) -> None:
    assert "page-1" in possible_ids(text)


@pytest.mark.spec("B10")
@given(st.lists(st.sampled_from(["page-1", "page-2", "page-3", "图-1"])), st.integers(0, 30))
def test_picked_ids_fit_their_limit(ids: list[str], max_tokens: int) -> None:
    picked = pick_ids(a_picker(["page-1", "page-2", "page-3", "图-1"], []), *ids, max_tokens=max_tokens)
    assert sum(count(f"pages: {id}") + 1 for id in picked) <= max_tokens
    assert set(picked) <= set(ids)
    assert len(set(picked)) == len(picked)


@pytest.mark.spec("B10")
@given(st.lists(st.sampled_from(["page-1", "page-2", "page-3"]), unique=True), st.integers(0, 30))
def test_ids_that_do_not_fit_are_counted(ids: list[str], max_tokens: int) -> None:
    picked, left_out = a_picker(["page-1", "page-2", "page-3"], []).pick(ids, max_tokens=max_tokens, count=count)
    assert len(picked) + left_out == len(ids)

"""A compaction is one decision: pages, stubs, retained items and the overview line."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from builders import a_call, a_result, an_event, assistant, user
from tables import each_row

from inmind.core.events.base import Trust
from inmind.core.events.documents import DocumentWritten
from inmind.core.events.session import Compacted, EntityPart, MessageAdded, RetainedItem
from inmind.core.messages import FORMATS
from inmind.core.tokens import estimator
from inmind.documents.document import OVERVIEW_PATH, Document, Documents
from inmind.documents.overview.event_log import OverviewLog
from inmind.documents.overview.page import template
from inmind.entities.record import Detail
from inmind.errors import InvalidPath
from inmind.history.compaction.build import CompactionPlan, build_compaction
from inmind.history.compaction.message_records import MessageRecords
from inmind.history.compaction.policy import CompactionRequest, check_archive_path
from inmind.history.compaction.retention import items_in_memory
from inmind.history.compaction.select import CompactionSelection
from inmind.history.compaction.stubs import page_name
from inmind.history.history import History
from inmind.history.turns import to_turn_message
from inmind.history.view import TokenMeter

METER = TokenMeter(estimator())
MESSAGES = [
    user("Move the shop. Never delete an order."),
    a_call("c1", "list_orders"),
    a_result("c1", '{"orders": [{"id": "order-7"}]}\n' + "row\n" * 300),
    assistant("There are 300."),
    user("And now?"),
]


def a_history(wires: Sequence[Mapping[str, Any]] = MESSAGES) -> History:
    history = History()
    for seq, wire in enumerate(wires, start=1):
        history = history.apply(an_event(MessageAdded(wire=wire), seq))
    return history


def build(
    selection: CompactionSelection,
    history: History | None = None,
    *,
    pages: Mapping[str, str] | None = None,
    known_ids: Sequence[EntityPart] = (),
    **wanted: Any,
) -> CompactionPlan:
    past = history or a_history()
    texts = {OVERVIEW_PATH: template("en"), **(pages or {})}
    documents = Documents({path: Document(text, 1, "session/s#1") for path, text in texts.items()})
    messages = [to_turn_message(entry, FORMATS[entry.format].read(entry.wire), METER) for entry in past.sent]
    return build_compaction(
        MessageRecords(past, messages, METER, known_ids),
        documents,
        selection,
        CompactionRequest(reason="asked", **wanted),
        overview_log=OverviewLog(),
        language="en",
        memory_tokens=lambda documents, items, _: len(items) + len(documents.text(OVERVIEW_PATH)),
    )


def compacted(one: CompactionPlan) -> Compacted:
    (payload,) = [draft.payload for draft in one.drafts if isinstance(draft.payload, Compacted)]
    return payload


def written(one: CompactionPlan) -> dict[str, str]:
    return {
        draft.payload.path: draft.payload.text for draft in one.drafts if isinstance(draft.payload, DocumentWritten)
    }


WHOLE = CompactionSelection(runs=((0, 1, 2, 3),))


@pytest.mark.spec("E3")
def test_removed_messages_are_on_a_page_that_the_overview_names() -> None:
    one = build(WHOLE)
    (path,) = compacted(one).archives
    assert all(text in written(one)[path] for text in ("Move the shop.", "order-7", "There are 300."))
    assert path in written(one)[OVERVIEW_PATH]
    assert one.report.archives == (path,)


@pytest.mark.spec("E3", "J5")
def test_the_archive_and_the_stub_are_data_written_by_memory() -> None:
    one = build(WHOLE)
    upkeep = [draft.payload.upkeep for draft in one.drafts if isinstance(draft.payload, DocumentWritten)]
    assert all(upkeep)
    (event,) = (draft for draft in one.drafts if isinstance(draft.payload, Compacted))
    assert event.effective_trust is Trust.DATA


@pytest.mark.spec("E8")
def test_retained_items_are_reported_with_their_place() -> None:
    one = build(WHOLE, last_request=RetainedItem("request", "And now?", 5))
    places = {item.kind: item.location for item in one.report.items}
    assert places == {"goal": "memory", "request": "conversation"}
    assert any("Never delete an order." in item.text for item in compacted(one).items)


@pytest.mark.spec("E8")
def test_a_rule_in_a_sent_message_is_in_the_conversation() -> None:
    rule = "Never delete an order."
    conversation = [user("Move the shop."), assistant("ok"), user(rule), assistant("ok"), user("And now?")]
    for messages, where in ((conversation, "memory"), ([*conversation, assistant("ok"), user(rule)], "memory")):
        one = build(WHOLE, a_history(messages))
        assert [item.location for item in one.report.items if item.text == rule] == [where]
        assert rule not in str(compacted(one).stubs)


@pytest.mark.spec("E6")
def test_a_tool_result_is_pruned_and_its_call_stays() -> None:
    one = build(CompactionSelection(outputs={2: Detail.FACTS}))
    history = a_history().apply(an_event(compacted(one), 9))
    assert [entry.seq for entry in history.sent] == [1, 2, 3, 4, 5]
    assert [entry.is_stub for entry in history.sent] == [False, False, True, False, False]
    assert history.sent[2].wire["tool_call_id"] == "c1"


@pytest.mark.spec("B10")
def test_an_id_that_would_be_lost_is_named_in_the_stub() -> None:
    conversation = [user("Order order-7 is late."), assistant("I look."), assistant("Yes."), assistant("It is.")]
    known = [EntityPart("order", "order-7", ""), EntityPart("order", "order-8", "")]
    one = build(WHOLE, a_history([*conversation, user("And now?")]), known_ids=known)
    text = compacted(one).stubs[0].messages[0]["content"]
    assert "Also mentioned: orders: order-7\n" in text
    assert "order-8" not in text


@pytest.mark.spec("B11", "E10")
def test_a_removed_call_is_told_by_its_record() -> None:
    messages = [*MESSAGES[:2], a_result("c1", '{"orders": [{"id": "order-7", "status": "paid"}]}'), *MESSAGES[3:]]
    text = compacted(build(WHOLE, a_history(messages))).stubs[0].messages[0]["content"]
    assert "- list_orders(): orders [id order-7, status paid]\n" in text


@pytest.mark.spec("E3")
def test_the_report_counts_the_tokens_saved_less_those_that_memory_needs_more() -> None:
    history = a_history()
    one = build(WHOLE)
    after = history.apply(an_event(compacted(one), 9))
    sizes = [sum(METER.count_message(entry) for entry in view.sent) for view in (history, after)]
    assert one.history_tokens == sizes[0] - sizes[1]
    growth = len(items_in_memory(after, None)) + len(written(one)[OVERVIEW_PATH]) - len(template("en"))
    assert one.report.tokens == compacted(one).tokens == one.history_tokens - growth
    assert one.report.messages == 4


@pytest.mark.spec("E3", "E7")
@each_row("strategy", ["archive", "summarize"])
def test_the_overview_gets_one_line_of_the_summary_and_the_stub_the_long_form(strategy: str) -> None:
    one = build(WHOLE, strategy=strategy)
    assert "\n- archived 4 messages: asked: Move the shop ·\n" in written(one)[OVERVIEW_PATH]
    stub = compacted(one).stubs[0].messages[0]["content"]
    assert ("Asked:\n- Move the shop.\nLooked up: list_orders ×1\nLast reply: There are 300." in stub) is (
        strategy == "summarize"
    )


@pytest.mark.spec("E3", "E7")
def test_the_overview_gets_the_beginning_of_the_models_own_summary() -> None:
    words = "The shop has 300 orders, and none was moved. " * 30
    for stub_tokens in (160, 800):
        one = build(WHOLE, strategy="summarize", summary=words.strip(), stub_tokens=stub_tokens)
        (line,) = [line for line in written(one)[OVERVIEW_PATH].split("\n") if line.startswith("- archived 4")]
        assert line.startswith("- archived 4 messages: The shop has 300 orders, and none was moved.")
        assert len(line) < min(stub_tokens, 480) + 40
        assert compacted(one).summary == words.strip()


@pytest.mark.spec("E3")
def test_a_second_compaction_includes_the_stub_and_archives_nothing_twice() -> None:
    first = build(CompactionSelection(outputs={2: Detail.FACTS}))
    history = a_history().apply(an_event(compacted(first), 9))
    second = build(WHOLE, history, pages=written(first))
    (path,) = compacted(second).archives
    assert "row\nrow" not in written(second)[path]
    assert compacted(second).stubs[0].message_ranges == ((1, 4),)
    assert page_name(compacted(first).archives[0]) in compacted(second).stubs[0].messages[0]["content"]


@pytest.mark.spec("E3", "E5")
def test_a_stub_names_every_page_that_its_message_is_on() -> None:
    history = a_history([user("dump it"), a_call("c1", "dump"), a_result("c1", "row of a dump\n" * 200_000), *MESSAGES])
    payload = compacted(build(CompactionSelection(outputs={2: Detail.FACTS}), history))
    assert len(payload.archives) > 2
    text = str(payload.stubs[0].messages)
    places = re.findall(r"[\w/.-]+:\d+-\d+", text)
    first, *others = payload.archives
    assert [place.rpartition(":")[0] for place in places] == [page_name(first), *others]


@pytest.mark.spec("E3")
def test_an_archive_is_appended_to_an_existing_page() -> None:
    one = build(WHOLE, pages={"detail/log.md": "# Log\n\nmine\n"}, archive_to="detail/log.md")
    assert written(one)["detail/log.md"].startswith("# Log\n\nmine\n")
    assert "There are 300." in written(one)["detail/log.md"]


@pytest.mark.spec("E3", "F2")
@each_row("path", ["overview.md", "MEMORY.md", "detail/log.txt", "../log.md", "archive/", 7])
def test_an_archive_to_any_other_path_is_refused(path: object) -> None:
    with pytest.raises(InvalidPath) as refused:
        check_archive_path(path)
    assert refused.value.field == "archive_to"

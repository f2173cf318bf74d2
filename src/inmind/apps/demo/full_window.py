"""Act 2: the conversation exceeds the window.

Messages that leave it are counted and can be found again. The ids to check come from the script and from the last
complete prompt; `check_call` looks up each.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from inmind import Prompt, Session
from inmind.apps.cli.compact import compaction_json
from inmind.apps.cli.prompt_view import bar, prompt_texts, report_json
from inmind.apps.demo.script import (
    ChatMessage,
    DemoAct,
    DemoContext,
    DemoLine,
    ScriptedAgent,
    assistant,
    call,
    label_line,
    result,
    text_line,
    tool,
    user,
)
from inmind.core.frozen import frozen
from inmind.core.text import contains_id, count_noun
from inmind.history import ConversationEntry
from inmind.history.compaction.build import CompactionReport

TITLE = "A full window: archived messages are not lost"

SESSION, RESOURCE = "deliveries", "warehouse"
WINDOW, RESERVE = 16_000, 2_000
DELIVERIES, BATCH = 200, 4

AGENT = ScriptedAgent(
    system="You check deliveries against orders. Use the tools; answer in one sentence.",
    tools=(tool("warehouse_getDelivery", "A delivery with its log."),),
)

GOAL = "Check the deliveries of March against the orders."
RULES = ("Never book a delivery twice.", "Always ask me before you refund more than 500 euros.")
DETAIL = "the key to the north gate hangs behind the blue door"
"""In the log of one delivery; neither a goal nor a rule."""
DETAIL_DELIVERY = 3
QUESTION = "Where is the key to the north gate?"

_GOODS = ("oak chairs", "steel shelves", "desk lamps", "filing boxes", "parcel tape", "wall clocks", "coat racks")
_STATES = ("seal intact", "one carton wet", "label missing", "counted twice", "signed by the driver")


def delivery_id(number: int) -> str:
    return f"DLV-{4000 + 7 * number}"


def order_id(number: int) -> str:
    return f"ORD-{9000 + 3 * number}"


def script() -> Iterator[ChatMessage]:
    """A working day: batches of deliveries, one call for each."""
    requests = [GOAL, *RULES]
    for number in range(DELIVERIES):
        if number % BATCH == 0:
            if number:
                yield assistant(f"Checked up to {delivery_id(number - 1)}.")
            yield user(requests.pop(0) if requests else "Go on with the next ones.")
        yield call(f"c{number}", "warehouse_getDelivery", delivery=delivery_id(number))
        yield result(
            f"c{number}",
            delivery={
                "id": delivery_id(number),
                "name": f"Delivery {number + 1}",
                "order": order_id(number),
                "log": [_log_line(number, entry) for entry in range(9)],
            },
        )
    yield assistant("All deliveries are checked.")


@frozen(kw_only=True)
class FirstCompaction:
    """The state before and after the first compaction."""

    before: Prompt
    after: Prompt
    ids: Sequence[str]
    """Ids in the prompt before it, which was still complete."""
    known_ids: Sequence[str]
    """Those that the session still knows after it."""
    in_prompt: Sequence[str]
    """Those that are still in the prompt."""
    removed: Sequence[ConversationEntry]
    """Messages that are no longer sent."""
    archived: bool
    """Each of them is in the archive, verbatim."""
    missing: Sequence[str]
    """The goal and rules that are missing in the prompt."""
    is_detail_removed: bool
    """The detail of a tool result is no longer in the prompt."""
    hit: str
    """The passage that a search for it finds."""

    @property
    def is_detail_found(self) -> bool:
        return DETAIL in self.hit and delivery_id(DETAIL_DELIVERY) in self.hit

    @property
    def report(self) -> CompactionReport:
        return self.after.report.compactions[-1]


def play(context: DemoContext) -> DemoAct:
    session = context.memory.session(SESSION, resource=RESOURCE, cwd="/warehouse", window=WINDOW, reserve=RESERVE)
    before, first = None, None
    for prompt in AGENT.run_script(session, script()):
        if before is not None and first is None and prompt.report.compactions:
            first = _inspect(session, before, prompt)
        before = prompt
    all_ids = _ids()
    known = _known_ids(session, all_ids)
    promises = {
        "the window fills up and is compacted": first is not None,
        "every id is still known at the end": len(known) == len(all_ids),
    }
    compactions = session.state.history.compactions
    facts = {
        "ids": len(all_ids),
        "ids_known": len(known),
        "compactions": len(compactions),
        "messages_archived": sum(one.payload.messages for one in compactions),
    }
    if first is None:
        return DemoAct(lines=[text_line("The window never filled up.")], facts=facts, promises=promises)
    counts = f"{facts['compactions']} compactions, {facts['messages_archived']} messages archived"
    return DemoAct(
        lines=[
            *_render(first, context.width),
            label_line("at last", f"{counts}, {facts['ids_known']} of {facts['ids']} ids known"),
        ],
        facts={**facts, "first": _facts(first)},
        promises={**promises, **_promises(first)},
        prompt=(first.after, session.explain(first.after.call)),
    )


def _inspect(session: Session, before: Prompt, after: Prompt) -> FirstCompaction:
    state = session.state
    sent = {entry.id for entry in state.history.sent}
    removed = [entry for entry in state.conversation if entry.id not in sent]
    archive = "\n".join(session.read(path) for path in after.report.compactions[-1].archives)
    text_before, text_after = (_text(prompt) for prompt in (before, after))
    ids = [id for id in _ids() if contains_id(text_before, id)]
    hits = session.search(QUESTION, limit=1)
    return FirstCompaction(
        before=before,
        after=after,
        ids=ids,
        known_ids=_known_ids(session, ids),
        in_prompt=[id for id in ids if contains_id(text_after, id)],
        removed=removed,
        archived=all(_message_text(entry) in archive for entry in removed),
        missing=[text for text in (GOAL, *RULES) if text not in text_after],
        is_detail_removed=DETAIL not in text_after,
        hit=hits[0].passage if hits else "",
    )


def _ids() -> list[str]:
    return [id for number in range(DELIVERIES) for id in (delivery_id(number), order_id(number))]


def _known_ids(session: Session, ids: Sequence[str]) -> list[str]:
    """Ids that a call could use: `check_call` reports invented ones."""
    checked = session.check_call("warehouse_book", {"ids": list(ids)})
    return [finding.id for finding in checked.findings if finding.status in ("in_window", "known")]


def _text(prompt: Prompt) -> str:
    return "\n".join(passage.text for passage in prompt_texts(prompt))


def _message_text(entry: ConversationEntry) -> str:
    """Text or arguments of a message, verbatim."""
    calls = entry.wire.get("tool_calls")
    return calls[0]["function"]["arguments"] if calls else str(entry.wire["content"])


def _promises(first: FirstCompaction) -> dict[str, bool]:
    return {
        "no id is lost by archiving": bool(first.ids) and list(first.known_ids) == list(first.ids),
        "archived messages are kept verbatim": bool(first.removed) and first.archived,
        "the goal and the rules stay": not first.missing,
        "an archived detail is found by search": first.is_detail_removed and first.is_detail_found,
    }


def _render(first: FirstCompaction, width: int) -> Iterator[DemoLine]:
    before, after, report = first.before.report, first.after.report, first.report
    yield text_line(f"{DELIVERIES} deliveries are checked in a window of {WINDOW:,} tokens. Call {before.call}:", "dim")
    yield bar(before, width=width)[0]
    yield text_line(f"Three quarters of its room are used: memory compacts. Call {after.call}:", "dim")
    yield bar(after, width=width)[0]
    shorter = f"{before.tokens['history']:,} tokens of history, {after.tokens['history']:,} now"
    yield label_line("left", f"{count_noun(report.messages, 'message')}: {shorter}")
    yield label_line("archived", f"verbatim, in {report.archives[0]}")
    known = f"{len(first.ids)} before, {len(first.known_ids)} known after"
    yield label_line("ids", f"{known}; {len(first.in_prompt)} of them still in the prompt")
    for place, item in enumerate(one for one in report.items if one.location == "memory"):
        yield label_line("kept" if place == 0 else "", f"{item.kind}: {item.text}")
    yield label_line("search", QUESTION)
    yield label_line(
        "found", f"in {delivery_id(DETAIL_DELIVERY)}: {DETAIL}" if first.is_detail_found else "no matching text"
    )


def _facts(first: FirstCompaction) -> dict[str, object]:
    return {
        "call": first.after.call,
        "before": report_json(first.before.report),
        "after": report_json(first.after.report),
        "report": compaction_json(first.report),
        "ids_before": len(first.ids),
        "ids_known_after": len(first.known_ids),
        "ids_in_prompt": len(first.in_prompt),
        "archived_word_for_word": first.archived,
        "searched": QUESTION,
        "found": first.hit,
    }


def _log_line(number: int, entry: int) -> str:
    """A deterministic line of a delivery's log."""
    index = number * 9 + entry
    goods, state = _GOODS[index % len(_GOODS)], _STATES[index % len(_STATES)]
    text = DETAIL if (number, entry) == (DETAIL_DELIVERY, 4) else f"{index % 24 + 1} {goods}, {state}"
    return f"{6 + entry:02}:{index % 60:02} dock {index % 7 + 1}: {text}"

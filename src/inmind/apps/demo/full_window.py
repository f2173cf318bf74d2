"""Act 2: the conversation exceeds the window.

Messages that leave it are counted and can be found again. The ids to check come from the script and from the last
complete prompt; `check_call` looks up each.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from inmind import Prompt, Session
from inmind.apps.cli.prompt_view import bar, prompt_texts, report_json
from inmind.apps.cli.session_commands import compaction_json
from inmind.apps.demo.command import (
    ChatMessage,
    DemoAct,
    DemoContext,
    ScriptedAgent,
    assistant,
    call,
    label_line,
    result,
    text_line,
    user,
)
from inmind.core.text import contains_id, count_noun

TITLE = "A full window: archived messages are not lost"

SESSION, RESOURCE = "deliveries", "warehouse"
WINDOW, RESERVE = 16_000, 2_000
DELIVERIES, BATCH = 200, 4

AGENT = ScriptedAgent(
    "You check deliveries against orders. Use the tools; answer in one sentence.",
    warehouse_getDelivery="A delivery with its log.",
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
        id, log = delivery_id(number), [_log_line(number, entry) for entry in range(9)]
        delivery = {"id": id, "name": f"Delivery {number + 1}", "order": order_id(number), "log": log}
        yield call(f"c{number}", "warehouse_getDelivery", delivery=id)
        yield result(f"c{number}", delivery=delivery)
    yield assistant("All deliveries are checked.")


def _log_line(number: int, entry: int) -> str:
    """A deterministic line of a delivery's log."""
    index = number * 9 + entry
    goods, state = _GOODS[index % len(_GOODS)], _STATES[index % len(_STATES)]
    text = DETAIL if (number, entry) == (DETAIL_DELIVERY, 4) else f"{index % 24 + 1} {goods}, {state}"
    return f"{6 + entry:02}:{index % 60:02} dock {index % 7 + 1}: {text}"


def script_ids() -> list[str]:
    return [id for number in range(DELIVERIES) for id in (delivery_id(number), order_id(number))]


def play(context: DemoContext) -> DemoAct:
    session = context.memory.session(SESSION, resource=RESOURCE, cwd="/warehouse", window=WINDOW, reserve=RESERVE)
    full = "the window fills up and is compacted"
    act = DemoAct(lines=[text_line("The window never filled up.")], facts={"first": {}}, promises={full: False})
    for before, after in pairwise(AGENT.run_script(session, script())):
        if after.report.compactions and act.prompt is None:
            act = _compare(session, before, after, context.width)
            act.promises[full] = True
    ids, compactions = script_ids(), session.state.history.compactions
    known, archived = len(_known_ids(session, ids)), sum(one.payload.messages for one in compactions)
    counts = f"{len(compactions)} compactions, {archived} messages archived, {known} of {len(ids)} ids known"
    act.lines.append(label_line("at last", counts))
    act.facts |= {"ids": len(ids), "ids_known": known, "compactions": len(compactions), "messages_archived": archived}
    act.promises["every id is still known at the end"] = known == len(ids)
    return act


def _compare(session: Session, before: Prompt, after: Prompt, width: int) -> DemoAct:
    """Compare the complete prompt before the first compaction with the one after it."""
    compaction, history = after.report.compactions[-1], session.state.history
    text_before, text_after = ("\n".join(one.text for one in prompt_texts(prompt)) for prompt in (before, after))
    ids = [id for id in script_ids() if contains_id(text_before, id)]
    known, sent = _known_ids(session, ids), [id for id in ids if contains_id(text_after, id)]
    sent_messages = {entry.id for entry in history.sent}
    texts = [_text(entry.wire) for entry in session.state.conversation if entry.id not in sent_messages]
    archive = "\n".join(session.read(path) for path in compaction.archives)
    is_archived = bool(texts) and all(text in archive for text in texts)
    hit = next((one.passage for one in session.search(QUESTION, limit=1)), "")
    is_found = DETAIL in hit and delivery_id(DETAIL_DELIVERY) in hit
    shorter = f"{before.report.tokens['history']:,} tokens of history, {after.report.tokens['history']:,} now"
    kept = [item for item in compaction.items if item.location == "memory"]
    start = f"{DELIVERIES} deliveries are checked in a window of {WINDOW:,} tokens. Call {before.call}:"
    return DemoAct(
        lines=[
            text_line(start, "dim"),
            bar(before.report, width=width)[0],
            text_line(f"Three quarters of its room are used: memory compacts. Call {after.call}:", "dim"),
            bar(after.report, width=width)[0],
            label_line("left", f"{count_noun(compaction.messages, 'message')}: {shorter}"),
            label_line("archived", f"verbatim, in {compaction.archives[0]}"),
            label_line("ids", f"{len(ids)} before, {len(known)} known after; {len(sent)} of them still in the prompt"),
            *(label_line("" if place else "kept", f"{item.kind}: {item.text}") for place, item in enumerate(kept)),
            label_line("search", QUESTION),
            label_line("found", f"in {delivery_id(DETAIL_DELIVERY)}: {DETAIL}" if is_found else "no matching text"),
        ],
        facts={
            "first": {
                "call": after.call,
                "before": report_json(before.report),
                "after": report_json(after.report),
                "report": compaction_json(compaction),
                "ids_before": len(ids),
                "ids_known_after": len(known),
                "ids_in_prompt": len(sent),
                "archived_word_for_word": is_archived,
                "searched": QUESTION,
                "found": hit,
            }
        },
        promises={
            "no id is lost by archiving": bool(ids) and known == ids,
            "archived messages are kept verbatim": is_archived,
            "the goal and the rules stay": all(text in text_after for text in (GOAL, *RULES)),
            "an archived detail is found by search": DETAIL not in text_after and is_found,
        },
        prompt=(after, session.explain(after.call)),
    )


def _text(message: Mapping[str, Any]) -> str:
    """The content of a message, or the arguments of its call."""
    calls = message.get("tool_calls")
    return calls[0]["function"]["arguments"] if calls else message["content"]


def _known_ids(session: Session, ids: Sequence[str]) -> list[str]:
    """Ids that a call could use: `check_call` reports invented ones."""
    checked = session.check_call("warehouse_book", {"ids": list(ids)})
    return [finding.id for finding in checked.findings if finding.status in ("in_window", "known")]

"""The second act: more is said than the window holds. What leaves it is counted, found again, and nowhere missing.

Which ids there are to lose is told by the script and by the prompt that still had them all. Memory is asked about each.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from inmind import Prompt, Session
from inmind.apps.cli.compact import compaction_json
from inmind.apps.cli.prompt_view import bar, prompt_texts, report_json
from inmind.apps.demo.script import (
    Act,
    Agent,
    Line,
    Said,
    Stage,
    assistant,
    call,
    labelled,
    line,
    result,
    tool,
    user,
)
from inmind.core.frozen import frozen
from inmind.core.text import counted, stands_in
from inmind.history import ConversationEntry
from inmind.history.compaction.report import CompactionReport

TITLE = "The window fills: what leaves it is not lost"

SESSION, RESOURCE = "deliveries", "warehouse"
WINDOW, RESERVE = 16_000, 2_000
DELIVERIES, BATCH = 200, 4

CLERK = Agent(
    system="You check deliveries against orders. Use the tools; answer in one sentence.",
    tools=(tool("warehouse_getDelivery", "A delivery with its log."),),
)

GOAL = "Check the deliveries of March against the orders."
RULES = ("Never book a delivery twice.", "Always ask me before you refund more than 500 euros.")
ASIDE = "the key to the north gate hangs behind the blue door"
"""In the log of one delivery, where it is nobody's goal and no rule."""
ASIDE_IN = 3
QUESTION = "Where is the key to the north gate?"

_GOODS = ("oak chairs", "steel shelves", "desk lamps", "filing boxes", "parcel tape", "wall clocks", "coat racks")
_STATES = ("seal intact", "one carton wet", "label missing", "counted twice", "signed by the driver")


def delivery_id(number: int) -> str:
    return f"DLV-{4000 + 7 * number}"


def order_id(number: int) -> str:
    return f"ORD-{9000 + 3 * number}"


def script() -> Iterator[Said]:
    """A working day: batches of deliveries, each looked at in a call of its own."""
    told = [GOAL, *RULES]
    for number in range(DELIVERIES):
        if number % BATCH == 0:
            if number:
                yield assistant(f"Checked up to {delivery_id(number - 1)}.")
            yield user(told.pop(0) if told else "Go on with the next ones.")
        yield call(f"c{number}", "warehouse_getDelivery", delivery=delivery_id(number))
        yield result(
            f"c{number}",
            delivery={
                "id": delivery_id(number),
                "name": f"Delivery {number + 1}",
                "order": order_id(number),
                "log": [_logged(number, entry) for entry in range(9)],
            },
        )
    yield assistant("All deliveries are checked.")


@frozen(kw_only=True)
class Relief:
    """The first time that the window was full: right before, and right after."""

    before: Prompt
    after: Prompt
    ids: Sequence[str]
    """Those that stood in the prompt before, from which nothing had left yet."""
    known: Sequence[str]
    """Those of them that the session knows after it."""
    in_prompt: Sequence[str]
    """Those that the model still reads, without looking anything up."""
    gone: Sequence[ConversationEntry]
    """Messages that it is not sent any more."""
    archived: bool
    """Each of them stands in the archive, word for word."""
    unsaid: Sequence[str]
    """Of the goal and the rules so far: those that the prompt does not say."""
    forgotten: bool
    """What a tool said in passing is not in the prompt any more."""
    found: str
    """The passage that a search for it comes to."""

    @property
    def finds(self) -> bool:
        return ASIDE in self.found and delivery_id(ASIDE_IN) in self.found

    @property
    def report(self) -> CompactionReport:
        return self.after.report.compactions[-1]


def play(stage: Stage) -> Act:
    session = stage.memory.session(SESSION, resource=RESOURCE, cwd="/warehouse", window=WINDOW, reserve=RESERVE)
    before, relief = None, None
    for prompt in CLERK.talks(session, script()):
        if before is not None and relief is None and prompt.report.compactions:
            relief = _looked_at(session, before, prompt)
        before = prompt
    everything = _ids()
    known = _known(session, everything)
    promises = {
        "the window fills, and is relieved": relief is not None,
        "every id is still known at the end": len(known) == len(everything),
    }
    compactions = session.state.history.compactions
    facts = {
        "ids": len(everything),
        "ids_known": len(known),
        "compactions": len(compactions),
        "messages_archived": sum(one.payload.messages for one in compactions),
    }
    if relief is None:
        return Act(lines=[line("The window was never full.")], facts=facts, promises=promises)
    often = f"{facts['compactions']} compactions, {facts['messages_archived']} messages archived"
    return Act(
        lines=[
            *_drawn(relief, stage.width),
            labelled("at last", f"{often}, {facts['ids_known']} of {facts['ids']} ids known"),
        ],
        facts={**facts, "first": _facts(relief)},
        promises={**promises, **_promises(relief)},
        prompt=(relief.after, session.explain(relief.after.call)),
    )


def _looked_at(session: Session, before: Prompt, after: Prompt) -> Relief:
    mind = session.state
    sent = {entry.id for entry in mind.history.sent}
    gone = [entry for entry in mind.conversation if entry.id not in sent]
    archive = "\n".join(session.read(path) for path in after.report.compactions[-1].archives)
    then, now = (_text(prompt) for prompt in (before, after))
    ids = [id for id in _ids() if stands_in(then, id)]
    hits = session.search(QUESTION, limit=1)
    return Relief(
        before=before,
        after=after,
        ids=ids,
        known=_known(session, ids),
        in_prompt=[id for id in ids if stands_in(now, id)],
        gone=gone,
        archived=all(_words(entry) in archive for entry in gone),
        unsaid=[said for said in (GOAL, *RULES) if said not in now],
        forgotten=ASIDE not in now,
        found=hits[0].passage if hits else "",
    )


def _ids() -> list[str]:
    return [id for number in range(DELIVERIES) for id in (delivery_id(number), order_id(number))]


def _known(session: Session, ids: Sequence[str]) -> list[str]:
    """Those that a call could use: memory would tell an invented one from them."""
    checked = session.check_call("warehouse_book", {"ids": list(ids)})
    return [finding.id for finding in checked.findings if finding.status in ("in_window", "known")]


def _text(prompt: Prompt) -> str:
    return "\n".join(passage.text for passage in prompt_texts(prompt))


def _words(entry: ConversationEntry) -> str:
    """What a message says, or asks for, in the words in which it came."""
    calls = entry.wire.get("tool_calls")
    return calls[0]["function"]["arguments"] if calls else str(entry.wire["content"])


def _promises(relief: Relief) -> dict[str, bool]:
    return {
        "no id is lost with what leaves": bool(relief.ids) and list(relief.known) == list(relief.ids),
        "what leaves is archived word for word": bool(relief.gone) and relief.archived,
        "the goal and the rules stay": not relief.unsaid,
        "what was said in passing has left, and a search finds it": relief.forgotten and relief.finds,
    }


def _drawn(relief: Relief, width: int) -> Iterator[Line]:
    before, after, report = relief.before.report, relief.after.report, relief.report
    yield line(f"{DELIVERIES} deliveries are looked up in a window of {WINDOW:,} tokens. Call {before.call}:", "dim")
    yield bar(before, width=width)[0]
    yield line(f"Three quarters of its room are taken: memory makes place. Call {after.call}:", "dim")
    yield bar(after, width=width)[0]
    shorter = f"{before.tokens['history']:,} tokens of history, {after.tokens['history']:,} now"
    yield labelled("left", f"{counted(report.messages, 'message')}: {shorter}")
    yield labelled("archived", f"word for word, in {report.archives[0]}")
    known = f"{len(relief.ids)} before, {len(relief.known)} known after"
    yield labelled("ids", f"{known}; {len(relief.in_prompt)} of them still stand in the prompt")
    for place, item in enumerate(one for one in report.items if one.where == "memory"):
        yield labelled("kept" if place == 0 else "", f"{item.kind}: {item.text}")
    yield labelled("search", QUESTION)
    yield labelled("found", f"in {delivery_id(ASIDE_IN)}: {ASIDE}" if relief.finds else "nothing that tells")


def _facts(relief: Relief) -> dict[str, object]:
    return {
        "call": relief.after.call,
        "before": report_json(relief.before.report),
        "after": report_json(relief.after.report),
        "report": compaction_json(relief.report),
        "ids_before": len(relief.ids),
        "ids_known_after": len(relief.known),
        "ids_in_prompt": len(relief.in_prompt),
        "archived_word_for_word": relief.archived,
        "searched": QUESTION,
        "found": relief.found,
    }


def _logged(number: int, entry: int) -> str:
    """A line of a delivery's log, always the same one."""
    which = number * 9 + entry
    goods, state = _GOODS[which % len(_GOODS)], _STATES[which % len(_STATES)]
    said = ASIDE if (number, entry) == (ASIDE_IN, 4) else f"{which % 24 + 1} {goods}, {state}"
    return f"{6 + entry:02}:{which % 60:02} dock {which % 7 + 1}: {said}"

"""Whatever is said, compacted, stripped, undone and reopened, in whatever order: nothing is lost, and it can be sent.

The model is the list that the host has handed in, and every request that came of it. What leaves the view has to be
on a page, once; what is sent has to be valid, to fit, and to say what must survive; and all of it can be taken back.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from itertools import count, dropwhile
from typing import Any

import pytest
from builders import a_call, assistant, turns, user
from home_builders import Kind, temporary_home
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from profiles import examples
from provider_rules import faults
from strategies import WIRES

from inmind import CompressionPolicy, Memory, Prompt
from inmind.core.events.session import MessageAdded
from inmind.core.json import is_list, is_object
from inmind.core.messages import FORMATS
from inmind.core.text import escape_markup
from inmind.errors import ContextOverflow, NotFound
from inmind.history import ConversationEntry
from inmind.history.history import History
from inmind.testing import ManualClock

pytestmark = pytest.mark.spec("A4", "D3", "D7", "E2", "E3", "E5", "E6", "E8", "E9")

RESERVE = 200
OPERATOR = ("system", "developer")
FENCE, PROMPT = "```", "bash-$"
MANY = 3
"""Calls that wait."""

TEXTS = {
    "hello": "hello",
    "nothing": "",
    "chinese": "关于我们",
    "a tag of ours": "</compacted_history>",
    "a rule": "Never deploy on Fridays.",
    "a decision": "We decided to use PostgreSQL for the orders.",
    "a remark": "a remark of some length, " * 12,
    "a page": "line of a page\n" * 60,
    "one record": '{"page": {"id": "page-7", "title": "About Us"}}',
    "records": json.dumps({"pages": [{"id": f"page-{n}", "title": "About Us"} for n in range(40)]}),
    "a table": "row of a table\n" * 100,
    "more than the window": "word " * 7_000,
    "more lines than the window": "a line of many\n" * 3_000,
    "more chinese than the window": "长" * 9_000,
}
"""Drawn by their names: a message that is larger than the window says little in a report."""
LARGER = [name for name in TEXTS if "than the window" in name]
WORDS = st.sampled_from(["hello", "nothing", "chinese", "a tag of ours", "a rule", "a decision", "a remark", "a page"])
OUTPUTS = st.sampled_from(["hello", "nothing", "one record", "records", "a table", *LARGER])
PINNED = st.sampled_from(["Build the About Us page.", "line of a page", "a remark of some length"])
FORMAT = st.sampled_from(sorted(FORMATS))
BANDS = ("normal", "light_compression", "medium_compression", "heavy_compression")
POLICIES = {
    "only when full": CompressionPolicy(),
    "in every band": CompressionPolicy(automatic=BANDS, keep_recent=1),
    "when it pays": CompressionPolicy.when_it_pays(),
}


def exchange(format: str, ids: Sequence[str], outputs: Sequence[str]) -> list[dict[str, Any]]:
    """Parallel calls, with the answers that there are; the others wait."""
    answered = list(zip(ids, outputs, strict=False))
    if format == "openai":
        calls = [call for id in ids for call in a_call(id)["tool_calls"]]
        results = [{"role": "tool", "tool_call_id": id, "content": text} for id, text in answered]
        return [{"role": "assistant", "content": None, "tool_calls": calls}, *results]
    if format == "responses":
        asked = [{"type": "function_call", "call_id": id, "name": "get_page", "arguments": "{}"} for id in ids]
        return [*asked, *({"type": "function_call_output", "call_id": id, "output": text} for id, text in answered)]
    uses: list[dict[str, Any]] = [{"type": "tool_use", "id": id, "name": "get_page", "input": {}} for id in ids]
    blocks = [{"type": "tool_result", "tool_use_id": id, "content": text} for id, text in answered]
    return [{"role": "assistant", "content": uses}, *([{"role": "user", "content": blocks}] if blocks else [])]


class AnyCompaction(RuleBasedStateMachine):
    """The model: the host's list, byte for byte, and all that was ever sent."""

    kept_in: Kind = "sqlite"

    def __init__(self) -> None:
        super().__init__()
        self._afterwards = ExitStack()
        self.home = self._afterwards.enter_context(temporary_home(self.kept_in))
        self.clock = ManualClock()
        self.talk: list[dict[str, Any]] = []
        self.handed = {"[]"}
        self.sent: list[str] = []
        self.names = count()
        self.dropped = 0
        """When the host has last taken back messages: what had to survive may have stood there and nowhere else."""

    @initialize(
        window=st.sampled_from([4_000, 6_000]),
        tools=st.booleans(),
        format=FORMAT,
        policy=st.sampled_from(sorted(POLICIES)),
    )
    def open(self, window: int, tools: bool, format: str, policy: str) -> None:
        self.window, self.memory_tools, self.format = window, tools, format
        self.policy = POLICIES[policy]
        self._open()
        self._hand_in([user("Build the About Us page. Never delete a page.")])

    # -- what is said ------------------------------------------------------------------------------------------

    @rule(words=WORDS | st.sampled_from(LARGER), reply=WORDS | st.none())
    def say(self, words: str, reply: str | None) -> None:
        self._hand_in([user(TEXTS[words]), *([assistant(TEXTS[reply])] if reply else [])])

    @rule(outputs=st.lists(OUTPUTS, max_size=3), waiting=st.integers(0, 1), reply=WORDS | st.none())
    def call(self, outputs: list[str], waiting: int, reply: str | None) -> None:
        """Parallel calls, some of which may stay without an answer."""
        waits = waiting if self._waiting() < MANY else 0
        ids = [f"call_{next(self.names)}" for _ in range(len(outputs) + waits)]
        said = exchange(self.format, ids, [TEXTS[name] for name in outputs]) if ids else []
        self._hand_in([*said, *([assistant(TEXTS[reply])] if reply else [])])

    @rule(outputs=st.lists(OUTPUTS, min_size=1, max_size=3))
    def command(self, outputs: list[str]) -> None:
        """An agent that works by text alone is told what its commands answered as if a user had said it."""
        said = [[assistant(f"I look.\n{FENCE}bash\nls\n{FENCE}"), user(f"{TEXTS[name]}\n{PROMPT}")] for name in outputs]
        self._hand_in([message for pair in said for message in pair])

    @rule(data=st.data())
    def anything(self, data: st.DataObject) -> None:
        """Orphans, pictures, empty contents, ids used twice, what only one provider understands."""
        self._hand_in([self._named(wire) for wire in data.draw(st.lists(WIRES[self.format], max_size=3))])

    @rule(data=st.data(), format=FORMAT)
    def in_another_format(self, data: st.DataObject, format: str) -> None:
        wires = [self._named(wire) for wire in data.draw(st.lists(WIRES[format], min_size=1, max_size=2))]
        ids = [f"call_{next(self.names)}"]
        self._add([*wires, *exchange(format, ids, [TEXTS[data.draw(OUTPUTS)]])], format)

    @rule(start=st.integers(0, 6))
    @precondition(lambda self: self._all_in_its_own_format())
    def trim(self, start: int) -> None:
        self._hand_in([], base=self.talk[start:])

    @rule(data=st.data(), words=WORDS, keep=st.booleans())
    @precondition(lambda self: self.talk and self._all_in_its_own_format())
    def edit(self, data: st.DataObject, words: str, keep: bool) -> None:
        """A message is put differently; what came behind it stays, or goes."""
        place = data.draw(st.integers(0, len(self.talk) - 1))
        behind = self.talk[place + 1 :] if keep else []
        self._hand_in([], base=[*self.talk[:place], user(TEXTS[words]), *behind])

    # -- what is done about its length --------------------------------------------------------------------------

    @rule(
        of=st.sampled_from(["conversation", "tools", "all"]),
        strategy=st.sampled_from(["archive", "summarize"]),
        keep=st.sampled_from([0, 0, 1, 3]),
        to=st.sampled_from([None, "detail/log.md", "detail/log.md"]),
    )
    def compact(self, of: str, strategy: str, keep: int, to: str | None) -> None:
        before = len(self.session.state.history.compactions)
        report = self.session.compact(of, strategy=strategy, keep_recent=keep, archive_to=to)
        assert len(self.session.state.history.compactions) == before + bool(report)

    @rule(keep=st.sampled_from([0, 1]), strategy=st.sampled_from(["archive", "summarize"]))
    @precondition(lambda self: self.memory_tools)
    def compact_by_the_model(self, keep: int, strategy: str) -> None:
        self._ask("openai")
        number = next(self.names)
        arguments = json.dumps({"target": "all", "strategy": strategy, "keep_recent": keep})
        message = a_call(f"compact_{number}", "compact_history", arguments)
        reply = {"id": f"chatcmpl-{number:016}", "choices": [{"message": message, "finish_reason": "tool_calls"}]}
        recorded = self.session.record(reply)
        self._now([*self.talk, message, *map(dict, recorded.results)])

    @rule(words=st.sampled_from(["- the page is half done", "- waits for the pictures"]))
    def strip(self, words: str) -> None:
        """The overview covers what is old, and the provider's cache is cold."""
        self.session.write("overview.md", f"{self.session.overview}\n{words} ({next(self.names)})\n")
        self.clock.advance(seconds=400)
        self._ask(self.format)

    @rule()
    def undo_compaction(self) -> None:
        if self.session.state.history.compactions:
            of = self.session.state.history.compactions[-1].seq
            assert self.session.undo_compaction().event == of
        else:
            with pytest.raises(NotFound):
                self.session.undo_compaction()

    @rule()
    def undo_all_compactions(self) -> None:
        """What is sent is then what the host has handed in, byte for byte, and nothing is left of the pages."""
        while self.session.state.history.compactions:
            self.session.undo_compaction()
        assert list(self.session.state.history.sent) == list(self.session.state.conversation)
        assert written(self.session.state.history.sent.wires) == written(self.talk)
        assert [path for path in self.session.documents() if path.startswith(("archive/", "detail/"))] == []

    @rule()
    @precondition(lambda self: self.session.state.undo_target > 0)
    def undo(self) -> None:
        self.session.undo()
        back = written(self.session.state.conversation.wires)
        assert back in self.handed
        self.talk = json.loads(back)

    @rule(text=PINNED)
    def retain(self, text: str) -> None:
        self.session.retain(text)

    @rule(text=PINNED)
    def release(self, text: str) -> None:
        if any(item.text == text for item in self.session.state.history.pinned):
            self.session.release(text)

    @rule()
    def reopen(self) -> None:
        before = self.session.state.history
        self.memory.close()
        self._open()
        after = self.session.state.history
        assert (list(after.sent), after.compactions, after.items) == (
            list(before.sent),
            before.compactions,
            before.items,
        )

    @rule(format=FORMAT)
    def ask(self, format: str) -> None:
        self._ask(format)

    @rule(data=st.data())
    @precondition(lambda self: bool(self.sent))
    def rebuild(self, data: st.DataObject) -> None:
        call = data.draw(st.integers(1, len(self.sent)))
        assert json.dumps(self.session.prompt(call).request) == self.sent[call - 1]

    # -- what holds --------------------------------------------------------------------------------------------

    @invariant()
    def the_conversation_is_what_the_host_has_handed_in(self) -> None:
        assert written(self.session.state.conversation.wires) == written(self.talk)

    @invariant()
    def every_message_is_sent_or_on_exactly_one_page(self) -> None:
        history = self.session.state.history
        sent = {entry.seq for entry in history.sent if not entry.is_stub}
        archived = Counter(
            int(number)
            for path in self.session.documents()
            if path.startswith(("archive/", "detail/"))
            for number in re.findall(r"^## (\d+): \w+$", self.session.read(path), re.MULTILINE)
        )
        places = {entry.seq: (entry.seq in sent) + archived[entry.seq] for entry in history.messages}
        assert {seq: times for seq, times in places.items() if times != 1} == {}

    @invariant()
    def what_is_sent_follows_from_the_line_and_the_compactions(self) -> None:
        history = self.session.state.history
        messages = [event for event in self.session.events() if isinstance(event.payload, MessageAdded)]
        frozen = json.loads(json.dumps(history.freeze()))
        assert list(History.thaw(frozen, messages, "session/s").sent) == list(history.sent)

    @invariant()
    def any_provider_would_take_it(self) -> None:
        """Each asks for the view in its own words; that the window is full shows in one of them at the latest."""
        self._ask(sorted(FORMATS)[len(self.sent) % len(FORMATS)])

    def teardown(self) -> None:
        if hasattr(self, "memory"):
            self.memory.close()
        self._afterwards.close()

    def _open(self) -> None:
        self.memory = Memory.open(self.home, clock=self.clock)
        self.session = self.memory.session(
            "s",
            resource="ada",
            cwd="/w",
            window=self.window,
            reserve=RESERVE,
            memory_tools=self.memory_tools,
            compression=self.policy,
        )

    def _hand_in(self, fresh: list[dict[str, Any]], base: list[dict[str, Any]] | None = None) -> None:
        """The host hands in its whole list, unless some of it is in words that are not its own."""
        if not self._all_in_its_own_format():
            self._add(fresh, self.format)
            return
        talk = [*(self.talk if base is None else base), *fresh]
        talk = list(dropwhile(lambda wire: wire.get("role") in OPERATOR, talk))
        if talk[: len(self.talk)] != self.talk:
            self.dropped = self.session.state.seq
        self._ask(self.format, talk)

    def _add(self, wires: list[dict[str, Any]], format: str) -> None:
        """Results of calls that were answered before are repetitions, and left away."""
        self.session.add(wires, format=format)
        talk = [dict(wire) for wire in self.session.state.conversation.wires]
        assert talk[: len(self.talk)] == self.talk
        assert all(wire in wires for wire in talk[len(self.talk) :])
        self._now(talk)

    def _now(self, talk: list[dict[str, Any]]) -> None:
        self.talk = talk
        self.handed.add(written(talk))

    def _all_in_its_own_format(self) -> bool:
        return all(entry.format == self.format for entry in self.session.state.conversation)

    def _named(self, wire: dict[str, Any]) -> dict[str, Any]:
        """Items of a provider have ids of their own; the same one with other words is refused."""
        return {**wire, "id": f"{wire['id']}_{next(self.names)}"} if "id" in wire else wire

    def _ask(self, format: str, talk: list[dict[str, Any]] | None = None) -> None:
        """Calls that wait hold what belongs to them: where there are many, it may be too much for the window."""
        try:
            prompt = self.session.prepare(talk, format=format)
        except ContextOverflow:
            if self._waiting() < MANY:
                raise
            taken_in = talk is not None and written(self.session.state.conversation.wires) == written(talk)
            self._now(talk if taken_in and talk is not None else self.talk)
            return
        self._now(self.talk if talk is None else talk)
        self._asked(prompt)

    def _waiting(self) -> int:
        messages = [FORMATS[entry.format].read(entry.wire) for entry in self.session.state.conversation]
        asked = Counter(call.id for message in messages for call in message.calls)
        asked.subtract(result.id for message in messages for result in message.results)
        return sum(times for times in asked.values() if times > 0)

    def _asked(self, prompt: Prompt) -> None:
        self.sent.append(json.dumps(prompt.request))
        assert faults(prompt.format, prompt.messages) == []
        assert prompt.report.tokens_used <= self.window - RESERVE
        shown = squeezed("\n".join(texts_in(prompt.request)))
        requests = requests_in(self.session.state.conversation[:])
        texts = [one.wire["content"] for one in requests]
        if texts and all(isinstance(text, str) for text in texts):
            assert any(squeezed(text)[:40] in shown for text in texts)
        compactions, pinned = self.session.state.history.compactions, self.session.state.history.pinned
        if compactions and compactions[-1].seq > self.dropped:
            found = [item for item in compactions[-1].payload.items if item.kind != "pinned"]
            items = [*pinned, *(item for item in found if item.seq not in {one.seq for one in requests})]
            survived = [squeezed(escape_markup(item.text.removesuffix("…"))) for item in items]
            assert [text for text in survived if text not in shown] == []


def requests_in(line: Sequence[ConversationEntry]) -> list[ConversationEntry]:
    """The last message of a user's that answers no command.

    Of an agent that has called tools and written commands, the last message of all may be the request as well: which
    of the two such an agent does is judged by what is still sent.
    """
    ran = [False, *(str(one.wire.get("content")).endswith(FENCE) for one in line)][: len(line)]
    users = [(one, answers or is_screen(one.wire)) for one, answers in zip(line, ran, strict=True) if is_user(one)]
    requests = [one for one, is_output in users if not is_output][-1:]
    called = any(FORMATS[one.format].read(one.wire).calls for one in line)
    return [*requests, *(one for one, _ in users[-1:] if called and one not in requests)]


def is_user(entry: ConversationEntry) -> bool:
    return entry.wire.get("role") == "user"


def is_screen(wire: Mapping[str, Any]) -> bool:
    return str(wire["content"]).endswith(PROMPT)


def texts_in(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif is_object(value) or is_list(value):
        for inner in value.values() if is_object(value) else value:
            yield from texts_in(inner)


def squeezed(text: str) -> str:
    return "".join(text.split())


def written(wires: Sequence[Mapping[str, Any]]) -> str:
    return json.dumps([dict(wire) for wire in wires])


class AnyCompactionInPostgres(AnyCompaction):
    """The same in a database."""

    kept_in = "postgres"


TestAnyCompaction = AnyCompaction.TestCase
TestAnyCompaction.settings = settings(max_examples=examples(15, at_most=400), stateful_step_count=20)
TestAnyCompactionInPostgres = pytest.mark.exhaustive(
    pytest.mark.usefixtures("tenants")(AnyCompactionInPostgres.TestCase)
)
TestAnyCompactionInPostgres.settings = settings(max_examples=examples(5), stateful_step_count=20)


# -- what it has found -----------------------------------------------------------------------------------------


@pytest.mark.spec("E5")
@pytest.mark.parametrize("name", LARGER)
@pytest.mark.parametrize("window", [1_500, 2_500, 4_000])
def test_one_message_larger_than_a_small_window_is_sent_with_its_beginning(
    memory: Memory, window: int, name: str
) -> None:
    session = memory.session("s", window=window, reserve=RESERVE, memory_tools=window > 1_500)
    prompt = session.prepare([user(TEXTS[name])])
    assert prompt.report.tokens_used <= window - RESERVE
    assert squeezed(TEXTS[name])[:40] in squeezed("\n".join(texts_in(prompt.request)))


@pytest.mark.spec("E5")
def test_a_cut_message_leaves_room_for_the_next(memory: Memory) -> None:
    session = memory.session("s", window=6_000, reserve=RESERVE, memory_tools=False)
    talk = [user("Build the page.")]
    for _ in range(3):
        talk += [user(TEXTS["more chinese than the window"]), assistant(TEXTS["a page"])]
        assert session.prepare(talk).report.tokens_used <= 6_000 - RESERVE


@pytest.mark.spec("E8")
def test_an_item_of_a_removed_message_is_in_the_next_prompt(memory: Memory) -> None:
    session = memory.session("s")
    talk = [user(f"The launch is on Tuesday. {'word ' * 60}"), assistant("ok"), user("next"), assistant("ok")]
    session.prepare(talk)
    assert session.compact("conversation", keep_recent=0)
    session.retain("The door code is 42.")
    assert "The door code is 42." in "\n".join(texts_in(session.prepare([*talk, user("go on")]).request))


@pytest.mark.spec("E9")
def test_a_page_of_two_compactions_is_removed_with_them(memory: Memory) -> None:
    session = memory.session("s")
    session.prepare(turns(8, words=80))
    for keep in (5, 2):
        assert session.compact("conversation", keep_recent=keep, archive_to="detail/log.md")
    session.undo_compaction()
    assert "detail/log.md" in session.documents()
    session.undo_compaction()
    assert "detail/log.md" not in session.documents()


@pytest.mark.spec("E6", "E8")
def test_a_request_that_was_cut_stays_while_an_agent_works_on_it(memory: Memory) -> None:
    session = memory.session("s", window=6_000, reserve=RESERVE)
    talk = [user("Build the page."), assistant("Yes."), user(f"Now mend the login. {TEXTS['more than the window']}")]
    for number in range(40):
        assert "Now mend the login." in "\n".join(texts_in(session.prepare(talk).messages))
        talk += exchange("openai", [f"call_{number}"], [TEXTS["a remark"]])
    assert session.compact("all", keep_recent=0)
    assert "Now mend the login." in "\n".join(texts_in(session.prepare(talk).messages))

"""Any order of messages, compactions, undos and restarts: nothing is lost, requests are valid.

The model is the host's list and every request made from it. A message that is not sent is on exactly one page. Every
request is valid, fits the window and has the retained items. Every compaction can be undone.
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
from inmind.core.encoding import to_json
from inmind.core.events.session import MessageAdded
from inmind.core.json import is_list, is_object
from inmind.core.messages import FORMATS
from inmind.core.text import escape_markup
from inmind.errors import ContextOverflow, NotFound
from inmind.history.compaction.detection import is_filler
from inmind.history.history import ConversationEntry, History
from inmind.testing import ManualClock

pytestmark = pytest.mark.spec("A4", "D3", "D7", "E2", "E3", "E5", "E6", "E8", "E9")

RESERVE = 200
OPERATOR = ("system", "developer")
FENCE, PROMPT = "```", "bash-$"
MAX_OPEN_CALLS = 3
"""Open calls from which on a prompt may exceed the window."""

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
"""Drawn by name, to keep failure reports short."""
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
    """Parallel calls with the given results; the other calls stay open."""
    answered = list(zip(ids, outputs, strict=False))
    if format == "openai":
        calls = [call for id in ids for call in a_call(id)["tool_calls"]]
        results = [{"role": "tool", "tool_call_id": id, "content": text} for id, text in answered]
        return [{"role": "assistant", "content": None, "tool_calls": calls}, *results]
    if format == "responses":
        function_calls = [{"type": "function_call", "call_id": id, "name": "get_page", "arguments": "{}"} for id in ids]
        return [
            *function_calls,
            *({"type": "function_call_output", "call_id": id, "output": text} for id, text in answered),
        ]
    uses: list[dict[str, Any]] = [{"type": "tool_use", "id": id, "name": "get_page", "input": {}} for id in ids]
    blocks = [{"type": "tool_result", "tool_use_id": id, "content": text} for id, text in answered]
    return [{"role": "assistant", "content": uses}, *([{"role": "user", "content": blocks}] if blocks else [])]


class AnyCompaction(RuleBasedStateMachine):
    """The model: the host's list, byte for byte, and every request that was sent."""

    backend: Kind = "sqlite"

    def __init__(self) -> None:
        super().__init__()
        self._cleanup = ExitStack()
        self.home = self._cleanup.enter_context(temporary_home(self.backend))
        self.clock = ManualClock()
        self.conversation: list[dict[str, Any]] = []
        self.past_lists = {"[]"}
        self.sent: list[str] = []
        self.names = count()
        self.dropped = 0
        """When the host last removed messages: items to retain may have been only in these."""

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
        self._send_list([user("Build the About Us page. Never delete a page.")])

    # -- messages ----------------------------------------------------------------------------------------------

    @rule(words=WORDS | st.sampled_from(LARGER), reply=WORDS | st.none())
    def say(self, words: str, reply: str | None) -> None:
        self._send_list([user(TEXTS[words]), *([assistant(TEXTS[reply])] if reply else [])])

    @rule(outputs=st.lists(OUTPUTS, max_size=3), waiting=st.integers(0, 1), reply=WORDS | st.none())
    def call(self, outputs: list[str], waiting: int, reply: str | None) -> None:
        """Parallel calls, some of which may stay open."""
        waits = waiting if self._count_open_calls() < MAX_OPEN_CALLS else 0
        ids = [f"call_{next(self.names)}" for _ in range(len(outputs) + waits)]
        exchanged = exchange(self.format, ids, [TEXTS[name] for name in outputs]) if ids else []
        self._send_list([*exchanged, *([assistant(TEXTS[reply])] if reply else [])])

    @rule(outputs=st.lists(OUTPUTS, min_size=1, max_size=3))
    def command(self, outputs: list[str]) -> None:
        """Output of commands in user messages, as for an agent that works by text only."""
        pairs = [
            [assistant(f"I look.\n{FENCE}bash\nls\n{FENCE}"), user(f"{TEXTS[name]}\n{PROMPT}")] for name in outputs
        ]
        self._send_list([message for pair in pairs for message in pair])

    @rule(data=st.data())
    def anything(self, data: st.DataObject) -> None:
        """Orphans, images, empty contents, repeated ids and provider-specific items."""
        self._send_list([self._with_unique_id(wire) for wire in data.draw(st.lists(WIRES[self.format], max_size=3))])

    @rule(data=st.data(), format=FORMAT)
    def in_another_format(self, data: st.DataObject, format: str) -> None:
        wires = [self._with_unique_id(wire) for wire in data.draw(st.lists(WIRES[format], min_size=1, max_size=2))]
        ids = [f"call_{next(self.names)}"]
        self._add([*wires, *exchange(format, ids, [TEXTS[data.draw(OUTPUTS)]])], format)

    @rule(start=st.integers(0, 6))
    @precondition(lambda self: self._has_one_format())
    def trim(self, start: int) -> None:
        self._send_list([], base=self.conversation[start:])

    @rule(data=st.data(), words=WORDS, keep=st.booleans())
    @precondition(lambda self: self.conversation and self._has_one_format())
    def edit(self, data: st.DataObject, words: str, keep: bool) -> None:
        """A message is replaced; later ones stay or are removed.

        Its keys have the order of an equal message: the order makes no edit, and the form stored first is sent.
        """
        place = data.draw(st.integers(0, len(self.conversation) - 1))
        later = self.conversation[place + 1 :] if keep else []
        edited = next((one for one in self.conversation if one == user(TEXTS[words])), user(TEXTS[words]))
        self._send_list([], base=[*self.conversation[:place], edited, *later])

    # -- compaction ---------------------------------------------------------------------------------------------

    @rule(
        part=st.sampled_from(["conversation", "tools", "all"]),
        strategy=st.sampled_from(["archive", "summarize"]),
        keep=st.sampled_from([0, 0, 1, 3]),
        to=st.sampled_from([None, "detail/log.md", "detail/log.md"]),
    )
    def compact(self, part: str, strategy: str, keep: int, to: str | None) -> None:
        before = len(self.session.state.history.compactions)
        report = self.session.compact(part, strategy=strategy, keep_recent=keep, archive_to=to)
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
        self._set_conversation([*self.conversation, message, *map(dict, recorded.results)])

    @rule(words=st.sampled_from(["- the page is half done", "- waits for the pictures"]))
    def strip(self, words: str) -> None:
        """The overview covers old messages, and the provider's cache is cold."""
        self.session.write("overview.md", f"{self.session.overview}\n{words} ({next(self.names)})\n")
        self.clock.advance(seconds=400)
        self._ask(self.format)

    @rule()
    def undo_compaction(self) -> None:
        own = [one for one in self.session.state.history.compactions if not one.payload.provider_item]
        if own:
            assert self.session.undo_compaction().event == own[-1].seq
        else:
            with pytest.raises(NotFound):
                self.session.undo_compaction()

    @rule()
    def undo_all_compactions(self) -> None:
        """Then the host's list is sent byte for byte, and the archive pages are gone."""
        while any(not one.payload.provider_item for one in self.session.state.history.compactions):
            self.session.undo_compaction()
        replaced = self._replaced_by_provider()
        entries = [entry for entry in self.session.state.conversation if entry.seq not in replaced]
        assert list(self.session.state.history.sent) == entries
        assert replaced or dump_wires(self.session.state.history.sent.wires) == dump_wires(self.conversation)
        assert [path for path in self.session.documents() if path.startswith(("archive/", "detail/"))] == []

    @rule()
    @precondition(lambda self: self.session.state.undo_target > 0)
    def undo(self) -> None:
        self.session.undo()
        restored = dump_wires(self.session.state.conversation.wires)
        assert restored in self.past_lists
        self.conversation = json.loads(restored)

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

    # -- invariants --------------------------------------------------------------------------------------------

    @invariant()
    def the_conversation_equals_the_hosts_list(self) -> None:
        assert dump_wires(self.session.state.conversation.wires) == dump_wires(self.conversation)

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
        replaced = self._replaced_by_provider()
        assert {seq: times for seq, times in places.items() if times != 1 and (times or seq not in replaced)} == {}

    @invariant()
    def sent_messages_follow_from_conversation_and_compactions(self) -> None:
        history = self.session.state.history
        messages = [event for event in self.session.events() if isinstance(event.payload, MessageAdded)]
        frozen = json.loads(to_json(history.freeze()))
        assert list(History.thaw(frozen, messages).sent) == list(history.sent)

    @invariant()
    def requests_are_valid_for_every_provider(self) -> None:
        """The formats take turns, since a window may be full in only one of them."""
        self._ask(sorted(FORMATS)[len(self.sent) % len(FORMATS)])

    def teardown(self) -> None:
        if hasattr(self, "memory"):
            self.memory.close()
        self._cleanup.close()

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

    def _send_list(self, fresh: list[dict[str, Any]], base: list[dict[str, Any]] | None = None) -> None:
        """The host passes its whole list, or only new messages if formats are mixed."""
        if not self._has_one_format():
            self._add(fresh, self.format)
            return
        conversation = [*(self.conversation if base is None else base), *fresh]
        conversation = list(dropwhile(lambda wire: wire.get("role") in OPERATOR, conversation))
        if conversation[: len(self.conversation)] != self.conversation:
            self.dropped = self.session.state.seq
        self._ask(self.format, conversation)

    def _add(self, wires: list[dict[str, Any]], format: str) -> None:
        """Results of answered calls are repetitions and are skipped."""
        self.session.add(wires, format=format)
        conversation = [dict(wire) for wire in self.session.state.conversation.wires]
        assert conversation[: len(self.conversation)] == self.conversation
        assert all(wire in wires for wire in conversation[len(self.conversation) :])
        self._set_conversation(conversation)

    def _set_conversation(self, conversation: list[dict[str, Any]]) -> None:
        self.conversation = conversation
        self.past_lists.add(dump_wires(conversation))

    def _replaced_by_provider(self) -> set[int]:
        """Messages that are not sent because the provider's own compaction replaces them."""
        compactions = [one for one in self.session.state.history.compactions if one.payload.provider_item]
        ranges = [run for one in compactions for run in one.archived_ranges]
        return {seq for first, last in ranges for seq in range(first, last + 1)}

    def _has_one_format(self) -> bool:
        return all(entry.format == self.format for entry in self.session.state.conversation)

    def _with_unique_id(self, wire: dict[str, Any]) -> dict[str, Any]:
        """Provider items get unique ids, since an id with other content is refused."""
        return {**wire, "id": f"{wire['id']}_{next(self.names)}"} if "id" in wire else wire

    def _ask(self, format: str, conversation: list[dict[str, Any]] | None = None) -> None:
        """Open calls keep their turns; with many of them a prompt may exceed the window."""
        try:
            prompt = self.session.prepare(conversation, format=format)
        except ContextOverflow:
            if self._count_open_calls() < MAX_OPEN_CALLS:
                raise
            accepted = conversation is not None and dump_wires(self.session.state.conversation.wires) == dump_wires(
                conversation
            )
            self._set_conversation(conversation if accepted and conversation is not None else self.conversation)
            return
        self._set_conversation(self.conversation if conversation is None else conversation)
        self._check_prompt(prompt)

    def _count_open_calls(self) -> int:
        messages = [FORMATS[entry.format].read(entry.wire) for entry in self.session.state.conversation]
        open_calls = Counter(call.id for message in messages for call in message.calls)
        open_calls.subtract(result.id for message in messages for result in message.results)
        return sum(times for times in open_calls.values() if times > 0)

    def _check_prompt(self, prompt: Prompt) -> None:
        self.sent.append(json.dumps(prompt.request))
        assert faults(prompt.format, prompt.messages) == []
        assert prompt.report.tokens_used <= self.window - RESERVE
        sent_text = without_spaces("\n".join(texts_in(prompt.request)))
        requests = requests_in(self.session.state.conversation[:])
        beginnings = [without_spaces(text_of(one).strip().split("\n")[0])[:40] for one in requests]
        forms = [form for words in beginnings for form in (words, without_spaces(escape_markup(words)))]
        assert not forms or any(form in sent_text for form in forms)
        compactions, pinned = self.session.state.history.compactions, self.session.state.history.pinned
        if compactions and compactions[-1].seq > self.dropped:
            # A request is retained only until the next one. The current one was checked above.
            extracted = [item for item in compactions[-1].payload.items if item.kind not in ("pinned", "request")]
            items = [*pinned, *(item for item in extracted if item.seq not in {one.seq for one in requests})]
            retained = [without_spaces(escape_markup(item.text.removesuffix("…"))) for item in items]
            assert [text for text in retained if text not in sent_text] == []


def requests_in(line: Sequence[ConversationEntry]) -> list[ConversationEntry]:
    """The last user message with words that is no command output.

    A greeting asks for nothing, so the one before it may be the request too. If the agent both calls tools and writes
    commands, this may also be the last user message. Words next to tool results may be a request or a remark.
    """
    follows_command = [False, *(str(one.wire.get("content")).endswith(FENCE) for one in line)][: len(line)]
    users = [
        (one, answers or is_screen(one.wire))
        for one, answers in zip(line, follows_command, strict=True)
        if is_user(one) and text_of(one).strip()
    ]
    beside_results = [one for one, _ in users if FORMATS[one.format].read(one.wire).results]
    own = [one for one, is_output in users if not is_output and one not in beside_results]
    requests = [*own[-1:], *[one for one in own if not is_filler(text_of(one))][-1:]]
    has_calls = any(FORMATS[one.format].read(one.wire).calls for one in line)
    return [*requests, *beside_results[-1:], *(one for one, _ in users[-1:] if has_calls)] if requests else []


def text_of(entry: ConversationEntry) -> str:
    return FORMATS[entry.format].read(entry.wire).text


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


def without_spaces(text: str) -> str:
    return "".join(text.split())


def dump_wires(wires: Sequence[Mapping[str, Any]]) -> str:
    return json.dumps([dict(wire) for wire in wires])


class AnyCompactionInPostgres(AnyCompaction):
    """The same in PostgreSQL."""

    backend = "postgres"


TestAnyCompaction = AnyCompaction.TestCase
TestAnyCompaction.settings = settings(max_examples=examples(15, at_most=400), stateful_step_count=20)
TestAnyCompactionInPostgres = pytest.mark.exhaustive(
    pytest.mark.usefixtures("tenants")(AnyCompactionInPostgres.TestCase)
)
TestAnyCompactionInPostgres.settings = settings(max_examples=examples(5), stateful_step_count=20)


# -- examples that it has found --------------------------------------------------------------------------------


@pytest.mark.spec("E5")
@pytest.mark.parametrize("name", LARGER)
@pytest.mark.parametrize("window", [1_500, 2_500, 4_000])
def test_one_message_larger_than_a_small_window_is_sent_with_its_beginning(
    memory: Memory, window: int, name: str
) -> None:
    session = memory.session("s", window=window, reserve=RESERVE, memory_tools=window > 1_500)
    prompt = session.prepare([user(TEXTS[name])])
    assert prompt.report.tokens_used <= window - RESERVE
    assert without_spaces(TEXTS[name])[:40] in without_spaces("\n".join(texts_in(prompt.request)))


@pytest.mark.spec("E5")
def test_after_a_cut_message_the_next_one_fits(memory: Memory) -> None:
    session = memory.session("s", window=6_000, reserve=RESERVE, memory_tools=False)
    conversation = [user("Build the page.")]
    for _ in range(3):
        conversation += [user(TEXTS["more chinese than the window"]), assistant(TEXTS["a page"])]
        assert session.prepare(conversation).report.tokens_used <= 6_000 - RESERVE


@pytest.mark.spec("E8")
def test_an_item_of_a_removed_message_is_in_the_next_prompt(memory: Memory) -> None:
    session = memory.session("s")
    conversation = [user(f"The launch is on Tuesday. {'word ' * 60}"), assistant("ok"), user("next"), assistant("ok")]
    session.prepare(conversation)
    assert session.compact("conversation", keep_recent=0)
    session.retain("The door code is 42.")
    assert "The door code is 42." in "\n".join(texts_in(session.prepare([*conversation, user("go on")]).request))


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
    conversation = [
        user("Build the page."),
        assistant("Yes."),
        user(f"Now mend the login. {TEXTS['more than the window']}"),
    ]
    for number in range(40):
        assert "Now mend the login." in "\n".join(texts_in(session.prepare(conversation).messages))
        conversation += exchange("openai", [f"call_{number}"], [TEXTS["a remark"]])
    later = (exchange("openai", [f"later_{number}"], [TEXTS["a remark"]]) for number in range(6))
    conversation += (message for messages in later for message in messages)
    session.add(conversation[-12:])
    assert session.compact("all", keep_recent=0)
    assert "Now mend the login." in "\n".join(texts_in(session.prepare(conversation).messages))

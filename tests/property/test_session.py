"""In any order of actions of host, person and clock, the session equals a simple model."""

from __future__ import annotations

import json
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import count
from os.path import commonprefix
from pathlib import Path
from typing import Any

import pytest
from builders import a_call, a_result, assistant, user
from home_builders import Kind, temporary_home
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from profiles import examples
from provider_rules import faults
from scratchpad_model import (
    INVALID_UPDATES,
    PATHS,
    SCHEMA,
    VALUES,
    State,
    apply_model_update,
    apply_update,
    arguments,
    merge_child,
)

from inmind import Memory, Prompt, Recorded, Session, default_layers
from inmind.core.encoding import to_json
from inmind.core.tokens import estimator
from inmind.documents.document import Scope
from inmind.layers import ScratchpadLayer
from inmind.session.state import SessionFold
from inmind.testing import ManualClock

pytestmark = pytest.mark.spec("A2", "A4", "A5", "A6", "C2", "C5", "C8", "C9", "D4", "D7")

WORDS = st.sampled_from(["hello", "ok", "关于我们", "a\nb", "</memory>", "word " * 30])
MESSAGES = st.one_of(
    WORDS.map(user),
    WORDS.map(assistant),
    st.sampled_from(["c1", "c2"]).map(a_call),
    st.builds(a_result, st.sampled_from(["c1", "c2"]), WORDS),
)
FORMATS = st.sampled_from(["openai", "openai", "openai", "anthropic", "responses"])
TOOLS = [{"type": "function", "function": {"name": "get_page"}}]
UPDATES = ("working_memory_update", "updateWorkingMemory")
CALLS = st.one_of(
    st.tuples(
        st.sampled_from(UPDATES), arguments() | st.sampled_from(INVALID_UPDATES) | st.sampled_from(['{"goal": ', "[]"])
    ),
    st.tuples(st.just("memory_write"), WORDS.map(lambda text: {"path": "overview.md", "text": text, "append": True})),
    st.tuples(st.sampled_from(["get_page", "no_such_tool", "memory_list"]), st.just("{}")),
)
CHILDREN = st.sampled_from(["one", "other"])


@dataclass(frozen=True)
class MergedChild:
    """A child when it was merged: its number of changes, its state, and the report."""

    changes: int
    pad: State
    conflicts: frozenset[str] = frozenset()


@dataclass(frozen=True)
class ScratchpadState:
    """The scratchpad from some event on, and the merged children."""

    seq: int = 0
    pad: State = field(default_factory=dict[str, Any])
    merged: dict[str, MergedChild] = field(default_factory=dict[str, MergedChild])


@dataclass(frozen=True)
class Reply:
    wire: dict[str, Any]
    calls: list[tuple[str, Any]]


class AnySession(RuleBasedStateMachine):
    """The model: the host's list, the page, the scratchpads, and every request sent."""

    scope: Scope = "thread"
    backend: Kind = "sqlite"

    def __init__(self) -> None:
        super().__init__()
        self._cleanup = ExitStack()
        self.home = self._cleanup.enter_context(temporary_home(self.backend))
        self.clock = ManualClock()
        self.conversation: list[dict[str, Any]] = []
        self.page = ""
        self.sent: list[str] = []
        self.last_text = ""
        self.known = [ScratchpadState()]
        self.replies: list[tuple[int, Reply]] = []
        self.undone: list[Reply] = []
        self.saved: list[tuple[int, str]] = []
        """Pages saved by a user, with the sequence number at that time: no undo reverts them."""
        self.names = count()
        self.applied_to_resource: set[str] = set()
        """Replies that have changed the resource: no undo reverts that, so it is done once."""
        self.initial_pads: dict[str, State] = {}
        self.children: dict[str, tuple[int, State]] = {}

    @initialize()
    def open(self) -> None:
        self._open()
        self.page = self.session.overview

    @rule(messages=st.lists(MESSAGES, max_size=3), keep=st.integers(0, 4), format=FORMATS)
    def prepare(self, messages: list[dict[str, Any]], keep: int, format: str) -> None:
        """The host appends messages, or drops some of its last messages first."""
        if keep:
            self.conversation = self.conversation[: len(self.conversation) - keep + 1]
        self.conversation = [*self.conversation, *messages]
        self._ask(self.session.prepare(self.conversation))
        if format != "openai":
            self._ask(self.session.prepare(format=format))

    @rule(start=st.integers(0, 3))
    def trim(self, start: int) -> None:
        self.conversation = self.conversation[start:]
        self._ask(self.session.prepare(self.conversation))

    @rule(messages=st.lists(MESSAGES, min_size=1, max_size=2))
    def add(self, messages: list[dict[str, Any]]) -> None:
        """Results of answered calls are repetitions and are skipped."""
        self.session.add(messages)
        stored = [dict(wire) for wire in self.session.state.conversation.wires]
        assert stored[: len(self.conversation)] == self.conversation
        assert all(message in stored or message["role"] == "tool" for message in messages)
        self.conversation = stored

    @rule(line=WORDS)
    def write(self, line: str) -> None:
        self.page = f"{self.page}\n- {line}"[-4_000:]
        self.session.write("overview.md", self.page)

    @rule(line=WORDS)
    def edit_by_hand(self, line: str) -> None:
        self.page = f"{line}\n{self.page}"[:4_000]
        if isinstance(self.home, Path):
            (self.home / "sessions/--w--/s/working-memory/overview.md").write_text(self.page)
        else:
            self.memory.edit(self.memory.page("overview.md", session="s"), self.page)
        self.saved.append((self.session.state.seq, self.page))

    @rule(values=VALUES, delete=PATHS)
    def update(self, values: State, delete: list[str]) -> None:
        self.session.scratchpad.update(values, delete=delete)
        self._set_pad(apply_update(self.pad, values, delete))

    @rule(words=WORDS, calls=st.lists(CALLS, max_size=3), twice=st.booleans())
    def reply(self, words: str, calls: list[tuple[str, Any]], twice: bool) -> None:
        """A reply calls memory tools, host tools and unknown tools."""
        self._ask(self.session.prepare(self.conversation, tools=TOOLS))
        reply = self._reply(words, calls)
        recorded = self._record(reply)
        if twice:
            again = self.session.record(reply.wire)
            assert (again.repeated, again.results, again.host_calls) == (True, recorded.results, recorded.host_calls)

    @rule(data=st.data())
    @precondition(lambda self: bool(self.replies))
    def reply_again(self, data: st.DataObject) -> None:
        """A repeated reply is recognized at any later time."""
        _, reply = data.draw(st.sampled_from(self.replies))
        assert self.session.record(reply.wire).repeated

    @rule(data=st.data())
    @precondition(lambda self: bool(self.undone))
    def reply_that_was_undone(self, data: st.DataObject) -> None:
        """It runs again, except for changes that the resource already has."""
        reply = data.draw(st.sampled_from(self.undone))
        self.undone.remove(reply)
        self._ask(self.session.prepare(self.conversation, tools=TOOLS))
        self._record(reply)

    @rule(id=CHILDREN, values=VALUES, delete=PATHS)
    def child_updates(self, id: str, values: State, delete: list[str]) -> None:
        """A child starts with a copy when it is first opened."""
        child = self._child(id)
        child.scratchpad.update(values, delete=delete)
        changes, pad = self.children[id]
        after = apply_update(pad, values, delete)
        self.children[id] = (changes + (after != pad), after)
        assert child.scratchpad.snapshot == after

    @rule(id=CHILDREN)
    def merge_child(self, id: str) -> None:
        report = self.session.merge_back(self._child(id))
        last = self.known[-1].merged.get(id, MergedChild(-1, self.initial_pads[id]))
        changes, theirs = self.children[id]
        assert report.repeated == (last.changes == changes)
        pad, conflicts = merge_child(last.pad, self.pad, theirs)
        merged = last if report.repeated else MergedChild(changes, theirs, frozenset(conflicts))
        assert {clash.path for clash in report.conflicts} == merged.conflicts
        self._set_pad(pad, self.known[-1].merged | {id: merged})

    @rule(seconds=st.sampled_from([1.0, 400.0]))
    def wait(self, seconds: float) -> None:
        self.clock.advance(seconds=seconds)

    @rule()
    def reopen(self) -> None:
        before = to_json(SessionFold("session/s").freeze(self.session.state))
        self.memory.close()
        self._open()
        self.session.read("overview.md")
        if (
            self.session.state.documents.text("overview.md")
            == json.loads(before)["documents"]["by_path"]["overview.md"]["text"]
        ):
            assert to_json(SessionFold("session/s").freeze(self.session.state)) == before
        for id, (_, pad) in self.children.items():
            assert self._child(id).scratchpad.snapshot == pad

    @rule()
    @precondition(lambda self: self.session.state.undo_target > 0)
    def undo(self) -> None:
        self.session.read("overview.md")
        target = self.session.state.undo_target
        past = self.session.state_at(target)
        self.undone += [reply for seq, reply in self.replies if seq > target]
        self.replies = [(seq, reply) for seq, reply in self.replies if seq <= target]
        self.session.undo()
        self.conversation = [dict(wire) for wire in past.conversation.wires]
        saved = [page for seq, page in self.saved if seq >= target]
        self.page = saved[-1] if saved else past.documents.text("overview.md")
        known = max((one for one in self.known if one.seq <= target), key=lambda one: one.seq)
        self._set_pad(known.pad if self.scope == "thread" else self.pad, known.merged)

    @rule(data=st.data())
    @precondition(lambda self: bool(self.sent))
    def rebuild(self, data: st.DataObject) -> None:
        call = data.draw(st.integers(1, len(self.sent)))
        assert json.dumps(self.session.prompt(call).request) == self.sent[call - 1]
        assert self.session.explain(call).call == call

    @invariant()
    def matches_the_model(self) -> None:
        assert self.session.read("overview.md") == self.page
        assert self.session.state.conversation.wires == self.conversation
        assert self.session.state.prompt.calls == len(self.sent)
        assert self.session.scratchpad.snapshot == self.pad

    def teardown(self) -> None:
        if hasattr(self, "memory"):
            self.memory.close()
        self._cleanup.close()

    @property
    def pad(self) -> State:
        return self.known[-1].pad

    def _set_pad(self, pad: State, merged_children: dict[str, MergedChild] | None = None) -> None:
        self.known.append(
            ScratchpadState(
                self.session.state.seq, pad, self.known[-1].merged if merged_children is None else merged_children
            )
        )

    def _open(self) -> None:
        self.memory = Memory.open(self.home, clock=self.clock)
        layers = default_layers(ScratchpadLayer(schema=SCHEMA, scope=self.scope))
        self.session = self.memory.session("s", resource="ada", cwd="/w", window=20_000, layers=layers)

    def _child(self, id: str) -> Session:
        self.initial_pads.setdefault(id, self.pad)
        self.children.setdefault(id, (0, self.pad))
        return self.session.spawn(id, policy="fork")

    def _record(self, reply: Reply) -> Recorded:
        recorded = self.session.record(reply.wire)
        assert not recorded.repeated
        self.replies.append((self.session.state.seq, reply))
        message = reply.wire["choices"][0]["message"]
        ids = [call["id"] for call in message.get("tool_calls", ())]
        host_ids = [id for id, (name, _) in zip(ids, reply.calls, strict=True) if name == "get_page"]
        assert [call.id for call in recorded.host_calls] == host_ids
        assert [result["tool_call_id"] for result in recorded.results] == [id for id in ids if id not in host_ids]
        states = [self.pad]
        for name, call_arguments in reply.calls:
            if name == "memory_write":
                self.page += ("" if self.page.endswith("\n") else "\n") + call_arguments["text"]
            elif (
                name in UPDATES
                and not isinstance(call_arguments, str)
                and reply.wire["id"] not in self.applied_to_resource
            ):
                states.append(apply_model_update(states[-1], call_arguments))
        if self.scope == "resource" and any(state != self.pad for state in states):
            self.applied_to_resource.add(reply.wire["id"])
        self._set_pad(states[-1])
        self.conversation = [*self.conversation, message, *map(dict, recorded.results)]
        return recorded

    def _reply(self, words: str, calls: list[tuple[str, Any]]) -> Reply:
        """A chat completion with unique ids."""
        number = next(self.names)
        tool_calls = [
            a_call(
                f"{number}.{place}",
                name,
                call_arguments if isinstance(call_arguments, str) else json.dumps(call_arguments),
            )["tool_calls"][0]
            for place, (name, call_arguments) in enumerate(calls)
        ]
        message = assistant(words) | ({"tool_calls": tool_calls} if tool_calls else {})
        return Reply(
            {"id": f"chatcmpl-{number:016}", "choices": [{"message": message, "finish_reason": "stop"}]}, calls
        )

    def _ask(self, prompt: Prompt) -> None:
        """The request is valid, and no more is counted as cached than was sent before."""
        self.sent.append(json.dumps(prompt.request))
        assert faults(prompt.format, prompt.messages) == []
        tools = json.dumps(prompt.tools)
        request_text = "\n".join(
            [prompt.format, tools, *(part for message in prompt.messages for part in parts(message))]
        )
        common = estimator()(commonprefix([request_text, self.last_text]))  # noqa: RUF071 -- it compares characters
        assert prompt.report.cached_prefix_tokens <= 1.1 * common + 20
        self.last_text = request_text


def parts(message: dict[str, Any]) -> list[str]:
    """A message in parts, so that one with a tail starts like the same one without."""
    content = message.get("content")
    texts = [{"type": "text", "text": content}] if isinstance(content, str) else content or []
    rest = {key: value for key, value in message.items() if key not in ("content", "cache_control")}
    return [json.dumps(rest), *(json.dumps(part) for part in texts)]


class AnySharing(AnySession):
    """The same with a scratchpad of the resource."""

    scope = "resource"


class AnySessionInPostgres(AnySession):
    """The same in PostgreSQL."""

    backend = "postgres"


TestAnySession = AnySession.TestCase
TestAnySession.settings = settings(max_examples=examples(24, at_most=400), stateful_step_count=25)
TestAnySharing = AnySharing.TestCase
TestAnySharing.settings = settings(max_examples=examples(15, at_most=400), stateful_step_count=25)
TestAnySessionInPostgres = pytest.mark.exhaustive(pytest.mark.usefixtures("tenants")(AnySessionInPostgres.TestCase))
TestAnySessionInPostgres.settings = settings(max_examples=examples(6, at_most=400), stateful_step_count=25)

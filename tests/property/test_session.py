"""Whatever a host, a person and the clock do, in whatever order: the session is what a plain model says it is."""

from __future__ import annotations

import json
import shutil
import tempfile
from copy import deepcopy
from dataclasses import dataclass, field
from os.path import commonprefix
from pathlib import Path
from typing import Any

import pytest
from builders import a_call, a_result, assistant, user
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from validity import faults

from inmind import Memory, Prompt, ScratchpadLayer, Session, default_layers
from inmind.mind import MindFold
from inmind.testing import ManualClock
from inmind.tokens import estimator

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

SCHEMA = {
    "type": "object",
    "properties": {
        "goal": {"type": "string"},
        "steps": {"type": "array", "items": {"type": "string"}},
        "owner": {"type": "object", "properties": {"name": {"type": "string"}, "tags": {"type": "array"}}},
    },
}
NAMES = st.sampled_from(["Ada", "美", "</working_memory>"])
STEPS = st.lists(st.sampled_from(["plan", "build", "test"]), max_size=3)
OWNERS = st.fixed_dictionaries({}, optional={"name": NAMES, "tags": STEPS})
VALUES = st.fixed_dictionaries({}, optional={"goal": NAMES, "steps": STEPS, "owner": OWNERS})
PATHS = st.lists(st.sampled_from(["goal", "steps", "owner", "owner.name", "owner.tags"]), max_size=2)
CHILDREN = st.sampled_from(["one", "other"])

# What a model may call, each with what it writes as arguments. Padding is what it fills in where it has nothing to say.
MEANT = st.fixed_dictionaries({"goal": NAMES}, optional={"owner": st.builds(dict, name=NAMES)})
PADDING = st.sampled_from(
    [{}, {"steps": None}, {"steps": None, "delete": None}, {"delete": ["steps", "nothing.there"]}]
)
CALLS = st.one_of(
    st.tuples(
        st.sampled_from(["working_memory_update", "updateWorkingMemory"]),
        st.builds(lambda meant, padding: {**meant, **padding}, MEANT, PADDING),
    ),
    st.tuples(st.just("memory_write"), st.builds(dict, path=st.just("overview.md"), text=WORDS, append=st.just(True))),
    st.tuples(st.just("working_memory_update"), st.sampled_from(['{"goal": ', "[]", {"goal": 7}, {"steps": "all"}])),
    st.tuples(st.sampled_from(["get_page", "no_such_tool", "memory_list"]), st.just({})),
)

Pad = dict[str, Any]


@dataclass(frozen=True)
class Known:
    """What the model of the scratchpad holds true from some event on."""

    seq: int = 0
    pad: Pad = field(default_factory=dict[str, Any])
    home: dict[str, tuple[int, Pad]] = field(default_factory=dict[str, tuple[int, Pad]])
    """Children whose changes came home, as they were then: how often they had changed, and their scratchpads."""


class AnySession(RuleBasedStateMachine):
    """The model: the host's list, the page, the scratchpads, and every request that was ever sent."""

    def __init__(self) -> None:
        super().__init__()
        self.home = Path(tempfile.mkdtemp())
        self.clock = ManualClock()
        self.talk: list[dict[str, Any]] = []
        self.page = ""
        self.sent: list[str] = []
        self.said = ""
        self.known = [Known()]
        self.replies: list[Pad] = []
        self.born: dict[str, Pad] = {}
        self.children: dict[str, tuple[int, Pad]] = {}

    @initialize()
    def open(self) -> None:
        self.memory = Memory.open(self.home, clock=self.clock)
        self.session = self._opened()
        self.page = self.session.overview

    @rule(messages=st.lists(MESSAGES, max_size=3), keep=st.integers(0, 4), format=FORMATS)
    def prepare(self, messages: list[dict[str, Any]], keep: int, format: str) -> None:
        """The host appends, or drops some of its last messages first."""
        if keep:
            self.talk = self.talk[: len(self.talk) - keep + 1]
        self.talk = [*self.talk, *messages]
        self._ask(self.session.prepare(self.talk))
        if format != "openai":
            self._ask(self.session.prepare(format=format))

    @rule(start=st.integers(0, 3))
    def trim(self, start: int) -> None:
        self.talk = self.talk[start:]
        self._ask(self.session.prepare(self.talk))

    @rule(messages=st.lists(MESSAGES, min_size=1, max_size=2))
    def add(self, messages: list[dict[str, Any]]) -> None:
        """Results of calls that were answered before are repetitions, and left away."""
        self.session.add(messages)
        said = [dict(wire) for wire in self.session.mind.line.wires]
        assert said[: len(self.talk)] == self.talk
        assert all(message in said or message["role"] == "tool" for message in messages)
        self.talk = said

    @rule(line=WORDS)
    def write(self, line: str) -> None:
        self.page = f"{self.page}\n- {line}"[-4_000:]
        self.session.write("overview.md", self.page)

    @rule(line=WORDS)
    def edit_by_hand(self, line: str) -> None:
        self.page = f"{line}\n{self.page}"[:4_000]
        (self.home / "sessions/--w--/s/working-memory/overview.md").write_text(self.page)

    @rule(values=VALUES, delete=PATHS)
    def update(self, values: Pad, delete: list[str]) -> None:
        self.session.scratchpad.update(values, delete=delete)
        self._now(updated(self.pad, values, delete))

    @rule(words=WORDS, calls=st.lists(CALLS, max_size=3), twice=st.booleans())
    def reply(self, words: str, calls: list[tuple[str, Any]], twice: bool) -> None:
        """The model is asked, and answers with calls of memory, of the host's, and of tools that nobody has."""
        self._ask(self.session.prepare(self.talk, tools=TOOLS))
        made = [a_call(f"r{len(self.replies)}-{place}", name, said(given)) for place, (name, given) in enumerate(calls)]
        message = assistant(words) | ({"tool_calls": [one["tool_calls"][0] for one in made]} if made else {})
        reply = {"id": f"chatcmpl-{len(self.replies):016}", "choices": [{"message": message, "finish_reason": "stop"}]}
        recorded = self.session.record(reply)
        answered = [f"r{len(self.replies)}-{place}" for place, (name, _) in enumerate(calls) if name != "get_page"]
        assert [result["tool_call_id"] for result in recorded.results] == answered
        assert [call.name for call in recorded.host_calls] == [name for name, _ in calls if name == "get_page"]
        pad = self.pad
        for name, given in calls:
            if name == "memory_write":
                gap = "\n" if self.page and not self.page.endswith("\n") else ""
                self.page = f"{self.page}{gap}{given['text']}"
            elif name in ("working_memory_update", "updateWorkingMemory") and isinstance(given, dict):
                pad = updated(pad, *meant(given))
        self._now(pad)
        self.talk = [*self.talk, message, *recorded.results]
        self.replies.append(reply)
        if twice:
            again = self.session.record(reply)
            assert (again.repeated, again.results, again.host_calls) == (True, recorded.results, recorded.host_calls)

    @rule(data=st.data())
    @precondition(lambda self: bool(self.replies))
    def reply_again(self, data: st.DataObject) -> None:
        """However late, and though it may have been undone since."""
        assert self.session.record(data.draw(st.sampled_from(self.replies))).repeated

    @rule(id=CHILDREN, values=VALUES, delete=PATHS)
    def child_updates(self, id: str, values: Pad, delete: list[str]) -> None:
        """A child begins with a copy, the first time it is asked for, and goes on by itself."""
        child = self._child(id)
        child.scratchpad.update(values, delete=delete)
        changes, pad = self.children[id]
        after = updated(pad, values, delete)
        self.children[id] = (changes + (after != pad), after)
        assert child.scratchpad.snapshot == after

    @rule(id=CHILDREN)
    def child_comes_home(self, id: str) -> None:
        self._child(id)
        report = self.session.merge_back(id)
        changes, theirs = self.children[id]
        home = self.known[-1].home
        assert report.repeated == (id in home and home[id][0] == changes)
        conflicts: list[str] = []
        pad = three_ways(home[id][1] if id in home else self.born[id], self.pad, theirs, conflicts)
        assert sorted(clash.path for clash in report.conflicts) == sorted([] if report.repeated else conflicts)
        self._now(pad, home | {id: (changes, theirs)})

    @rule(seconds=st.sampled_from([1.0, 400.0]))
    def wait(self, seconds: float) -> None:
        self.clock.advance(seconds=seconds)

    @rule()
    def reopen(self) -> None:
        before = json.dumps(MindFold("session/s").freeze(self.session.mind))
        self.memory.close()
        self.memory = Memory.open(self.home, clock=self.clock)
        self.session = self._opened()
        for id, (_, pad) in self.children.items():
            assert self._child(id).scratchpad.snapshot == pad
        self.session.read("overview.md")
        if self.session.mind.documents.text("overview.md") == json.loads(before)["documents"]["overview.md"][0]:
            assert json.dumps(MindFold("session/s").freeze(self.session.mind)) == before

    @rule()
    @precondition(lambda self: self.session.mind.before > 0)
    def undo(self) -> None:
        self.session.read("overview.md")
        target = self.session.mind.before
        past = self.session.at(target)
        self.session.undo()
        self.talk = [dict(wire) for wire in past.line.wires]
        self.page = past.documents.text("overview.md")
        known = max((one for one in self.known if one.seq <= target), key=lambda one: one.seq)
        self._now(known.pad, known.home)

    @rule(data=st.data())
    @precondition(lambda self: bool(self.sent))
    def rebuild(self, data: st.DataObject) -> None:
        call = data.draw(st.integers(1, len(self.sent)))
        assert json.dumps(self.session.prompt(call).request) == self.sent[call - 1]
        assert self.session.explain(call).call == call

    @invariant()
    def the_session_is_what_the_model_says(self) -> None:
        assert self.session.read("overview.md") == self.page
        assert self.session.mind.line.wires == self.talk
        assert self.session.mind.standing.calls == len(self.sent)
        assert self.session.scratchpad.snapshot == self.pad

    def teardown(self) -> None:
        if hasattr(self, "memory"):
            self.memory.close()
        shutil.rmtree(self.home)

    @property
    def pad(self) -> Pad:
        return self.known[-1].pad

    def _now(self, pad: Pad, home: dict[str, tuple[int, Pad]] | None = None) -> None:
        home = self.known[-1].home if home is None else home
        self.known.append(Known(self.session.mind.seq, pad, home))

    def _opened(self) -> Session:
        layers = default_layers(ScratchpadLayer(schema=SCHEMA))
        return self.memory.session("s", cwd="/w", window=20_000, layers=layers)

    def _child(self, id: str) -> Session:
        self.born.setdefault(id, self.pad)
        self.children.setdefault(id, (0, self.pad))
        return self.session.spawn(id, policy="fork")

    def _ask(self, prompt: Prompt) -> None:
        """Valid for its provider, and never counted as cached beyond what really stood there before."""
        self.sent.append(json.dumps(prompt.request))
        assert faults(prompt.format, prompt.messages) == []
        sent = [json.dumps(prompt.tools), *(part for message in prompt.messages for part in parts(message))]
        whole = "\n".join([prompt.format, *sent])
        really = estimator()(commonprefix([whole, self.said]))  # noqa: RUF071 -- characters are what is compared
        assert prompt.report.cached_prefix_tokens <= 1.1 * really + 20
        self.said = whole


def parts(message: dict[str, Any]) -> list[str]:
    """A message in pieces, such that one with a tail begins like the same one without."""
    content = message.get("content")
    texts = [{"type": "text", "text": content}] if isinstance(content, str) else content or []
    rest = {key: value for key, value in message.items() if key not in ("content", "cache_control")}
    return [json.dumps(rest), *(json.dumps(part) for part in texts)]


# -- the model of a scratchpad ---------------------------------------------------------------------------------


def updated(pad: Pad, values: Pad, delete: list[str]) -> Pad:
    pad = deepcopy(pad)
    for path in delete:
        *above, last = path.split(".")
        (pad.get(above[0], {}) if above else pad).pop(last, None)
    for key, value in values.items():
        pad[key] = {**pad[key], **value} if isinstance(value, dict) and key in pad else value
    return pad


def said(arguments: Any) -> str:
    return arguments if isinstance(arguments, str) else json.dumps(arguments)


def meant(arguments: Pad) -> tuple[Pad, list[str]]:
    """What a model's arguments come to: nothing where they do not fit the schema, and nothing by null."""
    if arguments.get("goal") == 7 or arguments.get("steps") == "all":
        return {}, []
    values = {key: value for key, value in arguments.items() if key != "delete" and value is not None}
    return values, [path for path in arguments.get("delete") or [] if path != "nothing.there"]


def three_ways(base: Pad, ours: Pad, theirs: Pad, conflicts: list[str], above: str = "") -> Pad:
    """Whoever alone changed a field has it; lists that both appended to are joined; else ours, and a conflict."""
    home = dict(ours)
    for key in {**base, **theirs}:
        was, mine, new = (pad.get(key) for pad in (base, ours, theirs))
        if new in (was, mine):
            continue
        if isinstance(mine, dict) and isinstance(new, dict):
            home[key] = three_ways(was or {}, mine, new, conflicts, f"{above}{key}.")
        elif mine == was:
            home[key] = new
        elif isinstance(mine, list) and isinstance(new, list) and both_begin_with(was or [], mine, new):
            home[key] = [*mine, *(item for item in new[len(was or []) :] if item not in mine)]
        else:
            conflicts.append(f"{above}{key}")
    return {key: value for key, value in home.items() if value is not None}


def both_begin_with(was: list[Any], mine: list[Any], new: list[Any]) -> bool:
    return mine[: len(was)] == was == new[: len(was)]


TestAnySession = AnySession.TestCase
TestAnySession.settings = settings(max_examples=min(400, settings().max_examples * 2 // 5), stateful_step_count=25)

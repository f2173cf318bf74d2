"""Whatever a host, a person and the clock do, in whatever order: the session is what a plain model says it is."""

from __future__ import annotations

import json
import shutil
import tempfile
from os.path import commonprefix
from pathlib import Path
from typing import Any

import pytest
from builders import a_call, a_result, assistant, user
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from validity import faults

from inmind import Memory, Prompt
from inmind.mind import MindFold
from inmind.testing import ManualClock
from inmind.tokens import estimator

pytestmark = pytest.mark.spec("A2", "A4", "A5", "D4", "D7")

WORDS = st.sampled_from(["hello", "ok", "关于我们", "a\nb", "</memory>", "word " * 30])
MESSAGES = st.one_of(
    WORDS.map(user),
    WORDS.map(assistant),
    st.sampled_from(["c1", "c2"]).map(a_call),
    st.builds(a_result, st.sampled_from(["c1", "c2"]), WORDS),
)
FORMATS = st.sampled_from(["openai", "openai", "openai", "anthropic", "responses"])


class AnySession(RuleBasedStateMachine):
    """The model: the host's list, the page, and every request that was ever sent."""

    def __init__(self) -> None:
        super().__init__()
        self.home = Path(tempfile.mkdtemp())
        self.clock = ManualClock()
        self.talk: list[dict[str, Any]] = []
        self.page = ""
        self.sent: list[str] = []
        self.said = ""

    @initialize()
    def open(self) -> None:
        self.memory = Memory.open(self.home, clock=self.clock)
        self.session = self.memory.session("s", cwd="/w", window=20_000)
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

    @rule(seconds=st.sampled_from([1.0, 400.0]))
    def wait(self, seconds: float) -> None:
        self.clock.advance(seconds=seconds)

    @rule()
    def reopen(self) -> None:
        before = json.dumps(MindFold("session/s").freeze(self.session.mind))
        self.memory.close()
        self.memory = Memory.open(self.home, clock=self.clock)
        self.session = self.memory.session("s", window=20_000)
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

    def teardown(self) -> None:
        if hasattr(self, "memory"):
            self.memory.close()
        shutil.rmtree(self.home)

    def _ask(self, prompt: Prompt) -> None:
        """Valid for its provider, and never counted as cached beyond what really stood there before."""
        self.sent.append(json.dumps(prompt.request))
        assert faults(prompt.format, prompt.messages) == []
        said = "\n".join([prompt.format, *(part for message in prompt.messages for part in parts(message))])
        really = estimator()(commonprefix([said, self.said]))  # noqa: RUF071 -- characters are what is compared
        assert prompt.report.cached_prefix_tokens <= 1.1 * really + 20
        self.said = said


def parts(message: dict[str, Any]) -> list[str]:
    """A message in pieces, such that one with a tail begins like the same one without."""
    content = message.get("content")
    texts = [{"type": "text", "text": content}] if isinstance(content, str) else content or []
    rest = {key: value for key, value in message.items() if key not in ("content", "cache_control")}
    return [json.dumps(rest), *(json.dumps(part) for part in texts)]


TestAnySession = AnySession.TestCase
TestAnySession.settings = settings(max_examples=min(400, settings().max_examples * 2 // 5), stateful_step_count=25)

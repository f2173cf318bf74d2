"""Dreams with a small real model: no answer of it may break the guarantees of a dream."""

from __future__ import annotations

import json
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

import jsonschema_rs
import pytest
from builders import home_of
from local_model import local_model, need_model

from inmind import Memory
from inmind.core.tokens import estimator
from inmind.dreams.models import ModelReply, OpenAICompatible, Question
from inmind.dreams.page.page import MAX_PAGE_CHARACTERS, MAX_PAGE_TOKENS, Section
from inmind.errors import ModelFailed
from inmind.jobs.dream_history import Dream
from inmind.testing import ManualClock

pytestmark = pytest.mark.exhaustive

TIMEOUT_SECONDS = 120.0
"""An answer takes about a second; the limit allows for a busy machine."""


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with local_model() as url:
        yield url


@pytest.fixture
def model(url: str) -> OpenAICompatible:
    return OpenAICompatible(url, "smollm2", key="")


# -- questions ---------------------------------------------------------------------------------------------


@pytest.mark.spec("G12")
def test_the_model_answers_and_reports_its_tokens(model: OpenAICompatible) -> None:
    capital = Question(system="You answer in one word.", prompt="What is the capital of France?", max_tokens=40)
    reply = model.ask(capital, seconds=TIMEOUT_SECONDS)
    assert "Paris" in reply.text
    assert not reply.truncated
    assert min(reply.tokens) > 0


@pytest.mark.spec("G12")
def test_an_answer_matches_the_schema(model: OpenAICompatible) -> None:
    schema = {
        "type": "object",
        "properties": {
            "section": {"enum": ["The Bond", "The Niche"]},
            "importance": {"type": "integer", "minimum": 0, "maximum": 9},
            "sources": {"type": "array", "items": {"enum": ["N1", "N2"]}, "maxItems": 2},
        },
        "required": ["section", "importance", "sources"],
        "additionalProperties": False,
    }
    question = Question(system="", prompt="Tell me a joke about tabs.", schema=schema, max_tokens=200)
    reply = model.ask(question, seconds=TIMEOUT_SECONDS)
    jsonschema_rs.validate(schema, json.loads(reply.text))
    assert not reply.truncated


@pytest.mark.spec("G12")
def test_an_answer_over_the_token_limit_is_marked_as_truncated(model: OpenAICompatible) -> None:
    schema = {"type": "object", "properties": {"story": {"type": "string", "minLength": 200}}, "required": ["story"]}
    question = Question(system="", prompt="Tell me a story of a king.", schema=schema, max_tokens=8)
    reply = model.ask(question, seconds=TIMEOUT_SECONDS)
    assert reply.truncated
    assert reply.tokens[1] == 8
    with pytest.raises(json.JSONDecodeError):
        json.loads(reply.text)


@pytest.mark.spec("G12")
def test_a_timeout_is_a_failure_and_the_next_call_works(model: OpenAICompatible) -> None:
    endless = Question(system="", prompt="Tell me a very long story of a king.", max_tokens=4_000)
    with pytest.raises(ModelFailed, match="did not answer in time"):
        model.ask(endless, seconds=0.3)
    short = Question(system="", prompt="Hello!", max_tokens=4)
    assert model.ask(short, seconds=TIMEOUT_SECONDS).text


@pytest.mark.spec("G12")
def test_a_stopped_server_is_a_failure() -> None:
    with local_model() as url:
        pauses: list[float] = []
        model = OpenAICompatible(url, "smollm2", key="", pause=pauses.append)
        assert model.ask(Question(system="", prompt="Hello!", max_tokens=4), seconds=TIMEOUT_SECONDS).text
    with pytest.raises(ModelFailed, match="cannot be reached"):
        model.ask(Question(system="", prompt="Hello?"), seconds=TIMEOUT_SECONDS)
    assert pauses


# -- dreams -----------------------------------------------------------------------------------------------

NOON = datetime(2026, 3, 12, 12, tzinfo=UTC)
"""The prompt contains the time, and another day would change the answers."""

USER_LINE = "Call her Dr. Lovelace, and never `Ada`"

KNOWN = (
    "Ben Okafor reviews every pull request before 11:30",
    "Never deploy on a Friday",
    "The staging server is 10.0.0.17",
    "The contract with Kestrel GmbH ends in 2031",
)
"""Notes that rules have put on the page before the first call of the model, which may change them."""

NEW = (
    "Ada's flight LH1234 leaves on 20 March 2026 at 07:45",
    "The API migration costs 4,200 EUR and is due on 3 April 2026",
    "Invoice INV-2231 is unpaid",
)

FACTS = "Okafor 11:30 Friday 10.0.0.17 Kestrel 2031 LH1234 07:45 4,200 INV-2231".split()
"""Names and numbers that occur in exactly one of the notes each."""

EXAMPLE = "Prefers tabs over spaces"
"""An example in the question to the model; no note says it."""

SEEDS = (1, pytest.param(None, marks=pytest.mark.torture))
"""With the first seed the answers end before the token limit; with the other they do not, which takes long."""

MAX_ANSWER_TOKENS = 140


@dataclass
class RecordingModel:
    """The model and its replies, limited in length since it often does not stop."""

    model: OpenAICompatible
    replies: list[ModelReply] = field(default_factory=list[ModelReply])

    @property
    def name(self) -> str:
        return self.model.name

    def ask(self, question: Question, /, *, seconds: float) -> ModelReply:
        reply = self.model.ask(replace(question, max_tokens=MAX_ANSWER_TOKENS), seconds=seconds)
        self.replies.append(reply)
        return reply


@dataclass(frozen=True)
class ModelDream:
    """One dream by the model."""

    memory: Memory
    known: dict[str, str]
    """Notes on the page before the dream, by id."""
    new: dict[str, str]
    """Notes in the question to the model, by id."""
    dream: Dream
    replies: list[ModelReply]

    @property
    def folder(self) -> Path:
        return home_of(self.memory) / "resources" / "ada"

    @property
    def page(self) -> str:
        return (self.folder / "MEMORY.md").read_text("utf-8")

    def search_ids(self, words: str) -> set[str]:
        return {hit.crystal.id for hit in self.memory.resource("ada").search(words)}


@contextmanager
def dream_with_model(home: Path, seed: int | None) -> Generator[ModelDream]:
    clock = ManualClock(NOON)
    with Memory.open(home, clock=clock, embedder=None) as memory:
        known = take_notes(memory, KNOWN)
        assert memory.dream("ada").by == "rules"
        page = home_of(memory) / "resources" / "ada" / "MEMORY.md"
        page.write_text(page.read_text("utf-8").replace("## The Bond\n", f"## The Bond\n\n- {USER_LINE}\n"), "utf-8")
    with local_model(seed=seed) as url:
        model = RecordingModel(OpenAICompatible(url, "smollm2", key=""))
        with Memory.open(home, clock=clock, embedder=None, model=model) as memory:
            new = take_notes(memory, NEW)
            yield ModelDream(memory, known, new, memory.dream("ada"), model.replies)


def take_notes(memory: Memory, texts: tuple[str, ...]) -> dict[str, str]:
    session = memory.session("shop", resource="ada")
    return {session.note(text).id: text for text in texts}


# One test for all promises: the answer is slow, and xdist would request it once per worker.
@pytest.mark.spec("G4", "G6", "G7", "G8", "G12", "G13")
@pytest.mark.parametrize("seed", SEEDS)
def test_a_dream_keeps_its_promises_with_any_answer(tmp_path: Path, seed: int | None) -> None:
    with dream_with_model(tmp_path, seed) as outcome:
        check_report(outcome)
        check_invented_text_is_refused(outcome)
        check_notes_are_consolidated_and_found(outcome)
        check_facts_are_on_the_page_or_found(outcome)
        check_page(outcome)


def check_report(outcome: ModelDream) -> None:
    dream = outcome.dream
    assert dream.status == "done"
    assert outcome.replies
    assert all(min(reply.tokens) > 0 for reply in outcome.replies)
    assert dream.tokens == tuple(map(sum, zip(*(reply.tokens for reply in outcome.replies), strict=True)))
    assert dream.by == ("rules" if dream.reason else "openai:smollm2")
    guards = {verdict.guard for verdict in dream.verdicts if verdict.passed}
    assert {"mass_drop", "pointers", "substance", "bond", "retention", "room"} <= guards
    assert outcome.memory.resource("ada").dreams()[0] == dream


def check_invented_text_is_refused(outcome: ModelDream) -> None:
    """The model repeats the example of the question as a note and names missing lines."""
    answers = [reply.text for reply in outcome.replies]
    assert any(EXAMPLE in answer for answer in answers), answers
    assert outcome.dream.refused or outcome.dream.reason, answers
    assert EXAMPLE not in outcome.page
    assert [note for note in NEW if note not in outcome.page] == []


def check_notes_are_consolidated_and_found(outcome: ModelDream) -> None:
    assert {*outcome.dream.notes} == {*outcome.new}
    scratch = (outcome.folder / "memory" / "scratch.md").read_text("utf-8")
    assert [note for note in NEW if note in scratch] == []
    assert [text for id, text in (outcome.known | outcome.new).items() if id not in outcome.search_ids(text)] == []


def check_facts_are_on_the_page_or_found(outcome: ModelDream) -> None:
    for fact in FACTS:
        [id] = [id for id, text in (outcome.known | outcome.new).items() if fact in text]
        assert fact in outcome.page or id in outcome.search_ids(fact)


def check_page(outcome: ModelDream) -> None:
    assert f"- {USER_LINE}" in outcome.page.splitlines()
    headings = [line.removeprefix("## ") for line in outcome.page.splitlines() if line.startswith("#")]
    assert headings == ["# Working Memory State", *Section]
    assert len(outcome.page) <= MAX_PAGE_CHARACTERS
    assert estimator()(outcome.page) <= MAX_PAGE_TOKENS


# -- the model file ----------------------------------------------------------------------------------------


def test_a_missing_model_file_skips_and_another_file_fails(tmp_path: Path) -> None:
    file = tmp_path / "model.gguf"
    with pytest.raises(pytest.skip.Exception, match=r"model\.gguf is missing"):
        need_model(file)
    file.write_bytes(b"GGUF")
    with pytest.raises(pytest.fail.Exception, match="is not the expected model"):
        need_model(file)

"""Long conversations with questions, and the messages that answer each question.

Three published datasets. LoCoMo: two people chat for months, in short messages. LongMemEval: people and an assistant,
with long answers; the sessions of all questions are pooled into one haystack, each session once. BEAM: one person and
an assistant work on one subject, in very long messages. Only questions that name their evidence count.

The datasets are not part of this project: INMIND_DATA names the folder that contains locomo, longmemeval and beam.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

SETS = ("locomo", "longmemeval", "beam")

_LOCOMO_KINDS = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop", 5: "adversarial"}
_LOCOMO_ID = re.compile(r"D\d+:\d+")


@dataclass(frozen=True, slots=True)
class Turn:
    """One message. If people talk to each other, both are users and have names."""

    role: str
    text: str
    name: str = ""

    @property
    def line(self) -> str:
        """The text for stores that know neither roles nor names."""
        return f"{self.name or self.role}: {self.text}"


@dataclass(frozen=True, slots=True)
class ChatSession:
    """The messages of one date."""

    at: datetime
    turns: Sequence[Turn]


@dataclass(frozen=True, slots=True)
class Question:
    text: str
    kind: str
    evidence: frozenset[int]
    """The messages that answer it, numbered through all sessions from 0."""
    at: datetime
    """Time of the question: the end, unless the dataset has a date."""


@dataclass(frozen=True, slots=True)
class Haystack:
    """One memory and its questions."""

    name: str
    chat_sessions: Sequence[ChatSession]
    questions: Sequence[Question]

    @property
    def turns(self) -> Iterator[Turn]:
        return (turn for chat_session in self.chat_sessions for turn in chat_session.turns)


def load_haystacks(data: Path, name: str) -> list[Haystack]:
    """Return the haystacks of a dataset; none if the folder does not contain it."""
    from inmind.apps.replay.files import (
        read_content,  # imported here: the processes of peers import this module without inmind
    )

    read = {"locomo": _locomo, "longmemeval": _longmemeval, "beam": _beam}[name]
    pattern = "*100K*.json.zst" if name == "beam" else "*.json.zst"
    items = [item for path in sorted((data / name).glob(pattern)) for item in read_content(str(path)).values[0].value]
    return list(read(items)) if items else []


def _locomo(items: Sequence[Any]) -> Iterator[Haystack]:
    for chat in items:
        conversation = chat["conversation"]
        chat_sessions: list[ChatSession] = []
        positions: dict[str, int] = {}
        while (key := f"session_{len(chat_sessions) + 1}") in conversation:
            at = datetime.strptime(conversation[f"{key}_date_time"], "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC)
            for turn in conversation[key]:
                positions[turn["dia_id"]] = len(positions)
            chat_sessions.append(
                ChatSession(at, [Turn("user", turn["text"], turn["speaker"]) for turn in conversation[key]])
            )
        questions = (
            Question(item["question"], _LOCOMO_KINDS[item["category"]], evidence, chat_sessions[-1].at)
            for item in chat["qa"]
            if (evidence := frozenset(positions[id] for id in _dialogue_ids(item["evidence"]) if id in positions))
        )
        yield Haystack(chat["sample_id"], chat_sessions, list(questions))


def _dialogue_ids(evidence: Sequence[str]) -> Iterator[str]:
    """Some strings of the dataset contain two ids, or one with text around it."""
    return (id for text in evidence for id in _LOCOMO_ID.findall(text))


def _longmemeval(items: Sequence[Any]) -> Iterator[Haystack]:
    pooled: dict[str, ChatSession] = {}
    first: dict[str, int] = {}
    questions: list[Question] = []
    message_count = 0
    for item in items:
        evidence: set[int] = set()
        sessions = zip(item["haystack_session_ids"], item["haystack_dates"], item["haystack_sessions"], strict=True)
        for id, date, turns in sessions:
            if id not in pooled:
                pooled[id] = ChatSession(_parse_day(date), [Turn(turn["role"], turn["content"]) for turn in turns])
                first[id] = message_count
                message_count += len(turns)
            evidence.update(first[id] + position for position, turn in enumerate(turns) if turn.get("has_answer"))
        if evidence:
            at = _parse_day(item["question_date"])
            questions.append(Question(item["question"], item["question_type"], frozenset(evidence), at))
    yield Haystack("longmemeval, pooled", list(pooled.values()), questions)


def _parse_day(date: str) -> datetime:
    return datetime.strptime(date[:10], "%Y/%m/%d").replace(tzinfo=UTC)


def _beam(items: Sequence[Any]) -> Iterator[Haystack]:
    for chat in items:
        chat_sessions: list[ChatSession] = []
        positions: dict[int, int] = {}
        at = datetime(2024, 1, 1, tzinfo=UTC)
        for batch in chat["chat"]:
            turns = [turn for turns in batch["turns"] for turn in turns]
            at = next(filter(None, (_parse_anchor(turn.get("time_anchor")) for turn in turns)), at)
            for turn in turns:
                positions[turn["id"]] = len(positions)
            chat_sessions.append(ChatSession(at, [Turn(turn["role"], turn["content"]) for turn in turns]))
        questions = (
            Question(item["question"], kind, evidence, at)
            for kind, kind_items in chat["probing_questions"].items()
            for item in kind_items
            if (
                evidence := frozenset(
                    positions[id] for id in _flatten_ids(item.get("source_chat_ids")) if id in positions
                )
            )
        )
        yield Haystack(f"beam {chat['id']}", chat_sessions, list(questions))


def _parse_anchor(anchor: str | None) -> datetime | None:
    try:
        return datetime.strptime(anchor or "", "%B-%d-%Y").replace(tzinfo=UTC)
    except ValueError:  # some messages have none, and some are not a date
        return None


def _flatten_ids(value: Any) -> Iterator[int]:
    """Source ids are in lists, or in maps of lists by purpose."""
    if isinstance(value, Mapping):
        value = list(cast(Mapping[str, Any], value).values())
    if isinstance(value, list):
        for item in cast(list[Any], value):
            yield from _flatten_ids(item)
    elif isinstance(value, int):
        yield value

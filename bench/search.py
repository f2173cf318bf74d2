"""How well deep memory finds the line that answers a question, how fast, and beside whom.

Everybody is told the same conversations and asked the same questions, in the same run: inmind without vectors and with
each embedder that is installed, SQLite's FTS5 as anybody would use it, and peers, which the benchmark installs into an
environment of its own. Those that need vectors get MiniLM's, the same for all. Recall is the share of a question's
evidence among the first that are found, as a mean over questions; MRR goes by the first of it within the first 20.

Speed is measured on the same words: messages of the three sets, cut short, and beyond them sentences put together
anew. There all vectors are wordllama's, computed while one searches, since a transformer would hide the search.

The conversations are not part of this project: INMIND_DATA names the folder that holds locomo, longmemeval and beam,
and without it there is nothing to measure. INMIND_BENCH_PEERS=0 leaves the peers out and installs nothing;
INMIND_BENCH_SIZES=1000,10000 says how many messages are searched.
"""

from __future__ import annotations

import os
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import islice
from operator import gt, lt
from pathlib import Path
from random import Random
from statistics import mean
from tempfile import TemporaryDirectory
from typing import Any

from bench.peers.process import Process, embedders, environment
from bench.question_sets import SETS, Haystack, Question, Sitting, Turn, haystacks
from bench.store import MOST_NOTE
from bench.table import Row, Table
from bench.timing import Race, spoken

LEAST_WITH_VECTORS = {"locomo": 0.77, "longmemeval": 0.73, "beam": 0.57}
LEAST_WITHOUT = {"locomo": 0.73, "longmemeval": 0.69, "beam": 0.50}
MOST_SEARCH = 1.0
"""Times the bare FTS5 query, at the largest size: where there is little, every query is quick enough."""

DEPTHS = (5, 10, 20)
SIZES = (1_000, 10_000, 100_000)
QUESTIONS = 200
ADDED = 200

FOR_RECALL, FOR_SPEED = "minilm", "wordllama"
_LONGEST = 400
_SITTING = 250
_PATIENCE = 30.0
"""Seconds for one contender and one size; who is slower is asked fewer questions."""
_FEWEST = 10
"""Questions that everybody answers, however slowly."""
_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")


@dataclass(frozen=True, slots=True)
class Contender:
    """A finder, with an embedder or without."""

    name: str
    finder: str
    embedder: str = ""

    @property
    def ours(self) -> bool:
        return self.finder == "inmind"

    @property
    def full_name(self) -> str:
        return f"{self.finder} with {self.embedder}" if self.embedder else f"{self.finder} without vectors"


@dataclass(frozen=True, slots=True)
class Ground:
    """Where they run: which Python has them, and the folder that they may fill."""

    python: Path
    folder: Path

    def process(self, contender: Contender, place: str, *, keep: bool = False) -> Process:
        folder = self.folder / place / contender.name
        return Process(contender.finder, python=self.python, folder=folder, embedder=contender.embedder, keep=keep)


Sets = Mapping[str, Sequence[Haystack]]


def run() -> list[Table]:
    data = os.environ.get("INMIND_DATA", "")
    sets = {name: found for name in SETS if data and (found := haystacks(Path(data), name))}
    if not sets:
        return [Table("evidence found", [], ["Nothing was measured: INMIND_DATA names no folder with conversations."])]
    peers = os.environ.get("INMIND_BENCH_PEERS", "1") != "0"
    python = environment() if peers else Path(sys.executable)
    there = embedders(python)
    with TemporaryDirectory() as folder:
        ground = Ground(python, Path(folder))
        contenders = [*_ours(there), FTS5, *(_peers(FOR_RECALL) if peers else [])]
        found = [_found(name, stacks, contenders, ground) for name, stacks in sets.items()]
        quick = [name for name in there if name == FOR_SPEED]
        contenders = [*_ours(quick), *HELD_TO, *(_peers(FOR_SPEED) if peers else [])]
        return [*found, _speed(sets, contenders, ground)]


BARE, FTS5 = Contender("bare", "bare"), Contender("fts5", "fts5")
HELD_TO = (BARE, FTS5)


def _ours(embedders: Sequence[str]) -> list[Contender]:
    return [Contender("inmind", "inmind"), *(Contender(f"+{name}", "inmind", name) for name in embedders)]


def _peers(embedder: str) -> list[Contender]:
    by_meaning = ("chroma", "langgraph", "mem0", "mem0+bm25")
    return [Contender("bm25s", "bm25s"), *(Contender(name, name, embedder) for name in by_meaning)]


# -- what is found -------------------------------------------------------------------------------------------------

METRICS = (*(f"@{depth}" for depth in DEPTHS), "MRR")


@dataclass(frozen=True, slots=True)
class Answer:
    """What one question came to, by metric."""

    kind: str
    figures: Mapping[str, float]


def _judged(question: Question, found: Sequence[int]) -> Answer:
    evidence = question.evidence
    recalls = {f"@{depth}": len(evidence & set(found[:depth])) / len(evidence) for depth in DEPTHS}
    first = next((1 / place for place, number in enumerate(found, start=1) if number in evidence), 0.0)
    return Answer(question.kind, {**recalls, "MRR": first})


def _answers(process: Process, stack: Haystack) -> Iterator[Answer]:
    process.open()
    process.fill(stack.sittings)
    for question in stack.questions:
        found, _ = process.ask("search", query=question.text, most=max(DEPTHS), at=question.at.isoformat())
        yield _judged(question, found)


def _found(name: str, stacks: Sequence[Haystack], contenders: Sequence[Contender], ground: Ground) -> Table:
    answers: dict[Contender, list[Answer]] = {}
    for each in contenders:
        with ground.process(each, name, keep=True) as process:
            answers[each] = [answer for stack in stacks for answer in _answers(process, stack)]
    matrix = Matrix(contenders)
    asked = Counter(question.kind for stack in stacks for question in stack.questions)
    for kind, number in {_ALL: asked.total(), **dict(sorted(asked.items()))}.items():
        for metric in METRICS:
            figures = {
                each: mean(answer.figures[metric] for answer in many if kind in (_ALL, answer.kind))
                for each, many in answers.items()
            }
            matrix.add(f"{kind} ({number}) {metric}", figures, _share)
    bars = [
        _at_least(each, mean(answer.figures["@10"] for answer in answers[each]), name)
        for each in contenders
        if each.ours
    ]
    said = sum(1 for stack in stacks for _ in stack.turns)
    title = f"{name}: evidence found for {asked.total():,} questions in {said:,} messages"
    return Table(title, [*bars, *_ahead(matrix, gt), *matrix.rows], list(_where_behind(matrix, gt)))


_ALL = "all"


def _at_least(ours: Contender, recall: float, name: str) -> Row:
    least = (LEAST_WITH_VECTORS if ours.embedder else LEAST_WITHOUT)[name]
    return Row(
        what=f"{ours.full_name}: recall@10",
        measured=f"{recall:.3f}",
        bar=f">= {least:.2f}",
        met=recall >= least,
        figures={"recall": recall},
    )


def _share(value: float) -> str:
    return f"{value:.3f}".removeprefix("0")


# -- how fast ------------------------------------------------------------------------------------------------------


def _speed(sets: Sets, contenders: Sequence[Contender], ground: Ground) -> Table:
    sizes = [int(size) for size in os.environ.get("INMIND_BENCH_SIZES", "").split(",") if size] or SIZES
    asked = [question.text for stacks in sets.values() for stack in stacks for question in stack.questions]
    questions = Random(11).sample(asked, min(QUESTIONS, len(asked)))
    matrix, searching, adding = Matrix(contenders), Race(), Race()
    for size in sizes:
        with ExitStack() as running:
            crowd = {each: running.enter_context(ground.process(each, f"{size}")) for each in contenders}
            searching, adding = _measured(sets, size, crowd, questions, matrix)
    ours = [each for each in contenders if each.ours]
    most = MOST_SEARCH if sizes[-1] == SIZES[-1] else None
    bars = [
        *(_against(searching, each, FTS5.name, f"search in {sizes[-1]:,}, p50", most) for each in ours),
        *(_against(adding, each, BARE.name, "a durable note", MOST_NOTE) for each in ours),
    ]
    slow = [f"{name} {len(taken)}" for name, taken in searching.samples.items() if len(taken) < len(questions)]
    notes = [
        "Times are milliseconds, and what is kept is MB, of the whole process and of its files. They take turns "
        "with the same question, each in a process of its own with one thread; time is taken in there, with the "
        "embedding. Add: one message, durable; bm25s makes its index anew. Bare: an insert, WAL, synchronous FULL.",
        f"Asked fewer than {len(questions)} questions in {sizes[-1]:,}, being slow: {', '.join(slow) or 'nobody'}.",
        *_where_behind(matrix, lt),
    ]
    return Table("search and add, by how much there is", [*bars, *_ahead(matrix, lt), *matrix.rows], notes)


def _measured(
    sets: Sets, size: int, crowd: Mapping[Contender, Process], questions: Sequence[str], matrix: Matrix
) -> tuple[Race, Race]:
    messages = _messages(sets)
    sittings = list(_sittings(islice(messages, size)))
    filled = {each: _filled(process, sittings) for each, process in crowd.items()}
    at = (sittings[-1].at + timedelta(days=1)).isoformat()
    asking = [{"query": question, "most": 10, "at": at} for question in questions]
    finders = {each: process for each, process in crowd.items() if each != BARE}
    _raced(finders, "search", asking[:_FEWEST])  # until everything that is read once has been read
    searching = _raced(finders, "search", asking)
    weights = {each: process.ask("weigh")[0] for each, process in finders.items()}
    adding = _raced(crowd, "add", [{"text": turn.line} for turn in islice(messages, ADDED)])
    for what, race in (("search", searching), ("add", adding)):
        for share, of in (("p50", race.median), ("p99", race.p99)):
            figures = {each: of(each.name) * 1e3 for each in crowd if each.name in race.samples}
            matrix.add(f"{what} {share}, {size:,}", figures, _number)
    for what in ("memory", "disk"):
        matrix.add(f"{what}, {size:,}", {each: weight[what] / 1e6 for each, weight in weights.items()}, _number)
    matrix.add(f"filled in seconds, {size:,}", {each: filled[each] for each in finders}, _number)
    return searching, adding


def _filled(process: Process, sittings: Sequence[Sitting]) -> float:
    process.open()
    return process.fill(sittings)


def _raced(crowd: Mapping[Contender, Process], do: str, asking: Sequence[Mapping[str, Any]]) -> Race:
    """Ours with what they are held to, and then the others: a big one leaves caches and disk busy for the next."""
    race = Race()
    near = {each: process for each, process in crowd.items() if each.ours or each in HELD_TO}
    far = {each: process for each, process in crowd.items() if each not in near}
    for some in (near, far):
        _take_turns(race, some, do, asking)
    return race


def _take_turns(race: Race, crowd: Mapping[Contender, Process], do: str, asking: Sequence[Mapping[str, Any]]) -> None:
    """In another order each time, so that nobody always comes after the same one."""
    spent, order, random = dict.fromkeys(crowd, 0.0), list(crowd), Random(3)
    for turn, asked in enumerate(asking):
        random.shuffle(order)
        for each in order:
            if turn < _FEWEST or spent[each] < _PATIENCE:
                _, took = crowd[each].ask(do, **asked)
                spent[each] += took
                race.enter(each.name, took)


def _against(race: Race, ours: Contender, other: str, what: str, most: float | None) -> Row:
    times = race.ratio(ours.name, other)
    return Row(
        what=f"{ours.full_name}: {what}, against {other}",
        measured=f"{times:.2f}x ({spoken(race.median(ours.name))} / {spoken(race.median(other))})",
        bar=f"<= {most:g}x" if most else "",
        met=times <= most if most else None,
        figures={"ratio": times, "seconds": race.median(ours.name), other: race.median(other)},
    )


def _messages(sets: Sets) -> Iterator[Turn]:
    """First what was said, in any order, and then without end what might have been, in equally frequent words."""
    random = Random(5)
    said = [turn for stacks in sets.values() for stack in stacks for turn in stack.turns]
    random.shuffle(said)
    short = [Turn(turn.role, turn.text[:_LONGEST], turn.name) for turn in said]
    yield from short
    sentences = [[sentence for sentence in _SENTENCE.split(turn.text) if sentence] for turn in short]
    pool = [sentence for of_one in sentences for sentence in of_one]
    while True:
        like = random.randrange(len(short))
        text = " ".join(random.choice(pool) for _ in sentences[like])
        yield Turn(short[like].role, text[:_LONGEST], short[like].name)


def _sittings(turns: Iterable[Turn]) -> Iterator[Sitting]:
    turns, day = iter(turns), datetime(2024, 1, 1, tzinfo=UTC)
    while portion := list(islice(turns, _SITTING)):
        yield Sitting(day, portion)
        day += timedelta(hours=6)


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


# -- side by side --------------------------------------------------------------------------------------------------


Better = Callable[[float, float], bool]


class Matrix:
    """A figure for each contender in one row, under their names."""

    def __init__(self, contenders: Sequence[Contender]) -> None:
        self.contenders = contenders
        self.figures: dict[str, Mapping[Contender, float]] = {}
        self.rows = [Row(what="", measured=self._beside({each: each.name for each in contenders}))]

    def add(self, what: str, figures: Mapping[Contender, float], show: Callable[[float], str]) -> None:
        self.figures[what] = figures
        shown = self._beside({each: show(figure) for each, figure in figures.items()})
        self.rows.append(Row(what=what, measured=shown, figures={each.name: it for each, it in figures.items()}))

    def _beside(self, cells: Mapping[Contender, str]) -> str:
        return " ".join(cells.get(each, "-").rjust(max(len(each.name), 6)) for each in self.contenders)

    def behind(self, ours: Contender, better: Better) -> dict[str, list[str]]:
        """Who is better than one of ours, and in which rows."""
        peers = [each for each in self.contenders if not each.ours and each != BARE]
        found = {
            peer.name: [what for what, row in self.figures.items() if peer in row and better(row[peer], row[ours])]
            for peer in peers
        }
        return {name: rows for name, rows in found.items() if rows}


def _ahead(matrix: Matrix, better: Better) -> Iterator[Row]:
    for ours in (each for each in matrix.contenders if each.ours):
        behind = {row for rows in matrix.behind(ours, better).values() for row in rows}
        yield Row(
            what=f"{ours.full_name}: behind nobody",
            measured=f"in {len(matrix.figures) - len(behind)} of {len(matrix.figures)} rows",
            bar="in all",
            met=not behind,
            figures={"behind": len(behind), "rows": len(matrix.figures)},
        )


def _where_behind(matrix: Matrix, better: Better) -> Iterator[str]:
    for ours in (each for each in matrix.contenders if each.ours):
        for name, rows in matrix.behind(ours, better).items():
            yield f"{name} is ahead of {ours.full_name} in: {'; '.join(rows)}."

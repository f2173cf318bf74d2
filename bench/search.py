"""Recall and speed of search, compared with FTS5 and peers.

All systems get the same conversations and questions in the same run: inmind without vectors and with each installed
embedder, plain SQLite FTS5, and peers, which the benchmark installs into a separate environment. Systems that need
vectors get those of MiniLM. Recall is the share of a question's evidence among the first hits, as a mean over
questions; MRR uses the first evidence within the first 20.

Speed is measured on messages of the three datasets, shortened, and then on random combinations of their sentences.
There all vectors are wordllama's, computed during the search, since a transformer would dominate the time.

The conversations are not part of this project: INMIND_DATA names the folder that contains locomo, longmemeval and beam;
without it nothing is measured. INMIND_BENCH_PEERS=0 omits the peers and installs nothing;
INMIND_BENCH_SIZES=1000,10000 sets the numbers of messages.
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

from bench.peers.process import Process, environment, installed_embedders
from bench.question_sets import SETS, ChatSession, Haystack, Question, Turn, load_haystacks
from bench.store import MAX_NOTE_RATIO
from bench.table import Row, Table
from bench.timing import Timings

MIN_RECALL_WITH_VECTORS = {"locomo": 0.77, "longmemeval": 0.73, "beam": 0.57}
MIN_RECALL_WITHOUT = {"locomo": 0.73, "longmemeval": 0.69, "beam": 0.50}
MAX_SEARCH_RATIO = 1.0
"""Against the bare FTS5 query, at the largest size: among few messages every query is fast enough."""

DEPTHS = (5, 10, 20)
SIZES = (1_000, 10_000, 100_000)
QUESTIONS = 200
ADDED = 200

RECALL_EMBEDDER, SPEED_EMBEDDER = "minilm", "wordllama"
_MAX_CHARACTERS = 400
_SESSION_MESSAGES = 250
_MAX_SECONDS = 30.0
"""For one setup and one size; a slower setup gets fewer questions."""
_MIN_QUESTIONS = 10
"""Questions for each setup, even if it is slow."""
_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")


@dataclass(frozen=True, slots=True)
class SearchSetup:
    """A search system, with or without an embedder."""

    name: str
    system: str
    embedder: str = ""

    @property
    def ours(self) -> bool:
        return self.system == "inmind"

    @property
    def full_name(self) -> str:
        return f"{self.system} with {self.embedder}" if self.embedder else f"{self.system} without vectors"


@dataclass(frozen=True, slots=True)
class Workspace:
    """The Python with the systems, and a folder for their files."""

    python: Path
    folder: Path

    def process(self, setup: SearchSetup, place: str, *, cache_vectors: bool = False) -> Process:
        folder = self.folder / place / setup.name
        return Process(
            setup.system, python=self.python, folder=folder, embedder=setup.embedder, cache_vectors=cache_vectors
        )


Sets = Mapping[str, Sequence[Haystack]]


def run() -> list[Table]:
    data = os.environ.get("INMIND_DATA", "")
    sets = {name: recall_tables for name in SETS if data and (recall_tables := load_haystacks(Path(data), name))}
    if not sets:
        return [Table("evidence found", [], ["Nothing was measured: INMIND_DATA names no folder with conversations."])]
    peers = os.environ.get("INMIND_BENCH_PEERS", "1") != "0"
    python = environment() if peers else Path(sys.executable)
    installed = installed_embedders(python)
    with TemporaryDirectory() as folder:
        workspace = Workspace(python, Path(folder))
        setups = [*_ours(installed), FTS5, *(_peers(RECALL_EMBEDDER) if peers else [])]
        recall_tables = [_recall_table(name, haystacks, setups, workspace) for name, haystacks in sets.items()]
        embedders = [name for name in installed if name == SPEED_EMBEDDER]
        setups = [*_ours(embedders), *BASELINES, *(_peers(SPEED_EMBEDDER) if peers else [])]
        return [*recall_tables, _speed(sets, setups, workspace)]


BARE, FTS5 = SearchSetup("bare", "bare"), SearchSetup("fts5", "fts5")
BASELINES = (BARE, FTS5)


def _ours(embedders: Sequence[str]) -> list[SearchSetup]:
    return [SearchSetup("inmind", "inmind"), *(SearchSetup(f"+{name}", "inmind", name) for name in embedders)]


def _peers(embedder: str) -> list[SearchSetup]:
    names = ("chroma", "langgraph", "mem0", "mem0+bm25")
    return [SearchSetup("bm25s", "bm25s"), *(SearchSetup(name, name, embedder) for name in names)]


# -- recall -------------------------------------------------------------------------------------------------

METRICS = (*(f"@{depth}" for depth in DEPTHS), "MRR")


@dataclass(frozen=True, slots=True)
class Score:
    """The metrics of one question."""

    kind: str
    figures: Mapping[str, float]


def _score(question: Question, numbers: Sequence[int]) -> Score:
    evidence = question.evidence
    recalls = {f"@{depth}": len(evidence & set(numbers[:depth])) / len(evidence) for depth in DEPTHS}
    first = next((1 / place for place, number in enumerate(numbers, start=1) if number in evidence), 0.0)
    return Score(question.kind, {**recalls, "MRR": first})


def _scores(process: Process, haystack: Haystack) -> Iterator[Score]:
    process.open()
    process.fill(haystack.chat_sessions)
    for question in haystack.questions:
        numbers, _ = process.ask("search", query=question.text, limit=max(DEPTHS), at=question.at.isoformat())
        yield _score(question, numbers)


def _recall_table(
    name: str, haystacks: Sequence[Haystack], setups: Sequence[SearchSetup], workspace: Workspace
) -> Table:
    scores_by_setup: dict[SearchSetup, list[Score]] = {}
    for setup in setups:
        with workspace.process(setup, name, cache_vectors=True) as process:
            scores_by_setup[setup] = [score for haystack in haystacks for score in _scores(process, haystack)]
    matrix = Matrix(setups)
    questions_by_kind = Counter(question.kind for haystack in haystacks for question in haystack.questions)
    for kind, number in {_ALL: questions_by_kind.total(), **dict(sorted(questions_by_kind.items()))}.items():
        for metric in METRICS:
            figures = {
                setup: mean(score.figures[metric] for score in scores if kind in (_ALL, score.kind))
                for setup, scores in scores_by_setup.items()
            }
            matrix.add(f"{kind} ({number}) {metric}", figures, _share)
    bars = [
        _recall_row(setup, mean(score.figures["@10"] for score in scores_by_setup[setup]), name)
        for setup in setups
        if setup.ours
    ]
    message_count = sum(1 for haystack in haystacks for _ in haystack.turns)
    title = f"{name}: evidence found for {questions_by_kind.total():,} questions in {message_count:,} messages"
    return Table(title, [*bars, *_rank_rows(matrix, gt), *matrix.rows], list(_rank_notes(matrix, gt)))


_ALL = "all"


def _recall_row(ours: SearchSetup, recall: float, name: str) -> Row:
    limit = (MIN_RECALL_WITH_VECTORS if ours.embedder else MIN_RECALL_WITHOUT)[name]
    return Row(
        what=f"{ours.full_name}: recall@10",
        measured=f"{recall:.3f}",
        bar=f">= {limit:.2f}",
        met=recall >= limit,
        figures={"recall": recall},
    )


def _share(value: float) -> str:
    return f"{value:.3f}".removeprefix("0")


# -- speed ------------------------------------------------------------------------------------------------------


def _speed(sets: Sets, setups: Sequence[SearchSetup], workspace: Workspace) -> Table:
    sizes = [int(size) for size in os.environ.get("INMIND_BENCH_SIZES", "").split(",") if size] or SIZES
    texts = [question.text for haystacks in sets.values() for haystack in haystacks for question in haystack.questions]
    questions = Random(11).sample(texts, min(QUESTIONS, len(texts)))
    matrix, searching, adding = Matrix(setups), Timings(), Timings()
    for size in sizes:
        with ExitStack() as running:
            processes = {setup: running.enter_context(workspace.process(setup, f"{size}")) for setup in setups}
            searching, adding = _measure_size(sets, size, processes, questions, matrix)
    ours = [setup for setup in setups if setup.ours]
    limit = MAX_SEARCH_RATIO if sizes[-1] == SIZES[-1] else None
    bars = [
        timings.ratio_row(f"{setup.full_name}: {what}, against {other}", setup.name, other, limit)
        for timings, what, other, limit in (
            (searching, f"search in {sizes[-1]:,}, p50", FTS5.name, limit),
            (adding, "a durable note", BARE.name, MAX_NOTE_RATIO),
        )
        for setup in ours
    ]
    slow = [f"{name} {len(taken)}" for name, taken in searching.samples.items() if len(taken) < len(questions)]
    notes = [
        "Times are in milliseconds, memory of the process and size of its files in MB. All get the same question in "
        "turn, each in a separate process with one thread; the time is taken there and includes the embedding. Add: "
        "one message, durable; bm25s rebuilds its index. Bare: an insert, WAL, synchronous FULL.",
        f"Fewer than {len(questions)} questions in {sizes[-1]:,}, because slow: {', '.join(slow) or 'none'}.",
        *_rank_notes(matrix, lt),
    ]
    return Table("search and add, by number of messages", [*bars, *_rank_rows(matrix, lt), *matrix.rows], notes)


def _measure_size(
    sets: Sets, size: int, processes: Mapping[SearchSetup, Process], questions: Sequence[str], matrix: Matrix
) -> tuple[Timings, Timings]:
    messages = _messages(sets)
    chat_sessions = list(_group_sessions(islice(messages, size)))
    fill_seconds = {setup: _fill(process, chat_sessions) for setup, process in processes.items()}
    at = (chat_sessions[-1].at + timedelta(days=1)).isoformat()
    requests = [{"query": question, "limit": 10, "at": at} for question in questions]
    searchers = {setup: process for setup, process in processes.items() if setup != BARE}
    _time_requests(searchers, "search", requests[:_MIN_QUESTIONS])  # warms the caches
    searching = _time_requests(searchers, "search", requests)
    sizes_by_setup = {setup: process.ask("measure_size")[0] for setup, process in searchers.items()}
    adding = _time_requests(processes, "add", [{"text": turn.line} for turn in islice(messages, ADDED)])
    for what, timings in (("search", searching), ("add", adding)):
        for share, of in (("p50", timings.median), ("p99", timings.p99)):
            figures = {setup: of(setup.name) * 1e3 for setup in processes if setup.name in timings.samples}
            matrix.add(f"{what} {share}, {size:,}", figures, _number)
    for what in ("memory", "disk"):
        matrix.add(
            f"{what}, {size:,}",
            {setup: sizes_of_setup[what] / 1e6 for setup, sizes_of_setup in sizes_by_setup.items()},
            _number,
        )
    matrix.add(f"filled in seconds, {size:,}", {setup: fill_seconds[setup] for setup in searchers}, _number)
    return searching, adding


def _fill(process: Process, chat_sessions: Sequence[ChatSession]) -> float:
    process.open()
    return process.fill(chat_sessions)


def _time_requests(processes: Mapping[SearchSetup, Process], do: str, requests: Sequence[Mapping[str, Any]]) -> Timings:
    """Time ours with the baselines, then the others: a large one keeps caches and disk busy."""
    timings = Timings()
    first = {setup: process for setup, process in processes.items() if setup.ours or setup in BASELINES}
    rest = {setup: process for setup, process in processes.items() if setup not in first}
    for group in (first, rest):
        _interleave(timings, group, do, requests)
    return timings


def _interleave(
    timings: Timings, processes: Mapping[SearchSetup, Process], do: str, requests: Sequence[Mapping[str, Any]]
) -> None:
    """In random order each time, so that no setup always runs after the same one."""
    spent, order, random = dict.fromkeys(processes, 0.0), list(processes), Random(3)
    for turn, request in enumerate(requests):
        random.shuffle(order)
        for setup in order:
            if turn < _MIN_QUESTIONS or spent[setup] < _MAX_SECONDS:
                _, took = processes[setup].ask(do, **request)
                spent[setup] += took
                timings.add_sample(setup.name, took)


def _messages(sets: Sets) -> Iterator[Turn]:
    """First the messages in random order, then endless combinations of their sentences."""
    random = Random(5)
    turns = [turn for haystacks in sets.values() for haystack in haystacks for turn in haystack.turns]
    random.shuffle(turns)
    short = [Turn(turn.role, turn.text[:_MAX_CHARACTERS], turn.name) for turn in turns]
    yield from short
    sentences = [[sentence for sentence in _SENTENCE.split(turn.text) if sentence] for turn in short]
    pool = [sentence for of_one in sentences for sentence in of_one]
    while True:
        like = random.randrange(len(short))
        text = " ".join(random.choice(pool) for _ in sentences[like])
        yield Turn(short[like].role, text[:_MAX_CHARACTERS], short[like].name)


def _group_sessions(turns: Iterable[Turn]) -> Iterator[ChatSession]:
    turns, day = iter(turns), datetime(2024, 1, 1, tzinfo=UTC)
    while batch := list(islice(turns, _SESSION_MESSAGES)):
        yield ChatSession(day, batch)
        day += timedelta(hours=6)


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


# -- comparison --------------------------------------------------------------------------------------------------


Better = Callable[[float, float], bool]


class Matrix:
    """Rows with one figure for each setup."""

    def __init__(self, setups: Sequence[SearchSetup]) -> None:
        self.setups = setups
        self.figures: dict[str, Mapping[SearchSetup, float]] = {}
        self.rows = [Row(what="", measured=self._align({setup: setup.name for setup in setups}))]

    def add(self, what: str, figures: Mapping[SearchSetup, float], show: Callable[[float], str]) -> None:
        self.figures[what] = figures
        cells = self._align({setup: show(figure) for setup, figure in figures.items()})
        self.rows.append(Row(what=what, measured=cells, figures={setup.name: it for setup, it in figures.items()}))

    def _align(self, cells: Mapping[SearchSetup, str]) -> str:
        return " ".join(cells.get(setup, "-").rjust(max(len(setup.name), 6)) for setup in self.setups)

    def better_peers(self, ours: SearchSetup, better: Better) -> dict[str, list[str]]:
        """Return the peers that are better than one of ours, with the rows."""
        peers = [setup for setup in self.setups if not setup.ours and setup != BARE]
        rows_by_peer = {
            peer.name: [what for what, row in self.figures.items() if peer in row and better(row[peer], row[ours])]
            for peer in peers
        }
        return {name: rows for name, rows in rows_by_peer.items() if rows}


def _rank_rows(matrix: Matrix, better: Better) -> Iterator[Row]:
    for ours in (setup for setup in matrix.setups if setup.ours):
        better_peers = {row for rows in matrix.better_peers(ours, better).values() for row in rows}
        yield Row(
            what=f"{ours.full_name}: at least as good as all peers",
            measured=f"in {len(matrix.figures) - len(better_peers)} of {len(matrix.figures)} rows",
            bar="in all",
            met=not better_peers,
            figures={"behind": len(better_peers), "rows": len(matrix.figures)},
        )


def _rank_notes(matrix: Matrix, better: Better) -> Iterator[str]:
    for ours in (setup for setup in matrix.setups if setup.ours):
        for name, rows in matrix.better_peers(ours, better).items():
            yield f"{name} is better than {ours.full_name} in: {'; '.join(rows)}."

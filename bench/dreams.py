"""Dreams: time, memory, cost for concurrent work, and the results of a month.

The month uses published conversations (see `question_sets`): every session is a day, each of its messages is a note of
the agent, and every day ends with a dream by rules. At the end each note is searched by its own words. For each
question it is checked if its evidence can be reached from MEMORY.md: as a line made from it, or by searching for the
keywords of a pointer.
"""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from statistics import mean, quantiles

from bench.question_sets import Haystack, load_haystacks
from bench.table import Row, Table
from inmind import Memory, Session
from inmind.core.events.base import Draft, Origin
from inmind.core.events.documents import DocumentWritten
from inmind.core.events.dreams import DreamCommitted, DreamStarted
from inmind.dreams.page.page import MAX_PAGE_CHARACTERS, Section, parse_page
from inmind.dreams.page.pointers import parse_pointer
from inmind.testing import ManualClock

NOTES, CRYSTALS = 1_000, 10_000
DREAMS = 4_400
DAYS = 30
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)

_WORDS = (
    "harbour ledger falcon copper meadow lantern compiler orchard glacier violin saddle ferry anvil mosaic thimble "
    "quarry beacon gazette walnut turbine cobalt prairie sonnet kettle rudder canyon bishop velvet marble tundra"
).split()


def run() -> list[Table]:
    tables = [_large_dream_table(), _concurrent_table(), _history_table()]
    data = os.environ.get("INMIND_DATA")
    if data and (haystacks := load_haystacks(Path(data), "locomo")):
        tables.append(_month_table(haystacks))
    return tables


# -- time and memory ---------------------------------------------------------------------------------


def _large_dream_table() -> Table:
    with tempfile.TemporaryDirectory() as home:
        _fill(Path(home))
        seconds, megabytes, done = _dream_in_process(Path(home))
    over = f"{NOTES:,} notes and {CRYSTALS:,} crystals"
    return Table(
        f"A dream by rules over {over}",
        [
            Row(
                what="seconds",
                measured=f"{seconds:.2f} s",
                bar="2 s",
                met=seconds <= 2,
                figures={"seconds": seconds},
            ),
            Row(
                what="memory of its process at most",
                measured=f"{megabytes:.0f} MB",
                bar="200 MB",
                met=megabytes <= 200,
                figures={"megabytes": megabytes},
            ),
        ],
        [f"In a separate process, with a current index, without an embedder: {done}."],
    )


def _fill(home: Path) -> None:
    random = Random(7)
    with Memory.open(home, embedder=None) as memory:
        session = memory.session("talk", resource="ada")
        for start in range(0, CRYSTALS, 100):
            session.add(
                [
                    {"role": ("user", "assistant")[n % 2], "content": _sentence(random, n)}
                    for n in range(start, start + 100)
                ]
            )
        for number in range(NOTES):
            session.note(_sentence(random, number), importance=round(random.uniform(0.3, 1.0), 2))
        memory.resource("ada").search("harbour")


def _sentence(random: Random, number: int) -> str:
    first, second, third, fourth = random.sample(_WORDS, 4)
    return f"The {first} of the {second} needs {number} {third}s before the {fourth} opens on day {number % 365}."


_DREAM = """
import resource, sys, time
from inmind import Memory
with Memory.open(sys.argv[1], embedder=None) as memory:
    memory.resource("ada").search("harbour")
    began = time.perf_counter()
    dream = memory.dream("ada")
    took = time.perf_counter() - began
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(took, most / 1024, f"{dream.status}, {len(dream.notes)} notes taken in", sep="\\t")
"""


def _dream_in_process(home: Path) -> tuple[float, float, str]:
    printed = subprocess.run([sys.executable, "-c", _DREAM, str(home)], check=True, capture_output=True, text=True)
    seconds, megabytes, done = printed.stdout.strip().split("\t")
    return float(seconds), float(megabytes), done


# -- cost for concurrent work -----------------------------------------------------------------


def _concurrent_table() -> Table:
    rows: list[Row] = []
    for location, limit in (("another process", 1.2), ("a thread of this one", 2.0)):
        with tempfile.TemporaryDirectory() as home:
            _fill(Path(home))
            idle, dreaming, dreams = _measure_p95(Path(home), location)
        ratio = dreaming / idle
        rows.append(
            Row(
                what=f"prepare, p95, while dreams run in {location}",
                measured=f"{ratio:.2f}x ({dreaming * 1e3:.2f} ms against {idle * 1e3:.2f} ms; {dreams} dreams)",
                bar=f"{limit:g}x",
                met=ratio <= limit,
                figures={"ratio": ratio, "quiet": idle, "dreaming": dreaming},
            )
        )
    note = (
        f"Repeated dreams over {NOTES:,} notes and {CRYSTALS:,} crystals, each undone; prepare with its commit, in "
        "a session of another resource, whose prompt no dream changes."
    )
    return Table("Prepare during dreams", rows, [note])


_DREAMS = """
import sys
from inmind import Memory
with Memory.open(sys.argv[1], embedder=None) as memory:
    print("ready", flush=True)
    sys.stdin.readline()
    while True:
        memory.dream("ada")
        memory.resource("ada").undo_dream()
        print("dreamt", flush=True)
"""


def _measure_p95(home: Path, location: str) -> tuple[float, float, int]:
    with Memory.open(home, embedder=None) as memory:
        session = memory.session("work", resource="ben", window=200_000)
        messages = [{"role": ("user", "assistant")[n % 2], "content": f"line {n} of the talk"} for n in range(99)]
        session.prepare(messages)
        idle = _p95(session, messages, 300)
        dreams = _ProcessDreams(home) if location == "another process" else _ThreadDreams(memory)
        with dreams:
            busy = _p95(session, messages, 300, until=lambda: dreams.count >= 2)
            return idle, busy, dreams.count


def _p95(session: Session, messages: list[dict[str, str]], calls: int, until: object = None) -> float:
    times: list[float] = []
    gc.collect()
    deadline = time.monotonic() + 60
    while len(times) < calls or (callable(until) and not until() and time.monotonic() < deadline):
        started = time.perf_counter()
        session.prepare(messages)
        times.append(time.perf_counter() - started)
        time.sleep(0.002)
    return quantiles(times, n=20)[-1]


class _ProcessDreams:
    def __init__(self, home: Path) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", _DREAMS, str(home)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.count = 0

    def __enter__(self) -> None:
        assert self._process.stdout is not None
        assert self._process.stdin is not None
        self._process.stdout.readline()
        self._process.stdin.write("go\n")
        self._process.stdin.flush()
        threading.Thread(target=self._follow, daemon=True).start()

    def _follow(self) -> None:
        assert self._process.stdout
        for _ in self._process.stdout:
            self.count += 1

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()


class _ThreadDreams:
    def __init__(self, memory: Memory) -> None:
        self._memory, self._stop, self.count = memory, threading.Event(), 0
        self._thread = threading.Thread(target=self._dream)

    def __enter__(self) -> None:
        self._thread.start()

    def _dream(self) -> None:
        while not self._stop.is_set():
            self._memory.dream("ada")
            self._memory.resource("ada").undo_dream()
            self.count += 1

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()


# -- many dreams --------------------------------------------------------------------------------------


def _history_table() -> Table:
    with tempfile.TemporaryDirectory() as home, Memory.open(home, embedder=None) as memory:
        resource = memory.resource("ada")
        middle = _add_dreams(memory)[DREAMS // 2]
        rows = [
            _history_row("dreams(limit=10)", 0.05, lambda: resource.dreams(limit=10)),
            _history_row("get_dream(number)", 0.05, lambda: resource.get_dream(middle)),
            _history_row("dreams(), with their pages", 1.0, resource.dreams),
        ]
    return Table(f"The list of {DREAMS:,} dreams", rows, ["Each dream wrote a page of 150 lines."])


def _history_row(what: str, limit: float, read: Callable[[], object]) -> Row:
    read()
    started = time.perf_counter()
    read()
    seconds = time.perf_counter() - started
    figures = {"seconds": seconds}
    return Row(what=what, measured=f"{seconds * 1e3:.1f} ms", bar=f"{limit:g} s", met=seconds <= limit, figures=figures)


def _add_dreams(memory: Memory) -> list[int]:
    """Store dreams as they are in the journal, many in each commit. Returns their numbers."""
    stream = memory._context.resource_stream("ada")  # pyright: ignore[reportPrivateUsage] -- real dreams take an hour
    page = "".join(f"- line {number} of the page\n" for number in range(150))
    numbers = range(1, 3 * DREAMS, 3)
    drafts = [draft for number in numbers for draft in _dream_drafts(stream.name, number, page)]
    for start in range(0, len(drafts), 300):
        stream.append(*drafts[start : start + 300])
    return [*numbers]


def _dream_drafts(stream: str, number: int, page: str) -> list[Draft]:
    return [
        Draft(payload=DreamStarted("asked", NOON.isoformat(), "rules", "bench"), origin=Origin.DREAM),
        Draft(payload=DreamCommitted(number, "rules", number, number), origin=Origin.DREAM),
        Draft(
            payload=DocumentWritten(path="MEMORY.md", text=f"{page}- dream {number}\n"),
            origin=Origin.DREAM,
            sources=(f"{stream}#{number + 1}",),
        ),
    ]


# -- a month ------------------------------------------------------------------------------------------------


def _month_table(haystacks: list[Haystack]) -> Table:
    months = [_dream_through(haystack) for haystack in haystacks]
    notes, lost = sum(month.notes for month in months), sum(month.lost for month in months)
    sizes = [size for month in months for size in month.sizes]
    evidence = [share for month in months for share in month.reached]
    on_page = [share for month in months for share in month.on_page]
    growth = [month.sizes[-1] / mean(month.sizes[len(month.sizes) // 2 :]) for month in months]
    over = sum(size > MAX_PAGE_CHARACTERS for size in sizes)
    return Table(
        f"A month of dreams by rules, {len(haystacks)} conversations of LoCoMo, one dream per session",
        [
            Row(
                what="notes that a search for their own words finds",
                measured=f"{1 - lost / notes:.1%} of {notes:,}",
                bar="100%",
                met=not lost,
                figures={"notes": notes, "lost": lost},
            ),
            Row(
                what="states over their budget",
                measured=f"{over} of {len(sizes)}",
                bar="0",
                met=not over,
                figures={"over": over},
            ),
            Row(
                what="size at the end against the second half's mean",
                measured=f"{mean(growth):.2f}x (largest {max(sizes):,} of {MAX_PAGE_CHARACTERS:,} characters)",
                bar="1.1x",
                met=mean(growth) <= 1.1,
                figures={"flat": mean(growth), "largest": max(sizes)},
            ),
            Row(
                what="evidence of questions reachable from MEMORY.md or its pointers",
                measured=f"{mean(evidence):.1%} of {len(evidence):,} questions' (on the page {mean(on_page):.1%})",
                figures={"reached": mean(evidence), "shown": mean(on_page)},
            ),
        ],
        ["Size curve of the first, in characters by day: " + " ".join(str(size) for size in months[0].sizes)],
    )


class _Month:
    def __init__(self, notes: int, lost: int, sizes: list[int], reached: list[float], on_page: list[float]) -> None:
        self.notes, self.lost, self.sizes, self.reached, self.on_page = notes, lost, sizes, reached, on_page


def _dream_through(haystack: Haystack) -> _Month:
    clock = ManualClock(NOON)
    with tempfile.TemporaryDirectory() as home, Memory.open(home, clock=clock, embedder=None) as memory:
        ids: list[str] = []
        sizes: list[int] = []
        texts: dict[str, str] = {}
        for day, chat_session in enumerate(haystack.chat_sessions):
            clock.now = NOON + timedelta(days=day * DAYS / len(haystack.chat_sessions))
            session = memory.session(f"day-{day}", resource="ada")
            for turn in chat_session.turns:
                note = session.note(turn.line, importance=0.5)
                ids.append(note.id)
                texts[note.id] = turn.line
                clock.advance(seconds=20)
            memory.dream("ada")
            sizes.append(len(session.read("MEMORY.md")))
        lost = sum(not _is_found(memory, text, id) for id, text in texts.items())
        session = memory.session("end", resource="ada")
        page = parse_page(session.read("MEMORY.md"))
        lines = session.resource_state.dreams.lines
        on_page = {source for line in lines.values() if line.section != Section.POINTERS for source in line.sources}
        reached = on_page | set(_reached_by_pointers(memory, page.entries(Section.POINTERS)))
        shares = [_share(question.evidence, ids, reached) for question in haystack.questions]
        shares_on_page = [_share(question.evidence, ids, on_page) for question in haystack.questions]
        return _Month(len(ids), lost, sizes, shares, shares_on_page)


def _is_found(memory: Memory, text: str, id: str) -> bool:
    hits = memory.resource("ada").search(text[:2_000], limit=10)
    return any(id == hit.crystal.id or id in hit.crystal.sources for hit in hits)


def _reached_by_pointers(memory: Memory, entries: tuple[str, ...]) -> Iterator[str]:
    for entry in entries:
        if pointer := parse_pointer(entry):
            for hit in memory.resource("ada").search(pointer.keywords, limit=10):
                yield from (hit.crystal.id, *hit.crystal.sources)


def _share(evidence: frozenset[int], ids: list[str], reached: set[str]) -> float:
    return sum(ids[place] in reached for place in evidence) / len(evidence)

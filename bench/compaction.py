"""What compaction keeps, what it costs and what it saves, on recorded runs and in windows that are too small for them.

Each run is played call by call. Of every prompt it is checked, from the request alone, that it fits its window, that no
call is parted from its result, and that what must survive stands in it; of every id that the agent then used, that it
stands there if it ever had. Prices are against full history: every message on every call, append-only, the best that a
provider's cache can meet and more than most models take.

The recordings are not part of this project: INMIND_DATA names the folder that holds taubench, tau2bench, sweagent and
beam, and without it only the times are measured. INMIND_BENCH_FULL plays all recordings of each file.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from itertools import count
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from time import sleep

from bench.conversations import Message, conversation, prose, questions
from bench.prepare import SETTLING, BareJournal
from bench.table import Row, Table
from bench.timing import Contender, Race, spoken
from inmind import Memory, Prompt, Session
from inmind.apps.replay import Recording, ReplayReport, join_recordings, read_recordings, replay, sum_reports
from inmind.core.events.codec import encode_payload
from inmind.core.tokens import SAFETY_MARGIN
from inmind.history.compaction.policy import COMPACTION_THRESHOLD, DEFAULT_POLICY, CompressionPolicy
from inmind.memory.session_opener import DEFAULT_RESERVE
from inmind.types import Rates

WINDOWS = (4_000, 8_000, 16_000)
SETS = ("taubench", "tau2bench", "sweagent")
FEW = 30
"""Recordings of each file, unless all are asked for."""

RATES = Rates()
WHEN_IT_PAYS = CompressionPolicy.when_it_pays(RATES)
ROOMY = 128_000

MOST_LONG = 0.2
MOST_JOINED = 0.5
MOST_SHORT = 1.15

MESSAGES = 2_000
MOST_COMPACTING = 0.050
"""Seconds, beside the commit."""
MOST_INJECTING = 0.010
PAGE = 5 * 1024

_COMPACTIONS = 12
_PROMPTS = 120


def run() -> list[Table]:
    folder = os.environ.get("INMIND_DATA", "")
    if not folder:
        note = "Nothing was replayed: INMIND_DATA names no folder with recordings."
        return [Table("compaction, in windows that are too small", [], [note]), _times()]
    return [_kept(Path(folder)), _prices(Path(folder)), _times()]


# -- what is kept --------------------------------------------------------------------------------------------------


def _kept(data: Path) -> Table:
    rows = [_whole(name, window, data) for name in SETS if (data / name).is_dir() for window in WINDOWS]
    return Table(
        "compaction, in windows that are too small",
        rows,
        (
            "Over: prompts with more tokens than the window takes less the room for an answer, counted anew from the "
            "request. Parted: calls and results that do not stand together. Lost: ids in the agent's calls that had "
            "been said and stand nowhere in its prompt. Missing: goals, rules, decisions and requests that had to be "
            "in a prompt and were not; no room: those of which the prompt itself says so. Unsent: calls for which no "
            "prompt could be made.",
        ),
    )


def _whole(name: str, window: int, data: Path) -> Row:
    report = sum_reports(replay(_recordings(data / name), window=window), name=name)
    faults = {
        "over": report.over_window,
        "parted": report.unpaired,
        "lost": report.ids.lost,
        "missing": len(report.missing),
        "no room": report.omitted,
        "unsent": report.memory.did_not_fit,
    }
    played = {
        "prompts": report.prompts,
        "ids": report.ids.known,
        "items": report.expected_items,
        "compactions": len(report.compactions),
        "lost_without": report.ids.lost_without_memory,
    }
    return Row(
        what=f"{name}, {window:>6,}: {report.prompts:,} prompts, {played['compactions']:,} compactions",
        measured=", ".join(f"{number} {fault}" for fault, number in faults.items()),
        bar="none",
        met=not any(faults.values()),
        figures={**faults, **played},
    )


# -- what it costs -------------------------------------------------------------------------------------------------


def _prices(data: Path) -> Table:
    return Table(
        "price with memory, against full history",
        list(_priced(data)),
        (
            f"Read {RATES.cached:g}, written {RATES.written:g}, past the cache {RATES.uncached:g}; uncached: all "
            "tokens at full price. When it pays: compacted as soon as the prices say that it is cheaper than to go on; "
            "only when full: as a session does by itself.",
        ),
    )


def _priced(data: Path) -> Iterator[Row]:
    if (data / "beam").is_dir():
        long = read_recordings(str(next((data / "beam").glob("*1M*"))))
        yield from _compared("beam, 1M tokens in 64,000", long, window=64_000, most=MOST_LONG)
    if (data / "sweagent").is_dir():
        one = join_recordings(list(_recordings(data / "sweagent")), name="sweagent")
        yield from _compared("sweagent as one session in 16,000", [one], window=16_000, most=MOST_JOINED)
    for name in SETS:
        if (data / name).is_dir():
            for offered in (False, True):
                played = replay(_recordings(data / name), window=ROOMY, memory_tools=offered)
                report = sum_reports(played, name=name)
                what = "  with memory's tools offered" if offered else f"{name}, which fits {ROOMY:,}"
                yield _price(what, report, most=None if offered else MOST_SHORT)


def _compared(what: str, recordings: list[Recording], *, window: int, most: float) -> Iterator[Row]:
    pays = sum_reports(replay(recordings, window=window, compression=WHEN_IT_PAYS), name=what)
    yield _price(f"{what}: when it pays", pays, most=most)
    full = sum_reports(replay(recordings, window=window, compression=DEFAULT_POLICY), name=what)
    yield _price("  only when full", full)


def _price(what: str, report: ReplayReport, *, most: float | None = None) -> Row:
    cached = report.price_ratio(RATES, against=report.full) or 0.0
    uncached = report.token_ratio(against=report.full) or 0.0
    compacted = f", {len(report.compactions)} compactions" if report.compactions else ""
    return Row(
        what=what,
        measured=f"{cached:.2f}x (uncached {uncached:.2f}x{compacted})",
        bar=f"<= {most:g}x" if most else "",
        met=cached <= most if most else None,
        figures={"cached": cached, "uncached": uncached, "compactions": len(report.compactions)},
    )


def _recordings(folder: Path) -> Iterable[Recording]:
    limit = None if os.environ.get("INMIND_BENCH_FULL") else FEW
    for path in sorted(folder.glob("*.json.zst")):
        yield from read_recordings(str(path), limit=limit)


# -- how long it takes ---------------------------------------------------------------------------------------------


def _times() -> Table:
    return Table(
        f"compaction of {MESSAGES:,} messages, and an overview of {PAGE // 1024} KB, in time",
        [*_compacting(), _injecting()],
        (
            "The window is full with the last message: prepare compacts, archives and commits. Of that, compaction is "
            "what it takes longer than a prepare that has to lay out as long a history anew, since the host dropped "
            "its first turn. Commit: a bare one of the same bytes, as for prepare. Injection: prepare with the page in "
            "the prompt, less prepare with none, each with its commit. Medians, taking turns.",
        ),
    )


def _compacting() -> list[Row]:
    race = Race()
    with TemporaryDirectory() as folder, Memory.open(Path(folder) / "home") as memory:
        bare = BareJournal(Path(folder) / "bare.db")
        race.run(_overflowing(memory, bare), repetitions=_COMPACTIONS)
        bare.close()
    whole, anew, commit = race.median("compacting"), race.median("anew"), race.median("commit")
    took, allowed = whole - anew, MOST_COMPACTING + commit
    return [
        Row(
            what=f"fallback compaction of {MESSAGES:,} messages",
            measured=f"{took / allowed:.2f}x ({spoken(took)} / {spoken(allowed)})",
            bar=f"<= {spoken(MOST_COMPACTING)} + commit",
            met=took <= allowed,
            figures={"seconds": took, "commit": commit},
        ),
        Row(
            what="  the whole prepare that does it",
            measured=spoken(whole),
            figures={"seconds": whole, "anew": anew, "p95": race.p95("compacting")},
        ),
    ]


def _overflowing(memory: Memory, bare: BareJournal) -> dict[str, Contender]:
    """Each time another session, whose window is as good as full of the same history."""
    history, numbers = conversation(MESSAGES), count()
    window = _just_full(memory, history)
    session: Session | None = None
    prompt: Prompt | None = None
    seen, stored = 0, list[str]()

    def fill() -> None:
        nonlocal session, seen
        session = memory.session(f"full-{next(numbers)}", window=window, cwd="/bench")
        session.prepare(history)
        seen = session.state.seq
        sleep(SETTLING)

    def overflow() -> None:
        nonlocal prompt
        assert session is not None
        prompt = session.prepare([*history, *_A_LITTLE_MORE])

    def note_what_was_stored() -> None:
        assert session is not None
        assert prompt is not None
        if not prompt.report.compacted:
            raise RuntimeError("nothing was compacted: there is nothing to measure")
        stored[:] = [encode_payload(event.payload) for event in session.events(after=seen)]

    roomy: Session | None = None

    def fill_another() -> None:
        nonlocal roomy
        roomy = memory.session(f"roomy-{next(numbers)}", window=2 * window, cwd="/bench")
        roomy.prepare(history)
        sleep(SETTLING)

    def lay_out() -> None:
        assert roomy is not None
        roomy.prepare([*history[next_turn:], *_A_LITTLE_MORE])

    next_turn = next(place for place, message in enumerate(history[1:], start=1) if message["role"] == "user")
    return {
        "anew": Contender(lay_out, before=fill_another),
        "compacting": Contender(overflow, before=fill),
        "commit": Contender(lambda: bare.commit(stored), before=note_what_was_stored),
    }


_A_LITTLE_MORE: list[Message] = [
    {"role": "assistant", "content": "Done."},
    {"role": "user", "content": prose(Random(19), 20_000)},
]


def _just_full(memory: Memory, history: list[Message]) -> int:
    """A window that the history fills to just below where it is compacted."""
    used = memory.session("measured", window=4_000_000, cwd="/bench").prepare(history).report.tokens_used
    return DEFAULT_RESERVE + int(used / (COMPACTION_THRESHOLD - 0.01) / (1 - SAFETY_MARGIN))


def _injecting() -> Row:
    race = Race()
    with TemporaryDirectory() as folder, Memory.open(folder) as memory:
        with_page = _asking(memory, "with", page=prose(Random(23), PAGE))
        race.run({"with": with_page, "without": _asking(memory, "without", page="")}, repetitions=_PROMPTS)
    took = race.median("with") - race.median("without")
    return Row(
        what=f"injection of an overview of {PAGE // 1024} KB",
        measured=f"{took / MOST_INJECTING:.2f}x ({1e3 * took:.2f} ms / {spoken(MOST_INJECTING)})",
        bar=f"<= {spoken(MOST_INJECTING)}",
        met=took <= MOST_INJECTING,
        figures={"seconds": took, "with": race.median("with"), "without": race.median("without")},
    )


def _asking(memory: Memory, id: str, *, page: str) -> Contender:
    session = memory.session(id, cwd="/bench")
    if page:
        session.write("overview.md", f"# Working memory\n\n## Known facts\n\n- {page}\n")
    host, new = conversation(100), questions()
    session.prepare(host)
    sleep(SETTLING)
    return Contender(lambda: session.prepare(host), before=lambda: host.append(next(new)))

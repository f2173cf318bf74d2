"""Retention, price and time of compaction, on recorded runs in windows that are too small.

Each run is replayed call by call. Every prompt is checked, from the request alone: it fits its window, no call is
separated from its result, and all retained items are in it. Every id that the agent then used must be in the prompt if
it was mentioned before. Prices are relative to full history: every message in every call, append-only, which is the
best case for a provider's cache and more than most models accept.

The recordings are not part of this project: INMIND_DATA names the folder that contains taubench, tau2bench, sweagent
and beam; without it only the times are measured. INMIND_BENCH_FULL replays all recordings of each file.
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
from bench.prepare import SETTLE_SECONDS, BareJournal
from bench.table import Row, Table
from bench.timing import TimedCall, Timings, format_duration
from inmind import Memory, Prompt, Session
from inmind.apps.replay import Recording, ReplayReport, join_recordings, read_recordings, replay, sum_reports
from inmind.core.events import encode_payload
from inmind.history.compaction.policy import COMPACTION_THRESHOLD, DEFAULT_POLICY, CompressionPolicy
from inmind.memory.session_opener import DEFAULT_RESERVE
from inmind.types import Rates

WINDOWS = (4_000, 8_000, 16_000)
SETS = ("taubench", "tau2bench", "sweagent")
RECORDINGS_PER_FILE = 30
"""Unless INMIND_BENCH_FULL is set."""

RATES = Rates()
WHEN_IT_PAYS = CompressionPolicy.when_it_pays(RATES)
LARGE_WINDOW = 128_000

MAX_LONG_RATIO = 0.1
MAX_JOINED_RATIO = 0.45
MAX_SHORT_RATIO = 1.10
"""With the memory tool, as sessions offer it."""

MESSAGES = 2_000
MAX_COMPACTION_SECONDS = 0.050
"""Without the commit."""
MAX_INJECTION_SECONDS = 0.010
PAGE_BYTES = 5 * 1024

_COMPACTIONS = 12
_PROMPTS = 120


def run() -> list[Table]:
    folder = os.environ.get("INMIND_DATA", "")
    if not folder:
        note = "Nothing was replayed: INMIND_DATA names no folder with recordings."
        return [Table("compaction, in windows that are too small", [], [note]), _time_table()]
    return [_retention_table(Path(folder)), _price_table(Path(folder)), _time_table()]


# -- retention --------------------------------------------------------------------------------------------------


def _retention_table(data: Path) -> Table:
    rows = [_retention_row(name, window, data) for name in SETS if (data / name).is_dir() for window in WINDOWS]
    return Table(
        "compaction, in windows that are too small",
        rows,
        (
            "Over: prompts with more tokens than the window without the reserve, counted from the request. Parted: "
            "calls separated from their results. Lost: ids in the agent's calls that had been mentioned and are not in "
            "the prompt. Missing: goals, rules, decisions and requests that should be in a prompt and are not; no "
            "room: those that the prompt reports as omitted. Unsent: calls without a prompt that fits.",
        ),
    )


def _retention_row(name: str, window: int, data: Path) -> Row:
    report = sum_reports(replay(_recordings(data / name), window=window), name=name)
    ids = report.id_counts()
    faults = {
        "over": report.over_window,
        "parted": report.unpaired,
        "lost": ids["lost"],
        "missing": len(report.missing),
        "no room": report.omitted,
        "unsent": report.memory.did_not_fit,
    }
    counts = {
        "prompts": report.prompts,
        "ids": ids["known"],
        "items": report.expected_items,
        "compactions": len(report.compacted),
        "lost_without": ids["lost_without_memory"],
    }
    return Row(
        what=f"{name}, {window:>6,}: {report.prompts:,} prompts, {counts['compactions']:,} compactions",
        measured=", ".join(f"{number} {fault}" for fault, number in faults.items()),
        bar="none",
        met=not any(faults.values()),
        figures={**faults, **counts},
    )


# -- price -------------------------------------------------------------------------------------------------


def _price_table(data: Path) -> Table:
    return Table(
        "price with memory, against full history",
        list(_price_rows(data)),
        (
            f"Read {RATES.cached:g}, written {RATES.written:g}, not cached {RATES.uncached:g}; uncached: all "
            "tokens at full price. When it pays: compacted as soon as that is cheaper; only when full: the default of "
            "a session.",
        ),
    )


def _price_rows(data: Path) -> Iterator[Row]:
    if (data / "beam").is_dir():
        long = read_recordings(str(next((data / "beam").glob("*1M*"))))
        yield from _policy_rows("beam, 1M tokens in 64,000", long, window=64_000, limit=MAX_LONG_RATIO)
    if (data / "sweagent").is_dir():
        joined = join_recordings(list(_recordings(data / "sweagent")), name="sweagent")
        yield from _policy_rows("sweagent as one session in 16,000", [joined], window=16_000, limit=MAX_JOINED_RATIO)
    for name in SETS:
        if (data / name).is_dir():
            for tools_offered in (True, False):
                reports = replay(_recordings(data / name), window=LARGE_WINDOW, memory_tools=tools_offered)
                report = sum_reports(reports, name=name)
                what = f"{name}, which fits {LARGE_WINDOW:,}" if tools_offered else "  without the memory tool"
                yield _price_row(what, report, limit=MAX_SHORT_RATIO if tools_offered else None)


def _policy_rows(what: str, recordings: list[Recording], *, window: int, limit: float) -> Iterator[Row]:
    pays = sum_reports(replay(recordings, window=window, compression=WHEN_IT_PAYS), name=what)
    yield _price_row(f"{what}: when it pays", pays, limit=limit)
    full = sum_reports(replay(recordings, window=window, compression=DEFAULT_POLICY), name=what)
    yield _price_row("  only when full", full)


def _price_row(what: str, report: ReplayReport, *, limit: float | None = None) -> Row:
    cached = report.price_ratio(RATES, against=report.full) or 0.0
    uncached = report.token_ratio(against=report.full) or 0.0
    compacted = f", {len(report.compacted)} compactions" if report.compacted else ""
    return Row(
        what=what,
        measured=f"{cached:.2f}x (uncached {uncached:.2f}x{compacted})",
        bar=f"<= {limit:g}x" if limit else "",
        met=cached <= limit if limit else None,
        figures={"cached": cached, "uncached": uncached, "compactions": len(report.compacted)},
    )


def _recordings(folder: Path) -> Iterable[Recording]:
    limit = None if os.environ.get("INMIND_BENCH_FULL") else RECORDINGS_PER_FILE
    for path in sorted(folder.glob("*.json.zst")):
        yield from read_recordings(str(path), limit=limit)


# -- time ---------------------------------------------------------------------------------------------


def _time_table() -> Table:
    return Table(
        f"compaction of {MESSAGES:,} messages, and an overview of {PAGE_BYTES // 1024} KB, in time",
        [*_compaction_rows(), _injection_row()],
        (
            "The last message fills the window: prepare compacts, archives and commits. The time of compaction is the "
            "difference to a prepare that rebuilds a history of the same length because the host dropped its first "
            "turn. Commit: a bare one of the same bytes, as for prepare. Injection: prepare with the page in the "
            "prompt, minus prepare without it, each with its commit. Medians, interleaved.",
        ),
    )


def _compaction_rows() -> list[Row]:
    timings = Timings()
    with TemporaryDirectory() as folder, Memory.open(Path(folder) / "home") as memory:
        bare = BareJournal(Path(folder) / "bare.db")
        timings.run(_compaction_calls(memory, bare), repetitions=_COMPACTIONS)
        bare.close()
    compacting, rebuilding, commit = timings.median("compacting"), timings.median("rebuild"), timings.median("commit")
    took, allowed = compacting - rebuilding, MAX_COMPACTION_SECONDS + commit
    return [
        Row(
            what=f"fallback compaction of {MESSAGES:,} messages",
            measured=f"{took / allowed:.2f}x ({format_duration(took)} / {format_duration(allowed)})",
            bar=f"<= {format_duration(MAX_COMPACTION_SECONDS)} + commit",
            met=took <= allowed,
            figures={"seconds": took, "commit": commit},
        ),
        Row(
            what="  the whole prepare with it",
            measured=format_duration(compacting),
            figures={"seconds": compacting, "rebuild": rebuilding, "p95": timings.p95("compacting")},
        ),
    ]


def _compaction_calls(memory: Memory, bare: BareJournal) -> dict[str, TimedCall]:
    """Each call uses a new session whose window is nearly full with the same history."""
    history, numbers = conversation(MESSAGES), count()
    window = _full_window(memory, history)
    session: Session | None = None
    prompt: Prompt | None = None
    seen, stored = 0, list[str]()

    def fill() -> None:
        nonlocal session, seen
        session = memory.session(f"full-{next(numbers)}", window=window, cwd="/bench")
        session.prepare(history)
        seen = session.state.seq
        sleep(SETTLE_SECONDS)

    def overflow() -> None:
        nonlocal prompt
        assert session is not None
        prompt = session.prepare([*history, *_LAST_MESSAGES])

    def collect_stored_events() -> None:
        assert session is not None
        assert prompt is not None
        if not prompt.report.compacted:
            raise RuntimeError("nothing was compacted: nothing can be measured")
        stored[:] = [encode_payload(event.payload) for event in session.events(after=seen)]

    larger_session: Session | None = None

    def fill_larger() -> None:
        nonlocal larger_session
        larger_session = memory.session(f"larger-{next(numbers)}", window=2 * window, cwd="/bench")
        larger_session.prepare(history)
        sleep(SETTLE_SECONDS)

    def rebuild() -> None:
        assert larger_session is not None
        larger_session.prepare([*history[next_turn:], *_LAST_MESSAGES])

    next_turn = next(place for place, message in enumerate(history[1:], start=1) if message["role"] == "user")
    return {
        "rebuild": TimedCall(rebuild, before=fill_larger),
        "compacting": TimedCall(overflow, before=fill),
        "commit": TimedCall(lambda: bare.commit(stored), before=collect_stored_events),
    }


_LAST_MESSAGES: list[Message] = [
    {"role": "assistant", "content": "Done."},
    {"role": "user", "content": prose(Random(19), 20_000)},
]


def _full_window(memory: Memory, history: list[Message]) -> int:
    """Return a window that the history fills to just below the compaction threshold."""
    used = memory.session("measured", window=4_000_000, cwd="/bench").prepare(history).report.tokens_used
    return DEFAULT_RESERVE + int(used / (COMPACTION_THRESHOLD - 0.01))


def _injection_row() -> Row:
    timings = Timings()
    with TemporaryDirectory() as folder, Memory.open(folder) as memory:
        with_page = _prepare_call(memory, "with", page=prose(Random(23), PAGE_BYTES))
        timings.run({"with": with_page, "without": _prepare_call(memory, "without", page="")}, repetitions=_PROMPTS)
    took = timings.median("with") - timings.median("without")
    return Row(
        what=f"injection of an overview of {PAGE_BYTES // 1024} KB",
        measured=f"{took / MAX_INJECTION_SECONDS:.2f}x "
        f"({1e3 * took:.2f} ms / {format_duration(MAX_INJECTION_SECONDS)})",
        bar=f"<= {format_duration(MAX_INJECTION_SECONDS)}",
        met=took <= MAX_INJECTION_SECONDS,
        figures={"seconds": took, "with": timings.median("with"), "without": timings.median("without")},
    )


def _prepare_call(memory: Memory, id: str, *, page: str) -> TimedCall:
    session = memory.session(id, cwd="/bench")
    if page:
        session.write("overview.md", f"# Working memory\n\n## Known facts\n\n- {page}\n")
    messages, new = conversation(100), questions()
    session.prepare(messages)
    sleep(SETTLE_SECONDS)
    return TimedCall(lambda: session.prepare(messages), before=lambda: messages.append(next(new)))

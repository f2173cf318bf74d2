"""Act 4: a process dies during a write, and the next one finds all acknowledged notes.

The crash is real: see `crash_child`. Acknowledged notes are those that the child has printed before it died.
"""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from time import perf_counter

from inmind.apps.demo import crash_child
from inmind.apps.demo.script import DemoAct, DemoContext, label_line
from inmind.apps.doctor import DoctorReport, Verdict, run_checks
from inmind.apps.signals import handle_signals
from inmind.core.frozen import frozen
from inmind.documents.document import NOTES_PAGE_PATH
from inmind.documents.notes_page import parse_notes
from inmind.memory.memory import Memory

TITLE = "A crash: a process is killed during a write"

TIMEOUT_SECONDS = 60
"""Time limit of the child process, also on a slow disk."""


@frozen(kw_only=True)
class RecoveryResult:
    """State that the next process finds."""

    notes: Sequence[str]
    milliseconds: float
    """Time until the session was open again."""
    accepts_writes: bool
    """Another note can be saved."""
    report: DoctorReport

    @property
    def is_intact(self) -> bool:
        return self.report.verdict is not Verdict.TROUBLE


def play(context: DemoContext) -> DemoAct:
    home = context.folder / "crashed"
    child = _run_child(home)
    killed = child.returncode == -signal.SIGKILL
    acknowledged = [crash_child.note_text(int(number)) for number in child.stdout.split()]
    recovered = _reopen(home)
    lost = [text for text in acknowledged if text not in recovered.notes]
    partial = [
        text
        for text in recovered.notes
        if text not in acknowledged and text != crash_child.note_text(len(acknowledged) + 1)
    ]
    end = "SIGKILL, with half a page of another note in the log" if killed else f"nothing: {_last_line(child.stderr)}"
    return DemoAct(
        lines=[
            label_line("safe", f"{len(acknowledged)} notes, each acknowledged before the next one"),
            label_line("killed by", end),
            label_line("back", f"in {recovered.milliseconds:.0f} ms, without manual repair"),
            label_line(
                "found",
                f"{len(acknowledged) - len(lost)} of {len(acknowledged)} acknowledged; incomplete: {len(partial)}",
            ),
            label_line("doctor", _doctor_text(recovered.report)),
        ],
        facts={
            "killed": killed,
            "acknowledged": len(acknowledged),
            "found": len(acknowledged) - len(lost),
            "lost": lost,
            "half": partial,
            "milliseconds": recovered.milliseconds,
            "troubles": [finding.message for finding in recovered.report.with_verdict(Verdict.TROUBLE)],
        },
        promises={
            "the process dies in the middle of a write": killed and len(acknowledged) == crash_child.NOTE_COUNT,
            "every acknowledged note is found": bool(acknowledged) and not lost,
            "no note is incomplete": not partial,
            "the home is intact and accepts notes": recovered.is_intact and recovered.accepts_writes,
        },
    )


def _run_child(home: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", crash_child.__name__, str(home)]
    received: list[int] = []
    with ExitStack() as handlers:
        # Without this, a signal during Popen would leave the child running without a parent.
        handlers.enter_context(handle_signals(lambda number, _: received.append(number), signal.SIGINT, signal.SIGTERM))
        with subprocess.Popen(  # noqa: S603 -- this Python and a module of this package
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,  # Ctrl-C reaches only this process, which then kills the child
        ) as process:
            try:
                handlers.close()
                for number in received:
                    signal.raise_signal(number)
                stdout, stderr = process.communicate(timeout=TIMEOUT_SECONDS)
            except BaseException:
                process.kill()
                raise
    return subprocess.CompletedProcess(command, process.returncode, stdout, stderr)


def _last_line(stderr: str) -> str:
    return stderr.strip().rpartition("\n")[2]


def _reopen(home: Path) -> RecoveryResult:
    started = perf_counter()
    with Memory.open(home, embedder=None) as memory:
        session = memory.session(crash_child.SESSION)
        milliseconds = 1000 * (perf_counter() - started)
        notes = [note.text for note in parse_notes(session.resource_state.documents.text(NOTES_PAGE_PATH))]
        accepts_writes = bool(session.note("Here again.").id)
    report = run_checks(home, online=False, embedder=None)
    return RecoveryResult(notes=notes, milliseconds=milliseconds, accepts_writes=accepts_writes, report=report)


def _doctor_text(report: DoctorReport) -> str:
    if troubles := report.with_verdict(Verdict.TROUBLE):
        return "; ".join(finding.message for finding in troubles)
    checked = {finding.check: finding.message for finding in report.findings}
    return f"database: {checked['database']}; events: {checked['events']}"

"""Act 4: a process dies during a write, and the next one finds all acknowledged notes.

The crash is real: see `crash_child`. Acknowledged notes are those that the child has printed before it died.
"""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from time import perf_counter

from inmind.apps.demo import crash_child
from inmind.apps.demo.command import DemoAct, DemoContext, label_line, saved_notes
from inmind.apps.doctor import Verdict, run_checks
from inmind.apps.signals import InterruptHandler
from inmind.memory.memory import Memory

TITLE = "A crash: a process is killed during a write"

TIMEOUT_SECONDS = 60
"""Time limit of the child process, also on a slow disk."""


def play(context: DemoContext) -> DemoAct:
    home = context.folder / "crashed"
    child = _run_child(home)
    is_killed = child.returncode == -signal.SIGKILL
    acknowledged = [crash_child.note_text(int(number)) for number in child.stdout.split()]
    started = perf_counter()
    with Memory.open(home, embedder=None) as memory:
        session = memory.session(crash_child.SESSION)
        milliseconds = 1000 * (perf_counter() - started)
        notes = saved_notes(session)
        accepts_writes = bool(session.note("Here again.").id)
    report = run_checks(home, online=False, embedder=None)
    troubles = [finding.message for finding in report.with_verdict(Verdict.TROUBLE)]
    checked = {finding.check: finding.message for finding in report.findings}
    lost = [text for text in acknowledged if text not in notes]
    next_note = crash_child.note_text(len(acknowledged) + 1)
    partial = [text for text in notes if text not in acknowledged and text != next_note]
    error = child.stderr.strip().rpartition("\n")[2]
    cause = "SIGKILL, with half a page of another note in the log" if is_killed else f"nothing: {error}"
    count = f"{len(acknowledged) - len(lost)} of {len(acknowledged)} acknowledged; incomplete: {len(partial)}"
    health = f"database: {checked['database']}; events: {checked.get('events')}"
    return DemoAct(
        lines=[
            label_line("safe", f"{len(acknowledged)} notes, each acknowledged before the next one"),
            label_line("killed by", cause),
            label_line("back", f"in {milliseconds:.0f} ms, without manual repair"),
            label_line("found", count),
            label_line("doctor", "; ".join(troubles) or health),
        ],
        facts={
            "killed": is_killed,
            "acknowledged": len(acknowledged),
            "found": len(acknowledged) - len(lost),
            "lost": lost,
            "half": partial,
            "milliseconds": milliseconds,
            "troubles": troubles,
        },
        promises={
            "the process dies in the middle of a write": is_killed and len(acknowledged) == crash_child.NOTE_COUNT,
            "every acknowledged note is found": bool(acknowledged) and not lost,
            "no note is incomplete": not partial,
            "the home is intact and accepts notes": not troubles and accepts_writes,
        },
    )


def _run_child(home: Path) -> subprocess.CompletedProcess[str]:
    """Run the child to its end; an interrupted one is killed."""
    interrupts = InterruptHandler()  # a signal during Popen would leave the child running without a parent
    with (
        interrupts.install(),
        subprocess.Popen(  # noqa: S603 -- this Python and a module of this package
            [sys.executable, "-m", crash_child.__name__, str(home)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,  # Ctrl-C reaches only this process, which then kills the child
        ) as process,
    ):
        try:
            with interrupts.interruptible():
                output = process.communicate(timeout=TIMEOUT_SECONDS)
        except BaseException:
            process.kill()
            raise
    return subprocess.CompletedProcess(process.args, process.returncode, *output)

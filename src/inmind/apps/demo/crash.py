"""The fourth act: a process dies in the middle of a write, and the next one finds all that was acknowledged.

Nothing about the death is pretended: see `doomed`. What was acknowledged is what that process had said, and this one
had heard, before it died.
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
from inmind.apps.demo.script import Act, Stage, labelled
from inmind.apps.doctor import DoctorReport, Verdict, run_checks
from inmind.apps.signals import handle_signals
from inmind.core.frozen import frozen
from inmind.documents.document import NOTES_PAGE_PATH
from inmind.documents.notes_page import parse_notes
from inmind.memory.memory import Memory

TITLE = "A crash: a process kills itself in the middle of a write"

SECONDS = 60
"""For a process that takes a few dozen notes, also on a slow disk."""


@frozen(kw_only=True)
class Aftermath:
    """What the next process meets."""

    found: Sequence[str]
    milliseconds: float
    """Until the session was open again."""
    goes_on: bool
    """It takes another note."""
    examined: DoctorReport

    @property
    def sound(self) -> bool:
        return self.examined.verdict is not Verdict.TROUBLE


def play(stage: Stage) -> Act:
    home = stage.folder / "crashed"
    died = _died(home)
    killed = died.returncode == -signal.SIGKILL
    told = [crash_child.note(int(number)) for number in died.stdout.split()]
    after = _came_back(home)
    lost = [text for text in told if text not in after.found]
    half = [text for text in after.found if text not in told and text != crash_child.note(len(told) + 1)]
    end = "SIGKILL, with half a page of one more note in the log" if killed else f"nothing: {_last(died.stderr)}"
    return Act(
        lines=[
            labelled("safe", f"{len(told)} notes, each acknowledged before the next was begun"),
            labelled("killed by", end),
            labelled("back", f"in {after.milliseconds:.0f} ms, with nothing to be done by hand"),
            labelled("found", f"{len(told) - len(lost)} of {len(told)} acknowledged notes; half ones: {len(half)}"),
            labelled("doctor", _diagnosis(after.examined)),
        ],
        facts={
            "killed": killed,
            "acknowledged": len(told),
            "found": len(told) - len(lost),
            "lost": lost,
            "half": half,
            "milliseconds": after.milliseconds,
            "troubles": [finding.message for finding in after.examined.with_verdict(Verdict.TROUBLE)],
        },
        promises={
            "the process dies in the middle of a write": killed and len(told) == crash_child.TOLD,
            "everything acknowledged is there": bool(told) and not lost,
            "nothing is half": not half,
            "the home is sound, and takes notes again": after.sound and after.goes_on,
        },
    )


def _died(home: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", crash_child.__name__, str(home)]
    came: list[int] = []
    with ExitStack() as undisturbed:
        # A process that has begun, and that nobody has hold of yet, would go on alone.
        undisturbed.enter_context(handle_signals(lambda which, _: came.append(which), signal.SIGINT, signal.SIGTERM))
        with subprocess.Popen(  # noqa: S603 -- this very Python, and a module of ours
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,  # Ctrl-C reaches this process alone, which then ends that one
        ) as process:
            try:
                undisturbed.close()
                for which in came:
                    signal.raise_signal(which)
                said, complained = process.communicate(timeout=SECONDS)
            except BaseException:
                process.kill()
                raise
    return subprocess.CompletedProcess(command, process.returncode, said, complained)


def _last(complaint: str) -> str:
    return complaint.strip().rpartition("\n")[2]


def _came_back(home: Path) -> Aftermath:
    begun = perf_counter()
    with Memory.open(home, embedder=None) as memory:
        session = memory.session(crash_child.SESSION)
        took = 1000 * (perf_counter() - begun)
        found = [note.text for note in parse_notes(session.resource_state.documents.text(NOTES_PAGE_PATH))]
        goes_on = bool(session.note("Here again.").id)
    examined = run_checks(home, online=False, embedder=None)
    return Aftermath(found=found, milliseconds=took, goes_on=goes_on, examined=examined)


def _diagnosis(examined: DoctorReport) -> str:
    if troubles := examined.with_verdict(Verdict.TROUBLE):
        return "; ".join(finding.message for finding in troubles)
    checked = {finding.check: finding.message for finding in examined.findings}
    return f"database: {checked['database']}; events: {checked['events']}"

"""Act 4: a process dies during a write, and the next one finds all acknowledged notes.

The crash is real: this module, run as a program, saves notes, prints their numbers, and kills itself with half of a
page in SQLite's log and the other half lost. Acknowledged notes are those whose numbers it printed.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from time import perf_counter
from typing import Any

import apsw

from inmind.apps.demo.command import DemoAct, DemoContext, label_line, saved_notes
from inmind.apps.doctor import Verdict, run_checks
from inmind.core.paths import DATABASE
from inmind.memory.memory import Memory

TITLE = "A crash: a process is killed during a write"

CHILD_MODULE = "inmind.apps.demo.crash"
TIMEOUT_SECONDS = 60
"""Time limit of the child process, also on a slow disk."""

SESSION, RESOURCE = "doomed", "ada"
NOTE_COUNT = 40
"""Notes that are acknowledged before it dies."""
PAGE_BYTES = 4_096
LOGS = (f"{DATABASE}-wal", f"{DATABASE}-journal")


def note_text(number: int) -> str:
    return f"Note {number}: pallet {7 * number + 1} stands in aisle {number % 9 + 1}, row {number % 23 + 1}."


def play(context: DemoContext) -> DemoAct:
    home = context.folder / "crashed"
    child = subprocess.run(  # noqa: S603 -- this Python and a module of this package
        [sys.executable, "-m", CHILD_MODULE, str(home)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_SECONDS,
        check=False,
    )
    is_killed = child.returncode == -signal.SIGKILL
    acknowledged = [note_text(int(number)) for number in child.stdout.split()]
    started = perf_counter()
    with Memory.open(home, embedder=None) as memory:
        session = memory.session(SESSION)
        milliseconds = 1000 * (perf_counter() - started)
        notes = saved_notes(session)
        accepts_writes = bool(session.note("Here again.").id)
    report = run_checks(home, online=False, embedder=None)
    troubles = [finding.message for finding in report.with_verdict(Verdict.TROUBLE)]
    checked = {finding.check: finding.message for finding in report.findings}
    lost = [text for text in acknowledged if text not in notes]
    partial = [text for text in notes if text not in (*acknowledged, note_text(len(acknowledged) + 1))]
    error = child.stderr.strip().rpartition("\n")[2]
    surviving = len(acknowledged) - len(lost)
    health = f"database: {checked['database']}; events: {checked.get('events')}"
    return DemoAct(
        lines=[
            label_line("safe", f"{len(acknowledged)} notes, each acknowledged before the next one"),
            label_line(
                "killed by",
                "SIGKILL, with half a page of another note in the log" if is_killed else f"nothing: {error}",
            ),
            label_line("back", f"in {milliseconds:.0f} ms, without manual repair"),
            label_line("found", f"{surviving} of {len(acknowledged)} acknowledged; incomplete: {len(partial)}"),
            label_line("doctor", "; ".join(troubles) or health),
        ],
        facts={
            "killed": is_killed,
            "acknowledged": len(acknowledged),
            "found": surviving,
            "lost": lost,
            "half": partial,
            "milliseconds": milliseconds,
            "troubles": troubles,
        },
        promises={
            "the process dies in the middle of a write": is_killed and len(acknowledged) == NOTE_COUNT,
            "every acknowledged note is found": bool(acknowledged) and not lost,
            "no note is incomplete": not partial,
            "the home is intact and accepts notes": not troubles and accepts_writes,
        },
    )


def write_until_killed(home: Path) -> None:
    disk = _FailingDisk()
    with Memory.open(home, embedder=None) as memory:
        session = memory.session(SESSION, resource=RESOURCE, cwd=home)
        for number in range(1, NOTE_COUNT + 1):
            session.note(note_text(number))
            print(number, flush=True)
        memory.flush()  # no background write is pending: only the note is cut
        disk.fails = True
        session.note(note_text(NOTE_COUNT + 1))


class _FailingDisk(apsw.VFS):
    """The real VFS until `fails` is set."""

    def __init__(self) -> None:
        self.fails = False
        self._real = apsw.vfs_names()[0]
        super().__init__("doomed", base=self._real, makedefault=True)

    def xOpen(self, name: Any, flags: list[int]) -> apsw.VFSFile:  # noqa: N802 -- SQLite's name
        return _FailingFile(self, self._real, name, flags)


class _FailingFile(apsw.VFSFile):
    def __init__(self, disk: _FailingDisk, real: str, name: Any, flags: list[int]) -> None:
        super().__init__(real, name, flags)
        path = name.filename() if isinstance(name, apsw.URIFilename) else name
        self._disk, self._is_log = disk, str(path).endswith(LOGS)
        self._written: Any = super().xWrite  # pyright: ignore[reportUnknownMemberType] -- apsw's annotations need a newer Python

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802 -- SQLite's name
        if self._disk.fails and self._is_log and len(data) >= PAGE_BYTES:
            self._written(data[: len(data) // 2], offset)
            os.kill(os.getpid(), signal.SIGKILL)
        self._written(data, offset)


if __name__ == "__main__":
    write_until_killed(Path(sys.argv[1]))

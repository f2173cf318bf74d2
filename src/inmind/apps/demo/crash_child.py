"""A process that saves notes, prints their numbers, and kills itself during a write.

It dies with half of a page in SQLite's log and the other half lost. `crash` runs it as a child process and checks the
result.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any

import apsw

from inmind.core.paths import DATABASE
from inmind.memory.memory import Memory

SESSION, RESOURCE = "doomed", "ada"
NOTE_COUNT = 40
"""Notes that are acknowledged before it dies."""
PAGE_BYTES = 4_096
LOGS = (f"{DATABASE}-wal", f"{DATABASE}-journal")


def note_text(number: int) -> str:
    return f"Note {number}: pallet {7 * number + 1} stands in aisle {number % 9 + 1}, row {number % 23 + 1}."


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

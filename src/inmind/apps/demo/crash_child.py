"""A process that takes notes, says of each that it is safe, and kills itself in the middle of writing one more.

It dies where it hurts most: half of a page is in SQLite's log, and the other half is nowhere. `crash` runs it, as a
process of its own, and looks at what it has left.
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
TOLD = 40
"""Notes that are acknowledged before it dies."""
PAGE = 4_096
LOGS = (f"{DATABASE}-wal", f"{DATABASE}-journal")


def note(number: int) -> str:
    return f"Note {number}: pallet {7 * number + 1} stands in aisle {number % 9 + 1}, row {number % 23 + 1}."


def write_until_killed(home: Path) -> None:
    disk = _Disk()
    with Memory.open(home, embedder=None) as memory:
        session = memory.session(SESSION, resource=RESOURCE, cwd=home)
        for number in range(1, TOLD + 1):
            session.note(note(number))
            print(number, flush=True)
        memory.flush()  # nothing else writes by now: what is cut in two is the note
        disk.fails = True
        session.note(note(TOLD + 1))


class _Disk(apsw.VFS):
    """The real one, up to a moment."""

    def __init__(self) -> None:
        self.fails = False
        self._real = apsw.vfs_names()[0]
        super().__init__("doomed", base=self._real, makedefault=True)

    def xOpen(self, name: Any, flags: list[int]) -> apsw.VFSFile:  # noqa: N802 -- as SQLite calls it
        return _File(self, self._real, name, flags)


class _File(apsw.VFSFile):
    def __init__(self, disk: _Disk, real: str, name: Any, flags: list[int]) -> None:
        super().__init__(real, name, flags)
        path = name.filename() if isinstance(name, apsw.URIFilename) else name
        self._disk, self._is_log = disk, str(path).endswith(LOGS)
        self._written: Any = super().xWrite  # pyright: ignore[reportUnknownMemberType] -- apsw's annotations need a newer Python

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802 -- as SQLite calls it
        if self._disk.fails and self._is_log and len(data) >= PAGE:
            self._written(data[: len(data) // 2], offset)
            os.kill(os.getpid(), signal.SIGKILL)
        self._written(data, offset)


if __name__ == "__main__":
    write_until_killed(Path(sys.argv[1]))

"""Stops a test server when the test run is over.

A test run holds a lock as long as it lives. The keeper of a server waits for that lock and gets it however the run
ends. The keeper holds a lock too, so that other processes can see whether the server is still there.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

SECONDS = 60.0
"""What takes longer than this hangs."""

FAST, IMMEDIATE = signal.SIGINT, signal.SIGQUIT
"""How PostgreSQL is told to end: in good order, or as if it had crashed."""


def keep(going_on: Path, folder: Path, owner: int, command: Sequence[str]) -> int:
    """Start a server that ends with the run, and return when it answers."""
    hearing, telling = os.pipe()
    if not os.fork():
        os.close(hearing)
        _run_keeper(going_on, folder, owner, command, telling)
    os.close(telling)
    postmaster, until = os.read(hearing, 20).decode(), time.monotonic() + SECONDS
    while not _is_ready(folder, postmaster):
        if not is_locked(folder / "kept") or time.monotonic() > until:
            print((folder / "log").read_text(errors="replace")[-4_000:], file=sys.stderr)
            return 1
        time.sleep(0.005)
    return 0


def lock_file(path: Path) -> IO[bytes]:
    """Lock the file for this process until it is closed.

    A record lock: children do not inherit it.
    """
    file = path.open("ab")
    fcntl.lockf(file, fcntl.LOCK_EX)
    return file


def is_locked(path: Path) -> bool:
    """True if another process has locked it."""
    try:
        with path.open("r+b") as file:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except OSError:
        return True
    return False


def read_status(folder: Path) -> list[str]:
    """Lines of the server's status file: its process id first, whether it is ready last."""
    with suppress(FileNotFoundError):
        return (folder / "data/postmaster.pid").read_text().splitlines()
    return []


def as_unprivileged_user(uid: int) -> dict[str, Any]:
    """Arguments to start a program as this user; needed for root, as whom PostgreSQL refuses to run."""
    return {"user": uid, "group": uid, "extra_groups": []} if os.geteuid() == 0 else {}


def _run_keeper(going_on: Path, folder: Path, owner: int, command: Sequence[str], telling: int) -> None:
    kept = lock_file(folder / "kept")
    os.setsid()
    with open(os.devnull, "rb") as nothing, (folder / "log").open("ab") as log:
        for descriptor, file in enumerate([nothing, log, log]):
            os.dup2(file.fileno(), descriptor)
    server = subprocess.Popen(command, **as_unprivileged_user(owner))
    os.write(telling, str(server.pid).encode())
    os.close(telling)
    threading.Thread(target=_end_with_the_run, args=(going_on, server), daemon=True).start()
    server.wait()
    if not is_locked(going_on):
        shutil.rmtree(going_on.parent, ignore_errors=True)
    kept.close()
    os._exit(0)


def _end_with_the_run(going_on: Path, server: subprocess.Popen[bytes]) -> None:
    with suppress(FileNotFoundError):
        lock_file(going_on).close()
    server.send_signal(IMMEDIATE)


def _is_ready(folder: Path, postmaster: str) -> bool:
    lines = read_status(folder)
    return len(lines) > 7 and lines[0] == postmaster and lines[7].strip() == "ready"


if __name__ == "__main__":
    sys.exit(keep(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]), sys.argv[4:]))

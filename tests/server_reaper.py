"""Stops a test server when the test run is over.

A test run holds a lock until it ends. The supervisor of a server waits for that lock, which the system releases even if
the run is killed. The supervisor holds a lock too, so that other processes can see whether the server is running.
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
"""Timeout of starting and stopping."""

FAST, IMMEDIATE = signal.SIGINT, signal.SIGQUIT
"""Signals for a fast shutdown, and for an immediate one as in a crash."""


def supervise(run_lock: Path, folder: Path, owner: int, command: Sequence[str]) -> int:
    """Start a server that ends with the run, and return when it answers."""
    reader, writer = os.pipe()
    if not os.fork():
        os.close(reader)
        _run_supervisor(run_lock, folder, owner, command, writer)
    os.close(writer)
    postmaster, until = os.read(reader, 20).decode(), time.monotonic() + SECONDS
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
    """Arguments that start a program as this user if this process is root."""
    return {"user": uid, "group": uid, "extra_groups": []} if os.geteuid() == 0 else {}


def _run_supervisor(run_lock: Path, folder: Path, owner: int, command: Sequence[str], writer: int) -> None:
    lock = lock_file(folder / "kept")
    os.setsid()
    with open(os.devnull, "rb") as empty, (folder / "log").open("ab") as log:
        for descriptor, file in enumerate([empty, log, log]):
            os.dup2(file.fileno(), descriptor)
    server = subprocess.Popen(command, **as_unprivileged_user(owner))
    os.write(writer, str(server.pid).encode())
    os.close(writer)
    threading.Thread(target=_end_with_the_run, args=(run_lock, server), daemon=True).start()
    server.wait()
    if not is_locked(run_lock):
        shutil.rmtree(run_lock.parent, ignore_errors=True)
    lock.close()
    os._exit(0)


def _end_with_the_run(run_lock: Path, server: subprocess.Popen[bytes]) -> None:
    with suppress(FileNotFoundError):
        lock_file(run_lock).close()
    server.send_signal(IMMEDIATE)


def _is_ready(folder: Path, postmaster: str) -> bool:
    lines = read_status(folder)
    return len(lines) > 7 and lines[0] == postmaster and lines[7].strip() == "ready"


if __name__ == "__main__":
    sys.exit(supervise(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]), sys.argv[4:]))

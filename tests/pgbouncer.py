"""A real PgBouncer, if one is installed."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest
import server_reaper
from postgres import unprivileged_user, wait_until


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


@contextmanager
def pooler(folder: Path, config: str, *, port: int, **files: str) -> Generator[None]:
    """Run it with this configuration and these additional files."""
    program = shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
    if program is None:
        pytest.skip("pgbouncer is not installed")
    folder.chmod(0o755)
    for name, text in {"pgbouncer.ini": config, **files}.items():
        (folder / name).write_text(text)
    with subprocess.Popen(
        [program, folder / "pgbouncer.ini"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        **server_reaper.as_unprivileged_user(unprivileged_user() or 0),
    ) as running:
        try:
            wait_until(lambda: running.poll() is not None or answers(port), "the pooler does not start", seconds=10)
            assert running.poll() is None, running.communicate()[0]
            yield
        finally:
            running.kill()


def answers(port: int) -> bool:
    with socket.socket() as tried:
        return tried.connect_ex(("127.0.0.1", port)) == 0

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
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


@contextmanager
def pooler(folder: Path, config: str, *, port: int, **files: str) -> Generator[None]:
    """Run PgBouncer with this configuration and these additional files."""
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
    ) as process:
        try:
            wait_until(
                lambda: process.poll() is not None or accepts_connections(port), "the pooler does not start", seconds=10
            )
            assert process.poll() is None, process.communicate()[0]
            yield
        finally:
            process.kill()


def accepts_connections(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0

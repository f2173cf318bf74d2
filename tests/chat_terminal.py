"""A person at a terminal: types, reads what is there by then, presses Ctrl-C.

Nothing here waits for time to pass: whoever reads waits for words, and fails with all that was on the screen if they do
not come.
"""

from __future__ import annotations

import os
import pty
import re
import select
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Self

from terminal import INMIND, warm_inmind

PATIENCE = 30.0
"""Seconds for words to come: whoever else is busy on this machine is no failure of the chat's."""

CTRL_C, CTRL_D = "\x03", "\x04"

_CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b[=>]|\r|\x07")

NOBODYS = dict.fromkeys(("OPENAI_API_KEY", "OPENAI_BASE_URL", "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"), "")
"""What a machine may have keys for must not decide a test."""


def environment(**more: str) -> dict[str, str]:
    return {**os.environ, **NOBODYS, **more}


class AtTerminal:
    """`inmind` on a terminal of 80 columns, in a folder."""

    def __init__(
        self, *arguments: str, home: Path, cwd: Path, env: Mapping[str, str] | None = None, terminal: str = "dumb"
    ) -> None:
        self._ours, theirs = pty.openpty()
        given = environment(TERM=terminal, COLUMNS="80", **(env or {}))
        self.process = warm_inmind().start(
            INMIND, "--home", str(home), *arguments, streams=[theirs, theirs, theirs], cwd=cwd, env=given
        )
        os.close(theirs)
        self.raw = b""
        self._read = 0

    @property
    def screen(self) -> str:
        """All that was ever shown, without what only moves the cursor."""
        return _CONTROL.sub("", self.raw.decode(errors="replace"))

    def types(self, text: str) -> None:
        os.write(self._ours, text.encode())

    def says(self, line: str) -> None:
        self.types(f"{line}\n")

    def sees(self, words: str) -> str:
        """Wait for words that were not seen yet; answers with what stood before them."""
        until = time.monotonic() + PATIENCE
        while (place := self.screen.find(words, self._read)) < 0:
            if not self._more(until):
                raise AssertionError(f"{words!r} did not come, but:\n{self.screen[self._read :]}")
        before, self._read = self.screen[self._read : place], place + len(words)
        return before

    def presses_ctrl_c(self, *, until_it_says: str) -> None:
        """As often as it takes: a line editor that has just shown its prompt does not hear the first, and waits."""
        end = time.monotonic() + PATIENCE
        while self.screen.find(until_it_says, self._read) < 0 and time.monotonic() < end:
            self.types(CTRL_C)
            while self._more(time.monotonic() + 0.5) and self.screen.find(until_it_says, self._read) < 0:
                pass
        self.sees(until_it_says)

    def leaves(self) -> int:
        """Wait for the end; the exit code."""
        until = time.monotonic() + PATIENCE
        while self._more(until):
            pass
        return self.process.wait(PATIENCE)

    def _more(self, until: float) -> bool:
        ready, _, _ = select.select([self._ours], [], [], max(0.0, until - time.monotonic()))
        if not ready:
            return False
        try:
            more = os.read(self._ours, 65_536)
        except OSError:  # how a terminal says that nobody writes any more
            return False
        self.raw += more
        return bool(more)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._ours)

"""A user at a terminal: types, reads the screen, presses Ctrl-C.

No call waits for a fixed time: each waits for words on the screen, and fails with the screen if they do not appear.
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

from inmind import Session
from inmind.core.messages import FORMATS

TIMEOUT_SECONDS = 30.0
"""For words to appear, on a machine that runs other tests."""

CTRL_C, CTRL_D = "\x03", "\x04"

_CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b[=>]|\r|\x07")

NO_KEYS = dict.fromkeys(("OPENAI_API_KEY", "OPENAI_BASE_URL", "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"), "")
"""Unset, so that keys of the machine cannot change a test."""


def environment(**more: str) -> dict[str, str]:
    return {**os.environ, **NO_KEYS, **more}


def messages_of(session: Session) -> list[tuple[str, str]]:
    """The role and text of each message of a conversation; results have the role tool."""
    messages = [FORMATS[entry.format].read(entry.wire) for entry in session.state.conversation]
    return [("tool" if message.results else message.role, message.text) for message in messages]


class ChatTerminal:
    """`inmind` on a terminal of 80 columns, in a folder."""

    def __init__(
        self, *arguments: str, home: Path, cwd: Path, env: Mapping[str, str] | None = None, terminal: str = "dumb"
    ) -> None:
        self._controller, terminal_end = pty.openpty()
        variables = environment(TERM=terminal, COLUMNS="80", **(env or {}))
        self.process = warm_inmind().start(
            INMIND,
            "--home",
            str(home),
            *arguments,
            streams=[terminal_end, terminal_end, terminal_end],
            cwd=cwd,
            env=variables,
        )
        os.close(terminal_end)
        self.raw = b""
        self._read = 0

    @property
    def screen(self) -> str:
        """All output, without control sequences."""
        return _CONTROL.sub("", self.raw.decode(errors="replace"))

    def type_text(self, text: str) -> None:
        os.write(self._controller, text.encode())

    def send_line(self, line: str) -> None:
        self.type_text(f"{line}\n")

    def wait_for(self, words: str) -> str:
        """Wait for new words and return the text before them."""
        until = time.monotonic() + TIMEOUT_SECONDS
        while (position := self.screen.find(words, self._read)) < 0:
            if not self._more(until):
                raise AssertionError(f"{words!r} did not appear, but:\n{self.screen[self._read :]}")
        before, self._read = self.screen[self._read : position], position + len(words)
        return before

    def press_ctrl_c(self, *, until: str) -> None:
        """Press repeatedly: a line editor ignores Ctrl-C right after printing its prompt."""
        end = time.monotonic() + TIMEOUT_SECONDS
        while self.screen.find(until, self._read) < 0 and time.monotonic() < end:
            self.type_text(CTRL_C)
            while self._more(time.monotonic() + 0.5) and self.screen.find(until, self._read) < 0:
                pass
        self.wait_for(until)

    def wait_for_exit(self) -> int:
        """Wait for the end and return the exit code."""
        until = time.monotonic() + TIMEOUT_SECONDS
        while self._more(until):
            pass
        return self.process.wait(TIMEOUT_SECONDS)

    def _more(self, until: float) -> bool:
        ready, _, _ = select.select([self._controller], [], [], max(0.0, until - time.monotonic()))
        if not ready:
            return False
        try:
            more = os.read(self._controller, 65_536)
        except OSError:  # the other end of the terminal is closed
            return False
        self.raw += more
        return bool(more)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._controller)

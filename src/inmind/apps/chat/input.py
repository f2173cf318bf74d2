"""Reads messages from a terminal with line editor and history, or from a pipe."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path

from inmind.apps.signals import InterruptHandler
from inmind.errors import InvalidInput

HISTORY_FILE = "chat-history"
"""File in the home, private to the user. Lines that start with a space are not stored."""

MAX_HISTORY_LINES = 1_000

PROMPT, CONTINUATION_PROMPT = "> ", "… "

ReadLine = Callable[[bool], str | None]
"""Returns the next line, or None at the end. The argument is True for a continuation line."""


def read_messages(read: ReadLine) -> Iterator[str]:
    """Messages; lines that end in a backslash are joined, empty ones are skipped."""
    while (line := read(False)) is not None:
        lines = [line]
        while lines[-1].endswith("\\") and (more := read(True)) is not None:
            lines[-1] = lines[-1].removesuffix("\\")
            lines.append(more)
        if message := "\n".join(lines).removesuffix("\\").strip():
            yield message


def terminal_reader(interrupts: InterruptHandler) -> ReadLine:
    """Reads lines from the terminal. Ctrl-C and Ctrl-D end the input."""
    private = False

    def read(is_continuation: bool) -> str | None:
        nonlocal private
        interrupts.discard()
        try:
            with interrupts.interruptible():
                line = input(CONTINUATION_PROMPT if is_continuation else PROMPT)
        except (EOFError, KeyboardInterrupt):
            print()
            return None
        private = private if is_continuation else line.startswith(" ")
        if not private:
            _add_to_history(line)
        return line

    return read


def pipe_reader(interrupts: InterruptHandler) -> ReadLine:
    def read(_: bool) -> str | None:
        with interrupts.interruptible():
            line = sys.stdin.buffer.readline()
        try:
            return line.decode().rstrip("\r\n") if line else None
        except UnicodeDecodeError as error:
            raise InvalidInput(field="stdin", value=line, expected="text in UTF-8") from error

    return read


@contextmanager
def line_editor(home: Path | None) -> Generator[None]:
    """Enable readline with the history of earlier chats, if available."""
    try:
        import readline
    except ImportError:  # not part of every Python build
        yield
        return
    readline.set_auto_history(False)
    readline.set_history_length(MAX_HISTORY_LINES)
    if "libedit" not in (readline.__doc__ or ""):  # Python disables it; a pasted text would become one message per line
        readline.parse_and_bind("set enable-bracketed-paste on")
    with nullcontext() if home is None else _history_in(home / HISTORY_FILE):
        yield


@contextmanager
def _history_in(file: Path) -> Generator[None]:
    import readline

    with suppress(OSError):
        _make_private(file)
        readline.read_history_file(file)
    try:
        yield
    finally:
        with suppress(OSError):
            _make_private(file)
            readline.write_history_file(file)


def remove_from_history(message: str) -> None:
    """Remove the last lines of this message from the history."""
    with suppress(ImportError):
        import readline

        for line in reversed([message] if _history_index(message) is not None else message.split("\n")):
            if (place := _history_index(line)) is not None:
                readline.remove_history_item(place)


def _add_to_history(line: str) -> None:
    with suppress(ImportError):
        import readline

        length = readline.get_current_history_length()
        if line.strip() and not (length and readline.get_history_item(length) == line):
            readline.add_history(line)


def _history_index(line: str) -> int | None:
    """Index of the last such line in the history."""
    import readline

    for place in range(readline.get_current_history_length(), 0, -1):
        if (readline.get_history_item(place) or "").removesuffix("\\").strip() == line.strip():
            return place - 1  # readline reads from index 1 but removes from index 0
    return None


def _make_private(file: Path) -> None:
    """Create the file if needed, readable only by its owner; refuses a link."""
    descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        os.fchmod(descriptor, 0o600)
    finally:
        os.close(descriptor)

"""What is typed, message by message: on a terminal with a line editor and its history, in a pipe line by line."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path

from inmind.apps.chat.sigint import Interruptions
from inmind.errors import InvalidInput

HISTORY = "chat-history"
"""In the home, for its owner alone. What begins with a space is not kept there."""

MOST_REMEMBERED = 1_000
"""Lines of it."""

PROMPT, MORE = "> ", "… "

Read = Callable[[bool], str | None]
"""The next line; whether it goes on with one that ended in a backslash. None where there is no further one."""


def messages(read: Read) -> Iterator[str]:
    """What is said, each message of as many lines as a backslash at their end joins; what is empty says nothing."""
    while (line := read(False)) is not None:
        lines = [line]
        while lines[-1].endswith("\\") and (more := read(True)) is not None:
            lines[-1] = lines[-1].removesuffix("\\")
            lines.append(more)
        if message := "\n".join(lines).removesuffix("\\").strip():
            yield message


def typed(interruptions: Interruptions) -> Read:
    """Lines of a person. Ctrl-C and Ctrl-D both say that this is all."""
    private = False

    def read(goes_on: bool) -> str | None:
        nonlocal private
        interruptions.forget()
        try:
            with interruptions.may_stop():
                line = input(MORE if goes_on else PROMPT)
        except (EOFError, KeyboardInterrupt):
            print()
            return None
        private = private if goes_on else line.startswith(" ")
        if not private:
            _remember(line)
        return line

    return read


def piped(interruptions: Interruptions) -> Read:
    def read(_: bool) -> str | None:
        with interruptions.may_stop():
            line = sys.stdin.buffer.readline()
        try:
            return line.decode().rstrip("\r\n") if line else None
        except UnicodeDecodeError as error:
            raise InvalidInput(field="stdin", value=line, expected="text in UTF-8") from error

    return read


@contextmanager
def remembered(home: Path | None) -> Generator[None]:
    """A line editor with what was typed in earlier chats; without that where it cannot be had, or there is no home."""
    try:
        import readline
    except ImportError:  # Python can be built without it
        yield
        return
    readline.set_auto_history(False)
    readline.set_history_length(MOST_REMEMBERED)
    if "libedit" not in (readline.__doc__ or ""):  # Python turns it off: what is pasted would be a message a line
        readline.parse_and_bind("set enable-bracketed-paste on")
    with nullcontext() if home is None else _kept_in(home / HISTORY):
        yield


@contextmanager
def _kept_in(file: Path) -> Generator[None]:
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


def forget(message: str) -> None:
    """What was taken back is not offered again: the last lines that said it."""
    with suppress(ImportError):
        import readline

        for line in reversed([message] if _place_of(message) is not None else message.split("\n")):
            if (place := _place_of(line)) is not None:
                readline.remove_history_item(place)


def _remember(line: str) -> None:
    with suppress(ImportError):
        import readline

        length = readline.get_current_history_length()
        if line.strip() and not (length and readline.get_history_item(length) == line):
            readline.add_history(line)


def _place_of(line: str) -> int | None:
    """Where it stands last among what was typed."""
    import readline

    for place in range(readline.get_current_history_length(), 0, -1):
        if (readline.get_history_item(place) or "").removesuffix("\\").strip() == line.strip():
            return place - 1  # they are shown from 1 on, and removed from 0 on
    return None


def _make_private(file: Path) -> None:
    """The file is there, nobody else may read it, and it is no way to anywhere else."""
    descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        os.fchmod(descriptor, 0o600)
    finally:
        os.close(descriptor)

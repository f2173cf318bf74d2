"""Output of the chat, for users and scripts.

On a terminal everything is on one screen: answers as they arrive, and dimmed notes about tools. In a pipe only answers
go to stdout and the rest to stderr, so that `… | inmind chat > answer.txt` has just the answer. With --json each
complete answer is one JSON object per line.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from difflib import unified_diff
from typing import TYPE_CHECKING, Any

from inmind.apps.chat.file_tools import FileChange
from inmind.apps.chat.providers import StreamPiece
from inmind.apps.chat.turn import ChatToolUse
from inmind.apps.cli.console import collapse_whitespace, console
from inmind.apps.cli.dreams import color_diff
from inmind.core.text import count_noun, printable, shorten

if TYPE_CHECKING:
    from rich.status import Status
    from rich.text import Text as RichText

WIDTH = 80
MAX_CHOICES = 40
"""Maximum number of listed choices; others can still be typed."""
MAX_DIFF_LINES = 40
"""Lines of a diff shown for approval; of a longer one its start and end."""
MAX_COMPARED_LINES = 4_000
"""Maximum number of lines, before and after together, that are compared: the user is waiting."""
MAX_LINE_CHARS = 200
"""Maximum length of a shown line."""


class ChatOutput:
    """Prints the chat. `interactive`: stdin and stdout are terminals."""

    def __init__(self, *, interactive: bool, as_json: bool = False) -> None:
        self.interactive, self.as_json = interactive, as_json
        self._out, self._console = sys.stdout, console(stderr=not interactive)
        self._waiting: Status | None = None
        self._pending, self._is_inside_line, self._thinking = "", False, False

    @property
    def width(self) -> int:
        return min(WIDTH, self._console.width) if self.interactive else WIDTH

    def show_waiting(self) -> None:
        if self.interactive and self._console.is_terminal:
            self._waiting = self._console.status("[dim]…[/dim]", spinner="dots")
            self._waiting.start()

    def show_piece(self, piece: StreamPiece) -> None:
        if self.as_json:
            return
        if piece.reasoning and self.interactive:
            self._stop_waiting()
            self._dim(printable(piece.reasoning), end="")
            self._thinking = True
        if piece.text:
            self._stop_waiting()
            self._end_thinking()
            self._print(piece.text)

    def end_answer(self) -> None:
        self._stop_waiting()
        self._end_thinking()
        self._print("\n" if self._is_inside_line or self._pending else "")

    def show_tool_use(self, use: ChatToolUse) -> None:
        """Print one line per call: its arguments and its result."""
        mark = "✗" if use.output.error else "·"
        head = collapse_whitespace(f"{mark} {shorten(use.name, WIDTH // 2)} {_short_arguments(use.arguments)}")
        room = self.width - len(head) - len(" → ")
        self._dim(printable(f"{head} → {shorten(collapse_whitespace(use.output.summary), max(20, room))}"))

    def print_note(self, text: str) -> None:
        self._dim(printable(text))

    def print_error(self, text: str) -> None:
        from rich.text import Text

        self._console.print(Text(printable(f"! {collapse_whitespace(text)}"), style="red"), soft_wrap=True)

    def refuse_write(self, change: FileChange) -> str:
        """Ask the user to approve a change; return the reason of a refusal, or an empty text."""
        if not self.interactive:
            return "--allow-writes was not given, and there is no terminal to ask the user"
        is_complete = self._compare(change)
        question = f"{'Create' if change.before is None else 'Change'} {change.path}?"
        while (answer := _ask(f"{question} {'[y/N]' if is_complete else '[y/N/v]'} ")) == "v" and not is_complete:
            self._show_all(change)
        return "" if answer in _YES else "the user refused"

    def confirm(self, question: str) -> bool:
        return _ask(f"{question} [y/N] ") in _YES

    def choose(self, names: Sequence[str]) -> str:
        """Ask for one of the names, by number or name; empty if there is no answer."""
        for number, name in enumerate(names[:MAX_CHOICES], 1):
            print(printable(f"{number:>4}  {name}"))
        if len(names) > MAX_CHOICES:
            self.print_note(f"      and {len(names) - MAX_CHOICES} more, by their names")
        numbered = {str(number): name for number, name in enumerate(names, 1)}
        with suppress(EOFError):
            while (answer := input("Which model, by number or name? ").strip()) not in (*names, *numbered):
                pass
            return answer if answer in names else numbered[answer]
        print()
        return ""

    def print_json(self, answer: Mapping[str, Any]) -> None:
        print(json.dumps(answer), file=self._out, flush=True)  # ASCII: no control characters reach the terminal

    def _compare(self, change: FileChange) -> bool:
        """Show the change; True if all of it was shown."""
        before, after = ([_cut_line(line) for line in _lines(text)] for text in (change.before or "", change.after))
        if len(before) + len(after) > MAX_COMPARED_LINES:
            self.print_note(f"{change.path}: {count_noun(len(before), 'line')} before, {len(after)} after")
            return False
        diff = _diff(change.path, before, after)
        head = len(diff) if len(diff) <= MAX_DIFF_LINES else MAX_DIFF_LINES // 2
        tail = max(head, len(diff) - (MAX_DIFF_LINES - head))
        for line in diff[:head]:
            self._console.print(line, soft_wrap=True)
        if tail > head:
            self.print_note(f"({count_noun(tail - head, 'more line')}, v shows all)")
        for line in diff[tail:]:
            self._console.print(line, soft_wrap=True)
        if not diff:
            self.print_note("(the change is in a part of a long line that is not shown)")
        return bool(diff) and head == len(diff) and not any(map(_is_cut, (*before, *after)))

    def _show_all(self, change: FileChange) -> None:
        before, after = (_lines(text) for text in (change.before or "", change.after))
        if len(before) + len(after) > MAX_COMPARED_LINES:
            print(printable(change.after))
            return
        for line in _diff(change.path, before, after):
            self._console.print(line, soft_wrap=True)

    def _print(self, text: str) -> None:
        """Print a piece of an answer; a trailing carriage return waits for its line feed."""
        text, self._pending = self._pending + text, ""
        if text.endswith("\r"):
            text, self._pending = text[:-1], "\r"
        if text:
            print(printable(text), end="", flush=True)
            self._is_inside_line = not text.endswith("\n")

    def _dim(self, text: str, end: str = "\n") -> None:
        from rich.text import Text

        self._console.print(Text(text, style="dim"), end=end, soft_wrap=True)

    def _end_thinking(self) -> None:
        if self._thinking:
            self._thinking = False
            self._console.print()

    def _stop_waiting(self) -> None:
        if self._waiting is not None:
            self._waiting.stop()
            self._waiting = None


_YES = ("y", "yes")


def _ask(question: str) -> str:
    """The user's answer in lower case; empty at the end of input."""
    try:
        return input(printable(question)).strip().casefold()
    except EOFError:
        print()
        return ""


def _diff(path: str, before: Sequence[str], after: Sequence[str]) -> Sequence[RichText]:
    return list(color_diff("\n".join(unified_diff(before, after, path, path, lineterm="", n=1))))


def _lines(text: str) -> list[str]:
    """Lines including a carriage return or a missing final newline, which may be the change."""
    *lines, rest = text.split("\n")
    return [*lines, rest, "(no line end)"] if rest else lines


def _cut_line(line: str) -> str:
    return f"{line[:MAX_LINE_CHARS]}… ({len(line):,} characters)" if _is_cut(line) else line


def _is_cut(line: str) -> bool:
    return len(line) > MAX_LINE_CHARS


def _short_arguments(arguments: str) -> str:
    """The first argument of a call, or the raw text if it is not JSON."""
    try:
        parsed = json.loads(arguments or "{}")
    except (ValueError, RecursionError):
        parsed = arguments
    value = next(iter(parsed.values()), "") if isinstance(parsed, dict) else parsed  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType] -- a model wrote it
    text = str(value).encode(errors="backslashreplace").decode()  # pyright: ignore[reportUnknownArgumentType] -- escape unpaired surrogates
    return shorten(text, WIDTH // 2)

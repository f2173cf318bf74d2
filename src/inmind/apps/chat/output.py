"""What a person sees of a chat, and what a script does.

On a terminal everything is in one place: answers as they come, and dim beside them what tools did. In a pipe the
answers are the output, and the rest goes to stderr, so that `… | inmind chat > answer.txt` has the answer alone. With
--json each answer is an object on a line of its own, once it is there.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from difflib import unified_diff
from typing import TYPE_CHECKING, Any

from inmind.apps.chat.file_tools import Change
from inmind.apps.chat.providers import Piece
from inmind.apps.chat.turn import Used
from inmind.apps.cli.console import collapse_whitespace
from inmind.apps.cli.dreams import color_diff
from inmind.core.text import counted, printable, shortened

if TYPE_CHECKING:
    from rich.console import Console
    from rich.status import Status
    from rich.text import Text as RichText

WIDTH = 80
MOST_OFFERED = 40
"""Names that are listed to choose among; the others can still be typed."""
MOST_DIFF = 40
"""Lines of a change that are shown to whoever has to allow it: of a longer one its beginning and its end."""
MOST_COMPARED = 4_000
"""Lines, before and after together, that are compared: a person is waiting."""
MOST_LINE = 200
"""Characters of one of them."""


class Screen:
    """`interactive`: a person sits at both ends."""

    def __init__(self, *, interactive: bool, as_json: bool = False) -> None:
        self.interactive, self.as_json = interactive, as_json
        self._out, self._beside = sys.stdout, _beside(stderr=not interactive)
        self._waiting: Status | None = None
        self._held, self._column, self._thinking = "", False, False

    @property
    def width(self) -> int:
        return min(WIDTH, self._beside.width) if self.interactive else WIDTH

    def waits(self) -> None:
        if self.interactive and self._beside.is_terminal:
            self._waiting = self._beside.status("[dim]…[/dim]", spinner="dots")
            self._waiting.start()

    def hears(self, piece: Piece) -> None:
        if self.as_json:
            return
        if piece.thought and self.interactive:
            self._stop_waiting()
            self._dim(printable(piece.thought), end="")
            self._thinking = True
        if piece.text:
            self._stop_waiting()
            self._end_thinking()
            self._print(piece.text)

    def has_heard(self) -> None:
        self._stop_waiting()
        self._end_thinking()
        self._print("\n" if self._column or self._held else "")

    def sees(self, used: Used) -> None:
        """One line for a call: what was asked, and what came of it."""
        mark = "✗" if used.outcome.error else "·"
        begun = collapse_whitespace(f"{mark} {shortened(used.name, WIDTH // 2)} {_in_short(used.arguments)}")
        room = self.width - len(begun) - len(" → ")
        self._dim(printable(f"{begun} → {shortened(collapse_whitespace(used.outcome.gist), max(20, room))}"))

    def aside(self, text: str) -> None:
        self._dim(printable(text))

    def complain(self, text: str) -> None:
        from rich.text import Text

        self._beside.print(Text(printable(f"! {collapse_whitespace(text)}"), style="red"), soft_wrap=True)

    def refuses(self, change: Change) -> str:
        """Why a file may not be written; nothing where a person allows it, having seen what would become of it."""
        if not self.interactive:
            return "since --allow-writes was not given, and nobody is here to be asked"
        whole = self._compare(change)
        question = f"{'Create' if change.before is None else 'Change'} {change.path}?"
        while (said := _answer(f"{question} {'[y/N]' if whole else '[y/N/v]'} ")) == "v" and not whole:
            self._show_all(change)
        return "" if said in _YES else "since the person said no"

    def confirms(self, question: str) -> bool:
        return _answer(f"{question} [y/N] ") in _YES

    def chooses(self, names: Sequence[str]) -> str:
        """One of these, by its number or by its name; nothing where nobody says which."""
        for number, name in enumerate(names[:MOST_OFFERED], 1):
            print(printable(f"{number:>4}  {name}"))
        if len(names) > MOST_OFFERED:
            self.aside(f"      and {len(names) - MOST_OFFERED} more, by their names")
        numbered = {str(number): name for number, name in enumerate(names, 1)}
        with suppress(EOFError):
            while (said := input("Which model, by number or name? ").strip()) not in (*names, *numbered):
                pass
            return said if said in names else numbered[said]
        print()
        return ""

    def tells(self, answer: Mapping[str, Any]) -> None:
        print(json.dumps(answer), file=self._out, flush=True)  # in ASCII, in which nothing can act

    def _compare(self, change: Change) -> bool:
        """Show what would change; whether that was all of it."""
        before, after = ([_shown(line) for line in _lines(text)] for text in (change.before or "", change.after))
        if len(before) + len(after) > MOST_COMPARED:
            self.aside(f"{change.path}: {counted(len(before), 'line')} now, {len(after)} then")
            return False
        diff = _diff(change.path, before, after)
        head = len(diff) if len(diff) <= MOST_DIFF else MOST_DIFF // 2
        tail = max(head, len(diff) - (MOST_DIFF - head))
        for line in diff[:head]:
            self._beside.print(line, soft_wrap=True)
        if tail > head:
            self.aside(f"({counted(tail - head, 'more line')} here: v shows all)")
        for line in diff[tail:]:
            self._beside.print(line, soft_wrap=True)
        if not diff:
            self.aside("(what changes is behind what is shown of the lines)")
        return bool(diff) and head == len(diff) and not any(map(_is_cut, (*before, *after)))

    def _show_all(self, change: Change) -> None:
        before, after = (_lines(text) for text in (change.before or "", change.after))
        if len(before) + len(after) > MOST_COMPARED:
            print(printable(change.after))
            return
        for line in _diff(change.path, before, after):
            self._beside.print(line, soft_wrap=True)

    def _print(self, text: str) -> None:
        """A piece of an answer, which may end between a return and the line's end that it belongs to."""
        text, self._held = self._held + text, ""
        if text.endswith("\r"):
            text, self._held = text[:-1], "\r"
        if text:
            print(printable(text), end="", flush=True)
            self._column = not text.endswith("\n")

    def _dim(self, text: str, end: str = "\n") -> None:
        from rich.text import Text

        self._beside.print(Text(text, style="dim"), end=end, soft_wrap=True)

    def _end_thinking(self) -> None:
        if self._thinking:
            self._thinking = False
            self._beside.print()

    def _stop_waiting(self) -> None:
        if self._waiting is not None:
            self._waiting.stop()
            self._waiting = None


_YES = ("y", "yes")


def _answer(question: str) -> str:
    """What a person answers, in small letters; nothing where none answers."""
    try:
        return input(printable(question)).strip().casefold()
    except EOFError:
        print()
        return ""


def _beside(*, stderr: bool) -> Console:
    from rich.console import Console

    class Ours(Console):
        def on_broken_pipe(self) -> None:
            """By itself it would leave, with an exit code of its own."""
            raise BrokenPipeError

    return Ours(stderr=stderr, highlight=False)


def _diff(path: str, before: Sequence[str], after: Sequence[str]) -> Sequence[RichText]:
    return list(color_diff("\n".join(unified_diff(before, after, path, path, lineterm="", n=1))))


def _lines(text: str) -> list[str]:
    """With what is odd about their ends, a return or none at all: that may be what changes."""
    *lines, rest = text.split("\n")
    return [*lines, rest, "(no line end)"] if rest else lines


def _shown(line: str) -> str:
    return f"{line[:MOST_LINE]}… ({len(line):,} characters)" if _is_cut(line) else line


def _is_cut(line: str) -> bool:
    return len(line) > MOST_LINE


def _in_short(arguments: str) -> str:
    """What a call is about: the first of its arguments, or what the model wrote, where that is no JSON."""
    try:
        given = json.loads(arguments or "{}")
    except (ValueError, RecursionError):
        given = arguments
    said = next(iter(given.values()), "") if isinstance(given, dict) else given  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType] -- a model wrote it
    text = str(said).encode(errors="backslashreplace").decode()  # pyright: ignore[reportUnknownArgumentType] -- half of a pair of surrogates is no text
    return shortened(text, WIDTH // 2)

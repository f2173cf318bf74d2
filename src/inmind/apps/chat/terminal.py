"""Input and output of a chat, on a terminal or in a pipe.

On a terminal everything is on one screen: answers as they arrive, and dimmed notes about tools. In a pipe only answers
go to stdout and the rest to stderr, so that `… | inmind chat > answer.txt` has just the answer. With --json each
complete answer is one JSON object per line.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.text import Text

from inmind.apps.cli.console import collapse_whitespace, console
from inmind.apps.signals import InterruptHandler
from inmind.core.frozen import frozen
from inmind.core.json import is_object
from inmind.core.messages.model import Message, ReplyUsage
from inmind.core.text import printable, shorten
from inmind.core.tokens import Rates, Usage
from inmind.errors import InvalidInput
from inmind.prompt.report import Report
from inmind.store.file_operations import SAFE_FLAGS, opened

WIDTH = 80
MIN_NAME_COLUMNS = 12
"""Below this width the status line has no names."""

HISTORY_FILE = "chat-history"
"""File in the home with the lines of earlier chats, private to the user."""

MAX_HISTORY_LINES = 1_000

PROMPT, CONTINUATION_PROMPT = "> ", "… "

ReadLine = Callable[[str], str | None]
"""Returns the next line, or None at the end. The argument is the prompt of a terminal."""


@frozen
class ChatToolUse:
    """A call of a tool, with the arguments as the model wrote them, and its result."""

    name: str
    arguments: str
    result: str
    error: bool = False

    @property
    def parsed_arguments(self) -> Any:
        """Parsed arguments, or the text if it is not JSON."""
        try:
            return json.loads(self.arguments or "{}")
        except (ValueError, RecursionError):
            return self.arguments


@dataclass(kw_only=True)
class ChatTurn:
    """An answer, its usage and how it ended. Each round adds to it."""

    text: str = ""
    report: Report | None = None
    """Report of the last prompt."""
    tools: tuple[ChatToolUse, ...] = ()
    notices: tuple[str, ...] = ()
    """Notices of memory, for example about a compaction."""
    end_reason: str = ""
    """Reason if the answer is incomplete; otherwise empty."""
    usage: Usage = field(default_factory=Usage)
    """Sums over the rounds."""
    is_estimated: bool = False
    """The provider has not reported the usage of all rounds."""

    def add_usage(self, usage: ReplyUsage, *, is_estimated: bool) -> None:
        uncached = self.usage.uncached + usage.prompt_tokens - usage.cached_tokens
        completion = self.usage.completion + usage.completion_tokens
        self.usage = Usage(cached=self.usage.cached + usage.cached_tokens, uncached=uncached, completion=completion)
        self.is_estimated = self.is_estimated or is_estimated

    @property
    def tokens(self) -> int:
        return self.usage.tokens + self.usage.completion

    def price(self, prices: tuple[float, float]) -> float:
        """Cost at these prices per million input and output tokens."""
        input_price, output_price = prices
        return self.usage.price(Rates.per_million(input=input_price)) + self.usage.completion * output_price / 1e6


def status_line(turn: ChatTurn, entities: Sequence[str], prices: tuple[float, float], *, width: int = WIDTH) -> str:
    """One line within the width; names are cut first, numbers last."""
    if turn.report is None:
        return ""
    tokens = f"{turn.tokens:,} tokens, {turn.usage.cached_share:.0%}"
    numbers = [
        f"{turn.report.band.replace('_', ' ')}, {turn.report.tokens_percent:.0f}% full",
        f"about {tokens} cacheable" if turn.is_estimated else f"{tokens} from cache",
        *([f"${turn.price(prices):.4f}"] if any(prices) else []),
    ]
    room = width - len(" · ".join(["", *numbers]))
    if not entities or room < MIN_NAME_COLUMNS:
        return " · ".join(numbers)[:width]
    names = Text(printable(shorten(f"in mind: {', '.join(entities)}", room)))
    names.truncate(room, overflow="ellipsis")  # a character may be two columns wide
    return " · ".join([names.plain, *numbers])


def describe_exchange(title: str, messages: Sequence[Message], *, width: int) -> Iterator[str]:
    """Lines about a resumed session: its title, and its last exchange in equal parts."""
    if title:
        yield shorten(f"About: {title}", width)
    if messages:
        question, *answers = messages
        is_answered = bool(answers) and answers[-1].role == "assistant"
        answer = " ".join(one.text for one in answers if one.role == "assistant" and one.text)
        room = (width - len("Last:  → ")) // 2
        reply = answer if is_answered else "no answer yet: /retry"
        yield f"Last: {shorten(question.text, room)} → {shorten(reply, room)}"


class ChatOutput:
    """Prints the chat. `interactive`: stdin and stdout are terminals."""

    def __init__(self, *, interactive: bool, as_json: bool = False) -> None:
        self.interactive, self.as_json = interactive, as_json
        self._out, self._console = sys.stdout, console(stderr=not interactive)
        self._is_inside_line, self._is_thinking = False, False

    @property
    def width(self) -> int:
        return min(WIDTH, self._console.width) if self.interactive else WIDTH

    def show_piece(self, text: str, reasoning: str = "") -> None:
        """Print a piece of an answer, without carriage returns."""
        if self.as_json:
            return
        if reasoning and self.interactive:
            self.print_note(reasoning, end="")
            self._is_thinking = True
        if text := text.replace("\r", ""):
            self._end_thinking()
            print(printable(text), end="", flush=True)
            self._is_inside_line = not text.endswith("\n")

    def end_answer(self) -> None:
        self._end_thinking()
        if self._is_inside_line:
            print(flush=True)
        self._is_inside_line = False

    def show_tool_use(self, use: ChatToolUse) -> None:
        """Print one line per call: its first argument and its result."""
        parsed = use.parsed_arguments
        argument = next(iter(parsed.values()), "") if is_object(parsed) else parsed
        text = str(argument).encode(errors="backslashreplace").decode()  # escape unpaired surrogates
        mark, half = "✗" if use.error else "·", WIDTH // 2
        head = collapse_whitespace(f"{mark} {shorten(use.name, half)} {shorten(text, half)}")
        room = max(20, self.width - len(head) - len(" → "))
        self.print_note(f"{head} → {shorten(collapse_whitespace(use.result), room)}")

    def print_note(self, text: str, end: str = "\n") -> None:
        self._console.print(Text(printable(text), style="dim"), end=end, soft_wrap=True)

    def print_error(self, text: str) -> None:
        self._console.print(Text(printable(f"! {collapse_whitespace(text)}"), style="red"), soft_wrap=True)

    def print_json(self, answer: Mapping[str, Any]) -> None:
        print(json.dumps(answer), file=self._out, flush=True)  # ASCII: no control characters reach the terminal

    def _end_thinking(self) -> None:
        if self._is_thinking:
            self._is_thinking = False
            self._console.print()


def read_messages(read: ReadLine) -> Iterator[str]:
    """Messages; lines that end in a backslash are joined, empty ones are skipped."""
    while (line := read(PROMPT)) is not None:
        lines = [line]
        while lines[-1].endswith("\\") and (more := read(CONTINUATION_PROMPT)) is not None:
            lines[-1] = lines[-1].removesuffix("\\")
            lines.append(more)
        if message := "\n".join(lines).removesuffix("\\").strip():
            yield message


def terminal_reader(interrupts: InterruptHandler) -> ReadLine:
    """Reads lines from the terminal. Ctrl-C and Ctrl-D end the input."""

    def read(prompt: str) -> str | None:
        interrupts.discard()
        try:
            with interrupts.interruptible():
                return input(prompt)
        except (EOFError, KeyboardInterrupt):
            print()
            return None

    return read


def pipe_reader(interrupts: InterruptHandler) -> ReadLine:
    def read(_: str) -> str | None:
        with interrupts.interruptible():
            line = sys.stdin.buffer.readline()
        try:
            return line.decode().rstrip("\r\n") if line else None
        except UnicodeDecodeError as error:
            raise InvalidInput(field="stdin", value=line, expected="text in UTF-8") from error

    return read


@contextmanager
def line_editor(home: Path | None) -> Generator[None]:
    """Enable readline with the history of earlier chats, if both are available."""
    try:
        import readline
    except ImportError:  # not part of every Python build
        yield
        return
    readline.set_history_length(MAX_HISTORY_LINES)
    if "libedit" not in (readline.__doc__ or ""):  # Python disables it; a pasted text would become one message per line
        readline.parse_and_bind("set enable-bracketed-paste on")
    with suppress(OSError):
        if home is not None:
            _make_private(home / HISTORY_FILE)
            readline.read_history_file(home / HISTORY_FILE)
    try:
        yield
    finally:
        with suppress(OSError):
            if home is not None:
                _make_private(home / HISTORY_FILE)
                readline.write_history_file(home / HISTORY_FILE)


def _make_private(file: Path) -> None:
    """Create the file if needed, readable only by its owner; refuses a link."""
    with opened(file, os.O_RDWR | os.O_CREAT | SAFE_FLAGS) as descriptor:
        os.fchmod(descriptor, 0o600)

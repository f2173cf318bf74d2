"""A prompt, drawn: as a bar, as a table by layer, and as the text that was sent.

Everything is drawn of values and returned, so that `inmind show prompt`, the chat and the demonstration show it in one
way. Nothing depends on colour: the letters that a terminal hides under it are what a pipe is left with.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, Literal

from rich.cells import cell_len
from rich.table import Column, Table
from rich.text import Text

from inmind.apps.cli.console import plain_table
from inmind.core.encoding import to_json
from inmind.core.frozen import frozen
from inmind.core.messages import FORMATS
from inmind.core.messages import Text as Words
from inmind.core.messages.model import Call, Image, Message, Opaque, Part, Result, Wire
from inmind.core.text import printable
from inmind.prompt.explain import Explanation, span
from inmind.prompt.report import Preview, Prompt, Report

if TYPE_CHECKING:
    from rich.console import Console

Served = Literal["cached", "new", "tail"]

_LOOKS: dict[str, tuple[str, str]] = {
    "tools": ("T", "bright_black"),
    "system": ("S", "white"),
    "guide": ("G", "cyan"),
    "memory:state": ("s", "magenta"),
    "memory:notes": ("n", "bright_magenta"),
    "memory:retained": ("r", "bright_red"),
    "memory:working-memory": ("p", "bright_cyan"),
    "memory:overview": ("o", "blue"),
    "memory:entities": ("e", "green"),
    "history": ("H", "yellow"),
    "changes": ("C", "red"),
    "context_meta": ("M", "bright_yellow"),
}
"""Capitals are what every prompt has, small letters are layers."""
_HOSTS_LAYERS = ("bright_blue", "bright_green", "bright_white")
_FREE, _BROKEN = "·", "⋯"
_LAYER = "memory:"
"""In front of a layer's name, in a report."""
_TAIL = ("changes", "context_meta")
_SERVED: dict[Served, tuple[str, str, str]] = {
    "cached": ("━", "green", "from cache"),
    "new": ("─", "yellow", "new"),
    "tail": ("╌", "red", "in the tail"),
}

UNSCALED = 4
"""Where what is sent would take less of the bar than one in so many, free room gets that much, and a break in it: a
prompt is looked at for what is in it."""


@frozen(kw_only=True)
class Stretch:
    """One part of a prompt, as a piece of the bar."""

    part: str
    """As the report calls it."""
    letter: str
    colour: str
    tokens: int
    cached: int
    """So many of them, the first ones, stood at the same place in the prompt before."""

    @property
    def name(self) -> str:
        return _plain(self.part)

    @property
    def served(self) -> dict[Served, int]:
        if self.part in _TAIL:
            return {"tail": self.tokens}
        return {"cached": self.cached, "new": self.tokens - self.cached}


@frozen
class Passage:
    """A text that was sent, and which part of the prompt it is, as the report calls that."""

    part: str
    said: str
    """By whom or as what, where the part alone does not tell."""
    text: str


def stretches(report: Report) -> list[Stretch]:
    """The parts of a prompt in the order in which the model reads them; none that takes no room."""
    cached, before = 0 if report.cold else report.cached_prefix_tokens, 0
    looks = _looks(report)
    found: list[Stretch] = []
    for part, tokens in report.tokens.items():
        letter, colour = looks[part]
        known = min(max(0, cached - before), tokens)
        if tokens:
            found.append(Stretch(part=part, letter=letter, colour=colour, tokens=tokens, cached=known))
        before += tokens
    return found


def bar(report: Report, *, width: int) -> list[Text]:
    """One line for what is in the window, one for how the provider serves it."""
    parts = stretches(report)
    free = max(0, report.tokens_max - sum(part.tokens for part in parts))
    unscaled = width // UNSCALED if parts and free > report.tokens_max * (1 - 1 / UNSCALED) else None
    if unscaled is None:
        *sizes, left = cells([*(part.tokens for part in parts), free], width)
    else:
        sizes, left = cells([part.tokens for part in parts], width - unscaled), unscaled
    line, below = Text(), Text()
    for part, size in zip(parts, sizes, strict=True):
        line.append(_painted(part, size))
        for (served, _), share in zip(part.served.items(), cells(list(part.served.values()), size), strict=True):
            mark, colour, _ = _SERVED[served]
            below.append(mark * share, colour)
    room = _FREE * left
    if unscaled is not None and left > 2:
        room = f"{_FREE * (left // 2)}{_BROKEN}{_FREE * (left - left // 2 - 1)}"
    return [line.append(room, "bright_black"), below]


def legend(report: Report, *, width: int) -> list[Text]:
    """What the letters stand for, and how many tokens each; then the same by how they are served."""
    parts = stretches(report)
    named = [
        Text.assemble((part.letter, f"bold {part.colour}"), f" {printable(part.name)} {part.tokens:,}")
        for part in parts
    ]
    free = max(0, report.tokens_max - sum(part.tokens for part in parts))
    named.append(Text.assemble((_FREE, "bright_black"), f" free {free:,} of {report.tokens_max:,}"))
    return [*_packed(named, width), *_packed(list(_by_service(parts)), width)]


def table(report: Report, explanation: Explanation) -> Table:
    """Part by part: tokens, share of the prompt, how it is served, and why it is there or is not."""
    parts = {part.part: part for part in stretches(report)}
    total = sum(part.tokens for part in parts.values()) or 1
    drawn = plain_table(
        Column("", no_wrap=True),
        Column("part", no_wrap=True),
        Column("tokens", justify="right", no_wrap=True),
        Column("share", justify="right", no_wrap=True),
        Column("served", no_wrap=True),
        Column("why", ratio=1),
        expand=True,
        header_style="dim",
    )
    for one in explanation.parts:
        part = parts.get(one.name) if one.tokens else None
        why = one.why if one.fate == "included" else f"{one.fate}: {one.why}".removesuffix(": ")
        origin = f" ({span(one.sources)})" if one.sources else ""
        drawn.add_row(
            Text(part.letter, f"bold {part.colour}") if part else "",
            Text(printable(_plain(one.name))),
            Text(f"{one.tokens:,}"),
            Text(f"{100 * one.tokens / total:.0f}%" if one.tokens else ""),
            Text(_in_words(part) if part else ""),
            Text(printable(why + origin), style="" if one.fate == "included" else "yellow"),
        )
    return drawn


def passages(prompt: Prompt) -> Iterator[Passage]:
    """All that was sent, in the order in which the model reads it, word for word."""
    spoken = FORMATS[prompt.format]
    if prompt.tools:
        yield Passage("tools", "", "\n".join(map(to_json, prompt.tools)))
    system = prompt.system
    layers = [part for part, tokens in prompt.report.tokens.items() if part.startswith(_LAYER) and tokens]
    for text in [system] if isinstance(system, str) else _texts_of(system or ()):
        yield from _of_the_host_or_ours(text, prompt.memory, layers)
    carrier = spoken.carrier(prompt.messages) if prompt.report.tokens.get("context_meta") else None
    for place, wire in enumerate(prompt.messages):
        message = spoken.read(wire)
        if message.role in ("system", "developer") and spoken.is_system(wire):
            for text in map(_shown, message.parts):
                yield from _of_the_host_or_ours(text, prompt.memory, layers)
            continue
        yield from _of_a_message(message, carries=place == carrier)


def as_sent(prompt: Prompt, *, width: int) -> Iterator[Text]:
    """The text, each passage below a line that says which part of the prompt it is. No line of it is ever broken."""
    looks = _looks(prompt.report)
    for passage in passages(prompt):
        letter, colour = looks.get(passage.part, ("", "default"))
        said = f", {passage.said}" if passage.said else ""
        title = printable(f"── {letter} {_plain(passage.part)}{said} ")
        yield Text()
        yield Text(f"{title:─<{width}}", colour)
        yield Text(printable(passage.text))


def drawn(prompt: Prompt, explanation: Explanation, *, width: int) -> Iterator[Text | Table]:
    """The whole picture: what fills the window, why, and word for word."""
    report = prompt.report
    cached = 0 if report.cold else report.cached_prefix_tokens
    full = f"{report.tokens_used:,} of {report.tokens_max:,} tokens"
    call = "Next call" if isinstance(prompt, Preview) else f"Call {prompt.call}"
    yield Text(f"{call}, for {prompt.format}: {full}, {cached:,} of them from cache.")
    yield from bar(report, width=width)
    yield Text()
    yield table(report, explanation)
    yield from as_sent(prompt, width=width)


def show(console: Console, prompt: Prompt, explanation: Explanation) -> None:
    """Texts go out as they are, however long: what is copied from here, or read from a pipe, is what was sent."""
    for one in drawn(prompt, explanation, width=console.width):
        console.print(one, soft_wrap=isinstance(one, Text))


def in_numbers(report: Report) -> dict[str, Any]:
    """What the bar shows, for programs."""
    cached = 0 if report.cold else report.cached_prefix_tokens
    return {
        "call": report.call,
        "tokens": dict(report.tokens),
        "tokens_used": report.tokens_used,
        "tokens_max": report.tokens_max,
        "from_cache": cached,
        "cut": list(report.cut),
        "left_out": list(report.left_out),
    }


def cells(sizes: Sequence[int], width: int) -> list[int]:
    """Cells of a bar for each size: to scale, all of the width, and one at least for whatever there is, if one is left.

    What is smaller than a cell is what a bar is looked at for: a tail of 60 tokens behind a history of 60,000.
    """
    total = sum(sizes)
    if not total:
        return [0 for _ in sizes]
    ideal = [size * width / total for size in sizes]
    given = [max(int(exact), 1) if size else 0 for size, exact in zip(sizes, ideal, strict=True)]
    while (left := width - sum(given)) != 0:
        step = 1 if left > 0 else -1
        owed = [(exact - have) * step for exact, have in zip(ideal, given, strict=True)]
        # Whoever has more than one cell gives first; only where nobody has are the smallest left without.
        able = [i for i, have in enumerate(given) if sizes[i] and (step > 0 or have > 1)]
        chosen = able or [i for i, have in enumerate(given) if have]
        given[max(chosen, key=lambda i: owed[i])] += step
    return given


def _painted(part: Stretch, size: int) -> Text:
    """The letter over and over, on its own colour: a block where there are colours, with the letter once in it."""
    painted = Text(part.letter * size, f"{part.colour} on {part.colour}")
    if size >= len(" x "):
        painted.stylize(f"black on {part.colour}", size // 2, size // 2 + 1)
    return painted


def _looks(report: Report) -> dict[str, tuple[str, str]]:
    """A letter and a colour for each part; a host's own layer gets the first letter of its name that is free."""
    looks = {part: _LOOKS[part] for part in report.tokens if part in _LOOKS}
    free = [letter for letter in _LETTERS if letter not in {taken for taken, _ in _LOOKS.values()}]
    for number, part in enumerate(part for part in report.tokens if part not in _LOOKS):
        letter = next((one for one in [*_plain(part).lower(), *free] if one in free), "?")
        looks[part] = (letter, _HOSTS_LAYERS[number % len(_HOSTS_LAYERS)])
        free = [one for one in free if one != letter]
    return looks


_LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789"


def _plain(part: str) -> str:
    return part.removeprefix(_LAYER)


def _packed(entries: Sequence[Text], width: int, gap: int = 2) -> Iterator[Text]:
    """As many in a line as fit, and none broken."""
    line = Text()
    for entry in entries:
        if line.plain and cell_len(line.plain) + gap + cell_len(entry.plain) > width:
            yield line
            line = Text()
        line.append(" " * gap if line.plain else "").append(entry)
    if line.plain:
        yield line


def _by_service(parts: Sequence[Stretch]) -> Iterator[Text]:
    for served, (mark, colour, words) in _SERVED.items():
        if tokens := sum(part.served.get(served, 0) for part in parts):
            yield Text.assemble((mark * 2, colour), f" {tokens:,} {words}")


def _in_words(part: Stretch) -> str:
    there = [(served, tokens) for served, tokens in part.served.items() if tokens]
    if len(there) == 1:
        return there[0][0]
    return ", ".join(f"{tokens:,} {served}" for served, tokens in there)


# -- the text ------------------------------------------------------------------------------------------------

# Stored text cannot open one of our blocks: what looks like the beginning of one is one.
_BLOCK = re.compile(r'\n\n(?=<memory layer="|<working_memory>)')
_META = re.compile(r"\n(?=<context_meta>\n)")


def _of_the_host_or_ours(text: str, ours: str, layers: Sequence[str]) -> Iterator[Passage]:
    """A text in front of the conversation: the host's own prompt, or what we put behind it, layer by layer."""
    if text != ours:
        yield Passage("system", "", text)
        return
    guide, *blocks = _BLOCK.split(text)
    yield Passage("guide", "", guide)
    for layer, block in zip_longest(layers[: len(blocks)], blocks, fillvalue=f"{_LAYER}?"):
        yield Passage(layer, "", block)


def _of_a_message(message: Message, *, carries: bool) -> Iterator[Passage]:
    tail = message.parts[-1] if carries and message.parts else None
    for part in message.parts:
        if part is tail and isinstance(part, Words):
            *changes, meta = _META.split(part.text)
            yield from (Passage("changes", "", text) for text in changes)
            yield Passage("context_meta", "", meta)
        else:
            yield Passage("history", _spoken_by(message, part), _shown(part))


def _spoken_by(message: Message, part: Part) -> str:
    match part:
        case Call():
            return f"{message.role} calls {part.name}"
        case Result():
            return "result"
        case _:
            return message.role


def _shown(part: Part) -> str:
    match part:
        case Words():
            return part.text
        case Call():
            return part.arguments
        case Result():
            return "\n".join(map(_shown, part.parts))
        case Image():
            return f"[image, {part.media_type or part.source}]"
        case Opaque():
            return to_json(part.body)


def _texts_of(blocks: Sequence[Wire]) -> list[str]:
    return [str(block["text"]) if "text" in block else to_json(block) for block in blocks]

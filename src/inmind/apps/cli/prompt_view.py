"""Draws a prompt: as a bar, as a table by layer, and as the text that was sent.

The functions return values, so that `inmind show prompt`, the chat and the demo share them. Nothing depends on colour:
in a pipe the letters remain.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from string import ascii_lowercase, digits
from typing import Any, Literal

from rich.table import Column, Table
from rich.text import Text

from inmind.apps.cli.console import right_aligned, table
from inmind.core.encoding import to_json
from inmind.core.frozen import frozen
from inmind.core.messages import FORMATS
from inmind.core.messages.model import Call, Image, Message, Opaque, Part, Result, Wire
from inmind.core.messages.model import Text as TextPart
from inmind.core.text import printable
from inmind.prompt.report import Explanation, Prompt, PromptPreview, Report, format_sources
from inmind.prompt.templates import is_changes_part

CacheState = Literal["cached", "new", "tail"]

_STYLES: dict[str, tuple[str, str]] = {
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
"""Letter and colour by part. Capitals are parts of every prompt, small letters are layers."""
_CUSTOM_LAYER_COLOURS = ("bright_blue", "bright_green", "bright_white")
_FREE, _BREAK = "·", "⋯"
_LAYER_PREFIX = "memory:"
"""Prefix of a layer's name in a report."""
_TAIL = "context_meta"
_CACHE_MARKS: dict[CacheState, tuple[str, str]] = {
    "cached": ("━", "green"),
    "new": ("─", "yellow"),
    "tail": ("╌", "red"),
}

SCALE_LIMIT = 4
"""If the prompt fills less than 1/SCALE_LIMIT of the window, free space gets 1/SCALE_LIMIT of the bar and a break mark.
"""


@frozen(kw_only=True)
class BarPart:
    """One part of a prompt, as a segment of the bar."""

    part: str
    """Name in the report."""
    letter: str
    colour: str
    tokens: int
    cached: int
    """Leading tokens that were at the same place in the previous prompt."""

    @property
    def name(self) -> str:
        return _part_name(self.part)

    @property
    def by_cache_state(self) -> dict[CacheState, int]:
        if self.part == _TAIL:
            return {"tail": self.tokens}
        return {"cached": self.cached, "new": self.tokens - self.cached}


@frozen
class PromptText:
    """A text that was sent, with the name of its part in the report."""

    part: str
    label: str
    """Speaker or kind, if the part alone does not determine it."""
    text: str


def bar_parts(report: Report) -> list[BarPart]:
    """Parts with tokens, in the order in which the model reads them."""
    cached, before = _cached_tokens(report), 0
    styles = _part_styles(report)
    parts: list[BarPart] = []
    for part, tokens in report.tokens.items():
        letter, colour = styles[part]
        known = min(max(0, cached - before), tokens)
        if tokens:
            parts.append(BarPart(part=part, letter=letter, colour=colour, tokens=tokens, cached=known))
        before += tokens
    return parts


def bar(report: Report, *, width: int) -> list[Text]:
    """Two lines: the prompt and the room that it has, and which of it comes from the cache."""
    parts, free = bar_parts(report), free_tokens(report)
    total = free + sum(part.tokens for part in parts)
    capped_free = width // SCALE_LIMIT if parts and free > total * (1 - 1 / SCALE_LIMIT) else None
    if capped_free is None:
        *sizes, free_cells = scale_to_width([*(part.tokens for part in parts), free], width)
    else:
        sizes, free_cells = scale_to_width([part.tokens for part in parts], width - capped_free), capped_free
    line, cache_line = Text(), Text()
    for part, size in zip(parts, sizes, strict=True):
        line.append(_paint(part, size))
        states = part.by_cache_state
        for cache_state, share in zip(states, scale_to_width(list(states.values()), size), strict=True):
            mark, colour = _CACHE_MARKS[cache_state]
            cache_line.append(mark * share, colour)
    room = _FREE * free_cells
    if capped_free is not None and free_cells > 2:
        room = f"{_FREE * (free_cells // 2)}{_BREAK}{_FREE * (free_cells - free_cells // 2 - 1)}"
    return [line.append(room, "bright_black"), cache_line]


def free_tokens(report: Report) -> int:
    """Tokens by which memory and history can still grow."""
    return max(0, report.room - report.room_used)


def parts_table(report: Report, explanation: Explanation) -> Table:
    """One row per part: tokens, share, cache state, and the reason why it is included or not."""
    parts = {part.part: part for part in bar_parts(report)}
    total = sum(part.tokens for part in parts.values()) or 1
    columns = ("", "part", *right_aligned("tokens", "share"), "served", Column("why", ratio=1))
    rows: list[tuple[str | Text, ...]] = []
    for one in explanation.parts:
        part = parts.get(one.name) if one.tokens else None
        why = one.why if one.fate == "included" else f"{one.fate}: {one.why}".removesuffix(": ")
        origin = f" ({format_sources(one.sources)})" if one.sources else ""
        row = (
            Text(part.letter, f"bold {part.colour}") if part else "",
            _part_name(one.name),
            f"{one.tokens:,}",
            f"{100 * one.tokens / total:.0f}%" if one.tokens else "",
            _cache_text(part) if part else "",
            Text(printable(why + origin), style="" if one.fate == "included" else "yellow"),
        )
        rows.append(row)
    return table(columns, rows, expand=True, header_style="dim")


def prompt_texts(prompt: Prompt) -> Iterator[PromptText]:
    """All texts that were sent, verbatim, in the order in which the model reads them."""
    fmt = FORMATS[prompt.format]
    if prompt.tools:
        yield PromptText("tools", "", "\n".join(map(to_json, prompt.tools)))
    system = prompt.system
    layers = [part for part, tokens in prompt.report.tokens.items() if part.startswith(_LAYER_PREFIX) and tokens]
    blocks: Sequence[Wire] = [{"text": system}] if isinstance(system, str) else system or ()
    for text in (str(block["text"]) if "text" in block else to_json(block) for block in blocks):
        yield from _split_system_text(text, prompt.memory, layers)
    carrier = fmt.tail_index(prompt.messages) if prompt.report.tokens.get("context_meta") else None
    for place, wire in enumerate(prompt.messages):
        message = fmt.read(wire)
        if message.role in ("system", "developer") and fmt.is_system(wire):
            for text in map(_part_text, message.parts):
                yield from _split_system_text(text, prompt.memory, layers)
            continue
        yield from _split_message(message, carries=place == carrier)


def render_texts(prompt: Prompt, *, width: int) -> Iterator[Text]:
    """Each text below a title line with its part. Lines are never wrapped."""
    styles = _part_styles(prompt.report)
    for passage in prompt_texts(prompt):
        letter, colour = styles.get(passage.part, ("", "default"))
        label = f", {passage.label}" if passage.label else ""
        title = printable(f"── {letter} {_part_name(passage.part)}{label} ")
        yield Text()
        yield Text(f"{title:─<{width}}", colour)
        yield Text(printable(passage.text))


def render_prompt(prompt: Prompt, explanation: Explanation, *, width: int) -> Iterator[Text | Table]:
    """The complete view: bar, table and texts."""
    report = prompt.report
    cached = f"{_cached_tokens(report):,} of them from cache"
    size = f"{report.tokens_used:,} of {report.tokens_max:,} tokens, {cached}"
    call = "Next call" if isinstance(prompt, PromptPreview) else f"Call {prompt.call}"
    yield Text(f"{call}, for {prompt.format}: {size}; room {report.tokens_percent:.0f}% full.")
    yield from bar(report, width=width)
    yield Text()
    yield parts_table(report, explanation)
    yield from render_texts(prompt, width=width)


def report_json(report: Report) -> dict[str, Any]:
    """The numbers of the bar as JSON."""
    as_is = ("call", "tokens", "tokens_used", "tokens_max", "room_used", "room", "band")
    return {
        **{name: getattr(report, name) for name in as_is},
        "tokens": dict(report.tokens),
        "tokens_percent": round(report.tokens_percent, 1),
        "from_cache": _cached_tokens(report),
        "cut": list(report.cut),
        "left_out": list(report.left_out),
    }


def _cached_tokens(report: Report) -> int:
    return 0 if report.cold else report.cached_prefix_tokens


def scale_to_width(sizes: Sequence[int], width: int) -> list[int]:
    """Distribute `width` cells over sizes, to scale.

    Each non-zero size gets at least one cell if possible: a tail of 60 tokens after a history of 60,000 must stay
    visible.
    """
    total = sum(sizes)
    if not total:
        return [0 for _ in sizes]
    ideal = [size * width / total for size in sizes]
    widths = [max(int(exact), 1) if size else 0 for size, exact in zip(sizes, ideal, strict=True)]
    while (remaining := width - sum(widths)) != 0:
        step = 1 if remaining > 0 else -1
        deficits = [(exact - cells) * step for exact, cells in zip(ideal, widths, strict=True)]
        # Shrink parts with more than one cell first; only if there are none, the smallest parts get no cell.
        candidates = [i for i, cells in enumerate(widths) if sizes[i] and (step > 0 or cells > 1)]
        adjustable = candidates or [i for i, cells in enumerate(widths) if cells]
        widths[max(adjustable, key=lambda i: deficits[i])] += step
    return widths


def _paint(part: BarPart, size: int) -> Text:
    """The letter repeated on its colour.

    With colours it is a solid block with one visible letter.
    """
    painted = Text(part.letter * size, f"{part.colour} on {part.colour}")
    if size >= len(" x "):
        painted.stylize(f"black on {part.colour}", size // 2, size // 2 + 1)
    return painted


def _part_styles(report: Report) -> dict[str, tuple[str, str]]:
    """Letter and colour of each part; a custom layer gets the first free letter of its name."""
    styles = {part: _STYLES[part] for part in report.tokens if part in _STYLES}
    free = [letter for letter in ascii_lowercase + digits if letter not in {taken for taken, _ in _STYLES.values()}]
    for number, part in enumerate(part for part in report.tokens if part not in _STYLES):
        letter = next((one for one in [*_part_name(part).lower(), *free] if one in free), "?")
        styles[part] = (letter, _CUSTOM_LAYER_COLOURS[number % len(_CUSTOM_LAYER_COLOURS)])
        free = [one for one in free if one != letter]
    return styles


def _part_name(part: str) -> str:
    return part.removeprefix(_LAYER_PREFIX)


def _cache_text(part: BarPart) -> str:
    states = [(cache_state, tokens) for cache_state, tokens in part.by_cache_state.items() if tokens]
    if len(states) == 1:
        return states[0][0]
    return ", ".join(f"{tokens:,} {cache_state}" for cache_state, tokens in states)


# -- the text ------------------------------------------------------------------------------------------------

# Stored text is escaped, so it cannot contain the start of a memory block.
_BLOCK = re.compile(r'\n\n(?=<memory layer="|<working_memory>)')
_META = re.compile(r"\n(?=<context_meta>\n)")


def _split_system_text(text: str, memory_text: str, layers: Sequence[str]) -> Iterator[PromptText]:
    """The host's system text as is, or the memory text split into guide and layers."""
    if memory_text and text.endswith(f"\n\n{memory_text}"):  # in a thread, memory follows the host's instructions
        yield PromptText("system", "", text.removesuffix(f"\n\n{memory_text}"))
        text = memory_text
    if text != memory_text:
        yield PromptText("system", "", text)
        return
    guide, *blocks = _BLOCK.split(text)
    yield PromptText("guide", "", guide)
    for layer, block in zip_longest(layers[: len(blocks)], blocks, fillvalue=f"{_LAYER_PREFIX}?"):
        yield PromptText(layer, "", block)


def _split_message(message: Message, *, carries: bool) -> Iterator[PromptText]:
    tail = message.parts[-1] if carries and message.parts else None
    for part in message.parts:
        if part is tail and isinstance(part, TextPart):
            *changes, meta = _META.split(part.text)
            yield from (PromptText("changes", "", text) for text in changes)
            yield PromptText("context_meta", "", meta)
        elif isinstance(part, TextPart) and part is not message.parts[0] and is_changes_part(part.text):
            yield PromptText("changes", "", part.text)
        else:
            called = f" calls {part.name}" if isinstance(part, Call) else ""
            label = "result" if isinstance(part, Result) else f"{message.role}{called}"
            yield PromptText("history", label, _part_text(part))


def _part_text(part: Part) -> str:
    match part:
        case TextPart():
            return part.text
        case Call():
            return part.arguments
        case Result():
            return "\n".join(map(_part_text, part.parts))
        case Image():
            return f"[image, {part.media_type or part.source}]"
        case Opaque():
            return to_json(part.body)

"""Share of each prompt that equals the start of the previous one, while memory changes.

The measurement does not use inmind's report. Each request is written out in the order in which a provider reads it and
compared with the previous one; then inmind's report is compared with the result.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

from bench.conversations import SYSTEM, Message, exchanges, prose
from bench.table import Row, Table
from bench.tokenizers import counter
from inmind import Memory
from inmind.memory.backends import FolderBackend
from inmind.prompt.anchor import CACHE_SECONDS
from inmind.testing import InMemoryStore, ManualClock

TURNS = 200
TURNS_PER_CHANGE = 3
MIN_SHARE_OF_BARE = 0.95
READ, WRITE, PLAIN = 0.1, 1.25, 1.0
"""Prices of a token read from the cache, written to it, and sent without it."""

MAX_OVERSTATEMENT = 0.02
"""Share of a prompt. The report counts whole blocks and estimates tokens, so small differences are no error."""

SECONDS_BETWEEN_CALLS = 20.0
_count = counter()


@dataclass(frozen=True, slots=True)
class SentPrompt:
    """One request, in pieces, in the order in which a provider reads it."""

    pieces: tuple[str, ...]
    tail: int = 0
    """Tokens at the end, of the meter, that change with every call and are not worth writing to the cache."""
    reported: float = 0.0
    """The cached share according to inmind."""

    @property
    def tokens(self) -> int:
        return sum(map(_count, self.pieces))


@dataclass(frozen=True, slots=True)
class Cost:
    """Tokens of all prompts of a conversation: cached tokens of each, total, and tails."""

    cached: tuple[int, ...]
    total: int
    tails: int

    @property
    def share(self) -> float:
        return sum(self.cached) / self.total

    @property
    def price(self) -> float:
        read = sum(self.cached)
        return READ * read + WRITE * (self.total - read - self.tails) + PLAIN * self.tails


def run() -> list[Table]:
    dialogue = list(islice(exchanges(question_length=180, answer_length=420), TURNS))
    bare = _cost(_bare_prompts(dialogue))
    rows = [
        Row(
            what="bare history: cached share",
            measured=f"{bare.share:.1%}",
            figures={"share": bare.share, "price": bare.price, "tokens": bare.total},
        )
    ]
    for name, pages in PATTERNS.items():
        rows += _comparison_rows(name, bare, dialogue, pages)
    return [
        Table(
            f"prompt cache, {TURNS} turns, overview.md changes every {TURNS_PER_CHANGE} turns",
            rows,
            (
                "Cached: leading tokens (o200k) equal to those of the previous request, in the provider's order; the "
                "bar is on this share relative to the bare history. As reported: cached_prefix_tokens. Without "
                "anchoring: the prefix shows every change at once. Price, relative to the bare history: "
                f"{READ:g} read, {WRITE:g} written, {PLAIN:g} for the meter.",
            ),
        )
    ]


def _comparison_rows(name: str, bare: Cost, dialogue: Sequence[tuple[Message, Message]], pages: Pages) -> list[Row]:
    anchored, anchor_moves = _prompts_with_memory(dialogue, pages, anchored=True)
    unanchored, _ = _prompts_with_memory(dialogue, pages, anchored=False)
    with_anchor, without = _cost(anchored), _cost(unanchored)
    share_of_bare = with_anchor.share / bare.share
    differences = [
        prompt.reported - true / prompt.tokens for prompt, true in zip(anchored, with_anchor.cached, strict=True)
    ]
    too_high = sum(difference > MAX_OVERSTATEMENT for difference in differences)
    return [
        Row(
            what=f"{name}: cached share, of bare",
            measured=f"{share_of_bare:.1%} ({with_anchor.share:.1%}, anchor moved {anchor_moves}x)",
            bar=f">= {MIN_SHARE_OF_BARE:.0%}",
            met=share_of_bare >= MIN_SHARE_OF_BARE,
            figures={"of_bare": share_of_bare, "share": with_anchor.share, "moves": anchor_moves},
        ),
        Row(
            what="  without anchoring",
            measured=f"{without.share / bare.share:.1%} ({without.share:.1%})",
            figures={"of_bare": without.share / bare.share, "share": without.share},
        ),
        Row(
            what="  price: bare, anchored, without",
            measured=f"1.00, {with_anchor.price / bare.price:.2f}, {without.price / bare.price:.2f}",
            figures={"bare": bare.price, "anchored": with_anchor.price, "without": without.price},
        ),
        Row(
            what="  as reported, less as measured",
            measured=f"{min(differences):+.1%} to {max(differences):+.1%}, too high in {too_high} calls",
            figures={"lowest": min(differences), "highest": max(differences), "too_high": too_high},
        ),
    ]


def _cost(prompts: Sequence[SentPrompt]) -> Cost:
    previous = [SentPrompt(()), *prompts]
    cached = tuple(_shared_tokens(before.pieces, now.pieces) for before, now in zip(previous, prompts, strict=False))
    return Cost(cached, sum(prompt.tokens for prompt in prompts), sum(prompt.tail for prompt in prompts))


def _shared_tokens(before: Sequence[str], now: Sequence[str]) -> int:
    """Return the number of leading tokens that both requests share."""
    tokens = 0
    for old, new in zip(before, now, strict=False):
        if old != new:
            return tokens + _count(_common_prefix(old, new))
        tokens += _count(new)
    return tokens


def _common_prefix(old: str, new: str) -> str:
    """Return the common prefix of both texts."""
    pairs = enumerate(zip(old, new, strict=False))
    return new[: next((at for at, (a, b) in pairs if a != b), min(len(old), len(new)))]


def _pieces(request: dict[str, Any]) -> tuple[str, ...]:
    """Tools, then messages. A text is one piece, alone or as the only part of a list."""
    pieces = [json.dumps(request["tools"])] if request.get("tools") else []
    for message in request["messages"]:
        content: Any = message["content"]
        pieces.append(f"<|{message['role']}|>")
        pieces += [content] if isinstance(content, str) else [part["text"] for part in content]
    return tuple(pieces)


def _bare_prompts(dialogue: Sequence[tuple[Message, Message]]) -> list[SentPrompt]:
    return [SentPrompt(_pieces({"messages": list(messages)})) for messages in _host_lists(dialogue)]


def _prompts_with_memory(
    dialogue: Sequence[tuple[Message, Message]], pages: Pages, *, anchored: bool
) -> tuple[list[SentPrompt], int]:
    """Return the prompts of the conversation with memory, and how often the anchor moved.

    Without anchoring, the cache never counts as warm, so every change moves the anchor.
    """
    clock, page, prompts, anchor_moves = ManualClock(), pages(), list[SentPrompt](), 0
    with TemporaryDirectory() as folder, Memory(FolderBackend(Path(folder), InMemoryStore()), clock=clock) as memory:
        session = memory.session("bench", cwd="/bench", cache_seconds=CACHE_SECONDS if anchored else 0.0)
        for turn, messages in enumerate(_host_lists(dialogue)):
            if turn % TURNS_PER_CHANGE == 0:
                session.write("overview.md", next(page))
            prompt = session.prepare(messages)
            pieces = _pieces(prompt.request)
            reported = prompt.report.cached_prefix_tokens / prompt.report.tokens_used
            prompts.append(SentPrompt(pieces, tail=_count(pieces[-1]), reported=reported))
            anchor_moves += bool(prompt.report.anchor_moved) and turn > 0
            clock.advance(seconds=SECONDS_BETWEEN_CALLS)
    return prompts, anchor_moves


def _host_lists(dialogue: Sequence[tuple[Message, Message]]) -> Iterator[list[Message]]:
    """The host's list at each call."""
    messages: list[Message] = [{"role": "system", "content": SYSTEM}]
    for question, answer in dialogue:
        messages.append(question)
        yield messages
        messages.append(answer)


# -- pages: each yields overview.md after one more change ------------------------------------------

Pages = Callable[[], Iterator[str]]

_SECTIONS = {"Current task": 8, "Key decisions": 7, "Known facts": 9, "Open problems": 5}
"""Lines under each heading: together about 600 tokens."""


def _line_added() -> Iterator[str]:
    page, random = _first_page()
    page["Recent actions"] = []
    while True:
        page["Recent actions"].insert(0, prose(random, 48))
        yield _render_page(page)


def _line_replaced() -> Iterator[str]:
    page, random = _first_page()
    while True:
        lines = page[random.choice(list(page))]
        lines[random.randrange(len(lines))] = prose(random, 80)
        yield _render_page(page)


def _section_rewritten() -> Iterator[str]:
    """Change about a third of the page at once."""
    page, random = _first_page()
    while True:
        page["Known facts"] = [prose(random, 80) for _ in page["Known facts"]]
        yield _render_page(page)


PATTERNS: dict[str, Pages] = {
    "a line added": _line_added,
    "a line replaced": _line_replaced,
    "a section rewritten": _section_rewritten,
}


def _first_page() -> tuple[dict[str, list[str]], Random]:
    random = Random(17)
    return {name: [prose(random, 80) for _ in range(lines)] for name, lines in _SECTIONS.items()}, random


def _render_page(page: dict[str, list[str]]) -> str:
    sections = ("\n".join([f"## {name}", *(f"- {line}" for line in lines)]) for name, lines in page.items())
    return "# Working memory\n\n" + "\n\n".join(sections) + "\n"

"""Generated conversations to measure on, the same on every machine and in every run."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import islice
from random import Random
from typing import Any

Message = dict[str, Any]

_WORDS = """
the a page section image with for to of in on and that this is was not yet now we you it header footer layout deploy
build branch review commit failing test because after before when should would could please check update create
remove title hero caption width margin colour customer order refund invoice shipped address warehouse ticket error
timeout retry queue worker cache index query latency release window budget token prompt history memory note draft
""".split()

SYSTEM = (
    "You are the assistant of a web shop's content team. You build pages, find orders and answer questions. "
    "Use the tools for everything that changes data, tell briefly what you did, and ask when an instruction is unclear."
)


def prose(random: Random, characters: int) -> str:
    """Return random words of this length in ASCII, so that a character is a byte."""
    text = ""
    while len(text) < characters:
        text += random.choice(_WORDS) + (". " if random.random() < 0.08 else " ")
    return text[:characters].rstrip().ljust(characters, ".")


def conversation(messages: int) -> list[Message]:
    """Return an even number of messages of an agent: request, tool call, result, answer.

    If the number is not a multiple of four, the conversation starts with an exchange without tools, so that no call
    stays open.
    """
    opening = next(exchanges(question_length=90, answer_length=200))[: messages % 4]
    return [*opening, *islice(_agent_turns(Random(7)), messages - len(opening))]


def questions() -> Iterator[Message]:
    """Endless new user messages. A conversation can be continued with one at any point."""
    random = Random(11)
    while True:
        yield {"role": "user", "content": prose(random, random.randint(60, 240))}


def exchanges(*, question_length: int, answer_length: int) -> Iterator[tuple[Message, Message]]:
    """Endless turns of a plain chat, with texts of exactly these lengths."""
    random = Random(13)
    while True:
        yield (
            {"role": "user", "content": prose(random, question_length)},
            {"role": "assistant", "content": prose(random, answer_length)},
        )


def _agent_turns(random: Random) -> Iterator[Message]:
    number = 0
    while True:
        number += 1
        yield {"role": "user", "content": prose(random, random.randint(60, 240))}
        call = {"query": prose(random, 30), "limit": random.randint(1, 50)}
        function = {"name": "orders_search", "arguments": json.dumps(call)}
        yield {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": f"call_{number}", "type": "function", "function": function}],
        }
        orders = [_order(random) for _ in range(random.randint(2, 6))]
        yield {"role": "tool", "tool_call_id": f"call_{number}", "content": json.dumps({"orders": orders})}
        yield {"role": "assistant", "content": prose(random, random.randint(120, 600))}


def _order(random: Random) -> dict[str, Any]:
    return {
        "id": f"order-{random.randint(10_000, 99_999)}",
        "customer": prose(random, 14),
        "total": random.randint(500, 90_000) / 100,
        "status": random.choice(["open", "shipped", "refunded"]),
    }

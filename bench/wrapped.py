"""Overhead of memory per request: a wrapped client against the bare client."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from time import sleep
from typing import Any

from openai import OpenAI

from bench.conversations import conversation, prose, questions
from bench.prepare import COMMIT_SIZES, SETTLE_SECONDS, WINDOW, samples_per_setup, setup_count
from bench.table import Row, Table
from bench.timing import TimedCall, Timings, format_duration
from inmind import Memory, wrap

sys.path.append(str(Path(__file__).parents[1] / "tests"))  # for its provider, which the tests use too
from provider import Provider, reply_with


def run() -> list[Table]:
    races = {size: _time_size(size) for size in COMMIT_SIZES}
    return [
        Table(
            "a request of OpenAI chat through a wrapped client, by messages in history, against the bare client's",
            [_added_time(timings, size) for size, timings in races.items()],
            (
                "Wrapped: prepare, the request with memory and its tools, record; two commits. The provider is on "
                "loopback, in this process, and answers at once. The host's list grows by a reply and a message each "
                "time. Medians, interleaved.",
            ),
        )
    ]


def _added_time(timings: Timings, size: int) -> Row:
    wrapped, bare = timings.median("wrapped"), timings.median("bare")
    return Row(
        what=f"{size:>5,}: added by memory",
        measured=f"{format_duration(wrapped - bare)}, {wrapped / bare:.2f}x "
        f"({format_duration(wrapped)} / {format_duration(bare)})",
        figures={"added": wrapped - bare, "wrapped": wrapped, "p95": timings.p95("wrapped"), "bare": bare},
    )


def _time_size(size: int) -> Timings:
    timings = Timings()
    with ExitStack() as stack:
        provider = stack.enter_context(Provider())
        client = stack.enter_context(OpenAI(base_url=provider.openai, api_key="none", max_retries=0))
        memory = stack.enter_context(Memory.open(stack.enter_context(TemporaryDirectory())))
        for number in range(setup_count(size)):
            session = memory.session(f"bench-{number}", window=WINDOW, cwd="/bench")
            sleep(SETTLE_SECONDS)
            timed_calls = {
                "wrapped": _request_call(wrap(client, session), provider, size),
                "bare": _request_call(client, provider, size),
            }
            timings.run(timed_calls, repetitions=samples_per_setup(size))
    return timings


def _request_call(client: OpenAI, provider: Provider, size: int) -> TimedCall:
    host: list[Any] = conversation(size)
    new, random = questions(), Random(23)

    def add_message() -> None:
        host.append(next(new))
        provider.requests.clear()
        provider.will(reply_with(prose(random, 300)))

    def ask() -> None:
        reply = client.chat.completions.create(model="model-1", messages=host)
        host.append({"role": "assistant", "content": reply.choices[0].message.content})

    add_message()
    ask()
    return TimedCall(ask, before=add_message)

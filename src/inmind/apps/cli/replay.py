"""`inmind replay`: the effect of memory on recorded conversations."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from inmind.apps.cli.console import JsonOption, console, print_json
from inmind.core.pricing import Rates
from inmind.memory.session_opener import DEFAULT_WINDOW


def replay(
    files: Annotated[
        list[str], typer.Argument(metavar="FILE…", help="Recorded conversations, also as .gz or .zst; - is stdin.")
    ],
    window: Annotated[
        int, typer.Option(help="Context window in tokens; a small one shows what is cut.")
    ] = DEFAULT_WINDOW,
    limit: Annotated[int | None, typer.Option(min=1, help="Maximum number of recordings per file.")] = None,
    as_one: Annotated[
        bool, typer.Option("--joined", help="Replay all recordings of a file as one long session.")
    ] = False,
    cost_saving: Annotated[
        bool, typer.Option("--cost-saving", help="Compact as soon as it saves cost, and report the saving.")
    ] = False,
    memory_tools: Annotated[
        bool, typer.Option("--memory-tools/--no-memory-tools", help="Count the memory tool that a session offers.")
    ] = True,
    keep: Annotated[
        Path | None, typer.Option(help="Save the sessions in this new folder, for `inmind --home DIR show prompt …`.")
    ] = None,
    each: Annotated[bool, typer.Option("--each", help="Print a row per recording instead of per file.")] = False,
    input_price: Annotated[float, typer.Option("--input", min=0, help="Price per million input tokens.")] = 3.0,
    cached_price: Annotated[
        float | None,
        typer.Option("--cached", min=0, help="Price per million cached tokens; default: a tenth of --input."),
    ] = None,
    written_price: Annotated[
        float | None,
        typer.Option(
            "--written", min=0, help="Price per million tokens written to the cache; default: 1.25 of --input."
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Replay recorded conversations through memory.

    Compares tokens, price and ids with and without memory.
    Reads OpenAI chat lists, Anthropic messages, sessions of Claude Code, runs of tau-bench, tau2-bench, AgentDojo and
    SWE-agent, and BEAM chats. No model is called, and nothing is saved without --keep.
    """
    from inmind.apps.cli.replay_view import replay_files, replay_json, show_replay

    rates = Rates.per_million(input=input_price, cached=cached_price, written=written_price)
    replayed = replay_files(
        files,
        window=window,
        limit=limit,
        as_one=as_one,
        cost_saving=rates if cost_saving else None,
        memory_tools=memory_tools,
        keep=keep,
    )
    if as_json:
        return print_json(replay_json(replayed, rates=rates, window=window))
    show_replay(console(), replayed, rates=rates, each=each)
    return None

"""`inmind replay`: what memory would have done to conversations that were."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from inmind.apps.cli.console import JsonOption, console, print_json
from inmind.core.pricing import Rates
from inmind.memory.memory import DEFAULT_WINDOW


def replay(
    files: Annotated[
        list[str], typer.Argument(metavar="FILE…", help="Recorded conversations, also as .gz or .zst; - is stdin.")
    ],
    window: Annotated[
        int, typer.Option(help="Tokens that the model takes; a small one shows what is cut.")
    ] = DEFAULT_WINDOW,
    limit: Annotated[int | None, typer.Option(min=1, help="Play only the first so many of each file.")] = None,
    as_one: Annotated[
        bool, typer.Option("--joined", help="Play all recordings of a file as one long session.")
    ] = False,
    thrifty: Annotated[
        bool, typer.Option("--thrifty", help="Compact as soon as it pays, and say what that saved.")
    ] = False,
    keep: Annotated[
        Path | None, typer.Option(help="Keep the sessions in this new folder, for `inmind --home DIR show prompt …`.")
    ] = None,
    each: Annotated[bool, typer.Option("--each", help="A row for each recording instead of each file.")] = False,
    input_price: Annotated[float, typer.Option("--input", min=0, help="Price of a million input tokens.")] = 3.0,
    cached_price: Annotated[
        float | None, typer.Option("--cached", min=0, help="Of a million from the cache; a tenth by default.")
    ] = None,
    written_price: Annotated[
        float | None, typer.Option("--written", min=0, help="Of a million written to it; a quarter more by default.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Play recorded conversations through memory.

    Tells tokens, price and ids, with memory and without.
    Reads OpenAI chat lists, Anthropic messages, sessions of Claude Code, runs of tau-bench, tau2-bench,
    AgentDojo and SWE-agent, and BEAM chats. No model is called, and nothing is kept without --keep.
    """
    from inmind.apps.cli.replay_view import replay_files, replay_json, show_replay

    rates = Rates.per_million(input=input_price, cached=cached_price, written=written_price)
    replayed = replay_files(
        files, window=window, limit=limit, as_one=as_one, thrifty=rates if thrifty else None, keep=keep
    )
    if as_json:
        return print_json(replay_json(replayed, rates=rates, window=window))
    show_replay(console(), replayed, rates=rates, each=each)
    return None

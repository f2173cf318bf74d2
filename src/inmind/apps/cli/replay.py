"""`inmind replay`: the effect of memory on recorded conversations."""

from __future__ import annotations

from pathlib import Path

import click

from inmind.apps.cli.console import console, json_option, print_json
from inmind.core.tokens import Rates
from inmind.memory.session_opener import DEFAULT_WINDOW

PRICE = click.FloatRange(min=0)


@click.argument(
    "files", metavar="FILE…", nargs=-1, required=True, help="Recorded conversations, also as .gz or .zst; - is stdin."
)
@click.option("--window", default=DEFAULT_WINDOW, help="Context window in tokens; a small one shows what is cut.")
@click.option("--limit", type=click.IntRange(min=1), help="Maximum number of recordings per file.")
@click.option("--joined", "as_one", is_flag=True, help="Replay all recordings of a file as one long session.")
@click.option("--cost-saving", is_flag=True, help="Compact as soon as it saves cost, and report the saving.")
@click.option("--memory-tools/--no-memory-tools", default=True, help="Count the memory tool that a session offers.")
@click.option(
    "--keep",
    type=Path,
    metavar="DIR",
    help="Save the sessions in this new folder, for `inmind --home DIR show prompt …`.",
)
@click.option("--each", is_flag=True, help="Print a row per recording instead of per file.")
@click.option("--input", "input_price", type=PRICE, default=3.0, help="Price per million input tokens.")
@click.option(
    "--cached", "cached_price", type=PRICE, help="Price per million cached tokens; default: a tenth of --input."
)
@click.option(
    "--written",
    "written_price",
    type=PRICE,
    help="Price per million tokens written to the cache; default: 1.25 of --input.",
)
@json_option
def replay(
    files: tuple[str, ...],
    window: int,
    limit: int | None,
    as_one: bool,
    cost_saving: bool,
    memory_tools: bool,
    keep: Path | None,
    each: bool,
    input_price: float,
    cached_price: float | None,
    written_price: float | None,
    as_json: bool,
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

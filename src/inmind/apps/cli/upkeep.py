"""`inmind upkeep`: one round of upkeep, and the text of its result."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

import click

from inmind.apps.cli.console import json_option, open_existing_memory, print_json, print_lines, print_text, progress_bar
from inmind.apps.cli.dreams import describe_dream, dream_summary_json
from inmind.core.text import count_noun
from inmind.jobs.upkeep import Upkeep

NO_START_DELAY = {"dream.first_minutes": 0}
"""Setting without the start delay: a process that runs one round must not wait five minutes."""


@click.option("--seconds", default=60.0, help="Maximum run time, approximately.")
@json_option
def upkeep(seconds: float, as_json: bool) -> None:
    """Run the upkeep that is due once: consolidation, dreams, embeddings. For all resources."""
    with open_existing_memory(NO_START_DELAY) as memory:
        with progress_bar("upkeep"):
            done = memory.run_upkeep(seconds=seconds)
        if as_json:
            return print_json(upkeep_json(done))
        print_lines(describe_upkeep(done))
        print_text("Upkeep finished." if done.finished else f"Stopped after {seconds:g} s; the next upkeep continues.")
    return None


def describe_upkeep(done: Upkeep) -> Iterator[str]:
    """One line per result."""
    for resource, one in done.consolidated.items():
        if one.merged or one.superseded or one.expired:
            yield f"{resource}: {one.merged} merged, {one.superseded} superseded, {one.expired} expired."
    if done.notes:
        yield f"{count_noun(done.notes, 'note')} added about affect levels that stay high."
    for dream in done.dreams:
        yield next(describe_dream(dream))


def upkeep_json(done: Upkeep) -> dict[str, Any]:
    return {
        "finished": done.finished,
        "consolidated": {resource: asdict(one) for resource, one in done.consolidated.items()},
        "notes": done.notes,
        "dreams": [dream_summary_json(dream) for dream in done.dreams],
    }

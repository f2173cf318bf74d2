"""`inmind search`: search the crystals."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import click

from inmind.apps.cli.console import (
    check_exists,
    choice_option,
    json_option,
    open_existing_memory,
    print_json,
    print_text,
    progress_bar,
    resource_option,
    session_option,
)
from inmind.core.paths import INDEX
from inmind.core.settings import SOURCES
from inmind.memory.memory import Memory
from inmind.search.crystal import KINDS
from inmind.search.query import Hit
from inmind.search.render import render_hits


@click.argument("query", help="A question, or a few words.")
@click.option("--limit", default=10, help="Maximum number of hits.")
@resource_option
@session_option
@choice_option("--kind", "kinds", choices=KINDS, multiple=True, help="Only entries of this kind.")
@choice_option("--source", "sources", choices=SOURCES, multiple=True, help="Only from this source.")
@click.option("--since", metavar="DAY", help="Only since this day or time.")
@click.option("--until", metavar="DAY", help="Only until this day or time.")
@click.option("--as-of", metavar="DAY", help="What was known on this date.")
@json_option
def search(
    query: str,
    limit: int,
    resource: str | None,
    session: str | None,
    kinds: tuple[str, ...],
    sources: tuple[str, ...],
    since: str | None,
    until: str | None,
    as_of: str | None,
    as_json: bool,
) -> None:
    """Search everything that was said, noted or seen."""
    with open_existing_memory() as memory:
        check_exists(memory, session=session, resource=resource)
        with _show_indexing(memory):
            scope = memory if resource is None else memory.resource(resource)
            hits = scope.search(
                query,
                limit=limit,
                kinds=kinds or None,
                sources=sources or None,
                since=since,
                until=until,
                session=session,
                as_of=as_of,
            )
        if as_json:
            return print_json([_hit_json(hit) for hit in hits])
        print_text(render_hits(hits) if hits else "No hits.")
    return None


def _show_indexing(memory: Memory) -> AbstractContextManager[object]:
    """A progress bar for the first search of a home, which indexes its whole journal."""
    is_indexed = memory.home is None or (memory.home / INDEX).exists()
    return nullcontext() if is_indexed else progress_bar("indexing")


def _hit_json(hit: Hit) -> dict[str, Any]:
    crystal = hit.crystal
    return {
        "id": crystal.id,
        "score": hit.score,
        "parts": dict(hit.parts),
        "text": hit.passage,
        "before": hit.before,
        "after": hit.after,
        "kind": crystal.kind,
        "source": crystal.source,
        "resource": crystal.resource,
        "session": crystal.session,
        "path": crystal.path,
        "speaker": crystal.speaker,
        "origin": crystal.origin.value,
        "trust": crystal.trust.name.lower(),
        "at": crystal.at.isoformat(),
        "importance": crystal.importance,
        "lifecycle": crystal.lifecycle,
        "superseded_by": crystal.superseded_by,
    }

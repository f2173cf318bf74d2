"""`inmind search`: search the crystals."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Annotated, Any

import typer

from inmind.apps.cli.console import (
    JsonOption,
    ResourceOption,
    SessionOption,
    check_exists,
    complete_choices,
    open_existing_memory,
    print_json,
    print_text,
    progress_bar,
)
from inmind.core.paths import INDEX
from inmind.core.settings import SOURCES
from inmind.memory.memory import Memory
from inmind.search.crystal import KINDS
from inmind.search.query import Hit
from inmind.search.render import render_hits


def search(
    query: Annotated[str, typer.Argument(metavar="QUERY", help="A question, or a few words.")],
    limit: Annotated[int, typer.Option(help="Maximum number of hits.")] = 10,
    resource: ResourceOption = None,
    session: SessionOption = None,
    kinds: Annotated[
        list[str] | None,
        typer.Option(
            "--kind",
            metavar="|".join(KINDS),
            help="Only entries of this kind.",
            autocompletion=complete_choices(KINDS),
        ),
    ] = None,
    sources: Annotated[
        list[str] | None,
        typer.Option(
            "--source",
            metavar="|".join(SOURCES),
            help="Only from this source.",
            autocompletion=complete_choices(SOURCES),
        ),
    ] = None,
    since: Annotated[str | None, typer.Option(metavar="DAY", help="Only since this day or time.")] = None,
    until: Annotated[str | None, typer.Option(metavar="DAY", help="Only until this day or time.")] = None,
    as_of: Annotated[str | None, typer.Option(metavar="DAY", help="What was known on this date.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Search everything that was said, noted or seen."""
    with open_existing_memory() as memory:
        check_exists(memory, session=session, resource=resource)
        with _show_indexing(memory):
            scope = memory if resource is None else memory.resource(resource)
            hits = scope.search(
                query,
                limit=limit,
                kinds=kinds,
                sources=sources,
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

"""`inmind note`: save a note on behalf of the user."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from inmind.apps.cli.console import (
    choice_option,
    get_session,
    json_option,
    open_existing_memory,
    print_json,
    print_text,
    resource_option,
    selected_place,
    session_option,
)
from inmind.core.events.base import Origin
from inmind.documents.notes_page import format_timestamp
from inmind.errors import InvalidInput, NotFound
from inmind.memory.memory import Memory
from inmind.search.crystal import KINDS
from inmind.search.note import DEFAULT_IMPORTANCE

STDIN = "-"


@click.argument("text", help="Text of the note; - reads it from stdin.")
@click.option("--importance", default=DEFAULT_IMPORTANCE, help="From 0 to 1.")
@choice_option("--kind", choices=KINDS, default="general", help="Kind of the note.")
@session_option
@resource_option
@json_option
def note(text: str, importance: float, kind: str, session: str | None, resource: str | None, as_json: bool) -> None:
    """Save a note.

    Without --session or --resource, it is saved for the session last used in this folder.
    """
    if session is not None and resource is not None:
        raise InvalidInput(field="--resource", value=resource, expected="no --session: the two cannot be combined")
    if resource is not None:
        with Memory.open(selected_place(), embedder=None) as memory:  # the resource need not have sessions yet
            saved = memory.resource(resource).note(
                _read_text(text), importance=importance, kind=kind, origin=Origin.USER
            )
    else:
        with open_existing_memory(embedder=None) as memory:
            opened = get_session(memory, session or last_used_session(memory))
            saved = opened.note(_read_text(text), importance=importance, kind=kind, origin=Origin.USER)
            resource = opened.resource
    if as_json:
        return print_json({"id": saved.id, "at": saved.date.isoformat(), "resource": resource})
    print_text(f"Saved at {format_timestamp(saved.date)} as {saved.id}.")
    return None


def last_used_session(memory: Memory) -> str:
    """Id of the session last used in the current folder."""
    info = memory.latest()
    if info is None:
        hint = "pass --session or --resource; `inmind sessions` lists all"
        raise NotFound(what="session in", name=str(Path.cwd()), hint=hint)
    return info.id


def _read_text(text: str) -> str:
    if text != STDIN:
        return text
    try:
        return sys.stdin.buffer.read().decode().removesuffix("\n")
    except UnicodeDecodeError as error:
        raise InvalidInput(field="TEXT", value=error.object, expected="text in UTF-8") from error

"""`inmind show`: parts of the state of a session or resource, as the model reads them."""

from __future__ import annotations

import json
from typing import Any

import click
from rich.text import Text

from inmind.apps.cli.console import (
    MAX_LINE_CHARS,
    CommandResult,
    check_exists,
    collapse_whitespace,
    complete_owners,
    console,
    get_session,
    not_found_error,
    open_existing_memory,
    prints_result,
    resolve_resource,
    resource_option,
    session_argument,
    session_command,
    session_option,
)
from inmind.apps.cli.prompt_view import render_prompt, report_json
from inmind.apps.cli.resource_commands import describe_dream, dream_summary_json, economics_json
from inmind.apps.cli.session_commands import (
    compaction_json,
    complete_paths,
    describe_compaction,
    describe_items,
    read_page,
)
from inmind.core.events import encode_payload
from inmind.core.events.base import Event
from inmind.core.events.session import PromptPrepared
from inmind.core.settings import Settings
from inmind.core.text import count_noun, printable
from inmind.documents.document import MEMORY_PAGE_PATH, NOTES_PAGE_PATH
from inmind.documents.notes_page import parse_notes
from inmind.documents.scratchpad.render import render_state
from inmind.dreams.economics import economics_lines
from inmind.entities.render import render_block
from inmind.errors import NotFound
from inmind.history.compaction.policy import KeptItem
from inmind.history.compaction.retention import items_in_memory
from inmind.memory.documents import SETTINGS_PATHS
from inmind.memory.listing import nearest_resource, nearest_session
from inmind.memory.memory import Memory, suggest_name
from inmind.prompt.ingest import tool_names
from inmind.prompt.report import PromptPreview
from inmind.session.session import Session
from inmind.session.tools.registry import is_memory_tool


@click.argument(
    "owner",
    metavar="[RESOURCE|SESSION]",
    required=False,
    help="A resource, or one of its sessions.",
    shell_complete=complete_owners,
)
@prints_result
def show_state(owner: str | None) -> CommandResult:
    """Show MEMORY.md of a resource, its waiting notes, last dream, mood and economics."""
    with open_existing_memory() as memory:
        name = _resolve_owner(memory, owner)
        resource = memory.resource(name)
        documents, last = resource.state.documents, next(iter(resource.dreams()), None)
        mood, totals = resource.affect.mood, resource.economics.report()
    text, waiting = documents.text(MEMORY_PAGE_PATH), len(parse_notes(documents.text(NOTES_PAGE_PATH)))
    lines = [
        text.rstrip("\n") if text.strip() else f"MEMORY.md of {name} is empty.",
        "",
        f"{count_noun(waiting, 'note')} waiting for a dream. Mood: {mood}.",
        next(describe_dream(last)) if last else "No dreams yet.",
        *(f"{line}." for currency_totals in totals for line in economics_lines(currency_totals)),
    ]
    dream = dream_summary_json(last) if last else None
    economics = list(map(economics_json, totals))
    data = {"resource": name, "state": text, "notes": waiting, "dream": dream, "mood": mood, "economics": economics}
    return data, lines


def _resolve_owner(memory: Memory, name: str | None) -> str:
    """The named resource, or the resource of the named session."""
    if name is None or memory.has_resource(name):
        return resolve_resource(memory, name)
    if name in memory:
        return resolve_resource(memory, memory.session(name).resource)
    raise not_found_error("resource or session", name, suggest_name(memory, name, nearest_resource, nearest_session))


@session_argument
@click.option("--call", type=int, metavar="N", help="Show the prompt of this past call instead.")
@prints_result
def show_prompt(session: str, call: int | None = None) -> CommandResult:
    """Show the next prompt by layer, with tokens and reasons. --json prints the request.

    Nothing is stored, and no model is called.
    """
    with open_existing_memory() as memory:
        opened = get_session(memory, session)
        prompt = _next_prompt(memory, opened) if call is None else opened.prompt(call)
        explanation = prompt.explanation if isinstance(prompt, PromptPreview) else opened.explain(call)
    compactions = prompt.report.compactions
    lines = list(render_prompt(prompt, explanation, width=console().width))
    for report in compactions:
        lines += [f"\nCompacted before this call: {report.reason}", *describe_compaction(report)]
    numbers = {**report_json(prompt.report), "sent": call is not None, "format": prompt.format}
    return {**numbers, "compactions": map(compaction_json, compactions), "request": prompt.request}, lines


def _next_prompt(memory: Memory, session: Session) -> PromptPreview:
    """Preview with the format, window and memory tools of the last call."""
    last = next(
        (event.payload for event in reversed(session.events()) if isinstance(event.payload, PromptPrepared)), None
    )
    if last is None:
        return session.preview()
    offered = any(map(is_memory_tool, tool_names(session.state.prompt.layer_tools)))
    reopened = memory.session(session.id, window=last.window, reserve=last.reserve, memory_tools=offered)
    return reopened.preview(format=last.format)


@session_command
def show_entities(session: Session) -> CommandResult:
    """Show the entities in the window, as the model reads them. --json prints all."""
    entities = session.entities
    lines = [render_block(entities)]
    if pinned := [collapse_whitespace(str(entity)) for entity in entities if entity.pinned]:
        lines.append(f"\nPinned: {'; '.join(pinned)}.")
    if evicted := list(entities.evicted_entities):
        deleted = sum(entity.deleted for entity in evicted)
        lines.append(f"\nOutside the window: {len(evicted)} more, {deleted} of them deleted.")
    return session.export_entities(), lines


@session_command
def show_scratchpad(session: Session) -> CommandResult:
    """Show the scratchpads of the session and its resource, as the model reads them."""
    pads = {
        ("thread", "session"): session.state.scratchpads.by_name,
        ("resource", "resource"): session.resource_state.scratchpads.by_name,
    }
    states = [(owner, name, pad.state) for (_, owner), by_name in pads.items() for name, pad in by_name.items()]
    lines: list[str] = []
    for owner, name, state in states:
        lines += [f"-- {name} of the {owner}"] if len(states) > 1 else []
        lines.append(render_state(state) or "(empty)")
    data = {scope: {name: pad.state for name, pad in by_name.items()} for (scope, _), by_name in pads.items()}
    return data, lines or "The scratchpad is empty."


@session_command
def show_overview(session: Session) -> CommandResult:
    """Show overview.md. Prompts leave out the comments of its template."""
    text = session.overview
    return {"overview": text}, text.removesuffix("\n")


@click.argument("path", help="As for `inmind edit`.", shell_complete=complete_paths)
@session_option
@resource_option
@prints_result
def show_page(path: str, session: str | None, resource: str | None) -> CommandResult:
    """Show a page of a session or resource, or config.toml, verbatim."""
    with open_existing_memory(Settings() if path in SETTINGS_PATHS else None, embedder=None) as memory:
        check_exists(memory, session=session, resource=resource)
        page = read_page(memory, path, session, resource)
    if not page.version:
        raise NotFound(what="page", name=path, hint="`inmind edit` creates it")
    return {"path": page.path, "version": page.version, "text": page.text}, page.text.removesuffix("\n")


@session_command
def show_retained(session: Session) -> CommandResult:
    """Show the items that every compaction must keep, and where each one is now."""
    unsent = items_in_memory(session.state.history, request=None)
    items = [KeptItem(one.kind, one.text, "memory" if one in unsent else "conversation") for one in session.retained]
    return items, describe_items(items) if items else "No retained items yet."


@click.option("--after", default=0, help="Only events after this number.")
@session_command
def show_journal(session: Session, after: int) -> CommandResult:
    """List all events, one per line.

    Lines are cut to the width; --json prints all of each event.
    """
    events, screen = session.events(after=after), console()
    width = screen.width if screen.is_terminal else MAX_LINE_CHARS
    return map(_event_json, events), (_event_line(event, width) for event in events)


def _event_line(event: Event, width: int) -> Text:
    head = f"{event.seq:>5}  {event.at:%Y-%m-%d %H:%M:%S}  {event.kind:<13} {event.origin:<9}"
    line = Text(printable(f"{head} {encode_payload(event.payload)}"))
    line.truncate(width, overflow="ellipsis")
    return line


def _event_json(event: Event) -> dict[str, Any]:
    return {
        "seq": event.seq,
        "id": event.id,
        "at": event.at.isoformat(),
        "kind": event.kind,
        "origin": event.origin.value,
        "trust": event.trust.name.lower(),
        "sources": event.sources,
        "payload": json.loads(encode_payload(event.payload)),
    }


show = {
    "state": show_state,
    "prompt": show_prompt,
    "entities": show_entities,
    "scratchpad": show_scratchpad,
    "overview": show_overview,
    "page": show_page,
    "retained": show_retained,
    "journal": show_journal,
}

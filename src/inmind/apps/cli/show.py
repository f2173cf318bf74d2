"""`inmind show`: parts of the state of a session or resource, as the model reads them."""

from __future__ import annotations

import json
from dataclasses import asdict

import click

from inmind.apps.cli.compact import compaction_json, format_items, print_compaction
from inmind.apps.cli.console import (
    check_exists,
    collapse_whitespace,
    console,
    get_session,
    json_option,
    one_line_console,
    open_existing_memory,
    open_existing_session,
    print_json,
    print_text,
    resource_option,
    session_argument,
    session_option,
)
from inmind.apps.cli.edit import complete_paths
from inmind.apps.cli.note import last_used_session
from inmind.apps.cli.prompt_view import print_prompt as draw_prompt
from inmind.apps.cli.prompt_view import report_json
from inmind.apps.cli.resource_commands import show_state
from inmind.core.events.codec import encode_payload
from inmind.core.events.prompt import PromptPrepared
from inmind.core.settings import Settings
from inmind.core.text import printable
from inmind.documents.scratchpad.render import render_state
from inmind.entities.render import render_block
from inmind.errors import NotFound
from inmind.history.compaction.build import KeptItem
from inmind.history.compaction.retention import items_in_memory
from inmind.memory.documents import SETTINGS_PATHS
from inmind.memory.memory import Memory
from inmind.prompt.ingest import tool_names
from inmind.prompt.report import PromptPreview
from inmind.session.session import Session
from inmind.session.tools.registry import is_memory_tool


@session_argument
@click.option("--call", type=int, metavar="N", help="Show the prompt of this past call instead.")
@json_option
def show_prompt(session: str, call: int | None = None, as_json: bool = False) -> None:
    """Show the next prompt by layer, with tokens and reasons. --json prints the request.

    Nothing is stored, and no model is called.
    """
    with open_existing_memory() as memory:
        opened = get_session(memory, session)
        prompt = _next_prompt(memory, opened) if call is None else opened.prompt(call)
        if as_json:
            compactions = [compaction_json(report) for report in prompt.report.compactions]
            numbers = {**report_json(prompt.report), "sent": call is not None, "format": prompt.format}
            return print_json({**numbers, "compactions": compactions, "request": prompt.request})
        draw_prompt(
            console(), prompt, prompt.explanation if isinstance(prompt, PromptPreview) else opened.explain(call)
        )
        for report in prompt.report.compactions:
            print_text(f"\nCompacted before this call: {report.reason}")
            print_compaction(report)
    return None


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


@session_argument
@json_option
def show_entities(session: str, as_json: bool = False) -> None:
    """Show the entities in the window, as the model reads them. --json prints all."""
    with open_existing_session(session) as opened:
        if as_json:
            return print_json(opened.export_entities())
        entities = opened.entities
        print_text(render_block(entities))
        if pinned := [entity for entity in entities if entity.pinned]:
            print_text(f"\nPinned: {'; '.join(collapse_whitespace(str(entity)) for entity in pinned)}.")
        if evicted := list(entities.evicted_entities):
            deleted = sum(entity.deleted for entity in evicted)
            print_text(f"\nOutside the window: {len(evicted)} more, {deleted} of them deleted.")
    return None


@session_argument
@json_option
def show_scratchpad(session: str, as_json: bool = False) -> None:
    """Show the scratchpads of the session and its resource, as the model reads them."""
    with open_existing_session(session) as opened:
        scratchpads = {
            "thread": opened.state.scratchpads.by_name,
            "resource": opened.resource_state.scratchpads.by_name,
        }
        if as_json:
            return print_json(
                {scope: {name: pad.state for name, pad in pads.items()} for scope, pads in scratchpads.items()}
            )
        rendered = [
            (scope, name, render_state(pad.state)) for scope, pads in scratchpads.items() for name, pad in pads.items()
        ]
        for scope, name, text in rendered:
            if len(rendered) > 1:
                print_text(f"-- {name} of the {'session' if scope == 'thread' else 'resource'}")
            print_text(text or "(empty)")
        if not rendered:
            print_text("The scratchpad is empty.")
    return None


@session_argument
@json_option
def show_overview(session: str, as_json: bool = False) -> None:
    """Show overview.md. Prompts leave out the comments of its template."""
    with open_existing_session(session) as opened:
        text = opened.overview
        if as_json:
            return print_json({"overview": text})
        print_text(text.removesuffix("\n"))
    return None


@click.argument("path", help="As for `inmind edit`.", shell_complete=complete_paths)
@session_option
@resource_option
@json_option
def show_page(path: str, session: str | None, resource: str | None, as_json: bool) -> None:
    """Show a page of a session or resource, or config.toml, verbatim."""
    with open_existing_memory(Settings() if path in SETTINGS_PATHS else None, embedder=None) as memory:
        check_exists(memory, session=session, resource=resource)
        is_named = session is not None or resource is not None or path in SETTINGS_PATHS
        page = memory.page(path, session=session if is_named else last_used_session(memory), resource=resource)
        if not page.version:
            raise NotFound(what="page", name=path, hint="`inmind edit` creates it")
        if as_json:
            return print_json({"path": page.path, "version": page.version, "text": page.text})
        print_text(page.text.removesuffix("\n"))
    return None


@session_argument
@json_option
def show_retained(session: str, as_json: bool = False) -> None:
    """Show the items that every compaction must keep, and where each one is now."""
    with open_existing_session(session) as opened:
        unsent = items_in_memory(opened.state.history, request=None)
        placed = [(item, "memory" if item in unsent else "conversation") for item in opened.retained]
        items = [KeptItem(item.kind, item.text, place) for item, place in placed]
        if as_json:
            return print_json([asdict(item) for item in items])
        for line in format_items(items):
            print_text(line)
        if not items:
            print_text("No retained items yet.")
    return None


@session_argument
@click.option("--after", default=0, help="Only events after this number.")
@json_option
def show_journal(session: str, after: int, as_json: bool) -> None:
    """List all events, one per line.

    Lines are cut to the width; --json prints all of each event.
    """
    with open_existing_session(session) as opened:
        events = opened.events(after=after)
        if as_json:
            rows = [
                {
                    "seq": event.seq,
                    "id": event.id,
                    "at": event.at.isoformat(),
                    "kind": event.kind,
                    "origin": event.origin.value,
                    "trust": event.trust.name.lower(),
                    "sources": list(event.sources),
                    "payload": json.loads(encode_payload(event.payload)),
                }
                for event in events
            ]
            return print_json(rows)
        screen = one_line_console()
        for event in events:
            head = f"{event.seq:>5}  {event.at:%Y-%m-%d %H:%M:%S}  {event.kind:<13} {event.origin:<9}"
            line = f"{head} {encode_payload(event.payload)}"
            screen.print(printable(line), markup=False, overflow="ellipsis", no_wrap=True)
    return None


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

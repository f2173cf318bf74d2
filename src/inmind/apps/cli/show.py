"""`inmind show`: what is in mind, part by part, as the model reads it."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Annotated

import typer

from inmind.apps.cli.compact import in_full, listed, say_compaction
from inmind.apps.cli.console import (
    AsJson,
    OfResource,
    OfSession,
    SessionId,
    check_known,
    console,
    existing_memory,
    existing_session,
    known_session,
    line_by_line,
    on_one_line,
    print_json,
    say,
)
from inmind.apps.cli.edit import complete_paths
from inmind.apps.cli.note import last_used
from inmind.apps.cli.prompt_view import in_numbers
from inmind.apps.cli.prompt_view import show as draw_prompt
from inmind.apps.cli.resource_commands import show_state
from inmind.core.events.codec import encode
from inmind.core.events.prompt import PromptPrepared
from inmind.core.settings import Settings
from inmind.core.text import counted, printable
from inmind.documents.scratchpad.render import text_of
from inmind.entities.render import block
from inmind.errors import NotFound
from inmind.history.compaction.report import KeptItem
from inmind.memory.documents import SETTINGS
from inmind.memory.memory import Memory
from inmind.prompt.ingest import tool_names
from inmind.prompt.report import Preview
from inmind.session.session import Session
from inmind.session.tools.tools import is_memory_tool

show = typer.Typer(
    help="Show what a session or a resource has in mind.",
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode=None,
)
show.command("state")(show_state)


@show.command("prompt")
def show_prompt(
    session: SessionId,
    call: Annotated[int | None, typer.Option(metavar="N", help="What that call sent, instead.")] = None,
    as_json: AsJson = False,
) -> None:
    """Exactly what a model would be sent now, by layer. With tokens and reasons; --json prints the request.

    Nothing is stored, and no model is called.
    """
    with existing_memory() as memory:
        opened = known_session(memory, session)
        prompt = _next_prompt(memory, opened) if call is None else opened.prompt(call)
        if as_json:
            compactions = [in_full(report) for report in prompt.report.compactions]
            told = {**in_numbers(prompt.report), "sent": call is not None, "format": prompt.format}
            return print_json({**told, "compactions": compactions, "request": prompt.request})
        draw_prompt(console(), prompt, prompt.explanation if isinstance(prompt, Preview) else opened.explain(call))
        for report in prompt.report.compactions:
            say(f"\nCompacted before it: {report.reason}")
            say_compaction(report)
    return None


def _next_prompt(memory: Memory, session: Session) -> Preview:
    """For whom the last call was for: its format, its window, and whether the tools of memory were offered."""
    last = next(
        (event.payload for event in reversed(session.journal()) if isinstance(event.payload, PromptPrepared)), None
    )
    if last is None:
        return session.preview()
    offered = any(map(is_memory_tool, tool_names(session.mind.standing.offered)))
    again = memory.session(session.id, window=last.window, reserve=last.reserve, memory_tools=offered)
    return again.preview(format=last.format)


@show.command("entities")
def show_entities(session: SessionId, as_json: AsJson = False) -> None:
    """The things in mind, as the model reads them. --json prints them as a checkpoint."""
    with existing_session(session) as opened:
        if as_json:
            return print_json(opened.serialize())
        entities = opened.entities
        say(block(entities))
        if pinned := [entity for entity in entities if entity.pinned]:
            say(f"\nPinned: {'; '.join(on_one_line(str(entity)) for entity in pinned)}.")
        if beyond := list(entities.beyond):
            deleted = sum(entity.deleted for entity in beyond)
            say(f"\n{counted(len(beyond), 'thing')} more known, and out of mind; {deleted} of them deleted.")
    return None


@show.command("scratchpad")
def show_scratchpad(session: SessionId, as_json: AsJson = False) -> None:
    """The agent's scratchpad, as the model reads it. Its own, and that of its resource."""
    with existing_session(session) as opened:
        held = {"thread": opened.mind.pads.by_name, "resource": opened.belongings.pads.by_name}
        if as_json:
            return print_json({scope: {name: pad.state for name, pad in pads.items()} for scope, pads in held.items()})
        shown = [(scope, name, text_of(pad.state)) for scope, pads in held.items() for name, pad in pads.items()]
        for scope, name, text in shown:
            if len(shown) > 1:
                say(f"-- {name} of the {'session' if scope == 'thread' else 'resource'}")
            say(text or "(empty)")
        if not shown:
            say("Nothing was written on it yet.")
    return None


@show.command("overview")
def show_overview(session: SessionId, as_json: AsJson = False) -> None:
    """overview.md, as the next prompt will have it."""
    with existing_session(session) as opened:
        text = opened.overview
        if as_json:
            return print_json({"overview": text})
        say(text.removesuffix("\n"))
    return None


@show.command("page")
def show_page(
    path: Annotated[str, typer.Argument(metavar="PATH", help="As for `inmind edit`.", autocompletion=complete_paths)],
    session: OfSession = None,
    resource: OfResource = None,
    as_json: AsJson = False,
) -> None:
    """A page of a session or a resource, or config.toml. As it stands now, word for word."""
    with existing_memory(Settings() if path in SETTINGS else None, embedder=None) as memory:
        check_known(memory, session=session, resource=resource)
        named = session is not None or resource is not None or path in SETTINGS
        page = memory.page(path, session=session if named else last_used(memory), resource=resource)
        if not page.version:
            raise NotFound(what="page", name=path, hint="`inmind edit` begins it")
        if as_json:
            return print_json({"path": page.path, "version": page.version, "text": page.text})
        say(page.text.removesuffix("\n"))
    return None


@show.command("retained")
def show_retained(session: SessionId, as_json: AsJson = False) -> None:
    """What must survive every compaction. And where each of it stands now."""
    with existing_session(session) as opened:
        unsaid = opened.mind.history.unsaid
        placed = [(item, "memory" if item in unsaid else "conversation") for item in opened.retained]
        items = [KeptItem(item.kind, item.text, where) for item, where in placed]
        if as_json:
            return print_json([asdict(item) for item in items])
        for line in listed(items):
            say(line)
        if not items:
            say("Nothing was said or declared yet that has to.")
    return None


@show.command("journal")
def show_journal(
    session: SessionId,
    after: Annotated[int, typer.Option(help="Only events with a higher number.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Everything that happened, one event a line. As much of each as fits; --json prints all of it."""
    with existing_session(session) as opened:
        events = opened.journal(after=after)
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
                    "payload": json.loads(encode(event.payload)),
                }
                for event in events
            ]
            return print_json(rows)
        screen = line_by_line()
        for event in events:
            head = f"{event.seq:>5}  {event.at:%Y-%m-%d %H:%M:%S}  {event.kind:<13} {event.origin:<9}"
            line = f"{head} {encode(event.payload)}"
            screen.print(printable(line), markup=False, overflow="ellipsis", no_wrap=True)
    return None

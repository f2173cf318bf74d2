"""Builders of test data. Each takes only the values that a test is about."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

from inmind import Memory
from inmind.core.encoding import decode, to_json
from inmind.core.events.base import Event, EventPayload, Origin, Trust
from inmind.core.events.session import (
    AnchoredBlock,
    EntitiesSeen,
    EntitySighting,
    HistorySpliced,
    MessageAdded,
    ToolObserved,
)
from inmind.core.tool_outcome import read_outcome
from inmind.entities.entity import DEFAULT_RULES, EntityRules
from inmind.entities.extract.from_result import sightings_from_result
from inmind.entities.window import Entities
from inmind.history.history import Conversation

WHEN = datetime(2026, 1, 1, tzinfo=UTC)

Home = Path | str
"""A home folder, or the URL of a database."""


def home_of(memory: Memory) -> Path:
    """The home folder of a memory."""
    assert memory.home is not None
    return memory.home


def page_of(memory: Memory, path: str, *, resource: str = "ada") -> str:
    """A page of a resource: its live file, or the page in a database."""
    if memory.home:
        return (memory.home / "resources" / resource / path).read_text("utf-8")
    return memory.page(path, resource=resource).text


def edit_page_by_hand(memory: Memory, path: str, edit: Callable[[str], str], *, resource: str = "ada") -> None:
    """Edit a page of a resource as a user: in its live file, or in a database."""
    if memory.home:
        file = memory.home / "resources" / resource / path
        file.write_text(edit(file.read_text("utf-8")), "utf-8")
    else:
        page = memory.page(path, resource=resource)
        memory.edit(page, edit(page.text))


def take_notes(memory: Memory, *texts: str, resource: str = "ada") -> list[str]:
    """Write notes of a resource; returns their ids."""
    session = memory.session("shop", resource=resource)
    return [session.note(text).id for text in texts]


def configure(home: Home, text: str) -> None:
    """Write `config.toml`."""
    if isinstance(home, Path):
        (home / "config.toml").write_text(text)
        return
    with Memory.open(home) as memory:
        memory.edit(memory.page("config.toml"), text)


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def assistant(text: str) -> dict[str, Any]:
    return {"role": "assistant", "content": text}


def a_call(id: str, name: str = "get_page", arguments: str = "{}") -> dict[str, Any]:
    function = {"name": name, "arguments": arguments}
    return {"role": "assistant", "content": None, "tool_calls": [{"id": id, "type": "function", "function": function}]}


def a_result(id: str, text: str = "ok") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": id, "content": text}


def turns(number: int, words: int = 10) -> list[dict[str, Any]]:
    """A conversation with this number of exchanges, ending with a user message."""
    messages: list[dict[str, Any]] = []
    for turn in range(number):
        messages += [user(f"question {turn} " + "word " * words), assistant(f"answer {turn} " + "word " * words)]
    return [*messages, user("and now")]


V = TypeVar("V")


def through_json(value: V) -> V:
    """The same value, written as JSON and read back, as in a snapshot."""
    return decode(type(value), json.loads(to_json(value)))


def an_event(payload: EventPayload, seq: int = 1, *, starts_batch: bool = True) -> Event:
    return Event(
        stream="session/s",
        seq=seq,
        at=WHEN,
        payload=payload,
        origin=Origin.USER,
        trust=Trust.PERSON,
        starts_batch=starts_batch,
    )


def a_conversation(wires: Sequence[Mapping[str, Any]]) -> Conversation:
    return append_messages(Conversation(), wires)


def append_messages(line: Conversation, wires: Sequence[Mapping[str, Any]], *, seq: int = 1) -> Conversation:
    for number, wire in enumerate(wires, start=seq):
        line = line.apply(an_event(MessageAdded(wire=wire), number))
    return line


def splice_messages(line: Conversation, start: int, stop: int, inserted: int, *, seq: int = 1_000) -> Conversation:
    return line.apply(an_event(HistorySpliced(start, stop, inserted), seq))


def a_block(text: str, layer: str = "overview") -> AnchoredBlock:
    return AnchoredBlock(layer=layer, text=text)


def entities_of_call(
    tool: str, result: Any, arguments: Any = None, rules: EntityRules = DEFAULT_RULES
) -> tuple[EntitySighting, ...]:
    """The entities of a successful call."""
    observed = ToolObserved(tool, {} if arguments is None else arguments, result)
    return sightings_from_result(read_outcome(observed), rules)


def window_with(*sightings: EntitySighting) -> Entities:
    """A window with these entities, sighted one after the other."""
    entities = Entities()
    for seq, sighting in enumerate(sightings, start=1):
        entities = entities.apply(an_event(EntitiesSeen((sighting,)), seq))
    return entities


def a_page(id: str = "page-123", name: str = "About Us", **known: Any) -> EntitySighting:
    return EntitySighting("page", id, name, **known)

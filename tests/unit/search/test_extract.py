"""Crystals of events: messages of every provider, notes, pages, entities."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from builders import a_block, a_call, a_page, a_result, an_event, assistant, user
from hypothesis import given
from hypothesis import strategies as st
from tables import each_row

from inmind.core.encoding import from_microseconds, to_microseconds
from inmind.core.events.base import Event, EventPayload, Origin, Trust
from inmind.core.events.crystals import CrystalCreated, NoteAdded
from inmind.core.events.documents import DocumentWritten
from inmind.core.events.session import (
    AnchorMoved,
    EntitiesEvicted,
    EntityPart,
    EntitySighting,
    MessageAdded,
    TailChanged,
)
from inmind.documents.document import MEMORY_PAGE_PATH, NOTES_PAGE_PATH, OVERVIEW_PATH
from inmind.search.extract import (
    ENTITY_SERIES,
    MAX_CALL_CHARS,
    MAX_LISTED_PARTS,
    NOTE_SERIES,
    CrystalDraft,
    SearchableMessage,
    can_echo,
    extract_crystals,
    message_reader,
    parse_time,
    shown_texts,
    subjects_of,
)

pytestmark = pytest.mark.spec("H1", "H3")

read = message_reader(lambda name: name.startswith("memory_"))


def crystals_of(wire: dict[str, Any], format: str = "openai", **known: Any) -> list[CrystalDraft]:
    message = MessageAdded(wire=wire, format=format, **known)
    return extract_crystals(an_event(message), read(message))


def only(drafts: list[CrystalDraft]) -> CrystalDraft:
    (one,) = drafts
    return one


# -- messages ----------------------------------------------------------------------------------------------

SAME_WORDS = [
    ("openai", {"role": "user", "content": "Where is the key?"}),
    ("openai", {"role": "user", "content": [{"type": "text", "text": "Where is the key?"}]}),
    ("responses", {"role": "user", "content": "Where is the key?"}),
    (
        "responses",
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Where is the key?"}]},
    ),
    ("anthropic", {"role": "user", "content": "Where is the key?"}),
    ("anthropic", {"role": "user", "content": [{"type": "text", "text": "Where is the key?"}]}),
]


@each_row(("format", "wire"), SAME_WORDS)
def test_a_message_of_any_provider_is_a_crystal_with_its_text(format: str, wire: dict[str, Any]) -> None:
    crystal = only(crystals_of(wire, format))
    assert crystal == CrystalDraft(
        text="Where is the key?", kind="episode", source="sessions", importance=0.3, role="user"
    )


CALLS = [
    ("openai", a_call("c1", "get_page", '{"id": "page-9"}')),
    ("responses", {"type": "function_call", "call_id": "c1", "name": "get_page", "arguments": '{"id": "page-9"}'}),
    (
        "anthropic",
        {
            "role": "assistant",
            "content": [{"type": "tool_use", "id": "c1", "name": "get_page", "input": {"id": "page-9"}}],
        },
    ),
]


@pytest.mark.parametrize(("format", "wire"), CALLS)
def test_a_tool_call_is_found_by_its_arguments(format: str, wire: dict[str, Any]) -> None:
    crystal = only(crystals_of(wire, format))
    assert crystal.role == "assistant"
    assert crystal.text.startswith("get_page ")
    assert "page-9" in crystal.text


RESULTS = [
    ("openai", a_result("c1", "a page about us")),
    ("responses", {"type": "function_call_output", "call_id": "c1", "output": "a page about us"}),
    (
        "anthropic",
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "a page about us"}]},
    ),
]


@pytest.mark.parametrize(("format", "wire"), RESULTS)
def test_a_tool_result_belongs_to_the_tool(format: str, wire: dict[str, Any]) -> None:
    crystal = only(crystals_of(wire, format))
    assert (crystal.role, crystal.text) == ("tool", "a page about us")


def test_a_tool_result_is_less_important_than_a_message() -> None:
    message = MessageAdded(wire=a_result("c1", "a page"))
    event = Event(
        stream="session/s", seq=1, at=from_microseconds(0), payload=message, origin=Origin.TOOL, trust=Trust.DATA
    )
    assert only(extract_crystals(event, read(message))).importance < only(crystals_of(user("a page"))).importance


def test_text_and_call_of_one_message_are_one_crystal() -> None:
    wire = {**a_call("c1", "get_page"), "content": "Let me look."}
    assert only(crystals_of(wire)).text == "Let me look.\nget_page {}"


@pytest.mark.parametrize("arguments", ["", "{}", "{ }\n"])
def test_a_call_without_arguments_is_not_a_crystal(arguments: str) -> None:
    assert crystals_of(a_call("c1", "web_fetch", arguments)) == []


def test_only_the_beginning_of_a_long_call_is_indexed() -> None:
    assert len(only(crystals_of(a_call("c1", "write", "x" * 10_000))).text) == len("write ") + MAX_CALL_CHARS


@each_row(
    "wire",
    [
        user(""),
        user("  \n"),
        assistant(""),
        {"role": "system", "content": "You are helpful."},
        {"role": "developer", "content": "Be brief."},
        {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "https://example.com/a.png"}}]},
        a_call("c1", "memory_search", '{"query": "key"}'),
    ],
)
def test_an_empty_message_is_not_a_crystal(wire: dict[str, Any]) -> None:
    assert crystals_of(wire) == []


@pytest.mark.spec("H6")
def test_messages_of_memory_are_not_crystals_but_shown_text() -> None:
    message = MessageAdded(wire=a_result("c1", "1. [2026-01-01] a note"), from_memory=True)
    event = an_event(message)
    assert extract_crystals(event, read(message)) == []
    assert list(shown_texts(event, read(message))) == ["1. [2026-01-01] a note"]


@each_row(
    ("text", "speaker"),
    [
        ("Caroline: hi there", "Caroline"),
        ("Anne-Marie O'Neil: hi there", "Anne-Marie O'Neil"),
        ("Dr. Who: hi", "Dr. Who"),
        ("Élodie: salut", "Élodie"),
        ("Мария: привет", "Мария"),
        ("Note: remember the key", ""),
        ("TODO: remember the key", ""),
        ("The Problem: it crashes", ""),
        ("Error: not found", ""),
        ("User: hello", ""),
        ("caroline: hi", ""),
        ("Caroline said: hi", ""),
        ("https://example.com/: a page", ""),
        ("Caroline:", ""),
        ("12:30 it began", ""),
    ],
)
def test_a_name_before_a_colon_is_the_speaker(text: str, speaker: str) -> None:
    crystal = only(crystals_of(user(text)))
    assert (crystal.speaker, crystal.text) == (speaker, text)


@pytest.mark.spec("J5")
def test_only_the_name_field_declares_the_speaker() -> None:
    crystal = only(crystals_of({**user("Caroline: hi"), "name": "Melanie"}))
    assert (crystal.speaker, crystal.speaker_declared) == ("Melanie", True)
    assert not only(crystals_of(user("Caroline: hi"))).speaker_declared


def test_a_tool_name_is_not_a_speaker() -> None:
    assert only(crystals_of({**a_result("c1", "Caroline: hi"), "name": "read_chat"})).speaker == ""


TIME = datetime(2023, 5, 8, 13, 56, tzinfo=UTC)


@each_row(
    "fields",
    [
        {"timestamp": "2023-05-08T13:56:00Z"},
        {"timestamp": "2023-05-08T15:56:00+02:00"},
        {"created_at": "2023-05-08 13:56"},
        {"created_at": int(TIME.timestamp())},
        {"timestamp": TIME.timestamp()},
        {"timestamp": int(TIME.timestamp() * 1000)},
        {"timestamp": "yesterday", "date": "2023-05-08T13:56"},
    ],
)
def test_an_imported_message_keeps_its_time(fields: dict[str, Any]) -> None:
    assert only(crystals_of({**user("hi"), **fields})).at == TIME


@each_row("value", ["", "yesterday", "12:30", "2023", True, 3, -1, 1e300, float("nan"), None, [], {}])
def test_an_unknown_time_format_is_none(value: object) -> None:
    assert only(crystals_of({**user("hi"), "timestamp": value})).at is None


@pytest.mark.parametrize("value", ["0001-01-01T00:00+14:00", "9999-12-31T23:59:59-12:00"])
def test_a_time_out_of_range_is_none(value: str) -> None:
    assert only(crystals_of({**user("hi"), "timestamp": value})).at is None


@given(text=st.text() | st.datetimes(timezones=st.none() | st.timezones()).map(datetime.isoformat))
def test_any_parsed_time_can_be_stored(text: str) -> None:
    time = parse_time(text)
    if time is not None:
        assert from_microseconds(to_microseconds(time)) == time


# -- notes, pages and entities -----------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [NoteAdded, CrystalCreated])
def test_a_note_is_a_crystal_with_all_declared_fields(kind: type[NoteAdded | CrystalCreated]) -> None:
    note = kind(
        "The deadline is March 20",
        importance=0.9,
        category="goal",
        valence=-0.5,
        valid_from="2026-03-01T00:00:00Z",
        valid_to="2026-03-20T00:00:00Z",
    )
    assert extract_crystals(an_event(note)) == [
        CrystalDraft(
            text="The deadline is March 20",
            series=NOTE_SERIES,
            kind="goal",
            importance=0.9,
            valence=-0.5,
            valid_from=datetime(2026, 3, 1, tzinfo=UTC),
            valid_to=datetime(2026, 3, 20, tzinfo=UTC),
        )
    ]


def test_an_imported_crystal_may_be_consolidated() -> None:
    assert only(extract_crystals(an_event(CrystalCreated("old", consolidated=True)))).consolidated


def test_a_page_is_indexed_by_section() -> None:
    page = "Before all headings.\n# Deploy\nPush the button.\n\n## Rollback\nPush it again.\n#hashtag stays\n"
    crystals = extract_crystals(an_event(DocumentWritten("detail/deploy.md", page)))
    assert [one.text for one in crystals] == [
        "Before all headings.",
        "# Deploy\nPush the button.",
        "## Rollback\nPush it again.\n#hashtag stays",
    ]
    assert [one.part for one in crystals] == [1, 2, 3]
    assert {(one.series, one.subject) for one in crystals} == {("detail/deploy.md", "detail/deploy.md")}


@pytest.mark.parametrize(
    ("page", "sections"),
    [
        ("# Runbook", []),
        ("# Runbook\n\n## Start\nPush the button.", ["# Runbook\n## Start\nPush the button."]),
        ("# Start\nPush the button.\n# To do\n", ["# Start\nPush the button.\n# To do"]),
        ("# To do\n## Buy milk\n## Call Mei", ["# To do\n## Buy milk\n## Call Mei"]),
    ],
)
def test_a_heading_without_text_is_joined_to_its_neighbour(page: str, sections: list[str]) -> None:
    assert [one.text for one in extract_crystals(an_event(DocumentWritten("detail/runbook.md", page)))] == sections


@pytest.mark.parametrize(
    "written",
    [
        DocumentWritten(OVERVIEW_PATH, "# Overview\nall of it"),
        DocumentWritten(NOTES_PAGE_PATH, "- a note"),
        DocumentWritten("detail/index.md", "an index line", upkeep=True),
        DocumentWritten("detail/empty.md", " \n"),
    ],
)
def test_overview_scratchpad_and_upkeep_pages_are_not_crystals(written: DocumentWritten) -> None:
    assert extract_crystals(an_event(written)) == []


def test_a_page_written_by_a_dream_is_not_a_crystal_but_replaces_the_page() -> None:
    written = an_event(DocumentWritten(MEMORY_PAGE_PATH, "## The Bond\n\n- Prefers tabs"))
    by_dream = replace(written, origin=Origin.DREAM)
    assert [one.text for one in extract_crystals(written)] == ["## The Bond\n\n- Prefers tabs"]
    assert extract_crystals(by_dream) == []
    assert subjects_of(by_dream) == subjects_of(written) == [(MEMORY_PAGE_PATH, MEMORY_PAGE_PATH)]


def test_an_evicted_entity_is_indexed_with_all_its_names() -> None:
    thing = a_page(
        aliases=("Company", "Über uns"),
        parts=(EntityPart("section", "section-1", "Hero"), EntityPart("section", "s-2")),
    )
    crystal = only(extract_crystals(an_event(EntitiesEvicted((thing,)))))
    assert (
        crystal.text
        == 'page "About Us" (page-123); also called Company, Über uns; with section Hero (section-1), section s-2'
    )
    assert (crystal.series, crystal.part, crystal.kind) == (ENTITY_SERIES, 1, "fact")


def test_a_deleted_entity_is_marked_and_an_unnamed_one_has_its_id() -> None:
    assert (
        only(extract_crystals(an_event(EntitiesEvicted((EntitySighting("page", "page-1", how="deleted"),))))).text
        == "page page-1; deleted"
    )


def test_of_many_parts_only_the_first_are_indexed() -> None:
    thing = EntitySighting("order", "o-1", parts=tuple(EntityPart("item", f"i-{number}") for number in range(100)))
    assert only(extract_crystals(an_event(EntitiesEvicted((thing,))))).text.count("item ") == MAX_LISTED_PARTS


def test_entities_evicted_together_have_separate_subjects() -> None:
    crystals = extract_crystals(an_event(EntitiesEvicted((a_page("page-1"), a_page("page-2")))))
    assert len({one.subject for one in crystals}) == len({one.part for one in crystals}) == 2


# -- shown text --------------------------------------------------------------------------------------------


@pytest.mark.spec("H6")
@pytest.mark.parametrize(
    ("payload", "texts"),
    [
        (AnchorMoved("first", (a_block("one"), a_block("two"))), ["one", "two"]),
        (TailChanged("changed", (a_block("fresh"),)), ["changed", "fresh"]),
        (NoteAdded("a note"), []),
        (MessageAdded(wire=user("hi")), []),
    ],
)
def test_prompt_blocks_count_as_shown(payload: EventPayload, texts: list[str]) -> None:
    assert list(shown_texts(an_event(payload), SearchableMessage(role="user", text="hi"))) == texts


@pytest.mark.spec("H6")
@each_row("origin", list(Origin))
def test_user_messages_are_never_echoes(origin: Origin) -> None:
    assert can_echo(event_from(origin, MessageAdded(wire=user("x")))) == (
        origin in (Origin.ASSISTANT, Origin.TOOL, Origin.WEB)
    )


@pytest.mark.spec("H6")
@pytest.mark.parametrize(
    "payload", [NoteAdded("x"), CrystalCreated("x"), DocumentWritten("detail/x.md", "x")], ids=repr
)
def test_notes_and_pages_are_never_echoes(payload: EventPayload) -> None:
    assert not any(can_echo(event_from(origin, payload)) for origin in Origin)


def event_from(origin: Origin, payload: EventPayload) -> Event:
    return Event(stream="session/s", seq=1, at=from_microseconds(0), payload=payload, origin=origin, trust=Trust.DATA)

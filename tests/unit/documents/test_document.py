"""Which paths are documents, and what a changed file means."""

from __future__ import annotations

import pytest
from builders import WHEN, an_event

from inmind.core.encoding import digest
from inmind.core.events.base import Event, Origin, Trust
from inmind.core.events.crystals import NoteAdded
from inmind.core.events.documents import DocumentWritten
from inmind.documents.document import MOST_BYTES, SCRATCH, Document, Documents, Finding, checked_text, judge, resolve
from inmind.documents.notes_page import notes_in
from inmind.errors import InvalidInput, InvalidPath


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("overview.md", ("thread", "overview.md")),
        ("working-memory/overview.md", ("thread", "overview.md")),
        ("detail/design.md", ("thread", "detail/design.md")),
        ("working-memory/archive/2026 notes (1).md", ("thread", "archive/2026 notes (1).md")),
        ("detail/设计.md", ("thread", "detail/设计.md")),
        ("detail/_it's R&D!.md", ("thread", "detail/_it's R&D!.md")),
        ("MEMORY.md", ("resource", "MEMORY.md")),
        ("memory/scratch.md", ("resource", "memory/scratch.md")),
    ],
)
def test_a_document_is_found_by_its_path(path: str, found: tuple[str, str]) -> None:
    assert resolve(path) == found


@pytest.mark.parametrize(
    "path",
    [
        "../overview.md",
        "detail/../overview.md",
        "detail/../../../etc/passwd",
        "/etc/passwd",
        "~/x.md",
        "detail\\x.md",
        "detail/x\x00.md",
        "detail2/x.md",
        "detail/",
        "detail",
        "",
        "detail/.hidden",
        "detail/.git",
        "detail/x.md.",
        "detail/x.md ",
        "detail/" + "x" * 300,
        "detail/sub/x.md",
        "detail/CON",
        "detail/nul.md",
        "%2e%2e/x.md",
        "detail/%2e%2e%2fx.md",
        "detail/e\u0301.md",
        "overview.md/",
        "OVERVIEW.MD",
        "working-memory/working-memory/overview.md",
        "detail/-rf",
        "detail/'x'.md",
        "detail/&x.md",
        "detail/x\n.md",
        None,
        7,
        b"overview.md",
    ],
)
def test_whatever_is_not_a_document_is_an_invalid_path_and_leads_nowhere(path: object) -> None:
    """J3: the field, the value and what was expected are named."""
    with pytest.raises(InvalidPath) as caught:
        resolve(path)
    error = caught.value
    assert (error.code, error.field, error.value) == ("INVALID_PATH", "path", path)
    assert "overview.md" in error.expected


@pytest.mark.parametrize("text", [None, b"x", "a\x00b", "lone \ud800", "x" * (MOST_BYTES + 1)])
def test_a_text_that_a_file_cannot_carry_is_refused(text: object) -> None:
    with pytest.raises(InvalidInput) as caught:
        checked_text(text)
    assert caught.value.field == "text"


def test_the_newest_writing_is_the_document() -> None:
    documents = Documents()
    for seq, text in ((3, "one"), (5, "two")):
        documents = documents.apply(an_event(DocumentWritten("overview.md", text), seq))
    assert (documents.text("overview.md"), documents.version("overview.md")) == ("two", 5)
    assert (documents.text("MEMORY.md"), documents.version("MEMORY.md")) == ("", 0)


def a_note(text: str, seq: int, trust: Trust = Trust.AGENT) -> Event:
    return Event(stream="resource/r", seq=seq, at=WHEN, payload=NoteAdded(text), origin=Origin.ASSISTANT, trust=trust)


@pytest.mark.spec("G2")
def test_notes_are_lines_of_one_page_which_whoever_writes_it_begins_anew() -> None:
    documents = Documents().apply(a_note("one", 3)).apply(a_note("two", 4))
    assert [note.text for note in notes_in(documents.text(SCRATCH))] == ["one", "two"]
    assert (documents.version(SCRATCH), documents.by_path[SCRATCH].source) == (4, "resource/r#4")
    assert documents.is_news(SCRATCH, since=3)
    documents = documents.apply(an_event(DocumentWritten(SCRATCH, "mine\n"), 5)).apply(a_note("three", 6))
    assert documents.text(SCRATCH).startswith("mine\n- [2026-01-01T00:00:00Z] (importance: 0.7) three")
    assert Documents.thaw(documents.freeze(), "resource/r") == documents


@pytest.mark.spec("G2", "J5")
def test_a_page_of_notes_is_trusted_as_the_least_of_them() -> None:
    trusts = (Trust.PERSON, Trust.DATA, Trust.AGENT)
    documents = Documents()
    for seq, trust in enumerate(trusts, start=1):
        documents = documents.apply(a_note("a note", seq, trust))
    assert documents.by_path[SCRATCH].trust is Trust.DATA


@pytest.mark.spec("G2")
def test_a_page_of_notes_is_never_larger_than_a_page_may_be() -> None:
    documents = Documents()
    for seq in range(1, 5):
        documents = documents.apply(a_note(str(seq) * 400_000, seq))
    kept = documents.text(SCRATCH)
    assert len(kept.encode()) <= MOST_BYTES
    assert [note.text[0] for note in notes_in(kept)] == ["3", "4"]
    assert "[in deep memory alone: 2 notes]" in kept


@pytest.mark.spec("G2")
def test_notes_belong_to_the_resource_or_to_a_session_that_is_alone() -> None:
    assert (resolve(SCRATCH), resolve(SCRATCH, alone=True)) == (("resource", SCRATCH), ("thread", SCRATCH))
    assert resolve("MEMORY.md", alone=True) == ("resource", "MEMORY.md")


NEWEST = Document(text="newest", version=9, source="session/s#9")


@pytest.mark.spec("A5")
@pytest.mark.parametrize(
    ("found", "published", "finding"),
    [
        (b"newest", "newest", Finding.CURRENT),
        (b"newest", "older", Finding.CURRENT),
        (b"older", "older", Finding.STALE),
        (b"older", "newest", Finding.EDITED),
        (b"by hand", "newest", Finding.EDITED),
        (b"by hand", None, Finding.EDITED),
        (b"", "newest", Finding.DAMAGED),
        ("caf\u00e9".encode()[:-1], "newest", Finding.DAMAGED),
        (b"a\x00b", "newest", Finding.DAMAGED),
        (b"x" * (MOST_BYTES + 1), "newest", Finding.DAMAGED),
        (None, "newest", Finding.MISSING),
    ],
)
def test_a_file_is_judged_by_what_was_last_published_and_never_taken_for_empty(
    found: bytes | None, published: str | None, finding: Finding
) -> None:
    judged = judge(found, document=NEWEST, published=digest(published) if published else None)
    assert judged.finding is finding


def test_a_file_without_a_document_is_one_that_a_person_began() -> None:
    assert judge(b"mine", document=None, published=None).finding is Finding.EDITED
    assert judge(None, document=None, published=None).finding is Finding.CURRENT


@pytest.mark.spec("F54")
@pytest.mark.parametrize(
    ("found", "finding"),
    [
        (b"newest", Finding.CURRENT),
        (b"older", Finding.STALE),
        (b"from elsewhere", Finding.SHARED),
        (b"a\x00b", Finding.DAMAGED),
    ],
)
def test_a_file_with_another_name_may_show_what_is_ours_and_brings_in_nothing(found: bytes, finding: Finding) -> None:
    judged = judge(found, document=NEWEST, published=digest("older"), linked=True)
    assert (judged.finding, judged.text) == (finding, "")
    assert judge(b"from elsewhere", document=None, published=None, linked=True).finding is Finding.SHARED

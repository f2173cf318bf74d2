"""Document paths, and classification of changed files."""

from __future__ import annotations

import pytest
from builders import WHEN, an_event, through_json
from tables import each_row

from inmind.core.encoding import digest
from inmind.core.events.base import Event, Origin, Trust
from inmind.core.events.crystals import NoteAdded
from inmind.core.events.documents import DocumentWritten
from inmind.documents.document import (
    MAX_DOCUMENT_BYTES,
    NOTES_PAGE_PATH,
    Document,
    Documents,
    FileStatus,
    check_file,
    resolve_path,
    validate_text,
)
from inmind.documents.notes_page import parse_notes
from inmind.errors import InvalidInput, InvalidPath


@each_row(
    ("path", "expected"),
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
def test_a_document_is_found_by_its_path(path: str, expected: tuple[str, str]) -> None:
    assert resolve_path(path) == expected


@each_row(
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
def test_any_other_path_is_an_invalid_path(path: object) -> None:
    """J3: the error has the field, the value and the expected form."""
    with pytest.raises(InvalidPath) as caught:
        resolve_path(path)
    error = caught.value
    assert (error.code, error.field, error.value) == ("INVALID_PATH", "path", path)
    assert "overview.md" in error.expected


@each_row("text", [None, b"x", "a\x00b", "lone \ud800", "x" * (MAX_DOCUMENT_BYTES + 1)])
def test_a_text_that_a_file_cannot_store_is_refused(text: object) -> None:
    with pytest.raises(InvalidInput) as caught:
        validate_text(text)
    assert caught.value.field == "text"


def test_the_newest_write_is_the_document() -> None:
    documents = Documents()
    for seq, text in ((3, "one"), (5, "two")):
        documents = documents.apply(an_event(DocumentWritten("overview.md", text), seq))
    assert (documents.text("overview.md"), documents.version("overview.md")) == ("two", 5)
    assert (documents.text("MEMORY.md"), documents.version("MEMORY.md")) == ("", 0)


def a_note(text: str, seq: int, trust: Trust = Trust.AGENT) -> Event:
    return Event(stream="resource/r", seq=seq, at=WHEN, payload=NoteAdded(text), origin=Origin.ASSISTANT, trust=trust)


@pytest.mark.spec("G2")
def test_notes_are_lines_of_one_page_which_a_write_replaces() -> None:
    documents = Documents().apply(a_note("one", 3)).apply(a_note("two", 4))
    assert [note.text for note in parse_notes(documents.text(NOTES_PAGE_PATH))] == ["one", "two"]
    assert (documents.version(NOTES_PAGE_PATH), documents.by_path[NOTES_PAGE_PATH].source) == (4, "resource/r#4")
    assert documents.is_edited_since(NOTES_PAGE_PATH, version=3)
    documents = documents.apply(an_event(DocumentWritten(NOTES_PAGE_PATH, "mine\n"), 5)).apply(a_note("three", 6))
    assert documents.text(NOTES_PAGE_PATH).startswith("mine\n- [2026-01-01T00:00:00Z] (importance: 0.7) three")
    assert through_json(documents) == documents


@pytest.mark.spec("G2", "J5")
def test_a_notes_page_has_the_lowest_trust_of_its_notes() -> None:
    trusts = (Trust.PERSON, Trust.DATA, Trust.AGENT)
    documents = Documents()
    for seq, trust in enumerate(trusts, start=1):
        documents = documents.apply(a_note("a note", seq, trust))
    assert documents.by_path[NOTES_PAGE_PATH].trust is Trust.DATA


@pytest.mark.spec("G2")
def test_the_notes_page_does_not_exceed_the_document_limit() -> None:
    documents = Documents()
    for seq in range(1, 5):
        documents = documents.apply(a_note(str(seq) * 400_000, seq))
    kept = documents.text(NOTES_PAGE_PATH)
    assert len(kept.encode()) <= MAX_DOCUMENT_BYTES
    assert [note.text[0] for note in parse_notes(kept)] == ["3", "4"]
    assert "[in deep memory alone: 2 notes]" in kept


@pytest.mark.spec("G2")
def test_notes_belong_to_the_resource_or_to_an_anonymous_session() -> None:
    assert (resolve_path(NOTES_PAGE_PATH), resolve_path(NOTES_PAGE_PATH, anonymous=True)) == (
        ("resource", NOTES_PAGE_PATH),
        ("thread", NOTES_PAGE_PATH),
    )
    assert resolve_path("MEMORY.md", anonymous=True) == ("resource", "MEMORY.md")


NEWEST = Document(text="newest", version=9, source="session/s#9")


@pytest.mark.spec("A5")
@each_row(
    ("content", "published", "expected"),
    [
        (b"newest", "newest", FileStatus.CURRENT),
        (b"newest", "older", FileStatus.CURRENT),
        (b"older", "older", FileStatus.STALE),
        (b"older", "newest", FileStatus.EDITED),
        (b"by hand", "newest", FileStatus.EDITED),
        (b"by hand", None, FileStatus.EDITED),
        (b"", "newest", FileStatus.DAMAGED),
        ("caf\u00e9".encode()[:-1], "newest", FileStatus.DAMAGED),
        (b"a\x00b", "newest", FileStatus.DAMAGED),
        (b"x" * (MAX_DOCUMENT_BYTES + 1), "newest", FileStatus.DAMAGED),
        (None, "newest", FileStatus.MISSING),
    ],
)
def test_a_file_is_classified_by_the_last_published_digest(
    content: bytes | None, published: str | None, expected: FileStatus
) -> None:
    result = check_file(content, document=NEWEST, published_digest=digest(published) if published else None)
    assert result.status is expected


def test_a_file_without_a_document_counts_as_edited() -> None:
    assert check_file(b"mine", document=None, published_digest=None).status is FileStatus.EDITED
    assert check_file(None, document=None, published_digest=None).status is FileStatus.CURRENT


@pytest.mark.spec("F54")
@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"newest", FileStatus.CURRENT),
        (b"older", FileStatus.STALE),
        (b"from elsewhere", FileStatus.SHARED),
        (b"a\x00b", FileStatus.DAMAGED),
    ],
)
def test_a_file_with_another_hard_link_is_not_imported(content: bytes, expected: FileStatus) -> None:
    result = check_file(content, document=NEWEST, published_digest=digest("older"), has_other_links=True)
    assert (result.status, result.text) == (expected, "")
    assert (
        check_file(b"from elsewhere", document=None, published_digest=None, has_other_links=True).status
        is FileStatus.SHARED
    )

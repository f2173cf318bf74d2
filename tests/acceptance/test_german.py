"""German is experimental: dates, negation and references are found from its file of tables."""

from __future__ import annotations

import pytest

from inmind import Session
from inmind.testing import ManualClock

DAY = 86_400


def open_pages(session: Session) -> None:
    session.observe("get_page", {"page_id": "page-1"}, {"id": "page-1", "type": "page", "title": "Startseite"})
    session.observe("get_page", {"page_id": "page-2"}, {"id": "page-2", "type": "page", "title": "Kontakt"})


@pytest.mark.spec("B7")
@pytest.mark.parametrize(
    ("text", "id"),
    [
        ("Lösche diese Seite bitte", "page-2"),
        ("Kannst du sie umbenennen und dann speichern?", "page-2"),
        ("Öffne die vorherige Seite und lies sie mir vor", "page-1"),
        ("Ändere nicht diese Seite, sondern die andere", "page-1"),
        ("Lösche die Seite Startseite", "page-1"),
    ],
)
def test_a_german_reference_is_resolved(session: Session, text: str, id: str) -> None:
    open_pages(session)
    entity = session.resolve(text).entity
    assert entity is not None
    assert entity.id == id


@pytest.mark.spec("B7")
def test_the_question_about_a_german_reference_is_german(session: Session) -> None:
    session.observe("list_pages", {}, [{"id": f"page-{n}", "title": f"Seite {n}", "type": "page"} for n in (1, 2)])
    assert session.resolve("Lösche die Seite, bitte, und nicht das Bild").question == (
        "Was ist gemeint: Seite 1 oder Seite 2?"
    )


@pytest.mark.spec("H3")
def test_a_german_date_in_a_question_finds_the_message_of_that_day(session: Session, clock: ManualClock) -> None:
    for place in ("im Museum", "im Zoo", "im Theater"):
        session.add([{"role": "user", "content": f"Ich war mit Mei {place}."}])
        clock.advance(seconds=7 * DAY)
    clock.advance(seconds=-6 * DAY)
    assert "Theater" in session.search("Wo war ich gestern mit Mei?")[0].passage
    assert "Zoo" in session.search("Wo war ich letzte Woche mit Mei?")[0].passage

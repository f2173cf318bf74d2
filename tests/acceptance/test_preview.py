"""A preview is exactly the next prompt, and nothing is stored."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from builders import Home, assistant, turns, user

from inmind import Memory, Session
from inmind.types import PromptPreview

SYSTEM = "You build pages."

pytestmark = pytest.mark.spec("I2")


def event_ids(session: Session) -> list[str]:
    return [event.id for event in session.events()]


@pytest.mark.parametrize("format", ["openai", "responses", "anthropic"])
def test_preview_returns_what_prepare_returns(memory: Memory, format: str) -> None:
    session = memory.session("s", resource="ada")
    session.note("Ada prefers tabs")
    for text in ("Create a page", "Add a hero to it"):
        session.add([user(text)], format=format)
        before = event_ids(session)
        preview = session.preview(system=SYSTEM, format=format)
        assert isinstance(preview, PromptPreview)
        assert event_ids(session) == before
        prompt = session.prepare(system=SYSTEM, format=format)
        assert (preview.call, preview.request, preview.report) == (prompt.call, prompt.request, prompt.report)
        assert str(preview.explanation) == str(session.explain(prompt.call))
        session.add([assistant("Done")], format=format)


def test_a_preview_includes_a_due_compaction(memory: Memory) -> None:
    session = memory.session("long", window=6_000, reserve=500)
    session.add([user("Move the shop."), assistant("Yes."), *turns(20, words=120)])
    before = event_ids(session)
    preview = session.preview()
    assert (preview.report.compacted, event_ids(session)) == ("the window was full", before)
    assert preview.request == session.prepare().request


def test_a_preview_does_not_change_later_prompts(memory: Memory, new_home: Callable[[], Home]) -> None:
    session = memory.session("s", cwd="/website")
    kept = [user("Create a page"), assistant("Done")]
    session.preview([*kept, user("Delete it all " * 50)], system="Another prompt")
    with Memory.open(new_home()) as other:
        fresh = other.session("s", cwd="/website").prepare([*kept, user("Add a hero")], system=SYSTEM)
    prompt = session.prepare([*kept, user("Add a hero")], system=SYSTEM)
    assert (prompt.request, prompt.report) == (fresh.request, fresh.report)
    assert session.prompt(1).request == prompt.request

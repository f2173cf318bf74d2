"""Act 3: a dream turns the notes and the mood of a day into MEMORY.md.

The dream is about the day of act 1. The next session starts with MEMORY.md.
"""

from __future__ import annotations

from collections.abc import Iterator

from rich.text import Text

from inmind import Session
from inmind.apps.cli.dreams import color_diff
from inmind.apps.cli.prompt_view import bar, prompt_texts, report_json
from inmind.apps.demo.references import EDITOR, RESOURCE, SESSION
from inmind.apps.demo.script import DemoAct, DemoContext, assistant, call, label_line, result, user
from inmind.core.text import count_noun
from inmind.documents.document import NOTES_PAGE_PATH
from inmind.documents.notes_page import parse_notes
from inmind.jobs.dream_history import Dream

TITLE = "A dream: notes and a mood become MEMORY.md"

NOTES = ("Ada prefers alt texts in English.", "Next: a page for the shop in Graz, which opens in May.")

CONVERSATION = (
    user("Publish the page."),
    call("p1", "cms_publish", page="page-123"),
    result("p1", error="img-790 has no alt text"),
    call("p2", "cms_publish", page="page-123", alt="A lake in the mountains"),
    result("p2", page={"id": "page-123", "status": "published"}),
    assistant("About Us is online."),
    user("Perfect, great work! The shop in Graz opens in May: it gets a page next."),
)


def play(context: DemoContext) -> DemoAct:
    memory = context.memory
    session = memory.session(SESSION)
    for _ in EDITOR.run_script(session, CONVERSATION):
        pass
    session.prepare(system=EDITOR.system, tools=EDITOR.tools)
    session.record(call("n1", "working_memory_note", note=NOTES[0]))
    session.prepare(system=EDITOR.system, tools=EDITOR.tools)
    session.record(call("n2", "working_memory_note", note=NOTES[1]))
    mood, waiting = memory.resource(RESOURCE).affect.mood, _notes(session)
    dream = memory.dream(RESOURCE)
    remaining = _notes(session)
    morning = memory.session("next-morning", resource=RESOURCE, cwd="/website")
    prompt = morning.prepare([user("Add a picture of the lake.")], system=EDITOR.system, tools=EDITOR.tools)
    state = next((passage.text for passage in prompt_texts(prompt) if passage.part == "memory:state"), "")
    next_day = (
        f"the first prompt of a new session contains it as part s, {prompt.report.tokens.get('memory:state', 0)} tokens"
    )
    return DemoAct(
        lines=[
            label_line("the day", "a call fails, the next one works, the user is happy"),
            label_line("mood", mood),
            *(label_line("" if place else "notes", text) for place, text in enumerate(waiting)),
            label_line(
                "dream",
                f"by {dream.by}: {count_noun(len(dream.notes), 'note')} merged, {len(remaining)} left. MEMORY.md:",
            ),
            *(label_line("", changed) for changed in _changes(dream)),
            label_line("next day", next_day),
            bar(prompt.report, width=context.width)[0],
        ],
        facts={
            "mood": mood,
            "notes": list(waiting),
            "notes_left": list(remaining),
            "by": dream.by,
            "diff": dream.diff,
            "state_in_next_prompt": state,
            "prompt": report_json(prompt.report),
        },
        promises={
            "notes were saved": waiting == NOTES,
            "the dream merges the notes": dream.status == "done"
            and not remaining
            and all(one in dream.after for one in NOTES),
            "the next session starts with the notes": all(one in state for one in NOTES),
        },
        prompt=(prompt, morning.explain(prompt.call)),
    )


def _notes(session: Session) -> tuple[str, ...]:
    return tuple(note.text for note in parse_notes(session.resource_state.documents.text(NOTES_PAGE_PATH)))


def _changes(dream: Dream) -> Iterator[Text]:
    """Changed lines of the diff with their section headings."""
    section: Text | None = None
    for changed in list(color_diff(dream.diff))[2:]:
        sign, text = changed.plain[:1], changed.plain[1:].strip()
        if text.startswith("#"):
            section = changed
        elif sign in ("+", "-") and text:
            if section is not None and section.plain.lstrip("+- ").startswith("##"):
                yield section
            section = None
            yield changed

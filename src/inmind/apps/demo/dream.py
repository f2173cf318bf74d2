"""The third act: a day leaves notes and a mood, and a dream makes a state of them, which the next session begins with.

It is the day of the first act that is dreamt of.
"""

from __future__ import annotations

from collections.abc import Iterator

from rich.text import Text

from inmind import Session
from inmind.apps.cli.dreams import color_diff
from inmind.apps.cli.prompt_view import bar, prompt_texts, report_json
from inmind.apps.demo.references import EDITOR, RESOURCE, SESSION
from inmind.apps.demo.script import Act, Stage, assistant, call, labelled, result, user
from inmind.core.text import counted
from inmind.documents.document import NOTES_PAGE_PATH
from inmind.documents.notes_page import parse_notes
from inmind.jobs.dreaming.history import Dream

TITLE = "A dream: notes and a mood become MEMORY.md"

NOTED = ("Ada prefers alt texts in English.", "Next: a page for the shop in Graz, which opens in May.")

REST_OF_THE_DAY = (
    user("Publish the page."),
    call("p1", "cms_publish", page="page-123"),
    result("p1", error="img-790 has no alt text"),
    call("p2", "cms_publish", page="page-123", alt="A lake in the mountains"),
    result("p2", page={"id": "page-123", "status": "published"}),
    assistant("About Us is online."),
    user("Perfect, great work! The shop in Graz opens in May: it gets a page next."),
)


def play(stage: Stage) -> Act:
    memory = stage.memory
    session = memory.session(SESSION)
    for _ in EDITOR.talks(session, REST_OF_THE_DAY):
        pass
    session.prepare(system=EDITOR.system, tools=EDITOR.tools)
    session.record(call("n1", "working_memory_note", note=NOTED[0]))
    session.prepare(system=EDITOR.system, tools=EDITOR.tools)
    session.record(call("n2", "working_memory_note", note=NOTED[1]))
    mood, waiting = memory.resource(RESOURCE).affect.mood, _notes(session)
    dream = memory.dream(RESOURCE)
    left = _notes(session)
    morning = memory.session("next-morning", resource=RESOURCE, cwd="/website")
    prompt = morning.prepare([user("Add a picture of the lake.")], system=EDITOR.system, tools=EDITOR.tools)
    state = next((passage.text for passage in prompt_texts(prompt) if passage.part == "memory:state"), "")
    told = f"the first prompt of a new session has it: s, {prompt.report.tokens.get('memory:state', 0)} tokens"
    return Act(
        lines=[
            labelled("the day", "a call fails, the next one works, the user is glad"),
            labelled("mood", mood),
            *(labelled("" if place else "notes", text) for place, text in enumerate(waiting)),
            labelled(
                "dream", f"by {dream.by}: {counted(len(dream.notes), 'note')} taken in, {len(left)} left. MEMORY.md:"
            ),
            *(labelled("", changed) for changed in _changes(dream)),
            labelled("next day", told),
            bar(prompt.report, width=stage.width)[0],
        ],
        facts={
            "mood": mood,
            "notes": list(waiting),
            "notes_left": list(left),
            "by": dream.by,
            "diff": dream.diff,
            "state_in_next_prompt": state,
            "prompt": report_json(prompt.report),
        },
        promises={
            "the day leaves notes": waiting == NOTED,
            "the dream takes them in": dream.status == "done" and not left and all(one in dream.after for one in NOTED),
            "the next session begins with them": all(one in state for one in NOTED),
        },
        prompt=(prompt, morning.explain(prompt.call)),
    )


def _notes(session: Session) -> tuple[str, ...]:
    return tuple(note.text for note in parse_notes(session.resource_state.documents.text(NOTES_PAGE_PATH)))


def _changes(dream: Dream) -> Iterator[Text]:
    """The lines of the diff that say something, below the sections in which they do."""
    section: Text | None = None
    for changed in list(color_diff(dream.diff))[2:]:
        sign, said = changed.plain[:1], changed.plain[1:].strip()
        if said.startswith("#"):
            section = changed
        elif sign in ("+", "-") and said:
            if section is not None and section.plain.lstrip("+- ").startswith("##"):
                yield section
            section = None
            yield changed

"""Acts 1 and 3: references such as "the other one", and a dream about that day."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from rich.table import Column
from rich.text import Text

from inmind import Prompt
from inmind.apps.cli.console import table
from inmind.apps.cli.prompt_view import bar, parts_table, prompt_texts, report_json
from inmind.apps.cli.resource_commands import color_diff
from inmind.apps.demo import command
from inmind.apps.demo.command import (
    ChatMessage,
    DemoAct,
    DemoContext,
    assistant,
    call,
    label_line,
    result,
    saved_notes,
    text_line,
    user,
)
from inmind.core.text import count_noun, printable
from inmind.entities.references.result import Resolution

TITLE = 'References: "it" and "the other one"'

SESSION, RESOURCE = "about-us", "ada"

EDITOR = command.ScriptedAgent(
    "You edit a website. Use the tools; answer in one sentence.",
    cms_createPage="Create a page.",
    cms_addSection="Add a section to a page.",
    cms_searchImages="Find images by a word.",
    cms_setImage="Put an image into a section.",
    cms_publish="Publish a page.",
)

AMBIGUOUS = "?"
"""Several entities match: the agent has to ask."""


class DemoTurn(NamedTuple):
    """A message of the user, and the scripted reaction of the agent."""

    text: str
    expected: str | None
    """Id that it refers to, or AMBIGUOUS; None if it refers to nothing."""
    answer: str
    work: tuple[ChatMessage, ...] = ()
    """Calls before the answer, with their results."""


ABOUT = {"id": "page-123", "title": "About Us"}
IMAGES = ({"id": "img-789", "filename": "dawn.jpg"}, {"id": "img-790", "filename": "lake.jpg"})

_CREATE = (call("c1", "cms_createPage", title="About Us"), result("c1", page=ABOUT))
_ADD = (
    call("c2", "cms_addSection", page="page-123", kind="hero"),
    result("c2", section={"id": "sec-456", "heading": "Welcome"}),
)
_SEARCH = (call("c3", "cms_searchImages", query="mountains"), result("c3", images=IMAGES))


def _set_image(id: str, image: str) -> tuple[ChatMessage, ...]:
    return call(id, "cms_setImage", section="sec-456", image=image), result(
        id, section={"id": "sec-456", "image": image}
    )


TURNS = (
    DemoTurn("Create a page called About Us.", None, "The page About Us is there.", _CREATE),
    DemoTurn("Add a hero section to it.", "page-123", "The hero section is in.", _ADD),
    DemoTurn("Find pictures of mountains for it.", "sec-456", "There are two.", _SEARCH),
    DemoTurn("Use the picture.", AMBIGUOUS, "Which picture: dawn.jpg or lake.jpg?"),
    DemoTurn("The first one.", "img-789", "Dawn it is.", _set_image("c4", "img-789")),
    DemoTurn("No, the other one.", "img-790", "The lake, then.", _set_image("c5", "img-790")),
)

INVENTED_ID = "page-132"
"""An id with two swapped digits, a typical error of models."""


def play(context: DemoContext) -> DemoAct:
    session = context.memory.session(SESSION, resource=RESOURCE, cwd="/website")
    resolutions: list[Resolution] = []
    prompts: list[Prompt] = []
    for turn in TURNS:
        resolutions.append(session.resolve(turn.text))
        prompts += EDITOR.run_script(session, [user(turn.text), *turn.work, assistant(turn.answer)])
    checked, last = session.check_call("cms_publish", {"page": INVENTED_ID}), prompts[-1]
    explanation = session.explain(last.call)
    reasons = "; ".join(finding.why for finding in checked.unknown)
    fields = ("text", "verdict", "confidence", "question", "why")
    return DemoAct(
        lines=[
            table((Column(), Column()), ((one.text, _answer(one)) for one in resolutions), show_header=False),
            label_line("caught", f'{checked.tool}("{INVENTED_ID}"): {reasons}'),
            text_line(f"The prompt of call {last.call}:", "dim"),
            *bar(last.report, width=context.width),
            parts_table(last.report, explanation),
        ],
        facts={
            "said": [
                {**{name: getattr(one, name) for name in fields}, "ids": [entity.id for entity in one.entities]}
                for one in resolutions
            ],
            "invented_id": [{"id": finding.id, "why": finding.why} for finding in checked.unknown],
            "prompt": report_json(last.report),
        },
        promises={
            "every reference is resolved or asked about": all(map(_is_expected, TURNS, resolutions)),
            "an invented id is reported": bool(checked.unknown),
        },
        prompt=(last, explanation),
    )


def _is_expected(turn: DemoTurn, resolution: Resolution) -> bool:
    if turn.expected == AMBIGUOUS:
        return resolution.verdict == "ambiguous" and bool(resolution.question)
    return (resolution.entity.id if resolution.entity else None) == turn.expected


def _answer(resolution: Resolution) -> Text:
    if resolution.question:
        return Text.assemble(("asks: ", "yellow"), printable(resolution.question))
    if resolution.entity is None:
        return Text("no reference", "dim")
    words = next((reference.text for reference in resolution.references), resolution.text)
    return Text.assemble((f"{words.lower()} → ", "green"), printable(str(resolution.entity)))


DREAM_TITLE = "A dream: notes and a mood become MEMORY.md"

NOTES = ["Ada prefers alt texts in English.", "Next: a page for the shop in Graz, which opens in May."]

CONVERSATION = (
    user("Publish the page."),
    call("p1", "cms_publish", page="page-123"),
    result("p1", error="img-790 has no alt text"),
    call("p2", "cms_publish", page="page-123", alt="A lake in the mountains"),
    result("p2", page={"id": "page-123", "status": "published"}),
    assistant("About Us is online."),
    user("Perfect, great work! The shop in Graz opens in May: it gets a page next."),
)


def play_dream(context: DemoContext) -> DemoAct:
    """A dream about the day of act 1. The next session starts with MEMORY.md."""
    memory = context.memory
    session = memory.session(SESSION)
    list(EDITOR.run_script(session, CONVERSATION))
    for number, note in enumerate(NOTES, start=1):
        EDITOR.prepare(session)
        session.record(call(f"n{number}", "working_memory_note", note=note))
    mood, waiting = memory.resource(RESOURCE).affect.mood, saved_notes(session)
    dream, remaining = memory.dream(RESOURCE), saved_notes(session)
    morning = memory.session("next-morning", resource=RESOURCE, cwd="/website")
    prompt = EDITOR.prepare(morning, [user("Add a picture of the lake.")])
    state = next((passage.text for passage in prompt_texts(prompt) if passage.part == "memory:state"), "")
    merged = f"{count_noun(len(dream.notes), 'note')} merged, {len(remaining)} left"
    size = prompt.report.tokens.get("memory:state", 0)
    return DemoAct(
        lines=[
            label_line("the day", "a call fails, the next one works, the user is happy"),
            label_line("mood", mood),
            *(label_line("" if place else "notes", text) for place, text in enumerate(waiting)),
            label_line("dream", f"by {dream.by}: {merged}. MEMORY.md:"),
            *(label_line("", changed) for changed in _changes(dream.diff)),
            label_line("next day", f"the first prompt of a new session contains it as part s, {size} tokens"),
            bar(prompt.report, width=context.width)[0],
        ],
        facts={
            "mood": mood,
            "notes": waiting,
            "notes_left": remaining,
            "by": dream.by,
            "diff": dream.diff,
            "state_in_next_prompt": state,
            "prompt": report_json(prompt.report),
        },
        promises={
            "notes were saved": waiting == NOTES,
            "the dream merges the notes": not remaining and all(note in dream.after for note in NOTES),
            "the next session starts with the notes": all(note in state for note in NOTES),
        },
        prompt=(prompt, morning.explain(prompt.call)),
    )


def _changes(diff: str) -> Iterator[Text]:
    """Changed lines of the diff, with the headings of sections that have any."""
    heading: Text | None = None
    for line in list(color_diff(diff))[2:]:
        if line.plain[1:].startswith("#"):
            heading = line if line.plain[1:].startswith("##") else None
        elif line.plain[:1] in ("+", "-") and line.plain[1:].strip():
            yield from [line] if heading is None else [heading, line]
            heading = None

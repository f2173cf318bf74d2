"""The first act: somebody builds a page by talking about "it", and memory says which thing that is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.table import Column, Table
from rich.text import Text

from inmind import Prompt
from inmind.apps.cli.console import plain_table
from inmind.apps.cli.prompt_view import bar, legend, report_json
from inmind.apps.demo.script import Act, Agent, Said, Stage, assistant, call, labelled, line, result, tool, user
from inmind.core.frozen import frozen
from inmind.core.text import printable
from inmind.entities.references.result import Resolution

TITLE = '"It", "the other one": a page is built by talking'

SESSION, RESOURCE = "about-us", "ada"

EDITOR = Agent(
    system="You edit a website. Use the tools; answer in one sentence.",
    tools=(
        tool("cms_createPage", "Create a page."),
        tool("cms_addSection", "Add a section to a page."),
        tool("cms_searchImages", "Find images by a word."),
        tool("cms_setImage", "Put an image into a section."),
        tool("cms_publish", "Publish a page."),
    ),
)


ASKED = "?"
"""More than one thing may be meant: whoever guesses does the wrong thing half of the time."""


@frozen
class Turn:
    """What somebody says, and what the agent does about it."""

    said: str
    meant: str | None
    """The id of what it refers to, or ASKED; None where it refers to nothing."""
    done: Sequence[Said]


TURNS = (
    Turn(
        "Create a page called About Us.",
        None,
        [
            call("c1", "cms_createPage", title="About Us"),
            result("c1", page={"id": "page-123", "title": "About Us"}),
            assistant("The page About Us is there."),
        ],
    ),
    Turn(
        "Add a hero section to it.",
        "page-123",
        [
            call("c2", "cms_addSection", page="page-123", kind="hero"),
            result("c2", section={"id": "sec-456", "heading": "Welcome"}),
            assistant("The hero section is in."),
        ],
    ),
    Turn(
        "Find pictures of mountains for it.",
        "sec-456",
        [
            call("c3", "cms_searchImages", query="mountains"),
            result("c3", images=[{"id": "img-789", "filename": "dawn.jpg"}, {"id": "img-790", "filename": "lake.jpg"}]),
            assistant("There are two."),
        ],
    ),
    Turn("Use the picture.", ASKED, [assistant("Which picture: dawn.jpg or lake.jpg?")]),
    Turn(
        "The first one.",
        "img-789",
        [
            call("c4", "cms_setImage", section="sec-456", image="img-789"),
            result("c4", section={"id": "sec-456", "image": "img-789"}),
            assistant("Dawn it is."),
        ],
    ),
    Turn(
        "No, the other one.",
        "img-790",
        [
            call("c5", "cms_setImage", section="sec-456", image="img-790"),
            result("c5", section={"id": "sec-456", "image": "img-790"}),
            assistant("The lake, then."),
        ],
    ),
)

INVENTED = {"page": "page-132"}
"""Two digits that have changed places, as models do."""


def play(stage: Stage) -> Act:
    session = stage.memory.session(SESSION, resource=RESOURCE, cwd="/website")
    understood: list[Resolution] = []
    prompts: list[Prompt] = []
    for turn in TURNS:
        understood.append(session.resolve(turn.said))
        prompts += EDITOR.talks(session, [user(turn.said), *turn.done])
    checked = session.check_call("cms_publish", INVENTED)
    last = prompts[-1]
    return Act(
        lines=[
            _table(understood),
            labelled(
                "caught",
                f'{checked.tool}("{INVENTED["page"]}"): {"; ".join(finding.why for finding in checked.unknown)}',
            ),
            line(f"What the model is sent, call {last.call}:", "dim"),
            *bar(last.report, width=stage.width),
            *legend(last.report, width=stage.width),
        ],
        facts={
            "said": [_facts(one) for one in understood],
            "invented_id": [{"id": finding.id, "why": finding.why} for finding in checked.unknown],
            "prompt": report_json(last.report),
        },
        promises={
            "every reference is understood, or asked about": all(map(_is_meant, TURNS, understood)),
            "an id that was never seen is caught": bool(checked.unknown),
        },
        prompt=(last, session.explain(last.call)),
    )


def _is_meant(turn: Turn, resolution: Resolution) -> bool:
    if turn.meant == ASKED:
        return resolution.verdict == "ambiguous" and bool(resolution.question)
    return (resolution.entity.id if resolution.entity else None) == turn.meant


def _table(understood: Sequence[Resolution]) -> Table:
    table = plain_table(Column(), Column(), show_header=False)
    for one in understood:
        table.add_row(Text(one.text), _answer(one))
    return table


def _answer(one: Resolution) -> Text:
    if one.question:
        return Text.assemble(("asks: ", "yellow"), printable(one.question))
    if one.entity is None:
        return Text("nothing in mind yet", "dim")
    words = next((reference.text for reference in one.references), one.text)
    return Text.assemble((f"{words.lower()} → ", "green"), printable(str(one.entity)))


def _facts(one: Resolution) -> dict[str, Any]:
    return {
        "text": one.text,
        "verdict": one.verdict,
        "ids": [entity.id for entity in one.entities],
        "confidence": one.confidence,
        "question": one.question,
        "why": one.why,
    }

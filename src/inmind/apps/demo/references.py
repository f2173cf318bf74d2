"""Act 1: a user refers to things as "it", and memory resolves the references."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.table import Column, Table
from rich.text import Text

from inmind import Prompt
from inmind.apps.cli.console import plain_table
from inmind.apps.cli.prompt_view import bar, legend, report_json
from inmind.apps.demo.script import (
    ChatMessage,
    DemoAct,
    DemoContext,
    ScriptedAgent,
    assistant,
    call,
    label_line,
    result,
    text_line,
    tool,
    user,
)
from inmind.core.frozen import frozen
from inmind.core.text import printable
from inmind.entities.references.result import Resolution

TITLE = 'References: "it" and "the other one"'

SESSION, RESOURCE = "about-us", "ada"

EDITOR = ScriptedAgent(
    system="You edit a website. Use the tools; answer in one sentence.",
    tools=(
        tool("cms_createPage", "Create a page."),
        tool("cms_addSection", "Add a section to a page."),
        tool("cms_searchImages", "Find images by a word."),
        tool("cms_setImage", "Put an image into a section."),
        tool("cms_publish", "Publish a page."),
    ),
)


AMBIGUOUS = "?"
"""Several entities match: the agent has to ask."""


@frozen
class DemoTurn:
    """A message of the user, and the scripted reaction of the agent."""

    text: str
    expected: str | None
    """Id that it refers to, or AMBIGUOUS; None if it refers to nothing."""
    messages: Sequence[ChatMessage]


TURNS = (
    DemoTurn(
        "Create a page called About Us.",
        None,
        [
            call("c1", "cms_createPage", title="About Us"),
            result("c1", page={"id": "page-123", "title": "About Us"}),
            assistant("The page About Us is there."),
        ],
    ),
    DemoTurn(
        "Add a hero section to it.",
        "page-123",
        [
            call("c2", "cms_addSection", page="page-123", kind="hero"),
            result("c2", section={"id": "sec-456", "heading": "Welcome"}),
            assistant("The hero section is in."),
        ],
    ),
    DemoTurn(
        "Find pictures of mountains for it.",
        "sec-456",
        [
            call("c3", "cms_searchImages", query="mountains"),
            result("c3", images=[{"id": "img-789", "filename": "dawn.jpg"}, {"id": "img-790", "filename": "lake.jpg"}]),
            assistant("There are two."),
        ],
    ),
    DemoTurn("Use the picture.", AMBIGUOUS, [assistant("Which picture: dawn.jpg or lake.jpg?")]),
    DemoTurn(
        "The first one.",
        "img-789",
        [
            call("c4", "cms_setImage", section="sec-456", image="img-789"),
            result("c4", section={"id": "sec-456", "image": "img-789"}),
            assistant("Dawn it is."),
        ],
    ),
    DemoTurn(
        "No, the other one.",
        "img-790",
        [
            call("c5", "cms_setImage", section="sec-456", image="img-790"),
            result("c5", section={"id": "sec-456", "image": "img-790"}),
            assistant("The lake, then."),
        ],
    ),
)

INVENTED_ARGUMENTS = {"page": "page-132"}
"""An id with two swapped digits, a typical error of models."""


def play(context: DemoContext) -> DemoAct:
    session = context.memory.session(SESSION, resource=RESOURCE, cwd="/website")
    resolutions: list[Resolution] = []
    prompts: list[Prompt] = []
    for turn in TURNS:
        resolutions.append(session.resolve(turn.text))
        prompts += EDITOR.run_script(session, [user(turn.text), *turn.messages])
    checked = session.check_call("cms_publish", INVENTED_ARGUMENTS)
    last = prompts[-1]
    return DemoAct(
        lines=[
            _table(resolutions),
            label_line(
                "caught",
                f'{checked.tool}("{INVENTED_ARGUMENTS["page"]}"): '
                f"{'; '.join(finding.why for finding in checked.unknown)}",
            ),
            text_line(f"The prompt of call {last.call}:", "dim"),
            *bar(last.report, width=context.width),
            *legend(last.report, width=context.width),
        ],
        facts={
            "said": [_facts(one) for one in resolutions],
            "invented_id": [{"id": finding.id, "why": finding.why} for finding in checked.unknown],
            "prompt": report_json(last.report),
        },
        promises={
            "every reference is resolved or asked about": all(map(_is_expected, TURNS, resolutions)),
            "an invented id is reported": bool(checked.unknown),
        },
        prompt=(last, session.explain(last.call)),
    )


def _is_expected(turn: DemoTurn, resolution: Resolution) -> bool:
    if turn.expected == AMBIGUOUS:
        return resolution.verdict == "ambiguous" and bool(resolution.question)
    return (resolution.entity.id if resolution.entity else None) == turn.expected


def _table(resolutions: Sequence[Resolution]) -> Table:
    table = plain_table(Column(), Column(), show_header=False)
    for one in resolutions:
        table.add_row(Text(one.text), _answer(one))
    return table


def _answer(resolution: Resolution) -> Text:
    if resolution.question:
        return Text.assemble(("asks: ", "yellow"), printable(resolution.question))
    if resolution.entity is None:
        return Text("no reference", "dim")
    words = next((reference.text for reference in resolution.references), resolution.text)
    return Text.assemble((f"{words.lower()} → ", "green"), printable(str(resolution.entity)))


def _facts(resolution: Resolution) -> dict[str, Any]:
    return {
        "text": resolution.text,
        "verdict": resolution.verdict,
        "ids": [entity.id for entity in resolution.entities],
        "confidence": resolution.confidence,
        "question": resolution.question,
        "why": resolution.why,
    }

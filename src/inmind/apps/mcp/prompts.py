"""Prompts that a person picks in the client: what is in mind, and all that a new session needs to go on.

They are made of what the library itself shows a model. Only the sentence in front is ours.
"""

from __future__ import annotations

from collections.abc import Mapping

from mcp_types import GetPromptResult, Prompt, PromptArgument, PromptMessage, TextContent

from inmind.core.text import inert
from inmind.errors import NotFound
from inmind.session.session import Session

IN_MIND, HAND_OVER = "what_do_you_have_in_mind", "hand_over"

_SESSION = PromptArgument(name="session", description="Which session; by default this project's.", required=False)

_PROMPTS: Mapping[str, tuple[str, str]] = {
    IN_MIND: ("What do you have in mind?", "All that is in working memory right now."),
    HAND_OVER: ("Hand over to a new session", "State, task, decisions, things with ids, and what there is to read."),
}


def listed() -> list[Prompt]:
    return [
        Prompt(name=name, title=title, description=what, arguments=[_SESSION])
        for name, (title, what) in _PROMPTS.items()
    ]


def check(name: str) -> None:
    if name not in _PROMPTS:
        raise NotFound(what="prompt", name=name, hint=f"there are: {', '.join(_PROMPTS)}")


def made(prompt: str, session: Session) -> GetPromptResult:
    shown = session.call_tool("working_memory_show").text
    if prompt == IN_MIND:
        text = f"Tell me in short what you have in mind, and what you would do next. This is your memory:\n\n{shown}"
    else:
        name, whose = inert(session.id), inert(session.resource)
        pages = session.call_tool("memory_list").text
        text = (
            f"You take over the session {name} of {whose}. What was in mind there:\n\n{shown}\n\n"
            f'memory_read with session "{name}" shows these in full:\n{pages}\n\n'
            "Say what the task is, what was decided and what you would do next; then go on."
        )
    message = PromptMessage(role="user", content=TextContent(type="text", text=text))
    return GetPromptResult(description=_PROMPTS[prompt][1], messages=[message])

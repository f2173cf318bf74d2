"""Shared parts of the demo: context, scripted conversations, and the result of an act.

No model is called; its replies are scripted. Everything else is real, so an act can fail: it lists its promises, and
whether each one was kept.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.table import Table
from rich.text import Text

from inmind import Memory, Prompt, Session
from inmind.core.frozen import frozen
from inmind.core.text import printable
from inmind.documents.document import NOTES_PAGE_PATH
from inmind.documents.notes_page import parse_notes
from inmind.prompt.report import Explanation

ChatMessage = dict[str, Any]
"""A message in the OpenAI chat completions format."""
DemoLine = Text | Table


@frozen(kw_only=True)
class DemoContext:
    memory: Memory
    folder: Path
    """Temporary folder for other files of an act."""
    width: int
    """Width of the lines."""


@frozen(kw_only=True)
class DemoAct:
    """Result of an act: lines for people, facts for programs."""

    lines: Sequence[DemoLine]
    facts: Mapping[str, Any]
    promises: Mapping[str, bool]
    """Claims of the act, and whether each one holds."""
    prompt: tuple[Prompt, Explanation] | None = None
    """The prompt of its bar, for --verbose."""

    @property
    def broken(self) -> tuple[str, ...]:
        return tuple(promise for promise, holds in self.promises.items() if not holds)


def user(text: str) -> ChatMessage:
    return {"role": "user", "content": text}


def assistant(text: str) -> ChatMessage:
    return {"role": "assistant", "content": text}


def call(id: str, name: str, **arguments: Any) -> ChatMessage:
    function = {"name": name, "arguments": json.dumps(arguments)}
    return {"role": "assistant", "content": None, "tool_calls": [{"id": id, "type": "function", "function": function}]}


def result(id: str, **result: Any) -> ChatMessage:
    return {"role": "tool", "tool_call_id": id, "content": json.dumps(result)}


def tool(name: str, description: str) -> ChatMessage:
    function = {"name": name, "description": description, "parameters": {"type": "object"}}
    return {"type": "function", "function": function}


@frozen(kw_only=True)
class ScriptedAgent:
    """An agent with scripted replies."""

    system: str
    tools: Sequence[ChatMessage]

    def run_script(self, session: Session, messages: Iterable[ChatMessage]) -> Iterator[Prompt]:
        """Add the messages, and yield the prompt before each reply of the agent."""
        for message in messages:
            if message["role"] == "assistant":
                yield session.prepare(system=self.system, tools=self.tools)
            session.add([message])


def saved_notes(session: Session) -> list[str]:
    """Notes of the session's resource that wait for a dream."""
    return [note.text for note in parse_notes(session.resource_state.documents.text(NOTES_PAGE_PATH))]


def text_line(text: str, style: str = "") -> Text:
    return Text(printable(text), style)


def label_line(label: str, text: str | Text, style: str = "cyan") -> Table:
    """A line with a label; a long text wraps in its own column."""
    grid = Table.grid(padding=(0, 1, 0, 0))
    grid.add_column(no_wrap=True, width=9)
    grid.add_column()
    grid.add_row(Text(label, style), text_line(text) if isinstance(text, str) else text)
    return grid

"""How the demonstration is told: a stage, conversations that are written down beforehand, and what an act has shown.

No model is called; its replies are written in the acts. All else is what the library really does, so an act can fail:
it names the promises that it is there to keep, and says of each whether it was kept.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from inmind import Memory, Prompt, Session
from inmind.core.frozen import frozen
from inmind.core.text import printable
from inmind.prompt.explain import Explanation

Said = dict[str, Any]
"""A message in the words of OpenAI's chat completions."""
Line = Text | Table

INDENT = 3


@frozen(kw_only=True)
class Stage:
    memory: Memory
    folder: Path
    """For whatever an act needs beside the memory. All of it is thrown away in the end."""
    width: int
    """Of the lines of an act."""


@frozen(kw_only=True)
class Act:
    """What was shown: lines for people, the same facts for programs."""

    lines: Sequence[Line]
    facts: Mapping[str, Any]
    promises: Mapping[str, bool]
    """What the act is there to show, and whether it was so."""
    prompt: tuple[Prompt, Explanation] | None = None
    """The one that its bar is drawn of, for whoever wants to read it."""

    @property
    def broken(self) -> tuple[str, ...]:
        return tuple(promise for promise, kept in self.promises.items() if not kept)


def user(text: str) -> Said:
    return {"role": "user", "content": text}


def assistant(text: str) -> Said:
    return {"role": "assistant", "content": text}


def call(id: str, name: str, **arguments: Any) -> Said:
    function = {"name": name, "arguments": json.dumps(arguments)}
    return {"role": "assistant", "content": None, "tool_calls": [{"id": id, "type": "function", "function": function}]}


def result(id: str, **result: Any) -> Said:
    return {"role": "tool", "tool_call_id": id, "content": json.dumps(result)}


def tool(name: str, description: str) -> Said:
    return {"type": "function", "function": {"name": name, "description": description, "parameters": _ANYTHING}}


_ANYTHING = {"type": "object"}


@frozen(kw_only=True)
class Agent:
    """Whose replies are written in the acts."""

    system: str
    tools: Sequence[Said]

    def talks(self, session: Session, messages: Iterable[Said]) -> Iterator[Prompt]:
        """What it is sent, call by call, while all of this is said: a model is asked before each message of its own."""
        for message in messages:
            if message["role"] == "assistant":
                yield session.prepare(system=self.system, tools=self.tools)
            session.add([message])


def line(text: str, style: str = "") -> Text:
    return Text(printable(text), style)


def labelled(label: str, text: str | Text, style: str = "cyan") -> Table:
    """A line with a word in front of it, under which it goes on where it is too long."""
    grid = Table.grid(padding=(0, 1, 0, 0))
    grid.add_column(no_wrap=True, width=LABEL)
    grid.add_column()
    grid.add_row(Text(label, style), line(text) if isinstance(text, str) else text)
    return grid


LABEL = 9
"""Columns of the words in front."""


def indented(one: Line) -> Padding:
    return Padding(one, (0, 0, 0, INDENT), expand=False)

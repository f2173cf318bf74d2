"""A conversation that is written down beforehand, in the words of OpenAI's chat completions, and how it looks."""

from __future__ import annotations

import json
from typing import Any

from rich.text import Text

from inmind.text import printable

Said = dict[str, Any]


def user(text: str) -> Said:
    return {"role": "user", "content": text}


def assistant(text: str) -> Said:
    return {"role": "assistant", "content": text}


def call(id: str, name: str, **arguments: Any) -> Said:
    function = {"name": name, "arguments": json.dumps(arguments)}
    return {"role": "assistant", "content": None, "tool_calls": [{"id": id, "type": "function", "function": function}]}


def result(id: str, **result: Any) -> Said:
    return {"role": "tool", "tool_call_id": id, "content": json.dumps(result)}


def shown(message: Said) -> Text:
    return Text(f"  {message['role']:<10}", style="cyan").append(printable(content(message)), style="default")


def content(message: Said) -> str:
    if calls := message.get("tool_calls"):
        return ", ".join(f"{call['function']['name']}({call['function']['arguments']})" for call in calls)
    said = message["content"]
    return said if isinstance(said, str) else "\n".join(part["text"] for part in said)

"""A coding agent whose run is longer than its context window.

Archived messages can be read again and restored. The loop has no code for the window. When three quarters of it are
full, `prepare` archives old messages, and a stub says where they are. The scripted model needs one of the outputs again
and reads it. Then the session continues with a model that has room for everything, and the compactions are undone. The
project is invented.
"""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Iterable
from typing import Any

from inmind import HostCall, Memory, Prompt, Session

Message = dict[str, Any]

TASK = "Users with a space in their name cannot log in. Find out why. Never touch anything below vendor/."
FILES = ("urls.py", "users.py", "forms.py", "views.py", "session.py", "settings.py", "vendor/slugs.py")
TOOLS = [{"type": "function", "function": {"name": "read_file", "parameters": {"type": "object"}}}]

REREAD_PREFIX = "again: "
MOVES = (*FILES, f"{REREAD_PREFIX}users.py", "users.py makes a slug of the name before it looks for the user.")


def work(session: Session, moves: Iterable[str]) -> None:
    """One turn: the model reads files until it has an answer."""
    session.add([{"role": "user", "content": TASK}])
    for move in moves:
        prompt = session.prepare(tools=TOOLS)
        if prompt.report.compacted:
            print(f"Call {prompt.call}: {prompt.report.compacted}. {count_outputs(session, prompt)}")
            print(stub(prompt))
        recorded = session.record(reply(prompt, move))
        for result in recorded.results:
            lines = str(result["content"]).split("\n")
            print("memory_read:", lines[0], *(line for line in lines if "last line" in line), sep="\n  ")
        for call in recorded.host_calls:
            session.add([{"role": "tool", "tool_call_id": call.id, "content": read_file(call)}])
        if recorded.text:
            print(recorded.text)


def reply(prompt: Prompt, move: str) -> Message:
    """Stands for `client.chat.completions.create(model=..., **prompt.request)`."""
    if move in FILES:
        return calls(prompt, "read_file", path=move)
    if move.startswith(REREAD_PREFIX):
        return calls(prompt, "memory_read", path=archive_path(stub(prompt)))
    return {"role": "assistant", "content": move}


def calls(prompt: Prompt, name: str, **arguments: Any) -> Message:
    function = {"name": name, "arguments": json.dumps(arguments)}
    call = {"id": f"call-{prompt.call}", "type": "function", "function": function}
    return {"role": "assistant", "content": None, "tool_calls": [call]}


def archive_path(stub: str) -> str:
    """The path of the archive page that a stub names."""
    match = re.search(r"archive/\S+\.md", stub)
    if match is None:
        raise ValueError(f"{stub} names no archive page")
    return match[0]


def read_file(call: HostCall) -> str:
    path = call.arguments["path"]
    return "\n".join([*(f"{number}: a line of {path}" for number in range(1, 80)), f"80: the last line of {path}"])


def outputs(prompt: Prompt) -> list[Any]:
    return [message["content"] for message in prompt.messages if message["role"] == "tool"]


def stub(prompt: Prompt) -> str:
    """The stub that is sent instead of archived messages; empty if there is none."""
    texts = (str(message["content"]) for message in prompt.messages)
    return next((text for text in texts if text.startswith("<compacted_history>")), "")


def count_outputs(session: Session, prompt: Prompt) -> str:
    total = sum(message["role"] == "tool" for message in session.messages)
    return f"{len(outputs(prompt))} of {total} outputs are sent."


def main() -> None:
    with tempfile.TemporaryDirectory() as home, Memory.open(home) as memory:
        session = memory.session("login", resource="ada", window=9_000, reserve=1_000)
        work(session, MOVES)
        larger = memory.session("login", window=128_000)
        for _ in larger.state.history.compactions:
            larger.undo_compaction()
        print(f"Restored in a larger window: {count_outputs(larger, larger.prepare(tools=TOOLS))}")


if __name__ == "__main__":
    main()

"""A coding agent whose run is longer than its context window.

Archived messages can be read again and restored. The loop has no code for the window. When three quarters of it are
full, `prepare` archives old tool outputs: their beginning stays, and says where the rest is. The scripted model needs
one of them again and reads it. Then the session continues with a model that has room for everything, and the
compactions are undone. The project is invented.
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

PRUNED = re.compile(r"\[pruned: (\S+)\]\n")
REREAD_PREFIX = "again: "
MOVES = (*FILES, f"{REREAD_PREFIX}users.py", "users.py makes a slug of the name before it looks for the user.")


def work(session: Session, moves: Iterable[str]) -> None:
    """One turn: the model reads files until it has an answer."""
    session.add([{"role": "user", "content": TASK}])
    for move in moves:
        prompt = session.prepare(tools=TOOLS)
        if prompt.report.compacted:
            print(f"Call {prompt.call}: {prompt.report.compacted}. {count_outputs(prompt)}")
            print(
                *(f"  {output[:70]}…".replace("\n", " ") for output in outputs(prompt) if is_pruned(output)), sep="\n"
            )
        recorded = session.record(reply(prompt, move))
        for result in recorded.results:
            lines = str(result["content"]).split("\n")
            print("Read again:", lines[0], "...", *lines[-2:], sep="\n  ")
        for call in recorded.host_calls:
            session.add([{"role": "tool", "tool_call_id": call.id, "content": read_file(call)}])
        if recorded.text:
            print(recorded.text)


def reply(prompt: Prompt, move: str) -> Message:
    """Stands for `client.chat.completions.create(model=..., **prompt.request)`."""
    if move in FILES:
        return calls(prompt, "read_file", path=move)
    if move.startswith(REREAD_PREFIX):
        return calls(prompt, "working_memory", command=f"read {location(prompt, move.removeprefix(REREAD_PREFIX))}")
    return {"role": "assistant", "content": move}


def calls(prompt: Prompt, name: str, **arguments: Any) -> Message:
    function = {"name": name, "arguments": json.dumps(arguments)}
    call = {"id": f"call-{prompt.call}", "type": "function", "function": function}
    return {"role": "assistant", "content": None, "tool_calls": [call]}


def location(prompt: Prompt, path: str) -> str:
    """Page and lines of the archive that the pruned output of a file names."""
    for output in outputs(prompt):
        if (match := PRUNED.match(output)) and f"a line of {path}" in output:
            return match[1]
    raise ValueError(f"no pruned output of {path} in the prompt")


def is_pruned(output: str) -> bool:
    return PRUNED.match(output) is not None


def read_file(call: HostCall) -> str:
    path = call.arguments["path"]
    return "\n".join([*(f"{number}: a line of {path}" for number in range(1, 80)), f"80: the last line of {path}"])


def outputs(prompt: Prompt) -> list[str]:
    return [str(message["content"]) for message in prompt.messages if message["role"] == "tool"]


def count_outputs(prompt: Prompt) -> str:
    complete = [output for output in outputs(prompt) if not is_pruned(output)]
    return f"{len(complete)} of {len(outputs(prompt))} outputs are sent complete."


def main() -> None:
    with tempfile.TemporaryDirectory() as home, Memory.open(home) as memory:
        session = memory.session("login", resource="ada", window=6_400, reserve=1_000)
        work(session, MOVES)
        larger = memory.session("login", window=128_000)
        for _ in larger.state.history.compactions:
            larger.undo_compaction()
        print(f"Restored in a larger window: {count_outputs(larger.prepare(tools=TOOLS))}")


if __name__ == "__main__":
    main()

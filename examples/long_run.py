"""A coding agent whose run is longer than its window: what leaves the view can be read again, and brought back.

Nothing in the loop is about the window. When three quarters of it are full, `prepare` archives what is old, and what
stays in its place says where it is. The model, whose moves are written down, needs one of the outputs once more and
follows that line. Then the session goes on with a model that has room for everything, and the compaction is taken back.
The project that is looked into is made up.
"""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Iterable
from typing import Any

from inmind import HostCall, Memory, Prompt, Session

Message = dict[str, Any]

TASK = "Nobody with a space in his name can log in. Find out why. Never touch anything below vendor/."
FILES = ("urls.py", "users.py", "forms.py", "views.py", "session.py", "settings.py", "vendor/slugs.py")
TOOLS = [{"type": "function", "function": {"name": "read_file", "parameters": {"type": "object"}}}]

AGAIN = "again: "
MOVES = (*FILES, f"{AGAIN}views.py", "views.py makes a slug of the name before it looks for the user.")


def work(session: Session, moves: Iterable[str]) -> None:
    """One turn: the model reads files until it has an answer."""
    session.add([{"role": "user", "content": TASK}])
    for move in moves:
        prompt = session.prepare(tools=TOOLS)
        if prompt.report.compacted:
            print(f"Call {prompt.call}: {prompt.report.compacted}. {sent(session, prompt)}")
            print(f"  {stubs(prompt)[-1]}")
        recorded = session.record(reply(prompt, move))
        for result in recorded.results:
            print("memory_read:", *str(result["content"]).replace("\n\n", "\n").split("\n")[-2:])
        for call in recorded.host_calls:
            session.add([{"role": "tool", "tool_call_id": call.id, "content": read_file(call)}])
        if recorded.text:
            print(recorded.text)


def reply(prompt: Prompt, move: str) -> Message:
    """Stands in for `client.chat.completions.create(model=..., **prompt.request)`."""
    if move in FILES:
        return calls(prompt, "read_file", path=move)
    if move.startswith(AGAIN):
        return calls(prompt, "memory_read", **place_of(move.removeprefix(AGAIN), prompt))
    return {"role": "assistant", "content": move}


def calls(prompt: Prompt, name: str, **arguments: Any) -> Message:
    function = {"name": name, "arguments": json.dumps(arguments)}
    call = {"id": f"call-{prompt.call}", "type": "function", "function": function}
    return {"role": "assistant", "content": None, "tool_calls": [call]}


def place_of(file: str, prompt: Prompt) -> dict[str, Any]:
    """Where an output has gone, by the line that stands in its place."""
    stub = next(stub for stub in stubs(prompt) if file in stub)
    found = re.search(r"(archive/\S+) from_line (\d+)", stub)
    if found is None:
        raise ValueError(f"{stub} does not say where it is")
    return {"path": found[1], "from_line": int(found[2])}


def read_file(call: HostCall) -> str:
    path = call.arguments["path"]
    return "\n".join([*(f"{number}: a line of {path}" for number in range(1, 80)), f"80: the last line of {path}"])


def outputs(prompt: Prompt) -> list[Any]:
    return [message["content"] for message in prompt.messages if message["role"] == "tool"]


def stubs(prompt: Prompt) -> list[str]:
    return [said for said in outputs(prompt) if isinstance(said, str) and said.startswith("[archived")]


def sent(session: Session, prompt: Prompt) -> str:
    there = sum(entry.wire["role"] == "tool" for entry in session.mind.line)
    shown, short = len(outputs(prompt)), len(stubs(prompt))
    return f"{shown - short} of {there} outputs are sent whole, {short} as a line, {there - shown} in a stub."


def main() -> None:
    with tempfile.TemporaryDirectory() as home, Memory.open(home) as memory:
        session = memory.session("login", resource="ada", window=9_000, reserve=1_000)
        work(session, MOVES)
        roomy = memory.session("login", window=128_000)
        roomy.undo_compaction()
        print(f"Taken back in a larger window: {sent(roomy, roomy.prepare(tools=TOOLS))}")


if __name__ == "__main__":
    main()

"""An agent that keeps its task on a scratchpad: a goal, the finished steps, the blockers.

The loop is a complete host with memory: `prepare` returns the request, `record` stores the reply and runs the memory
tools that the model called, and the host runs its own tools. The model is a list of scripted replies, so this runs
without a network or a key. It fills unused fields, as models do, and once it sends an invalid update.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel

from inmind import HostCall, Memory, Session, default_layers
from inmind.layers import ScratchpadLayer

Message = dict[str, Any]

TOOLS = [{"type": "function", "function": {"name": "deploy", "parameters": {"type": "object"}}}]


class Task(BaseModel):
    current_goal: str
    completed_steps: list[str]
    blockers: list[str]


def ask(session: Session, question: str, script: Iterator[Message]) -> None:
    """One turn: from a user message to its answer."""
    print(question)
    session.add([{"role": "user", "content": question}])
    while True:
        prompt = session.prepare(tools=TOOLS)
        recorded = session.record(model(prompt.request, script))
        for result in recorded.results:
            print(f"  memory: {result['content']}")
        for call in recorded.host_calls:
            session.add([{"role": "tool", "tool_call_id": call.id, "content": deploy(call)}])
        if not recorded.results and not recorded.host_calls:
            print(f"  {recorded.text}")
            return


def model(request: Message, script: Iterator[Message]) -> Message:
    """Stands for `client.chat.completions.create(model=..., **request)`."""
    if "working_memory_update" not in json.dumps(request["tools"]):
        raise ValueError("the request offers no memory tools")
    return next(script)


def deploy(call: HostCall) -> str:
    return json.dumps({"deployment": {"id": "dep-118", **call.arguments}})


def calls(id: str, name: str, **arguments: Any) -> Message:
    function = {"name": name, "arguments": json.dumps(arguments)}
    return {"role": "assistant", "content": None, "tool_calls": [{"id": id, "type": "function", "function": function}]}


def says(text: str) -> Message:
    return {"role": "assistant", "content": text}


UPDATE = "working_memory_update"
PLANNING = [
    calls("a1", UPDATE, current_goal="Deploy v2", completed_steps=["write tests"], blockers=["no approval"]),
    calls("a2", UPDATE, completed_steps=["write tests", "ask Mei"], blockers=[]),  # fills fields that have not changed
    says("I have asked Mei, and wait for her approval."),
]
HELPING = [
    calls("b1", "deploy", to="staging", build=118),
    calls("b2", UPDATE, completed_steps=["write tests", "ask Mei", "v2 runs on staging"]),
    says("Staging runs v2."),
]
APPROVED = [
    calls("c1", UPDATE, completed_steps="all but the last", blockers=[]),
    calls("c2", UPDATE, blockers=[]),
    calls("c3", UPDATE, completed_steps=["write tests", "ask Mei", "approved"]),
    says("Then production is next."),
]


def main() -> None:
    with tempfile.TemporaryDirectory() as home, Memory.open(home) as memory:
        session = memory.session("deploy", layers=default_layers(ScratchpadLayer(schema=Task)))
        ask(session, "Deploy v2 of the shop.", iter(PLANNING))

        helper = session.spawn("staging", policy="fork")
        ask(helper, "Try it on staging.", iter(HELPING))
        ask(session, "Mei says yes.", iter(APPROVED))

        report = session.merge_back(helper)
        print(f"Merged the helper: {', '.join(report.combined)} combined, {len(report.conflicts)} conflicts")
        print(json.dumps(session.scratchpad.snapshot, indent=2))


if __name__ == "__main__":
    main()

"""A host that keeps its own list of messages and passes it to inmind before each call.

The loop is that of most agents: call the model, run its tool calls, call it again. Two lines of it are about memory.
This host runs only its own tools, so the model is offered no memory tools; task_scratchpad.py shows a host that runs
them. The model is a function with scripted answers, so this runs without a network or a key; it stands for
`client.chat.completions.create(model=..., **prompt.request)`.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from typing import Any

from inmind import Memory, Prompt, Session

Message = dict[str, Any]

SYSTEM = "You look after a shop's orders. Use the tools; answer in one sentence."
TOOLS = [{"type": "function", "function": {"name": "find_order", "parameters": {"type": "object"}}}]


def model(prompt: Prompt, script: Iterator[Message]) -> Message:
    """Stands for the provider's client, which would be sent `prompt.request`."""
    if prompt.messages[-1]["role"] not in {"user", "tool"}:
        raise ValueError("expected a user message or a tool result at the end")
    return next(script)


def find_order(arguments: str) -> str:
    number = json.loads(arguments)["number"]
    return json.dumps({"order": {"id": f"order-{number}", "status": "packed", "items": ["tea", "two mugs"]}})


def answer(session: Session, messages: list[Message], script: Iterator[Message]) -> str:
    """One turn: from a user message to its answer."""
    while True:
        prompt = session.prepare(messages, tools=TOOLS)
        report = prompt.report
        print(f"  call {prompt.call}: {report.tokens_used} tokens, {report.cached_prefix_tokens} of them cached")
        reply = model(prompt, script)
        messages.append(reply)
        if not reply.get("tool_calls"):
            session.add([reply])  # the next `prepare` would store it too, but there may be none
            return str(reply["content"])
        for call in reply["tool_calls"]:
            result = find_order(call["function"]["arguments"])
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": result})


def calls(id: str, number: int) -> Message:
    function = {"name": "find_order", "arguments": json.dumps({"number": number})}
    return {"role": "assistant", "content": None, "tool_calls": [{"id": id, "type": "function", "function": function}]}


def says(text: str) -> Message:
    return {"role": "assistant", "content": text}


def main() -> None:
    script = iter([calls("c1", 118), says("It is packed."), says("It holds tea and two mugs."), says("Tea, two mugs.")])
    with tempfile.TemporaryDirectory() as home, Memory.open(home) as memory:
        session = memory.session("orders", resource="ada", memory_tools=False)
        messages: list[Message] = [{"role": "system", "content": SYSTEM}]
        for question in ("Where is order 118?", "What is in it?"):
            print(question)
            messages.append({"role": "user", "content": question})
            print(f"  {answer(session, messages, script)}")

        print("The user wants that answer again.")
        del messages[-1]
        print(f"  {answer(session, messages, script)}")

        stored = sum(event.kind == "message" for event in session.events())
        print(f"{len(session.messages)} messages in the conversation, {stored} in the journal")
        print(f"Served from cache: {session.usage.cached_share:.0%}")


if __name__ == "__main__":
    main()

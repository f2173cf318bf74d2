"""A custom layer: tools that failed recently, so that the model does not repeat the call.

A layer returns a text for the model and the events it comes from. The budget, escaping and cache placement are handled
by the prompt, so a layer is short.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from typing import Any

from inmind import Memory
from inmind.layers import Budget, DocumentLayer, LayerContext, LayerText, PlainLayer, TextLayer

FAILED = "Error:"


class FailuresLayer(PlainLayer):
    """Reads only the conversation, so the same conversation always gives the same block."""

    name = "failures"
    slot = 130
    budget = Budget(min=20, max=60)

    def recall(self, context: LayerContext) -> LayerText | None:
        failed = [f"- {text}" for text in reversed(results(context.messages)) if text.startswith(FAILED)]
        return LayerText("\n".join(failed), pointer="[older failures are in the conversation]") if failed else None


def results(messages: Sequence[Mapping[str, Any]]) -> list[str]:
    return [str(message["content"]) for message in messages if message["role"] == "tool"]


def exchange(id: str, result: str) -> list[dict[str, Any]]:
    """A tool call and its result."""
    function = {"name": "deploy", "arguments": "{}"}
    return [
        {"role": "assistant", "content": None, "tool_calls": [{"id": id, "type": "function", "function": function}]},
        {"role": "tool", "tool_call_id": id, "content": result},
    ]


def main() -> None:
    layers = [
        TextLayer("house rules", "Deploy to staging first.", slot=80),
        DocumentLayer("overview", "overview.md"),
        FailuresLayer(),
    ]
    messages: list[dict[str, Any]] = [{"role": "user", "content": "Deploy the shop."}]
    with tempfile.TemporaryDirectory() as home, Memory.open(home) as memory:
        session = memory.session("deploy", layers=layers, memory_tools=False)
        prompt = session.prepare(messages)
        for number in range(1, 7):
            messages += exchange(f"c{number}", f"Error: host web-{number} is out of disk space, build 118 not copied.")
            prompt = session.prepare(messages)
        print(prompt.messages[0]["content"].split("\n\n")[-1])
        print(f"cut: {', '.join(prompt.report.cut)}")
        for part in session.explain().parts:
            print(f"{part.tokens:>5}  {part.name:<19} {part.fate}")


if __name__ == "__main__":
    main()

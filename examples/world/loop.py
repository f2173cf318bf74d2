"""The agent loop: call the model, run its tool calls, repeat until a reply has no calls.

Four calls of it are about memory. `add` stores a message, `prepare` returns the request, `record` stores the reply and
runs the memory tools, `check_call` finds ids that were never seen. The rest is the same in any agent.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from inmind import HostCall, Prompt, Session
from world.model import Model, Provider

Json = dict[str, Any]

MAX_ROUNDS = 60
"""Per turn. A model without an answer by then will not find one."""

TEXT: Json = {"type": "string"}
NUMBER: Json = {"type": "number"}


class ToolFailed(Exception):
    """The tool failed. The model gets this text as the reason."""


@dataclass(frozen=True)
class Tool:
    """A tool for the model. `run` gets the parameters in the order of their declaration."""

    name: str
    description: str
    parameters: Mapping[str, Json]
    run: Callable[..., Any]

    def declaration(self, provider: Provider) -> Json:
        schema = {"type": "object", "properties": dict(self.parameters), "required": list(self.parameters)}
        if provider == "anthropic":
            return {"name": self.name, "description": self.description, "input_schema": schema}
        function = {"name": self.name, "description": self.description, "parameters": schema}
        return {"type": "function", "function": function}

    def execute(self, call: HostCall) -> Any:
        arguments = arguments_of(call)
        for name, schema in self.parameters.items():
            if not isinstance(arguments.get(name), _KINDS[schema["type"]]):
                raise ToolFailed(f"{name} has to be a {schema['type']}")
        return self.run(*(arguments[name] for name in self.parameters))


_KINDS = {"string": str, "number": int | float}


def arguments_of(call: HostCall) -> Json:
    """The arguments of a call; empty if the model has not sent an object."""
    arguments: object = call.arguments
    return cast(Json, arguments) if isinstance(arguments, dict) else {}


def format_call(call: HostCall) -> str:
    """A call as source code."""
    arguments = (f"{name}={json.dumps(value, ensure_ascii=False)}" for name, value in arguments_of(call).items())
    return f"{call.name}({', '.join(arguments)})"


def nothing(*_: object) -> None:
    """The default callback."""


@dataclass(kw_only=True)
class Agent:
    session: Session
    model: Model
    system: str
    tools: Sequence[Tool]
    on_prompt: Callable[[Prompt], object] = nothing
    on_result: Callable[[HostCall, str], object] = nothing

    def answer(self, request: str) -> str:
        """One turn: from a user message to its answer."""
        self._add({"role": "user", "content": request})
        tools = [tool.declaration(self.model.provider) for tool in self.tools]
        for _ in range(MAX_ROUNDS):
            prompt = self.session.prepare(system=self.system, tools=tools, format=self.model.provider)
            self.on_prompt(prompt)
            recorded = self.session.record(self.model.ask(prompt))
            for call in recorded.host_calls:
                result = self._result(call)
                self._add(self._result_message(call, result))
                self.on_result(call, result)
            if not recorded.results and not recorded.host_calls:
                return recorded.text
        return f"(no answer within {MAX_ROUNDS} rounds)"

    def _add(self, message: Json) -> None:
        self.session.add([message], format=self.model.provider)

    def _result_message(self, call: HostCall, result: str) -> Json:
        """The tool result as a message in the format of the provider."""
        if self.model.provider == "anthropic":
            block = {"type": "tool_result", "tool_use_id": call.id, "content": result}
            return {"role": "user", "content": [block]}
        return {"role": "tool", "tool_call_id": call.id, "content": result}

    def _result(self, call: HostCall) -> str:
        """The text for the model: the tool's result, or the reason why it was not run."""
        check = self.session.check_call(call.name, call.arguments)
        if not check.ok:
            return failure("; ".join(str(each) for each in check.findings if each.status in ("unknown", "deleted")))
        tool = next(tool for tool in self.tools if tool.name == call.name)
        try:
            result = tool.execute(call)
        except ToolFailed as error:
            return failure(str(error))
        return result if isinstance(result, str) else json.dumps(result, ensure_ascii=False)


def failure(reason: str) -> str:
    return json.dumps({"success": False, "error": reason}, ensure_ascii=False)

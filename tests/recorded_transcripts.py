"""Recorded conversations in the formats of their recorders, each as small as possible."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from builders import a_call, a_result, assistant, user

SYSTEM = {"role": "system", "content": "You edit a website."}

CHAT: list[dict[str, Any]] = [
    SYSTEM,
    user("Create a page called About Us."),
    a_call("c1", "create_page", '{"title": "About Us"}'),
    a_result("c1", '{"page": {"id": "page-123", "title": "About Us"}}'),
    assistant("It is there."),
    user("Rename it to Team."),
    a_call("c2", "rename_page", '{"page_id": "page-123", "title": "Team"}'),
    a_result("c2", '{"page": {"id": "page-123", "title": "Team"}}'),
    assistant("Done."),
]
"""Four prompts; the third uses an id."""

ANTHROPIC: dict[str, Any] = {
    "model": "some-model",
    "system": "You edit a website.",
    "tools": [{"name": "create_page", "input_schema": {"type": "object"}}],
    "messages": [
        {"role": "user", "content": "Create a page."},
        {
            "id": "msg_1",
            "role": "assistant",
            "stop_reason": "tool_use",
            "content": [{"type": "tool_use", "id": "t1", "name": "create_page", "input": {"title": "About"}}],
        },
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": '{"id": "page-123"}'}]},
        {"role": "assistant", "content": [{"type": "text", "text": "Done."}]},
    ],
}

TAU2: dict[str, Any] = {
    "info": {"environment_info": {"policy": "Be kind.", "tool_defs": None}},
    "simulations": [
        {
            "task_id": "7",
            "messages": [
                {"role": "assistant", "content": "Hi!", "tool_calls": None, "turn_idx": 0},
                {"role": "user", "content": "Where is order W77?", "tool_calls": None, "turn_idx": 1},
                {
                    "role": "assistant",
                    "content": None,
                    "tool_calls": [
                        {"id": "x1", "name": "get_order", "arguments": {"order_id": "W77"}, "requestor": "assistant"}
                    ],
                    "turn_idx": 2,
                },
                {"id": "x1", "role": "tool", "content": "shipped", "requestor": "assistant", "turn_idx": 3},
                {
                    "role": "user",
                    "content": None,
                    "tool_calls": [{"id": "u1", "name": "look", "arguments": {}, "requestor": "user"}],
                },
                {"id": "u1", "role": "tool", "content": "nothing", "requestor": "user"},
                {"role": "assistant", "content": "On its way.", "tool_calls": None},
            ],
        }
    ],
}

AGENTDOJO: list[dict[str, Any]] = [
    {
        "user_task_id": "user_task_0",
        "messages": [
            {"role": "system", "content": [{"type": "text", "content": "Be useful."}]},
            {"role": "user", "content": "Who comes?"},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {"function": "find_event", "args": {"query": "party"}, "id": "", "placeholder_args": None},
                    {"function": "get_event", "args": {"event_id": "13"}, "id": ""},
                ],
            },
            {"role": "tool", "content": "", "tool_call_id": "", "tool_call": {}, "error": "ValueError: no such event"},
            {"role": "tool", "content": "id_: '13'", "tool_call_id": "", "tool_call": {}, "error": None},
            {"role": "assistant", "content": "Nobody.", "tool_calls": None},
        ],
    }
]

TAU = [{"task_id": 3, "reward": 1.0, "traj": [*CHAT[:2], {**assistant("Sure."), "function_call": None}]}]

SWE_AGENT = [
    {
        "file": "one.traj",
        "traj": {
            "trajectory": [],
            "history": [
                {**SYSTEM, "agent": "main"},
                {**user("Fix it."), "agent": "main"},
                {**a_call("c1", "bash", '{"command": "ls"}'), "thought": "…", "agent": "main"},
                {"role": "tool", "content": "a.py", "tool_call_ids": ["c1"], "agent": "main"},
                assistant("Fixed."),
            ],
        },
    }
]


def a_line(kind: str, uuid: str, parent: str | None, content: Any, /, **more: Any) -> dict[str, Any]:
    """A line of a Claude Code session; `message_id` is the id of its reply."""
    message: dict[str, Any] = {"role": kind, "content": content}
    if "message_id" in more:
        message |= {"id": more.pop("message_id"), "model": "some-model", "usage": {"input_tokens": 3}}
    envelope = {"type": kind, "uuid": uuid, "parentUuid": parent, "sessionId": "s", "isSidechain": False}
    return {**envelope, "message": message, **more}


def a_use(id: str, **input: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": id, "name": "Read", "input": input}


def an_answer(id: str, text: str = "ok") -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": id, "content": text}


def a_file(folder: Path, content: object, name: str = "recorded.json") -> str:
    """A file with one JSON value, or with given bytes."""
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
    return str(path)


def lines(values: Sequence[object]) -> bytes:
    return "".join(f"{json.dumps(value)}\n" for value in values).encode()

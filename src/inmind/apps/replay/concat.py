"""Several recordings played as one: the long run that nobody recorded.

A session goes on for days while recordings are short. One after the other they make a conversation in which tasks
change and the window fills, under one head: a session has one system prompt, and here it is that of the first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from inmind.apps.replay.recording import Recording
from inmind.core.json import is_list, is_object
from inmind.core.messages import FORMATS
from inmind.core.messages.model import Wire
from inmind.errors import InvalidInput

OTHER_SYSTEM = "system prompts of later recordings"

_NAMES_A_CALL = frozenset({"id", "tool_call_id", "tool_use_id"})


def joined(recordings: Sequence[Recording], *, name: str) -> Recording:
    """All of them as one conversation. A call whose id an earlier recording has used gets another, as in one session
    no two calls are named alike; what cannot stand in one conversation is left out and counted, or refused."""
    first = recordings[0]
    if len({recording.format for recording in recordings}) > 1:
        raise InvalidInput(field=name, value="OpenAI and Anthropic", expected="one provider's messages, to be joined")
    messages: list[Wire] = []
    left_out: Counter[str] = Counter()
    taken: set[str] = set()
    for number, recording in enumerate(recordings, start=1):
        own = _calls_of(recording)
        names = {id: _unlike(f"{id}_{number}", taken | own) for id in own & taken}
        messages += [_renamed(wire, names) for wire in recording.messages] if names else recording.messages
        taken |= own | set(names.values())
        left_out.update(recording.left_out)
        left_out[OTHER_SYSTEM] += recording.system != first.system
    return Recording(
        name=name,
        format=first.format,
        messages=messages,
        system=first.system,
        tools=first.tools,
        left_out={what: count for what, count in left_out.items() if count},
    )


def _calls_of(recording: Recording) -> set[str]:
    spoken = FORMATS[recording.format]
    return {call.id for wire in recording.messages for call in spoken.read(wire).calls}


def _unlike(name: str, taken: Collection[str]) -> str:
    while name in taken:
        name += "_"
    return name


def _renamed(wire: Wire, names: Mapping[str, str]) -> dict[str, Any]:
    """Calls and results stand in a message itself, in its calls, or among the blocks of its content."""
    renamed = _named_anew(wire, names)
    for several in ("tool_calls", "content"):
        if is_list(wire.get(several)):
            renamed[several] = [_named_anew(part, names) if is_object(part) else part for part in wire[several]]
    return renamed


def _named_anew(part: Wire, names: Mapping[str, str]) -> dict[str, Any]:
    return {key: names.get(value, value) if key in _NAMES_A_CALL else value for key, value in part.items()}

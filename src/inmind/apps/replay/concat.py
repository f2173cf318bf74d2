"""Joins several recordings into one long conversation.

Recordings are short, while a session can run for days. Joined, they make a conversation in which tasks change and the
context window fills. A session has one system prompt: that of the first recording.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from inmind.apps.replay.files import Recording
from inmind.core.json import is_list, is_object
from inmind.core.messages import FORMATS
from inmind.core.messages.model import Wire
from inmind.errors import InvalidInput

OTHER_SYSTEM_PROMPTS = "system prompts of later recordings"

_CALL_ID_FIELDS = frozenset({"id", "tool_call_id", "tool_use_id"})


def join_recordings(recordings: Sequence[Recording], *, name: str) -> Recording:
    """All recordings as one conversation.

    Call ids that an earlier recording has used are renamed, because ids are unique in a session. Parts that cannot be
    in one conversation are left out and counted, or refused.
    """
    first = recordings[0]
    if len({recording.format for recording in recordings}) > 1:
        raise InvalidInput(field=name, value="OpenAI and Anthropic", expected="messages of one provider to join")
    messages: list[Wire] = []
    left_out: Counter[str] = Counter()
    used: set[str] = set()
    for number, recording in enumerate(recordings, start=1):
        call_ids = _call_ids(recording)
        names = {id: _unused_name(f"{id}_{number}", used | call_ids) for id in call_ids & used}
        messages += [_rename_calls(wire, names) for wire in recording.messages] if names else recording.messages
        used |= call_ids | set(names.values())
        left_out.update(recording.left_out)
        left_out[OTHER_SYSTEM_PROMPTS] += recording.system != first.system
    return Recording(
        name=name,
        format=first.format,
        messages=messages,
        system=first.system,
        tools=first.tools,
        left_out={reason: count for reason, count in left_out.items() if count},
    )


def _call_ids(recording: Recording) -> set[str]:
    fmt = FORMATS[recording.format]
    return {call.id for wire in recording.messages for call in fmt.read(wire).calls}


def _unused_name(name: str, used: Collection[str]) -> str:
    while name in used:
        name += "_"
    return name


def _rename_calls(wire: Wire, names: Mapping[str, str]) -> dict[str, Any]:
    """Rename ids in the message, in its calls, and in the blocks of its content."""
    renamed = _rename_ids(wire, names)
    for several in ("tool_calls", "content"):
        if is_list(wire.get(several)):
            renamed[several] = [_rename_ids(part, names) if is_object(part) else part for part in wire[several]]
    return renamed


def _rename_ids(part: Wire, names: Mapping[str, str]) -> dict[str, Any]:
    return {key: names.get(value, value) if key in _CALL_ID_FIELDS else value for key, value in part.items()}

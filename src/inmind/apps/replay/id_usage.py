"""Locations of ids in a recorded conversation.

A use of an id is judged by locations only: whether it appeared before, who used it first, and whether it is in the part
that is still sent. Each id is searched once.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from itertools import accumulate

from inmind.apps.replay.files import Recording
from inmind.apps.replay.prompt_checks import message_text
from inmind.core.encoding import to_json
from inmind.core.messages import FORMATS
from inmind.core.text import id_positions

HEAD = -1
"""Location of the system prompt and the tools, before the conversation."""

_SEPARATOR = "\x00"


class IdLocations:
    def __init__(self, recording: Recording) -> None:
        fmt = FORMATS[recording.format]
        messages = [fmt.read(wire) for wire in recording.messages]
        texts = [message_text(message) for message in messages]
        texts.insert(0, f"{to_json(recording.system)}\n{to_json(recording.tools)}")
        self._text = _SEPARATOR.join(texts)
        self._starts = [0, *accumulate(len(text) + len(_SEPARATOR) for text in texts)]
        self._roles = [message.role for message in messages]
        self._by_id: dict[str, tuple[int, ...]] = {}

    def locations(self, id: str) -> tuple[int, ...]:
        """Indexes of the messages that contain it, in order; `HEAD` comes first."""
        if id not in self._by_id:
            texts = {bisect_right(self._starts, position) - 1 for position in id_positions(id, self._text)}
            self._by_id[id] = tuple(text + HEAD for text in sorted(texts))
        return self._by_id[id]

    def appeared_before(self, id: str, before: int) -> bool:
        """True if it appeared before this message."""
        places = self.locations(id)
        return bool(places) and places[0] < before

    def is_sent(self, id: str, start: int, stop: int) -> bool:
        """True if a request with the messages from `start` to `stop` contains it."""
        places = self.locations(id)
        first = bisect_left(places, start)
        return places[:1] == (HEAD,) or (first < len(places) and places[first] < stop)

    def is_first_from_user(self, id: str) -> bool:
        first = next(iter(self.locations(id)), HEAD)
        return first != HEAD and self._roles[first] == "user"

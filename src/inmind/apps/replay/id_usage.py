"""Where an id stands in a recorded conversation.

A call that uses an id is judged by places alone: did it stand somewhere before, who said it first, is it in the part
that is still sent. Each id is looked for once, however many calls use it.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from itertools import accumulate

from inmind.apps.replay.prompt_checks import words_of
from inmind.apps.replay.recording import Recording
from inmind.core.encoding import to_json
from inmind.core.messages import FORMATS
from inmind.core.text import places_of

HEAD = -1
"""The place of what stands before the conversation: system prompt and tools."""

_BETWEEN = "\x00"


class Appearances:
    def __init__(self, recording: Recording) -> None:
        spoken = FORMATS[recording.format]
        said = [spoken.read(wire) for wire in recording.messages]
        texts = [words_of(message) for message in said]
        texts.insert(0, f"{to_json(recording.system)}\n{to_json(recording.tools)}")
        self._text = _BETWEEN.join(texts)
        self._starts = [0, *accumulate(len(text) + len(_BETWEEN) for text in texts)]
        self._roles = [message.role for message in said]
        self._found: dict[str, tuple[int, ...]] = {}

    def places(self, id: str) -> tuple[int, ...]:
        """The messages that have it, in order, by their index; `HEAD` before them."""
        if id not in self._found:
            texts = {bisect_right(self._starts, found) - 1 for found in places_of(id, self._text)}
            self._found[id] = tuple(text + HEAD for text in sorted(texts))
        return self._found[id]

    def known(self, id: str, before: int) -> bool:
        """Had anybody said it before this message?"""
        places = self.places(id)
        return bool(places) and places[0] < before

    def sent(self, id: str, start: int, stop: int) -> bool:
        """Does it stand in a request with the messages from `start` up to `stop`?"""
        places = self.places(id)
        first = bisect_left(places, start)
        return places[:1] == (HEAD,) or (first < len(places) and places[first] < stop)

    def user_said_it_first(self, id: str) -> bool:
        first = next(iter(self.places(id)), HEAD)
        return first != HEAD and self._roles[first] == "user"

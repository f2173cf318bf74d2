"""What one store could keep and the other could not: both answer alike, or refuse it alike before anything is stored.

The tables of faults call this P34. PostgreSQL has no NUL in a text and no number above 2^63 in a column, half a
surrogate pair is a character to Python alone, and what is long may be too long for an index: none of that is a caller's
business.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pytest
from builders import user

from inmind import InmindError, Memory, Session
from inmind.core.events.codec import encode_payload
from inmind.testing import ManualClock


class Side:
    """A memory with a session in it, and how far its journal was looked at."""

    def __init__(self, place: Path | str) -> None:
        self.memory = Memory.open(place, clock=ManualClock(), embedder=None)
        self.session = self.memory.session("s", resource="ada", cwd="/w")
        self._seen: dict[str, int] = {}
        self.news()

    def news(self) -> list[tuple[object, ...]]:
        """All events that nobody has asked for before."""
        store = self.memory._context.store  # pyright: ignore[reportPrivateUsage] -- all there is, whatever it is called
        told: list[tuple[object, ...]] = []
        for name in store.stream_names(""):
            for event in store.read(name, after=self._seen.get(name, 0)):
                told.append((name, event.seq, event.origin, event.trust, event.sources, encode_payload(event.payload)))
                self._seen[name] = event.seq
        return told


class Pair:
    """A memory in a folder and one in PostgreSQL, to which the same is done."""

    def __init__(self, home: Path, url: str) -> None:
        self.sides = [Side(home), Side(url)]

    def close(self) -> None:
        for side in self.sides:
            side.memory.close()

    def both(self, call: Callable[[Side], object]) -> tuple[str, str]:
        """What both say: an answer, or the code of an error. Nothing is stored where it is refused."""
        told: list[tuple[str, str, str]] = []
        news: list[list[tuple[object, ...]]] = []
        for side in self.sides:
            try:
                told.append(("", "", shown(call(side))))
                news.append(side.news())
            except InmindError as error:
                told.append((error.code, str(getattr(error, "field", "")), str(error)))
                news.append(side.news())
                assert news[-1] == [], "something of what was refused is there"
        assert told[0] == told[1]
        assert news[0] == news[1]
        return told[0][0], told[0][2]


def shown(answer: object) -> str:
    return answer.id if isinstance(answer, Session) else repr(answer)


def found(side: Side, words: str = "hello something", resource: str = "ada") -> list[str]:
    return [hit.crystal.text for hit in side.memory.resource(resource).search(words)]


@pytest.fixture
def pair(tmp_path: Path, tenant_url: str) -> Generator[Pair]:
    made = Pair(tmp_path / "home", tenant_url)
    yield made
    made.close()


TEXTS = {
    "NUL": "a\0b",
    "half a pair": "a \ud800 b",
    "the other half": "\udfff",
    "a line of 1 MB": "word " * 200_000,
    "a word of 1 MB": "x" * 1_000_000,
    "composed": "caf\u00e9",
    "decomposed": "cafe\u0301",
    "no character": "a\uffffb",
    "the last character": "a\U0010ffff",
    "a control character": "a\x01b\x7f",
    "wildcards": "50%_\\ 'quoted' \"twice\" $1 %s",
    "separators": "a\u2028b\u2029c\x85d",
    "empty": "",
    "space": " ",
}

Say = Callable[[Side, str], object]

SAYING: dict[str, Say] = {
    "note": lambda side, text: side.session.note(text),
    "note for a resource": lambda side, text: side.memory.resource("ada").note(text),
    "note for a resource of this name": lambda side, text: side.memory.resource(text).note("something"),
    "message": lambda side, text: side.session.add([user(text)]),
    "id of a message": lambda side, text: side.session.add([{**user("hello"), "id": text}]),
    "speaker": lambda side, text: side.session.add([{**user("hello"), "name": text}]),
    "key": lambda side, text: side.session.add([user("hello")], key=text),
    "session": lambda side, text: side.memory.session(text, resource="ada", cwd="/w"),
    "resource": lambda side, text: side.memory.session("other", resource=text, cwd="/w"),
    "folder": lambda side, text: side.memory.session("there", resource="ada", cwd=f"/w/{text}"),
    "title": lambda side, text: side.session.rename(text),
    "pad": lambda side, text: side.session.scratchpad.update(text),
    "more on the pad": lambda side, text: side.session.scratchpad.update(text, append=True),
    "page": lambda side, text: side.session.write("overview.md", text),
    "page of a resource": lambda side, text: side.session.write("MEMORY.md", text),
    "name of a page": lambda side, text: side.session.write(f"detail/{text}.md", "hello"),
    "tool": lambda side, text: side.session.observe(text, {}, "done"),
    "argument": lambda side, text: side.session.observe("tool", {"a": text}, "done"),
    "name of an argument": lambda side, text: side.session.observe("tool", {text: 1}, "done"),
    "result": lambda side, text: side.session.observe("tool", {}, {"page": {"id": text, "title": text}}),
    "plain result": lambda side, text: side.session.observe("tool", {}, text),
    "id of a call": lambda side, text: side.session.observe("tool", {}, "done", id=text),
    "entity": lambda side, text: side.session.track([{"id": text, "type": "page", "title": text}]),
    "pin": lambda side, text: side.session.pin(text),
    "event": lambda side, text: side.session.event("decision", text),
    "kind of an event": lambda side, text: side.session.event(text, "hello"),
    "front matter": lambda side, text: side.session.update_front_matter({"goal": text}),
    "kept": lambda side, text: side.session.retain(text),
    "child": lambda side, text: side.session.spawn(text),
    "prepared": lambda side, text: side.session.prepare([user(text)]).request,
    "search": lambda side, text: side.memory.resource("ada").search(text),
    "search of a resource": lambda side, text: side.memory.resource(text).search("hello"),
    "search of a session": lambda side, text: side.session.search(text),
    "known": lambda side, text: side.memory.has_resource(text),
    "sessions of": lambda side, text: [info.id for info in side.memory.sessions(resource=text)],
    "crystal": lambda side, text: side.memory.get(text),
    "page that is read": lambda side, text: side.session.read(text),
}
"""Every way by which a text comes in."""


UNTELLABLE = ("NUL", "half a pair", "the other half")
"""Texts that not everybody can hold."""

KEPT_AS_IT_IS = {"key", "session", "resource", "note", "tool", "id of a call"}
"""What is told apart by such a text would be another one when it is read back."""


@pytest.mark.spec("P34", "J3", "J8")
@pytest.mark.parametrize("text", [name for name in TEXTS if "MB" not in name])
def test_a_text_is_kept_alike_or_refused_alike(pair: Pair, text: str) -> None:
    told = {place: pair.both(lambda side, say=say: say(side, TEXTS[text]))[0] for place, say in SAYING.items()}
    print({place: code or "taken" for place, code in told.items()})
    if text in UNTELLABLE:
        assert not [place for place in KEPT_AS_IT_IS if not told[place]]
    assert pair.both(found)[0] == ""


LONG = (
    *("note", "message", "id of a message", "speaker", "plain result", "page of a resource", "pad", "tool"),
    *("resource", "key", "title", "entity", "search"),
)


@pytest.mark.exhaustive
@pytest.mark.spec("P34", "J3", "J8")
@pytest.mark.parametrize("text", [name for name in TEXTS if "MB" in name])
def test_what_is_long_is_kept_alike_or_refused_alike(pair: Pair, text: str) -> None:
    """Also by the index, which PostgreSQL wants shorter than anybody writes."""
    told = {place: pair.both(lambda side, place=place: SAYING[place](side, TEXTS[text]))[0] for place in LONG}
    print({place: code or "taken" for place, code in told.items()})
    pair.both(lambda side: side.memory.resource("ada").note("something short"))
    assert pair.both(lambda side: found(side, "something short")) == ("", repr(["something short"]))


NUMBERS = {
    "2^63": 2**63,
    "less than -2^63": -(2**63) - 1,
    "2^53 + 1": 2**53 + 1,
    "10^400": 10**400,
    "NaN": math.nan,
    "infinity": -math.inf,
    "the least": 5e-324,
    "the most": 1.7976931348623157e308,
    "minus zero": -0.0,
}

Count = Callable[[Side, Any], object]

COUNTING: dict[str, Count] = {
    "importance": lambda side, number: side.session.note("hello", importance=number),
    "valence": lambda side, number: side.session.note("hello", valence=number),
    "argument": lambda side, number: side.session.observe("tool", {"n": number}, "done"),
    "result": lambda side, number: side.session.observe("tool", {}, {"page": {"id": "p", "n": number}}),
    "message": lambda side, number: side.session.add([{**user("hello"), "n": number}]),
    "usage": lambda side, number: side.session.report_usage(prompt_tokens=number),
    "going back": lambda side, number: side.session.undo(to=number),
    "looking back": lambda side, number: side.session.state_at(number).documents,
    "journal": lambda side, number: len(side.session.events(after=number)),
    "messages taken back": lambda side, number: side.session.remove_last_messages(number),
    "pad": lambda side, number: side.session.scratchpad.update({"n": number}),
    "front matter": lambda side, number: side.session.update_front_matter({"n": number}),
    "entity": lambda side, number: side.session.track([{"id": "p", "type": "page", "attributes": {"n": number}}]),
    "window": lambda side, number: side.memory.session("wide", resource="ada", cwd="/w", window=number),
    "hits": lambda side, number: side.memory.resource("ada").search("hello", limit=number),
    "dream": lambda side, number: side.memory.resource("ada").undo_dream(number),
}
"""Every way by which a number comes in."""


@pytest.mark.spec("P34", "J3", "J8")
@pytest.mark.parametrize("number", NUMBERS)
def test_a_number_is_kept_alike_or_refused_alike(pair: Pair, number: str) -> None:
    told = {place: pair.both(lambda side, say=say: say(side, NUMBERS[number]))[0] for place, say in COUNTING.items()}
    print({place: code or "taken" for place, code in told.items()})
    assert pair.both(found)[0] == ""


@pytest.mark.spec("P34", "J8")
def test_two_names_that_only_look_alike_are_two_on_both(pair: Pair) -> None:
    """Composed and decomposed: neither store takes one for the other, nor finds the one under the other's name."""
    names = (TEXTS["composed"], TEXTS["decomposed"])
    for name in names:
        pair.both(lambda side, name=name: side.memory.resource(name).note(f"written for {len(name)} characters"))
        pair.both(lambda side, name=name: side.memory.session(f"of {name}", resource=name, cwd="/w"))
    for name in names:
        wanted = [f"written for {len(name)} characters"]
        assert pair.both(lambda side, name=name: found(side, "written", name)) == ("", repr(wanted))
        _, ids = pair.both(lambda side, name=name: [info.id for info in side.memory.sessions(resource=name)])
        assert ids == repr([f"of {name}"])

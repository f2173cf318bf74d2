"""Both stores accept or refuse the same texts and numbers; a refused call stores nothing.

Fault P34. PostgreSQL has no NUL in a text and no number above 2^63 in a column, only Python accepts an unpaired
surrogate, and a long text may be too long for an index.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pytest
from builders import user

from inmind import InmindError, Memory, Session
from inmind.core.events import encode_payload
from inmind.testing import ManualClock


class Side:
    """A memory with a session, and the last event read of each stream."""

    def __init__(self, place: Path | str) -> None:
        self.memory = Memory.open(place, clock=ManualClock(), embedder=None)
        self.session = self.memory.session("s", resource="ada", cwd="/w")
        self._seen: dict[str, int] = {}
        self.new_events()

    def new_events(self) -> list[tuple[object, ...]]:
        """Events since the last call."""
        store = self.memory._context.store  # pyright: ignore[reportPrivateUsage] -- all streams
        rows: list[tuple[object, ...]] = []
        for name in store.stream_names(""):
            for event in store.read(name, after=self._seen.get(name, 0)):
                rows.append((name, event.seq, event.origin, event.trust, event.sources, encode_payload(event.payload)))
                self._seen[name] = event.seq
        return rows


class Pair:
    """A memory in a folder and one in PostgreSQL, with the same calls on both."""

    def __init__(self, home: Path, url: str) -> None:
        self.sides = [Side(home), Side(url)]

    def close(self) -> None:
        for side in self.sides:
            side.memory.close()

    def run(self, call: Callable[[Side], object]) -> tuple[str, str]:
        """Return the error code or "", and the text of the result or error, equal on both."""
        outcomes: list[tuple[str, str, str]] = []
        events: list[list[tuple[object, ...]]] = []
        for side in self.sides:
            try:
                outcomes.append(("", "", describe(call(side))))
                side.memory.flush()  # stores the search of a session, which would count for the next call
                events.append(side.new_events())
            except InmindError as error:
                outcomes.append((error.code, str(getattr(error, "field", "")), str(error)))
                events.append(side.new_events())
                assert events[-1] == [], "a refused call has stored events"
        assert outcomes[0] == outcomes[1]
        assert events[0] == events[1]
        return outcomes[0][0], outcomes[0][2]


def describe(answer: object) -> str:
    return answer.id if isinstance(answer, Session) else repr(answer)


def search_texts(side: Side, words: str = "hello something", resource: str = "ada") -> list[str]:
    return [hit.crystal.text for hit in side.memory.resource(resource).search(words)]


@pytest.fixture
def pair(tmp_path: Path, tenant_url: str) -> Generator[Pair]:
    pair = Pair(tmp_path / "home", tenant_url)
    yield pair
    pair.close()


TEXTS = {
    "NUL": "a\0b",
    "a high surrogate": "a \ud800 b",
    "a low surrogate": "\udfff",
    "a line of 1 MB": "word " * 200_000,
    "a word of 1 MB": "x" * 1_000_000,
    "composed": "caf\u00e9",
    "decomposed": "cafe\u0301",
    "a noncharacter": "a\uffffb",
    "the last character": "a\U0010ffff",
    "a control character": "a\x01b\x7f",
    "wildcards": "50%_\\ 'quoted' \"twice\" $1 %s",
    "separators": "a\u2028b\u2029c\x85d",
    "empty": "",
    "space": " ",
}

TextCall = Callable[[Side, str], object]

TEXT_CALLS: dict[str, TextCall] = {
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
    "text appended to the pad": lambda side, text: side.session.scratchpad.update(text, append=True),
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
    "retain": lambda side, text: side.session.retain(text),
    "child": lambda side, text: side.session.spawn(text),
    "prepare": lambda side, text: side.session.prepare([user(text)]).request,
    "search": lambda side, text: side.memory.resource("ada").search(text),
    "search of a resource": lambda side, text: side.memory.resource(text).search("hello"),
    "search of a session": lambda side, text: side.session.search(text),
    "has_resource": lambda side, text: side.memory.has_resource(text),
    "sessions of": lambda side, text: [info.id for info in side.memory.sessions(resource=text)],
    "crystal": lambda side, text: side.memory.get(text),
    "path of a page": lambda side, text: side.session.read(text),
}
"""All calls that take a text."""


UNSTORABLE_TEXTS = ("NUL", "a high surrogate", "a low surrogate")
"""Texts that not every store can hold."""

IDENTIFYING_CALLS = {"key", "session", "resource", "note", "tool", "id of a call"}
"""Calls that must refuse such a text, since it would change when read back."""


@pytest.mark.spec("P34", "J3", "J8")
@pytest.mark.parametrize("text", [name for name in TEXTS if "MB" not in name])
def test_both_stores_keep_or_refuse_a_text(pair: Pair, text: str) -> None:
    codes = {name: pair.run(lambda side, call=call: call(side, TEXTS[text]))[0] for name, call in TEXT_CALLS.items()}
    print({name: code or "taken" for name, code in codes.items()})
    if text in UNSTORABLE_TEXTS:
        assert not [name for name in IDENTIFYING_CALLS if not codes[name]]
    assert pair.run(search_texts)[0] == ""


LONG_TEXT_CALLS = (
    *("note", "message", "id of a message", "speaker", "plain result", "page of a resource", "pad", "tool"),
    *("resource", "key", "title", "entity", "search"),
)


@pytest.mark.exhaustive
@pytest.mark.spec("P34", "J3", "J8")
@pytest.mark.parametrize("text", [name for name in TEXTS if "MB" in name])
def test_both_stores_keep_or_refuse_a_long_text(pair: Pair, text: str) -> None:
    """The index too: PostgreSQL limits the length of its entries."""
    codes = {name: pair.run(lambda side, name=name: TEXT_CALLS[name](side, TEXTS[text]))[0] for name in LONG_TEXT_CALLS}
    print({name: code or "taken" for name, code in codes.items()})
    pair.run(lambda side: side.memory.resource("ada").note("something short"))
    assert pair.run(lambda side: search_texts(side, "something short")) == ("", repr(["something short"]))


NUMBERS = {
    "2^63": 2**63,
    "less than -2^63": -(2**63) - 1,
    "2^53 + 1": 2**53 + 1,
    "10^400": 10**400,
    "NaN": math.nan,
    "infinity": -math.inf,
    "the smallest float": 5e-324,
    "the largest float": 1.7976931348623157e308,
    "minus zero": -0.0,
}

NumberCall = Callable[[Side, Any], object]

NUMBER_CALLS: dict[str, NumberCall] = {
    "importance": lambda side, number: side.session.note("hello", importance=number),
    "valence": lambda side, number: side.session.note("hello", valence=number),
    "argument": lambda side, number: side.session.observe("tool", {"n": number}, "done"),
    "result": lambda side, number: side.session.observe("tool", {}, {"page": {"id": "p", "n": number}}),
    "message": lambda side, number: side.session.add([{**user("hello"), "n": number}]),
    "usage": lambda side, number: side.session.report_usage(prompt_tokens=number),
    "undo": lambda side, number: side.session.undo(to=number),
    "state_at": lambda side, number: side.session.state_at(number).documents,
    "journal": lambda side, number: len(side.session.events(after=number)),
    "removed messages": lambda side, number: side.session.remove_last_messages(number),
    "pad": lambda side, number: side.session.scratchpad.update({"n": number}),
    "front matter": lambda side, number: side.session.update_front_matter({"n": number}),
    "entity": lambda side, number: side.session.track([{"id": "p", "type": "page", "attributes": {"n": number}}]),
    "window": lambda side, number: side.memory.session("wide", resource="ada", cwd="/w", window=number),
    "hits": lambda side, number: side.memory.resource("ada").search("hello", limit=number),
    "dream": lambda side, number: side.memory.resource("ada").undo_dream(number),
}
"""All calls that take a number."""


@pytest.mark.spec("P34", "J3", "J8")
@pytest.mark.parametrize("number", NUMBERS)
def test_both_stores_keep_or_refuse_a_number(pair: Pair, number: str) -> None:
    codes = {
        name: pair.run(lambda side, call=call: call(side, NUMBERS[number]))[0] for name, call in NUMBER_CALLS.items()
    }
    print({name: code or "taken" for name, code in codes.items()})
    assert pair.run(search_texts)[0] == ""


@pytest.mark.spec("P34", "J8")
def test_composed_and_decomposed_names_are_different_in_both_stores(pair: Pair) -> None:
    """Neither store finds data of one name under the other."""
    names = (TEXTS["composed"], TEXTS["decomposed"])
    for name in names:
        pair.run(lambda side, name=name: side.memory.resource(name).note(f"written for {len(name)} characters"))
        pair.run(lambda side, name=name: side.memory.session(f"of {name}", resource=name, cwd="/w"))
    for name in names:
        expected = [f"written for {len(name)} characters"]
        assert pair.run(lambda side, name=name: search_texts(side, "written", name)) == ("", repr(expected))
        _, ids = pair.run(lambda side, name=name: [info.id for info in side.memory.sessions(resource=name)])
        assert ids == repr([f"of {name}"])

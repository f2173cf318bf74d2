"""`python -m bench.resolve DIR`: does the resolver find what people meant, on recorded dialogues?

Nobody annotated these dialogues for us, so the references are derived, and this is how.

Schema-Guided Dialogue (`sgd/`). A search's results enter the window as a tool's result does: the first few as things
in their order, the rest beside the first. A thing's type is what its tool's name says, its name is the offered slot
that tells the results best apart. The system then speaks of one result (its OFFER acts say of which). A user's turn
that wants to act on it (an INFORM_INTENT that is no search), asks about it (REQUEST) or accepts it (SELECT), in words
that point ("that", "the house", "it", the name), refers to the result that this service offered last. Turns without
such words ("Sounds good!", and "That's great.", which praises a state of affairs) are no references and are not
counted. The window alone cannot know which of its results
the assistant spoke of, so this is measured twice: blind, and hearing, with the assistant's last message at hand, as a
session has it. Blind there is no bar: what would have to be known is not there.

SIMMC 2.0 (`simmc2/`). Every turn names the objects it is about. The objects of a system's turn enter the window
together, with the type that the annotation says and, where the sentence has as many descriptions ("a brown, and a
grey and brown") as there are objects, with those as names, in that order. The scenes are not here, so of many objects
nothing but the type is known; a description of such a one cannot be resolved by anybody who has not seen the shop. A
user's turn with objects that were all mentioned before refers to exactly those objects.

Right is all of what was meant and nothing else. The rules and the confidences were fitted to the even dialogues: only
their failures were read. The odd ones were counted along the way, so they are a check and no blind test.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import zstandard

from bench.table import Row, Table
from inmind.core.events.base import Event, EventPayload, Origin, Trust
from inmind.core.events.entities import EntitiesEvicted, EntitiesSeen, EntityPart, EntitySighting
from inmind.entities.config import DEFAULT_MAX_PER_LIST, DEFAULT_WINDOW
from inmind.entities.entity import Entity
from inmind.entities.extract.tool_name import parse_tool_name
from inmind.entities.references.resolve import resolve
from inmind.entities.references.result import Resolution
from inmind.entities.window import Entities

DATA = "INMIND_DATA"
"""The environment variable that says where the dialogues are."""

Answer = Literal["right", "wrong", "asked", "none"]
KINDS = ("name", "ordinal", "plural", "typed", "pronoun")
MOST_WRONG = 0.5
"""Of the wrong answers of always taking the most recent."""

_NOTES = [
    "Derived from Schema-Guided Dialogue and SIMMC 2.0 as the docstring says. The rules were fitted to the even "
    "dialogues. 'Asked' is a question to the user, which is better than a wrong answer."
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A reference: what was in mind, what was said, and what was meant."""

    set: str
    dialogue: int
    text: str
    before: str
    """What the assistant said right before."""
    entities: Entities
    meant: frozenset[str]
    kind: str

    @property
    def half(self) -> str:
        return "odd" if self.dialogue % 2 else "even"


@dataclass(slots=True)
class Tally:
    answers: Counter[Answer] = field(default_factory=Counter[Answer])

    @property
    def total(self) -> int:
        return self.answers.total()

    def share(self, answer: Answer) -> float:
        return self.answers[answer] / self.total if self.total else 0.0

    def __str__(self) -> str:
        shares = ", ".join(f"{self.share(answer):.1%} {answer}" for answer in ("right", "wrong", "asked", "none"))
        return f"{self.total} references: {shares}"


Way = Callable[[Task], tuple[Answer, float]]
"""A way to answer: what came of it, and how sure it was."""


def run(data: Path | None = None) -> list[Table]:
    where = data or Path(os.environ.get(DATA, ""))
    rows = measure(where)
    if not rows:
        return [Table("what references mean", [], [f"no dialogues in {str(where)!r}: say where they are by {DATA}"])]
    return [
        Table("what references mean", rows, _NOTES),
        Table("what confidence means, odd dialogues", calibrate(where)),
    ]


def measure(data: Path) -> list[Row]:
    rows: list[Row] = []
    for name, tasks in _sets(data).items():
        ways = _WAYS_HEARING if name.endswith("hearing") else _WAYS
        for half in ("even", "odd"):
            those = [task for task in tasks if task.half == half]
            tallies = {way: _tally(those, answer) for way, answer in ways.items()}
            resolver, recent = tallies["resolver"], tallies["most recent"]
            for way, tally in tallies.items():
                ours = way == "resolver" and name != "sgd blind"
                rows.append(
                    Row(
                        what=f"{name}, {half} dialogues: {way}",
                        measured=str(tally),
                        bar=f"right above {recent.share('right'):.1%}, at most half as often wrong" if ours else "",
                        met=_beats(resolver, recent) if ours else None,
                        figures={answer: tally.share(answer) for answer in ("right", "wrong", "asked", "none")},
                    )
                )
            for kind in KINDS:
                tally = _tally([task for task in those if task.kind == kind], ways["resolver"])
                if tally.total:
                    rows.append(Row(what=f"    by {kind}", measured=str(tally)))
    return rows


def calibrate(data: Path) -> list[Row]:
    """Of the references in the odd dialogues that were resolved with a confidence, how many were right."""
    by_confidence: dict[float, Tally] = {}
    for name, tasks in _sets(data).items():
        ways = _WAYS_HEARING if name.endswith("hearing") else _WAYS
        for task in tasks:
            answer, confidence = ways["resolver"](task)
            if task.half == "odd" and answer in ("right", "wrong"):
                by_confidence.setdefault(round(confidence, 1), Tally()).answers[answer] += 1
    return [
        Row(what=f"confidence about {confidence:.1f}", measured=f"{tally.share('right'):.0%} right of {tally.total}")
        for confidence, tally in sorted(by_confidence.items())
    ]


def _beats(ours: Tally, other: Tally) -> bool:
    return ours.share("right") > other.share("right") and ours.share("wrong") <= MOST_WRONG * other.share("wrong")


def _tally(tasks: Iterable[Task], way: Way) -> Tally:
    tally = Tally()
    tally.answers.update(way(task)[0] for task in tasks)
    return tally


def _sets(data: Path) -> dict[str, list[Task]]:
    offers, objects = list(_offers(data / "sgd")), list(_objects(data / "simmc2"))
    sets = {"sgd blind": offers, "sgd hearing": offers, "simmc2": objects}
    return {name: tasks for name, tasks in sets.items() if tasks}


# -- ways to answer ---------------------------------------------------------------------------------------------


def _judged(task: Task, answer: Resolution) -> tuple[Answer, float]:
    if answer.verdict == "resolved":
        right = frozenset(entity.id for entity in answer.entities) == task.meant
        return "right" if right else "wrong", answer.confidence
    return "asked" if answer.verdict == "ambiguous" else "none", answer.confidence


def _resolver(task: Task) -> tuple[Answer, float]:
    return _judged(task, resolve(task.text, task.entities))


def _resolver_hearing(task: Task) -> tuple[Answer, float]:
    return _judged(task, resolve(task.text, task.entities, previous_text=task.before))


def _most_recent(task: Task) -> tuple[Answer, float]:
    return _taken(task, [entity for entity in [task.entities.latest()] if entity])


def _last_named(task: Task) -> tuple[Answer, float]:
    """What the assistant named last, else the most recent."""
    places = [(task.before.rfind(entity.name), entity) for entity in task.entities]
    place, named = max(places, key=lambda pair: pair[0])
    return _taken(task, [named]) if place >= 0 else _most_recent(task)


def _all_of_last(task: Task) -> tuple[Answer, float]:
    return _taken(task, [entity for entity in task.entities if entity.source == task.entities[0].source])


def _taken(task: Task, entities: Sequence[Entity]) -> tuple[Answer, float]:
    if not entities:
        return "none", 0.0
    return "right" if frozenset(entity.id for entity in entities) == task.meant else "wrong", 1.0


_WAYS: dict[str, Way] = {"resolver": _resolver, "most recent": _most_recent, "all of the last turn": _all_of_last}
_WAYS_HEARING: dict[str, Way] = {
    "resolver": _resolver_hearing,
    "most recent": _most_recent,
    "last named, else most recent": _last_named,
}


# -- what was in mind -------------------------------------------------------------------------------------------


class _Mind:
    """A window that events come into, as they do in a session."""

    def __init__(self) -> None:
        self.entities = Entities()
        self._seq = 0

    def see(self, things: Sequence[EntitySighting]) -> None:
        if things:
            self._apply(EntitiesSeen(tuple(things)))
            leaving = self.entities.overflow(DEFAULT_WINDOW)
            if leaving:
                self._apply(EntitiesEvicted(tuple(entity.to_sighting() for entity in leaving)))

    def _apply(self, what: EventPayload) -> None:
        self._seq += 1
        at = datetime(2026, 1, 1, tzinfo=UTC)
        event = Event(stream="session/s", seq=self._seq, at=at, payload=what, origin=Origin.TOOL, trust=Trust.DATA)
        self.entities = self.entities.apply(event)


def _listed(type: str, results: Sequence[tuple[str, str]]) -> list[EntitySighting]:
    """Ids and names as the extractor takes in a list: the first few are things, the rest ride with the first."""
    how = "listed" if len(results) > 1 else "seen"
    rest = tuple(EntityPart(type, id, name, True) for id, name in results[DEFAULT_MAX_PER_LIST:])
    return [
        EntitySighting(type, id, name, how=how, parts=rest if place == 0 else ())
        for place, (id, name) in enumerate(results[:DEFAULT_MAX_PER_LIST])
    ]


# -- Schema-Guided Dialogue -------------------------------------------------------------------------------------


def _offers(folder: Path) -> Iterator[Task]:
    for file in sorted(folder.glob("sgd_*.json.zst")):
        for number, dialogue in enumerate(_read(file)):
            yield from _of_dialogue(number, dialogue["turns"])


def _of_dialogue(number: int, turns: Sequence[dict[str, Any]]) -> Iterator[Task]:
    mind = _Mind()
    offered: dict[str, tuple[str, str]] = {}
    """By service, the id and name of the result that was offered last."""
    naming: dict[str, str] = {}
    types: dict[str, str] = {}
    searches: set[str] = set()
    said = ""
    for turn in turns:
        if turn["speaker"] == "SYSTEM":
            said = turn["utterance"]
            for frame in turn["frames"]:
                service, offers = frame["service"], _offered(frame)
                if frame.get("service_results"):
                    results = frame["service_results"]
                    slot = _naming_slot(offers, results) or naming.get(service, "")
                    type = parse_tool_name(frame["service_call"]["method"]).type
                    if slot and slot in results[0]:
                        naming[service] = slot
                        searches.add(frame["service_call"]["method"])
                        types.setdefault(service, type)
                        mind.see(_listed(types[service], [(f"{service}:{r[slot]}", r[slot]) for r in results]))
                name = offers.get(naming.get(service, ""))
                if name:
                    offered[service] = (f"{service}:{name}", name)
            continue
        service = _spoken_of(turn["frames"], searches)
        if service in offered:
            id, name = offered[service]
            kind = _kind_of(turn["utterance"], types[service], [name])
            if kind and mind.entities.holds(id):
                yield Task(
                    set="sgd",
                    dialogue=number,
                    text=turn["utterance"],
                    before=said,
                    entities=mind.entities,
                    meant=frozenset([id]),
                    kind=kind,
                )


def _spoken_of(frames: Sequence[dict[str, Any]], searches: set[str]) -> str:
    """The service whose offer a turn is most about: one that it wants to act on, or asks about, or else accepts."""
    acts = [(frame["service"], action) for frame in frames for action in frame["actions"]]
    for wanted in ("INFORM_INTENT", "REQUEST", "SELECT"):
        for service, action in acts:
            if action["act"] == wanted and not searches.intersection(action["values"]):
                return service
    return ""


def _offered(frame: dict[str, Any]) -> dict[str, str]:
    return {a["slot"]: a["values"][0] for a in frame["actions"] if a["act"] == "OFFER" and a["values"]}


def _naming_slot(offers: dict[str, str], results: Sequence[dict[str, str]]) -> str:
    """The offered slot that tells the results best apart, and holds words."""

    def telling(slot: str) -> tuple[int, int]:
        values = {result.get(slot, "") for result in results}
        return len(values), sum(sum(map(str.isalpha, value)) for value in values)

    wordy = [slot for slot in offers if slot in results[0] and any(map(str.isalpha, results[0][slot]))]
    return max(wordy, key=telling, default="")


# -- SIMMC 2.0 --------------------------------------------------------------------------------------------------


def _objects(folder: Path) -> Iterator[Task]:
    for file in sorted(folder.glob("simmc2_*.json.zst")):
        for number, dialogue in enumerate(_read(file)["dialogue_data"]):
            yield from _of_shopping(number, dialogue["dialogue"])


def _of_shopping(number: int, turns: Sequence[dict[str, Any]]) -> Iterator[Task]:
    mind = _Mind()
    types: dict[str, str] = {}
    names: dict[str, str] = {}
    said = ""
    for turn in turns:
        asked = turn["transcript_annotated"]["act_attributes"]
        meant = frozenset(map(str, asked["objects"]))
        if meant and meant <= types.keys() and all(mind.entities.holds(id) for id in meant):
            known = [names.get(id, "") for id in meant]
            kind = _kind_of(turn["transcript"], "|".join({types[id] for id in meant}), known)
            if kind:
                yield Task(
                    set="simmc2",
                    dialogue=number,
                    text=turn["transcript"],
                    before=said,
                    entities=mind.entities,
                    meant=meant,
                    kind=kind,
                )
        said = turn["system_transcript"]
        answered = turn["system_transcript_annotated"]["act_attributes"]
        ids = [str(id) for id in answered["objects"]]
        type = answered["slot_values"].get("type") or asked["slot_values"].get("type") or ""
        described = _descriptions(said)
        for place, id in enumerate(ids):
            if isinstance(type, str) and type and "," not in type:
                types.setdefault(id, type)
            types.setdefault(id, "item")
            if len(described) == len(ids):
                names.setdefault(id, described[place])
        mind.see(
            [
                EntitySighting(types[id], id, names.get(id, ""), how="listed" if len(ids) > 1 else "seen")
                for id in dict.fromkeys(ids)
            ]
        )


_COLOURS = (
    "red|blue|green|black|white|grey|gray|brown|yellow|pink|purple|violet|orange|maroon|golden|gold|silver|beige|olive"
    "|teal|turquoise|tan|camo|denim|wooden"
)
_DESCRIPTION = re.compile(
    rf"(?:(?:dark|light|bright|pale|solid)[ -])?(?:{_COLOURS})"
    rf"(?:(?:,? and |, |-and-|/)(?:(?:dark|light|bright|pale)[ -])?(?:{_COLOURS})(?! (?:one|and a )))*",
    re.IGNORECASE,
)


def _descriptions(said: str) -> list[str]:
    """The colours that a sentence gives its objects, one description for each."""
    return [match[0].lower() for match in _DESCRIPTION.finditer(said)]


# -- kinds of references ----------------------------------------------------------------------------------------

_ORDINAL = re.compile(r"\b(?:first|second|third|fourth|former|latter|last)(?: one| two| pair)?\b", re.IGNORECASE)
_PLURAL = re.compile(r"\b(?:them|they|these|those|both|their|all (?:of|two|three))\b", re.IGNORECASE)
_POINTS = re.compile(r"\b(?:it|its|it's|this|that|that's|thats|ones?)\b", re.IGNORECASE)
_DEFINITE = r"\b(?:the|this|that|these|those|both|my)(?: [a-z,-]+){0,4}? "
_IDLE = re.compile(
    r"\b(?:that|this|it)(?:'s|s| is| was| will be| would be| should be|'ll be) "
    r"(?:all|it|correct|right|everything)\b[^.?!]*"
    r"|\b(?:that|this) (?:info|information|day|date|time|week|weekend|month|year|morning|evening)\b"
    r"|^\W*(?:(?:ok|okay|yes)\W+)?(?:that|this)(?:['’]?s| is) (?:very |really |so )?"
    r"(?:great|good|fine|perfect|nice|cool|ok|okay)(?:\W+(?:thanks|thank you))?\W*$"
    r"|\bi think that\b|\ball (?:of )?your\b|\b(?:got|do|about|like) it\b|\bone (?:ticket|person|table|room|way)\b"
    r"|\b(?:is|was) it\b(?= (?:possible|ok))|[a-z]+ that (?:has|have|is|are|fits|i|you|we|was|were)\b|\bfor one\b",
    re.IGNORECASE,
)


def _kind_of(text: str, type: str, names: Sequence[str]) -> str:
    """How a turn refers, by its words alone and not by what the resolver reads into them; empty if it does not."""
    text = _IDLE.sub(" ", text)
    folded = text.lower()
    if any(name and name.lower() in folded for name in names):
        return "name"
    if _ORDINAL.search(text) and re.search(r"\bthe (?:first|second|third|fourth|former|latter|last)", folded):
        return "ordinal"
    if _PLURAL.search(text):
        return "plural"
    if re.search(rf"{_DEFINITE}(?:{type.lower() or 'item'}|item|one)s?\b", folded):
        return "typed"
    return "pronoun" if _POINTS.search(text) else ""


def _read(file: Path) -> Any:
    return json.loads(zstandard.ZstdDecompressor().decompress(file.read_bytes(), max_output_size=1 << 30))


def main() -> int:
    given = sys.argv[1] if len(sys.argv) > 1 else os.environ.get(DATA)
    if not given:
        print(f"usage: python -m bench.resolve DIR  (or {DATA}=DIR)", file=sys.stderr)
        return 2
    for table in run(Path(given)):
        print(table, end="\n\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())

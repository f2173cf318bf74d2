"""`python -m bench.resolve DIR`: accuracy of the resolver on recorded dialogues.

The dialogues have no annotated references, so the references are derived as follows.

Schema-Guided Dialogue (`sgd/`). The results of a search enter the window like a tool result: the first few as entities
in their order, the rest as parts of the first. The type of an entity comes from the name of its tool; its name is the
offered slot that best distinguishes the results. The system then talks about one result, named by its OFFER acts. A
user turn that wants to act on it (an INFORM_INTENT that is no search), asks about it (REQUEST) or accepts it (SELECT),
in words that refer ("that", "the house", "it", the name), refers to the result that this service offered last. Turns
without such words ("Sounds good!", "That's great.") are not counted. The window alone cannot know which of its results
the assistant talked about, so this is measured twice: without context, and with the assistant's last message as
context, as in a session. Without context there is no bar, since the necessary information is missing.

SIMMC 2.0 (`simmc2/`). Every turn names its objects. The objects of a system turn enter the window together, with the
annotated type. If the sentence has as many descriptions ("a brown, and a grey and brown") as objects, these are the
names, in that order. The scenes are not available, so only the type of many objects is known; a description of such an
object cannot be resolved. A user turn whose objects were all mentioned before refers to exactly those objects.

An answer is right if it has all expected entities and no others. The rules and the confidences were fitted to the even
dialogues: only their failures were read. The odd ones were counted during that work, so they are a check but not a
blind test.
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
from inmind.core.events.session import EntitiesEvicted, EntitiesSeen, EntityPart, EntitySighting
from inmind.entities.entity import DEFAULT_MAX_PER_LIST, DEFAULT_WINDOW, Entity
from inmind.entities.extract.identity import parse_tool_name
from inmind.entities.references.resolve import resolve
from inmind.entities.references.result import Resolution
from inmind.entities.window import Entities

DATA_VARIABLE = "INMIND_DATA"
"""The environment variable with the folder of the dialogues."""

Answer = Literal["right", "wrong", "asked", "none"]
KINDS = ("name", "ordinal", "plural", "typed", "pronoun")
MAX_WRONG_RATIO = 0.5
"""Relative to the wrong answers of always choosing the most recent entity."""

_NOTES = [
    "Derived from Schema-Guided Dialogue and SIMMC 2.0 as described in bench/resolve.py. The rules were fitted to the "
    "even dialogues. 'Asked' is a question to the user, which is better than a wrong answer."
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A reference: the window, the text, and the expected entities."""

    set: str
    dialogue: int
    text: str
    previous_text: str
    """The assistant's previous message."""
    entities: Entities
    expected: frozenset[str]
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


Strategy = Callable[[Task], tuple[Answer, float]]
"""Returns the answer and its confidence."""


def run(data: Path | None = None) -> list[Table]:
    folder = data or Path(os.environ.get(DATA_VARIABLE, ""))
    rows = measure(folder)
    if not rows:
        return [
            Table("resolved references", [], [f"no dialogues in {str(folder)!r}: set {DATA_VARIABLE} to their folder"])
        ]
    return [
        Table("resolved references", rows, _NOTES),
        Table("calibration of confidence, odd dialogues", calibrate(folder)),
    ]


def measure(data: Path) -> list[Row]:
    rows: list[Row] = []
    for name, tasks in _sets(data).items():
        strategies = _STRATEGIES_WITH_CONTEXT if name.endswith("with context") else _STRATEGIES
        for half in ("even", "odd"):
            selected = [task for task in tasks if task.half == half]
            tallies = {strategy: _tally(selected, answer) for strategy, answer in strategies.items()}
            resolver, recent = tallies["resolver"], tallies["most recent"]
            for strategy, tally in tallies.items():
                ours = strategy == "resolver" and name != "sgd without context"
                rows.append(
                    Row(
                        what=f"{name}, {half} dialogues: {strategy}",
                        measured=str(tally),
                        bar=f"right above {recent.share('right'):.1%}, at most half as often wrong" if ours else "",
                        met=_beats(resolver, recent) if ours else None,
                        figures={answer: tally.share(answer) for answer in ("right", "wrong", "asked", "none")},
                    )
                )
            for kind in KINDS:
                tally = _tally([task for task in selected if task.kind == kind], strategies["resolver"])
                if tally.total:
                    rows.append(Row(what=f"    by {kind}", measured=str(tally)))
    return rows


def calibrate(data: Path) -> list[Row]:
    """Return the share of right answers by confidence, for resolved references.

    Only the odd dialogues count.
    """
    by_confidence: dict[float, Tally] = {}
    for name, tasks in _sets(data).items():
        strategies = _STRATEGIES_WITH_CONTEXT if name.endswith("with context") else _STRATEGIES
        for task in tasks:
            answer, confidence = strategies["resolver"](task)
            if task.half == "odd" and answer in ("right", "wrong"):
                by_confidence.setdefault(round(confidence, 1), Tally()).answers[answer] += 1
    return [
        Row(what=f"confidence about {confidence:.1f}", measured=f"{tally.share('right'):.0%} right of {tally.total}")
        for confidence, tally in sorted(by_confidence.items())
    ]


def _beats(ours: Tally, other: Tally) -> bool:
    return ours.share("right") > other.share("right") and ours.share("wrong") <= MAX_WRONG_RATIO * other.share("wrong")


def _tally(tasks: Iterable[Task], strategy: Strategy) -> Tally:
    tally = Tally()
    tally.answers.update(strategy(task)[0] for task in tasks)
    return tally


def _sets(data: Path) -> dict[str, list[Task]]:
    offers, objects = list(_sgd_tasks(data / "sgd")), list(_simmc_tasks(data / "simmc2"))
    sets = {"sgd without context": offers, "sgd with context": offers, "simmc2": objects}
    return {name: tasks for name, tasks in sets.items() if tasks}


# -- strategies ---------------------------------------------------------------------------------------------


def _judge(task: Task, answer: Resolution) -> tuple[Answer, float]:
    if answer.verdict == "resolved":
        right = frozenset(entity.id for entity in answer.entities) == task.expected
        return "right" if right else "wrong", answer.confidence
    return "asked" if answer.verdict == "ambiguous" else "none", answer.confidence


def _resolver(task: Task) -> tuple[Answer, float]:
    return _judge(task, resolve(task.text, task.entities))


def _resolver_with_context(task: Task) -> tuple[Answer, float]:
    return _judge(task, resolve(task.text, task.entities, previous_text=task.previous_text))


def _most_recent(task: Task) -> tuple[Answer, float]:
    return _judge_entities(task, [entity for entity in [task.entities.latest()] if entity])


def _last_named(task: Task) -> tuple[Answer, float]:
    """Choose the entity that the assistant named last, or the most recent one."""
    places = [(task.previous_text.rfind(entity.name), entity) for entity in task.entities]
    place, named = max(places, key=lambda pair: pair[0])
    return _judge_entities(task, [named]) if place >= 0 else _most_recent(task)


def _all_of_last(task: Task) -> tuple[Answer, float]:
    return _judge_entities(task, [entity for entity in task.entities if entity.source == task.entities[0].source])


def _judge_entities(task: Task, entities: Sequence[Entity]) -> tuple[Answer, float]:
    if not entities:
        return "none", 0.0
    return "right" if frozenset(entity.id for entity in entities) == task.expected else "wrong", 1.0


_STRATEGIES: dict[str, Strategy] = {
    "resolver": _resolver,
    "most recent": _most_recent,
    "all of the last turn": _all_of_last,
}
_STRATEGIES_WITH_CONTEXT: dict[str, Strategy] = {
    "resolver": _resolver_with_context,
    "most recent": _most_recent,
    "last named, else most recent": _last_named,
}


# -- the entity window -------------------------------------------------------------------------------------------


class _EntityWindow:
    """An entity window that is updated by events, as in a session."""

    def __init__(self) -> None:
        self.entities = Entities()
        self._seq = 0

    def add(self, sightings: Sequence[EntitySighting]) -> None:
        if sightings:
            self._apply(EntitiesSeen(tuple(sightings)))
            leaving = self.entities.overflow(DEFAULT_WINDOW)
            if leaving:
                self._apply(EntitiesEvicted(tuple(entity.to_sighting() for entity in leaving)))

    def _apply(self, payload: EventPayload) -> None:
        self._seq += 1
        at = datetime(2026, 1, 1, tzinfo=UTC)
        event = Event(stream="session/s", seq=self._seq, at=at, payload=payload, origin=Origin.TOOL, trust=Trust.DATA)
        self.entities = self.entities.apply(event)


def _list_sightings(type: str, results: Sequence[tuple[str, str]]) -> list[EntitySighting]:
    """Return a list like the extractor: the first few as entities, the rest as parts."""
    how = "listed" if len(results) > 1 else "seen"
    rest = tuple(EntityPart(type, id, name, True) for id, name in results[DEFAULT_MAX_PER_LIST:])
    return [
        EntitySighting(type, id, name, how=how, parts=rest if place == 0 else ())
        for place, (id, name) in enumerate(results[:DEFAULT_MAX_PER_LIST])
    ]


# -- Schema-Guided Dialogue -------------------------------------------------------------------------------------


def _sgd_tasks(folder: Path) -> Iterator[Task]:
    for file in sorted(folder.glob("sgd_*.json.zst")):
        for number, dialogue in enumerate(_read_json(file)):
            yield from _sgd_dialogue_tasks(number, dialogue["turns"])


def _sgd_dialogue_tasks(number: int, turns: Sequence[dict[str, Any]]) -> Iterator[Task]:
    window = _EntityWindow()
    offered: dict[str, tuple[str, str]] = {}
    """By service: the id and name of the last offered result."""
    name_slots: dict[str, str] = {}
    types: dict[str, str] = {}
    searches: set[str] = set()
    system_text = ""
    for turn in turns:
        if turn["speaker"] == "SYSTEM":
            system_text = turn["utterance"]
            for frame in turn["frames"]:
                service, offers = frame["service"], _offered_slots(frame)
                if frame.get("service_results"):
                    results = frame["service_results"]
                    slot = _naming_slot(offers, results) or name_slots.get(service, "")
                    type = parse_tool_name(frame["service_call"]["method"]).type
                    if slot and slot in results[0]:
                        name_slots[service] = slot
                        searches.add(frame["service_call"]["method"])
                        types.setdefault(service, type)
                        window.add(
                            _list_sightings(types[service], [(f"{service}:{r[slot]}", r[slot]) for r in results])
                        )
                name = offers.get(name_slots.get(service, ""))
                if name:
                    offered[service] = (f"{service}:{name}", name)
            continue
        service = _referenced_service(turn["frames"], searches)
        if service in offered:
            id, name = offered[service]
            kind = _reference_kind(turn["utterance"], types[service], [name])
            if kind and window.entities.holds(id):
                yield Task(
                    set="sgd",
                    dialogue=number,
                    text=turn["utterance"],
                    previous_text=system_text,
                    entities=window.entities,
                    expected=frozenset([id]),
                    kind=kind,
                )


def _referenced_service(frames: Sequence[dict[str, Any]], searches: set[str]) -> str:
    """Return the service a turn is about: it acts on its offer, asks about it, or accepts it."""
    acts = [(frame["service"], action) for frame in frames for action in frame["actions"]]
    for act in ("INFORM_INTENT", "REQUEST", "SELECT"):
        for service, action in acts:
            if action["act"] == act and not searches.intersection(action["values"]):
                return service
    return ""


def _offered_slots(frame: dict[str, Any]) -> dict[str, str]:
    return {a["slot"]: a["values"][0] for a in frame["actions"] if a["act"] == "OFFER" and a["values"]}


def _naming_slot(offers: dict[str, str], results: Sequence[dict[str, str]]) -> str:
    """Return the offered slot with words that best distinguishes the results."""

    def distinctness(slot: str) -> tuple[int, int]:
        values = {result.get(slot, "") for result in results}
        return len(values), sum(sum(map(str.isalpha, value)) for value in values)

    candidates = [slot for slot in offers if slot in results[0] and any(map(str.isalpha, results[0][slot]))]
    return max(candidates, key=distinctness, default="")


# -- SIMMC 2.0 --------------------------------------------------------------------------------------------------


def _simmc_tasks(folder: Path) -> Iterator[Task]:
    for file in sorted(folder.glob("simmc2_*.json.zst")):
        for number, dialogue in enumerate(_read_json(file)["dialogue_data"]):
            yield from _simmc_dialogue_tasks(number, dialogue["dialogue"])


def _simmc_dialogue_tasks(number: int, turns: Sequence[dict[str, Any]]) -> Iterator[Task]:
    window = _EntityWindow()
    types: dict[str, str] = {}
    names: dict[str, str] = {}
    system_text = ""
    for turn in turns:
        user_attributes = turn["transcript_annotated"]["act_attributes"]
        expected = frozenset(map(str, user_attributes["objects"]))
        if expected and expected <= types.keys() and all(window.entities.holds(id) for id in expected):
            known = [names.get(id, "") for id in expected]
            kind = _reference_kind(turn["transcript"], "|".join({types[id] for id in expected}), known)
            if kind:
                yield Task(
                    set="simmc2",
                    dialogue=number,
                    text=turn["transcript"],
                    previous_text=system_text,
                    entities=window.entities,
                    expected=expected,
                    kind=kind,
                )
        system_text = turn["system_transcript"]
        system_attributes = turn["system_transcript_annotated"]["act_attributes"]
        ids = [str(id) for id in system_attributes["objects"]]
        type = system_attributes["slot_values"].get("type") or user_attributes["slot_values"].get("type") or ""
        descriptions = _descriptions(system_text)
        for place, id in enumerate(ids):
            if isinstance(type, str) and type and "," not in type:
                types.setdefault(id, type)
            types.setdefault(id, "item")
            if len(descriptions) == len(ids):
                names.setdefault(id, descriptions[place])
        window.add(
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


def _descriptions(text: str) -> list[str]:
    """Return the colour descriptions of the objects in a sentence."""
    return [match[0].lower() for match in _DESCRIPTION.finditer(text)]


# -- kinds of references ----------------------------------------------------------------------------------------

_ORDINAL = re.compile(r"\b(?:first|second|third|fourth|former|latter|last)(?: one| two| pair)?\b", re.IGNORECASE)
_PLURAL = re.compile(r"\b(?:them|they|these|those|both|their|all (?:of|two|three))\b", re.IGNORECASE)
_PRONOUN = re.compile(r"\b(?:it|its|it's|this|that|that's|thats|ones?)\b", re.IGNORECASE)
_DEFINITE = r"\b(?:the|this|that|these|those|both|my)(?: [a-z,-]+){0,4}? "
_NOT_REFERENCES = re.compile(
    r"\b(?:that|this|it)(?:'s|s| is| was| will be| would be| should be|'ll be) "
    r"(?:all|it|correct|right|everything)\b[^.?!]*"
    r"|\b(?:that|this) (?:info|information|day|date|time|week|weekend|month|year|morning|evening)\b"
    r"|^\W*(?:(?:ok|okay|yes)\W+)?(?:that|this)(?:['’]?s| is) (?:very |really |so )?"
    r"(?:great|good|fine|perfect|nice|cool|ok|okay)(?:\W+(?:thanks|thank you))?\W*$"
    r"|\bi think that\b|\ball (?:of )?your\b|\b(?:got|do|about|like) it\b|\bone (?:ticket|person|table|room|way)\b"
    r"|\b(?:is|was) it\b(?= (?:possible|ok))|[a-z]+ that (?:has|have|is|are|fits|i|you|we|was|were)\b|\bfor one\b",
    re.IGNORECASE,
)


def _reference_kind(text: str, type: str, names: Sequence[str]) -> str:
    """Return the kind of reference by the words alone; empty if there is none.

    The resolver's reading of the words is not used.
    """
    text = _NOT_REFERENCES.sub(" ", text)
    folded = text.lower()
    if any(name and name.lower() in folded for name in names):
        return "name"
    if _ORDINAL.search(text) and re.search(r"\bthe (?:first|second|third|fourth|former|latter|last)", folded):
        return "ordinal"
    if _PLURAL.search(text):
        return "plural"
    if re.search(rf"{_DEFINITE}(?:{type.lower() or 'item'}|item|one)s?\b", folded):
        return "typed"
    return "pronoun" if _PRONOUN.search(text) else ""


def _read_json(file: Path) -> Any:
    return json.loads(zstandard.ZstdDecompressor().decompress(file.read_bytes(), max_output_size=1 << 30))


def main() -> int:
    folder = sys.argv[1] if len(sys.argv) > 1 else os.environ.get(DATA_VARIABLE)
    if not folder:
        print(f"usage: python -m bench.resolve DIR  (or {DATA_VARIABLE}=DIR)", file=sys.stderr)
        return 2
    for table in run(Path(folder)):
        print(table, end="\n\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())

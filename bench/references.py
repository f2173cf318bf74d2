"""Ids that agents used, and whether memory had them in the prompt at that moment.

Recorded runs of tool-using agents are added to a session message by message. Right before each call of the agent, every
id among its arguments that was mentioned before must be in the [WORKING MEMORY] block, cut to its budget. This file
decides from the arguments alone what counts as an id: a value under a key that ends in id, number, code or similar, or
a word with letters and digits. Emails and file names are counted separately, since a user may write them for the
first time. The library's definition of an id is not used.

False ids are numbers, dates, times, prices, sizes and telephone numbers that memory extracted as ids although no key in
the dataset marks them as ids.

The recordings are not part of this project: INMIND_DATA names the folder that contains taubench, tau2bench, agentdojo,
tooltalk and bfcl; without it only the speed is measured.
"""

from __future__ import annotations

import ast
import json
import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from statistics import mean, median
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any, cast

from bench.loop import tooltalk_recordings
from bench.table import Row, Table
from inmind import Memory, Session
from inmind.apps.replay.files import read_content
from inmind.apps.replay.readers import read_recordings
from inmind.core.events.session import ToolObserved
from inmind.core.tokens import estimator
from inmind.core.tool_outcome import read_outcome
from inmind.entities.extract.from_result import sightings_from_result
from inmind.entities.render import render_lines
from inmind.layers import EntityLayer
from inmind.types import EntityRules

BARS = {"taubench": 0.95, "tau2bench": 0.95, "agentdojo": 0.90}
SETS = (*BARS, "tooltalk", "bfcl")
BUDGET = EntityLayer().budget.max
MAX_OBSERVE_MILLISECONDS = 1.0
MAX_GROWTH = 1.5

_COUNT = estimator()
_ID_KEY = re.compile(r"(?:^|_|(?<=[a-z]))(?:id|ids|Id|Ids|ID|uuid|key|number|code|iban)_?$")
_NOT_ID_KEY = re.compile(r"token|password|secret|phone|zip|postal|country|area|status|error", re.IGNORECASE)
_ID_SHAPE = re.compile(r"#?(?=\S*\d)(?=\S*[A-Za-z])[\w#-]{5,64}")
_QUANTITY = re.compile(
    r"[$€£]?\d+(?:[.,]\d+)*(?:\s?[a-z%]{1,4})?|\d{4}-\d\d-\d\d\S*|\d{1,2}:\d\d\S*"
    r"|\+?[\d() -]{7,20}|\d{1,4}[/.]\d{1,2}\S*"
)
_HANDLE = re.compile(r"[\w.+-]+@[\w-]+\.[\w.]+|[\w./-]+\.(?:txt|md|pdf|docx?|xlsx?|csv|json|py|png|jpg)")


@dataclass
class Tally:
    """Counts over one dataset."""

    runs: int = 0
    used: int = 0
    in_block: int = 0
    handles: int = 0
    handles_in_block: int = 0
    invented: int = 0
    blocks: list[int] = field(default_factory=list[int])
    extracted: set[str] = field(default_factory=set[str])
    key_ids: set[str] = field(default_factory=set[str])
    """Values under a key that marks an id."""

    @property
    def false(self) -> list[str]:
        return sorted(id for id in self.extracted if _QUANTITY.fullmatch(id) and id not in self.key_ids)


Conversation = Sequence[Mapping[str, Any]]


def run() -> list[Table]:
    folder = os.environ.get("INMIND_DATA", "")
    if not folder:
        note = "Nothing was measured: INMIND_DATA names no folder with recordings."
        return [Table("Ids held at the moment of use", [], [note]), measure_speed()]
    return [measure_sets(Path(folder)), measure_speed()]


def measure_sets(data: Path) -> Table:
    rows: list[Row] = []
    for name in SETS:
        if (data / name).is_dir():
            rows += _rows(name, measure(conversations(data / name)))
    notes = [
        f"Window of {EntityRules().window} entities, block of at most {BUDGET} tokens by the library's estimate.",
        "Held: share of the id arguments, mentioned before by a user or a tool, that are in the block.",
    ]
    return Table("Ids held at the moment of use", rows, notes)


def _rows(name: str, tally: Tally) -> Iterator[Row]:
    bar = BARS.get(name)
    share = tally.in_block / tally.used if tally.used else 1.0
    yield Row(
        what=f"{name}: ids held, {tally.used} in {tally.runs} runs",
        measured=f"{share:.1%}",
        bar=f"at least {bar:.0%}" if bar else "",
        met=share >= bar if bar else None,
        figures={"share": share, "used": tally.used},
    )
    tokens = mean(tally.blocks) if tally.blocks else 0.0
    yield Row(
        what=f"{name}: tokens of the block, mean (largest)",
        measured=f"{tokens:.0f} ({max(tally.blocks, default=0)})",
        bar=f"at most {BUDGET}" if bar else "",
        met=tokens <= BUDGET if bar else None,
        figures={"mean": tokens},
    )
    if tally.handles:
        handles = tally.handles_in_block / tally.handles
        yield Row(what=f"{name}: emails and files held, {tally.handles}", measured=f"{handles:.1%}")
    false = tally.false
    yield Row(
        what=f"{name}: false ids among {len(tally.extracted)} extracted",
        measured=f"{len(false) / len(tally.extracted) if tally.extracted else 0:.2%}",
        figures={"false": len(false), "examples": ", ".join(false[:5])},
    )
    without_key = len(tally.extracted - tally.key_ids) / len(tally.extracted) if tally.extracted else 0.0
    yield Row(what=f"{name}: extracted by shape or name, without a key", measured=f"{without_key:.0%}")
    yield Row(what=f"{name}: ids never mentioned before", measured=str(tally.invented))


def measure(runs: Iterable[Conversation]) -> Tally:
    tally = Tally()
    with TemporaryDirectory() as home, Memory.open(home) as memory:
        for number, messages in enumerate(runs):
            tally.runs += 1
            _replay(memory.session(f"run-{number}", resource=f"run-{number}"), messages, tally)
    return tally


def _replay(session: Session, messages: Conversation, tally: Tally) -> None:
    texts: list[str] = []
    for message in messages:
        calls: list[Any] = message.get("tool_calls") or []
        if calls:
            block = render_lines(session.entities, budget=BUDGET, count=_COUNT).text
            tally.blocks.append(_COUNT(block))
            before = "\n".join(texts)
            for call in calls:
                _count_ids(call["function"]["arguments"], before, block, tally)
        if message["role"] != "assistant":
            texts.append(str(message.get("content")))
            _collect_key_ids(_parse(message.get("content")), tally.key_ids)
        session.add([message])
    tally.extracted.update(id for id, _ in session.entities.ids)


def _count_ids(arguments: str, before: str, block: str, tally: Tally) -> None:
    for id, is_id in dict.fromkeys(_ids(_parse(arguments))):
        if not _occurs_in(id, before):
            tally.invented += is_id
        elif is_id:
            tally.used += 1
            tally.in_block += _occurs_in(id, block)
        else:
            tally.handles += 1
            tally.handles_in_block += _occurs_in(id, block)
    _collect_key_ids(_parse(arguments), tally.key_ids)


def _ids(value: Any, key: str = "") -> Iterator[tuple[str, bool]]:
    """Yield the ids among arguments; False marks an email or a file name."""
    if isinstance(value, dict):
        for name, item in cast(dict[str, Any], value).items():
            yield from _ids(item, name)
    elif isinstance(value, list):
        for item in cast(list[Any], value):
            yield from _ids(item, key)
    elif isinstance(value, str | int) and not isinstance(value, bool) and not _NOT_ID_KEY.search(key):
        text = str(value)
        if _HANDLE.fullmatch(text):
            yield text, False
        elif (_ID_KEY.search(key) and 0 < len(text.strip()) <= 64) or _has_shape(text):
            yield text, True


def _has_shape(text: str) -> bool:
    return _ID_SHAPE.fullmatch(text) is not None and _QUANTITY.fullmatch(text) is None


def _collect_key_ids(value: Any, into: set[str], key: str = "") -> None:
    if isinstance(value, dict):
        for name, item in cast(dict[str, Any], value).items():
            if isinstance(item, dict):
                into.add(name)
            _collect_key_ids(item, into, name)
    elif isinstance(value, list):
        for item in cast(list[Any], value):
            _collect_key_ids(item, into, key)
    elif _ID_KEY.search(key):
        into.add(str(value))


def _parse(text: Any) -> Any:
    if not isinstance(text, str):
        return text
    try:
        return json.loads(text)
    except ValueError:  # YAML, as far as it matters here: every key with its value
        return [{key: value} for key, value in re.findall(r"^[ -]*(\w+): '?([^'\n]+?)'?$", text, re.MULTILINE)]


@cache
def _pattern(id: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![\w#]){re.escape(id)}(?![\w])")


def _occurs_in(id: str, text: str) -> bool:
    return id in text and _pattern(id).search(text) is not None


# -- recordings -------------------------------------------------------------------------------------------


def conversations(folder: Path) -> Iterator[Conversation]:
    """Yield every recorded run of a dataset, as messages of OpenAI chat."""
    for path in sorted(folder.glob("*.json.zst")):
        if folder.name == "tooltalk":
            yield from (recording.messages for recording in tooltalk_recordings(path))
        elif folder.name == "bfcl":
            if "multi_turn" in path.name:
                yield from _bfcl(read_content(str(path)).values[0].value)
        else:
            yield from (recording.messages for recording in read_recordings(str(path)))


def _bfcl(recorded: Any) -> Iterator[Conversation]:
    """User turns with the expected calls. Tool results were not recorded."""
    for item in recorded:
        messages: list[Mapping[str, Any]] = []
        for turn, calls in zip(item["question"], item["ground_truth"], strict=False):
            messages += turn
            for number, text in enumerate(calls):
                name, arguments = _python_call(text)
                messages += _tool_exchange(f"call-{len(messages)}-{number}", name, arguments, "done")
        yield messages


def _python_call(text: str) -> tuple[str, dict[str, Any]]:
    call = ast.parse(text, mode="eval").body
    if not isinstance(call, ast.Call):
        raise ValueError(f"no call: {text}")
    arguments = {keyword.arg or "": ast.literal_eval(keyword.value) for keyword in call.keywords}
    return ast.unparse(call.func), arguments


def _tool_exchange(id: str, name: str, arguments: Any, answer: str) -> list[Mapping[str, Any]]:
    call = {"id": id, "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
    return [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": id, "content": answer},
    ]


# -- speed ------------------------------------------------------------------------------------------------


def measure_speed() -> Table:
    """Time a result of 20 KB in several shapes, and check if a long session gets slower."""
    rows = [_observe_row(name, result) for name, result in _results().items()]
    return Table("Observing a tool result", [*rows, _growth_row()], ["Each with its commit, on the embedded store."])


def _results() -> dict[str, Any]:
    orders = [
        {
            "order_id": f"#W{1_000_000 + n}",
            "user_id": "mei_kovacs_8020",
            "status": "delivered",
            "items": [
                {
                    "name": "Desk Lamp",
                    "item_id": str(8_384_507_844 + 7 * n + i),
                    "price": 137.94,
                    "options": {"size": "M"},
                }
                for i in range(4)
            ],
            "payment_history": [{"payment_method_id": "paypal_7644869", "amount": 120.5}],
        }
        for n in range(34)
    ]
    lines = [
        {"item_id": str(10**9 + n), "name": f"line {n}", "note": "as it was agreed on the telephone", "price": 1.5}
        for n in range(160)
    ]
    rows = [
        {"day": f"2024-05-{n % 28 + 1:02}", "visits": n * 3, "text": "nothing that has an id " * 3} for n in range(170)
    ]
    return {
        "a list of orders": {"orders": orders},
        "the same as JSON in a string": json.dumps({"orders": orders}),
        "one order with 160 lines": {"order_id": "#W1000000", "lines": lines},
        "170 rows without ids": {"rows": rows},
        "logs, as text": "\n".join(
            f"2024-05-01T10:00:{n % 60:02} INFO worker-{n % 8} request req-{n:06x} GET /items/{n * 7} 200 {n} ms"
            for n in range(260)
        ),
        "a list as YAML": "".join(
            f"- id: 'o-{n:05}'\n  subject: As it was agreed\n  sender: ada@example.com\n  amount: {n}.5\n"
            for n in range(260)
        ),
        "a page of prose": "As it was agreed on the telephone, nothing in this text has an id. " * 300,
    }


def _observe_row(name: str, result: Any, rounds: int = 200) -> Row:
    size = len(result if isinstance(result, str) else json.dumps(result))
    with TemporaryDirectory() as home, Memory.open(home) as memory:
        session = memory.session("speed")
        observe_seconds = median(_time_call(lambda: session.observe("list_orders", {}, result)) for _ in range(rounds))
    outcome = ToolObserved("list_orders", {}, result)
    extraction_seconds = median(_time_call(lambda: sightings_from_result(read_outcome(outcome))) for _ in range(rounds))
    return Row(
        what=f"observe, {name} ({size / 1000:.0f} KB)",
        measured=f"{observe_seconds * 1e3:.2f} ms, extraction {extraction_seconds * 1e3:.2f} ms",
        bar=f"at most {MAX_OBSERVE_MILLISECONDS:.0f} ms",
        met=observe_seconds * 1e3 <= MAX_OBSERVE_MILLISECONDS,
        figures={"milliseconds": observe_seconds * 1e3, "extraction": extraction_seconds * 1e3},
    )


def _growth_row(rounds: int = 100) -> Row:
    """Compare the same work at the beginning of a session and after 20,000 ids."""
    with TemporaryDirectory() as home, Memory.open(home) as memory:
        session = memory.session("growth")
        early = median(_time_call(lambda n=n: _observe_page(session, n)) for n in range(rounds))
        for n in range(200):
            parts = [{"item_id": f"item-{n:03}{i:03}"} for i in range(100)]
            session.observe("get_order", {}, {"order_id": f"#W{n:07}", "items": parts})
        late = median(_time_call(lambda n=n: _observe_page(session, n)) for n in range(rounds, 2 * rounds))
    return Row(
        what="observe after 20,000 ids, against the beginning",
        measured=f"{late / early:.2f}x",
        bar=f"at most {MAX_GROWTH}x",
        met=late / early <= MAX_GROWTH,
        figures={"ratio": late / early},
    )


def _observe_page(session: Session, n: int) -> None:
    session.observe("create_page", {"title": f"Page {n}"}, {"page": {"id": f"page-{n:05}", "title": f"Page {n}"}})


def _time_call(work: Any) -> float:
    started = perf_counter()
    work()
    return perf_counter() - started


if __name__ == "__main__":
    os.environ.setdefault("INMIND_DATA", sys.argv[1] if len(sys.argv) > 1 else "")
    for table in run():
        print(table, end="\n\n")

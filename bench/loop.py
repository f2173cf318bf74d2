"""Does a model find the right id? Probes from recorded runs, and what can be said of them without a model.

A probe stands right before a recorded tool call with an id that was mentioned earlier. The prompt at this place is
written out under several conditions, followed by the call up to the id, which a model has to complete:

    full     the whole history
    bare     the newest messages that fit in as many characters as `memory` has
    memory   what prepare() sends in this window
    tools    the same with the memory tool offered

Without a model two numbers are a guide: how often the id stands in the prompt, and how often beside its key. A model
decides: INMIND_LOOP names a folder into which the probes are written, one JSON object a line, with the text of each
condition and the id as `gold`; a reader that completes each text greedily is right if it writes that id.

The recordings are not part of this project: INMIND_DATA names the folder that contains taubench, tau2bench, agentdojo
and tooltalk. Runs of the last two are short, so several are joined.
"""

from __future__ import annotations

import gzip
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

from bench.table import Row, Table
from bench.tokenizers import counter
from inmind import Memory
from inmind.apps.replay import Recording, join_recordings, read_recordings
from inmind.apps.replay.files import read_content
from inmind.core.json import is_list, is_object

RETAIL_AND_AIRLINE = ("taubench", "tau2bench")
OFFICE_AND_BANK = ("agentdojo", "tooltalk")
RUNS_PER_FILE = 40
MAX_PROBES = 500
RESERVE = 300
LARGE_WINDOW = 128_000

MIN_BESIDE_KEY = 0.85
MAX_TOKEN_RATIO = 1.05

CONDITIONS = ("full", "bare", "memory", "tools")
_CHARACTERS_PER_TOKEN = 3.6
"""Characters of a run that outgrows a window, for each of its tokens."""
_MIN_CHARACTERS_PER_TOKEN = 2.4
"""Characters of the history at a probe, for each token of the window: less fits easily."""
_ID_KEY = re.compile(r"(^|_)(id|ids|number|code|email|username|recipient|sender|receiver)$|Id$|ID$")

Message = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Probe:
    """A place in a run where the agent used an id."""

    set: str
    file: str
    run: int
    at: int
    key: str
    gold: str
    texts: Mapping[str, str]
    """The prompt of each condition, without the call."""
    call: str
    """The call up to the id."""

    @property
    def as_json(self) -> dict[str, Any]:
        texts = {condition: text + self.call for condition, text in self.texts.items()}
        about = {"set": self.set, "file": self.file, "run": self.run, "at": self.at, "key": self.key, "gold": self.gold}
        return {**about, "in_bare": self.is_in("bare"), **texts}

    def is_in(self, condition: str) -> bool:
        return self.gold in self.texts[condition]

    def is_beside_key(self, condition: str) -> bool:
        """True if the id follows its key, or the noun of its key, somewhere in the prompt."""
        text, noun = self.texts[condition], re.sub(r"_?(id|ids|number|code)$", "", self.key) or self.key
        before = re.compile(rf"({re.escape(self.key)}|{re.escape(noun)})\W{{1,6}}$")
        return any(
            before.search(text[max(0, match.start() - 40) : match.start()].rstrip("#"))
            for match in re.finditer(re.escape(self.gold), text)
        )


def run() -> list[Table]:
    folder = os.environ.get("INMIND_DATA", "")
    if not folder:
        return [Table("ids in the loop", [], ["INMIND_DATA names no folder with recordings."])]
    return [
        _table(Path(folder), window=4_000, joined=1),
        _table(Path(folder), window=8_000, joined=3),
        _table(Path(folder), window=LARGE_WINDOW, joined=1, outgrown=4_000),
        _table(Path(folder), OFFICE_AND_BANK, window=2_000, joined=4),
    ]


def _table(
    data: Path,
    sets: Sequence[str] = RETAIL_AND_AIRLINE,
    *,
    window: int,
    joined: int,
    outgrown: int | None = None,
) -> Table:
    probes = list(_probes(data, sets, window=window, joined=joined, outgrown=outgrown or window))
    Random(7).shuffle(probes)
    if out := os.environ.get("INMIND_LOOP", ""):
        _write(Path(out) / f"loop-{'-'.join(sets)}-{window}.gz", probes[:MAX_PROBES])
    rows = [_row(condition, probes, compare=outgrown is None) for condition in CONDITIONS]
    what = "runs of one file joined" if joined > 1 else "single runs"
    return Table(
        f"ids in the loop, {' and '.join(sets)}, window {window:,}: {len(probes)} probes, {what}",
        rows,
        (
            "Present: the id stands in the prompt. Beside its key: it follows its key; in brackets as a share of full "
            "history. Tokens: mean, each digit counted as one, as many tokenizers do.",
        ),
    )


def _row(condition: str, probes: Sequence[Probe], *, compare: bool) -> Row:
    total = len(probes) or 1
    present = sum(probe.is_in(condition) for probe in probes) / total
    beside = {one: sum(probe.is_beside_key(one) for probe in probes) / total for one in (condition, "full")}
    tokens = {
        one: sum(_count(probe.texts[one]) for probe in probes[:100]) / min(100, total) for one in (condition, "bare")
    }
    share, ratio = beside[condition] / max(beside["full"], 1e-9), tokens[condition] / max(tokens["bare"], 1e-9)
    has_bar = compare and condition in ("memory", "tools")
    return Row(
        what=condition,
        measured=f"present {present:.3f}, beside its key {beside[condition]:.3f} ({share:.2f}), "
        f"{tokens[condition]:,.0f} tokens ({ratio:.2f}x bare)",
        bar=f">= {MIN_BESIDE_KEY:g} of full, <= {MAX_TOKEN_RATIO:g}x" if has_bar else "",
        met=share >= MIN_BESIDE_KEY and ratio <= MAX_TOKEN_RATIO if has_bar else None,
        figures={"present": present, "beside": beside[condition], "tokens": tokens[condition], "ratio": ratio},
    )


def _probes(data: Path, sets: Sequence[str], *, window: int, joined: int, outgrown: int) -> Iterator[Probe]:
    for name in sets:
        for path in sorted((data / name).glob("*.json.zst")) if (data / name).is_dir() else ():
            file = path.name.partition(".")[0]
            for number, recording in enumerate(_runs(path, file, joined, outgrown)):
                yield from _probes_of(recording, window, outgrown, about=(name, file, number))


def _runs(path: Path, file: str, joined: int, outgrown: int) -> list[Recording]:
    """Runs that outgrow the window, or several of them as one."""
    recordings = tooltalk_recordings(path) if path.parent.name == "tooltalk" else list(read_recordings(str(path)))
    if joined > 1:
        groups = [recordings[start : start + joined] for start in range(0, len(recordings) - joined + 1, joined)]
        recordings = [join_recordings(group, name=f"{file} {number}") for number, group in enumerate(groups)]
    long = [one for one in recordings if len(_text(_messages(one))) > outgrown * _CHARACTERS_PER_TOKEN]
    Random(file).shuffle(long)
    return long[: RUNS_PER_FILE // joined]


def tooltalk_recordings(path: Path) -> list[Recording]:
    """Dialogues of ToolTalk: each turn has the calls before its text."""
    [content] = read_content(str(path)).values
    return [_dialogue(one["name"], one["conversation"]) for one in content.value["dialogues"]]


def _dialogue(name: str, turns: Sequence[Mapping[str, Any]]) -> Recording:
    messages: list[Message] = []
    for turn in turns:
        for api in turn.get("apis", ()):
            request, id = api["request"], f"call_{len(messages)}"
            function = {"name": request["api_name"], "arguments": json.dumps(request["parameters"])}
            call = {"id": id, "type": "function", "function": function}
            messages.append({"role": "assistant", "content": "", "tool_calls": [call]})
            answer = json.dumps(api["response"] if api["exception"] is None else {"error": api["exception"]})
            messages.append({"role": "tool", "tool_call_id": id, "content": answer})
        messages.append({"role": turn["role"], "content": turn["text"]})
    return Recording(name=name, format="openai", messages=messages)


def _probes_of(recording: Recording, window: int, outgrown: int, about: tuple[str, str, int]) -> Iterator[Probe]:
    messages = _messages(recording)
    with TemporaryDirectory() as home, Memory.open(home, embedder=None) as memory:
        sessions = {
            condition: memory.session(
                condition, resource=condition, window=window, reserve=RESERVE, memory_tools=condition == "tools"
            )
            for condition in ("memory", "tools")
        }
        seen = ""
        for at, message in enumerate(messages):
            if message["role"] == "assistant":
                prompts = {name: one.prepare([dict(m) for m in messages[:at]]) for name, one in sessions.items()}
                used = _id_argument(message, seen)
                full = _text(messages[:at])
                if used is not None and len(full) > outgrown * _MIN_CHARACTERS_PER_TOKEN:
                    tool, arguments, key = used
                    sent = {name: _text(prompt.messages) for name, prompt in prompts.items()}
                    bare = _text(_newest(messages[:at], len(sent["memory"])))
                    texts = {"full": full, "bare": bare, **sent}
                    call = _call_up_to(tool, arguments, key)
                    yield Probe(*about, at=at, key=key, gold=arguments[key], texts=texts, call=call)
            seen += "\n" + json.dumps(message)


def _id_argument(message: Message, seen: str) -> tuple[str, dict[str, Any], str] | None:
    """The first call with an id that was mentioned before: tool, arguments, and the key of the id."""
    for call in message.get("tool_calls") or ():
        try:
            arguments = json.loads(call["function"]["arguments"])
        except ValueError:
            continue
        for key, value in arguments.items() if is_object(arguments) else ():
            is_id = isinstance(value, str) and len(value) > 2 and value[0] != "#" and _ID_KEY.search(key)
            if is_id and value in seen:
                return call["function"]["name"], arguments, key
    return None


def _call_up_to(tool: str, arguments: dict[str, Any], key: str) -> str:
    before = {name: arguments[name] for name in list(arguments)[: list(arguments).index(key)]}
    head = json.dumps({"name": tool, "arguments": before})[:-2].rstrip("}") + (", " if before else "")
    return f'<|im_start|>assistant\n<tool_call>\n{head}"{key}": "'


def _newest(messages: Sequence[Message], room: int) -> list[Message]:
    """The system prompt and the newest messages within a number of characters."""
    head = [message for message in messages[:1] if message["role"] == "system"]
    kept: list[Message] = []
    used = len(_text(head))
    for message in reversed(messages[len(head) :]):
        used += len(_text([message]))
        if used > room and kept:
            break
        kept.append(message)
    kept.reverse()
    while kept and kept[0]["role"] == "tool":
        kept.pop(0)
    return [*head, *kept]


def _messages(recording: Recording) -> list[Message]:
    system = recording.system or []
    head = [{"role": "system", "content": system}] if isinstance(system, str) else system
    return [*head, *recording.messages]


def _text(messages: Iterable[Message]) -> str:
    """The messages in the notation of the template that most open models were trained on."""
    return "".join(map(_message_text, messages))


def _message_text(message: Message) -> str:
    content = message.get("content")
    if is_list(content):
        content = "\n".join(part.get("text", "") for part in content)
    content = content or ""
    if message["role"] == "tool":
        return f"<|im_start|>user\n<tool_response>\n{content}\n</tool_response><|im_end|>\n"
    for call in message.get("tool_calls") or ():
        name, arguments = call["function"]["name"], call["function"]["arguments"]
        content += f'\n<tool_call>\n{{"name": "{name}", "arguments": {arguments}}}\n</tool_call>'
    role = "system" if message["role"] in ("system", "developer") else message["role"]
    return f"<|im_start|>{role}\n{content.strip()}<|im_end|>\n"


def _count(text: str) -> int:
    return sum(map(str.isdigit, text)) + counter()(re.sub(r"\d+", "", text))


def _write(path: Path, probes: Sequence[Probe]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with gzip.open(path, "wt") as file:
        file.writelines(json.dumps(probe.as_json) + "\n" for probe in probes)

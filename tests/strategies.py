"""Hypothesis strategies: messages of each format, and conversations of mixed formats.

Ids and words come from small pools: pairing has to handle collisions (an id used twice, a result without a call, a
late result), which are rare with large pools.
"""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from inmind.core.events.session import EntityPart, EntitySighting
from inmind.core.messages import FORMATS
from inmind.core.messages.model import ParsedMessage

Wires = st.SearchStrategy[dict[str, Any]]

WORDS = st.sampled_from(["hello", "Add a hero section", "关于我们", "Error: not found", "a\n\nb", "</page>", "", "  "])
IDS = st.sampled_from(["call_1", "call_2", "call_3", "functions.get:0", "功能"])
NAMES = st.sampled_from(["get_page", "run_sql"])
# Calls without ids have other tool names: no host mixes both forms for one tool in one conversation.
LEGACY_NAMES = st.sampled_from(["old_lookup", "old_write"])
ARGUMENTS = st.sampled_from(['{"id": "page-1"}', "{}", "", '{"a":', "[1]", '{"n": NaN}', '"\\ud800"'])
OBJECTS = st.sampled_from([{}, {"id": "page-1"}, {"_raw": "{}"}, {"_raw": "no json"}, {"deep": {"list": [1, None]}}])
URLS = st.sampled_from(["https://example.com/a.png", "data:image/png;base64,iVBORw0=", "data:image/svg+xml,<svg/>"])


def wire(**fields: Any) -> Wires:
    """An object with some fields drawn and the others fixed."""
    drawn: dict[str, st.SearchStrategy[Any]] = {
        name: field if isinstance(field, st.SearchStrategy) else st.just(field) for name, field in fields.items()
    }
    return st.fixed_dictionaries(drawn)


def several(parts: Wires, at_least: int = 0) -> st.SearchStrategy[list[dict[str, Any]]]:
    return st.lists(parts, min_size=at_least, max_size=3)


def chat_wires() -> Wires:
    text = wire(type="text", text=WORDS)
    image = wire(type="image_url", image_url=wire(url=URLS))
    audio = wire(type="input_audio", input_audio={"data": "UklGRg==", "format": "wav"})
    function = wire(id=IDS, type="function", function=wire(name=NAMES, arguments=ARGUMENTS))
    custom = wire(id=IDS, type="custom", custom=wire(name=NAMES, input=WORDS))
    calls = several(st.one_of(function, function, custom), at_least=1)
    return st.one_of(
        wire(role="user", content=WORDS),
        wire(role="user", content=several(st.one_of(text, image, audio), at_least=1)),
        wire(role=st.sampled_from(["system", "developer"]), content=WORDS),
        wire(role="assistant", content=WORDS),
        wire(role="assistant", content=st.one_of(st.none(), WORDS), tool_calls=calls),
        wire(role="assistant", content=None, tool_calls=calls, reasoning_content=WORDS),
        wire(role="assistant", content=None, refusal="No."),
        wire(role="assistant", content=several(text, at_least=1), tool_calls=calls),
        wire(role="assistant", content=None, function_call=wire(name=LEGACY_NAMES, arguments=ARGUMENTS)),
        wire(role="tool", tool_call_id=IDS, content=st.one_of(WORDS, several(text, at_least=1))),
        wire(role="tool", tool_call_id=IDS, content=WORDS),
        wire(role="function", name=LEGACY_NAMES, content=WORDS),
    )


def responses_wires() -> Wires:
    text = wire(type="input_text", text=WORDS)
    image = wire(type="input_image", image_url=URLS, detail="auto")
    file = wire(type="input_file", file_id="file-1")
    output_text = wire(type="output_text", text=WORDS, annotations=[])
    return st.one_of(
        wire(role=st.sampled_from(["user", "assistant", "developer", "system"]), content=WORDS),
        wire(type="message", role="user", content=several(st.one_of(text, image, file))),
        wire(type="message", role="assistant", id="msg_1", status="completed", content=several(output_text)),
        wire(type="message", role="assistant", content=several(wire(type="refusal", refusal="No."), at_least=1)),
        wire(type="reasoning", id="rs_1", summary=[], encrypted_content="gAAA"),
        wire(type="function_call", id="fc_1", call_id=IDS, name=NAMES, arguments=ARGUMENTS),
        wire(type="function_call", call_id=IDS, name=NAMES, arguments=ARGUMENTS),
        wire(type="function_call_output", call_id=IDS, output=WORDS),
        wire(type="function_call_output", call_id=IDS, output=several(st.one_of(text, image, file))),
        wire(type="custom_tool_call", call_id=IDS.map("custom-{}".format), name=NAMES, input=WORDS),
        wire(type="custom_tool_call_output", call_id=IDS.map("custom-{}".format), output=WORDS),
        wire(type="computer_call", id="cu_1", call_id=IDS, action={"type": "screenshot"}),
        wire(type="computer_call_output", call_id=IDS, output={"type": "computer_screenshot"}),
        wire(type="web_search_call", id="ws_1", status="completed"),
        wire(type="compaction", id="cmp_1", encrypted_content="gAAA"),
    )


def anthropic_wires() -> Wires:
    text = wire(type="text", text=WORDS)
    source = wire(type="base64", media_type="image/png", data="iVBORw0=")
    image = wire(type="image", source=st.one_of(source, wire(type="url", url=URLS), wire(type="file", file_id="f")))
    document = wire(type="document", source={"type": "text", "data": "notes", "media_type": "text/plain"})
    thinking = wire(type="thinking", thinking="Hm.", signature="Eqo=")
    compaction = wire(type="compaction", content=st.sampled_from([None, "They talked."]), encrypted_content="gAAA")
    call = wire(type="tool_use", id=IDS, name=NAMES, input=OBJECTS)
    inner = several(st.one_of(text, image, document))
    result = st.one_of(
        wire(type="tool_result", tool_use_id=IDS, content=st.one_of(WORDS, inner)),
        wire(type="tool_result", tool_use_id=IDS, content=WORDS, is_error=st.booleans()),
        wire(type="tool_result", tool_use_id=IDS),
    )
    return st.one_of(
        wire(role=st.sampled_from(["user", "assistant"]), content=WORDS),
        wire(role="user", content=several(st.one_of(text, image, document, result))),
        wire(role="user", content=several(result, at_least=1)),
        wire(role="assistant", content=several(st.one_of(text, thinking, call, compaction))),
        wire(role="assistant", content=several(call, at_least=1)),
    )


WIRES: dict[str, Wires] = {"openai": chat_wires(), "responses": responses_wires(), "anthropic": anthropic_wires()}


@st.composite
def parsed_messages(draw: st.DrawFn, formats: tuple[str, ...] = tuple(FORMATS)) -> ParsedMessage:
    name = draw(st.sampled_from(formats))
    drawn = draw(WIRES[name])
    return ParsedMessage(name, drawn, FORMATS[name].read(drawn))


def conversations(*formats: str) -> st.SearchStrategy[list[ParsedMessage]]:
    """Messages in any order. Providers would refuse most of these."""
    return st.lists(parsed_messages(formats or tuple(FORMATS)), max_size=12)


@st.composite
def well_formed(draw: st.DrawFn, name: str) -> list[dict[str, Any]]:
    """A conversation that its provider accepts: user first, one id and one result per call."""
    wires: list[dict[str, Any]] = []
    for turn in range(draw(st.integers(1, 4))):
        wires.append({"role": "user", "content": f"turn {turn}"})
        ids = [f"turn-{turn}-{number}" for number in range(draw(st.integers(0, 3)))]
        wires += _exchange(name, ids, draw(st.permutations(ids)))
        if draw(st.booleans()):
            wires.append({"role": "assistant", "content": "Done."})
    return wires


def _exchange(name: str, ids: list[str], answered: list[str]) -> list[dict[str, Any]]:
    if not ids:
        return []
    if name == "openai":
        function = {"name": "get_page", "arguments": "{}"}
        calls = [{"id": id, "type": "function", "function": function} for id in ids]
        results = [{"role": "tool", "tool_call_id": id, "content": "ok"} for id in answered]
        return [{"role": "assistant", "content": None, "tool_calls": calls, "name": "helper"}, *results]
    if name == "responses":
        calls = [{"type": "function_call", "call_id": id, "name": "get_page", "arguments": "{}"} for id in ids]
        results = [{"type": "function_call_output", "call_id": id, "output": "ok"} for id in answered]
        return [{"role": "assistant", "content": "One moment."}, *calls, *results]
    calls = [{"type": "tool_use", "id": id, "name": "get_page", "input": {"id": 1}} for id in ids]
    blocks = [{"type": "tool_result", "tool_use_id": id, "content": "ok"} for id in answered]
    blocks.append({"type": "text", "text": "go on"})
    return [{"role": "assistant", "content": calls}, {"role": "user", "content": blocks}]


def json_values() -> st.SearchStrategy[Any]:
    scalars = st.one_of(
        st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.text()
    )
    return st.recursive(scalars, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=10)


def any_entity_sightings() -> st.SearchStrategy[EntitySighting]:
    """Sightings with any text in every field; a store has to return them unchanged."""
    part = st.builds(EntityPart, st.text(), st.text(), st.text(), st.booleans())
    return st.builds(
        EntitySighting,
        type=st.text(),
        id=st.text(),
        name=st.text(),
        how=st.sampled_from(["seen", "listed", "used", "deleted"]),
        action=st.text(),
        parent=st.none() | st.tuples(st.text(), st.text()),
        parts=st.lists(part, max_size=3).map(tuple),
        aliases=st.lists(st.text(), max_size=3).map(tuple),
        pinned=st.booleans(),
    )


def entity_sightings() -> st.SearchStrategy[EntitySighting]:
    """Sightings of a few entities: renamed, deleted, seen again, one a part of another."""
    ids = st.sampled_from(["page-1", "page-2", "7", "W#1", "图-1"])
    types = st.sampled_from(["page", "media", "image", "order", "reference"])
    names = st.sampled_from(["", "About Us", "Home", 'A "quoted" one', "关于我们"])
    return st.builds(
        EntitySighting,
        type=types,
        id=ids,
        name=names,
        how=st.sampled_from(["seen", "seen", "listed", "used", "deleted"]),
        action=st.sampled_from(["", "get", "create"]),
        parent=st.none() | st.tuples(types, ids),
        parts=st.lists(st.builds(EntityPart, types, ids, names, st.booleans()), max_size=3).map(tuple),
    )


def entity_records() -> st.SearchStrategy[dict[str, Any]]:
    """Records of one thing with ids of its parts, nested in the ways of real tools."""
    id = st.integers(10**9, 10**10 - 1).map(str)
    options: st.SearchStrategy[Any] = st.fixed_dictionaries({"color": st.sampled_from(["blue", "red"])})
    part: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
        {"name": st.sampled_from(["Laptop", "T-Shirt", "Desk, Lamp", 'A "b"']), "item_id": id},
        optional={"product_id": id, "options": options},
    )
    return st.fixed_dictionaries(
        {"status": st.sampled_from(["pending", "delivered"]), "items": st.lists(part, min_size=1, max_size=4)},
        optional={"user_id": id, "order_ids": st.lists(id, min_size=1, max_size=3)},
    )


def ids_in(value: object) -> set[str]:
    """All texts of digits in a nested value."""
    if isinstance(value, dict):
        return set[str]().union(*map(ids_in, value.values()))  # pyright: ignore[reportUnknownArgumentType]
    if isinstance(value, list):
        return set[str]().union(*map(ids_in, value))  # pyright: ignore[reportUnknownArgumentType]
    return {value} if isinstance(value, str) and value.isdigit() else set()

"""The visible reply: complete, without delay, and a valid stream of its client."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from provider import ScriptedCall, ScriptedReply, a_tool_call, chunks, complete_reply, reply_with

from inmind.core.messages import FORMATS, read_reply
from inmind.core.messages.model import Call, Text
from inmind.integrations.wrap.visible import (
    AnthropicVisibleReply,
    OpenAIVisibleReply,
    ResponsesVisibleReply,
    VisibleReply,
    add_usage,
)

Json = dict[str, Any]

FORMAT = pytest.mark.parametrize("format", ["openai", "responses", "anthropic"])
NOTE = a_tool_call("memory_write", {"path": "detail/a", "text": "b"})
LOOK = a_tool_call("memory_read", {"path": "detail/a"})
PAGE = a_tool_call("get_page", {"id": "page-1"})


def is_hidden(name: str) -> bool:
    return name.startswith("memory_")


def visible_reply(format: str) -> VisibleReply:
    kinds = {"openai": OpenAIVisibleReply, "responses": ResponsesVisibleReply, "anthropic": AnthropicVisibleReply}
    return kinds[format](is_hidden)


def visible_stream(format: str, rounds: Sequence[ScriptedReply], **body: Any) -> list[Json]:
    """The visible stream of these rounds."""
    stage, seen = visible_reply(format), list[Json]()
    for number, reply in enumerate(rounds, start=1):
        if number > 1:
            stage.next_round()
        for chunk in chunks(format, reply, number=number, **body):
            before = copy.deepcopy(chunk)
            seen += stage.add_chunk(chunk)
            assert chunk == before
    return seen + stage.end()


def visible_complete(format: str, rounds: Sequence[ScriptedReply], **body: Any) -> Json:
    """The visible reply of these rounds without streaming."""
    stage, reply = visible_reply(format), Json()
    for number, reply_source in enumerate(rounds, start=1):
        if number > 1:
            stage.next_round()
        provider_reply = complete_reply(format, reply_source, number=number, **body)
        before = copy.deepcopy(provider_reply)
        reply = stage.complete_reply(provider_reply)
        assert provider_reply == before
    return reply


def texts_and_calls(format: str, seen: Sequence[Json]) -> tuple[list[str], list[tuple[str, str]]]:
    """The texts and calls of a stream, as a client collects them."""
    parts = [part for wire in read_reply(seen, format=format).wires for part in FORMATS[format].read(wire).parts]
    words = [word for part in parts if isinstance(part, Text) for word in part.text.split()]
    return words, [(part.name, part.arguments) for part in parts if isinstance(part, Call)]


def faults(format: str, seen: Sequence[Json]) -> list[str]:
    """Errors in a stream that should be one reply."""
    if format == "openai":
        deltas = [choice["delta"] for chunk in seen for choice in chunk["choices"]]
        ends = [choice["finish_reason"] for chunk in seen for choice in chunk["choices"]]
        opened = [call["index"] for delta in deltas for call in delta.get("tool_calls") or () if call.get("id")]
        return [
            *(["several ids"] if len({chunk["id"] for chunk in seen}) > 1 else []),
            *(
                ["one role, first"]
                if [bool(d.get("role")) for d in deltas] != [True] + [False] * (len(deltas) - 1)
                else []
            ),
            *(["one end, last"] if [bool(end) for end in ends] != [False] * (len(ends) - 1) + [True] else []),
            *(["gaps in the calls"] if opened != list(range(len(opened))) else []),
        ]
    kinds = [event["type"] for event in seen]
    if format == "anthropic":
        indexes = [event["index"] for event in seen if event["type"] == "content_block_start"]
        return [
            *(["begins once"] if kinds.index("message_start") or kinds.count("message_start") > 1 else []),
            *(
                ["ends once"]
                if kinds[-2:] != ["message_delta", "message_stop"] or kinds.count("message_stop") > 1
                else []
            ),
            *(["gaps in the blocks"] if indexes != list(range(len(indexes))) else []),
        ]
    added = [event["output_index"] for event in seen if event["type"] == "response.output_item.added"]
    done = [event["item"]["id"] for event in seen if event["type"] == "response.output_item.done"]
    responses = [event["response"] for event in seen if "response" in event]
    return [
        *(["begins once"] if kinds[:2] != ["response.created", "response.in_progress"] else []),
        *(["several ids"] if len({response["id"] for response in responses}) > 1 else []),
        *(["ends once"] if kinds[-1] != "response.completed" or kinds.count("response.completed") > 1 else []),
        *(["gaps in the items"] if added != list(range(len(added))) else []),
        *(["other items at the end"] if [item["id"] for item in responses[-1]["output"]] != done else []),
        *(["gaps in the numbers"] if [event["sequence_number"] for event in seen] != list(range(len(seen))) else []),
    ]


def logprobs_of(word: str) -> Json:
    return {"content": [{"token": word, "logprob": -0.1, "bytes": None, "top_logprobs": []}], "refusal": None}


@pytest.mark.parametrize("last", [{"content": "lo"}, {"content": "lo", "tool_calls": None}])
def test_text_in_the_last_chunk_keeps_its_logprobs_and_usage(last: Json) -> None:
    envelope: Json = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "model-1"}
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    stage, seen = visible_reply("openai"), list[Json]()
    for delta, word, end in (({"role": "assistant", "content": "Hel"}, "Hel", None), (last, "lo", "stop")):
        choice = {"index": 0, "delta": delta, "logprobs": logprobs_of(word), "finish_reason": end}
        seen += stage.add_chunk({**envelope, "choices": [choice], "usage": usage if end else None})
    seen += stage.end()
    logprobs = [chunk["choices"][0]["logprobs"] for chunk in seen]
    assert [one for one in logprobs if one] == [logprobs_of("Hel"), logprobs_of("lo")]
    assert [chunk["usage"] for chunk in seen if chunk["usage"]] == [usage]
    assert faults("openai", seen) == []


def test_a_held_back_call_carries_no_logprobs_of_later_text() -> None:
    envelope: Json = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "model-1"}
    stage, seen = visible_reply("openai"), list[Json]()
    opened = {"index": 0, "id": "a", "type": "function", "function": {"name": "get_page", "arguments": ""}}
    argued = {"index": 0, "function": {"arguments": "{}"}}
    for calls, word in (([opened], None), ([argued], "Now")):
        choice = {"index": 0, "delta": {"content": word, "tool_calls": calls}, "finish_reason": None}
        seen += stage.add_chunk({**envelope, "choices": [{**choice, "logprobs": logprobs_of(word) if word else None}]})
    assert [bool(chunk["choices"][0]["logprobs"]) for chunk in seen] == [False, True]


texts = st.text(st.sampled_from("abc xyz.\n✓"), max_size=30)
arguments = st.sampled_from(["{}", '{"id": "page-1", "text": "a \\"word\\""}', '{"id": broken'])


def calls(names: Sequence[str], arguments: st.SearchStrategy[str]) -> st.SearchStrategy[ScriptedCall]:
    return st.builds(a_tool_call, st.sampled_from(names), arguments)


@st.composite
def conversations(draw: st.DrawFn, arguments: st.SearchStrategy[str] = arguments) -> list[ScriptedReply]:
    """Rounds with only memory calls, and a last round with any calls."""
    memory_calls, host_calls = (
        calls(["memory_read", "memory_write"], arguments),
        calls(["get_page", "deploy"], arguments),
    )
    rounds = [
        reply_with(draw(texts), *draw(st.lists(memory_calls, min_size=1, max_size=3)), thinking=draw(texts))
        for _ in range(draw(st.integers(0, 3)))
    ]
    mixed = draw(st.lists(st.one_of(memory_calls, host_calls), max_size=4))
    return [*rounds, reply_with(draw(texts), *mixed)]


@pytest.mark.spec("D9")
@FORMAT
@given(rounds=conversations())
def test_several_rounds_are_one_valid_stream_with_all_text_and_no_hidden_call(
    format: str, rounds: list[ScriptedReply]
) -> None:
    seen = visible_stream(format, rounds)
    assert faults(format, seen) == []
    words, visible_calls = texts_and_calls(format, seen)
    assert "".join(words) == "".join("".join(reply.text.split()) for reply in rounds)
    expected = [call for reply in rounds for call in reply.calls if not is_hidden(call.name)]
    assert [name for name, _ in visible_calls] == [call.name for call in expected]
    if format != "anthropic":  # Anthropic's arguments are parsed in between
        assert visible_calls == [(call.name, call.arguments) for call in expected]


@FORMAT
@given(rounds=conversations())
def test_text_is_shown_at_once(format: str, rounds: list[ScriptedReply]) -> None:
    stage = visible_reply(format)
    for number, reply in enumerate(rounds, start=1):
        if number > 1:
            stage.next_round()
        for chunk in chunks(format, reply, number=number):
            seen = "".join(str(_word(format, out) or "") for out in stage.add_chunk(chunk))
            assert seen.split() == str(_word(format, chunk) or "").split()


def _word(format: str, chunk: Json) -> str | None:
    if format == "openai":
        return chunk["choices"][0]["delta"].get("content")
    if format == "responses":
        return chunk["delta"] if chunk["type"] == "response.output_text.delta" else None
    return chunk.get("delta", {}).get("text")


@FORMAT
@given(rounds=conversations(arguments=st.just('{"id": "page-1"}')))
def test_a_streamed_and_a_complete_reply_are_the_same(format: str, rounds: list[ScriptedReply]) -> None:
    body = {"stream_options": {"include_usage": True}}
    at_once, streamed = visible_complete(format, rounds, **body), visible_stream(format, rounds, **body)
    assert parse_visible(format, at_once) == parse_visible(format, streamed)
    last: list[Json] = [chunk for chunk in streamed if chunk.get("choices") != []]
    ends = {
        "openai": lambda: (at_once["choices"][0]["finish_reason"], last[-1]["choices"][0]["finish_reason"]),
        "responses": lambda: (at_once["output"], last[-1]["response"]["output"]),
        "anthropic": lambda: (at_once["stop_reason"], last[-2]["delta"]["stop_reason"]),
    }[format]()
    assert ends[0] == ends[1]


def parse_visible(format: str, reply_data: Json | Sequence[Json]) -> tuple[Any, ...]:
    reply = read_reply(reply_data, format=format)
    return reply.id, reply.usage, reply.is_complete, [FORMATS[format].read(wire) for wire in reply.wires]


@FORMAT
@given(rounds=conversations())
def test_usage_is_the_sum_of_all_rounds(format: str, rounds: list[ScriptedReply]) -> None:
    """Each round costs 100 tokens, of which 80 are cached, and 10 for the answer."""
    body = {"stream_options": {"include_usage": True}}
    for reply in (visible_complete(format, rounds, **body), visible_stream(format, rounds, **body)):
        usage = read_reply(reply, format=format).usage
        assert usage is not None
        each = (usage.prompt_tokens, usage.cached_tokens, usage.completion_tokens)
        assert each == (100 * len(rounds), 80 * len(rounds), 10 * len(rounds))


@pytest.mark.parametrize("format", ["openai", "responses"])
def test_details_of_usage_are_added_too(format: str) -> None:
    usage = visible_complete(format, [reply_with("", NOTE), reply_with("Done.")])["usage"]
    assert usage["total_tokens"] == 220
    [(_, details)] = [
        (name, value) for name, value in usage.items() if name in ("prompt_tokens_details", "input_tokens_details")
    ]
    assert details == {"cached_tokens": 160}


def test_only_numbers_are_added() -> None:
    before = {"tokens": 1, "tier": "standard", "own_key": True, "cost": {"eur": 0.25}, "cached": None, "searches": 2}
    now = {"tokens": 2, "tier": "priority", "own_key": True, "cost": {"eur": 0.5}, "cached": 3}
    both = {"tokens": 3, "tier": "priority", "own_key": True, "cost": {"eur": 0.75}, "cached": 3, "searches": 2}
    assert add_usage(before, now) == both
    assert (add_usage(None, now), add_usage(before, None)) == (now, before)


def test_missing_usage_and_keep_alive_events_pass_through() -> None:
    stage = visible_reply("anthropic")
    assert stage.add_chunk({"type": "ping"}) == [{"type": "ping"}]
    started: Json = {"type": "message_start", "message": {"id": "msg_1", "content": []}}
    ended: Json = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}}
    assert stage.add_chunk(started) == [started]
    assert stage.add_chunk(ended) == []
    assert (stage.end(), stage.usage) == ([ended], None)


def test_texts_of_rounds_are_joined_with_a_blank_line() -> None:
    rounds = [reply_with("Let me note that.", NOTE), reply_with("", LOOK), reply_with("Done."), reply_with("And more.")]
    seen = visible_stream("openai", rounds)
    content = "".join(chunk["choices"][0]["delta"].get("content") or "" for chunk in seen)
    assert content == "Let me note that.\n\nDone.\n\nAnd more."
    assert visible_complete("openai", rounds)["choices"][0]["message"]["content"] == content


def test_citations_point_to_their_text() -> None:
    def cited(text: str) -> Json:
        place = {"start_index": 0, "end_index": len(text), "url": "https://example.com", "title": "Example"}
        return {"content": text, "annotations": [{"type": "url_citation", "url_citation": place}]}

    at_once, stage, seen = visible_reply("openai"), visible_reply("openai"), list[Json]()
    message = Json()
    for text in ("Here it says so.", "And here."):
        choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", **cited(text)}}
        [visible_choice] = at_once.complete_reply({"id": "c", "choices": [choice]})["choices"]
        message = visible_choice["message"]
        seen += stage.add_chunk({"id": "c", "choices": [{"index": 0, "delta": {"role": "assistant", **cited(text)}}]})
        at_once.next_round()
        stage.next_round()
    places = [one["url_citation"] for one in message["annotations"]]
    words = [message["content"][place["start_index"] : place["end_index"]] for place in places]
    assert words == ["Here it says so.", "And here."]
    deltas = [choice["delta"] for chunk in seen for choice in chunk["choices"]]
    assert [one["url_citation"] for delta in deltas for one in delta["annotations"]] == places
    assert "".join(delta["content"] for delta in deltas) == message["content"]


@FORMAT
def test_a_stream_without_memory_calls_is_unchanged(format: str) -> None:
    reply = reply_with("One moment.", PAGE, a_tool_call("get_page", {"id": "page-2"}), thinking="Two pages.")
    sent = chunks(format, reply, stream_options={"include_usage": True})
    seen = visible_stream(format, [reply], stream_options={"include_usage": True})
    assert seen == sent


@FORMAT
def test_without_visible_calls_the_stop_reason_is_not_a_tool_call(format: str) -> None:
    end = visible_stream(format, [reply_with("Still noting.", NOTE)])[-1 if format != "anthropic" else -2]
    reason = {
        "openai": lambda: end["choices"][0]["finish_reason"],
        "responses": lambda: [item["type"] for item in end["response"]["output"]],
        "anthropic": lambda: end["delta"]["stop_reason"],
    }[format]()
    assert reason == {"openai": "stop", "responses": ["message"], "anthropic": "end_turn"}[format]


def piece(*, ends: bool = False, id: str = "", index: int = 0, **function: str) -> Json:
    """A chunk with one piece of a call."""
    delta = {"tool_calls": [{"index": index, "id": id, "function": function}]} if function else {}
    choice = {"index": 0, "delta": delta, "finish_reason": "tool_calls" if ends else None}
    return {"id": "c", "choices": [choice]}


def functions(seen: Sequence[Json]) -> list[tuple[int, Json]]:
    """The pieces of calls, one per chunk: hosts read the first of a chunk."""
    calls = [chunk["choices"][0]["delta"].get("tool_calls") for chunk in seen]
    return [(call["index"], call["function"]) for [call] in filter(None, calls)]


def test_a_call_is_held_back_until_its_name_is_complete() -> None:
    stage = visible_reply("openai")
    assert stage.add_chunk(piece(id="call_1", arguments="")) == []
    assert stage.add_chunk(piece(arguments='{"id":')) == []
    assert functions(stage.add_chunk(piece(name="get_page", arguments=""))) == [
        (0, {"arguments": ""}),
        (0, {"arguments": '{"id":'}),
        (0, {"name": "get_page", "arguments": ""}),
    ]


@pytest.mark.parametrize(
    ("names", "hidden"),
    [
        (["memory_", "read"], True),
        (["memory_read", "memory_read"], True),
        (["get_", "memory_", "page"], False),
        (["get_page", "get_page"], False),
    ],
)
def test_a_call_is_hidden_by_its_complete_name(names: list[str], hidden: bool) -> None:
    stage = visible_reply("openai")
    for name in names:
        assert stage.add_chunk(piece(name=name, arguments="")) == []
    named = [(0, {"name": name, "arguments": ""}) for name in names]
    assert functions(stage.add_chunk(piece(arguments="{}"))) == ([] if hidden else [*named, (0, {"arguments": "{}"})])


def test_a_call_without_arguments_is_shown_when_the_next_starts_or_the_reply_ends() -> None:
    stage = visible_reply("openai")
    assert stage.add_chunk(piece(id="a", name="get_page")) == []
    assert functions(stage.add_chunk(piece(id="b", index=1, name="deploy"))) == [(0, {"name": "get_page"})]
    assert functions(stage.add_chunk(piece(ends=True))) == [(1, {"name": "deploy"})]
    assert [chunk["choices"][0]["finish_reason"] for chunk in stage.end()] == ["tool_calls"]


def test_calls_without_index_are_distinguished() -> None:
    def call(id: str, name: str) -> Json:
        tool_call = {"index": 0, "id": id, "function": {"name": name, "arguments": "{}"}}
        return {"id": "c", "choices": [{"index": 0, "delta": {"tool_calls": [tool_call]}}]}

    stage = visible_reply("openai")
    seen = [
        out
        for id, name in [("a", "memory_read"), ("b", "get_page"), ("c", "deploy")]
        for out in stage.add_chunk(call(id, name))
    ]
    visible_calls = [one for out in seen for one in out["choices"][0]["delta"]["tool_calls"]]
    assert [(one["index"], one["id"]) for one in visible_calls] == [(0, "b"), (1, "c")]


def test_a_custom_call_belongs_to_the_host_whatever_its_name() -> None:
    custom_call = {"index": 0, "id": "a", "type": "custom", "custom": {"name": "memory_read", "input": "x"}}
    chunk = {"id": "c", "choices": [{"index": 0, "delta": {"tool_calls": [custom_call]}}]}
    assert visible_reply("openai").add_chunk(chunk) == [chunk]
    item = {"type": "custom_tool_call", "call_id": "a", "name": "memory_read", "input": "x"}
    added = {"type": "response.output_item.added", "output_index": 0, "item": item}
    assert visible_reply("responses").add_chunk(added) == [added]


def test_text_in_the_last_chunk_is_shown_before_the_end() -> None:
    choice = {"index": 0, "delta": {"content": "Done."}, "finish_reason": "stop"}
    stage = visible_reply("openai")
    [seen] = stage.add_chunk({"id": "c", "choices": [choice]})
    assert seen["choices"][0] == {**choice, "finish_reason": None}
    [end] = stage.end()
    assert end["choices"][0] == {**choice, "delta": {}}


def test_filter_results_are_shown_before_the_reply() -> None:
    stage = visible_reply("openai")
    chunk: Json = {"id": "", "choices": [], "prompt_filter_results": []}
    assert stage.add_chunk(chunk) == [chunk]
    assert stage.end() == []


def test_usage_is_shown_once_and_last() -> None:
    seen = visible_stream("openai", [reply_with("", NOTE), reply_with("Done.")], stream_options={"include_usage": True})
    assert [bool(chunk["usage"]) for chunk in seen] == [False] * (len(seen) - 1) + [True]


def test_a_failed_response_has_the_id_of_the_first() -> None:
    stage = visible_reply("responses")
    for chunk in chunks("responses", reply_with("", NOTE)):
        stage.add_chunk(chunk)
    stage.next_round()
    failed: Json = {
        "type": "response.failed",
        "sequence_number": 1,
        "response": {"id": "resp_2", "output": [], "status": "failed"},
    }
    assert stage.is_failure(failed)
    [seen] = stage.add_chunk(failed)
    assert (seen["response"]["id"], seen["sequence_number"]) == ("resp_1", 2)


def test_events_without_an_item_pass_and_are_numbered() -> None:
    stage = visible_reply("responses")
    for chunk in chunks("responses", reply_with("", NOTE)):
        stage.add_chunk(chunk)
    stage.next_round()
    [limits] = stage.add_chunk({"type": "response.rate_limits.updated", "sequence_number": 0})
    assert limits["sequence_number"] == 2
    [error] = stage.add_chunk({"type": "error", "code": "server_error", "message": "No.", "sequence_number": 1})
    assert stage.is_failure(error)
    assert (error["message"], error["sequence_number"]) == ("No.", 3)


@FORMAT
def test_a_complete_reply_is_the_same_object_unless_a_call_is_hidden(format: str) -> None:
    tool_calls = {"tool_calls": [{"id": "1", "type": "function", "function": {"name": "get_page", "arguments": "{}"}}]}
    whole: dict[str, Json] = {
        "openai": {"choices": [{"message": {"role": "assistant", "content": "Hi", **tool_calls}}]},
        "responses": {"output": [{"type": "function_call", "call_id": "1", "name": "get_page", "arguments": "{}"}]},
        "anthropic": {"content": [{"type": "tool_use", "id": "1", "name": "get_page", "input": {}}]},
    }
    assert visible_reply(format).complete_reply(whole[format]) is whole[format]

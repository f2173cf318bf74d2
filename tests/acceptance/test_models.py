"""Behaviour that all model clients share, for any response of the server."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Generator
from threading import Event
from typing import Any

import pytest
from model_server import HttpReply, ModelServer, chat, fails, message, model_server

from inmind.core.http import MAX_RESPONSE_BYTES, RETRY_DELAYS_SECONDS
from inmind.dreams.models import Anthropic, Model, OpenAICompatible, Question, as_model
from inmind.errors import InvalidInput, ModelFailed

pytestmark = pytest.mark.spec("G12")

KEY = "sk-very-secret"
SCHEMA = {"type": "object", "properties": {"edits": {"type": "array"}}, "required": ["edits"]}
QUESTION = Question(system="You dream.", prompt="What now?", schema=SCHEMA, max_tokens=500)


@pytest.fixture
def server() -> Generator[ModelServer]:
    with model_server() as server:
        yield server


@pytest.fixture
def pauses() -> list[float]:
    return []


def openai(server: ModelServer, pauses: list[float], **options: Any) -> Model:
    return OpenAICompatible(server.url, "toy", pause=pauses.append, **{"key": KEY, **options})


def anthropic(server: ModelServer, pauses: list[float], **options: Any) -> Model:
    return Anthropic("toy", url=server.url.removesuffix("/v1"), pause=pauses.append, **{"key": KEY, **options})


Maker = Callable[..., Model]


@pytest.fixture(params=[openai, anthropic], ids=["openai", "anthropic"])
def make(request: pytest.FixtureRequest) -> Maker:
    return request.param


@pytest.fixture
def good(make: Maker) -> HttpReply:
    """A valid answer of this provider."""
    return chat('{"edits":[]}') if make is openai else message({"type": "text", "text": '{"edits":[]}'})


@pytest.fixture
def model(make: Maker, server: ModelServer, pauses: list[float]) -> Model:
    return make(server, pauses)


def test_as_model_returns_a_model_unchanged(model: Model) -> None:
    assert isinstance(model, Model)
    assert as_model(model) is model


def test_a_reply_has_its_text_and_tokens(server: ModelServer, model: Model, good: HttpReply) -> None:
    server.will(good)
    reply = model.ask(QUESTION, seconds=5)
    assert json.loads(reply.text) == {"edits": []}
    assert reply.tokens == (12, 3)
    assert not reply.truncated


@pytest.mark.parametrize(
    ("key_option", "in_environment", "expected_key"), [(KEY, "xyz", KEY), (None, "xyz", "xyz"), ("", "xyz", "")]
)
def test_a_key_argument_overrides_the_environment(
    make: Maker,
    server: ModelServer,
    pauses: list[float],
    good: HttpReply,
    monkeypatch: pytest.MonkeyPatch,
    key_option: str | None,
    in_environment: str,
    expected_key: str,
) -> None:
    monkeypatch.setenv("MY_KEY", in_environment)
    server.will(good)
    make(server, pauses, key=key_option, key_env="MY_KEY").ask(QUESTION, seconds=5)
    headers = server.requests[0].headers
    assert (headers.get("x-api-key") or headers.get("authorization", "").removeprefix("Bearer ")) == expected_key


def test_a_timeout_is_a_failure(server: ModelServer, model: Model) -> None:
    gate = Event()
    server.will(HttpReply("{}", gate=gate))
    with pytest.raises(ModelFailed, match="did not answer in time"):
        model.ask(QUESTION, seconds=0.2)
    gate.set()
    assert len(server.requests) == 1


def test_a_truncated_response_is_retried(server: ModelServer, model: Model, good: HttpReply) -> None:
    server.will(HttpReply('{"choices": [', promised=100), good)
    assert model.ask(QUESTION, seconds=60).text


@pytest.mark.parametrize("status", [429, 500, 503, 529])
def test_temporary_errors_are_retried(
    server: ModelServer, model: Model, good: HttpReply, pauses: list[float], status: int
) -> None:
    server.will(fails(status), fails(status), good)
    assert model.ask(QUESTION, seconds=60).text
    assert pauses == list(RETRY_DELAYS_SECONDS)


def test_the_number_of_retries_is_limited(server: ModelServer, model: Model) -> None:
    server.will(*[fails(503, "overloaded")] * 9)
    with pytest.raises(ModelFailed, match=r"answered 503: 'overloaded'"):
        model.ask(QUESTION, seconds=60)
    assert len(server.requests) == 1 + len(RETRY_DELAYS_SECONDS)


def test_a_retry_after_header_is_followed(
    server: ModelServer, model: Model, good: HttpReply, pauses: list[float]
) -> None:
    server.will(fails(429, Retry_After="7"), good)
    model.ask(QUESTION, seconds=60)
    assert pauses == [7.0]


@pytest.mark.parametrize("after", ["61", "1e9"])
def test_retries_stop_at_the_timeout(server: ModelServer, model: Model, pauses: list[float], after: str) -> None:
    server.will(fails(429, Retry_After=after))
    with pytest.raises(ModelFailed, match="429"):
        model.ask(QUESTION, seconds=60)
    assert pauses == []


@pytest.mark.parametrize("after", ["soon", "nan", "-3", "Wed, 21 Oct 2026 07:28:00 GMT", "²"])
def test_an_invalid_retry_after_header_is_ignored(
    server: ModelServer, model: Model, good: HttpReply, pauses: list[float], after: str
) -> None:
    server.will(fails(503, Retry_After=after.encode().decode("latin-1")), good)
    assert model.ask(QUESTION, seconds=60).text
    assert pauses in ([RETRY_DELAYS_SECONDS[0]], [0.0])


@pytest.mark.parametrize("status", [301, 307, 401, 403, 404])
def test_a_refusal_is_final_and_no_redirect_is_followed(server: ModelServer, model: Model, status: int) -> None:
    server.will(fails(status, "no", Location="http://127.0.0.1:9/elsewhere"))
    with pytest.raises(ModelFailed, match=str(status)):
        model.ask(QUESTION, seconds=60)
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    "body",
    [
        "",
        "<html>",
        "[]",
        "null",
        "{}",
        '{"choices": []}',
        '{"choices": 3, "content": 4}',
        '{"choices": [null], "content": [null]}',
        '{"choices": [{"message": {"content": 3}}], "content": [{"type": "text", "text": 3}]}',
        '{"choices": [{"message": "hi"}], "content": "hi"}',
        "[" * 100_000,
        b"\xff\xfe",
    ],
    ids=str,
)
def test_an_unexpected_response_body_is_a_failure(server: ModelServer, model: Model, body: str | bytes) -> None:
    server.will(HttpReply(body))
    with pytest.raises(ModelFailed, match=r"did not answer with a JSON object|the response has no text"):
        model.ask(QUESTION, seconds=60)


def test_a_response_over_the_size_limit_is_a_failure(server: ModelServer, model: Model) -> None:
    server.will(HttpReply(b"x" * 10_000_000))
    with pytest.raises(ModelFailed, match=f"more than {MAX_RESPONSE_BYTES:,} bytes"):
        model.ask(QUESTION, seconds=60)
    assert len(server.requests) == 1


def test_a_compressed_response_is_not_decompressed(server: ModelServer, model: Model) -> None:
    import gzip

    server.will(HttpReply(gzip.compress(b"{}" + b" " * 50_000_000), headers={"Content-Encoding": "gzip"}))
    with pytest.raises(ModelFailed, match="did not answer with a JSON object"):
        model.ask(QUESTION, seconds=60)


def test_invalid_usage_counts_as_zero(server: ModelServer, model: Model, good: HttpReply) -> None:
    assert isinstance(good.body, str)
    server.will(
        HttpReply(json.dumps({**json.loads(good.body), "usage": {"prompt_tokens": "many", "output_tokens": -1}}))
    )
    assert model.ask(QUESTION, seconds=5).tokens == (0, 0)


@pytest.mark.spec("J6")
def test_the_key_is_in_no_error_and_no_repr(server: ModelServer, model: Model) -> None:
    responses = [fails(401, f"Incorrect API key provided: {KEY}"), HttpReply(f"not JSON but {KEY}")]
    for one in responses:
        server.will(one)
        with pytest.raises(ModelFailed) as failure:
            model.ask(QUESTION, seconds=60)
        error: BaseException | None = failure.value
        while error:
            assert KEY not in f"{error} {error!r} {vars(error)}"
            error = error.__cause__ or error.__context__
    assert KEY not in f"{model!r} {model}"


@pytest.mark.parametrize("key", ["two words", "a\nb", "schlüssel", "\x00"])
def test_an_invalid_key_is_refused_and_not_printed(
    make: Maker, server: ModelServer, pauses: list[float], key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(InvalidInput, match="key") as error:
        make(server, pauses, key=key)
    assert key not in str(error.value)
    if "\x00" not in key:
        monkeypatch.setenv("MY_KEY", key)
        with pytest.raises(InvalidInput, match="key"):
            make(server, pauses, key=None, key_env="MY_KEY").ask(QUESTION, seconds=5)


@pytest.mark.parametrize(
    "url", ["ftp://a", "localhost:11434", "", "http://user:hunter2@host/v1", "http://h/v1?key=hunter2"]
)
def test_an_invalid_url_or_one_with_a_key_is_refused(make: Maker, pauses: list[float], url: str) -> None:
    with pytest.raises(InvalidInput, match="url") as error:
        make(ModelServer(url=url), pauses) if url else OpenAICompatible(url, "toy")
    assert "hunter2" not in str(error.value)


def test_an_unreachable_server_is_a_failure(make: Maker, pauses: list[float]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/v1"
        with pytest.raises(ModelFailed, match="cannot be reached"):
            make(ModelServer(url=url), pauses).ask(QUESTION, seconds=60)
    assert pauses == list(RETRY_DELAYS_SECONDS)


def test_openai_requests_contain_the_schema(server: ModelServer, pauses: list[float]) -> None:
    server.will(chat("{}"))
    openai(server, pauses).ask(QUESTION, seconds=5)
    [request] = server.requests
    assert request.path == "/v1/chat/completions"
    assert request.body["model"] == "toy"
    assert request.body["max_tokens"] == 500
    assert [one["content"] for one in request.body["messages"]] == ["You dream.", "What now?"]
    assert request.body["response_format"]["json_schema"]["schema"] == SCHEMA
    assert request.body["response_format"]["json_schema"]["strict"] is True


def test_without_schema_support_a_json_object_and_then_any_text_is_requested(
    server: ModelServer, pauses: list[float]
) -> None:
    server.will(fails(400, "response_format?"), fails(422, "json_object?"), chat("{}"))
    assert openai(server, pauses).ask(QUESTION, seconds=5).text == "{}"
    formats = [request.body.get("response_format", {}).get("type") for request in server.requests]
    assert formats == ["json_schema", "json_object", None]


def test_max_tokens_is_renamed_if_the_server_asks_for_it(server: ModelServer, pauses: list[float]) -> None:
    server.will(fails(400, "Use 'max_completion_tokens' instead."), chat("{}"))
    openai(server, pauses).ask(QUESTION, seconds=5)
    assert server.requests[1].body["max_completion_tokens"] == 500
    assert "max_tokens" not in server.requests[1].body
    assert server.requests[1].body["response_format"]["type"] == "json_schema"


def test_a_request_that_is_refused_in_every_form_is_a_failure(server: ModelServer, pauses: list[float]) -> None:
    server.will(*[fails(400, "Use 'max_completion_tokens', or go away")] * 9)
    with pytest.raises(ModelFailed, match="go away"):
        openai(server, pauses).ask(QUESTION, seconds=5)
    assert len(server.requests) == 4


def test_without_a_schema_no_response_format_is_sent(server: ModelServer, pauses: list[float]) -> None:
    server.will(chat("hi"), message({"type": "text", "text": "hi"}))
    plain = Question(system="", prompt="hello")
    assert openai(server, pauses).ask(plain, seconds=5).text == "hi"
    assert anthropic(server, pauses).ask(plain, seconds=5).text == "hi"
    assert not {"response_format", "tools"} & {*server.requests[0].body, *server.requests[1].body}


def test_anthropic_answers_by_its_only_tool(server: ModelServer, pauses: list[float]) -> None:
    server.will(message({"type": "tool_use", "name": "answer", "input": {"edits": ["日本"]}}, stop_reason="tool_use"))
    assert anthropic(server, pauses).ask(QUESTION, seconds=5).text == '{"edits":["日本"]}'
    [request] = server.requests
    assert request.path == "/v1/messages"
    assert request.headers["anthropic-version"]
    assert request.body["system"] == "You dream."
    assert request.body["max_tokens"] == 500
    assert request.body["tools"][0]["input_schema"] == SCHEMA
    assert request.body["tool_choice"] == {"type": "tool", "name": request.body["tools"][0]["name"]}


def test_text_parts_are_joined(server: ModelServer, pauses: list[float]) -> None:
    parts: Any = [{"type": "text", "text": "a"}, {"type": "image"}, {"type": "text", "text": "b"}]
    server.will(chat(parts), message(*parts))
    assert openai(server, pauses).ask(QUESTION, seconds=5).text == "ab"
    assert anthropic(server, pauses).ask(QUESTION, seconds=5).text == "ab"


def test_a_refusal_of_the_model_is_a_failure(server: ModelServer, pauses: list[float]) -> None:
    server.will(
        chat(None, refusal="I won't."), chat("", finish_reason="content_filter"), message(stop_reason="refusal")
    )
    for model, reason in ((openai, "I won't"), (openai, "filtered"), (anthropic, "refused")):
        with pytest.raises(ModelFailed, match=reason):
            model(server, pauses).ask(QUESTION, seconds=5)


def test_a_cut_answer_is_marked_as_truncated(server: ModelServer, pauses: list[float]) -> None:
    server.will(
        chat('{"ed', finish_reason="length"), message({"type": "text", "text": '{"ed'}, stop_reason="max_tokens")
    )
    assert openai(server, pauses).ask(QUESTION, seconds=5).truncated
    assert anthropic(server, pauses).ask(QUESTION, seconds=5).truncated

"""Server-sent events are parsed from bytes split anywhere."""

from __future__ import annotations

import json
import time
from collections.abc import Generator
from itertools import pairwise, repeat
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from model_server import HttpReply, fails, model_server
from tables import each_row

from inmind.core.http import (
    MAX_RESPONSE_BYTES,
    HttpEndpoint,
    _SilenceTimer,  # pyright: ignore[reportPrivateUsage] -- the tests control its clock
    bearer,
    parse_sse,
)
from inmind.errors import InvalidInput, ModelFailed

pytestmark = pytest.mark.spec("I2", "N65")

EVENTS = {"Content-Type": "text/event-stream"}


@given(
    events=st.lists(st.dictionaries(st.text(max_size=5), st.text(max_size=20), max_size=3), max_size=6),
    end=st.sampled_from(["\n", "\r\n", "\r"]),
    cuts=st.lists(st.integers(0, 400), max_size=12),
)
def test_events_do_not_depend_on_how_the_bytes_are_split(
    events: list[dict[str, str]], end: str, cuts: list[int]
) -> None:
    payloads = [json.dumps(event, ensure_ascii=False) for event in events]
    blocks = [f": ping{end}event: x{end}data: {payload}{end}id: 7{end}{end}" for payload in payloads]
    data = ("".join(blocks) + f"data: [DONE]{end}{end}data: late{end}{end}").encode()
    bounds = sorted({0, len(data), *(cut for cut in cuts if cut < len(data))})
    assert list(parse_sse(data[start:stop] for start, stop in pairwise(bounds))) == payloads


def test_an_event_can_have_several_lines_and_the_last_needs_no_blank_line() -> None:
    assert list(parse_sse([b'data: {"a":\ndata: 1}\n\n', b"data:last\n"])) == ['{"a":\n1}', "last"]
    assert list(parse_sse([b"data: whole\n\n", b"data: ha"])) == ["whole"]


@pytest.mark.parametrize(
    ("data", "is_done"),
    [(b"data: 1\n\ndata: [DONE]\n\n", True), (b"data: [DONE]\n", True), (b"data: 1\n\n", False)],
)
def test_the_end_marker_of_the_server_is_reported(data: bytes, is_done: bool) -> None:
    def collect_result() -> Generator[str, None, None]:
        results.append((yield from parse_sse([data])))

    results: list[bool] = []
    list(collect_result())
    assert results == [is_done]


def test_an_endless_line_is_refused() -> None:
    with model_server() as server:
        server.will(HttpReply(b"data: " + b"x" * (MAX_RESPONSE_BYTES + 10), 200, EVENTS))
        with pytest.raises(ModelFailed, match="in one line"):
            list(HttpEndpoint(url=server.url).stream_events("chat", {}, headers=bearer, seconds=20))


def test_a_stream_is_retried_until_it_starts_and_not_after() -> None:
    pauses: list[float] = []
    with model_server() as server:
        server.will(
            fails(429, Retry_After="0.25"), fails(503), HttpReply(b'data: {"n": 1}\n\n', 200, EVENTS, promised=5)
        )
        events = HttpEndpoint(url=server.url, sleep=pauses.append).stream_events(
            "chat", {"q": 1}, headers=bearer, seconds=20
        )
        assert next(events) == {"n": 1}
        with pytest.raises(ModelFailed, match="broke off"):
            next(events)
        assert len(server.requests) == 3
    assert pauses == [0.25, 4.0]


def test_the_servers_error_message_is_shown_without_its_json() -> None:
    with model_server() as server:
        for body in ('{"error": {"message": "too hot"}}', '{"error": "too hot"}', '{"message": "too hot"}', "too hot"):
            server.will(fails(400, body))
            with pytest.raises(ModelFailed, match="answered 400: 'too hot'"):
                HttpEndpoint(url=server.url).request("chat", {}, headers=bearer, seconds=20)


def test_a_slow_consumer_is_not_mistaken_for_a_silent_server(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = ManualSeconds()
    monkeypatch.setattr("inmind.core.http.time.monotonic", clock)
    silence = _SilenceTimer(10)
    for _ in silence.watch([b'data: {"n": 1}\n\n']):
        clock.now += 9
        assert not silence.is_expired()
    clock.now += 500  # spent in the consumer
    silence.restart()
    assert not silence.is_expired()
    clock.now += 11
    assert silence.is_expired()


def test_waiting_for_a_heartbeat_has_a_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = ManualSeconds()
    monkeypatch.setattr("inmind.core.http.time.monotonic", clock)
    silence = _SilenceTimer(10)
    lasted = 0
    for _ in silence.watch(repeat(b": ping\n")):
        clock.now += 9
        if silence.is_expired():
            break
        lasted += 9
    assert 90 <= lasted <= 100


def test_a_slow_reader_gets_all_events() -> None:
    body = b"".join(b'data: {"n": %d}\n\n' % number for number in range(3))
    with model_server() as server:
        server.will(HttpReply(body, 200, EVENTS))
        events: list[dict[str, Any]] = []
        for event in HttpEndpoint(url=server.url).stream_events("chat", {}, headers=bearer, seconds=0.2):
            events.append(event)
            time.sleep(0.25)  # longer than the silence timeout
    assert events == [{"n": 0}, {"n": 1}, {"n": 2}]


@pytest.mark.spec("J3")
@each_row(
    "url",
    [
        "http://[::1",
        "http://127.0.0.1:abc/v1",
        "http://127.0.0.1:99999/v1",
        "http://ä..ö/v1",
        "http://x..y/v1",
        "127.0.0.1:8080",
        "ftp://host/v1",
        "http://me:secret@host/v1",
        "http://host/v1?key=secret",
        "",
    ],
)
def test_an_invalid_url_is_refused_without_repeating_it(url: str) -> None:
    with pytest.raises(InvalidInput, match="url: expected the address of a server") as caught:
        HttpEndpoint(url=url)
    assert "secret" not in str(caught.value)


class ManualSeconds:
    now = 0.0

    def __call__(self) -> float:
        return self.now

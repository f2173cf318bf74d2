"""Connections that end at any moment: a call is done once, or its outcome is unknown.

The tables of faults call this P29, and the lost reply K25.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator

import pytest
from cutting_proxy import How, Proxy, Where
from postgres import Tenants
from torture.harness import ask, seeded_random
from torture.postgres.actors import STREAM, adopt, census, make_key, names, now, page_draft, put

from inmind.errors import KeyReused, OutcomeUnknown, StoreError, StoreUnavailable
from inmind.store.postgres import PostgresStore, connection
from inmind.store.protocol import AppendResult, Batch, Key

APPEND = ".append"
MOMENTS: list[tuple[Where, How]] = [
    (where, how) for where in ("before", "after", "reply") for how in ("closed", "reset")
]
SOME_MOMENTS = [
    (where, how) if how == "reset" else pytest.param(where, how, marks=pytest.mark.exhaustive) for where, how in MOMENTS
]
SECONDS = 2.0


@pytest.fixture
def proxy(tenant_url: str) -> Generator[Proxy]:
    PostgresStore.open(tenant_url).close()
    with Proxy(tenant_url) as proxy:
        yield proxy


@pytest.fixture
def store(proxy: Proxy) -> Generator[PostgresStore]:
    opened = PostgresStore.open(proxy.url, seconds=SECONDS)
    put(opened, "first", keyed=False)
    yield opened
    opened.close()


def in_time(began: float) -> bool:
    """With some tolerance for a busy machine."""
    return time.monotonic() - began < SECONDS + 1.5


@pytest.mark.spec("P29", "K25")
@pytest.mark.parametrize(("where", "how"), [*MOMENTS, ("before", "silence"), ("reply", "silence")])
def test_a_call_with_a_key_is_done_exactly_once(
    tenant_url: str, proxy: Proxy, store: PostgresStore, where: Where, how: How
) -> None:
    began = time.monotonic()
    with proxy.cutting(where, how, at=APPEND):
        first = put(store, "once", keyed=True)
    assert in_time(began)
    assert (first.first, first.last) == (2, 2)
    if where == "reply":
        assert first.repeated, "the first attempt was not stored"
    again = put(store, "once", keyed=True)
    assert (again.first, again.last, again.at, again.repeated) == (2, 2, first.at, True)
    with pytest.raises(KeyReused):
        store.append(Batch(STREAM, [page_draft("other")], 2), at=now(), key=Key(make_key("once").value, "other"))
    assert ask(census, url=tenant_url) == ["first", "once"]


@pytest.mark.spec("P29")
@pytest.mark.parametrize(
    ("where", "how"), [*SOME_MOMENTS, pytest.param("reply", "silence", marks=pytest.mark.exhaustive)]
)
def test_a_call_without_a_key_reports_an_unknown_outcome(
    tenant_url: str, proxy: Proxy, store: PostgresStore, where: Where, how: How
) -> None:
    began = time.monotonic()
    with proxy.cutting(where, how, at=APPEND) as cut, pytest.raises(OutcomeUnknown) as caught:
        store.append(Batch(STREAM, [page_draft("once")], 1), at=now())
    assert in_time(began)
    assert cut.fired == 1, "the call was retried"
    assert caught.value.code == "OUTCOME_UNKNOWN"
    put(store, "then", keyed=False)
    names_stored = ask(census, url=tenant_url)
    allowed = {"before": [["first", "then"]], "reply": [["first", "once", "then"]]}
    assert names_stored in allowed.get(where, [["first", "then"], ["first", "once", "then"], ["first", "then", "once"]])


@pytest.mark.spec("P29", "P33")
@pytest.mark.parametrize(
    ("where", "how"), [*SOME_MOMENTS, pytest.param("before", "silence", marks=pytest.mark.exhaustive)]
)
def test_a_read_is_retried(proxy: Proxy, store: PostgresStore, where: Where, how: How) -> None:
    began = time.monotonic()
    with proxy.cutting(where, how, at="streams.name"):
        assert names(store) == ["first"]
    assert in_time(began)


@pytest.mark.spec("P29")
@pytest.mark.parametrize("how", ["closed", "reset"])
def test_a_failed_connection_is_reported_and_works_later(proxy: Proxy, store: PostgresStore, how: How) -> None:
    proxy.drop("reset")
    with proxy.cutting("connect", how, times=100), pytest.raises(StoreUnavailable):
        store.append(Batch(STREAM, [page_draft("in vain")], 1), at=now(), key=make_key("in vain"))
    put(store, "later", keyed=False)
    assert names(store) == ["first", "later"]
    with proxy.cutting("connect", how, times=100), pytest.raises(StoreUnavailable):
        PostgresStore.open(proxy.url, seconds=SECONDS)


@pytest.mark.spec("P29")
@pytest.mark.parametrize("how", ["closed", "reset", "silence"])
def test_a_connection_dropped_while_idle_is_reopened(
    tenant_url: str, proxy: Proxy, store: PostgresStore, how: How, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Like a firewall after ten minutes, also silently. Not even a call without a key fails."""
    monkeypatch.setattr(connection, "PROBE_AFTER_SECONDS", 0.0)
    before = proxy.connections
    assert proxy.drop(how) >= 1
    began = time.monotonic()
    put(store, "after a while", keyed=False)
    assert in_time(began)
    assert proxy.connections > before, "the connection was not reopened"
    assert ask(census, url=tenant_url) == ["first", "after a while"]


@pytest.mark.spec("P33")
def test_an_old_connection_is_reopened(proxy: Proxy, store: PostgresStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """The host name may resolve to another server by now."""
    before = proxy.connections
    assert names(store) == names(store)
    assert proxy.connections == before
    monkeypatch.setattr(connection, "MAX_AGE_SECONDS", 0.0)
    assert names(store) == names(store)
    assert proxy.connections == before + 2


@pytest.mark.spec("P29", "P33")
@pytest.mark.parametrize("call", ["read", "write"])
def test_no_call_exceeds_its_timeout_if_the_network_is_silent(proxy: Proxy, store: PostgresStore, call: str) -> None:
    """With existing connections, and with new ones."""
    assert proxy.drop("silence") >= 1
    began = time.monotonic()
    calls: dict[str, Callable[[], object]] = {
        "read": lambda: store.read(STREAM),
        "write": lambda: store.append(Batch(STREAM, [page_draft("x")], 1), at=now(), key=make_key("x")),
    }
    with proxy.cutting("connect", "silence", times=100), pytest.raises((OutcomeUnknown, StoreUnavailable)) as caught:
        calls[call]()
    assert time.monotonic() - began < SECONDS + 3.5  # the connect timeout is at least two seconds
    assert caught.value.code == ("OUTCOME_UNKNOWN" if call == "write" else "STORE_UNAVAILABLE")
    assert names(store) == ["first"]


@pytest.mark.spec("P29")
def test_after_a_lost_reply_no_error_says_that_nothing_was_stored(
    tenant_url: str, proxy: Proxy, store: PostgresStore
) -> None:
    """The server stored it and is unreachable now: with a key, too, the outcome is unknown."""
    put(store, "before", keyed=False)
    with proxy.cutting("reply", "reset", at=APPEND) as cut:
        real = proxy.at

        def at(where: Where, sent: bytes) -> object:
            fired = real(where, sent)
            if fired:
                cut.where, cut.times, cut.at = "connect", 10_000, b""
            return fired

        proxy.at = at  # pyright: ignore[reportAttributeAccessIssue] -- after it has fired no connection is accepted
        with pytest.raises(OutcomeUnknown):
            put(store, "kept", keyed=True)
        assert cut.fired > 2
    assert put(store, "kept", keyed=True).repeated
    assert ask(census, url=tenant_url) == ["first", "before", "kept"]


@pytest.mark.spec("P29", "M40")
def test_an_import_is_stored_completely_or_not_and_only_its_commit_can_be_unknown(
    tenant_url: str, proxy: Proxy, store: PostgresStore
) -> None:
    with proxy.cutting("reply", "reset", at="COPY"), pytest.raises(StoreUnavailable):
        adopt(store, "resource/eve")
    assert ask(census, url=tenant_url, stream="resource/eve") == []
    with proxy.cutting("reply", "reset", at="COMMIT"), pytest.raises(OutcomeUnknown):
        adopt(store, "resource/eve")
    assert len(ask(census, url=tenant_url, stream="resource/eve")) == 3


def cut_at_random(url: str, proxy: Proxy, *, times: int) -> None:
    """Acknowledged events are stored once, refused ones are not stored."""
    rng, store = seeded_random(), PostgresStore.open(proxy.url, seconds=SECONDS)
    acknowledged: list[str] = []
    refused: list[str] = []
    unknown: list[str] = []
    for number in range(times):
        where: Where = rng.choice(["connect", "before", "after", "reply"])
        how: How = rng.choice(["closed", "reset"])
        name, keyed = f"n-{number}", rng.random() < 0.5
        if where == "connect":
            proxy.drop(rng.choice(["closed", "reset"]))
        at = "" if where == "connect" else rng.choice([APPEND, "SELECT"])
        try:
            with proxy.cutting(where, how, at=at, times=rng.choice([1, 1, 2])):
                put(store, name, keyed=keyed)
            acknowledged.append(name)
        except OutcomeUnknown:
            unknown.append(name)
        except StoreError:
            refused.append(name)
    store.close()
    names_stored = ask(census, url=url)
    assert len(names_stored) == len(set(names_stored)), "an event is stored twice"
    assert set(acknowledged) <= set(names_stored)
    assert not set(refused) & set(names_stored)
    assert set(names_stored) <= {*acknowledged, *unknown}
    print(f"{times} cuts: {len(acknowledged)} acknowledged, {len(refused)} refused, {len(unknown)} unknown")


@pytest.mark.spec("P29")
def test_random_cuts_lose_and_duplicate_nothing(tenant_url: str, proxy: Proxy) -> None:
    cut_at_random(tenant_url, proxy, times=25)


@pytest.mark.torture
@pytest.mark.spec("P29")
def test_many_random_cuts_lose_and_duplicate_nothing(tenant_url: str, proxy: Proxy) -> None:
    cut_at_random(tenant_url, proxy, times=2_000)


@pytest.mark.spec("K25")
def test_the_same_key_in_another_tenant_is_another_key(tenants: Tenants, tenant_url: str) -> None:
    with tenants.fresh() as other:
        answers: list[AppendResult] = []
        for url in (tenant_url, other):
            store = PostgresStore.open(url)
            answers.append(put(store, "one", keyed=True))
            store.close()
        assert [answer.repeated for answer in answers] == [False, False]
        assert ask(census, url=other) == ["one"]

"""`wrap`: the client that a host already has, and memory in every conversation it holds.

Whichever way a host asks for a reply (`create`, `parse`, `stream`, their beta forms), the client turns it into a POST
to one of three addresses, by the one method that all of its resources share. That is where memory stands. So the host
keeps its client's own class, types and helpers, and there is one way in to watch instead of a dozen, those of later
versions included. Everything else that a client does goes past here untouched: models, files, embeddings, batches,
and conversations that are not held by POST (realtime, the websocket of `responses.connect`).
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, TypeVar

from inmind.core.json import is_object
from inmind.errors import InvalidInput
from inmind.integrations.wrap.call_loop import ENDPOINTS, Endpoint, Exchange
from inmind.integrations.wrap.hidden_rounds import Rounds
from inmind.integrations.wrap.stream import AsyncStreamed, Streamed
from inmind.memory.aio.session import AsyncSession
from inmind.session.session import Session

_CONVERSATIONS = ("chat", "responses", "messages")
_RAW = "X-Stainless-Raw-Response"
"""How `with_raw_response` and `with_streaming_response` tell the client not to read the reply."""

C = TypeVar("C")


def wrap(client: C, session: Session | AsyncSession) -> C:
    """The same client with working memory: what it sends is prepared by the session, and what comes back recorded.

    OpenAI's or Anthropic's, or one made like them; sync or async, and an async one takes sessions of both kinds. Calls
    of memory tools are carried out on the way, in as many rounds as they need, and the host sees one reply without
    them. The host goes on keeping its own list of messages. The client given is not changed, and shares its connections
    with the one that is answered.
    """
    if not isinstance(session, Session | AsyncSession):  # pyright: ignore[reportUnnecessaryIsInstance] -- hosts are not all typed
        raise InvalidInput(field="session", value=session, expected="a Session")
    # Looked for on the class: on the client they would be made, which takes a while and is not needed yet.
    has = {*dir(type(client)), *getattr(client, "__dict__", ())}
    if has.isdisjoint(_CONVERSATIONS) or not all(callable(getattr(client, name, None)) for name in ("post", "copy")):
        raise InvalidInput(field="client", value=client, expected="a client of OpenAI or Anthropic, sync or async")
    if isinstance(getattr(client, "post", None), Remembering | AsyncRemembering):
        raise InvalidInput(field="client", value=client, expected="a client that has no memory yet")
    if inspect.iscoroutinefunction(getattr(client, "post", None)):
        awaited = session if isinstance(session, AsyncSession) else AsyncSession(session)
        return _remembering(client, partial(AsyncRemembering, session=awaited, rounds=Rounds()))
    if isinstance(session, AsyncSession):
        raise InvalidInput(field="session", value=session, expected="its `sync`: this client does not await")
    return _remembering(client, partial(Remembering, session=session, rounds=Rounds()))


def _remembering(client: Any, with_memory: Callable[[Callable[..., Any]], Remembering | AsyncRemembering]) -> Any:
    twin = client.copy()
    twin.post = with_memory(twin.post)
    twin.copy = twin.with_options = lambda **options: _remembering(client.copy(**options), with_memory)  # pyright: ignore[reportUnknownLambdaType] -- the client's own
    # Some clients make their resources with themselves, and a resource keeps the `post` that it was made with.
    made: dict[str, Any] = {**twin.__dict__}
    for name, resource in made.items():
        if getattr(resource, "_client", None) is twin:
            setattr(twin, name, type(resource)(twin))
    return twin


class Remembering:
    """A client's `post`, with memory."""

    def __init__(self, post: Callable[..., Any], session: Session, rounds: Rounds) -> None:
        self._post, self._session, self._rounds = post, session, rounds

    def __call__(self, path: str, **asked: Any) -> Any:
        exchange, asked = _exchange(self._session, self._rounds, path, asked)
        if exchange is None:
            return self._post(path, **asked)

        def ask() -> Any:
            return self._post(path, **{**asked, "body": exchange.request()})

        reply = ask()
        if asked.get("stream"):
            return Streamed(exchange, reply, ask)
        while exchange.goes_on(reply):
            reply = ask()
        return exchange.shown()


class AsyncRemembering:
    """The same, awaited."""

    def __init__(self, post: Callable[..., Awaitable[Any]], session: AsyncSession, rounds: Rounds) -> None:
        self._post, self._session, self._rounds = post, session, rounds

    async def __call__(self, path: str, **asked: Any) -> Any:
        exchange, asked = _exchange(self._session.sync, self._rounds, path, asked)
        if exchange is None:
            return await self._post(path, **asked)

        async def ask() -> Any:
            return await self._post(path, **{**asked, "body": await self._session.run_in_thread(exchange.request)})

        reply = await ask()
        if asked.get("stream"):
            return AsyncStreamed(exchange, reply, ask, partial(self._session.run_in_thread, exchange.streams_on))
        while await self._session.run_in_thread(exchange.goes_on, reply):
            reply = await ask()
        return exchange.shown()


def _exchange(
    session: Session, rounds: Rounds, path: str, asked: dict[str, Any]
) -> tuple[Exchange | None, dict[str, Any]]:
    """The conversation that a POST is about, if it is about one; and the POST without what went into that."""
    body = asked.get("body")
    endpoint = _endpoint(path.partition("?")[0], body) if is_object(body) else None
    if endpoint is None or not is_object(body):
        return None, asked
    options = dict(asked.get("options") or {})
    if _RAW in (options.get("headers") or {}):
        expected = "a call without it: memory has to read the reply"
        raise InvalidInput(field="with_raw_response or with_streaming_response", value=path, expected=expected)
    # What a host gives as `extra_body` takes the place of arguments, so memory must see it as one.
    extra: dict[str, Any] = options.pop("extra_json", None) or {}
    # What the client would make of the reply, it makes of all rounds together: one of them is not what was asked for.
    parse = None if asked.get("stream") else options.pop("post_parser", None)
    return Exchange(session, rounds, endpoint, {**body, **extra}, parse), {**asked, "options": options}


def _endpoint(path: str, body: dict[str, Any]) -> Endpoint | None:
    """A list of messages is what makes a conversation: one message is posted to an address that ends like that too."""
    endpoint = next((endpoint for end, endpoint in ENDPOINTS.items() if path.endswith(end)), None)
    if endpoint is None or (endpoint.messages == "messages" and "messages" not in body):
        return None
    return endpoint

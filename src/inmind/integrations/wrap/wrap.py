"""`wrap`: working memory in every conversation of an existing client.

All methods that a host can use (`create`, `parse`, `stream`, their beta forms) send a POST to one of three paths,
through one method that all resources of the client share. Memory replaces that method. So the host keeps its client's
class, types and helpers, and new methods of later versions work too. Everything else is passed through: models, files,
embeddings, batches, and conversations that do not use POST (realtime, the websocket of `responses.connect`).

The stream that a host gets with `stream=True`, over all rounds of a call, has the interface of the client's stream:
iteration, context manager, `close`, and other attributes of the stream of the current round. A stream that is closed
early or fails is recorded up to its last complete round. The generators hold no reference to the object that the host
has. So when the host drops that object, the connection is released at once.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Self, TypeVar

from inmind.core.json import is_object
from inmind.errors import InvalidInput
from inmind.integrations.wrap.call_loop import ENDPOINTS, ApiEndpoint, CallLoop
from inmind.integrations.wrap.hidden_rounds import HiddenRounds
from inmind.memory.aio import AsyncSession
from inmind.session.session import Session

_RESOURCES = ("chat", "responses", "messages")
_RAW = "X-Stainless-Raw-Response"
"""Header by which `with_raw_response` and `with_streaming_response` tell the client not to parse the reply."""

C = TypeVar("C")


def wrap(client: C, session: Session | AsyncSession) -> C:
    """Return a copy of the client with working memory.

    Its requests are prepared and its replies recorded.

    The client is one of OpenAI or Anthropic, or compatible; sync or async. An async client takes both kinds of
    sessions. Memory tools run on the way, in as many rounds as they need, and the host sees one reply without them. The
    host keeps its own list of messages. The given client is not changed; both share their connections.
    """
    if not isinstance(session, Session | AsyncSession):  # pyright: ignore[reportUnnecessaryIsInstance] -- hosts are not all typed
        raise InvalidInput(field="session", value=session, expected="a Session")
    # Checked on the class: on the client these attributes would be created, which takes time.
    attributes = {*dir(type(client)), *getattr(client, "__dict__", ())}
    if attributes.isdisjoint(_RESOURCES) or not all(callable(getattr(client, name, None)) for name in ("post", "copy")):
        raise InvalidInput(field="client", value=client, expected="a client of OpenAI or Anthropic, sync or async")
    if isinstance(getattr(client, "post", None), PostWithMemory | AsyncPostWithMemory):
        raise InvalidInput(field="client", value=client, expected="a client that is not wrapped yet")
    if inspect.iscoroutinefunction(getattr(client, "post", None)):
        async_session = session if isinstance(session, AsyncSession) else AsyncSession(session)
        return _with_memory(client, partial(AsyncPostWithMemory, session=async_session, rounds=HiddenRounds()))
    if isinstance(session, AsyncSession):
        raise InvalidInput(field="session", value=session, expected="session.sync: this client is not async")
    return _with_memory(client, partial(PostWithMemory, session=session, rounds=HiddenRounds()))


def _with_memory(client: Any, with_memory: Callable[[Callable[..., Any]], PostWithMemory | AsyncPostWithMemory]) -> Any:
    wrapped = client.copy()
    wrapped.post = with_memory(wrapped.post)
    wrapped.copy = wrapped.with_options = lambda **options: _with_memory(client.copy(**options), with_memory)  # pyright: ignore[reportUnknownLambdaType] -- the client's own
    # Some clients create their resources at once, and a resource keeps the `post` that it was created with.
    attributes: dict[str, Any] = {**wrapped.__dict__}
    for name, resource in attributes.items():
        if getattr(resource, "_client", None) is wrapped:
            setattr(wrapped, name, type(resource)(wrapped))
    return wrapped


class PostWithMemory:
    """The `post` method of a client, with memory."""

    def __init__(self, post: Callable[..., Any], session: Session, rounds: HiddenRounds) -> None:
        self._post, self._session, self._rounds = post, session, rounds

    def __call__(self, path: str, **arguments: Any) -> Any:
        loop, arguments = _call_loop(self._session, self._rounds, path, arguments)
        if loop is None:
            return self._post(path, **arguments)

        def send() -> Any:
            return self._post(path, **{**arguments, "body": loop.request()})

        reply = send()
        if arguments.get("stream"):
            current = CurrentStream(reply)
            return ReplyStream(current, _visible_chunks(loop, current, send))
        while loop.needs_next_round(reply):
            reply = send()
        return loop.visible_reply()


class AsyncPostWithMemory:
    """The async `post` method of a client, with memory."""

    def __init__(self, post: Callable[..., Awaitable[Any]], session: AsyncSession, rounds: HiddenRounds) -> None:
        self._post, self._session, self._rounds = post, session, rounds

    async def __call__(self, path: str, **arguments: Any) -> Any:
        loop, arguments = _call_loop(self._session.sync, self._rounds, path, arguments)
        if loop is None:
            return await self._post(path, **arguments)

        async def send() -> Any:
            return await self._post(path, **{**arguments, "body": await self._session.run_in_thread(loop.request)})

        reply = await send()
        if arguments.get("stream"):
            current = CurrentStream(reply)
            return AsyncReplyStream(current, _visible_chunks_async(loop, current, send, self._session.run_in_thread))
        while await self._session.run_in_thread(loop.needs_next_round, reply):
            reply = await send()
        return loop.visible_reply()


def _call_loop(
    session: Session, rounds: HiddenRounds, path: str, arguments: dict[str, Any]
) -> tuple[CallLoop | None, dict[str, Any]]:
    """The loop for a POST that continues a conversation, or None, and the remaining arguments."""
    body = arguments.get("body")
    endpoint = _endpoint(path.partition("?")[0], body) if is_object(body) else None
    if endpoint is None or not is_object(body):
        return None, arguments
    options = dict(arguments.get("options") or {})
    if _RAW in (options.get("headers") or {}):
        expected = "a call without it: memory has to parse the reply"
        raise InvalidInput(field="with_raw_response or with_streaming_response", value=path, expected=expected)
    # `extra_body` overrides arguments, so memory must see it with them.
    extra: dict[str, Any] = options.pop("extra_json", None) or {}
    # The client's parser gets the combined reply of all rounds, not the reply of one round.
    parse = None if arguments.get("stream") else options.pop("post_parser", None)
    return CallLoop(session, rounds, endpoint, {**body, **extra}, parse), {**arguments, "options": options}


def _endpoint(path: str, body: dict[str, Any]) -> ApiEndpoint | None:
    """The endpoint of a path.

    Without a list of messages it is another endpoint whose path ends in the same way.
    """
    endpoint = next((endpoint for end, endpoint in ENDPOINTS.items() if path.endswith(end)), None)
    if endpoint is None or (endpoint.messages == "messages" and "messages" not in body):
        return None
    return endpoint


@dataclass(slots=True)
class CurrentStream:
    """The client's stream of the current round."""

    stream: Any


class _WrappedStream:
    """Everything that a stream has beside its chunks is that of the current round."""

    def __init__(self, current: CurrentStream, chunks: Any) -> None:
        self._round, self._chunks = current, chunks

    def __getattr__(self, name: str) -> Any:
        return getattr(self._round.stream, name)

    def close(self) -> Any:
        """Close the client's stream; an async one returns an awaitable."""
        return self._round.stream.close()


class ReplyStream(_WrappedStream):
    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        return next(self._chunks)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class AsyncReplyStream(_WrappedStream):
    aclose = _WrappedStream.close

    def __aiter__(self) -> AsyncIterator[Any]:
        return self

    async def __anext__(self) -> Any:
        return await anext(self._chunks)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


def _visible_chunks(loop: CallLoop, current: CurrentStream, send: Callable[[], Any]) -> Iterator[Any]:
    try:
        while True:
            for chunk in current.stream:
                yield from loop.add_chunk(chunk)
            if not loop.stream_needs_next_round():
                break
            current.stream = send()
        yield from loop.end()
    finally:
        if not sys.is_finalizing():  # at interpreter exit the connection may be gone already
            current.stream.close()


async def _visible_chunks_async(
    loop: CallLoop,
    current: CurrentStream,
    send: Callable[[], Awaitable[Any]],
    run_in_thread: Callable[..., Awaitable[Any]],
) -> AsyncIterator[Any]:
    try:
        while True:
            async for chunk in current.stream:
                for visible in loop.add_chunk(chunk):
                    yield visible
            if not await run_in_thread(loop.stream_needs_next_round):
                break
            current.stream = await send()
        for visible in loop.end():
            yield visible
    finally:
        await current.stream.close()

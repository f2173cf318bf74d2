"""One call of the host's, which takes as many rounds with the provider as memory's own tools need.

It knows what to send next, what to do with what came, and when the host gets its answer; it sends nothing itself. So
it is written once for clients that wait and for clients that are awaited.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from inmind.clients.rounds import completed
from inmind.clients.shown import AnthropicShowing, ChatShowing, ResponsesShowing, Showing
from inmind.clients.shown.showing import Hidden
from inmind.errors import InvalidInput
from inmind.prompt.formats import FORMATS
from inmind.prompt.formats.parts import Format, Opaque, Wire
from inmind.prompt.formats.values import is_list, is_object, plain
from inmind.prompt.replies import read_reply
from inmind.session import Session
from inmind.tools import whose

MOST_ROUNDS = 16
"""A model that goes on calling its memory and says nothing is stopped here, and the host gets what there is."""

_ONE_HISTORY = "none: the session holds the conversation, and the provider cannot hold another beside it"


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """Where a provider is asked to go on with a conversation, and what it calls the parts of one."""

    format: str
    messages: str = "messages"
    system: str = ""
    showing: Callable[[Hidden], Showing]
    only: Mapping[str, tuple[object, str]] = field(default_factory=dict[str, tuple[object, str]])
    """Arguments that memory cannot do with but at one value, and why."""


ENDPOINTS = {
    "/chat/completions": Endpoint(
        format="openai",
        showing=ChatShowing,
        only={"n": (1, "1: a conversation goes on from one reply")},
    ),
    "/responses": Endpoint(
        format="responses",
        messages="input",
        system="instructions",
        showing=ResponsesShowing,
        only={
            "previous_response_id": (None, _ONE_HISTORY),
            "conversation": (None, _ONE_HISTORY),
            "background": (False, "False: memory takes the reply in as it comes"),
        },
    ),
    "/v1/messages": Endpoint(
        format="anthropic",
        system="system",
        showing=AnthropicShowing,
        only={"thread": (False, _ONE_HISTORY)},
    ),
}


class Exchange:
    def __init__(self, session: Session, endpoint: Endpoint, body: Mapping[str, Any]) -> None:
        for name, (fitting, expected) in endpoint.only.items():
            value = _given(body.get(name))
            if value is not None and value != fitting:
                raise InvalidInput(field=name, value=value, expected=expected)
        self._session, self._spoken = session, FORMATS[endpoint.format]
        self._messages: Any = _listed(body.get(endpoint.messages))
        self._system: Any = _listed(body.get(endpoint.system))
        self._tools: Any = _listed(body.get("tools"))
        if endpoint.messages == "input" and isinstance(self._messages, str):
            self._messages = [{"role": "user", "content": self._messages}]
        taken = (endpoint.messages, endpoint.system, "tools")
        self._rest = {name: value for name, value in body.items() if name not in taken}
        self._hidden = _answered_here(self._tools)
        self._showing = endpoint.showing(self._hidden)
        self._rounds = 0
        self._chunks: list[Any] = []
        self._failed = False

    def request(self) -> dict[str, Any]:
        """What to send in the next round.

        The list is given to every round: a session may be talked to from several threads, and what it holds when this
        call goes on is then not what this call is about.
        """
        if self._rounds == 0 and is_list(self._messages):
            self._messages = completed(self._session.mind.line, self._messages, self._spoken, self._hidden)
        prompt = self._session.prepare(self._messages, system=self._system, tools=self._tools, format=self._spoken.name)
        return {**self._rest, **prompt.request}

    def goes_on(self, reply: Any) -> bool:
        """Take a reply in. Where it asks for nothing but memory, the model has answers to hear, in another round."""
        if self._failed or self._showing.is_failure(reply):
            return False
        read = read_reply(reply, format=self._spoken.name)
        recorded = self._session.record(read)
        self._rounds += 1
        if not recorded.results or recorded.host_calls or self._rounds == MOST_ROUNDS:
            return False
        if _asks_host(read.wires, self._spoken):
            return False
        if self._messages is not None:
            self._messages = [*self._messages, *read.wires, *recorded.results]
        return True

    def shown(self, reply: Any) -> Any:
        """The last reply as the host gets it."""
        return self._showing.whole(reply)

    def take(self, chunk: Any) -> list[Any]:
        """One chunk of a reply, and what the host may see now."""
        self._chunks.append(chunk)
        self._failed = self._failed or self._showing.is_failure(chunk)
        return self._showing.take(chunk)

    def streams_on(self) -> bool:
        """The chunks so far are a reply; `goes_on` for that one."""
        chunks, self._chunks = self._chunks, []
        if not self.goes_on(chunks):
            return False
        self._showing.next_round()
        return True

    def end(self) -> list[Any]:
        """What ends the stream that the host sees. By now its reply is in the journal."""
        return self._showing.end()


def _asks_host(said: Sequence[Wire], spoken: Format) -> bool:
    """Does it call a tool of the provider's that the host runs, a computer or a shell? Only the host can read that."""
    parts = (part for wire in said for part in spoken.read(wire).parts)
    return any(isinstance(part, Opaque) and part.kind in spoken.demands.opaque_calls for part in parts)


def _given(value: Any) -> Any:
    """None for what a client puts in the place of an argument that was not given. It is known by the name of its class:
    the client is not ours to import."""
    return None if type(value).__name__ in ("NotGiven", "Omit") else value


def _listed(value: Any) -> Any:
    """Clients take any iterable where they want a list. What is none is refused where it is looked at."""
    value = _given(value)
    return list(value) if isinstance(value, Iterable) and not isinstance(value, str | dict) else value  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType] -- a host's own


def _answered_here(tools: Any) -> Hidden:
    """Whose calls a host is not shown: memory's, and those of tools that nobody has where the host has named all."""
    named = [plain(tool, "tools") for tool in tools] if is_list(tools) else []
    theirs = [tool for tool in named if is_object(tool)]  # what is none is refused when the call is prepared
    return lambda name: whose(name, theirs, lambda: False) != "host"

"""One call of the host's, which takes as many rounds with the provider as memory's own tools need.

It knows what to send next, what to do with what came, and when the host gets its answer; it sends nothing itself. So
it is written once for clients that wait and for clients that are awaited.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from typing import Any

from inmind.core.frozen import frozen
from inmind.core.json import is_list, plain
from inmind.core.messages import FORMATS
from inmind.core.messages.model import Format, Opaque, Wire
from inmind.core.messages.replies import Reply, read_as_far_as_it_came, read_reply
from inmind.core.messages.replies.reply import peek
from inmind.errors import InvalidInput
from inmind.history import Conversation
from inmind.integrations.wrap.hidden_rounds import Rounds
from inmind.integrations.wrap.request_merge import (
    Body,
    with_free_choice,
    with_functions,
    with_room_for_its_mark,
    without_what_is_not_kept,
)
from inmind.integrations.wrap.visible import AnthropicShowing, ChatShowing, ResponsesShowing, Showing
from inmind.integrations.wrap.visible.base import Hidden
from inmind.prompt.ingest import PrepareInput, tool_names
from inmind.session.session import Session
from inmind.session.tools.registry import adds_tools, route_call

log = logging.getLogger("inmind")

MOST_ROUNDS = 16
"""A model that goes on calling its memory and says nothing is stopped here, and the host gets what there is."""

_ONE_HISTORY = "the session holds the conversation, and the provider cannot hold another beside it"
_FORMS = ("json_schema", "json_object")


@frozen(kw_only=True)
class Endpoint:
    """Where a provider is asked to go on with a conversation, and what it calls the parts of one."""

    format: str
    messages: str = "messages"
    system: str = ""
    form: Callable[[Mapping[str, Any]], Any]
    """What the host says of the form that it wants the words in."""
    showing: Callable[[Hidden, Any], Showing]
    fitted: Callable[[Body, Mapping[str, Any]], Body]
    """What is sent, and what the host gave, as a request that the provider takes."""
    only: Mapping[str, tuple[object, str]] = field(default_factory=dict[str, tuple[object, str]])
    """Arguments that memory cannot do with but at one value, and why."""


ENDPOINTS = {
    "/chat/completions": Endpoint(
        format="openai",
        form=lambda body: body.get("response_format"),
        showing=ChatShowing,
        fitted=with_functions,
        only={"n": (1, "1: a conversation goes on from one reply")},
    ),
    "/responses": Endpoint(
        format="responses",
        messages="input",
        system="instructions",
        form=lambda body: peek(body.get("text"), "format"),
        showing=ResponsesShowing,
        fitted=without_what_is_not_kept,
        only={
            "previous_response_id": (None, f"none: {_ONE_HISTORY}"),
            "conversation": (None, f"none: {_ONE_HISTORY}"),
            "background": (False, "False: memory takes the reply in as it comes"),
        },
    ),
    "/messages": Endpoint(
        format="anthropic",
        system="system",
        form=lambda body: peek(body.get("output_config"), "format"),
        showing=AnthropicShowing,
        fitted=with_room_for_its_mark,
        only={"thread": (False, f"False (pass thread=False): {_ONE_HISTORY}")},
    ),
}
"""By how their addresses end: what stands before that is the server's own."""


class Exchange:
    """`parse`: what the client makes of a reply that was not streamed, for a host that wants more than the reply."""

    def __init__(
        self,
        session: Session,
        rounds: Rounds,
        endpoint: Endpoint,
        body: Mapping[str, Any],
        parse: Callable[[Any], Any] | None = None,
    ) -> None:
        for name, (fitting, expected) in endpoint.only.items():
            value = _given(body.get(name))
            if value is not None and value != fitting:
                raise InvalidInput(field=name, value=value, expected=expected)
        self._session, self._rounds, self._endpoint, self._parse = session, rounds, endpoint, parse
        self._format = FORMATS[endpoint.format]
        self._messages: Any = _listed(body.get(endpoint.messages))
        self._system: Any = _listed(body.get(endpoint.system))
        self._tools: Any = _listed(body.get("tools"))
        if endpoint.messages == "input" and isinstance(self._messages, str):
            self._messages = [{"role": "user", "content": self._messages}]
        taken = (endpoint.messages, endpoint.system, "tools")
        self._rest = {name: value for name, value in body.items() if name not in taken}
        self._owners = _Owners()
        self._showing = endpoint.showing(self._is_hidden, None)
        self._number = 0
        self._call: int | None = None
        self._formed = peek(endpoint.form(body), "type") in _FORMS
        self._last_only = False
        self._held: list[Any] = []
        self._chunks: list[Any] = []
        self._failed = False
        self._reply: Any = None

    def request(self) -> Body:
        """What to send in the next round.

        The list is given to every round: a session may be talked to from several threads, and what it holds when this
        call goes on is then not what this call is about.
        """
        if self._number == 0 and is_list(self._messages):
            given = PrepareInput.of(self._messages, self._system, self._tools, self._format)
            said = self._rounds.put_back(
                self._session.state.conversation, given.wires or (), self._format, lead=given.system_count
            )
            self._messages = [*self._messages[: given.system_count], *said]
        prompt = self._session.prepare(self._messages, system=self._system, tools=self._tools, format=self._format.name)
        self._call = prompt.call
        self._owners = self._owners_of(prompt.tools or ())
        # Words in a form are meant for a parser: those of the last round, and no others. Until it is over, nobody knows
        # that a round is the last.
        self._last_only = self._formed and self._owners.may_hide()
        theirs = {"messages": self._messages, "system": self._system, "tools": self._tools}
        body = self._endpoint.fitted({**self._rest, **prompt.request}, {**self._rest, **theirs})
        return with_free_choice(body, self._is_hidden) if self._number else body

    def goes_on(self, reply: Any) -> bool:
        """Take a reply in. Where it asks for nothing but memory, the model has answers to hear, in another round."""
        failed = self._showing.is_failure(reply)
        goes_on = not failed and self._asks_memory_alone(read_reply(reply, format=self._format.name))
        self._reply = self._showing.whole(reply)
        if goes_on:
            self._begin_next()
        return goes_on

    def shown(self) -> Any:
        """The reply as the host gets it."""
        if self._parse is None:
            return self._reply
        parsed = self._parse(self._reply)
        for name in ("_request_id", "_workspace_id"):  # the client names replies by what their headers say
            if hasattr(self._reply, name):
                setattr(parsed, name, getattr(self._reply, name))
        return parsed

    def take(self, chunk: Any) -> list[Any]:
        """One chunk of a reply, and what the host may see now."""
        self._chunks.append(chunk)
        self._failed = self._failed or self._showing.is_failure(chunk)
        shown = self._showing.take(chunk)
        if not self._last_only:
            return shown
        self._held += shown
        return []

    def streams_on(self) -> bool:
        """The chunks so far are a reply; `goes_on` for that one.

        The host has heard them by now: where the end is missing, that is no reason to raise, nor to forget them.
        """
        chunks, self._chunks = self._chunks, []
        read = None if self._failed else read_as_far_as_it_came(chunks, format=self._format.name)
        goes_on = read is not None and self._asks_memory_alone(read)
        if goes_on:
            self._begin_next()
        return goes_on

    def end(self) -> list[Any]:
        """What ends the stream that the host sees. By now its reply is in the journal."""
        return [*self._held, *self._showing.end()]

    def _asks_memory_alone(self, reply: Reply) -> bool:
        """Record a reply. One that was cut is the host's to go on from."""
        recorded = self._session.record(reply, call=self._call)
        self._number += 1
        if not recorded.results or recorded.host_calls or not recorded.complete:
            return False
        if self._number == MOST_ROUNDS:
            log.warning("%s: %d rounds of memory alone: the host gets what there is", self._session.id, MOST_ROUNDS)
            return False
        if _asks_host(reply.wires, self._format):
            return False
        if self._messages is not None:
            self._messages = [*self._messages, *reply.wires, *recorded.results]
        return True

    def _begin_next(self) -> None:
        if self._last_only:
            self._showing, self._held = self._endpoint.showing(self._is_hidden, self._showing.paid), []
        else:
            self._showing.next_round()

    def _is_hidden(self, name: str) -> bool:
        return self._owners.is_hidden(name)

    def _owners_of(self, sent: Sequence[Wire]) -> _Owners:
        """By the tools of the prompt that was just prepared; with the journal's own history, its own if none came."""
        state = self._session.state
        theirs = state.prompt.tools if self._messages is None and self._tools is None else self._tools
        told = None if theirs is None else [plain(tool, "tools") for tool in theirs]
        return _Owners(theirs=told, sent=sent, line=state.conversation, remembers=self._session.memory_tools)


@frozen(kw_only=True)
class _Owners:
    """Whose calls the host is not shown: memory's, and those of tools that nobody has where the host has told all."""

    theirs: Sequence[Wire] | None = None
    sent: Sequence[Wire] = ()
    """All tools of the prompt, the host's and memory's."""
    line: Conversation = field(default_factory=Conversation)
    remembers: bool = True

    def is_hidden(self, name: str) -> bool:
        return (
            route_call(name, self.theirs, self._were_added, layer_tools=self.sent, memory_tools=self.remembers)
            != "host"
        )

    def may_hide(self) -> bool:
        """Can there be a call that the host is not shown: of a tool that was sent, or of one that there is not?"""
        return bool(self.sent) and any(map(self.is_hidden, [*tool_names(self.sent), "no tool"]))

    def _were_added(self) -> bool:
        return adds_tools(FORMATS[entry.format].read(entry.wire) for entry in self.line)


def _asks_host(said: Sequence[Wire], fmt: Format) -> bool:
    """Does it ask what only the host can answer: for a tool of the provider's that it runs, for its consent?"""
    parts = [part for wire in said for part in fmt.read(wire).parts if isinstance(part, Opaque)]
    return not {part.asks for part in parts} <= {"", *(part.answers for part in parts)}


def _given(value: Any) -> Any:
    """None for what a client puts in the place of an argument that was not given. It is known by the name of its class:
    the client is not ours to import."""
    return None if type(value).__name__ in ("NotGiven", "Omit") else value


def _listed(value: Any) -> Any:
    """Clients take any iterable where they want a list. What is none is refused where it is looked at."""
    value = _given(value)
    return list(value) if isinstance(value, Iterable) and not isinstance(value, str | dict) else value  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType] -- a host's own

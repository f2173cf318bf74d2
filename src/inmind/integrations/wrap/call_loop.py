"""One call of the host, in as many rounds with the provider as memory tools need.

`CallLoop` decides which request follows, handles each reply, and decides when the host gets its answer. It sends
nothing itself, so sync and async clients share it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from functools import reduce
from typing import Any

from inmind.core.frozen import frozen
from inmind.core.json import is_list, peek, to_plain
from inmind.core.messages import FORMATS, read_partial_reply, read_reply
from inmind.core.messages.cache_control import (
    OwnCacheMark,
    has_own_mark,
    own_mark_before,
    remaining_marks,
    replace_own_marks,
)
from inmind.core.messages.format import Format
from inmind.core.messages.model import Opaque, Reply, Wire, without_id
from inmind.core.messages.responses import SELF_CONTAINED
from inmind.errors import InvalidInput
from inmind.history.history import Conversation
from inmind.history.sync import last_reply_id
from inmind.integrations.wrap.hidden_rounds import HiddenRounds
from inmind.integrations.wrap.visible import (
    AnthropicVisibleReply,
    IsHidden,
    OpenAIVisibleReply,
    ResponsesVisibleReply,
    VisibleReply,
)
from inmind.prompt.ingest import PrepareInput, tool_names
from inmind.session.session import Session
from inmind.session.tools.registry import adds_tools, route_call

log = logging.getLogger("inmind")

MAX_ROUNDS = 16
"""A model that only calls memory tools is stopped after this many rounds."""

_JSON_FORMATS = ("json_schema", "json_object")


Body = dict[str, Any]


@frozen(kw_only=True)
class ApiEndpoint:
    """An endpoint of a provider that continues a conversation, and the names of its arguments."""

    format: str
    messages: str = "messages"
    system: str = ""
    output_format: tuple[str, ...]
    """Path of the argument with the output format that the host asks for."""
    visible_reply: Callable[[IsHidden, Any], VisibleReply]
    adapt_request: Callable[[Body, Mapping[str, Any]], Body]
    """Combines the request to send with the host's arguments, as the provider accepts them."""
    thread_arguments: tuple[str, ...] = ()
    """Arguments that name a thread at the provider. The first names a reply, which the next round replaces."""
    allowed_values: Mapping[str, tuple[object, str]] = field(default_factory=dict[str, tuple[object, str]])
    """Arguments for which memory supports only one value, with the text of the error."""


def adapt_chat_request(body: Body, host_arguments: Mapping[str, Any]) -> Body:
    """Drop memory tools if the host uses `functions`, the older form.

    The two cannot be combined.
    """
    if not host_arguments.get("functions"):
        return body
    rest = {name: value for name, value in body.items() if name != "tools"}
    return {**rest, "tools": host_arguments["tools"]} if host_arguments.get("tools") else rest


def adapt_responses_request(body: Body, host_arguments: Mapping[str, Any]) -> Body:
    """With `store=False`, send items in full.

    The provider has not stored them and cannot resolve ids.
    """
    if host_arguments.get("store") is not False:
        return body

    def is_reference(item: Wire) -> bool:
        return item.get("type") == "reasoning" and not item.get("encrypted_content")

    return {**body, "input": [_without_stored_id(item) for item in body["input"] if not is_reference(item)]}


def adapt_anthropic_request(body: Body, host_arguments: Mapping[str, Any]) -> Body:
    """Make room for a top-level `cache_control`, which counts like a mark after all messages.

    Our marks get its lifetime. If there are too many marks, one of ours is removed.
    """
    cache_control = to_plain(host_arguments.get("cache_control") or None, "cache_control")
    if cache_control is None:
        return body
    system, messages = body.get("system", []), body["messages"]
    if not remaining_marks(system, messages, body.get("tools", [])):
        # The mark in the messages covers memory too, so of our two marks that one stays.
        if any(map(has_own_mark, system)):
            system = replace_own_marks(system, None)
        else:
            messages = _replace_marks(messages, None)
    own_mark = own_mark_before([{"cache_control": cache_control}])
    if "ttl" in own_mark:
        system, messages = replace_own_marks(system, own_mark), _replace_marks(messages, own_mark)
    return {**body, **({"system": system} if system else {}), "messages": messages}


def relax_tool_choice(body: Body, hidden: Callable[[str], bool]) -> Body:
    """After the first round, relax a tool choice that only memory tools can satisfy.

    Otherwise the model could never answer with text. A choice that the host's tools can satisfy stays.
    """
    tools, relaxed = _forced_tools(to_plain(body.get("tool_choice"), "tool_choice"), body.get("tools", ()))
    # A built-in tool of the provider may have no name. It belongs to the host.
    tool_name_lists = [tool_names([tool]) for tool in tools]
    only_memory = bool(tool_name_lists) and all(names and all(map(hidden, names)) for names in tool_name_lists)
    return {**body, "tool_choice": relaxed} if only_memory else body


def _forced_tools(choice: Any, tools: Sequence[Wire]) -> tuple[Sequence[Wire], Any]:
    """The tools of which one has to be called, if any, and the same choice left to the model."""
    match choice:
        case "required" | "any":
            return tools, "auto"
        case {"type": "tool" | "any"}:
            relaxed = {**{key: value for key, value in choice.items() if key != "name"}, "type": "auto"}
            return [choice] if choice["type"] == "tool" else tools, relaxed
        case {"type": "allowed_tools", "allowed_tools": {"mode": "required"} as allowed}:
            return allowed["tools"], {**choice, "allowed_tools": {**allowed, "mode": "auto"}}
        case {"type": "allowed_tools", "mode": "required"}:
            return choice["tools"], {**choice, "mode": "auto"}
        case {"type": str(kind)} if kind not in ("auto", "none", "allowed_tools"):
            return [choice], "auto"
        case _:
            return (), choice


def _without_stored_id(item: Wire) -> Wire:
    kind = item.get("type") or ("message" if item.get("role") else None)
    return without_id(item) if kind in SELF_CONTAINED else item


def _replace_marks(messages: Sequence[Wire], mark: OwnCacheMark | None) -> list[Wire]:
    return [
        {**message, "content": replace_own_marks(message["content"], mark)} if is_list(message["content"]) else message
        for message in messages
    ]


ENDPOINTS = {
    "/chat/completions": ApiEndpoint(
        format="openai",
        output_format=("response_format",),
        visible_reply=OpenAIVisibleReply,
        adapt_request=adapt_chat_request,
        allowed_values={"n": (1, "1: a conversation continues from one reply")},
    ),
    "/responses": ApiEndpoint(
        format="responses",
        messages="input",
        system="instructions",
        output_format=("text", "format"),
        visible_reply=ResponsesVisibleReply,
        adapt_request=adapt_responses_request,
        allowed_values={"background": (False, "False: memory records the reply as it arrives")},
        thread_arguments=("previous_response_id", "conversation"),
    ),
    "/messages": ApiEndpoint(
        format="anthropic",
        system="system",
        output_format=("output_config", "format"),
        visible_reply=AnthropicVisibleReply,
        adapt_request=adapt_anthropic_request,
        allowed_values={
            "thread": (False, "False (pass thread=False): a thread keeps its first system prompt, which has memory")
        },
    ),
}
"""Endpoints by the end of their paths. The beginning depends on the server."""


class CallLoop:
    """State of one call of the host.

    `parse` is the client's parser for a reply that is not streamed.
    """

    def __init__(
        self,
        session: Session,
        rounds: HiddenRounds,
        endpoint: ApiEndpoint,
        body: dict[str, Any],
        parse: Callable[[Any], Any] | None = None,
    ) -> None:
        for name, (allowed, expected) in endpoint.allowed_values.items():
            value = _without_placeholder(body.get(name))
            if value is not None and value != allowed:
                raise InvalidInput(field=name, value=value, expected=expected)
        self._session, self._rounds, self._endpoint, self._parse = session, rounds, endpoint, parse
        self._format = FORMATS[endpoint.format]
        self._messages: Any = _as_list(body.get(endpoint.messages))
        self._system: Any = _as_list(body.get(endpoint.system))
        self._tools: Any = _as_list(body.get("tools"))
        if endpoint.messages == "input" and isinstance(self._messages, str):
            self._messages = [{"role": "user", "content": self._messages}]
        handled = (endpoint.messages, endpoint.system, "tools")
        self._other_arguments = {name: value for name, value in body.items() if name not in handled}
        self._thread = _thread_id(endpoint, body)
        if self._thread is not None and self._messages is None:
            self._messages = []
        self._host_tools: Sequence[Wire] | None = None
        self._prompt_tools: Sequence[Wire] = ()
        self._conversation = Conversation()
        self._visible = endpoint.visible_reply(self._is_hidden, None)
        self._round_count = 0
        self._call: int | None = None
        self._has_output_format = peek(reduce(peek, endpoint.output_format, body), "type") in _JSON_FORMATS
        self._shows_last_round_only = False
        self._held: list[Any] = []
        self._chunks: list[Any] = []
        self._failed = False
        self._reply: Any = None

    def request(self) -> Body:
        """The request of the next round.

        Every round passes the whole list of messages: several threads may use the session, so its own history may have
        moved on to another call. If the provider holds the messages so far, a round passes only the new ones.
        """
        if self._thread is not None:
            self._set_reply(last_reply_id(self._session.state.conversation, self._thread))
        elif self._round_count == 0 and is_list(self._messages):
            inputs = PrepareInput.of(self._messages, self._system, self._tools, self._format)
            messages = self._rounds.restore(
                self._session.state.conversation, inputs.wires or (), self._format, lead=inputs.system_count
            )
            self._messages = [*self._messages[: inputs.system_count], *messages]
        prompt = self._session.prepare(
            self._messages, system=self._system, tools=self._tools, format=self._format.name, thread=self._thread
        )
        self._call = prompt.call
        self._prompt_tools, self._conversation = prompt.tools or (), self._session.state.conversation
        self._host_tools = self._tools_of_host()
        # Formatted output is meant for a parser, so only the last round may be shown. Whether a round is the last is
        # known only when it is over.
        names = [*tool_names(prompt.tools), "unknown tool"] if prompt.tools else []
        self._shows_last_round_only = self._has_output_format and any(map(self._is_hidden, names))
        host_arguments = {"messages": self._messages, "system": self._system, "tools": self._tools}
        body = self._endpoint.adapt_request(
            {**self._other_arguments, **prompt.request}, {**self._other_arguments, **host_arguments}
        )
        return relax_tool_choice(body, self._is_hidden) if self._round_count else body

    def needs_next_round(self, reply: Any) -> bool:
        """Record a reply.

        Returns True if it only calls memory tools, whose results go to the model in another round.
        """
        is_failure = self._visible.is_failure(reply)
        parsed = None if is_failure else read_reply(reply, format=self._format.name)
        self._reply = self._visible.complete_reply(reply)
        return self._continues_after(parsed)

    def visible_reply(self) -> Any:
        """The reply as the host gets it."""
        if self._parse is None:
            return self._reply
        parsed = self._parse(self._reply)
        for name in ("_request_id", "_workspace_id"):  # set by the client from response headers
            if hasattr(self._reply, name):
                setattr(parsed, name, getattr(self._reply, name))
        return parsed

    def add_chunk(self, chunk: Any) -> list[Any]:
        """Add one chunk of a reply. Returns the chunks that the host may see now."""
        self._chunks.append(chunk)
        self._failed = self._failed or self._visible.is_failure(chunk)
        visible = self._visible.add_chunk(chunk)
        if not self._shows_last_round_only:
            return visible
        self._held += visible
        return []

    def stream_needs_next_round(self) -> bool:
        """The same as `needs_next_round` for the chunks so far.

        The host has seen them, so a missing end is neither an error nor a reason to drop them.
        """
        chunks, self._chunks = self._chunks, []
        return self._continues_after(None if self._failed else read_partial_reply(chunks, format=self._format.name))

    def end(self) -> list[Any]:
        """The last chunks for the host. The reply is in the journal by now."""
        return [*self._held, *self._visible.end()]

    def _continues_after(self, reply: Reply | None) -> bool:
        """Record a reply, and prepare for the next round if there is one. None: the call failed."""
        if reply is None or not self._record_and_check(reply):
            return False
        if self._shows_last_round_only:
            self._visible, self._held = self._endpoint.visible_reply(self._is_hidden, self._visible.usage), []
        else:
            self._visible.next_round()
        return True

    def _record_and_check(self, reply: Reply) -> bool:
        """Record a reply.

        Returns whether another round follows; a reply that was cut off goes to the host.
        """
        recorded = self._session.record(reply, call=self._call)
        self._round_count += 1
        if not recorded.results or recorded.host_calls or not recorded.complete:
            return False
        if self._round_count == MAX_ROUNDS:
            log.warning("%s: stopped after %d rounds of memory tools", self._session.id, MAX_ROUNDS)
            return False
        if _needs_host(reply.wires, self._format):
            return False
        if self._thread is not None:
            self._set_reply(reply.id)
            self._messages = list(recorded.results)
        elif self._messages is not None:
            self._messages = [*self._messages, *reply.wires, *recorded.results]
        return True

    def _set_reply(self, reply_id: str) -> None:
        """Continue the thread from this reply. A conversation keeps its name."""
        argument = self._endpoint.thread_arguments[0]
        if _without_placeholder(self._other_arguments.get(argument)) is not None:
            self._thread = self._other_arguments[argument] = reply_id

    def _is_hidden(self, name: str) -> bool:
        """True if the host does not see calls of a tool: it is of memory, or unknown."""
        route = route_call(
            name,
            self._host_tools,
            lambda: adds_tools(FORMATS[entry.format].read(entry.wire) for entry in self._conversation),
            layer_tools=self._prompt_tools,
            memory_tools=self._session.memory_tools,
        )
        return route != "host"

    def _tools_of_host(self) -> list[Wire] | None:
        """The host's tools; those of the session if the host passes neither messages nor tools."""
        is_unset = self._messages is None and self._tools is None
        tools = self._session.state.prompt.tools if is_unset else self._tools
        return None if tools is None else [to_plain(tool, "tools") for tool in tools]


def _needs_host(wires: Sequence[Wire], fmt: Format) -> bool:
    """True if a reply has requests that only the host can answer, such as approvals."""
    parts = [part for wire in wires for part in fmt.read(wire).parts if isinstance(part, Opaque)]
    return not {part.request_id for part in parts} <= {"", *(part.answered_id for part in parts)}


def _thread_id(endpoint: ApiEndpoint, body: Mapping[str, Any]) -> Any:
    """The id of the reply or conversation at the provider that the host continues.

    None if it continues none.
    """
    values = (_without_placeholder(body.get(name)) for name in endpoint.thread_arguments)
    value = next((value for value in values if value), None)
    return value if value is None or isinstance(value, str) else peek(value, "id")


def _without_placeholder(value: Any) -> Any:
    """None for a client's placeholder for an argument that was not given.

    It is recognized by its class name, because the client cannot be imported here.
    """
    return None if type(value).__name__ in ("NotGiven", "Omit") else value


def _as_list(value: Any) -> Any:
    """A list of any iterable, as clients accept it. Other values are rejected later."""
    value = _without_placeholder(value)
    return list(value) if isinstance(value, Iterable) and not isinstance(value, str | dict) else value  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType] -- a host's own

"""One conversation with a model: prepare, call, record, execute tool calls, repeat.

Every answer is recorded as far as it arrived: a broken stream and an interrupt both leave an answer with a mark at the
cut. A call that was cut or interrupted gets a result that states this, so that no call is without a result. Results of
tools are recorded before they are shown, because showing them can fail.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import closing, suppress
from dataclasses import replace
from itertools import groupby
from operator import attrgetter
from typing import Any, NamedTuple

from inmind.apps.chat.endpoint import ChatEndpoint
from inmind.apps.chat.file_tools import TOOLS, FileTools, ToolOutput
from inmind.apps.chat.turn import (
    STOPPED_REASON,
    ChatExchange,
    ChatListener,
    ChatToolUse,
    ChatTurn,
    OtherChanges,
    call_usage,
    sum_usage,
)
from inmind.apps.signals import InterruptHandler
from inmind.core.http import HttpEndpoint, Json, RequestRefused
from inmind.core.messages import FORMATS
from inmind.core.messages.model import Call, Message, Result, Text
from inmind.core.messages.replies import Reply, is_error, read_partial_reply
from inmind.core.pricing import Usage
from inmind.errors import InvalidInput, ModelFailed, NotFound, short_repr
from inmind.history.history import ConversationEntry
from inmind.memory.session_opener import DEFAULT_RESERVE
from inmind.prompt.report import Prompt
from inmind.session.recorded import Recorded
from inmind.session.session import Session

MAX_ROUNDS = 24
"""Maximum number of rounds of tool calls per turn; the user can continue with /retry."""


MIN_CUT_TOKENS = 4_000
"""Below this size, differences in counting tools and templates hide a truncation."""


MIN_READ_SHARE = 0.7
"""An endpoint that reports fewer tokens than this share of our count has truncated the prompt."""


SYSTEM = (
    "You talk with a user in a terminal: answer in plain text, as briefly as possible. "
    "Your file tools only reach files of the user's working directory; paths are relative to it. "
    "Read a file before you answer questions about it, and state what you have changed."
)


PLAIN_SYSTEM = "You talk with a user in a terminal: answer in plain text, as briefly as possible."


CUT_MARK, STOPPED_MARK = "[The answer was cut off here.]", "[The user stopped the answer here.]"


_CUT_RESULT = "Not executed: the answer was cut off. Call it again if still needed."


_STOPPED_RESULT = "Not executed: the user stopped the answer."


_FAILED_RESULT = "It failed, and its effects are unknown: check before you call it again."


_TOO_MANY_RESULT = "Not executed: too many calls in one answer. Report what you have so far."


class _ReceivedReply(NamedTuple):
    reply: Reply | None
    """The part that arrived; None if nothing did."""
    error: BaseException | None
    cut_reason: str = ""
    """Reason if the reply is incomplete without an error."""


class _Round(NamedTuple):
    prompt: Prompt
    recorded: Recorded
    usage: Usage
    tools: tuple[ChatToolUse, ...]
    notices: tuple[str, ...]
    is_stopped: bool
    """The user stopped it."""
    cut_reason: str


class ChatConversation:
    """A conversation in one session.

    `session` is the session to continue, or a function that creates one for the first message. `file_tools` is None for
    a chat without tools.
    """

    def __init__(
        self,
        session: Session | Callable[[], Session],
        endpoint: ChatEndpoint,
        server: HttpEndpoint,
        file_tools: FileTools | None,
        *,
        listener: ChatListener,
        interrupts: InterruptHandler,
        timeout: float,
    ) -> None:
        self._session, self._server, self._file_tools = session, server, file_tools
        self.endpoint = endpoint
        self._listener, self._interrupts, self._timeout = listener, interrupts, timeout
        self._format = FORMATS[endpoint.protocol.format]
        self._has_warned = False
        self._seen_seqs: Set[int] = (
            _seqs(session.state.conversation) if isinstance(session, Session) else frozenset[int]()
        )
        self._own_seqs: Set[int] = frozenset[int]()

    @property
    def session(self) -> Session:
        if not isinstance(self._session, Session):
            self._session = self._session()
            self._seen_seqs = _seqs(self._session.state.conversation)
        return self._session

    @property
    def is_started(self) -> bool:
        return isinstance(self._session, Session)

    def say(self, text: str) -> ChatTurn:
        """Record the user's message, then answer it; after a failure it can be retried."""
        before = self.session.state.seq
        self.session.add([{"role": "user", "content": text}], format=self._format.name)
        added = (entry for entry in self.session.state.conversation if entry.seq > before)
        self._own_seqs |= {entry.seq for entry in added if self._read(entry).text == text}
        return self._run_rounds()

    def retry(self) -> ChatTurn:
        """Replace the last reply with a new one; effects of earlier tool calls stay."""
        conversation = self.session.state.conversation
        if not len(conversation):
            raise NotFound(what="message to answer in", name=self.session.id, hint="the conversation is empty")
        answered = self._read(conversation[-1]).role == "assistant"
        return self._run_rounds(conversation[:-1] if answered else None)

    @property
    def last_exchange(self) -> ChatExchange | None:
        """The last exchange; None if the conversation is empty."""
        conversation = self.session.state.conversation
        index = next(
            (place for place in reversed(range(len(conversation))) if _is_user_text(self._read(conversation[place]))),
            None,
        )
        if index is None:
            return None
        question, *answers = (self._read(entry) for entry in conversation[index:])
        return ChatExchange(
            question=question.text,
            answer=" ".join(one.text for one in answers if one.role == "assistant" and one.text),
            messages=len(conversation) - index,
            is_from_this_chat=conversation[index].seq in self._own_seqs,
            is_answered=bool(answers) and answers[-1].role == "assistant",
        )

    def poll_other_changes(self) -> OtherChanges:
        """Changes by other processes since the last call."""
        if not self.is_started:
            return OtherChanges()
        conversation, before = self.session.state.conversation, self._seen_seqs
        self._seen_seqs, known = _seqs(conversation), before | self._own_seqs
        new_messages = (self._read(entry) for entry in conversation if entry.seq not in known)
        return OtherChanges(
            messages=tuple(one.text for one in new_messages if _is_user_text(one)),
            removed=len(before - self._seen_seqs),
        )

    def remove_last_exchange(self) -> tuple[str, int]:
        """Remove the user's last message and everything after it.

        Returns its text and the number of messages. Pages, scratchpad and compactions are not changed.
        """
        if (last := self.last_exchange) is None:
            raise NotFound(what="exchange to undo in", name=self.session.id, hint="the conversation is empty")
        before = _seqs(self.session.state.conversation)
        self.session.remove_last_messages(last.messages)
        self._seen_seqs -= before - _seqs(self.session.state.conversation)
        return last.question, last.messages

    def _run_rounds(self, branch: Sequence[ConversationEntry] | None = None) -> ChatTurn:
        """Run rounds until there are no more calls.

        `branch`: the conversation to answer, if not all of it.
        """
        rounds: list[_Round] = []

        def finish(end_reason: str = "") -> ChatTurn:
            return ChatTurn(
                text="\n".join(one.recorded.text for one in rounds if one.recorded.text),
                report=rounds[-1].prompt.report,
                notices=tuple(notice for one in rounds for notice in one.notices),
                usage=sum_usage(one.usage for one in rounds),
                tools=tuple(use for one in rounds for use in one.tools),
                end_reason=end_reason,
            )

        while True:
            rounds.append(self._run_round(branch, last=len(rounds) + 1 == MAX_ROUNDS))
            branch, recorded = None, rounds[-1].recorded
            if rounds[-1].is_stopped:
                return finish(STOPPED_REASON)
            if not recorded.complete:
                return finish(rounds[-1].cut_reason)
            if not recorded.results and not recorded.host_calls:
                return finish("" if recorded.text else "the answer was empty")
            if len(rounds) == MAX_ROUNDS:
                return finish(f"stopped after {MAX_ROUNDS} rounds; /retry continues")

    def _run_round(self, branch: Sequence[ConversationEntry] | None, *, last: bool) -> _Round:
        """Receive and record one reply and the results of its calls.

        An error of the stream is raised after that.
        """
        prompt = self._prepare(branch)
        try:
            reply, error, cut_reason = self._receive(prompt)
            recorded = _EMPTY_RECORD if reply is None else self.session.record(reply, call=prompt.call)
        except InvalidInput as error:
            raise ModelFailed(reason=f"{self.endpoint.url} sent an invalid reply ({error})") from error
        substitute = _CUT_RESULT if error is not None or not recorded.complete else _TOO_MANY_RESULT if last else ""
        tool_uses, stop = self._execute_calls(reply, recorded, substitute)
        error = error or stop
        if error is not None and not isinstance(error, KeyboardInterrupt):
            raise error
        notices = (*prompt.report.notices, *map(str, prompt.report.compactions), *self._truncation_warning(prompt.call))
        usage = call_usage(prompt.report, reply and reply.usage)
        return _Round(prompt, recorded, usage, tool_uses, notices, error is not None, cut_reason)

    def _prepare(self, branch: Sequence[ConversationEntry] | None) -> Prompt:
        wires = None if branch is None else self._translate(branch)
        prompt = self.session.prepare(wires, system=self._system, tools=self._tools, format=self._format.name)
        if branch is not None:
            self._track_branch(branch)
        return prompt

    def _track_branch(self, branch: Sequence[ConversationEntry]) -> None:
        """Update the known messages after a retry.

        Removed messages are ours, and translated messages keep their origin.
        """
        conversation = self.session.state.conversation
        pairs = zip(
            *([one.seq for one in part if _is_user_text(self._read(one))] for part in (branch, conversation)),
            strict=False,
        )
        self._own_seqs |= {now for before, now in pairs if before in self._own_seqs}
        self._seen_seqs = _seqs(conversation)

    def _translate(self, entries: Sequence[ConversationEntry]) -> list[Mapping[str, Any]]:
        """Messages in the format of this endpoint; those of another format are translated."""
        wires: list[Mapping[str, Any]] = []
        for format, run in ((format, list(run)) for format, run in groupby(entries, key=attrgetter("format"))):
            own = format == self._format.name
            wires += [entry.wire for entry in run] if own else self._format.write([self._read(entry) for entry in run])
        return wires

    def _receive(self, prompt: Prompt) -> _ReceivedReply:
        """Receive a reply as far as it arrives, with the error that ended it."""
        chunks: list[Json] = []
        failure: BaseException | None = None
        is_done = False

        def events() -> Generator[Json]:
            nonlocal is_done
            is_done = yield from self._stream_events(prompt)

        self._listener.show_waiting()
        try:
            with self._interrupts.interruptible(), closing(events()) as stream:
                for event in stream:
                    self._check_event(event)
                    chunks.append(event)
                    self._listener.show_piece(self.endpoint.protocol.piece(event))
        except (ModelFailed, KeyboardInterrupt, SystemExit, OSError) as error:  # OSError: the output is closed
            failure = error
        finally:
            with suppress(OSError):  # the received part still has to be recorded
                self._listener.end_answer()
        reply = read_partial_reply(chunks, format=self._format.name)
        if reply is None:
            return _ReceivedReply(None, failure or ModelFailed(reason=f"{self.endpoint.url} sent an empty reply"))
        has_ended = any(map(self.endpoint.protocol.is_end, chunks))
        if is_done and not has_ended:  # some servers send no finish reason
            reply = replace(reply, is_complete=True)
        if reply.is_complete and (failure is None or isinstance(failure, ModelFailed)):
            return _ReceivedReply(reply, None)  # an error after the end does not matter
        mark = STOPPED_MARK if isinstance(failure, KeyboardInterrupt) else CUT_MARK
        cut = _LENGTH_REASON if has_ended else _UNFINISHED_REASON
        return _ReceivedReply(_add_mark(replace(reply, is_complete=False), mark), failure, cut)

    def _stream_events(self, prompt: Prompt) -> Generator[Json, None, bool]:
        """Events of a reply; returns True if the server sent its end marker."""
        protocol = self.endpoint.protocol
        body = protocol.body(self.endpoint.model, prompt, DEFAULT_RESERVE)
        stream = self._server.stream_events
        try:
            return (yield from stream(protocol.reply_path, body, headers=protocol.headers, seconds=self._timeout))
        except RequestRefused as error:
            if _STREAM_OPTIONS not in body or _STREAM_OPTIONS not in error.body:
                raise
            reduced = {name: value for name, value in body.items() if name != _STREAM_OPTIONS}
            return (yield from stream(protocol.reply_path, reduced, headers=protocol.headers, seconds=self._timeout))

    def _check_event(self, event: Json) -> None:
        """Raise for an error event in the middle of a stream."""
        if is_error(event):
            raise ModelFailed(
                reason=f"{self.endpoint.url} failed during the reply: {short_repr(event.get('error') or event)}"
            )

    def _truncation_warning(self, call: int) -> Iterator[str]:
        """Warn once if the endpoint seems to truncate prompts silently."""
        usage = self.session.state.prompt.usage
        if usage is None or usage.call != call or self._has_warned or usage.counted < MIN_CUT_TOKENS:
            return
        if usage.prompt_tokens < MIN_READ_SHARE * usage.counted:
            self._has_warned = True
            yield (
                f"The model read {usage.prompt_tokens:,} of about {usage.counted:,} tokens: {self.endpoint.url} may "
                f"accept less than {self.endpoint.window:,} and truncate the rest. Set its real context window with "
                "--window or window of [model] in config.toml; for Ollama set OLLAMA_CONTEXT_LENGTH."
            )

    def _execute_calls(
        self, reply: Reply | None, recorded: Recorded, substitute: str
    ) -> tuple[tuple[ChatToolUse, ...], BaseException | None]:
        """Answer every call of a reply, by executing it or with `substitute`.

        Returns the tool uses, and the exception that interrupted them. All results are recorded before the first is
        shown, and an error of a tool is raised only after that.
        """
        uses, interruption = list[ChatToolUse](), None
        for call in recorded.host_calls:
            outcome = ToolOutput(substitute, "not executed", error=True)
            if not substitute and self._file_tools is not None:
                try:
                    outcome = self._file_tools.execute(call)
                except (KeyboardInterrupt, SystemExit) as error:
                    interruption, substitute = error, _STOPPED_RESULT
                    outcome = ToolOutput(substitute, "stopped", error=True)
                except BaseException as error:
                    interruption, substitute = error, _CUT_RESULT
                    outcome = ToolOutput(_FAILED_RESULT, "failed", error=True)
            uses.append(ChatToolUse(call.name, call.text, outcome))
        results = [
            Result(call.id, (Text(use.output.text),), error=use.output.error)
            for call, use in zip(recorded.host_calls, uses, strict=True)
        ]
        if results:
            self.session.add(self._format.write([Message("tool", tuple(results))]), format=self._format.name)
        done = (*self._memory_tool_uses(reply, recorded), *uses)
        if interruption is None or isinstance(interruption, KeyboardInterrupt):
            for use in done:
                self._listener.show_tool_use(use)
        return done, interruption

    def _memory_tool_uses(self, reply: Reply | None, recorded: Recorded) -> Iterator[ChatToolUse]:
        """Calls of memory tools with their results."""
        wires = () if reply is None else reply.wires
        calls: dict[str, Call] = {call.id: call for wire in wires for call in self._format.read(wire).calls}
        for wire in recorded.results:
            for result in self._format.read(wire).results:
                text = " ".join(part.text for part in result.parts if isinstance(part, Text))
                if call := calls.get(result.id):
                    yield ChatToolUse(call.name, call.arguments, ToolOutput(text, text, error=result.error))

    @property
    def _system(self) -> str:
        return PLAIN_SYSTEM if self._file_tools is None else SYSTEM

    @property
    def _tools(self) -> list[Json]:
        if self._file_tools is None:
            return []
        tool = self.endpoint.protocol.tool
        return [tool(name, one.description, one.parameters) for name, one in TOOLS.items()]

    def _read(self, entry: ConversationEntry) -> Message:
        return FORMATS[entry.format].read(entry.wire)


_LENGTH_REASON = "cut off: maximum length reached; ask it to continue"


_UNFINISHED_REASON = "cut off: the stream ended early; /retry asks again"


_EMPTY_RECORD = Recorded(text="", results=[], host_calls=())


_STREAM_OPTIONS = "stream_options"
"""Field that requests usage at the end of a stream; a few servers reject it."""


def _is_user_text(message: Message) -> bool:
    return message.role == "user" and bool(message.text) and not message.results


def _add_mark(reply: Reply, mark: str) -> Reply:
    """Append a mark where the reply was cut.

    If the reply has calls, their results state it instead.
    """
    fmt = FORMATS[reply.format]
    if any(fmt.read(wire).calls for wire in reply.wires):
        return reply
    *before, last = reply.wires
    return replace(reply, wires=(*before, {**last, "content": _append_text(last.get("content"), mark)}))


def _append_text(content: Any, mark: str) -> Any:
    if isinstance(content, list):
        return [*content, {"type": "text", "text": mark}]
    return f"{content}\n{mark}" if content else mark


def _seqs(entries: Iterable[ConversationEntry]) -> Set[int]:
    return frozenset(entry.seq for entry in entries)

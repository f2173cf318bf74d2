"""One conversation with a model: prepare, receive, record, until it calls no more tools.

Every answer is recorded as far as it arrived: a broken stream and an interrupt both leave an answer with a mark at the
cut. Recording answers every call: with the result of a tool, or with the statement that it was cut or is unknown.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from functools import cached_property
from typing import Any

from inmind.apps.chat.endpoint import PROVIDERS, STREAM_OPTIONS
from inmind.apps.chat.terminal import ChatOutput, ChatToolUse, ChatTurn
from inmind.apps.signals import InterruptHandler
from inmind.core.http import HttpEndpoint, Json, RequestRefused, object_field, object_list
from inmind.core.messages import FORMATS, is_error, read_partial_reply
from inmind.core.messages.model import Call, Message, Reply, ReplyUsage, Text
from inmind.core.settings import ModelSettings
from inmind.errors import InvalidInput, ModelFailed, NotFound, short_repr
from inmind.prompt.report import Prompt
from inmind.session.session import Session

MAX_ROUNDS = 24
"""Maximum number of replies per turn; the user can continue with /retry."""

MIN_CUT_TOKENS = 4_000
"""Below this size, differences in counting tools and templates hide a truncation."""

MIN_READ_SHARE = 0.7
"""An endpoint that reports fewer tokens than this share of our count has truncated the prompt."""

SYSTEM = "You talk with a user in a terminal: answer in plain text, as briefly as possible."

CUT_MARK, STOPPED_MARK = "[The answer was cut off here.]", "[The user stopped the answer here.]"

CUT_BY_SERVER = "cut off: the stream ended early; /retry asks again"
CUT_BY_LENGTH = "cut off: maximum length reached; ask it to continue"


class ChatConversation:
    """A conversation in one session, which is opened or created when it is first needed."""

    def __init__(
        self,
        open_session: Callable[[], Session],
        endpoint: ModelSettings,
        server: HttpEndpoint,
        output: ChatOutput,
        interrupts: InterruptHandler,
    ) -> None:
        self.endpoint, self._open_session = endpoint, open_session
        self._server, self._output, self._interrupts = server, output, interrupts
        self._format = FORMATS[endpoint.provider]
        self._has_warned = False

    @cached_property
    def session(self) -> Session:
        return self._open_session()

    def say(self, text: str) -> ChatTurn:
        """Record the user's message, then answer it; after a failure it can be retried."""
        self.session.add([{"role": "user", "content": text}], format=self._format.name)
        return self._answer()

    def retry(self) -> ChatTurn:
        """Replace the last reply with a new one; effects of earlier tool calls stay."""
        messages = self._messages()
        if not messages:
            raise NotFound(what="message to answer in", name=self.session.id, hint="the conversation is empty")
        if messages[-1].role == "assistant":
            self.session.remove_last_messages(1)
        return self._answer()

    def last_exchange(self) -> Sequence[Message]:
        """The last message of the user and everything after it; empty if there is none."""
        messages = self._messages()
        starts = [place for place, one in enumerate(messages) if one.role == "user" and one.text and not one.results]
        return messages[starts[-1] :] if starts else []

    def remove_last_exchange(self) -> Sequence[Message]:
        """Remove and return the last exchange. Pages, scratchpad and compactions are not changed."""
        if removed := self.last_exchange():
            self.session.remove_last_messages(len(removed))
        return removed

    def _messages(self) -> list[Message]:
        return [FORMATS[entry.format].read(entry.wire) for entry in self.session.state.conversation]

    def _answer(self) -> ChatTurn:
        """Run rounds until there are no more calls; raise an error after the part before it."""
        turn = ChatTurn()
        for _ in range(MAX_ROUNDS):
            prompt = self.session.prepare(system=SYSTEM, tools=(), format=self._format.name)
            reply, error, turn.end_reason = self._receive(prompt)
            is_calling = self._record(turn, prompt, reply)
            if error is not None and not isinstance(error, KeyboardInterrupt):
                raise error
            if turn.end_reason or not is_calling:
                return turn
        turn.end_reason = f"stopped after {MAX_ROUNDS} rounds; /retry continues"
        return turn

    def _record(self, turn: ChatTurn, prompt: Prompt, reply: Reply | None) -> bool:
        """Record a reply, add it to the turn, and return whether it has called tools."""
        report, text, uses = prompt.report, "", tuple[ChatToolUse, ...]()
        if reply is not None:
            try:
                recorded = self.session.record(reply, call=prompt.call)
            except InvalidInput as error:
                raise ModelFailed(reason=f"{self.endpoint.url} sent an invalid reply ({error})") from error
            text, uses = recorded.text, tuple(self._tool_uses(reply, recorded.results))
            for use in uses:
                self._output.show_tool_use(use)
        turn.text, turn.report = "\n".join(filter(None, (turn.text, text))), report
        turn.tools += uses
        turn.notices += (*report.notices, *map(str, report.compactions), *self._truncation_warning(prompt))
        if not turn.end_reason and not text and not uses:
            turn.end_reason = "the answer was empty"
        cached = 0 if report.cold else report.cached_prefix_tokens
        estimated = ReplyUsage(prompt_tokens=report.tokens_used, cached_tokens=cached, completion_tokens=0)
        usage = reply and reply.usage
        turn.add_usage(usage or estimated, is_estimated=usage is None)
        return bool(uses)

    def _tool_uses(self, reply: Reply, results: Sequence[Any]) -> Iterator[ChatToolUse]:
        calls: dict[str, Call] = {call.id: call for wire in reply.wires for call in self._format.read(wire).calls}
        for result in (result for wire in results for result in self._format.read(wire).results):
            text = " ".join(part.text for part in result.parts if isinstance(part, Text))
            if call := calls.get(result.id):
                # A result in the format of OpenAI marks an error in its text.
                yield ChatToolUse(call.name, call.arguments, text, result.error or text.startswith("Error:"))

    def _receive(self, prompt: Prompt) -> tuple[Reply | None, BaseException | None, str]:
        """Receive a reply as far as it arrives, the error that ended it, and why it is incomplete."""
        chunks: list[Json] = []
        failure: BaseException | None = None
        is_done = False

        def events() -> Generator[Json]:
            nonlocal is_done
            is_done = yield from self._stream_events(prompt)

        try:
            with self._interrupts.interruptible(), closing(events()) as stream:
                for event in stream:
                    if is_error(event):
                        error = short_repr(event.get("error") or event)
                        raise ModelFailed(reason=f"{self.endpoint.url} failed during the reply: {error}")
                    chunks.append(event)
                    self._output.show_piece(*_streamed_text(event))
        except (ModelFailed, KeyboardInterrupt, SystemExit, OSError) as error:  # OSError: the output is closed
            failure = error
        finally:
            with suppress(OSError):  # the received part still has to be recorded
                self._output.end_answer()
        stopped = "stopped" if isinstance(failure, KeyboardInterrupt) else ""
        reply = read_partial_reply(chunks, format=self._format.name)
        if reply is None:
            empty = ModelFailed(reason=f"{self.endpoint.url} sent an empty reply")
            return None, failure or empty, stopped
        has_ended = any(map(_is_end, chunks))
        is_complete = reply.is_complete or (is_done and not has_ended)  # some servers send no finish reason
        if is_complete and (failure is None or isinstance(failure, ModelFailed)):
            return replace(reply, is_complete=True), None, ""  # an error after the end does not matter
        marked = _add_mark(replace(reply, is_complete=False), STOPPED_MARK if stopped else CUT_MARK)
        return marked, failure, stopped or (CUT_BY_LENGTH if has_ended else CUT_BY_SERVER)

    def _stream_events(self, prompt: Prompt) -> Generator[Json, None, bool]:
        """Events of a reply; returns True if the server sent its end marker."""
        provider = PROVIDERS[self.endpoint.provider]
        body = {"model": self.endpoint.name, **provider.request_fields, **prompt.request, "stream": True}
        options: Any = {"headers": provider.headers, "seconds": self.endpoint.seconds}
        try:
            return (yield from self._server.stream_events(provider.reply_path, body, **options))
        except RequestRefused as error:
            if STREAM_OPTIONS not in body or STREAM_OPTIONS not in error.body:
                raise
            del body[STREAM_OPTIONS]
            return (yield from self._server.stream_events(provider.reply_path, body, **options))

    def _truncation_warning(self, prompt: Prompt) -> Iterator[str]:
        """Warn once if the endpoint seems to truncate prompts silently."""
        usage = self.session.state.prompt.usage
        if usage is None or usage.call != prompt.call or self._has_warned or usage.counted < MIN_CUT_TOKENS:
            return
        if usage.prompt_tokens < MIN_READ_SHARE * usage.counted:
            self._has_warned = True
            yield (
                f"The model read {usage.prompt_tokens:,} of about {usage.counted:,} tokens: {self.endpoint.url} may "
                f"accept less than {prompt.report.tokens_max:,} and truncate the rest. Set its real context window "
                "with --window or window of [model] in config.toml; for Ollama set OLLAMA_CONTEXT_LENGTH."
            )


def _streamed_text(event: Json) -> tuple[str, str]:
    """Text and visible reasoning that an event of a stream adds, in either protocol."""
    delta = object_field(next(iter(object_list(event, "choices")), event), "delta")
    texts = {name: value for name, value in delta.items() if isinstance(value, str)}
    text, reasoning = ("content", "refusal", "text"), ("reasoning_content", "reasoning", "thinking")
    return next(filter(None, map(texts.get, text)), ""), next(filter(None, map(texts.get, reasoning)), "")


def _is_end(event: Json) -> bool:
    """True for an event with the reason why the reply ends, in either protocol."""
    choices = object_list(event, "choices")
    return any(one.get("finish_reason") for one in choices) or bool(object_field(event, "delta").get("stop_reason"))


def _add_mark(reply: Reply, mark: str) -> Reply:
    """Append a mark where the reply was cut; if it has calls, their results state it instead."""
    fmt = FORMATS[reply.format]
    if any(fmt.read(wire).calls for wire in reply.wires):
        return reply
    *before, last = reply.wires
    content: Any = last.get("content")
    if isinstance(content, list):
        return replace(reply, wires=(*before, fmt.with_part(last, fmt.text_part(mark))))
    return replace(reply, wires=(*before, {**last, "content": f"{content}\n{mark}" if content else mark}))

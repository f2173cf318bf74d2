"""What a chat is: prepare, ask, hear, record, carry out what was called for, and again until nothing is.

Whatever becomes of an answer, it is in the journal as far as it was heard: a stream that breaks and a person who stops
it leave the same, an answer that says where it was cut. A call that was cut, or stopped before it was carried out, is
answered with that, so that none is ever without its answer; and what a tool did is kept before it is shown, since
whoever would be shown it may have gone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import closing, suppress
from dataclasses import replace
from itertools import groupby
from operator import attrgetter
from typing import Any, NamedTuple, Protocol

from inmind.apps.chat.endpoint import Endpoint
from inmind.apps.chat.file_tools import TOOLS, Outcome, Workplace
from inmind.apps.chat.providers import Piece
from inmind.apps.chat.sigint import Interruptions
from inmind.core.frozen import frozen
from inmind.core.http import Json, Refused, Server
from inmind.core.messages import FORMATS
from inmind.core.messages.model import Call, Message, Result, Text
from inmind.core.messages.replies import Reply, ReplyUsage, read_as_far_as_it_came
from inmind.core.messages.replies.reply import is_error
from inmind.core.pricing import Usage
from inmind.errors import InvalidInput, ModelFailed, NotFound, short_repr
from inmind.history.conversation import ConversationEntry
from inmind.memory.session_opener import DEFAULT_RESERVE
from inmind.prompt.report import Prompt, Report
from inmind.session.recorded import Recorded
from inmind.session.session import Session

MOST_ROUNDS = 24
"""A model that calls one tool after the other is stopped here; whoever wants it to go on says so."""

LEAST_CUT = 4_000
"""Tokens that no endpoint cuts: below, how it counts tools and templates differs more than what it reads."""

READ = 0.7
"""Of what we have counted: an endpoint that has read less has not read all, however it counts."""

SYSTEM = (
    "You talk with a person in a terminal: answer in plain text, and no longer than it needs. "
    "Your file tools reach the files of the person's working directory, and nothing else; paths are relative to it. "
    "Look before you answer what a file could tell, and say what you have changed."
)
PLAIN_SYSTEM = "You talk with a person in a terminal: answer in plain text, and no longer than it needs."

CUT, STOPPED = "[The answer was cut off here.]", "[The person stopped the answer here.]"
_NOT_DONE = "Not carried out: the answer was cut off. Call it again if it is still wanted."
_NOT_WANTED = "Not carried out: the person stopped the answer."
_UNKNOWN = "It broke off, and what it has done is unknown: look before you call it again."
_TOO_MANY = "Not carried out: these are more calls than one answer may have. Say what there is so far."


class Listener(Protocol):
    """Whoever is shown an answer while it comes."""

    def waits(self) -> None: ...
    def hears(self, piece: Piece) -> None: ...
    def has_heard(self) -> None: ...
    def sees(self, used: Used) -> None: ...


@frozen
class Used:
    """A tool that was called."""

    name: str
    arguments: str
    """As the model wrote them."""
    outcome: Outcome


@frozen(kw_only=True)
class Turn:
    """What an answer took, and how it ended."""

    text: str
    report: Report
    """Of the last prompt."""
    used: Usage
    """By this answer alone."""
    notices: tuple[str, ...] = ()
    """What memory has to say beside it: what it had to archive, which file lags."""
    tools: tuple[Used, ...] = ()
    ended: str = ""
    """Why it is not all that it could be; empty where it is."""

    @property
    def stopped(self) -> bool:
        """By the person."""
        return self.ended == _STOPPED

    @property
    def tokens(self) -> int:
        """Read and written as the provider has counted them, or else what was sent as we estimate it."""
        used = self.used
        return used.reported_prompt + used.completion if used.reported_calls else used.tokens

    @property
    def cached_share(self) -> float:
        """Of what was sent: what the provider says came from its cache, or else what could have."""
        used = self.used
        if not used.reported_calls:
            return used.cached_share
        return used.reported_cached / used.reported_prompt if used.reported_prompt else 0.0


@frozen(kw_only=True)
class Exchange:
    """What a person said last, and what came of it."""

    said: str
    answer: str
    """All that was answered, tools and their results left out."""
    messages: int
    """In all, what was said among them."""
    here: bool
    """It was said in this chat, and not before it or at another terminal."""
    answered: bool = True
    """Whether the answer has come to its end, be it that somebody stopped it."""


@frozen(kw_only=True)
class Meanwhile:
    """What others have done to the conversation since this chat last looked."""

    said: tuple[str, ...] = ()
    gone: int = 0
    """Messages that are no longer in it."""


class _Heard(NamedTuple):
    reply: Reply | None
    """As far as it came; None where nothing did."""
    trouble: BaseException | None
    cut: str = ""
    """Why it is not whole, where nothing went wrong."""


class _Round(NamedTuple):
    prompt: Prompt
    recorded: Recorded
    used: Usage
    tools: tuple[Used, ...]
    notices: tuple[str, ...]
    stopped: bool
    """By the person."""
    cut: str


class Conversation:
    """`session`: the one to go on with, or how to begin one when there is something to keep. `workplace`: None without
    tools."""

    def __init__(
        self,
        session: Session | Callable[[], Session],
        endpoint: Endpoint,
        server: Server,
        workplace: Workplace | None,
        *,
        listener: Listener,
        interruptions: Interruptions,
        patience: float,
    ) -> None:
        self._session, self._server, self._workplace = session, server, workplace
        self.endpoint = endpoint
        self._listener, self._interruptions, self._patience = listener, interruptions, patience
        self._spoken = FORMATS[endpoint.protocol.format]
        self._has_warned = False
        self._known: Set[int] = _seqs(session.state.conversation) if isinstance(session, Session) else frozenset[int]()
        self._said_here: Set[int] = frozenset[int]()

    @property
    def session(self) -> Session:
        if not isinstance(self._session, Session):
            self._session = self._session()
            self._known = _seqs(self._session.state.conversation)
        return self._session

    @property
    def begun(self) -> bool:
        return isinstance(self._session, Session)

    def say(self, text: str) -> Turn:
        """What a person says is kept first: whatever fails after that can be tried again."""
        said = self.session.add([{"role": "user", "content": text}], format=self._spoken.name)
        self._said_here |= set(range(said.first, said.last + 1))
        return self._answered()

    def again(self) -> Turn:
        """Ask for the last reply once more, in the place of the one that came; what tools did before it stays."""
        line = self.session.state.conversation
        if not len(line):
            raise NotFound(what="message to answer in", name=self.session.id, hint="nothing is left of it")
        answered = self._read(line[-1]).role == "assistant"
        return self._answered(line[:-1] if answered else None)

    @property
    def last(self) -> Exchange | None:
        """The last exchange; None where nothing is left of the conversation."""
        line = self.session.state.conversation
        asked = next((place for place in reversed(range(len(line))) if _is_said(self._read(line[place]))), None)
        if asked is None:
            return None
        said, *answers = (self._read(entry) for entry in line[asked:])
        return Exchange(
            said=said.text,
            answer=" ".join(one.text for one in answers if one.role == "assistant" and one.text),
            messages=len(line) - asked,
            here=line[asked].seq in self._said_here,
            answered=bool(answers) and answers[-1].role == "assistant",
        )

    def meanwhile(self) -> Meanwhile:
        """What others have done since the last look; this is the next one."""
        if not self.begun:
            return Meanwhile()
        line, before = self.session.state.conversation, self._known
        self._known, ours = _seqs(line), before | self._said_here
        fresh = (self._read(entry) for entry in line if entry.seq not in ours)
        return Meanwhile(said=tuple(one.text for one in fresh if _is_said(one)), gone=len(before - self._known))

    def take_back(self) -> tuple[str, int]:
        """Take the last exchange out of the conversation, what the person said and all that followed, and nothing
        else: pages, scratchpad and compactions stay. Answers with what was said, and how many messages have gone."""
        if (last := self.last) is None:
            raise NotFound(what="exchange to take back in", name=self.session.id, hint="nothing is left of it")
        before = _seqs(self.session.state.conversation)
        self.session.remove_last_messages(last.messages)
        self._known -= before - _seqs(self.session.state.conversation)
        return last.said, last.messages

    def _answered(self, branch: Sequence[ConversationEntry] | None = None) -> Turn:
        """`branch`: what is left of the conversation, where it does not go on from its end."""
        rounds: list[_Round] = []

        def turn(ended: str = "") -> Turn:
            return Turn(
                text="\n".join(one.recorded.text for one in rounds if one.recorded.text),
                report=rounds[-1].prompt.report,
                notices=tuple(notice for one in rounds for notice in one.notices),
                used=_sum(one.used for one in rounds),
                tools=tuple(used for one in rounds for used in one.tools),
                ended=ended,
            )

        while True:
            rounds.append(self._round(branch, last=len(rounds) + 1 == MOST_ROUNDS))
            branch, recorded = None, rounds[-1].recorded
            if rounds[-1].stopped:
                return turn(_STOPPED)
            if not recorded.complete:
                return turn(rounds[-1].cut)
            if not recorded.results and not recorded.host_calls:
                return turn("" if recorded.text else "nothing was said")
            if len(rounds) == MOST_ROUNDS:
                return turn(f"left after {MOST_ROUNDS} rounds; /retry goes on")

    def _round(self, branch: Sequence[ConversationEntry] | None, *, last: bool) -> _Round:
        """One reply, and what came of its calls, in the journal; then what kept it from coming whole is raised."""
        prompt = self._prepared(branch)
        try:
            reply, trouble, cut = self._heard(prompt)
            recorded = _NOTHING if reply is None else self.session.record(reply, call=prompt.call)
        except InvalidInput as error:
            raise ModelFailed(reason=f"{self.endpoint.url} answered with what is no reply ({error})") from error
        instead = _NOT_DONE if trouble is not None or not recorded.complete else _TOO_MANY if last else ""
        used, stop = self._settled(reply, recorded, instead)
        trouble = trouble or stop
        if trouble is not None and not isinstance(trouble, KeyboardInterrupt):
            raise trouble
        notices = (*prompt.report.notices, *map(str, prompt.report.compactions), *self._unread(prompt.call))
        took = _took(prompt.report, reply and reply.usage)
        return _Round(prompt, recorded, took, used, notices, trouble is not None, cut)

    def _prepared(self, branch: Sequence[ConversationEntry] | None) -> Prompt:
        wires = None if branch is None else self._in_our_words(branch)
        prompt = self.session.prepare(wires, system=self._system, tools=self._tools, format=self._spoken.name)
        if branch is not None:
            self._follow(branch)
        return prompt

    def _follow(self, branch: Sequence[ConversationEntry]) -> None:
        """What we have left out is nobody else's doing, and what was translated was said by whoever said it first."""
        line = self.session.state.conversation
        again = zip(*([one.seq for one in part if _is_said(self._read(one))] for part in (branch, line)), strict=False)
        self._said_here |= {now for before, now in again if before in self._said_here}
        self._known = _seqs(line)

    def _in_our_words(self, entries: Sequence[ConversationEntry]) -> list[Mapping[str, Any]]:
        """Messages as a list of this endpoint's; what was said with one of another kind is translated."""
        wires: list[Mapping[str, Any]] = []
        for format, run in ((format, list(run)) for format, run in groupby(entries, key=attrgetter("format"))):
            own = format == self._spoken.name
            wires += [entry.wire for entry in run] if own else self._spoken.write([self._read(entry) for entry in run])
        return wires

    def _heard(self, prompt: Prompt) -> _Heard:
        """A reply as far as it came, and what kept it from coming whole."""
        chunks: list[Json] = []
        trouble: BaseException | None = None
        is_done = False

        def events() -> Generator[Json]:
            nonlocal is_done
            is_done = yield from self._events(prompt)

        self._listener.waits()
        try:
            with self._interruptions.may_stop(), closing(events()) as coming:
                for event in coming:
                    self._check(event)
                    chunks.append(event)
                    self._listener.hears(self.endpoint.protocol.piece(event))
        except (ModelFailed, KeyboardInterrupt, SystemExit, OSError) as error:  # OSError: nobody reads it any more
            trouble = error
        finally:
            with suppress(OSError):  # and what was heard is still to be kept
                self._listener.has_heard()
        reply = read_as_far_as_it_came(chunks, format=self._spoken.name)
        if reply is None:
            return _Heard(None, trouble or ModelFailed(reason=f"{self.endpoint.url} answered with nothing"))
        has_ended = any(map(self.endpoint.protocol.ends, chunks))
        if is_done and not has_ended:  # there are servers that do not say why
            reply = replace(reply, whole=True)
        if reply.whole and (trouble is None or isinstance(trouble, ModelFailed)):
            return _Heard(reply, None)  # what breaks behind the end has broken nothing
        mark = STOPPED if isinstance(trouble, KeyboardInterrupt) else CUT
        cut = _TOO_LONG if has_ended else _UNENDED
        return _Heard(_marked(replace(reply, whole=False), mark), trouble, cut)

    def _events(self, prompt: Prompt) -> Generator[Json, None, bool]:
        """The events of an answer; returns whether the server has said that it is done."""
        protocol = self.endpoint.protocol
        body = protocol.body(self.endpoint.model, prompt, DEFAULT_RESERVE)
        ask = self._server.stream
        try:
            return (yield from ask(protocol.replies, body, headers=protocol.headers, seconds=self._patience))
        except Refused as error:
            if _USAGE not in body or _USAGE not in error.said:
                raise
            less = {name: value for name, value in body.items() if name != _USAGE}
            return (yield from ask(protocol.replies, less, headers=protocol.headers, seconds=self._patience))

    def _check(self, event: Json) -> None:
        """Providers say in the middle of an answer that they cannot go on."""
        if is_error(event):
            raise ModelFailed(
                reason=f"{self.endpoint.url} gave up in the middle: {short_repr(event.get('error') or event)}"
            )

    def _unread(self, call: int) -> Iterator[str]:
        """Once: that the endpoint seems to read less than it is sent. Some cut a prompt without a word."""
        usage = self.session.state.prompt.usage
        if usage is None or usage.call != call or self._has_warned or usage.counted < LEAST_CUT:
            return
        if usage.prompt_tokens < READ * usage.counted:
            self._has_warned = True
            yield (
                f"It has read {usage.prompt_tokens:,} of about {usage.counted:,} tokens: {self.endpoint.url} may take "
                f"less than {self.endpoint.window:,} and cut the rest. --window, or window of [model] in config.toml, "
                "says how much it takes; Ollama takes what OLLAMA_CONTEXT_LENGTH says."
            )

    def _settled(
        self, reply: Reply | None, recorded: Recorded, instead: str
    ) -> tuple[tuple[Used, ...], BaseException | None]:
        """Answer every call of a reply: with what came of it, or with what is said `instead`; and what stopped that.

        All answers are kept before the first is shown, and what breaks in a tool breaks the chat only after that.
        """
        ours, stop = list[Used](), None
        for call in recorded.host_calls:
            outcome = Outcome(instead, "not carried out", error=True)
            if not instead and self._workplace is not None:
                try:
                    outcome = self._workplace.carry_out(call)
                except (KeyboardInterrupt, SystemExit) as error:
                    stop, instead = error, _NOT_WANTED
                    outcome = Outcome(instead, "stopped", error=True)
                except BaseException as error:
                    stop, instead = error, _NOT_DONE
                    outcome = Outcome(_UNKNOWN, "broke off", error=True)
            ours.append(Used(call.name, call.text, outcome))
        results = [
            Result(call.id, (Text(used.outcome.said),), error=used.outcome.error)
            for call, used in zip(recorded.host_calls, ours, strict=True)
        ]
        if results:
            self.session.add(self._spoken.write([Message("tool", tuple(results))]), format=self._spoken.name)
        done = (*self._memorys(reply, recorded), *ours)
        if stop is None or isinstance(stop, KeyboardInterrupt):
            for used in done:
                self._listener.sees(used)
        return done, stop

    def _memorys(self, reply: Reply | None, recorded: Recorded) -> Iterator[Used]:
        """Calls of memory's own tools, with what it has answered."""
        wires = () if reply is None else reply.wires
        calls: dict[str, Call] = {call.id: call for wire in wires for call in self._spoken.read(wire).calls}
        for wire in recorded.results:
            for result in self._spoken.read(wire).results:
                said = " ".join(part.text for part in result.parts if isinstance(part, Text))
                if call := calls.get(result.id):
                    yield Used(call.name, call.arguments, Outcome(said, said, error=result.error))

    @property
    def _system(self) -> str:
        return PLAIN_SYSTEM if self._workplace is None else SYSTEM

    @property
    def _tools(self) -> list[Json]:
        if self._workplace is None:
            return []
        tool = self.endpoint.protocol.tool
        return [tool(name, one.description, one.parameters) for name, one in TOOLS.items()]

    def _read(self, entry: ConversationEntry) -> Message:
        return FORMATS[entry.format].read(entry.wire)


_STOPPED = "stopped"
_TOO_LONG = "cut off: it has reached its length; ask it to go on"
_UNENDED = "cut off: it ended without saying so; /retry asks again"
_NOTHING = Recorded(text="", results=[], host_calls=())

_USAGE = "stream_options"
"""What asks for usage at the end of a stream; a few servers refuse a request for that."""


def _is_said(message: Message) -> bool:
    return message.role == "user" and bool(message.text) and not message.results


def _marked(reply: Reply, mark: str) -> Reply:
    """A reply that says itself where it was cut. One with calls is told so in their answers."""
    spoken = FORMATS[reply.format]
    if any(spoken.read(wire).calls for wire in reply.wires):
        return reply
    *before, last = reply.wires
    return replace(reply, wires=(*before, {**last, "content": _with(last.get("content"), mark)}))


def _with(content: Any, mark: str) -> Any:
    if isinstance(content, list):
        return [*content, {"type": "text", "text": mark}]
    return f"{content}\n{mark}" if content else mark


def _seqs(line: Iterable[ConversationEntry]) -> Set[int]:
    return frozenset(entry.seq for entry in line)


def _took(report: Report, usage: ReplyUsage | None) -> Usage:
    """One call, as we estimate it, and as the provider has counted it. The session's own ledger has those of others,
    who may talk in it at the same time."""
    cached = 0 if report.cold else report.cached_prefix_tokens
    estimated = Usage(calls=1, cached=cached, uncached=report.tokens_used - cached)
    if usage is None:
        return estimated
    return replace(
        estimated,
        reported_calls=1,
        reported_prompt=usage.prompt_tokens,
        reported_cached=usage.cached_tokens,
        completion=usage.completion_tokens,
    )


def _sum(ledgers: Iterable[Usage]) -> Usage:
    total: Counter[str] = Counter()
    for ledger in ledgers:
        total.update(ledger.freeze())
    return Usage(**total)

"""Find open loops: requests and promises that are not done yet.

"Remind me to renew the passport", "we still need to order the tiles", "I'll send it tomorrow": each stays open until a
message says that it is done, or a tool does something with the same words. A request at the end of a session without a
response is a loop too.

After the session a loop is a line on the page and is recognized by that line, so a later session can close it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Final

from inmind.core.events.base import Trust
from inmind.core.fair_turns import giving_way
from inmind.core.frozen import frozen
from inmind.core.language.languages import is_negated
from inmind.core.language.spans import any_of, compile_cached, has_han
from inmind.core.text import shorten
from inmind.dreams.material import Utterance, split_turns, unanswered_turns
from inmind.dreams.sentences import MAX_REQUEST_SENTENCES, is_question, is_request, normalize_sentence
from inmind.entities.extract.identity import parse_tool_name
from inmind.search.query import keywords
from inmind.search.tokenize import query_words

MAX_OPEN_LOOPS: Final = 100
"""Open loops compared with each message, the latest ones."""

MAX_LOOP_CHARACTERS: Final = 240
MIN_WORD_SHARE: Final = 0.5
"""Share of a loop's words by which it is recognized. In Chinese, half of the word pairs cross a word boundary."""


@frozen
class OpenLoop:
    """An open request or promise, verbatim."""

    text: str
    words: frozenset[str]
    utterance: Utterance

    @property
    def line(self) -> str:
        """Its line on the page."""
        if has_han(self.text):
            return f"未完成（自 {self.utterance.at:%Y-%m-%d} 起）：{self.text}"
        return f"Open since {self.utterance.at:%Y-%m-%d}: {self.text}"


def loop_text(line: str) -> str:
    """The request in a line of an open loop; empty for other lines."""
    match = compile_cached(_LOOP_LINE).match(line)
    return line[match.end() :] if match else ""


def loop_words(text: str) -> frozenset[str]:
    """The words by which a loop is recognized."""
    return keywords(normalize_sentence(text)) - _LOOP_STOP_WORDS


def closed_lines(lines: Iterable[str], utterances: Iterable[Utterance]) -> tuple[str, ...]:
    """Lines of loops that these utterances close."""
    open_lines = {line: words for line in lines if (words := loop_words(loop_text(line)))}
    closed: list[str] = []
    for utterance in utterances if open_lines else ():
        signal = _close_signal(utterance)
        closed += (line for line, words in open_lines.items() if _is_closed(words, signal))
        open_lines = {line: words for line, words in open_lines.items() if line not in closed}
    return tuple(closed)


def find_open_loops(utterances: Sequence[Utterance], now: datetime) -> list[OpenLoop]:
    """Loops that were opened and not closed, oldest first."""
    loops: list[OpenLoop] = []
    this_turn: dict[str, list[OpenLoop]] = {}
    """Loops that the user opened in the current turn, by session. A "done" of the assistant closes them."""
    for utterance in giving_way(utterances):
        if utterance.role == "user":
            this_turn[utterance.session] = []
        if loops:
            signal = _close_signal(utterance)
            has_done = signal[0] and utterance.role == "assistant"
            closed_now = this_turn.get(utterance.session, []) if has_done else []
            loops = [loop for loop in loops if not (_is_closed(loop.words, signal) or loop in closed_now)]
        new = list(_new_loops(utterance)) if utterance.trust >= Trust.AGENT and utterance.role != "tool" else []
        loops = [*loops, *new][-MAX_OPEN_LOOPS:]
        if utterance.role == "user":
            this_turn[utterance.session] += new
    return [*loops, *_unanswered_requests(utterances, now)]


_CloseSignal = tuple[bool, frozenset[str], frozenset[str]]
"""True for a report of completion; past-tense words; all words."""

_NO_SIGNAL: _CloseSignal = (False, frozenset(), frozenset())


def _close_signal(utterance: Utterance) -> _CloseSignal:
    """Words with which an utterance closes loops.

    "I called the dentist" closes one like "done" does. Successful tool calls close loops by their arguments. Read-only
    tools do not. Negated sentences leave a loop open, unless they cancel it.
    """
    if utterance.role == "tool":
        uses = (one for one in utterance.tool_uses if not one.failed and not parse_tool_name(one.tool).is_read)
        arguments = "\n".join(one.arguments for one in uses)
        return (True, frozenset(), frozenset(query_words(arguments))) if arguments else _NO_SIGNAL
    cancelled = compile_cached(_CANCELLED)
    sentences = (one for one in utterance.sentences if not is_negated(one) or cancelled.search(one.casefold()))
    text = normalize_sentence(" ".join(sentences))
    past_verbs = compile_cached(r"\b\w+ed\b").findall(text)
    done = compile_cached(_DONE).search(text) is not None
    if not (done or past_verbs):
        return _NO_SIGNAL
    return done, frozenset(query_words(" ".join(past_verbs))), frozenset(query_words(text))


def _is_closed(loop_words_: frozenset[str], signal: _CloseSignal) -> bool:
    done, past_words, words = signal
    return len(loop_words_ & words) >= MIN_WORD_SHARE * len(loop_words_) and (
        done or not past_words.isdisjoint(loop_words_)
    )


_CANCELLED = r"never ?mind|no longer|no need|don['’]t (?:bother|need)|not (?:needed|necessary)|不用|不必|不需要|算了"


def _new_loops(utterance: Utterance) -> Iterator[OpenLoop]:
    pattern = compile_cached(_USER_LOOP if utterance.role == "user" else _AGENT_LOOP)
    for sentence in utterance.sentences:
        text = normalize_sentence(sentence)
        is_loop = pattern.search(text) and not compile_cached(_NOT_A_LOOP).search(text) and not is_question(sentence)
        # "I'll do it later" has no topic and opens no loop.
        if is_loop and (words := loop_words(sentence)):
            yield OpenLoop(shorten(sentence, MAX_LOOP_CHARACTERS), words, utterance)


def _unanswered_requests(utterances: Sequence[Utterance], now: datetime) -> Iterator[OpenLoop]:
    for turn in unanswered_turns(split_turns(utterances), now):
        message = turn.user_messages[-1]
        if message.trust >= Trust.PERSON and any(map(is_request, message.sentences[:MAX_REQUEST_SENTENCES])):
            yield OpenLoop(shorten(message.text, MAX_LOOP_CHARACTERS), keywords(message.text), message)


_LOOP_LINE = r"Open since \d{4}-\d\d-\d\d: |未完成（自 \d{4}-\d\d-\d\d 起）："

_LOOP_STOP_WORDS = frozenset(
    query_words(
        """
        remind remember forget todo still need open pending missing continue finish tomorrow tonight later soon
        afterwards next week month time 提醒 醒我 待办 还没 没有 还需 需要 完成 下次 继续 明天 回头 稍后 记得 忘了
        """
    )
)
_LATER = any_of(
    r"tomorrow|tonight|later(?: today| on)?|afterwards?|next (?:week|month|\w+day)",
    r"(?:on|by|until|before) (?:\w+day|tomorrow|the end|noon|then)",
    r"this (?:afternoon|evening|week|weekend)",
)
_PROMISE = (
    r"\b(?:i|we)(?:'ll| will|'m going to| am going to|'re going to)"
    rf"(?! (?:be|see|talk|think|try|keep|catch|never|not|let you)\b)[^.!?;\n]*?\b{_LATER}\b"
)
_STILL_TO_DO = any_of(
    r"\bstill (?:need|needs|have|has|got) to\b",
    r"\b(?:is|are) still (?:open|pending|missing|to be done|to do|not done|unfinished|outstanding)\b",
    r"\bto be continued\b",
    rf"\b(?:let's|we'll|we will|we can) (?:continue|finish|pick|come back|get back)\b[^.!?;\n]*?\b{_LATER}\b",
    r"未完成|还(?:需要|得|要)(?=[一-鿿])|还没有?(?:完成|做|弄|写|处理|解决|修|改|提交|上线|发|交|付)|下次(?:再|继续)",
    r"(?:明天|回头|稍后|晚点)(?:我会|我要|我再|再|继续|我来)",
)
# "These moments remind me to be kind" is no request: a request is at the beginning of a clause.
_USER_LOOP = any_of(
    r"(?:^|[.,;:!]\s*|\b(?:please|you|and|also|then|but)\s+)remind me (?:to|about|that|of)\b",
    r"\b(?:don't|do not) let me forget\b",
    r"\bto-?do\s*[:：-]|(?m:^)\s*[-*] \[ \] ",
    r"提醒我|待办|别忘了",
    _STILL_TO_DO,
    _PROMISE,
)
# In a reply, "is still pending" describes a state; it is mostly no task of the assistant.
_AGENT_LOOP = any_of(r"\b(?:i|we) still (?:need|have) to\b", _PROMISE, r"我(?:明天|稍后|晚点|回头)(?:会|再|来)")
_NOT_A_LOOP = any_of(
    r"\bif (?:i|we|you)\b|\b(?:said|says|told|asked|wrote|used to|would|hopefully|maybe|probably|perhaps|i think)\b",
    r"\bno need\b|\b(?:don't|do not|doesn't) (?:need|have) to\b|不用|不需要|如果|要是|他说|她说",
)
_DONE = any_of(
    r"\b(?:done|finished|completed?|sent|fixed|resolved|solved|submitted|shipped|merged|paid|booked|bought|sorted)\b",
    r"\bi(?:'ve| have) (?:set|added|created|scheduled|noted|put|updated|made|written|saved)\b",
    r"\b(?:took|taken) care of\b|\balready\b|\bno longer needed\b|\bnever ?mind\b|\bforget (?:it|about)\b",
    r"\bcancel(?:led|ed)?\b|\breminder (?:is |has been )?set\b",
    r"\[x\]|✅|完成了|已经?|搞定|做完|办好|弄好|好了|不用了|取消",
)

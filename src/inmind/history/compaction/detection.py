"""Detects goals, rules, decisions and choices in people's words, by their form.

An ordinary next question belongs to the task at hand. A message starts a new task if it says so ("New task: …"), if it
opens like the message that started the current one, as programs write their tasks, if it turns to something else
("Now write …", "Another thing: …") that neither the goal nor the reply before it names, or if after some turns it
greets again or says thanks, and asks for something else, as people do.

A sentence is a lasting rule or decision by its form. Questions, quotes, statements of others, and instructions for this
moment only are not rules. The words are in `core.language`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice

from inmind.core.events.session import RetainedItem
from inmind.core.language import phrases
from inmind.core.language.prose import is_greeting, is_request, own_words
from inmind.core.language.rules import POLITE_QUESTION, RULE_HEADING, RuleKind, RulePatterns, patterns_for
from inmind.core.language.spans import compile_cached, first_sentences, split_sentences
from inmind.history.turns import TurnMessage

MAX_GOAL_CHARACTERS = 800
"""Longest goal or request. A longer one is cut after a sentence and marked."""

# A new task is announced in the first sentences of a message.
_SCANNED_SENTENCES = 6
_MAX_SCANNED_CHARACTERS = 400
# Messages after a goal before a greeting starts another task: people also greet when they answer the first question.
_MIN_MESSAGES = 12
# The same opening words mean the same kind of task if the message is as long as a task description.
_OPENING_WORDS = 8
_MIN_TEMPLATE_CHARACTERS = 400
_MIN_TASK_WORDS = 5
"""A shorter request belongs to the task at hand."""
_MAX_SCANNED_REPLY = 4_000
_MAX_CHOICE_CHARACTERS = 80
_MAX_FILLER_CHARACTERS = 120


def is_filler(words: str) -> bool:
    """True if the text asks for nothing: "continue", "ok go on 3", "yes", "thanks"."""
    if len(words) > _MAX_FILLER_CHARACTERS or "?" in words or "？" in words:
        return is_greeting(words)
    return is_greeting(words) or bool(compile_cached(phrases.FILLER).fullmatch(words))


def announces_task(words: str) -> bool:
    """True if the text says that a new task begins."""
    if not compile_cached(phrases.TASK_CUES).search(words):
        return False
    return any(
        compile_cached(phrases.NEW_TASK).match(one) and (":" in one or "：" in one or not one.endswith(("?", "？")))
        for one in _scanned_sentences(words)
    )


def find_goals(
    people: Sequence[tuple[TurnMessage, str]], known: RetainedItem | None, *, place_of: Callable[[int], int]
) -> Iterator[RetainedItem]:
    """Yield the goals that messages of people state, in order.

    `people`: the messages, each with the reply before it. `known`: the goal stated before them, None if there was none;
    the first message beyond a greeting then states it. Its text is empty if it is not known. `place_of`: the place of a
    message in the conversation, by its number.
    """
    current = known
    for message, reply in people:
        text = message.text
        if not message.starts_turn or is_filler(text):
            continue
        item = RetainedItem("goal", first_sentences(text, MAX_GOAL_CHARACTERS), message.seq)
        if current is None or announces_task(text) or _opens_like(text, current.text):
            yield (current := item)
        elif not current.text:
            current = item  # usually the first message, which stated the goal
        elif _turns_to_another(text, current.text, reply) or (
            place_of(item.seq) - place_of(current.seq) >= _MIN_MESSAGES
            and (_returns(text) or _thanks_and_asks(text, current.text))
        ):
            yield (current := item)


def _opens_like(text: str, goal: str) -> bool:
    """True if a long text opens with the words of the goal, as the tasks of a program do."""
    opening = goal.split(maxsplit=_OPENING_WORDS)[:_OPENING_WORDS]
    return (
        len(text) >= _MIN_TEMPLATE_CHARACTERS
        and len(opening) == _OPENING_WORDS
        and text.split(maxsplit=_OPENING_WORDS)[:_OPENING_WORDS] == opening
    )


def _returns(text: str) -> bool:
    """True if a person greets and asks for something."""
    return bool(compile_cached(phrases.OPENING_GREETING).match(text)) and is_request(text)


def _thanks_and_asks(text: str, goal: str) -> bool:
    """True if a person says thanks and asks for something that shares no word with the goal."""
    if not (compile_cached(phrases.OPENING_THANKS).match(text) and is_request(text)):
        return False
    words, known = (set(compile_cached(phrases.LONG_WORD).findall(one.lower())) for one in (text, goal))
    return len(words) >= _MIN_TASK_WORDS and words.isdisjoint(known - phrases.COMMON_WORDS)


def _turns_to_another(text: str, goal: str, reply: str) -> bool:
    """True if a person says "now", "next" or "another thing" and asks for something else.

    The object of the request then refers to nothing at hand, has no word of the goal, and less than half of its words
    are in the reply before. "Instead" replaces the goal, so the object may have words of it.
    """
    rest = _after_next(text)
    if rest is None or compile_cached(phrases.REFERENCE).search(rest):
        return False
    words, goal_words, reply_words = (_object_words(one) for one in (rest, goal, reply[-_MAX_SCANNED_REPLY:]))
    replaces = compile_cached(r"(?i)\binstead\b").search(rest) and not words <= goal_words
    return (bool(replaces) or words.isdisjoint(goal_words)) and 2 * len(words & reply_words) < len(words)


def opens_with_next(text: str) -> bool:
    """True if a request opens with "now", "next" or "another thing"."""
    return _after_next(text) is not None


def _after_next(text: str) -> str | None:
    """The object of a request that opens so; None for other messages."""
    if not compile_cached(phrases.NEXT_CUES).search(text[:_MAX_SCANNED_CHARACTERS]):
        return None
    sentence = next((one for one in _scanned_sentences(text) if not is_filler(one)), "")
    opening = compile_cached(phrases.NEXT).match(sentence)
    return sentence[opening.end() :] if opening else None


def _object_words(text: str) -> frozenset[str]:
    """Return the words for things; words for parts of any work are left out."""
    plain = compile_cached(phrases.CHINESE_COMMON_WORDS).sub(" ", text)
    return frozenset(word.rstrip("s") for word in content_words(plain)) - phrases.GENERIC_WORDS


def _scanned_sentences(words: str) -> Iterator[str]:
    sentences = (one for line in own_words(words) for one in split_sentences(line))
    return (one[:_MAX_SCANNED_CHARACTERS].rstrip() for one in islice(sentences, _SCANNED_SENTENCES))


MAX_ITEM_CHARACTERS = 300
"""Longest rule or decision. A longer sentence is cut to the relevant clauses, or ignored."""

# A longer sentence is data.
_MAX_SENTENCE_CHARACTERS = 2_000


def find_rules(words: str) -> Iterator[tuple[RuleKind, str]]:
    """Yield rules and decisions in a person's words, one for each sentence or list item."""
    below_heading = False
    for line in own_words(words):
        list_mark = compile_cached(phrases.LIST_MARK).match(line)
        body = line[list_mark.end() :] if list_mark else line
        sentences = (one for one in split_sentences(body) if len(one) <= _MAX_SENTENCE_CHARACTERS)
        rules = [
            order for one in sentences if (patterns := patterns_for(one)) for order in _match_sentence(one, patterns)
        ]
        yield from rules
        if not list_mark:
            # Items listed below "From now on:" or "Rules:" are rules in any form.
            below_heading = line.endswith((":", "：")) and bool(
                rules or compile_cached(RULE_HEADING).fullmatch(line.lower())
            )
        elif (
            below_heading
            and not rules
            and len(body) <= MAX_ITEM_CHARACTERS
            and not compile_cached(phrases.QUESTION_CLAUSE).search(body.lower())
        ):
            yield "rule", _strip_markup(body)


def find_open_decisions(words: str) -> Iterator[str]:
    """Yield the open decisions in the words of any speaker."""
    if any(forms.kind == "open_decision" for forms in patterns_for(words)):
        yield from (text for kind, text in find_rules(words) if kind == "open_decision")


def has_rule_cue(text: str) -> bool:
    """True if the text has a word that a rule needs; most messages have none."""
    return bool(patterns_for(text))


def find_proposals(words: str) -> list[str]:
    """Return the assistant's last proposal or decision; a user's yes makes it binding."""
    low = words.lower()
    if not (compile_cached(r"\bdecision\s*:").search(low) or compile_cached(phrases.PROPOSAL).search(low)):
        return []
    sentences = (
        compile_cached(phrases.LIST_MARK).sub("", one, count=1)
        for line in own_words(words)
        for one in split_sentences(line)
    )
    proposed = [
        one
        for one in sentences
        if compile_cached(phrases.PROPOSAL).search(one.lower()) and not compile_cached(phrases.NO_PROPOSAL).match(one)
    ]
    return [text for one in proposed[-1:] if len(text := _strip_markup(one)) <= MAX_ITEM_CHARACTERS]


def answers_open_decision(decision: str, question: str) -> bool:
    """True if a decision names one of the alternatives of an open decision.

    If the open decision names no alternatives, at least two of its words, and half of them, must be in the decision.
    """
    words = content_words(decision)
    if alternatives := _alternatives(question):
        return any(own and own <= words for _, own in alternatives) or _is_alternative(_option(decision), question)
    topic = content_words(question)
    return len(topic & words) >= max(2, (len(topic) + 1) // 2)


def find_choices(words: str, questions: Sequence[str]) -> Iterator[str]:
    """Yield the sentences that choose an alternative of one of these open decisions.

    Such a sentence has no words but those of one alternative and of a choice: "UPS it is." Only the question makes it a
    decision.
    """
    for sentence in (one for line in own_words(words) for one in split_sentences(line)):
        if len(sentence) > _MAX_CHOICE_CHARACTERS or sentence.endswith(("?", "？")):
            continue
        if (option := _option(sentence)) and any(_is_alternative(option, question) for question in questions):
            yield _strip_markup(sentence)


def agrees(words: str) -> bool:
    """True if a user agrees to a proposal."""
    return bool(compile_cached(phrases.AGREEMENT).match(words)) and not compile_cached(phrases.RESERVATION).search(
        words
    )


def _match_sentence(sentence: str, patterns: Sequence[RulePatterns]) -> Iterator[tuple[RuleKind, str]]:
    low = sentence.lower().replace("*", " ")
    if len(low) != len(sentence):
        # Lowercasing changed the length of a character, so offsets would be wrong; our patterns do not need it.
        low = sentence
    for forms in patterns:
        end = forms.match_end(low)
        if end is None or _is_quoted(sentence, end) or _is_reported(low, end):
            continue
        if forms.kind == "open_decision":  # it may be a question, but "do we have to decide?" is none
            text = "" if compile_cached(phrases.QUESTION_CLAUSE).match(low) else _strip_markup(sentence)
        else:
            text = _relevant_clauses(sentence, low, end)
        # A temporary decision is valid until the next one; a temporary rule is not kept.
        if 0 < len(text) <= MAX_ITEM_CHARACTERS and (
            forms.kind != "rule" or not compile_cached(phrases.TEMPORARY).search(text.lower())
        ):
            yield forms.kind, text
        return


def _relevant_clauses(sentence: str, low: str, end: int) -> str:
    """Return the sentence without a question that follows, within the limit.

    Empty if the rule is the question. People state a preference and ask for something else in one sentence. A cut is
    made after a clause and marked.
    """
    if not compile_cached(POLITE_QUESTION).search(low):
        question = compile_cached(phrases.QUESTION_CLAUSE).search(low)
        if question.start() < end if question else compile_cached(phrases.QUESTION).search(low):
            return ""
        sentence = sentence[: question.start()] if question else sentence
    text = _strip_markup(sentence)
    if len(text) <= MAX_ITEM_CHARACTERS:
        return text
    borders = [0, *(border.end() for border in compile_cached(phrases.CLAUSE_END).finditer(sentence))]
    start = max(border for border in borders if border < end)
    stops = [border for border in borders if end < border <= start + MAX_ITEM_CHARACTERS - 2]
    return f"{_strip_markup(sentence[start : stops[-1]])} …" if stops else ""


def _is_quoted(sentence: str, place: int) -> bool:
    """True inside quotation marks or code."""
    before = sentence[:place]
    return any(before.count(mark) % 2 for mark in '"`') or any(
        before.count(opens) > before.count(closes) for opens, closes in ("“”", "「」", "『』", "《》")
    )


def _is_reported(low: str, place: int) -> bool:
    """True if the words before report a statement of another person."""
    report = compile_cached(phrases.REPORTED).search(low)
    return report is not None and report.start() < place


def _option(sentence: str) -> frozenset[str]:
    """The words of a sentence without those of a choice."""
    rest = compile_cached(phrases.CHINESE_CHOICE_WORDS).sub(" ", sentence.lower().replace("’", "'"))
    return _words(rest) - phrases.CHOICE_WORDS


def _is_alternative(words: frozenset[str], question: str) -> bool:
    """True if the words are those of one alternative, and of no other."""
    named = [every for every, own in _alternatives(question) if not own.isdisjoint(words)]
    return len(named) == 1 and words <= named[0]


def _alternatives(question: str) -> list[tuple[frozenset[str], frozenset[str]]]:
    """Return the words of each option of an open decision, and those that no other option has.

    Options are named as "between A and B" or "A or B". Empty if there are fewer than two.
    """
    low = question.lower()
    if options := compile_cached(phrases.BETWEEN).search(low):
        texts = compile_cached(phrases.OPTION_MARK).split(options[1])
    else:
        options = compile_cached(phrases.EITHER_OR).search(low)
        texts = compile_cached(phrases.OPTION_MARK).split(options[0]) if options else []
    words = [content_words(one) for one in texts]
    shared = frozenset[str].intersection(*words) if words else frozenset[str]()
    return [(one, one - shared) for one in words] if len(words) > 1 else []


def content_words(text: str) -> frozenset[str]:
    """Return the words that carry meaning; for Chinese, pairs of characters."""
    return _words(compile_cached(phrases.CHINESE_FUNCTION_WORDS).sub(" ", text.lower())) - phrases.FUNCTION_WORDS


def _words(low: str) -> frozenset[str]:
    words = set(compile_cached(r"[a-z0-9](?:[^\W一-鿿]|[.+#'-])*(?<![.'-])").findall(low))
    for run in compile_cached(r"[一-鿿]+").findall(low):
        words.update(run[place : place + 2] for place in range(max(1, len(run) - 1)))
    return frozenset(words)


def _strip_markup(text: str) -> str:
    """Return one line without surrounding emphasis and trailing comma."""
    line = " ".join(text.split()).rstrip(",，;； ")
    return compile_cached(phrases.EMPHASIZED).sub(r"\2", line)

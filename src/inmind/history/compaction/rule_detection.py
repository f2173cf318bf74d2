"""Detects sentences that are lasting rules or decisions, by their form.

Questions, quotes, statements of others, and instructions for this moment only are not rules.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from inmind.core.language.prose import own_words
from inmind.core.language.spans import compile_cached, split_sentences
from inmind.history.compaction.rule_patterns import POLITE_QUESTION, RULE_HEADING, RuleKind, RulePatterns, patterns_for

MAX_ITEM_CHARACTERS = 300
"""Longest rule or decision. A longer sentence is cut to the relevant clauses, or ignored."""

# A longer sentence is data.
_MAX_SENTENCE_CHARACTERS = 2_000


def find_rules(words: str) -> Iterator[tuple[RuleKind, str]]:
    """Yield rules and decisions in a person's words, one for each sentence or list item."""
    below_heading = False
    for line in own_words(words):
        list_mark = compile_cached(_LIST_MARK).match(line)
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
            and not compile_cached(_QUESTION_CLAUSE).search(body.lower())
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
    if not (compile_cached(r"\bdecision\s*:").search(low) or compile_cached(_PROPOSAL).search(low)):
        return []
    sentences = (
        compile_cached(_LIST_MARK).sub("", one, count=1) for line in own_words(words) for one in split_sentences(line)
    )
    proposed = [
        one
        for one in sentences
        if compile_cached(_PROPOSAL).search(one.lower()) and not compile_cached(_NO_PROPOSAL).match(one)
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
    return bool(compile_cached(_AGREEMENT).match(words)) and not compile_cached(_RESERVATION).search(words)


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
            text = "" if compile_cached(_QUESTION_CLAUSE).match(low) else _strip_markup(sentence)
        else:
            text = _relevant_clauses(sentence, low, end)
        # A temporary decision is valid until the next one; a temporary rule is not kept.
        if 0 < len(text) <= MAX_ITEM_CHARACTERS and (
            forms.kind != "rule" or not compile_cached(_TEMPORARY).search(text.lower())
        ):
            yield forms.kind, text
        return


def _relevant_clauses(sentence: str, low: str, end: int) -> str:
    """Return the sentence without a question that follows, within the limit.

    Empty if the rule is the question. People state a preference and ask for something else in one sentence. A cut is
    made after a clause and marked.
    """
    if not compile_cached(POLITE_QUESTION).search(low):
        question = compile_cached(_QUESTION_CLAUSE).search(low)
        if question.start() < end if question else compile_cached(_QUESTION).search(low):
            return ""
        sentence = sentence[: question.start()] if question else sentence
    text = _strip_markup(sentence)
    if len(text) <= MAX_ITEM_CHARACTERS:
        return text
    borders = [0, *(border.end() for border in compile_cached(_CLAUSE_END).finditer(sentence))]
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
    report = compile_cached(_REPORTED).search(low)
    return report is not None and report.start() < place


def _option(sentence: str) -> frozenset[str]:
    """The words of a sentence without those of a choice."""
    rest = compile_cached(_CHINESE_CHOICE_WORDS).sub(" ", sentence.lower().replace("’", "'"))
    return _words(rest) - _CHOICE_WORDS


def _is_alternative(words: frozenset[str], question: str) -> bool:
    """True if the words are those of one alternative, and of no other."""
    named = [every for every, own in _alternatives(question) if not own.isdisjoint(words)]
    return len(named) == 1 and words <= named[0]


def _alternatives(question: str) -> list[tuple[frozenset[str], frozenset[str]]]:
    """Return the words of each option of an open decision, and those that no other option has.

    Options are named as "between A and B" or "A or B". Empty if there are fewer than two.
    """
    low = question.lower()
    if options := compile_cached(_BETWEEN).search(low):
        texts = compile_cached(_OPTION_MARK).split(options[1])
    else:
        options = compile_cached(_EITHER_OR).search(low)
        texts = compile_cached(_OPTION_MARK).split(options[0]) if options else []
    words = [content_words(one) for one in texts]
    shared = frozenset[str].intersection(*words) if words else frozenset[str]()
    return [(one, one - shared) for one in words] if len(words) > 1 else []


def content_words(text: str) -> frozenset[str]:
    """Return the words that carry meaning; for Chinese, pairs of characters."""
    return _words(compile_cached(_CHINESE_FUNCTION_WORDS).sub(" ", text.lower())) - _FUNCTION_WORDS


def _words(low: str) -> frozenset[str]:
    words = set(compile_cached(r"[a-z0-9](?:[^\W一-鿿]|[.+#'-])*(?<![.'-])").findall(low))
    for run in compile_cached(r"[一-鿿]+").findall(low):
        words.update(run[place : place + 2] for place in range(max(1, len(run) - 1)))
    return frozenset(words)


def _strip_markup(text: str) -> str:
    """Return one line without surrounding emphasis and trailing comma."""
    line = " ".join(text.split()).rstrip(",，;； ")
    return compile_cached(_EMPHASIZED).sub(r"\2", line)


_LIST_MARK = (
    r"\s*(?:[-*–—]\s+|[•‣·]\s*|\(?(?:\d{1,3}|[a-z])[.)]\s+|[（(]?(?:\d{1,3}|[一二三四五六七八九十]+)[)）、]\s*)"
    r"(?:\[[ x]\]\s*)?"
)
_CLAUSE_END = r"[,;:，；：]\s*|\s[-–—]+\s|\s(?=(?:and|but|so|because|since|which)\s)"
_EMPHASIZED = r"\A(\*\*|__|\*|_)([^*_]+)\1\Z"

# Words of an instruction for this moment only.
_TEMPORARY = (
    r"\b(?:yet|this time|right now|just now|for now|(?<!from )now|at the moment|lines? \d+)\b|这次|暂时|先别|还不要"
)
# Words of someone else, or an assumption of the speaker.
_REPORTED = (
    r"(?<!\bi )(?<!\bwe )(?<!\bhave )(?<!'ve )\b"
    r"(?:(?:says?|said|states?|claims?|claimed|wrote|writes|told|thinks|according to)|"
    r"(?:error|bug|problem|issue|cause|reason|failure|fault|culprit|it|that|this)\s+must\s+not)\b|"
    r"(?<![我来是再话如])说(?![明话法得了])|(?<!我)(?<!我们)(?:认为|规定)"
)
_QUESTION_CLAUSE = (
    r"(?:^|[,;:，；]\s*|\s[-–—]+\s*|\b(?:and|so|but|or)\s+)(?:(?:so|and|but|also|then|now|hmm|please|well)[\s,]+)*(?:"
    r"(?:can|could|would|will|should|shall|may|must|do|does|did|is|are|am|have|has|isn['’]t|aren['’]t|don['’]t)\s+"
    r"(?:you|we|i|it|there|that|this|they|my|the|these)\b|"
    r"how\s+(?:do|can|should|would|could|to|might|is|are|does|much|many|will|did)\b|"
    r"(?:what|why|where|who|which)(?:['’]s)?\s+(?:\w+\s+)?(?:is|are|do|does|did|would|should|can|could|will|if|about)\b|"
    r"what['’]?s\b|why\s+not\b|any\s+(?:ideas|suggestions|tips|advice|thoughts)\b|i(?:['’]m|\s+am)\s+wondering\b)"
)
_QUESTION = r"[?？]\W*$|[吗呢么]\W*$"
_AGREEMENT = (
    r"(?i)\W*(?:yes|yep|yeah|yup|sure|ok|okay|alright|fine|agreed?|approved|absolutely|definitely|please\s+do|"
    r"(?:that\s+)?sounds\s+(?:good|great|perfect)|(?:let['’]?s\s+)?do\s+(?:it|that|so)|go\s+ahead|perfect|great|"
    r"good\s+idea|proceed|(?:that\s+)?works(?:\s+for\s+me)?|exactly|好的?|可以|行|同意|就这样|没问题|嗯|对|确认|就这么办|按你说的)"
    r"(?=\W|$|吧|啊|的|了)"
)
# A yes with one of these is none, or only half of one.
_RESERVATION = (
    r"(?i)\b(?:but|however|except|no|not|never|wait|actually|instead|rather|hold\s+on|\w+n['’]?t)\b|[?？]|"
    r"但是?|不过|不要|不用|别|等等|不行"
)
# A yes does not answer these: open questions, advice for a case, examples.
_NO_PROPOSAL = r"(?i)\W*(?:which|what|how|who|when|where|if)\b|.*\b(?:examples?|illustrate)\b"
_PROPOSAL = (
    r"\bi(?:['’]d|\s+would)?\s+(?:strongly\s+)?(?:suggest|propose|recommend)\b|"
    r"\bi(?:['’]d|\s+would)\s+(?:go\s+(?:with|for)|use|choose|pick)\b|\bmy\s+(?:suggestion|recommendation|proposal|plan)\b|"
    r"\b(?:shall|should)\s+(?:we|i)\s+(?:go\s+with|use|switch\s+to|stick\s+(?:with|to))\b|"
    r"\blet['’]?s\s+(?:just\s+)?(?:adopt|choose|drop|go\s+(?:with|for)|keep|pick|settle\s+on|stay\s+with|"
    r"stick\s+(?:with|to)|switch\s+to|use)\b|\bwe(?:['’]ll|\s+(?:should|will))\s+(?:go\s+with|stick\s+(?:with|to)|"
    r"switch\s+to|use)\b|\b(?:i|we)(?:['’]ve|\s+have)?\s+decided\s+(?:to|on|against|that)\b|\A[\s*_]*+decision\s*:|"
    r"建议|提议|推荐(?:用|使用|采用)|我的(?:方案|想法)是|决定(?:用|采用|选|使用|改)|"
    r"(?:我们|咱们)?就(?:用|选|采用)[^，。！？]{1,30}吧"
)
# Options of an open decision, and the words between them.
_BETWEEN = r"\bbetween\s+([^.!?;:]+?)(?=\s+(?:as|because|before|by|for|in|on|when)\b|[.!?;:]|$)"
_EITHER_OR = (
    r"(?:[\w.+#-]+\s+){0,3}[\w.+#-]+\s*,?\s+(?:or|vs\.?|versus)\s+[\w.+#-]+(?:\s+[\w.+#-]+){0,2}|"
    r"[\w.+#-]+\s*(?:还是|或者?|和|与)\s*[\w.+#-]+"
)
_OPTION_MARK = r"\s*,?\s*\b(?:and|or|vs|versus)\b\.?\s*|\s*(?:还是|或者?|和|与)\s*|,\s+"
_FUNCTION_WORDS = frozenset(
    "a an and are as at be between by choice choose decide decided decision decisions do either for from go have if in "
    "is it keep let's need needed of on open or pending pick question should stay still switch tbd that the this to "
    "undecided use using versus vs we we'll what when whether which will with yet".split()
)
# The words of a choice beside the chosen alternative.
_MAX_CHOICE_CHARACTERS = 80
_CHOICE_WORDS = frozenset(
    "a alright an choose definitely fine for go going great i i'd i'll i'm is it let's lets okay ok one option perfect "
    "pick please right settle so sure take that's the then us use we we'd we'll we're will with would yeah yep "
    "yes".split()
)
_CHINESE_CHOICE_WORDS = r"我们?|咱们|那|就|还是(?=[用选])|用|选择?|采用|好的?|行|可以|嗯|请|[的了吧来定]"
_CHINESE_FUNCTION_WORDS = (
    r"我们|咱们|还(?:没有?|要|得|是)|需要?|决定|待定|选择?|使用|采用|用|或者?|是否|要不要|哪个|什么|[的了吧就先在和与]"
)

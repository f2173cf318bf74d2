"""Which sentences are orders that hold beyond this moment, and which are decisions: told by their form.

A question is no order, nor is what somebody quotes or tells of others, nor what is meant for this moment only.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from inmind.core.language.prose import compiled, own_words, sentences
from inmind.history.compaction.rule_patterns import POLITE_QUESTION, RULE_HEADING, RuleKind, RulePatterns, patterns_for

MAX_ITEM_CHARACTERS = 300
"""Characters of a rule or a decision. A longer sentence is cut to the clauses that matter, or it is none."""

# Nobody speaks a sentence of so many characters; it is data, whatever words are in it.
_MAX_SENTENCE_CHARACTERS = 2_000


def find_rules(words: str) -> Iterator[tuple[RuleKind, str]]:
    """The rules and decisions in what a person says, one for each sentence or list item."""
    below_heading = False
    for line in own_words(words):
        listed = compiled(_LIST_MARK).match(line)
        body = line[listed.end() :] if listed else line
        said = (one for one in sentences(body) if len(one) <= _MAX_SENTENCE_CHARACTERS)
        found = [order for one in said if (could_be := patterns_for(one)) for order in _match_sentence(one, could_be)]
        yield from found
        if not listed:
            # What is listed below "From now on:" or "Rules:" are rules, whatever their form.
            below_heading = line.endswith((":", "：")) and bool(found or compiled(RULE_HEADING).fullmatch(line.lower()))
        elif (
            below_heading
            and not found
            and len(body) <= MAX_ITEM_CHARACTERS
            and not compiled(_QUESTION_CLAUSE).search(body.lower())
        ):
            yield "rule", _strip_markup(body)


def has_rule_cue(text: str) -> bool:
    """Has it any of the words that an order needs? Most messages have not."""
    return bool(patterns_for(text))


def find_proposals(words: str) -> list[str]:
    """What an assistant proposed last, in its own words: a user's yes makes it a decision."""
    if not compiled(_PROPOSES).search(words.lower()):
        return []
    said = (compiled(_LIST_MARK).sub("", one, count=1) for line in own_words(words) for one in sentences(line))
    proposed = [
        one for one in said if compiled(_PROPOSES).search(one.lower()) and not compiled(_WH_QUESTION).match(one)
    ]
    return [text for one in proposed[-1:] if len(text := _strip_markup(one)) <= MAX_ITEM_CHARACTERS]


def agrees(words: str) -> bool:
    """Does a user say yes to what was proposed?"""
    return bool(compiled(_AGREES).match(words))


def _match_sentence(sentence: str, patterns: Sequence[RulePatterns]) -> Iterator[tuple[RuleKind, str]]:
    low = sentence.lower().replace("*", " ")
    if len(low) != len(sentence):
        # A capital that is two letters when small: the places below would be off, and our words are not spelt so.
        low = sentence
    for forms in patterns:
        end = forms.match_end(low)
        if end is None or _is_quoted(sentence, end) or _is_reported(low, end):
            continue
        text = _relevant_clauses(sentence, low, end)
        # A decision for now holds until the next one; a rule for now is none.
        if text and (forms.kind == "decision" or not compiled(_TEMPORARY).search(text.lower())):
            yield forms.kind, text
        return


def _relevant_clauses(sentence: str, low: str, end: int) -> str:
    """The sentence without the question it may go on with, inside the bound; nothing where the order is the question.

    People say what they prefer and ask for something else in the same breath. What is cut for its length is cut behind
    a clause, and says so.
    """
    if not compiled(POLITE_QUESTION).search(low):
        asked = compiled(_QUESTION_CLAUSE).search(low)
        if asked.start() < end if asked else compiled(_QUESTION).search(low):
            return ""
        sentence = sentence[: asked.start()] if asked else sentence
    text = _strip_markup(sentence)
    if len(text) <= MAX_ITEM_CHARACTERS:
        return text
    borders = [0, *(border.end() for border in compiled(_CLAUSE_END).finditer(sentence))]
    start = max(border for border in borders if border < end)
    stops = [border for border in borders if end < border <= start + MAX_ITEM_CHARACTERS - 2]
    return f"{_strip_markup(sentence[start : stops[-1]])} …" if stops else ""


def _is_quoted(sentence: str, place: int) -> bool:
    """Is it somebody else's word: inside quotation marks, or code?"""
    before = sentence[:place]
    return any(before.count(mark) % 2 for mark in '"`') or any(
        before.count(opens) > before.count(closes) for opens, closes in ("“”", "「」", "『』", "《》")
    )


def _is_reported(low: str, place: int) -> bool:
    """Is it somebody else's word, told in the speaker's own: by what stands before it?"""
    found = compiled(_REPORTED).search(low)
    return found is not None and found.start() < place


def _strip_markup(text: str) -> str:
    """On one line, without the emphasis around it or the comma that it was cut at."""
    line = " ".join(text.split()).rstrip(",，;； ")
    return compiled(_EMPHASIZED).sub(r"\2", line)


_LIST_MARK = (
    r"\s*(?:[-*–—]\s+|[•‣·]\s*|\(?(?:\d{1,3}|[a-z])[.)]\s+|[（(]?(?:\d{1,3}|[一二三四五六七八九十]+)[)）、]\s*)"
    r"(?:\[[ x]\]\s*)?"
)
_CLAUSE_END = r"[,;:，；：]\s*|\s[-–—]+\s|\s(?=(?:and|but|so|because|since|which)\s)"
_EMPHASIZED = r"\A(\*\*|__|\*|_)([^*_]+)\1\Z"

# Only for this moment: nothing that has to be told again later.
_TEMPORARY = (
    r"\b(?:yet|this time|right now|just now|for now|(?<!from )now|at the moment|lines? \d+)\b|这次|暂时|先别|还不要"
)
# Somebody else's word, or what the speaker takes to be the case.
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
_AGREES = (
    r"(?i)\W*(?:yes|yep|yeah|yup|sure|ok|okay|alright|fine|agreed?|approved|absolutely|definitely|please\s+do|"
    r"(?:that\s+)?sounds\s+(?:good|great|perfect)|(?:let['’]?s\s+)?do\s+(?:it|that|so)|go\s+ahead|perfect|great|"
    r"good\s+idea|(?:that\s+)?works(?:\s+for\s+me)?|exactly|好的?|可以|行|同意|就这样|没问题|嗯|对|确认|就这么办|按你说的)"
    r"(?=\W|$|吧|啊|的|了)(?!\W*\b(?:but|however|except|no)\b)"
)
# A yes is no answer to these, whatever they go on with.
_WH_QUESTION = r"(?i)\W*(?:which|what|how|who|when|where)\b"
_PROPOSES = (
    r"\bi(?:['’]d|\s+would)?\s+(?:strongly\s+)?(?:suggest|propose|recommend)\b|"
    r"\bi(?:['’]d|\s+would)\s+(?:go\s+(?:with|for)|use|choose|pick)\b|\bmy\s+(?:suggestion|recommendation|proposal|plan)\b|"
    r"\b(?:shall|should)\s+(?:we|i)\s+(?:go\s+with|use|switch\s+to|stick\s+(?:with|to))\b|"
    r"建议|提议|推荐(?:用|使用|采用)|我的(?:方案|想法)是"
)

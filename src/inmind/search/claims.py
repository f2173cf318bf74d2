"""Parses a note into claims: the questions it answers, and how.

Notes repeat facts or state a changed value. To detect this without a model, each note is parsed once: "the deadline
for the API moved to April 2" answers the question "deadline of the API" with April 2, and says that it changed. Two
notes are about the same fact if they answer the same question, which is a lookup and not a comparison, so a pass
over any number of notes is linear.

A wrong claim hides a true statement, a missed one leaves a duplicate. So statements that are hedged, reported or
about several things are not parsed, and a question includes every word that qualifies its subject.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from typing import Final, NamedTuple

from inmind.core.encoding import digest
from inmind.core.frozen import frozen
from inmind.core.language.spans import has_han
from inmind.search.statement_text import (
    MONTH,
    PREPOSITIONS,
    normalise,
    sentence_wording,
    split_sentences,
    strip_filler_zh,
    tokenise,
)
from inmind.search.tokenize import index_words

Answer = tuple[str, ...]
"""The words of an answer, in order."""

# Longer texts are compared by wording only.
MAX_STATEMENT_CHARS: Final = 400


@frozen
class Statement:
    """A parsed note."""

    wording: str
    """Digest; statements with the same wording say the same."""
    answers: Mapping[str, Answer]
    """Answers by question."""
    overrules: frozenset[str]
    """Questions for which this statement replaces an earlier, different answer."""
    is_complete: bool
    """The answers cover the whole statement: if they are overruled, all of it is."""


@lru_cache(maxsize=16_384)
def parse_statement(text: str) -> Statement:
    """Parse a note. Cached, because every consolidation parses all notes again."""
    normalised = normalise(text)
    sentences = split_sentences(normalised)
    claims = (
        [claim for sentence in sentences for claim in find_claims(sentence)] if len(text) <= MAX_STATEMENT_CHARS else []
    )
    is_complete = len(sentences) == 1 and not SAYS_MORE.search(sentences[0])
    property_ = next((claim for claim in claims if claim.is_property), None) if is_complete else None
    wordings = [wording for sentence in sentences if (wording := sentence_wording(sentence))]
    return Statement(
        wording=digest(property_.question, *property_.answer) if property_ else digest(*(wordings or [text])),
        answers={claim.question: claim.answer for claim in claims},
        overrules=frozenset(claim.question for claim in claims if claim.single_valued or claim.changed),
        is_complete=is_complete,
    )


def answers_differ(first: Answer, second: Answer) -> bool:
    """Return True if only one can be right. "Munich" and "Munich in Germany" can both be."""
    first_words, second_words = {word.casefold() for word in first}, {word.casefold() for word in second}
    return not (first_words <= second_words or second_words <= first_words)


class Claim(NamedTuple):
    question: str
    answer: Answer
    single_valued: bool
    """Only one answer can be right at a time, so another one is newer."""
    changed: bool
    """The claim itself says that it was different before."""

    @property
    def is_property(self) -> bool:
        """True for a plain property: "the API's deadline is", "the deadline of the API is"."""
        return self.question.startswith("is ") and self.single_valued and not self.changed


_CHANGE_VERBS = (
    r"(?:moved|changed|set|raised|lowered|increased|reduced|cut|slipped|pushed|postponed|delayed|rescheduled|extended|"
    r"shortened|renamed|updated|bumped|brought forward)"
)

# Hedged, limited to a day, or about several things.
_NOT_ASSERTED = re.compile(
    r"\?|\bmay\b|\b(?i:if|unless|whether|maybe|perhaps|probably|possibly|might|could|would|should|will|shall|must|"
    r"wants?|wish(?:es)?|hopes?|plans to|planning|thinks?|thinking|considers?|considering|says?|said|told|asked|"
    r"used to|had|did|today|tonight|tomorrow|yesterday|(?:this|next|last) (?:week|month|year|\w+day)|also|too|as well|"
    rf"both|another|besides|and|or|but|except|which|who|whose|where|(?:was|were)(?! (?:\w+ )?{_CHANGE_VERBS}))\b"
)


SAYS_MORE = re.compile(r"[,:，：、](?!\d)|\b(?:because|since|due to)\b|因为|由于")

_NOW_WORDS = re.compile(r"\b(?i:now|currently|nowadays|these days|from now on|as of today)\b *|\bnew ")

_UNCHANGED_WORDS = re.compile(r"\b(?:still|already|yet|again|recently) *", re.IGNORECASE)

_NEGATION = re.compile(
    r"\b(?:(?:do|does) +not|not(?! (?:all|always|every|just|necessarily|only|sure)\b)|never|no longer|"
    r"(?:(?:has|have) )?(?:stopped|quit)(?= \w+ing\b)) *",
    re.IGNORECASE,
)

_INSTEAD_OF = re.compile(r" (?:instead of|rather than) ")

_PREFERRED_TO = re.compile(r" (?:over|instead of|rather than) ")

_ANY_LONGER = re.compile(r" *\b(?:any ?more|any longer)\b", re.IGNORECASE)

_UNSPECIFIC_WORDS = frozenset(
    "it its he his him she her they their them this these those i me my we us our you your one some any each every "
    "most many several no all".split()
)

_QUALIFIER = re.compile(
    r"(.+?)( (?:about|after|as|at|before|by|during|for|from|in|of|on|per|under|until|via|when|while|with) .+)"
)


def find_claims(sentence: str) -> Iterator[Claim]:
    if has_han(sentence):
        yield from _find_claims_zh(sentence)
        return
    assertion = SAYS_MORE.split(sentence)[0].strip()
    if not assertion or _NOT_ASSERTED.search(sentence):
        return
    without_now = _NOW_WORDS.sub("", assertion)
    changed = without_now != assertion
    positive, negations = _NEGATION.subn("", _ANY_LONGER.sub("", _UNCHANGED_WORDS.sub("", without_now)))
    if negations > 1:
        return
    positive, instead = _split_instead(positive.strip())
    yield _truth_claim(positive, not negations, changed=changed)
    if instead:
        yield _truth_claim(instead, False)
    if not negations:
        yield from _claims_of_forms(_FORMS, positive, changed=changed)


def _truth_claim(assertion: str, is_true: bool, *, changed: bool = False) -> Claim:
    """Claim that a statement is true or false, by word stems except past forms.

    A denial overrules an earlier assertion. An assertion does not overrule a "never", which may be a rule that
    still holds.
    """
    question = " ".join(["holds", *map(_stem, tokenise(assertion.casefold()))])
    return Claim(question, ("yes",) if is_true else ("no",), single_valued=not is_true, changed=changed)


@lru_cache(maxsize=4_096)
def _stem(token: str) -> str:
    return " ".join(index_words(token)) if token.isalpha() and not token.endswith("ed") else token


def _split_instead(assertion: str) -> tuple[str, str]:
    """Return the statement, and the same statement about what it replaces."""
    match = (_PREFERRED_TO if "prefer" in assertion else _INSTEAD_OF).search(assertion)
    if not match:
        return assertion, ""
    assertion, (replaced, tail) = assertion[: match.start()], _split_qualifier(assertion[match.end() :])
    lead = replaced.split()[0]
    kept = (
        assertion.rpartition(f" {lead} ")[0]
        if lead in PREPOSITIONS
        else assertion.rsplit(maxsplit=len(replaced.split()))[0]
    )
    return assertion + tail, f"{kept} {replaced}{tail}"


def _split_qualifier(value: str) -> tuple[str, str]:
    """Split a value and the words that limit it to a case."""
    match = _QUALIFIER.fullmatch(value)
    return (match[1], match[2]) if match else (value, "")


# A parsed value: its words, and words that belong to the question, such as the unit of a number. None if the value is
# of another type: only values of one type can replace each other.
_Value = tuple[Answer, set[str]]

_WEEKDAY = re.compile(r"(?:mon|tues|wednes|thurs|fri|satur|sun)day")

_TIME = re.compile(r"\d{1,2}:\d\d|\d{1,2}(?:am|pm)|noon|midnight")

_NUMBER = re.compile(r"[$€£#]?\d[\w.,:%/+-]*")

_LEADING_PREPOSITION = re.compile(r"(?:on|at|by|for|in|due) ")

# Values that exclude each other: preferring or using one of a group means not the others.
_ALTERNATIVES = (
    "tabs spaces|dark light|tea coffee|short concise brief terse long detailed verbose|formal informal casual|"
    "metric imperial|celsius fahrenheit|email phone sms|mornings evenings afternoons|camelcase snake_case|vim emacs|"
    "npm yarn pnpm|pip poetry uv|postgres postgresql mysql mariadb sqlite|github gitlab bitbucket|windows linux macos|"
    "slack teams discord|制表符 空格|深色 浅色|茶 咖啡|简短 简洁 详细|英文 中文|英语 汉语|邮件 电话 短信"
)

_ALTERNATIVES_OF = {value: row.split()[0] for row in _ALTERNATIVES.split("|") for value in row.split()}

# Words after "moved to" or "works for" that are neither places nor companies.
_NOT_PLACES = frozenset(
    "team department group sales marketing engineering finance support design plan premium pro plus basic enterprise "
    "aws azure gcp kubernetes docker react vue angular rust go python java typescript javascript figma notion jira "
    "linear trello zoom obsidian".split()
)


def _date_value(value: str) -> _Value | None:
    tokens = tuple(tokenise(_LEADING_PREPOSITION.sub("", value, count=1).casefold()))
    if any(re.fullmatch(MONTH, token) for token in tokens):
        return tuple(token[:3] if token.isalpha() else token for token in tokens), {"<date>"}
    for unit, pattern in (("<weekday>", _WEEKDAY), ("<time>", _TIME)):
        if any(map(pattern.fullmatch, tokens)):
            return tokens, {unit}
    return None


def _number_value(value: str) -> _Value | None:
    tokens = tokenise(value)
    numbers = tuple(filter(_NUMBER.fullmatch, tokens))
    return (numbers, {"<number>", *tokens} - {*numbers}) if len(numbers) == 1 else None


def _name_value(value: str) -> _Value | None:
    named = value[:1].isupper() or re.search(r"[@/.:_]", value)
    return (tuple(tokenise(value)), {"<name>"}) if named and not _LEADING_PREPOSITION.match(value) else None


def _place_value(value: str) -> _Value | None:
    other = (_NOT_PLACES | _ALTERNATIVES_OF.keys()) & {*tokenise(value.casefold())}
    return None if other or _date_value(value) else _name_value(value)


def _word_value(value: str) -> _Value | None:
    return None if _LEADING_PREPOSITION.match(value) else (tuple(tokenise(value)), {"<word>"})


def _alternative_value(value: str) -> _Value | None:
    tokens = tokenise(value)
    chosen = tuple(token for token in tokens if token.casefold() in _ALTERNATIVES_OF)
    return (chosen, {f"<{_ALTERNATIVES_OF[chosen[0].casefold()]}>", *tokens} - {*chosen}) if len(chosen) == 1 else None


def _amount_value(value: str) -> _Value | None:
    return None if _date_value(value) or not _NUMBER.match(value) else _number_value(value)


def _any_value(value: str) -> _Value | None:
    return tuple(tokenise(value)), set()


class _ClaimForm(NamedTuple):
    """One way to state something.

    Groups: `about`, `noun`, `value`, and `old`, which no longer holds.
    """

    questions: str
    pattern: str
    """Without `about`, and without `value` if that follows the pattern."""
    value_parsers: Sequence[Callable[[str], _Value | None]]
    single_valued: bool = True
    changed: bool = False


@cache
def _compile(pattern: str) -> re.Pattern[str]:
    """Compile on first use: all patterns together take longer than importing everything else."""
    value = "" if "(?P<value>" in pattern else " (?P<value>.+)"
    return re.compile(f"(?P<about>.*?){pattern}{value}", re.IGNORECASE)


# Properties with one value. Values of the first group must be a date, number or name: "the manager is nice" does not
# overrule who the manager is.
_NOUN = (
    r"(?:deadline|due date|(?:start|end|launch|release|birth) ?date|birthday|age|(?:first |last |full |nick)?name|"
    r"e-?mail(?: address)?|(?:phone|mobile)(?: number)?|address|password|pin|user ?name|login|employer|boss|manager|"
    r"salary|wife|husband|spouse|budget|price|cost|fee|rate|(?:rate )?limit|quota|port|host(?:name)?|url|domain|"
    r"version|owner|assignee|size|weight|height|time ?zone|currency|location|venue|timeout|threshold|"
    r"capacity|headcount)"
)

_WORDED_NOUN = (
    r"(?:job title|role|position|status|state|priority|theme|"
    r"(?:favou?rite|preferred|default|primary|main|native|current) \w+(?: \w+)?)"
)

_OF = r"(?: (?:of|for) .+?)?"

_IS = r"(?:is|are)(?: set to)?"

_BECAME = (
    rf"(?:(?:has been|have been|has|have|is|was|were|got) )?{_CHANGE_VERBS}"
    r"(?: back| out| forward| up| down)?(?: from .+?)? to"
)

_HAS = r"(?:(?:has|have) )?"

_FROM = r"(?: from (?P<old>.+?))? to"

_EXACT_VALUES = (_date_value, _number_value, _name_value)
_EXACT_OR_WORD = (*_EXACT_VALUES, _word_value)

_FORMS = (
    _ClaimForm("is", rf"\b(?P<noun>{_NOUN}{_OF}) {_IS}", _EXACT_VALUES),
    _ClaimForm("is", rf"\b(?P<noun>{_NOUN}{_OF}) {_BECAME}", _EXACT_VALUES, changed=True),
    _ClaimForm("is", rf"\b(?P<noun>{_WORDED_NOUN}{_OF}) {_IS}", _EXACT_OR_WORD),
    _ClaimForm("is", rf"\b(?P<noun>{_WORDED_NOUN}{_OF}) {_BECAME}", _EXACT_OR_WORD, changed=True),
    _ClaimForm(
        "is",
        r" (?:is|are|takes place|starts|begins|happens)(?: due| scheduled| planned)?",
        (_date_value,),
        single_valued=False,
    ),
    _ClaimForm("is", rf" {_BECAME}", (_date_value,), changed=True),
    _ClaimForm("lives", r"\b(?:lives?|is living|resides?|is based|are based) in", (_place_value,)),
    _ClaimForm("stays", r" (?:is|are)(?: located)? in", (_place_value,), single_valued=False),
    _ClaimForm("lives stays", rf"\b{_HAS}(?:moved|relocated)(?: from .+?)? to", (_place_value,), changed=True),
    _ClaimForm("works", r"\b(?:works?|is working|is employed) (?:at|for|by)", (_place_value,)),
    _ClaimForm("works", rf"\b{_HAS}started(?: working)? at", (_place_value,), changed=True),
    _ClaimForm("job", r"\b(?:works?|is working) as", (_word_value,)),
    _ClaimForm("prefers", r"\bprefers?(?: to use| using)?", (_alternative_value,)),
    _ClaimForm("uses", r"\b(?:uses?|is using|are using)", (_alternative_value,)),
    _ClaimForm("uses prefers", rf"\b{_HAS}(?:switched|migrated|changed){_FROM}", (_alternative_value,), changed=True),
    _ClaimForm("uses", r"\b(?:uses?|is using|are using)(?=.* for )", (_any_value,), single_valued=False),
    _ClaimForm("uses", rf"\b{_HAS}(?:switched|migrated|changed){_FROM}(?=.* for )", (_any_value,), changed=True),
    _ClaimForm("uses prefers", rf"\b{_HAS}replaced (?P<old>.+?) (?:with|by)", (_alternative_value,), changed=True),
    _ClaimForm("has", r" (?P<noun>has|have|is|are|costs?|weighs?|takes?|lasts?|earns?)", (_amount_value,)),
)


def _claims_of_forms(forms: Iterable[_ClaimForm], assertion: str, *, changed: bool) -> Iterator[Claim]:
    for form in forms:
        if match := _compile(form.pattern).fullmatch(assertion):
            yield from _claims_of_form(form, match.groupdict(), changed=changed or form.changed)


def _claims_of_form(form: _ClaimForm, groups: Mapping[str, str | None], *, changed: bool) -> Iterator[Claim]:
    value, tail = _split_qualifier(groups["value"] or "")
    about = {*tokenise(f"{groups['about']} {groups.get('noun') or ''}{tail}".casefold())} - {"of", "for"}
    if about & _UNSPECIFIC_WORDS:
        return
    for verb in form.questions.split() if groups.get("old") else ():
        yield _truth_claim(f"{groups['about']} {verb} {groups['old']}{tail}", False)
    parsed = next(filter(None, (parse(value) for parse in form.value_parsers)), None)
    if parsed is None:
        return
    answer, qualifiers = parsed
    for verb in form.questions.split():
        question = " ".join([verb, *sorted(word.casefold() for word in about | qualifiers)])
        yield Claim(question, answer, single_valued=form.single_valued, changed=changed)


_NOT_ASSERTED_ZH = re.compile(
    "吗|？|\\?|可能|也许|或许|如果|要是|想|打算|考虑|计划|希望|应该|将|以前|曾|也|还|和|或|但|说"
)

_NOW_ZH = re.compile("现在|目前|如今|已经|从今以后")

_NEGATION_ZH = re.compile("不再|不|没有|没|停止")

_NOUNS_ZH = (
    "(?:截止日期|截止时间|期限|名字|姓名|昵称|邮箱|邮件地址|电话|手机号|地址|密码|预算|价格|费用|生日|年龄|时区|版本|状态|优先级|"
    "端口|超时|上限|负责人|经理|老板|职位|工资|妻子|丈夫|最喜欢.{1,6}?|默认.{1,6}?)"
)

_BECAME_ZH = "(?:改|变|换|推迟|提前|延期|延长|更新|调整|提高|降低)(?:成|为|到|至)"

_TOKEN_ZH = re.compile(r"\d+|[a-z0-9@._-]+|[一-鿿]")


def _any_value_zh(value: str) -> _Value | None:
    return tuple(_TOKEN_ZH.findall(value)), set()


def _alternative_value_zh(value: str) -> _Value | None:
    chosen = [alternative for alternative in _ALTERNATIVES_OF if alternative in value]
    return (
        ((chosen[0],), {f"<{_ALTERNATIVES_OF[chosen[0]]}>", value.replace(chosen[0], "")}) if len(chosen) == 1 else None
    )


_FORMS_ZH = (
    _ClaimForm("is", f"(?P<noun>{_NOUNS_ZH})(?:是|为|在|叫)(?P<value>.+)", (_any_value_zh,)),
    _ClaimForm("is", f"(?P<noun>{_NOUNS_ZH})(?:从.+?)?{_BECAME_ZH}(?P<value>.+)", (_any_value_zh,), changed=True),
    _ClaimForm("lives", "(?:居住|定居|住)在(?P<value>.+)", (_any_value_zh,)),
    _ClaimForm("lives", "(?:从.+?)?(?:搬家?|迁)(?:到|去|至)(?P<value>.+)", (_any_value_zh,), changed=True),
    _ClaimForm("works", "在(?P<value>.+?)(?:工作|上班)", (_any_value_zh,), single_valued=False),
    _ClaimForm("prefers", "(?:更喜欢用?|喜欢用|偏好|习惯用)(?P<value>.+)", (_alternative_value_zh,)),
    # "Now likes" implies a change; liking alone excludes nothing.
    _ClaimForm("prefers", "喜欢(?P<value>.+)", (_alternative_value_zh,), single_valued=False),
    _ClaimForm("uses", "(?:使用|(?<!喜欢)(?<!习惯)用)(?P<value>.+)", (_alternative_value_zh,)),
    _ClaimForm("uses", "(?:从.+?)?(?:换成|改用|切换到|换到)(?P<value>.+)", (_alternative_value_zh,), changed=True),
)


def _find_claims_zh(sentence: str) -> Iterator[Claim]:
    if _NOT_ASSERTED_ZH.search(sentence) or SAYS_MORE.search(sentence):
        return
    assertion = strip_filler_zh(sentence)
    without_now = _NOW_ZH.sub("", assertion)
    changed = without_now != assertion
    positive, negations = _NEGATION_ZH.subn("", without_now)
    if negations > 1:
        return
    yield Claim(f"holds {positive}", ("no",) if negations else ("yes",), single_valued=bool(negations), changed=changed)
    if not negations:
        yield from _claims_of_forms(_FORMS_ZH, positive, changed=changed)

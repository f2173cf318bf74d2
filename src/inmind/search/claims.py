"""What a statement claims: which questions it answers, and how.

Notes pile up that say one thing twice, or say anew what has changed. To tell these from notes that merely look alike
without asking a model, each is read by itself, once: "the deadline for the API moved to April 2" answers the question
when the API's deadline is, with April 2, and says that it has changed. Then two notes are about the same thing where
they answer the same question, which is a look-up and no comparison: a pass over any number of them stays linear.

A wrong answer hides something true, a missed one leaves two lines where one would do. So whatever is not plainly said
is not read: what may be, what is said to be, what is said of several things at once; and a question belongs to its
whole subject, with every word that narrows it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache, lru_cache
from typing import Final, NamedTuple

from inmind.core.encoding import digest
from inmind.core.frozen import frozen
from inmind.search.tokenize import words

Answer = tuple[str, ...]
"""The words of an answer, in their order."""

# What is longer is a text and not a statement: two of those are alike only word for word.
MOST_CHARACTERS: Final = 400


@frozen
class Statement:
    """A note, read."""

    wording: str
    """Two with the same wording say the same; a digest."""
    answers: Mapping[str, Answer]
    """By question."""
    overrules: frozenset[str]
    """Questions of which another answer, given earlier, holds no longer."""
    whole: bool
    """The answers are all that it says: where they are overruled, all of it is."""


@lru_cache(maxsize=16_384)
def read(text: str) -> Statement:
    """Every pass reads everything that there is, and little of it is new: hence the memory."""
    plain = _plain(text)
    sentences = _sentences(plain)
    claims = [claim for one in sentences for claim in _claims(one)] if len(text) <= MOST_CHARACTERS else []
    whole = len(sentences) == 1 and not _SAYS_MORE.search(sentences[0])
    property_ = next((claim for claim in claims if claim.names_one), None) if whole else None
    wordings = [wording for one in sentences if (wording := _wording(one))]
    return Statement(
        wording=digest(property_.asks, *property_.answer) if property_ else digest(*(wordings or [text])),
        answers={claim.asks: claim.answer for claim in claims},
        overrules=frozenset(claim.asks for claim in claims if claim.of_one or claim.changed),
        whole=whole,
    )


def differ(one: Answer, other: Answer) -> bool:
    """Can only one of them be right? "Munich" and "Munich in Germany" can both."""
    this, that = {word.casefold() for word in one}, {word.casefold() for word in other}
    return not (this <= that or that <= this)


class _Claim(NamedTuple):
    asks: str
    answer: Answer
    of_one: bool
    """There is only one right answer at a time, so another one is a newer one."""
    changed: bool
    """It says itself that it was different before."""

    @property
    def names_one(self) -> bool:
        """It says what some property is and nothing else: "the API's deadline is", "the deadline of the API is"."""
        return self.asks.startswith("is ") and self.of_one and not self.changed


# -- the text ----------------------------------------------------------------------------------------------

_MONTHS = "january february march april may june july august september october november december".split()
_MONTH = rf"(?:{'|'.join(_MONTHS)}|jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec)"
_SPELT: tuple[tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]], ...] = (
    (re.compile("[‘’]"), "'"),
    (re.compile(r"\bcan(?:'t|not)\b", re.IGNORECASE), "can not"),
    (re.compile(r"\bwon't\b", re.IGNORECASE), "will not"),
    (re.compile(r"n't\b", re.IGNORECASE), " not"),
    (re.compile(r"(?<=\d),(?=\d{3}\b)"), ""),
    (re.compile(r"(?<=\d)k\b", re.IGNORECASE), "000"),
    (re.compile(r"\b(\d{1,2})(?:st|nd|rd|th)\b", re.IGNORECASE), r"\1"),
    (
        re.compile(r"\b(\d{4})-(0[1-9]|1[0-2])-0?(\d{1,2})\b"),
        lambda day: f"{_MONTHS[int(day[2]) - 1]} {day[3]} {day[1]}",
    ),
    (re.compile(rf"\b(\d{{1,2}}) (?:of )?({_MONTH})\b", re.IGNORECASE), r"\2 \1"),
    (re.compile(rf"\b({_MONTH} \d{{1,2}}), (?=\d{{4}}\b)", re.IGNORECASE), r"\1 "),
    (re.compile(r"^(?:(?:note|remember|reminder|fyi|btw|please|we)\b[:,]? +)+", re.IGNORECASE), ""),
)
_ENDS = re.compile(r"(?<=[.!?;])\s+|(?<=[。！？；])|\n+")
_HAN = re.compile("[一-鿿]")
_MARKS = " \t.,;:!\"'()[]{}。，；：！、“”"

# Words that can be there or not, and nothing else is said. "User" is whom notes are about unless they say more.
_IDLE = frozenset("a an the user is are that current really very explicitly actually just".split())
_LEADS_ON = frozenset(
    "about after as at because before by during for from if in instead into of on over per since than through to under "
    "unless until via when while with without".split()
)


def _plain(text: str) -> str:
    """Spelt in one way: contractions, ordinals, thousands, days before months; without words that only lead in."""
    for spelt, plainly in _SPELT:
        text = spelt.sub(plainly, text.strip())
    return text


def _sentences(text: str) -> list[str]:
    return [stripped for sentence in _ENDS.split(text) if (stripped := sentence.strip(_MARKS))]


def _tokens(text: str) -> list[str]:
    """Words without what stands around them, and without the idle ones.

    Small letters, but for what is no plain word: in a password, a variable's name, plan A, letters are what they are.
    """
    bare = (token.strip(_MARKS).removesuffix("'s").removesuffix("s'") for token in text.split())
    even = (token.lower() if token[1:].isalpha() and token[1:].islower() else token for token in bare)
    return [token for token in even if token and token not in _IDLE]


def _wording(sentence: str) -> str:
    """The words, where the parts behind prepositions may change places: "on Fridays by train", "by train on Fridays".

    All other order counts, since "Anna manages Bob" has the words of "Bob manages Anna"; and every form of a word
    counts, since who lived there does not live there.
    """
    if _HAN.search(sentence):
        return _without_idle_signs(sentence)
    parts: list[list[str]] = [[]]
    for token in _tokens(sentence):
        if token in _LEADS_ON:
            parts.append([])
        parts[-1].append(token)
    first, *others = (" ".join(part) for part in parts)
    return "|".join([first, *sorted(others)])


# -- English -----------------------------------------------------------------------------------------------

_MOVED = (
    r"(?:moved|changed|set|raised|lowered|increased|reduced|cut|slipped|pushed|postponed|delayed|rescheduled|extended|"
    r"shortened|renamed|updated|bumped|brought forward)"
)

# Not said to be so, or only of a day, or of more than one thing at once.
_NOT_PLAIN = re.compile(
    r"\?|\bmay\b|\b(?i:if|unless|whether|maybe|perhaps|probably|possibly|might|could|would|should|will|shall|must|"
    r"wants?|wish(?:es)?|hopes?|plans to|planning|thinks?|thinking|considers?|considering|says?|said|told|asked|"
    r"used to|had|did|today|tonight|tomorrow|yesterday|(?:this|next|last) (?:week|month|year|\w+day)|also|too|as well|"
    rf"both|another|besides|and|or|but|except|which|who|whose|where|(?:was|were)(?! (?:\w+ )?{_MOVED}))\b"
)
_SAYS_MORE = re.compile(r"[,:，：、](?!\d)|\b(?:because|since|due to)\b|因为|由于")
_NOW = re.compile(r"\b(?i:now|currently|nowadays|these days|from now on|as of today)\b *|\bnew ")
_UNCHANGED = re.compile(r"\b(?:still|already|yet|again|recently) *", re.IGNORECASE)
_NEVER = re.compile(
    r"\b(?:(?:do|does) +not|not(?! (?:all|always|every|just|necessarily|only|sure)\b)|never|no longer|"
    r"(?:(?:has|have) )?(?:stopped|quit)(?= \w+ing\b)) *",
    re.IGNORECASE,
)
_INSTEAD = re.compile(r" (?:instead of|rather than) ")
_PREFERRED_TO = re.compile(r" (?:over|instead of|rather than) ")
_ANY_MORE = re.compile(r" *\b(?:any ?more|any longer)\b", re.IGNORECASE)
_NOT_NAMED = frozenset(
    "it its he his him she her they their them this these those i me my we us our you your one some any each every "
    "most many several no all".split()
)
_TAIL = re.compile(
    r"(.+?)( (?:about|after|as|at|before|by|during|for|from|in|of|on|per|under|until|via|when|while|with) .+)"
)


def _claims(sentence: str) -> Iterator[_Claim]:
    if _HAN.search(sentence):
        yield from _chinese_claims(sentence)
        return
    said = _SAYS_MORE.split(sentence)[0].strip()
    if not said or _NOT_PLAIN.search(sentence):
        return
    now = _NOW.sub("", said)
    changed = now != said
    so, denials = _NEVER.subn("", _ANY_MORE.sub("", _UNCHANGED.sub("", now)))
    if denials > 1:
        return
    so, instead = _instead_of(so.strip())
    yield _holds(so, not denials, changed=changed)
    if instead:
        yield _holds(instead, False)
    if not denials:
        for form in _FORMS:
            if match := form.match(so):
                yield from _formed(form, match, changed=changed or form.changed)


def _holds(said: str, so: bool, *, changed: bool = False) -> _Claim:
    """Whether it is so at all. In stems, but for the past, which is not the present denied.

    Who denies something takes it back. Who says it does not thereby take back a "never": that may be a rule, and this
    the case that it was made for.
    """
    asks = " ".join(["holds", *map(_stem, _tokens(said.casefold()))])
    return _Claim(asks, ("yes",) if so else ("no",), of_one=not so, changed=changed)


@lru_cache(maxsize=4_096)
def _stem(token: str) -> str:
    return " ".join(words(token)) if token.isalpha() and not token.endswith("ed") else token


def _instead_of(said: str) -> tuple[str, str]:
    """What is said, and the same of what it is said to be instead of."""
    between = (_PREFERRED_TO if "prefer" in said else _INSTEAD).search(said)
    if not between:
        return said, ""
    said, (old, tail) = said[: between.start()], _parted(said[between.end() :])
    lead = old.split()[0]
    kept = said.rpartition(f" {lead} ")[0] if lead in _LEADS_ON else said.rsplit(maxsplit=len(old.split()))[0]
    return said + tail, f"{kept} {old}{tail}"


def _parted(value: str) -> tuple[str, str]:
    """A value, and what narrows the case that it is for."""
    parted = _TAIL.fullmatch(value)
    return (parted[1], parted[2]) if parted else (value, "")


# What a value can be: its words, and those that belong to the question, as the unit of a number does. None where it is
# not of that sort: only two of a sort can take each other's place.
_Value = tuple[Answer, set[str]]

_WEEKDAY = re.compile(r"(?:mon|tues|wednes|thurs|fri|satur|sun)day")
_TIME = re.compile(r"\d{1,2}:\d\d|\d{1,2}(?:am|pm)|noon|midnight")
_NUMBER = re.compile(r"[$€£#]?\d[\w.,:%/+-]*")
_LEADS_IN = re.compile(r"(?:on|at|by|for|in|due) ")

# Values that take each other's place: whoever prefers or uses one of a row has given up the others.
_ROWS = (
    "tabs spaces|dark light|tea coffee|short concise brief terse long detailed verbose|formal informal casual|"
    "metric imperial|celsius fahrenheit|email phone sms|mornings evenings afternoons|camelcase snake_case|vim emacs|"
    "npm yarn pnpm|pip poetry uv|postgres postgresql mysql mariadb sqlite|github gitlab bitbucket|windows linux macos|"
    "slack teams discord|制表符 空格|深色 浅色|茶 咖啡|简短 简洁 详细|英文 中文|英语 汉语|邮件 电话 短信"
)
_ROW_OF = {value: row.split()[0] for row in _ROWS.split("|") for value in row.split()}

# What one may move to, or work for, that is neither a place nor a firm.
_NO_PLACE = frozenset(
    "team department group sales marketing engineering finance support design plan premium pro plus basic enterprise "
    "aws azure gcp kubernetes docker react vue angular rust go python java typescript javascript figma notion jira "
    "linear trello zoom obsidian".split()
)


def _date(value: str) -> _Value | None:
    tokens = tuple(_tokens(_LEADS_IN.sub("", value, count=1).casefold()))
    if any(re.fullmatch(_MONTH, token) for token in tokens):
        return tuple(token[:3] if token.isalpha() else token for token in tokens), {"<date>"}
    for sort, pattern in (("<weekday>", _WEEKDAY), ("<time>", _TIME)):
        if any(map(pattern.fullmatch, tokens)):
            return tokens, {sort}
    return None


def _number(value: str) -> _Value | None:
    tokens = _tokens(value)
    numbers = tuple(filter(_NUMBER.fullmatch, tokens))
    return (numbers, {"<number>", *tokens} - {*numbers}) if len(numbers) == 1 else None


def _name(value: str) -> _Value | None:
    named = value[:1].isupper() or re.search(r"[@/.:_]", value)
    return (tuple(_tokens(value)), {"<name>"}) if named and not _LEADS_IN.match(value) else None


def _place(value: str) -> _Value | None:
    other = (_NO_PLACE | _ROW_OF.keys()) & {*_tokens(value.casefold())}
    return None if other or _date(value) else _name(value)


def _word(value: str) -> _Value | None:
    return None if _LEADS_IN.match(value) else (tuple(_tokens(value)), {"<word>"})


def _of_a_row(value: str) -> _Value | None:
    tokens = _tokens(value)
    chosen = tuple(token for token in tokens if token.casefold() in _ROW_OF)
    return (chosen, {f"<{_ROW_OF[chosen[0].casefold()]}>", *tokens} - {*chosen}) if len(chosen) == 1 else None


def _amount(value: str) -> _Value | None:
    return None if _date(value) or not _NUMBER.match(value) else _number(value)


def _anything(value: str) -> _Value | None:
    return tuple(_tokens(value)), set()


class _Form(NamedTuple):
    """One way to say something of a subject. Its groups: `about`, `noun`, `value`, and `old`, which holds no longer."""

    asks: tuple[str, ...]
    said: str
    sorts: tuple[Callable[[str], _Value | None], ...]
    of_one: bool = True
    changed: bool = False

    def match(self, sentence: str) -> re.Match[str] | None:
        return _compiled(self.said).fullmatch(sentence)


@cache
def _compiled(said: str) -> re.Pattern[str]:
    """When it is first looked for: all of them together take longer than importing everything else."""
    return re.compile(said, re.IGNORECASE)


def _form(
    asks: str, said: str, *sorts: Callable[[str], _Value | None], of_one: bool = True, changed: bool = False
) -> _Form:
    return _Form(tuple(asks.split()), rf"(?P<about>.*?){said} (?P<value>.+)", sorts, of_one, changed)


# Of each of these a thing has one. What is said of the first ones in a word of its own may be anything: "the manager is
# nice" does not take back who the manager is.
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
    rf"(?:(?:has been|have been|has|have|is|was|were|got) )?{_MOVED}(?: back| out| forward| up| down)?(?: from .+?)? to"
)
_HAS = r"(?:(?:has|have) )?"
_FROM = r"(?: from (?P<old>.+?))? to"

_FORMS = (
    _form("is", rf"\b(?P<noun>{_NOUN}{_OF}) {_IS}", _date, _number, _name),
    _form("is", rf"\b(?P<noun>{_NOUN}{_OF}) {_BECAME}", _date, _number, _name, changed=True),
    _form("is", rf"\b(?P<noun>{_WORDED_NOUN}{_OF}) {_IS}", _date, _number, _name, _word),
    _form("is", rf"\b(?P<noun>{_WORDED_NOUN}{_OF}) {_BECAME}", _date, _number, _name, _word, changed=True),
    _form("is", r" (?:is|are|takes place|starts|begins|happens)(?: due| scheduled| planned)?", _date, of_one=False),
    _form("is", rf" {_BECAME}", _date, changed=True),
    _form("lives", r"\b(?:lives?|is living|resides?|is based|are based) in", _place),
    _form("stays", r" (?:is|are)(?: located)? in", _place, of_one=False),
    _form("lives stays", rf"\b{_HAS}(?:moved|relocated)(?: from .+?)? to", _place, changed=True),
    _form("works", r"\b(?:works?|is working|is employed) (?:at|for|by)", _place),
    _form("works", rf"\b{_HAS}started(?: working)? at", _place, changed=True),
    _form("job", r"\b(?:works?|is working) as", _word),
    _form("prefers", r"\bprefers?(?: to use| using)?", _of_a_row),
    _form("uses", r"\b(?:uses?|is using|are using)", _of_a_row),
    _form("uses prefers", rf"\b{_HAS}(?:switched|migrated|changed){_FROM}", _of_a_row, changed=True),
    _form("uses", r"\b(?:uses?|is using|are using)(?=.* for )", _anything, of_one=False),
    _form("uses", rf"\b{_HAS}(?:switched|migrated|changed){_FROM}(?=.* for )", _anything, changed=True),
    _form("uses prefers", rf"\b{_HAS}replaced (?P<old>.+?) (?:with|by)", _of_a_row, changed=True),
    _form("has", r" (?P<noun>has|have|is|are|costs?|weighs?|takes?|lasts?|earns?)", _amount),
)


def _formed(form: _Form, match: re.Match[str], *, changed: bool) -> Iterator[_Claim]:
    groups = match.groupdict()
    value, tail = _parted(groups["value"])
    about = {*_tokens(f"{groups['about']} {groups.get('noun') or ''}{tail}".casefold())} - {"of", "for"}
    if about & _NOT_NAMED:
        return
    for verb in form.asks if groups.get("old") else ():
        yield _holds(f"{groups['about']} {verb} {groups['old']}{tail}", False)
    for answer, narrower in filter(None, (sort(value) for sort in form.sorts)):
        for asks in form.asks:
            yield _Claim(_question(asks, about | narrower), answer, of_one=form.of_one, changed=changed)
        return


def _question(asks: str, about: Iterable[str]) -> str:
    return " ".join([asks, *sorted(word.casefold() for word in about)])


# -- Chinese -----------------------------------------------------------------------------------------------

_IDLE_SIGNS = re.compile(r"[\s的了]|用户|[，。、；：！]")
_NOT_PLAIN_ZH = re.compile(
    "吗|？|\\?|可能|也许|或许|如果|要是|想|打算|考虑|计划|希望|应该|将|以前|曾|也|还|和|或|但|说"
)
_NOW_ZH = re.compile("现在|目前|如今|已经|从今以后")
_NEVER_ZH = re.compile("不再|不|没有|没|停止")
_NOUNS_ZH = (
    "(?:截止日期|截止时间|期限|名字|姓名|昵称|邮箱|邮件地址|电话|手机号|地址|密码|预算|价格|费用|生日|年龄|时区|版本|状态|优先级|"
    "端口|超时|上限|负责人|经理|老板|职位|工资|妻子|丈夫|最喜欢.{1,6}?|默认.{1,6}?)"
)
_BECAME_ZH = "(?:改|变|换|推迟|提前|延期|延长|更新|调整|提高|降低)(?:成|为|到|至)"
_TOKEN_ZH = re.compile(r"\d+|[a-z0-9@._-]+|[一-鿿]")


def _signs(value: str) -> _Value | None:
    return tuple(_TOKEN_ZH.findall(value)), set()


def _of_a_row_zh(value: str) -> _Value | None:
    chosen = [one for one in _ROW_OF if one in value]
    return ((chosen[0],), {f"<{_ROW_OF[chosen[0]]}>", value.replace(chosen[0], "")}) if len(chosen) == 1 else None


def _form_zh(
    asks: str, said: str, sort: Callable[[str], _Value | None] = _signs, *, of_one: bool = True, changed: bool = False
) -> _Form:
    return _Form((asks,), f"(?P<about>.*?){said}", (sort,), of_one, changed)


_FORMS_ZH = (
    _form_zh("is", f"(?P<noun>{_NOUNS_ZH})(?:是|为|在|叫)(?P<value>.+)"),
    _form_zh("is", f"(?P<noun>{_NOUNS_ZH})(?:从.+?)?{_BECAME_ZH}(?P<value>.+)", changed=True),
    _form_zh("lives", "(?:居住|定居|住)在(?P<value>.+)"),
    _form_zh("lives", "(?:从.+?)?(?:搬家?|迁)(?:到|去|至)(?P<value>.+)", changed=True),
    _form_zh("works", "在(?P<value>.+?)(?:工作|上班)", of_one=False),
    _form_zh("prefers", "(?:更喜欢用?|喜欢用|偏好|习惯用)(?P<value>.+)", _of_a_row_zh),
    # Whoever likes something now has liked something else; liking alone excludes nothing.
    _form_zh("prefers", "喜欢(?P<value>.+)", _of_a_row_zh, of_one=False),
    _form_zh("uses", "(?:使用|(?<!喜欢)(?<!习惯)用)(?P<value>.+)", _of_a_row_zh),
    _form_zh("uses", "(?:从.+?)?(?:换成|改用|切换到|换到)(?P<value>.+)", _of_a_row_zh, changed=True),
)


def _chinese_claims(sentence: str) -> Iterator[_Claim]:
    if _NOT_PLAIN_ZH.search(sentence) or _SAYS_MORE.search(sentence):
        return
    said = _without_idle_signs(sentence)
    now = _NOW_ZH.sub("", said)
    changed = now != said
    so, denials = _NEVER_ZH.subn("", now)
    if denials > 1:
        return
    yield _Claim(f"holds {so}", ("no",) if denials else ("yes",), of_one=bool(denials), changed=changed)
    if not denials:
        for form in _FORMS_ZH:
            if match := form.match(so):
                yield from _formed(form, match, changed=changed or form.changed)


def _without_idle_signs(text: str) -> str:
    return _IDLE_SIGNS.sub("", text.casefold())

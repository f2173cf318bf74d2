"""Search queries and hits: validated once, parsed into words, speaker and dates.

Most words of a question say nothing about its answer ("can you tell me when we first discussed…"). Stop words are
removed, and common question words get a low weight, because "list" and "order" are sometimes meant. "I" and "my" mean
messages of the user, "you" those of the assistant, a name those of that speaker.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, cast

from inmind.core.frozen import frozen
from inmind.core.settings import SOURCES
from inmind.core.text import shorten
from inmind.errors import InvalidInput
from inmind.search.crystal import KINDS, Crystal, is_searchable
from inmind.search.dates import DateSpan, find_date_span
from inmind.search.note import validate_time
from inmind.search.tokenize import query_words

LINE_LENGTH = 200
"""Characters of the text in `str(hit)`."""

MAX_QUERY_CHARS = 10_000
"""Maximum length of a query: every word is looked up."""

MAX_HITS = 200

FILTERS = ("limit", "kinds", "sources", "since", "until", "session", "as_of")


@frozen(kw_only=True)
class Query:
    """A search text and its filters."""

    text: str
    limit: int = 10
    kinds: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    since: datetime | None = None
    until: datetime | None = None
    session: str = ""
    as_of: datetime | None = None
    """Search what was known and valid at this time."""
    excluded_events: frozenset[str] = frozenset()
    """Events that are neither returned nor quoted, such as the message that asks."""

    @property
    def has_filters(self) -> bool:
        """True if it filters the results."""
        return bool(self.kinds or self.sources or self.since or self.until or self.session or self.as_of)

    def allows(self, crystal: Crystal) -> bool:
        return (
            (not self.kinds or crystal.kind in self.kinds)
            and (not self.sources or crystal.source in self.sources)
            and (self.since is None or crystal.at >= self.since)
            and (self.until is None or crystal.at < self.until)
            and (not self.session or crystal.session == self.session)
            and (is_searchable(crystal) if self.as_of is None else _was_valid(crystal, self.as_of))
        )


def _was_valid(crystal: Crystal, day: datetime) -> bool:
    """Return True if the crystal existed and was valid on a day."""
    starts, ends = crystal.valid_from or crystal.at, crystal.valid_to
    return max(crystal.at, starts) <= day and (ends is None or ends > day)


@frozen(kw_only=True)
class Hit:
    """A crystal that matches a query, with the parts of its score."""

    crystal: Crystal
    score: float
    parts: Mapping[str, float]
    """Components of the score."""
    passage: str
    """Best matching passage of its text; all of it if it is short."""
    before: str = ""
    after: str = ""
    """Lines before and after it in its conversation."""

    @property
    def text(self) -> str:
        """The whole text of the crystal."""
        return self.crystal.text

    @property
    def source(self) -> str:
        """`memory` for notes, pages and dreams, `sessions` for messages."""
        return self.crystal.source

    @property
    def date(self) -> datetime:
        """When it was said or written."""
        return self.crystal.at

    def __str__(self) -> str:
        return f"{self.date:%Y-%m-%d} {self.source}: {shorten(self.passage, LINE_LENGTH)}"


def validate_query(
    text: object,
    limit: object = 10,
    kinds: object = None,
    sources: object = None,
    since: object = None,
    until: object = None,
    session: object = None,
    as_of: object = None,
) -> Query:
    """Validate a query from a host or model.

    InvalidInput names the field, the value and what was expected.
    """
    if not isinstance(text, str):
        raise InvalidInput(field="query", value=text, expected="a text")
    if len(text) > MAX_QUERY_CHARS:
        expected = f"at most {MAX_QUERY_CHARS:,} characters"
        raise InvalidInput(field="query", value=f"{len(text):,} characters", expected=expected)
    if isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= MAX_HITS:
        raise InvalidInput(field="limit", value=limit, expected=f"a whole number from 1 to {MAX_HITS}")
    if session is not None and not isinstance(session, str):
        raise InvalidInput(field="session", value=session, expected="the id of a session")
    since_time, until_time = _optional_time(since, "since"), _optional_time(until, "until", end_of_day=True)
    if since_time and until_time and until_time <= since_time:
        raise InvalidInput(field="until", value=until, expected=f"a time after {since_time.isoformat()}")
    return Query(
        text=text.encode("utf-8", "replace").decode("utf-8"),  # unpaired surrogates cannot be stored
        limit=limit,
        kinds=_validate_choices(kinds, "kinds", KINDS),
        sources=_validate_choices(sources, "sources", SOURCES),
        since=since_time,
        until=until_time,
        session=session or "",
        as_of=_optional_time(as_of, "as_of", end_of_day=True),
    )


def validate_filters(filters: Mapping[str, Any]) -> dict[str, Any]:
    """Validate filter names.

    An unknown filter is an error, because the caller would take the hits for filtered.
    """
    for name in filters:
        if name not in FILTERS:
            raise InvalidInput(field=name, value=filters[name], expected=f"one of the filters {', '.join(FILTERS)}")
    return dict(filters)


def _validate_choices(value: object, field: str, allowed: Sequence[str]) -> tuple[str, ...]:
    if value is None or value == "":
        return ()
    values = [value] if isinstance(value, str) else value
    if not isinstance(values, list | tuple | set | frozenset):
        raise InvalidInput(field=field, value=value, expected=f"some of {', '.join(allowed)}")
    for choice in cast(Iterable[object], values):
        if choice not in allowed:
            raise InvalidInput(field=field, value=choice, expected=f"one of {', '.join(allowed)}")
    return tuple(sorted(set(cast(Iterable[str], values))))


def _optional_time(value: object, field: str, *, end_of_day: bool = False) -> datetime | None:
    return None if value is None or value == "" else validate_time(value, field, end_of_day=end_of_day)


WEAK_WEIGHT = 0.35
"""Weight of a word that belongs to asking more than to the subject."""


@frozen(kw_only=True)
class ParsedQuery:
    """A parsed query."""

    words: Mapping[str, float]
    """Words to look for, with their weights."""
    role: str = ""
    """Role whose messages are meant, or ""."""
    names: frozenset[str] = frozenset()
    """Speakers that the query names."""
    span: DateSpan | None = None
    """Dates that the query asks about."""


def parse_query(text: str, *, now: datetime, speakers: Sequence[str] = ()) -> ParsedQuery:
    """Parse a query. `speakers` are the names of speakers in memory."""
    query_terms = query_words(text)
    names = frozenset(name for name in speakers if (parts := query_words(name)) and set(parts) <= set(query_terms))
    return ParsedQuery(
        words=_weights(text, query_terms) or dict.fromkeys(query_terms, 1.0),
        role="" if names else _role(text),
        names=names,
        span=find_date_span(text, now),
    )


def keywords(text: str) -> frozenset[str]:
    """Return the words that identify the subject of a text; empty if all of it is generic."""
    return frozenset(word for word, weight in _weights(text, query_words(text)).items() if weight > WEAK_WEIGHT)


def _role(text: str) -> str:
    """Return the role whose words are asked for.

    "Can you remind me" is a request to the assistant, not about its messages.
    """
    if _SECOND_PERSON.search(_POLITE_REQUEST.sub(" ", text)):
        return "assistant"
    return "user" if _FIRST_PERSON.search(text) else ""


def _weights(text: str, query_terms: Sequence[str]) -> dict[str, float]:
    """Return the weight of each word.

    A character pair across a stop word is rarely a word, so it gets a low weight.
    """
    separate_words = query_words(_blank_stop_words(text))
    other_pairs = [gram for gram in query_terms if not gram.isascii() and _STOP_CHARACTERS.isdisjoint(gram)]
    weights = dict.fromkeys(other_pairs, WEAK_WEIGHT) | {
        word: WEAK_WEIGHT if _is_weak(word) else 1.0 for word in separate_words
    }
    return {word: weight for word, weight in weights.items() if word not in _STOP_WORDS}


def _blank_stop_words(text: str) -> str:
    """Replace stop words by spaces in scripts without spaces: 我的猫叫什么名字 keeps 猫 and 名字."""
    if _KANA.search(text):
        return _JAPANESE_STOP_WORDS.sub(" ", text)
    return _CHINESE_WORDS.sub(lambda match: match[0] if match[0] in _CHINESE_CONTENT_WORDS else " ", text)


def _is_weak(word: str) -> bool:
    """Return True for a word with low weight.

    A single character is more often part of a word. Japanese writes function words in hiragana.
    """
    return word in _WEAK_WORDS or (len(word) == 1 and not word.isascii()) or _HIRAGANA.fullmatch(word) is not None


_FIRST_PERSON = re.compile(r"\b(?:i|i'm|i've|my|me|mine|myself)\b|我|私|僕|俺", re.IGNORECASE)
_POLITE_REQUEST = re.compile(
    r"\b(?:can|could|would|will|do) you\b"
    r"|\b(?:thank you|as you know|you know|if you)\b|你能|您能|你可以|你还?记得|你知道",
    re.IGNORECASE,
)
_SECOND_PERSON = re.compile(r"\b(?:you|your)\b|你|您|あなた", re.IGNORECASE)

_STOP_WORDS = frozenset(
    query_words(
        """
        a about above after again against all am an and any are aren't as at be because been before being below between
        both but by can cannot could couldn't did didn't do does doesn't doing don't down during each few for from
        further had hadn't has hasn't have haven't having he her here hers herself him himself his how i if in into is
        isn't it its itself just me more most my myself no nor not now of off on once only or other our ours ourselves
        out over own same she should so some such than that the their theirs them themselves then there these they this
        those through to too under until up us very was wasn't we were weren't what when where which while who whom
        whose why will with won't would you your yours yourself yourselves d ll m re s t ve
        """
    )
)

_WEAK_WORDS = frozenset(
    query_words(
        """
        across aspect based bring brought chat comprehensive considering conversation currently different discuss
        discussion ever get give got help item kind know like list many mention might much only order plan please
        provide recently remind said say summarize summary talk tell think throughout told type use walk way
        """
    )
)

_KANA = re.compile("[\u3041-\u30ff]")
_HIRAGANA = re.compile("[\u3041-\u309f]+")

_STOP_CHARACTERS = frozenset("的了吗嗎呢吧啊呀嘛么麼是我你您他她它们們谁誰何")

_CHINESE_QUESTION_WORDS = """
什么 什么时候 时候 怎么 怎么样 怎么办 怎样 为什么 为何 如何 哪里 哪儿 哪个 哪些 哪天 哪种 多少 多久 多大 几个 有没有
是不是 是否 能不能 可不可以 没有 我们 你们 他们 她们 咱们 自己 关于 对于 以及 还是 但是 因为 所以 如果 而且 一下 一共
告诉 请问 记得 之前 以前 那个 这个 那些 这些 和 与 就 都 而 及 着 或 在 把 被 给 叫 去 要 会 几 哪 请
什麼 什麼時候 時候 怎麼 怎麼樣 怎麼辦 怎樣 為什麼 為何 哪裡 哪個 哪種 幾個 沒有 關於 對於 還是 因為 如果 告訴 請問
記得 那個 這個 給 會 幾 請
""".split()
"""Words of most Chinese questions."""

_CHINESE_CONTENT_WORDS = frozenset(
    """
    目的 的士 了解 完了 终了 酒吧 网吧 吉他 其他 维他命 首都 成都 京都 古都 都市 都会 和平 和谐 温和 总和 饱和 共和
    和服 参与 成就 就业 就诊 就职 埃及 普及 及格 着急 着陆 着装 着火 着手 着物 自我 现在 存在 在线 在庫 被子 去年
    过去 去世 失去 重要 主要 需要 要求 必要 概要 摘要 要点 会议 开会 会员 会社 社会 机会 会计 聚会 约会 年会 例会
    晚会 学会 协会 大会 會議 會員 社會 機會 茶几 几何 请求 请假 申请 邀请 供给 給料
    """.split()
)
"""Words that contain those characters and have a meaning."""

_CHINESE_WORDS = re.compile(
    "|".join(sorted({*_STOP_CHARACTERS, *_CHINESE_QUESTION_WORDS, *_CHINESE_CONTENT_WORDS}, key=len, reverse=True))
)

_JAPANESE_STOP_WORDS = re.compile(
    "何|誰|私|僕|俺|[はがをにでとも]?(?:いつ|どこ|どれ|どの|どう|どんな|なぜ|いくら|いくつ)"
    "|(?:でした|ました|です|ます)か?|ください|教えて|について|(?<=[^\u3041-\u309f])[はがをにでとものへか](?![\u3041-\u309f])"
)
"""A particle is one character between other scripts; next to hiragana it may be part of any word."""

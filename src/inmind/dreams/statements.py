"""Statements about people: their section, and lasting facts in the messages of users.

The sections are about the user, the agent, its niche, or current work. The kind of a note is trusted if its author gave
one. Otherwise the first matching pattern decides, because a statement begins with its subject: "the user wants my
answers short" is about the user, "I should ask the user first" is about the agent. Without a match the section is
Active Context: a wrong line there expires in days, a wrong line about a person stays for months.

A fact is a name, a preference, a deadline, which the agent did not note. Only a user's statements about themselves
count: no questions, hypotheses, quotes, pasted texts or tool results. They are stored verbatim, because rewriting by
rules could change the meaning.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Final

from inmind.core.events.base import Origin, Trust
from inmind.core.fair_turns import giving_way
from inmind.core.language.languages import any_word, is_question
from inmind.core.language.prose import own_words
from inmind.core.language.spans import any_of, compile_cached, has_han, has_quote, split_sentences
from inmind.dreams.material import LineSource
from inmind.dreams.page.page import Section
from inmind.history.compaction.detection import find_rules
from inmind.search.crystal import Crystal


def classify_section(text: str, *, kind: str = "general", trust: Trust = Trust.AGENT) -> Section:
    """The section of a statement.

    `trust` also decides whether "I" means a user or the agent. Data from tools and the web is never about the user or
    the agent.
    """
    if trust is Trust.DATA:
        return Section.ACTIVE
    if kind in _SECTION_BY_KIND:
        return _SECTION_BY_KIND[kind]
    match = _section_pattern(trust is Trust.PERSON).search(text[:_MAX_CHARACTERS])
    return Section[match.lastgroup] if match and match.lastgroup else Section.ACTIVE


# The subject of a text is in its first sentences.
_MAX_CHARACTERS = 500

_SECTION_BY_KIND = {
    "preference": Section.BOND,
    "relationship": Section.BOND,
    "goal": Section.ACTIVE,
    "task_pattern": Section.ACTIVE,
    "episode": Section.ACTIVE,
}

_RELATIVE = (
    r"(?:wife|husband|spouse|partner|girlfriend|boyfriend|fianc[eé]e?|son|daughter|kids?|child(?:ren)?|baby|twins|"
    r"m(?:other|om|um)|father|dad|parents?|brother|sister|grand(?:mother|father|ma|pa|son|daughter)|aunt|uncle|cousin|"
    r"family|dog|cat|pet|roommate)"
)
_RELATIVE_ZH = "(?:妻子|丈夫|太太|先生|老婆|老公|儿子|女儿|孩子|妈妈|爸爸|母亲|父亲|哥哥|弟弟|姐姐|妹妹|狗|猫)"
_PROFESSION = r"(?:\w{2,}(?:er|or|ist|ian|eer)|nurse|student|chef)"
_PERSONAL_ATTRIBUTE = (
    rf"(?:{_RELATIVE}|(?:first |last |full |nick)?name|birthday|age|pronouns|time ?zone|"
    r"(?:native|mother) (?:language|tongue)|hobb(?:y|ies)|hometown|job(?: title)?|profession|boss|manager|e-?mail|"
    r"phone|address|anniversary|diet|"
    r"allerg(?:y|ies)|health|mood|personality|communication style|preferences?|working hours|favou?rite)"
)
_LIFE_FACT = (
    r"(?:lives?|resides?|grew up|was born|goes by|is (?:from|married|single|divorced|retired|vegan|vegetarian|diabetic|"
    r"pregnant|allergic|\d+ years old|based in)|moved to|works? (?:at|for)|speaks?|studie[sd]|"
    r"plays (?:the|guitar|piano|chess|tennis|football))"
)
# Also used for things: "the proxy works as a cache".
_JOB = r"works? (?:as|from|in|nights|part-time|remotely)"
_FEELING = (
    r"(?:prefers|likes|loves|enjoys|hates|dislikes|adores|fears|trusts|appreciates|values|"
    r"gets? (?:\w+ )?(?:annoyed|frustrated|impatient|upset|angry|nervous)|"
    r"(?:is|was|felt|feels|seems|sounds|seemed|sounded) (?:\w+ )?(?:upset|happy|angry|pleased|thankful|grateful|"
    r"frustrated|annoyed|stressed|tired|excited|proud|worried|impatient|relaxed|disappointed)|"
    r"can(?:no|')t stand|(?:doesn't|does not) (?:like|eat|drink|want to be)|never eats)"
)
# General wishes of a user, as opposed to the next task.
_STANDING_WISH = (
    r"(?:(?:wants?|expects?|asked|asks|told|likes|needs|would like)(?: me| the (?:assistant|agent))?(?: explicitly)?"
    r"(?: to)? (?:never|always|not|stop|be (?:called|addressed|asked|told)|call|answer|reply|short|brief|concise|"
    r"detailed|honest|direct)|explicitly asked|(?:never|always) wants?)"
)
_USER = r"(?:(?:the|our|my) )?(?:user|boss)"
_PERSON = r"(?:(?i:he|she)|(?!(?:The|This|That|It|Our|We|Users?)\b)[A-Z][a-zà-ÿ]+)"

_ABOUT_USER = (
    rf"\b(?i:{_USER}['’]s {_PERSONAL_ATTRIBUTE})\b",
    rf"\b(?i:{_USER} (?:\w+ )?(?:{_LIFE_FACT}|{_JOB}|{_FEELING}|{_STANDING_WISH}|thanked|praised|"
    rf"has (?:an? )?(?:\w+ ){{0,3}}{_PERSONAL_ATTRIBUTE}))\b",
    rf"\b{_PERSON} (?:\w+ly )?(?:{_LIFE_FACT}|{_FEELING}|{_STANDING_WISH}|has (?:an? )?(?:\w+ ){{0,3}}{_RELATIVE})\b",
    rf"\b(?:(?i:his|her)|{_PERSON}['’]s) (?:{_RELATIVE}|birthday|time ?zone|pronouns|hobb(?:y|ies)|allerg(?:y|ies))\b",
    rf"^(?i:{_FEELING}|{_STANDING_WISH})\b",
    r"\b(?i:allergic to|allerg(?:y|ies)|(?:call|address) (?:him|her|them|the user)|"
    r"our (?:relationship|friendship|running joke|inside joke)|between us)\b",
    r"用户(?!界面|名|表|登录|体验|数据|组|反馈|量|注册|管理|画像)[^，。；]{0,6}?(?:名字|姓名|叫|生日|妻子|丈夫|太太|先生|爱人|孩子|女儿|"
    r"儿子|家人|母亲|父亲|妈妈|爸爸|爱好|偏好|习惯|时区|母语|职业|喜欢|讨厌|住在|来自|出生|结婚|过敏|吃素|素食|不吃|不喝|希望|信任|感谢|"
    r"生气|高兴|开心|沮丧|是一[名位个]|在.{1,10}(?:工作|上班)|要求(?:以后|永远|总是|不要|别|始终))",
    r"(?:他|她)的?(?:名字|生日|妻子|丈夫|孩子|女儿|儿子|家人|爱好|时区|母语|喜欢|讨厌|住在|来自|过敏|偏好)",
    r"[一-鿿]{2,3}(?<!系统|服务|程序|接口|数据)(?:更|最|很|非常|特别|不)?(?:喜欢|讨厌|偏好)",
    r"对.{1,8}过敏|称呼(?:他|她|用户)|我们(?:之间|的关系)",
)
_ABOUT_AGENT = (
    r"\bI (?:should|ought to|tend to|often|usually|sometimes|still struggle|struggle|get better|am (?:getting |"
    r"becoming |good |bad |better |too |an? |at my best|learning|prone)|work best|have learned|learned (?:to|that I)|"
    r"need to be|"
    r"must (?:always|never|not|be)|value|want to (?:be|become)|can be|make (?:fewer|too many|mistakes)|"
    r"keep (?:forgetting|making))\b",
    r"\bI['’]m (?:getting |becoming |good |bad |better |too |an? |learning |prone )",
    r"\b(?i:my (?:answers?|replies|responses?|explanations?|summaries|code reviews?|own|approach|role|persona|"
    r"mistakes?|strengths?|weakness(?:es)?|tone|style|habits?|first instinct|estimates|identity|growth|name))\b",
    r"\b(?i:(?:as|being) (?:an?|the|your|their) (?:AI|assistant|agent|model))\b",
    r"\b(?i:th(?:e|is) (?:assistant|agent) (?:should|must|tends|is|can|cannot|has|learned|works|needs|will always))\b",
    r"\b(?i:note to self|reminder to self|myself)\b",
    r"我(?:应该|应当|要更|擅长|不擅长|经常|常常|总是|容易|学会|学到|需要更|正在成为|的(?:回答|回复|风格|角色|弱点|强项|优点|缺点|做法|语气|"
    r"习惯|名字|错误))|(?:作为|身为)(?:一[名个位])?(?:AI|人工智能|助手|助理|智能体)|助[手理](?:应该|应当|需要|擅长|必须)|提醒自己|"
    r"自己的(?:角色|风格|成长)",
)
_ABOUT_NICHE = (
    r"\b(?i:earn(?:ed|ings?|s)?|revenue|payouts?|royalt(?:y|ies)|usdc|marketplaces?|market share|competitors?|"
    r"reputation|buyers?|bount(?:y|ies)|leaderboard|(?:other|peer) agents?|agent (?:network|economy|market)|"
    r"star ratings?|subscribers|commissions?|sold (?:\d|an?|the|our|my|its|two|three)|"
    r"listed (?:(?:the|our|my|a|two|three|\d+) )?(?:\w+ )?(?:skills?|services?)|"
    r"(?:skill|service)s? (?:is|are|was|were|now) (?:listed|sold|offered)|our (?:role|place|position) among)\b",
    r"市场|收入|营收|赚|卖出|售出|销量|买家|竞争对手|声誉|口碑|评分|上架|佣金|同行|其他(?:智能体|代理|助手)",
)
# Statements of a user about themselves, and instructions to the agent.
_PERSON_ABOUT_SELF = (
    rf"\b(?i:(?:my|our) {_PERSONAL_ATTRIBUTE})\b",
    r"\bI(?:['’]m| am) (?:\w+ )?(?:from|married|single|divorced|retired|vegan|vegetarian|diabetic|pregnant|allergic|"
    rf"\d+ years old|based in|called|an? (?:\w+ )?{_PROFESSION})\b",
    r"\bI (?:\w+ly |always |never )?(?:prefer|like|love|enjoy|hate|dislike|live|work|grew up|was born|speak|moved|"
    r"go by|can't stand|don't (?:like|eat|drink|want you)|trust|want you)\b",
    r"\b(?i:(?:call|address) me|your (?:answers?|replies|responses?|explanations?|tone)|"
    r"answer (?:me|briefly|in|shortly)|(?:keep|make) (?:it|your \w+|answers|replies) (?:short|brief|concise))\b",
    r"我(?:叫|住在|来自|出生|喜欢|更喜欢|最喜欢|不喜欢|讨厌|偏好|习惯|爱|吃素|不吃|不喝|对.{1,8}过敏|是一[名位个]|在.{1,10}(?:工作|上班)|"
    r"的?(?:名字|姓名|生日|妻子|丈夫|太太|先生|孩子|女儿|儿子|家人|母亲|父亲|妈妈|爸爸|爱好|时区|母语|职业|邮箱|电话))",
    r"叫我|称呼我|(?:回答|回复|解释)(?:我)?(?:时)?(?:要|请|尽量|得)?(?:简短|简洁|详细|用)",
)
_PERSON_ABOUT_AGENT = (
    r"\b(?i:you(?: are|['’]re) (?:an?|the|my|our)|your (?:name|role|job|persona|character) is|act as)\b",
    r"你(?:是(?:一[名个位]|我的)|的(?:名字|角色|职责)(?:是|叫))|扮演",
)


@cache
def _section_pattern(by_person: bool) -> re.Pattern[str]:
    """The combined pattern, compiled on first use.

    At the same position, statements about a person come first.
    """
    sections = {
        Section.BOND: (*_ABOUT_USER, *(_PERSON_ABOUT_SELF if by_person else ())),
        Section.PHENOTYPE: _PERSON_ABOUT_AGENT if by_person else _ABOUT_AGENT,
        Section.NICHE: _ABOUT_NICHE,
    }
    return re.compile("|".join(f"(?P<{section.name}>{'|'.join(patterns)})" for section, patterns in sections.items()))


MAX_FACTS: Final = 200
"""Facts of one dream, the newest. More facts than this are pasted text."""

MAX_SENTENCE_CHARACTERS: Final = 220
"""Longer sentences stay searchable and get no line on the page."""

# Characters of a message that are searched.
_MAX_MESSAGE_CHARACTERS = 4_000

_SPEAKER = "User"


def find_user_facts(crystals: Iterable[Crystal]) -> list[LineSource]:
    """New facts, each as speaker and sentence, in the order of time.

    Of equal sentences the latest counts.
    """
    newest = sorted(
        (crystal for crystal in crystals if _is_user_message(crystal)),
        key=lambda crystal: (crystal.at, crystal.id),
        reverse=True,
    )
    facts: dict[str, LineSource] = {}
    for fact in (fact for crystal in giving_way(newest) for fact in _facts_in(crystal)):
        facts.setdefault(fact.text.casefold(), fact)
        if len(facts) == MAX_FACTS:
            break
    return sorted(facts.values(), key=lambda fact: (fact.at, fact.ids, fact.text))


def to_third_person(line: str) -> str:
    """A line in the third person: "User: I live in Rome" becomes "User lives in Rome".

    For comparison with other lines only: just the beginning is rewritten.
    """
    match = _SPEAKER_LINE.fullmatch(line)
    if not match:
        return line
    speaker, sentence = match["speaker"], _LEAD_IN.sub("", match["text"], count=1)
    speaker = "用户" if speaker == _SPEAKER and has_han(sentence) else speaker
    for pattern, replacement in _THIRD_PERSON:
        if person_match := pattern.match(sentence):
            return speaker + person_match.expand(replacement) + sentence[person_match.end() :]
    return sentence


_RULE_IMPORTANCE = 0.8

_I_AM = r"\bi(?:['’]m| am)"
# Objects of a momentary preference: "I like it", "I prefer the second one".
_MOMENTARY_OBJECT = (
    r"(?:it|this|that|these|those|them|you|your|yours|how|what|where|the (?:idea|first|second|third|last|other|former|"
    r"latter|way|look|sound|new|one|current|previous)|option|version|number|both|neither|either|"
    r"to (?:see|know|hear|thank|say)|a (?:bit|little)|[ab])\b"
)
_FACT_PATTERNS: Final = {
    ("relationship", _RULE_IMPORTANCE): any_of(
        r"\bmy (?:full |first |last |nick)?name(?:['’]s| is) (?!not\b)\S",
        r"\bcall me (?!when|if|back|at|on|later|crazy|old)\S",
        r"我(?:的(?:名字|姓名)(?:是|叫)|叫(?!你|他|她|什么)|姓)",
        "(?:叫|称呼)我(?!们)",
    ),
    ("relationship", 0.7): any_of(
        r"\bi (?:live (?:in|at|on|near)|grew up|was born|work (?:at|for|as|from)|go by) (?!the (?:code|file|line))\S",
        r"\bi moved to (?!the\b)\S",
        rf"{_I_AM} (?:based in|(?:originally )?from (?!the\b)|married|divorced|retired|\d+ years old)",
        rf"{_I_AM} an? (?!bit|little|lot|few|big|huge|fan)(?:[\w-]+ ){{0,2}}?(?:{_PROFESSION}|freelance\w*|mom|dad|"
        r"parent)\b(?! (?:of|than))",
        rf"\b(?:my|our) {_RELATIVE} (?:is (?:called|named|\d+|in|from)|turns|works|lives|loves|likes)\b",
        rf"\b(?:my|our) {_RELATIVE}['’]s (?:name|birthday) (?:is|['’]s)\b",
        rf"\bi have (?:an?|one|two|three|four|\d+) {_RELATIVE}s?\b(?!['’])",
        r"\bmy (?:birthday|anniversary|time ?zone|pronouns|e-?mail(?: address)?|phone(?: number)?|address|job|"
        r"profession|native language|mother tongue|hometown|favou?rite [\w ]{1,30}?|doctor|boss|manager) (?:is|are)\b",
        r"我(?:现在)?(?:住在|来自|出生[在于]|搬到|是一?[名位个](?!问题)|在.{1,12}(?:工作|上班|上学|读书))|我今年\d+岁",
        f"我(?:的)?{_RELATIVE_ZH}(?:叫|是|今年|在|的生日)",
        "我的(?:生日|时区|邮箱|电话|母语|职业|爱好)是|我最喜欢的.{1,10}是",
    ),
    ("relationship", 0.85): any_of(
        rf"{_I_AM} (?:\w+ )?(?:allergic|vegan|vegetarian|diabetic|pregnant|(?:lactose|gluten)[ -]intolerant|celiac|"
        r"coeliac|colou?r-?blind|deaf|blind)\b",
        r"\bi have (?:an? )?(?:[\w-]+ ){0,3}(?:allergy|allergies|diabetes|asthma|epilepsy)\b",
        r"\bi (?:don['’]t|do not|can['’]t|cannot|never) (?:eat|drink)\b",
        r"我对.{1,10}过敏|我(?:吃素|是素食|不吃|不喝|不能吃|不能喝|有糖尿病|有哮喘)",
    ),
    ("preference", 0.65): any_of(
        rf"\bi (?:\w+ly |always )?prefer (?!{_MOMENTARY_OBJECT})\S",
        r"\bi (?:really |absolutely )?(?:love|hate|dislike|detest|can['’]t stand|don['’]t like|do not like) "
        rf"(?!{_MOMENTARY_OBJECT})\S",
        rf"\bi (?:\w+ly|always) like (?!{_MOMENTARY_OBJECT})\S",
        r"\bi like my \S",
        "我(?:一直|总是|通常|平时|更|最|比较|特别|很|非常|不|不太)?(?:喜欢|偏好|习惯|讨厌)(?!你|这|那|它)",
    ),
    ("goal", 0.6): any_of(
        r"\bmy (?:goal|plan|dream|aim|target|resolution)(?: \w+ \w+)? is\b",
        rf"{_I_AM} (?:learning|studying|training for|preparing for|saving (?:up )?for)\b",
    ),
    ("goal", 0.7): any_of(
        r"\b(?:deadline|due date)\b[^?]{0,60}? (?:is|moved|has moved|was moved|changed)\b",
        r"\bis due (?:on|by)\b",
        "我的(?:目标|计划|梦想)是|我(?:正)?在(?:学习|备考|准备)|截止(?:日期|时间)(?:是|为|改[到成]|推迟到|提前到)",
    ),
    ("fact", _RULE_IMPORTANCE): any_of(
        r"(?:^|[.!?\n]\s*)(?:please )?(?:remember|(?:keep|bear) in mind|(?:don['’]t|do not) forget|note)"
        r"(?:,? that\b|:|,)",
        "(?:^|[。！？\n])(?:请)?(?:记住|记得|别忘了|不要忘记)(?!吗)",
    ),
}
"""For each kind and importance: the forms of its facts, in lower case."""

# Words that make an instruction a standing rule; other instructions are for the current task.
_STANDING_RULE = (
    r"\b(?:always|never|from now on|in (?:the )?future|every time|whenever|going forward|at all times|don['’]t ever|"
    r"no matter what)\b|以后|永远|总是|始终|每次|从现在起|从今以后|绝不|绝对不|一律|不要再|再也不"
)
# Questions without a question mark, and facts of the past.
_NOT_A_FACT = r"^(?:when|say|would|could|should|do|does|did|can|is|are|am)\b|\bused to\b|以前"
_SPEAKER_LINE = re.compile(r"(?P<speaker>[^\n:]{1,40}): (?P<text>.+)", re.DOTALL)
_LEAD_IN = re.compile(
    r"^(?:(?:hi|hello|hey|also|and|oh|by the way|btw|so|well|please|actually|fyi|just so you know|remember|"
    r"keep in mind|don['’]t forget|note|that)\b[,:!]? +)+",
    re.IGNORECASE,
)
_THIRD_PERSON = tuple(
    (re.compile(first, re.IGNORECASE), third)
    for first, third in (
        (r"I(?:['’]m| am)\b", " is"),
        (r"I(?:['’]ve| have)\b", " has"),
        (r"I (?:don['’]t|do not)\b", " does not"),
        (r"I (can(?:['’]t|not)?|never|was|moved|grew|switched|started)\b", r" \1"),
        (r"I ((?:\w+ly|always) |)(go|\w+[sc]h)\b", r" \1\2es"),
        (r"I ((?:\w+ly|always) |)(\w+)\b", r" \1\2s"),
        (r"my\b", "'s"),
        (r"call me\b", "'s name is"),
        (r"我的?", ""),
    )
)


def _is_user_message(crystal: Crystal) -> bool:
    return crystal.kind == "episode" and crystal.origin is Origin.USER and crystal.trust >= Trust.PERSON


def _facts_in(crystal: Crystal) -> Iterator[LineSource]:
    speaker = crystal.speaker if crystal.speaker not in ("", "user") else _SPEAKER
    text = crystal.text[:_MAX_MESSAGE_CHARACTERS].removeprefix(f"{speaker}: ")
    for kind, importance, sentence in (*_pattern_facts(text), *_rule_facts(text)):
        at = crystal.at.isoformat()
        yield LineSource((crystal.id,), f"{speaker}: {sentence}", importance, kind, at, Trust.PERSON)


def _pattern_facts(text: str) -> Iterator[tuple[str, float, str]]:
    lowered = text.lower()
    patterns = {facts: compile_cached(pattern) for facts, pattern in _FACT_PATTERNS.items()}
    if not any(pattern.search(lowered) for pattern in patterns.values()):
        return
    for sentence in (" ".join(sentence.split()) for line in own_words(text) for sentence in split_sentences(line)):
        if len(sentence) <= MAX_SENTENCE_CHARACTERS and not has_quote(sentence):
            lowered = sentence.lower()
            facts = next((facts for facts, pattern in patterns.items() if pattern.search(lowered)), None)
            if facts and _is_lasting(lowered):
                yield *facts, sentence


def _is_lasting(lowered: str) -> bool:
    """False for questions, guesses, hypotheses, statements of others, and temporary facts."""
    if any_word("hedges", "hypotheticals", "reports", "temporary").search(lowered):
        return False
    return not (is_question(lowered) or compile_cached(_NOT_A_FACT).search(lowered))


def _rule_facts(text: str) -> Iterator[tuple[str, float, str]]:
    lowered = text.lower()
    if not compile_cached(_STANDING_RULE).search(lowered):
        return
    for kind, sentence in find_rules(text):
        is_rule = kind == "rule" and len(sentence) <= MAX_SENTENCE_CHARACTERS and not has_quote(sentence)
        if is_rule and compile_cached(_STANDING_RULE).search(sentence.lower()):
            yield "preference", _RULE_IMPORTANCE, sentence

"""Choose the section of MEMORY.md for a statement.

The sections are about the user, the agent, its niche, or current work. The kind of a note is trusted if its author gave
one. Otherwise the first matching pattern decides, because a statement begins with its subject: "the user wants my
answers short" is about the user, "I should ask the user first" is about the agent. Without a match the section is
Active Context: a wrong line there expires in days, a wrong line about a person stays for months.
"""

from __future__ import annotations

import re
from functools import cache

from inmind.core.events.base import Trust
from inmind.dreams.page.sections import Section


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
    r"\d+ years old|based in|called|an? (?:\w+ )?(?:\w+(?:er|or|ist|ian|eer)|nurse|student|chef))\b",
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

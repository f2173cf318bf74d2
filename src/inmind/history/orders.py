"""Which sentences are orders that hold beyond this moment, and which are decisions: told by their form.

English and Chinese. Most sentences have none of the words that an order needs, and are not looked at further. A
question is no order, nor is what somebody quotes, nor what is meant for this moment only.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

from inmind.history.prose import compiled, own_words, sentences

Order = Literal["rule", "decision"]

MOST_ITEM = 300
"""Characters of a rule or a decision. A longer sentence is cut to the clauses that matter, or it is none."""

# Nobody speaks a sentence of so many characters; it is data, whatever words are in it.
_LONGEST = 2_000


def orders_in(words: str) -> Iterator[tuple[Order, str]]:
    """The rules and decisions in what a person says, one for each sentence or list item."""
    below_heading = False
    for line in own_words(words):
        listed = compiled(_LIST_MARK).match(line)
        body = line[listed.end() :] if listed else line
        found = [order for one in sentences(body) if len(one) <= _LONGEST and is_cued(one) for order in _order(one)]
        yield from found
        if not listed:
            # What is listed below "From now on:" or "Rules:" are rules, whatever their form.
            below_heading = line.endswith((":", "：")) and bool(found or compiled(_HEADS_RULES).fullmatch(line.lower()))
        elif below_heading and not found and len(body) <= MOST_ITEM and not compiled(_ASKS).search(body.lower()):
            yield "rule", _plain(body)


def is_cued(text: str) -> bool:
    """Has it any of the words that an order needs?"""
    if not _CUES.isdisjoint(text.replace("’", "'").encode("ascii", "replace").translate(_APART).split()):
        return True
    return not text.isascii() and any(map(text.__contains__, _CHINESE_CUES))


def proposed_in(words: str) -> list[str]:
    """What an assistant proposed last, in its own words: a user's yes makes it a decision."""
    if not compiled(_PROPOSES).search(words.lower()):
        return []
    said = (compiled(_LIST_MARK).sub("", one, count=1) for line in own_words(words) for one in sentences(line))
    proposed = [one for one in said if compiled(_PROPOSES).search(one.lower()) and not compiled(_WHICH).match(one)]
    return [text for one in proposed[-1:] if len(text := _plain(one)) <= MOST_ITEM]


def agrees(words: str) -> bool:
    """Does a user say yes to what was proposed?"""
    return bool(compiled(_AGREES).match(words))


def _order(sentence: str) -> Iterator[tuple[Order, str]]:
    low = sentence.lower().replace("*", " ")
    if len(low) != len(sentence):
        # A capital that is two letters when small: the places below would be off, and our words are not spelt so.
        low = sentence
    for kind, forms in _FORMS:
        end = forms.end_in(low)
        if end is None or _quoted(sentence, end) or _reported(low, end):
            continue
        if text := _clauses(sentence, low, end):
            yield kind, text
        return


def _clauses(sentence: str, low: str, end: int) -> str:
    """The sentence without the question it may go on with, inside the bound; nothing where the order is the question.

    People say what they prefer and ask for something else in the same breath. What is cut for its length is cut behind
    a clause, and says so.
    """
    if not compiled(_POLITELY).search(low):
        asked = compiled(_ASKS).search(low)
        if asked.start() < end if asked else compiled(_QUESTION).search(low):
            return ""
        sentence = sentence[: asked.start()] if asked else sentence
    text = _plain(sentence)
    if compiled(_FLEETING).search(text.lower()):
        return ""
    if len(text) <= MOST_ITEM:
        return text
    borders = [0, *(border.end() for border in compiled(_CLAUSE_END).finditer(sentence))]
    start = max(border for border in borders if border < end)
    stops = [border for border in borders if end < border <= start + MOST_ITEM - 2]
    return f"{_plain(sentence[start : stops[-1]])} …" if stops else ""


def _quoted(sentence: str, place: int) -> bool:
    """Is it somebody else's word: inside quotation marks, or code?"""
    before = sentence[:place]
    return any(before.count(mark) % 2 for mark in '"`') or any(
        before.count(opens) > before.count(closes) for opens, closes in ("“”", "「」", "『』", "《》")
    )


def _reported(low: str, place: int) -> bool:
    """Is it somebody else's word, told in the speaker's own: by what stands before it?"""
    found = compiled(_REPORTED).search(low)
    return found is not None and found.start() < place


def _plain(text: str) -> str:
    """On one line, without the emphasis around it or the comma that it was cut at."""
    line = " ".join(text.split()).rstrip(",，;； ")
    return compiled(_EMPHASIZED).sub(r"\2", line)


_LIST_MARK = (
    r"\s*(?:[-*–—]\s+|[•‣·]\s*|\(?(?:\d{1,3}|[a-z])[.)]\s+|[（(]?(?:\d{1,3}|[一二三四五六七八九十]+)[)）、]\s*)"
    r"(?:\[[ x]\]\s*)?"
)
_CLAUSE_END = r"[,;:，；：]\s*|\s[-–—]+\s|\s(?=(?:and|but|so|because|since|which)\s)"
_EMPHASIZED = r"\A(\*\*|__|\*|_)([^*_]+)\1\Z"


# All of it is matched against small letters, without IGNORECASE: that is several times as fast.


class _Forms(NamedTuple):
    """How one kind of order is worded: as a sentence begins, anywhere in it, and in Chinese."""

    opening: str
    inside: str
    chinese: str

    @classmethod
    def of(cls, *, opening: Sequence[str], inside: Sequence[str], chinese: Sequence[str]) -> _Forms:
        return cls(f"{_LEADS}(?:{'|'.join(opening)})", rf"\b(?:{'|'.join(inside)})", "|".join(chinese))

    def end_in(self, low: str) -> int | None:
        """The place behind the words that make it one."""
        match = compiled(self.opening).match(low) or compiled(self.inside).search(low)
        if match is None and not low.isascii():
            match = compiled(self.chinese).search(low)
        return match.end() if match else None


_VERB = (
    "(?:add|address|answer|ask|assume|avoid|begin|book|call|cancel|change|charge|check|choose|cite|commit|confirm|convert|"
    "create|delete|deploy|edit|end|exceed|explain|format|give|go\\s+over|guess|highlight|ignore|include|install|keep|limit|list|log|"
    "make|mention|merge|mix|modify|output|pick|post|provide|publish|push|put|recommend|refer|remove|repeat|reply|respond|"
    "restart|return|reveal|round|run|say|send|share|show|skip|speak|start|stick|store|suggest|summari[sz]e|tell|test|"
    "touch|translate|treat|use|warn|work|write)"
)
_NOT = r"(?:do\s+not|don['’]?t)"

# What may stand before an order: words that lead to it, then the case it is for.
_LEADS = (
    r"[\W_]*(?:(?:please|pls|plz|also|and|but|so|then|ok|okay|hey|oh|yes|no|well|important|note|attention|remember|rules?|"
    r"reminder|btw|by the way|one more thing|firstly?|secondly?|thirdly?|finally|lastly|again|just|kindly|in general|"
    r"in addition|generally|overall|plus|thanks|thank you|as a rule|going forward|from now on)\b(?:\s+#?\d+)?[\W_]*)*"
)
_CASE = (
    r"(?:(?:when(?:ever)?|if|for|in|before|after|on|unless|while|until|once|with|during|at|as|regarding|every time|"
    r"each time|any ?time)\b[^.!?]{2,160}?,\s*(?:then\s+)?(?:please\s+)?)?"
)
# A case that comes once, when this is over.
_THEN = r"(?:['’]re|\s+are)\s+(?:done|finished|ready|through|back)\b|\s+(?:finish|have\s+(?:finished|done))\b"
_CASE_OF_OURS = (
    rf"(?:(?:when(?:ever)?|if|every time|each time|any ?time)\s+(?:i|we|you(?!{_THEN})|someone|anyone|a user)|"
    r"(?:for|before)\s+(?:all|any|each|every)|before\s+you)\b[^.!?]{2,160}?,\s*(?:then\s+)?(?:please\s+)?"
)

# Said to comfort, or with the "I" left out.
_NO_ORDER = (
    r"(?!\s+(?:worry|know|forget|mind|you\b|think|hesitate|bother|get me|have|need|want|like|see|remember|understand|"
    r"feel|believe|really|even|care|love|miss|give up|sweat|stress|fear|be (?:sorry|afraid|shy|silly|so)))"
)
_NO_VERB = r"(?:mind|again|been|had|heard|saw|seen|an?|the|in|on|at|up|here|there|too|so|\w+ed|\w+ing)\b"
_NO_BAN = (
    r"(?:one|problems?|ideas?|way|need|doubt|changes?|luck|issues?|worries|thanks|questions?|plans?|rush|others?|yes|"
    r"point|action|constraints?)\b"
)

# Not what is to be, but what the speaker takes it to be.
_GUESSED = (
    r"(?:have|still|feel|look|mean|pass|work|exist|compile|succeed|match|"
    r"be\s+(?:an?|so|very|really|the|hard|tough|nice|fun|great|fine|in\s+an?))\b"
)
# What is to be made sure of once, on the way to something else.
_ONE_STEP = r"\s+(?:that\s+)?this\b|[^.!?]*\band\s+then\b"
_THE_ONE = r"\s+(?:(?:the|this|that|these|those)\s+(?:\w+\s+){0,3}(?:ones?|option|flight|seat|item))\b"
_NOUN = r"(?!you\b|they\b|it\b|i\b|we\b)\w[\w'’-]*\s+"
_POLITELY = (
    r"(?:can|could|would|will)\s+you\s+(?:please\s+)?"
    r"(?:always|never|stop\s+\w+ing|make\s+sure\s+(?:to\s+|you\s+)?(?:always|never))\b"
)
_RULE = _Forms.of(
    opening=(
        rf"{_CASE}(?:(?:always|never)\s+(?!{_NO_VERB})\w|{_NOT}(?:\s+ever)?\b{_NO_ORDER}|"
        rf"(?:(?:make|be)\s+(?:sure|certain)|ensure|avoid)\b(?!{_ONE_STEP})|"
        r"refrain\s+from\b|under\s+no\s+circumstances\b|"
        rf"only\s+(?:ever\s+)?{_VERB}\b|{_VERB}\s+only\b|{_VERB}\b[^.!?]*\bonly\W*$|stick\s+to\b|stop\s+\w+ing\b|"
        r"be\s+(?:brief|concise|direct|formal|terse)\b|"
        rf"(?:all|any|each|every|no|our|the|these|those|your)\s+(?:{_NOUN}){{1,4}}(?:must|should)\s+(?!{_GUESSED}))",
        r"remember\s*(?:\s(?:to|that)\b|:)|(?:keep|bear)\s+in\s+mind\b|in\s+(?:the\s+)?future,",
        r"no\s+(?:more|longer|less)\s+than\b|no\s+more\s+\w+s\b",
        rf"no\s+(?!{_NO_BAN})\w+(?:\s+\w+)?\s+(?:on|in|after|before|without|during|unless)\b",
        rf"no\s+(?!{_NO_BAN})\w+s(?:,?\s+please)?\W*$",
        r"keep\s+(?:it|them|all|every|your|the|answers|replies|responses)\b[^.!?]*"
        r"\b(?:under|below|within|short|brief|concise)\b",
        rf"{_CASE_OF_OURS}{_VERB}\b",
        r"(?:ask|tell|warn|consult|notify|check\s+with)\s+(?:me|us)\b[^.!?]*\bbefore\b",
        r"(?:answer|communicate|reply|respond|speak|talk)\s+(?:to\s+me\s+)?(?:only\s+)?in\s+\w",
        r"write\s+(?:all|any|each|every)\b",
        r"use\s+[^.!?,]{1,60},\s+not\s+\w",
        r"you\s+(?:can['’]?t|can\s?not)\s+(?!be\b|believe|find|get|help|imagine|know|see|tell|understand)\w",
        r"(?:nothing|nobody|no\s+(?:one|\w+))\s[^.!?]*\bwithout\s+(?:my|our)\b",
        rf"{_VERB}\b[^.!?]*\b(?:when(?:ever)?|every time|each time)\s+(?:i|you)\b(?!\s+(?:can|get|have|are)\b)",
        rf"{_VERB}\b[^.!?]*(?:\band|\bbut|,)\s+(?:always|never|{_NOT})\b",
    ),
    inside=(
        r"from (?:now|today|tomorrow) (?:on|onwards?|forward)\b(?!,?\s+i(?:['’]|\s+(?:will|am|have|plan)\b))",
        r"(?:henceforth|at all times)\b|,\s+always\W*$",
        r"you\s+(?:must|should|shall)\s+(?:not|never|always|only)\b",
        rf"we\s+(?:always|never)\s+{_VERB}\b",
        r"let['’]?s\s+(?:not|never|always)\b",
        r"(?<!\bi )(?<!\bhe )(?<!\bshe )(?<!\bit )(?<!\bthat )should\s+(?:always|never|only)\b",
        rf"(?:(?<=[,:;]\s)|(?:so|that\s+you)\s+)(?:please\s+)?(?:always|never|{_NOT})\s+(?:ever\s+)?{_VERB}\b(?!\s+up\b)",
        r"i\s+(?:want|need|expect)\s+(?:all|every)\b",
        r"you\s+(?:may|can)\s+(?:not|never|only)\b",
        r"you\s+(?:must|shall)\s+(?!be\b|have\b|know|feel|miss|love|think|see|admit|understand)\w",
        r"you(?:['’]re| are)\s+(?:not allowed|never (?:allowed )?to|only (?:allowed )?to|not to|forbidden)\b",
        r"you\s+(?:mustn|shouldn)['’]?t\b",
        r"i(?:['’]d|\s+would|\s+do)?\s+(?:(?:really|strongly|always|usually|generally|much|definitely|still|also)\s+)*"
        rf"prefer\b(?!{_THE_ONE})",
        r"my\s+(?:\w+\s+)?preference\b",
        r"i(?:['’]d|\s+would)\s+(?:much\s+)?rather\s",
        r"i(?:['’]d|\s+would)?\s+(?:want|need|expect|like|ask)\s+you\s+to\s+"
        r"(?:always|never|only|avoid|stop|not|(?:ask|tell|warn)\b[^.!?]*\bbefore)\b",
        rf"i\s+(?:{_NOT}|never)\s+want\s+(?:you|to\s+see|to\s+get|to\s+receive)\b",
        rf"i\s+(?:hate|dislike|{_NOT}\s+like|like)\s+it\s+when\s+you\b",
        r"(?<!\bi )(?<!\bhe )(?<!\bshe )must\s+(?:not|never|always|only)\b",
        r"(?:is|are)\s+(?:strictly\s+|absolutely\s+)?"
        r"(?:forbidden|prohibited|not allowed|not permitted|off[- ]limits|banned|non-negotiable)\b",
        _POLITELY,
    ),
    chinese=(
        r"从(?:现在|今天|今|此)(?:起|开始|以后|往后)|今后|自此以后",
        r"以后(?:都|请|不要|别|不准|不许|要|每|一律|只|回答|你|再|凡|所有)",
        r"(?:^|[，,；;：:\s])以后[^，。！？]{1,15}(?:都|不|别|要|请|只)",
        r"(?:^|[，,；;：:\s请])(?:用|使用|以)[^，。！？]{1,8}(?:回答|回复|作答|输出|交流)",
        r"(?<![我要])(?:不要|别再)(?!紧|了|钱)",
        r"(?:^|[，,；;：:、\s请但你])(?:千万|绝对|都|也|就|尽量|最好|决)*(?:别(?![人的墅处名扭致样])|不能|不可)",
        r"切勿|请勿|禁止|严禁|不得(?![不了已])|不准|不许",
        r"(?<![我他她])必须(?!承认)|务必|一定要|一律",
        r"(?:^|[，,；;：:、\s请但你要应该须])(?:始终|总是|永远|尽量|避免)",
        r"(?:^|[，,；;：:、\s请但你])(?:要|一定|也|都)*(?:记住|记得|牢记|谨记)(?![了吗])",
        r"每次[^，。！？]{0,30}[，,]?(?:都|要|先|必|请)|每当|凡是",
        r"(?<![我他她])只(?:能(?!说)|准|许|允许)|(?:^|[，,；;：:、\s请你都])(?:只用|只使用|仅用|仅使用|仅限)",
        r"(?:^|[，,；;：:、\s请])(?:最多|不(?:得|要|能)?超过)",
        r"(?:所有|全部|任何)[^，。！？]{1,20}(?:要|得|须|应)",
        r"(?:注释|文档|代码|回复|回答|变量名?|日志|标题|邮件|报告)[^，。！？]{0,6}(?:写|用)(?:成|的是)?"
        r"(?:[英中法德日韩俄]文|[英汉法德日韩俄]语|[a-z])",
        r"我(?:更喜欢|(?:更|比较|一向)?(?:偏好|倾向于?)|宁愿|宁可|不希望|希望你|要求你)",
    ),
)
_DECISION = _Forms.of(
    opening=(
        r"(?:use|take|choose|pick|try)\s+[^.!?]{1,80}\binstead\b",
        r"(?:go|stick)\s+with\b",
        r"decision\s*:",
    ),
    inside=(
        r"let['’]?s\s+(?:just\s+)?(?:go\s+(?:with|for)|use|stick\s+(?:with|to)|switch\s+to|settle\s+on|choose|pick)\b",
        r"(?:i|we)(?:['’]ve|\s+have)?\s+(?:(?:now|finally|already|just|all|both)\s+)*"
        r"(?:(?:decided|agreed|settled|opted)\s+(?:to|on|that|for|against|not|we)|chosen|chose)\b",
        r"(?:i|we)(?:['’]ll|['’]re|['’]m|\s+will|\s+am|\s+are)\s+(?:just\s+)?go(?:ing)?\s+with\b",
        r"(?:i|we)(?:\s+want|['’]d\s+like|\s+would\s+like)\s+to\s+go\s+with\b",
        r"made\s+up\s+(?:my|our)\s+minds?\b",
        r"(?:my|our|the)\s+(?:final\s+)?decision\s+is\b",
    ),
    chinese=(
        r"决定(?:用|采用|选|使用|改|不|了|就|先|把|按|由|将)",
        r"就(?:用|选|按|定)[^，。！？]{1,40}(?:吧|了|来)|(?:就这么|已经|都)定了|敲定|选定|改用|拍板",
    ),
)
_FORMS: tuple[tuple[Order, _Forms], ...] = (("decision", _DECISION), ("rule", _RULE))
_HEADS_RULES = (
    r"\W*(?:\w+\s+){0,4}(?:rules?|constraints?|guidelines?|conventions?|preferences?)\W*|"
    r"[^，。]{0,8}(?:规则|约束|约定|规范|偏好|注意事项|原则|要求)\W*"
)

# Without one of these words none of the above can match: most sentences have none, and are not looked at further.
_CUES = frozenset(
    b"agreed all allowed always answer any avoid banned before brief can't cannot cant certain chose chosen "
    b"circumstances communicate concise constraint constraints convention conventions decided decision direct don't "
    b"dont each ensure every forbidden formal future go going guideline guidelines henceforth if instead keep let's "
    b"lets limits mind minds must mustn't mustnt never no non-negotiable not now off-limits only opted permitted "
    b"prefer preference preferences prohibited rather refrain remember reply respond rule rules settled shall "
    b"shouldn't shouldnt speak stick stop sure talk terse time times today tomorrow when whenever without".split()
)
_CHINESE_CUES = tuple(
    "从现在 从今 从此 今后 以后 不要 别 不能 不可 勿 禁 不得 不准 不许 必须 务必 一定 一律 始终 总是 永远 尽量 "
    "避免 记 每次 每当 凡是 只 仅 最多 超过 更喜欢 偏好 倾向 宁 希望 要求 决定 就 定了 敲定 选定 改用 拍板 "
    "规则 约 规范 注意 原则 回答 回复 作答 输出 交流 所有 全部 任何 注释 文档 代码 变量 日志 标题 邮件 报告".split()
)

# Small letters, and a space for whatever parts two words.
_APART = bytes(
    code if chr(code) in "abcdefghijklmnopqrstuvwxyz0123456789'-" else 32 for code in bytes(range(256)).lower()
)

# Only for this moment: nothing that has to be told again later.
_FLEETING = (
    r"\b(?:yet|this time|right now|just now|for now|(?<!from )now|at the moment|lines? \d+)\b|这次|暂时|先别|还不要"
)
# Somebody else's word, or what the speaker takes to be the case.
_REPORTED = (
    r"(?<!\bi )(?<!\bwe )(?<!\bhave )(?<!'ve )\b"
    r"(?:(?:says?|said|states?|claims?|claimed|wrote|writes|told|thinks|according to)|"
    r"(?:error|bug|problem|issue|cause|reason|failure|fault|culprit|it|that|this)\s+must\s+not)\b"
)
_ASKS = (
    r"(?:^|[,;:，；]\s*|\s[-–—]+\s*|\b(?:and|so|but|or)\s+)(?:(?:so|and|but|also|then|hmm|please|well)[\s,]+)*(?:"
    r"(?:can|could|would|will|should|shall|may|must|do|does|did|is|are|am|have|has|isn['’]t|aren['’]t|don['’]t)\s+"
    r"(?:you|we|i|it|there|that|this|they|my|the|these)\b|"
    r"how\s+(?:do|can|should|would|could|to|might|is|are|does|much|many|will|did)\b|"
    r"(?:what|why|where|who|which)(?:['’]s)?\s+(?:\w+\s+)?(?:is|are|do|does|did|would|should|can|could|will|if|about)\b|"
    r"what['’]?s\b|why\s+not\b|any\s+(?:ideas|suggestions|tips|advice|thoughts)\b|i(?:['’]m|\s+am)\s+wondering\b)"
)
_QUESTION = r"[?？]\W*$|[吗呢么]\W*$"
_AGREES = (
    r"(?i)\W*(?:yes|yep|yeah|yup|sure|ok|okay|agreed?|sounds\s+(?:good|great|perfect)|(?:let['’]?s\s+)?do\s+(?:it|that|so)|"
    r"go\s+ahead|perfect|great|good\s+idea|works\s+for\s+me|exactly|好的?|可以|行|同意|就这样|没问题|嗯|对|确认|就这么办)"
    r"(?=\W|$|吧|啊|的|了)(?!\W*\b(?:but|however|except|no)\b)"
)
# A yes is no answer to these, whatever they go on with.
_WHICH = r"(?i)\W*(?:which|what|how|who|when|where)\b"
_PROPOSES = (
    r"\bi(?:['’]d|\s+would)?\s+(?:strongly\s+)?(?:suggest|propose|recommend)\b|\bmy\s+(?:suggestion|recommendation|proposal)\b|"
    r"\b(?:shall|should)\s+(?:we|i)\s+(?:go\s+with|use|switch\s+to|stick\s+(?:with|to))\b|建议|提议|推荐(?:用|使用|采用)"
)

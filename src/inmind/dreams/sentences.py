"""Find requests and questions in sentences, by their form, in English and Chinese.

A request is reduced to a verb and a noun. "Could you please refactor the auth module?" and "refactor the payment
modules in billing/" are the same kind of task. After polite words there is a verb of work, then its object, up to the
first word that starts another clause. Sentences without this form are no recurring task. They may still be requests if
they are polite: "could you water the plants?".

A question expects an answer. Small talk ("how are you?", "right?", "who knows?") expects none; "can you fix the
header?" is a request. A reply that says "I don't know" is no answer, unless it continues with one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise, takewhile

from inmind.core.language.languages import is_question as has_question_form
from inmind.core.language.prose import is_greeting
from inmind.core.language.spans import any_of, compile_cached, has_han, split_sentences, without_quotes
from inmind.dreams.page.edits import find_names
from inmind.entities.nouns import singular
from inmind.search.query import keywords

MAX_REQUEST_SENTENCES = 4
"""Sentences of a message that are searched for a request."""

MAX_NOUN_CHARACTERS = 40


def normalize_sentence(sentence: str) -> str:
    """Lower case, straight apostrophes, and no quoted text, which is not the author's."""
    return without_quotes(sentence).strip().lower().replace("’", "'")


def find_request(sentences: Sequence[str]) -> str:
    """The first request in these sentences as "verb noun"; empty if there is none."""
    return next((task for sentence in sentences[:MAX_REQUEST_SENTENCES] if (task := _parse_task(sentence))), "")


def is_request(sentence: str) -> bool:
    """True if the sentence asks for an action. "Can you tell me when it leaves?" is a question."""
    text = normalize_sentence(sentence)
    polite = compile_cached(_POLITE_REQUEST).match(text) or compile_cached(_POLITE_REQUEST_ZH).match(text)
    return bool(polite or _parse_task(sentence))


def _parse_task(sentence: str) -> str:
    if has_han(sentence):
        return _parse_chinese_task(sentence)
    match = compile_cached(_ENGLISH_REQUEST).match(" ".join(sentence.lower().replace("’", "'").split()))
    if match is None or match["verb"] not in _VERBS:
        return ""
    noun = _find_object(match["rest"])
    return f"{match['verb']}{match['particle'] or ''} {noun}" if noun else ""


def _find_object(rest: str) -> str:
    """The last noun before the next clause: "test" in "the failing test in parser.py"."""
    clause = compile_cached(_CLAUSE).match(rest)
    tokens = takewhile(lambda token: token not in _CLAUSE_BREAKS, (clause[0] if clause else "").split())
    nouns = [bare for token in tokens if (bare := token.strip("\"'`*()[]#")) and bare not in _SKIPPED_WORDS]
    heads = [noun for noun, next_word in pairwise([*nouns, ""]) if not _is_number(noun, next_word)]
    if not heads or heads[-1] in _PRONOUNS:
        return ""
    head = "file" if compile_cached(_FILE).search(heads[-1]) else singular(heads[-1])
    return head if len(head) <= MAX_NOUN_CHARACTERS else ""


def _is_number(noun: str, next_word: str) -> bool:
    """True for words that only number an object: the object of "module number 3" is the module."""
    is_number = compile_cached(_NUMBER).fullmatch
    return bool(is_number(noun) or (noun in _NUMBER_WORDS and next_word and is_number(next_word)))


def _parse_chinese_task(sentence: str) -> str:
    match = compile_cached(_REQUEST_ZH).match(sentence)
    if match is None:
        return ""
    rest = match["object_before"] or match["object_after"] or ""
    noun = compile_cached(_MEASURE_WORD_ZH).sub("", rest.rpartition("的")[2].strip(), count=1)
    heads: list[str] = compile_cached(_HEAD_NOUN_ZH).findall(noun)
    return f"{match['verb']}{heads[0]}" if heads else ""


_LEAD_IN = (
    r"(?:(?:hi|hello|hey|ok|okay|now|then|next|also|and|so|but|great|good|perfect|thanks|thank you|please|pls|kindly|"
    r"just|again|first|finally|there|yes|well|sorry)\b[\s,.!:-]*)*"
)
_ENGLISH_REQUEST = (
    _LEAD_IN
    + r"(?:(?:can|could|would|will) you\s+|i(?:'d| would)? (?:like|want|need)(?: you)? to\s+|need(?: you)? to\s+|"
    r"let's\s+|we (?:need|have) to\s+|your (?:task|job) is to\s+)?"
    r"(?:(?:please|kindly|also|just|now|then|quickly|try to|help me(?: to)?|go ahead and)\s+)*"
    r"(?P<verb>[a-z]+)(?P<particle> (?:up|out|off|down|over)\b)?\s+(?P<rest>.+)"
)

# Requests to say or think something count as questions.
_SPEECH_REQUEST = any_of(
    r"(?:tell|explain|describe|clarify|elaborate|say|know|guess|recall|remember|recommend|suggest|advise|confirm)\b",
    r"(?:think|believe|imagine|see|hear|understand|feel|like|love|prefer|want|be|have been|agree|consider)\b",
    r"(?:remind|show|teach|let) (?:me|us) (?:again )?(?:what|when|where|who|whose|which|why|how|if|whether|know)\b",
    r"(?:give|share with|send) (?:me|us) (?:some|any|more|an?|the) (?:\w+ )?"
    r"(?:advice|tips?|ideas?|examples?|details?|informations?|info|overview|reasons?)\b",
)
_POLITE_REQUEST = _LEAD_IN + any_of(
    r"(?:can|could|would|will|won't|can't|couldn't) you\s+"
    rf"(?:(?:please|kindly|also|just|maybe|perhaps|possibly|quickly|then|at least)\s+)*(?!{_SPEECH_REQUEST})[a-z]",
    r"is there (?:really |any |some )*(?:nothing|anything|something|someone|somebody|"  # a word of users
    r"anyone|anybody) (?:else )?"
    r"(?:you|i|we|to|who)\b|is there (?:any|some|no) (?:way|chance)\b.*\byou (?:can|could)\b",
    r"(?:would|do) you mind\b|(?:is it|would it be) possible (?:for you )?to\b",
    r"(?:can|could|may|might) (?:i|we) (?:please |just |also |at least )*(?:have|get|speak|talk)\b",
)
_POLITE_REQUEST_ZH = (
    r"(?:(?:你好|您好|好的?|那|再|现在|然后|顺便)[，,！!\s]*)*"
    + any_of(
        r"(?:[你您]?(?:能不能|能否|能|可以|可不可以|可否)[你您]?|麻烦[你您]?|请(?!问)[你您]?)(?:请|先|再)*"
        r"(?:[帮替给为](?:我们?|个?忙|一下)|提醒|把)",
        r"[帮替](?:我们?|个?忙)|麻烦[你您]",
    )
    + r"(?!.{0,2}(?:告诉|解释|说说|讲|介绍))"
)

# Verbs of work only: requests to "explain" or "tell" do not recur.
_VERBS = frozenset(
    """
    add adjust analyse analyze annotate apply archive arrange assemble audit automate backup benchmark book build
    bump calculate cancel catalog categorize change check classify clean close code collect combine compare compile
    compose compress compute configure connect convert copy correct crawl create debug define delete deploy design
    diagnose document download draft draw edit embed enable encrypt estimate evaluate export extract fetch fill filter
    find fix format generate group implement import improve index insert inspect install integrate investigate label
    launch lint list load log lower make map measure merge migrate mock modify monitor move normalize open optimise
    optimize order organise organize outline pack parse patch pay plan plot polish post prepare print process profile
    proofread publish pull push query raise reduce refactor refund register release remove rename render repair replace
    reply reproduce research reserve reset resize resolve restart restore return reuse review revise rewrite rotate run
    save scan schedule scrape search secure send set shorten show simplify sketch sort split start stop summarise
    summarize sync tag test tidy trace track train transcribe transfer transform translate tune undo update upgrade
    upload validate verify visualise visualize wire wrap write
    """.split()
)

_CLAUSE = r"(?:\bn[or]\.(?=\s\d)|[^,;:.!?]|[.:](?=\S)|,(?=\d))+"
_CLAUSE_BREAKS = frozenset(
    """
    about above across after against and as at because before behind below between but by during for from if in inside
    into like near of on onto or over per since so than that through till to toward towards under until using via when
    sure where which while who whose with within without is are was were has have had does do did should must can will
    """.split()
)
_SKIPPED_WORDS = frozenset(
    """
    a an the my our your his her their its this these those some any another all every each both new more me us again
    now soon please today tomorrow tonight asap quickly too also together first next last
    """.split()
)
_PRONOUNS = frozenset(
    """
    i we you he she they it them one ones him everything anything something nothing stuff thing things up out rid fun
    sense way lot
    """.split()
)
_NUMBER = r"[\W\d_]*|[a-z]{0,4}[-#]?\d[\w.-]*"
_NUMBER_WORDS = frozenset("number numbers no no. nr nr. num".split())
_FILE = r"/|\w\.[a-z]\w{0,4}$"

_VERBS_ZH = (
    "重构|修复|修改|翻译|总结|整理|生成|创建|新建|删除|更新|添加|增加|检查|测试|部署|优化|分析|查询|查找|搜索|预订|预定|安排|"
    "发送|准备|设计|实现|配置|安装|运行|对比|比较|转换|导出|导入|合并|编写|撰写|起草|润色|校对|审查|统计|计算|下载|上传|移动|"
    "重命名|替换|升级|迁移|调试|画|写|改|做|订|查|发|建|删|加"
)
_REQUEST_ZH = (
    r"(?:(?:你好|您好|好的?|请|麻烦你?|那|再|现在|然后|接着|顺便)[，,！!\s]*)*"
    r"(?:(?:能不能|能|可以|可不可以|可否)[你您]?|[你您](?:能不能|能|可以|可否)|我(?:想|要|想要|需要)[你您]?)?"
    r"(?:请|再|先|帮我们?|给我们?|替我)*"
    rf"(?:把(?P<object_before>[^，。！？；,.!?;]{{1,40}}?))?(?P<verb>{_VERBS_ZH})"
    r"(?:一下|出)?(?P<object_after>[^，。！？；：,.!?;:成为到给在用吗吧]*)"
)
_MEASURE_WORD_ZH = r"^(?:[这那某每几两一二三四五六七八九十\d]+\s*)?[个封份段篇条些张次本台首种项下家行句]"
# The head noun is last in Chinese, mostly two characters, or a word in another script.
_HEAD_NOUN_ZH = r"(?:[一-鿿]{2}|\b[A-Za-z][\w+#-]{0,38})\s*$"


MAX_QUESTION_CHARACTERS = 300
"""Longer sentences are texts that end with a question mark."""


def questions_in(sentences: Iterable[str]) -> Iterator[str]:
    """The sentences that are questions."""
    return (sentence for sentence in sentences if len(sentence) <= MAX_QUESTION_CHARACTERS and is_question(sentence))


def is_question(sentence: str) -> bool:
    """True if the sentence expects information as an answer."""
    text = normalize_sentence(sentence)
    if not has_question_form(text):
        return False
    if is_greeting(text) or compile_cached(_SMALL_TALK).fullmatch(text) or compile_cached(_TAG_QUESTION).search(text):
        return False
    return _has_topic(sentence) and not is_request(sentence)


def _has_topic(sentence: str) -> bool:
    """True if the question can be understood without its context; "what happened?" cannot.

    It needs two key words, a name, or one Chinese key word.
    """
    words = keywords(sentence)
    return len(words) > 1 or any(not word.isascii() for word in words) or bool(find_names(sentence))


def split_unanswered(reply: str) -> tuple[bool, str]:
    """Split a reply: True if it says that it does not know, and its other sentences."""
    reply_sentences = split_sentences(reply)
    answers = [sentence for sentence in reply_sentences if not _says_unknown(sentence)]
    return len(answers) < len(reply_sentences), "\n".join(answers)


def _says_unknown(sentence: str) -> bool:
    text = normalize_sentence(sentence)
    match = compile_cached(_UNKNOWN).search(text)
    return match is not None and not compile_cached(_ANSWERS_ANYWAY).search(text, match.end())


_SMALL_TALK = (
    r"(?:(?:so|and|but|hey|well|oh|ok|haha|lol|wow|god|man)[\s,!.]+)*"
    + any_of(
        r"(?:right|ok|okay|really|seriously|huh|eh|yes|no|see|ready|deal|got it|get it)",
        r"(?:guess what|so what|anything else|(?:maybe|perhaps)\b.*)",
        r"(?:does that |that )?makes? sense",
        r"(?:you )?know(?: what i mean)?",
        r"what do you mean\b.*",
        r"what (?:happened|now|then|else)\b.*",
        r"what's (?:up|new|going on|wrong|the point|not to)\b.*",
        r"how (?:are|is|was|were) (?:you|your|things|life|it going|everything)\b.*",
        r"how's (?:it going|life|your)\b.*",
        r"how (?:hard|difficult|bad) can (?:it|that|this)\b.*",
        r"how (?:cool|great|nice|awesome|crazy|weird|funny|cute) (?:is|was)\b.*",
        r"(?:are|were) you (?:there|sure|serious|kidding|joking|ok|okay|alright|ready|with me)\b.*",
        r"(?:is|was) (?:that|this|it) (?:ok|okay|right|correct|clear|all|true)\b.*",
        r"(?:isn't|aren't|wasn't|don't|doesn't|didn't|wouldn't) (?:it|that|this|they|he|she|you|we)\b.*",
        r"(?:have|did) you ever\b.*",
        r"(?:do|don't) you (?:mind|think so|see)\b.*",
        r"(?:can|could|would) you (?:believe|imagine)\b.*",
        r"(?:can|may|could) i ask\b.*",
        r"(?:shall|should) we (?:start|begin|go)\b.*",
        r"who (?:knows|cares|doesn't|wouldn't)\b.*",
        r"why (?:not|me|bother)\b.*",
        r"what (?:could|can) (?:possibly )?go wrong\b.*",
        r"what would (?:i|we) do without\b.*",
        r"(?:难道|何必|凭什么|谁在乎|谁知道呢|何苦|怎么可能|怎么会|有什么(?:用|关系|大不了)|谁不|哪有|不是).*",
        r".*(?:好吗|好不好|行吗|行不行|可以吗|对吗|对吧|是吧|是吗|对不对|不是吗|没错吧|懂吗|明白吗|你觉得呢|在吗|好嘛)",
    )
    + r"\W*"
)
_TAG_QUESTION = (
    r"[,，]\s*"
    + any_of(
        "right|ok|okay|no|yes|huh|eh|correct|you know|isn't it|aren't they|don't you think|wouldn't you say",
        "是吧|对吧|对吗|对不对|不是吗",
    )
    + r"\W*$"
)

_CANNOT = any_of(
    r"can(?:'t|not| not)",
    r"could(?:n't| not)",
    r"(?:was|am|were|are)(?:n't| not) able to",
    r"(?:was|am|were|are) unable to",
)
_UNKNOWN = any_of(
    r"\bi (?:really |honestly |still )?(?:don't|do not) (?:actually )?(?:know|recall|remember)\b(?! about you| of)",
    r"\bi(?:'m| am) not (?:sure|certain|aware|familiar)\b",
    r"\bi have no (?:idea|information|record|memory|data|details|access)\b",
    r"\b(?:i|we) (?:currently )?(?:don't|do not) (?:currently )?have (?:\w+ ){0,3}?"
    r"(?:information|details?|records?|data|answer|access|knowledge|memory|context|mention)\b",
    rf"\b(?:i|we) {_CANNOT} (?:find|locate|determine|answer|tell|say|see|recall|retrieve|confirm)\b",
    r"\bi'm (?:not able|unable) to (?:find|locate|determine|answer|tell|say|see|recall|retrieve|confirm)\b",
    r"\b(?:i|we) (?:did not|didn't) (?:find|see|get)\b",
    r"\bno (?:results?|information|records?|mention|matches)\b(?: \w+){0,2} (?:found|available|about|on|of|for)\b",
    r"\bnothing (?:was |is )?(?:found|known|recorded)\b",
    r"\bthere(?:'s| is| was) no (?:information|mention|record|data|answer)\b",
    r"\bit(?:'s| is) (?:unclear|unknown|not clear|not known)\b",
    r"不知道|不清楚|不确定|不了解|不记得|没有提到|找不到|查不到|没(?:有|能)?(?:找到|查到|搜到)|未能?(?:找到|查到)",
    r"没有(?:任何|相关|这方面|关于).{0,12}?(?:信息|记录|资料|数据|结果)",
    r"无法(?:确定|回答|找到|得知|判断|查到|提供)",
)
_OFFERS = any_of(
    r"i(?:'d| can| could| will|'ll| would| am|'m)\b",
    r"(?:we|you) (?:can|could|may|might)\b",
    r"(?:if|would|could|maybe|perhaps) you\b",
    r"let me|feel free|please",
)
_OFFERS_ZH = "(?:我可以|我能|如果|您可以|你可以|请)"
# Continues with an answer, as opposed to an offer.
_ANSWERS_ANYWAY = any_of(
    rf"\b(?:but|however|though|although|yet)\b[\s,]+(?!{_OFFERS})(?:\w+\W+){{3}}",
    rf"(?:但是?|不过|然而)[，,]?(?!.{{0,4}}{_OFFERS_ZH})[^。！？]{{4}}",
)

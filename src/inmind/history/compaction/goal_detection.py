"""Detects the messages with which a user starts a task, and those that ask for nothing new.

An ordinary next question belongs to the task at hand. A message starts a new task if it says so ("New task: …"), if it
opens like the message that started the current one, as programs write their tasks, if it turns to something else
("Now write …", "Another thing: …") that neither the goal nor the reply before it names, or if after some turns it
greets again or says thanks, and asks for something else, as people do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice

from inmind.core.events.session import RetainedItem
from inmind.core.language.prose import is_greeting, is_request, own_words
from inmind.core.language.spans import compile_cached, first_sentences, split_sentences
from inmind.history.compaction.rule_detection import content_words
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
_MAX_FILLER_CHARACTERS = 120


def is_filler(words: str) -> bool:
    """True if the text asks for nothing: "continue", "ok go on 3", "yes", "thanks"."""
    if len(words) > _MAX_FILLER_CHARACTERS or "?" in words or "？" in words:
        return is_greeting(words)
    return is_greeting(words) or bool(compile_cached(_FILLER).fullmatch(words))


def announces_task(words: str) -> bool:
    """True if the text says that a new task begins."""
    if not compile_cached(_TASK_CUES).search(words):
        return False
    return any(
        compile_cached(_NEW_TASK).match(one) and (":" in one or "：" in one or not one.endswith(("?", "？")))
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
    return bool(compile_cached(_OPENING_GREETING).match(text)) and is_request(text)


def _thanks_and_asks(text: str, goal: str) -> bool:
    """True if a person says thanks and asks for something that shares no word with the goal."""
    if not (compile_cached(_OPENING_THANKS).match(text) and is_request(text)):
        return False
    words, known = (set(compile_cached(_LONG_WORD).findall(one.lower())) for one in (text, goal))
    return len(words) >= _MIN_TASK_WORDS and words.isdisjoint(known - _COMMON_WORDS)


def _turns_to_another(text: str, goal: str, reply: str) -> bool:
    """True if a person says "now", "next" or "another thing" and asks for something else.

    The object of the request then refers to nothing at hand, has no word of the goal, and less than half of its words
    are in the reply before. "Instead" replaces the goal, so the object may have words of it.
    """
    rest = _after_next(text)
    if rest is None or compile_cached(_REFERENCE).search(rest):
        return False
    words, goal_words, reply_words = (_object_words(one) for one in (rest, goal, reply[-_MAX_SCANNED_REPLY:]))
    replaces = compile_cached(r"(?i)\binstead\b").search(rest) and not words <= goal_words
    return (bool(replaces) or words.isdisjoint(goal_words)) and 2 * len(words & reply_words) < len(words)


def opens_with_next(text: str) -> bool:
    """True if a request opens with "now", "next" or "another thing"."""
    return _after_next(text) is not None


def _after_next(text: str) -> str | None:
    """The object of a request that opens so; None for other messages."""
    if not compile_cached(_NEXT_CUES).search(text[:_MAX_SCANNED_CHARACTERS]):
        return None
    sentence = next((one for one in _scanned_sentences(text) if not is_filler(one)), "")
    opening = compile_cached(_NEXT).match(sentence)
    return sentence[opening.end() :] if opening else None


def _object_words(text: str) -> frozenset[str]:
    """Return the words for things; words for parts of any work are left out."""
    plain = compile_cached(_CHINESE_COMMON_WORDS).sub(" ", text)
    return frozenset(word.rstrip("s") for word in content_words(plain)) - _GENERIC_WORDS


def _scanned_sentences(words: str) -> Iterator[str]:
    sentences = (one for line in own_words(words) for one in split_sentences(line))
    return (one[:_MAX_SCANNED_CHARACTERS].rstrip() for one in islice(sentences, _SCANNED_SENTENCES))


_OPENING_THANKS = r"(?i)[\W_]*(?:(?:great|perfect|ok|okay|good|好的?)\W+)?(?:thanks|thank you|thx|cheers|谢谢|多谢)"
_LONG_WORD = r"[^\W\d_]{4,}"
_MIN_TASK_WORDS = 5
"""A shorter request belongs to the task at hand."""
_COMMON_WORDS = frozenset(
    "about also could create find from have help like make need please prepare thanks that them then this want will "
    "with would write".split()
)

_MAX_SCANNED_REPLY = 4_000
# Verbs of a piece of work with a result of its own. "Add", "change", "run" or "build" are mostly steps of a larger one.
_WORK = (
    r"(?:(?:book|buy)(?!\s+the\b)|draft|find|fix|help(?:\s+me)?(?:\s+(?:with|to))?|organi[sz]e|plan|prepare|research|schedule|"
    r"search\s+for|translate|write|(?:check|look\s+(?:at|into)|review)(?=\s+(?:my|our)\b))\b"
    r"(?!\s+(?:as|for|in|into|on|to|with)\b)"
)
_NEXT_CUES = r"(?i)\b(?:now|next|thing|matter|request|forget|mind|on to)\b|现在|接下来|下面|算了|件事"
_NEXT = (
    r"(?i)[\W_]*(?:(?:alright|cool|good|great|ok|okay|perfect|so|thanks|thank you|well|yes)\b[\W_]*){0,4}"
    r"(?:now|next(?:\s+up)?(?=\s*[,:;–—-]|\s+(?:please|can|could|i|let)\b)|"
    r"(?:and\s+)?(?:another|one\s+(?:last|more|other))\s+(?:matter|request|thing)\s*[,:;–—-]|"
    r"(?:moving\s+)?on\s+to\s+(?:another|the\s+next)(?:\s+(?:item|one|point|thing))?\s*[,:;–—-]|"
    r"(?:forget|never\s*mind)(?:\s+(?:about\s+)?(?:it|that|this))?\s*[,;–—-](?=\s*let\b))[\W_]*"
    r"(?:(?:please|pls|(?:can|could|will|would)\s+you|let['’]?s|let\s+us|"
    r"i(?:['’]d|\s+would)?\s+(?:like|need|want)(?:\s+you)?(?:\s+to)?)\b[\W_]*){0,3}"
    rf"{_WORK}|"
    r"[\W_]*(?:(?:好的?|行|可以|嗯|谢谢你?|那么?|对了)[\W_]*){0,4}(?:现在|接下来|下面|算了|"
    r"(?:另外|还有)?(?:有)?(?:另|另外)?一件事情?\s*[:：，,])[\W_]*(?:(?:请你?|麻烦你?|帮我|给我|我们|咱们|我[想要]|来)[\W_]*){0,4}"
    r"(?:写(?![完好入到出下])|预?订|找|准备|修(?![改完好])复?|安排|规划|计划|起草|翻译(?!成)|研究|看看我)"
)
# What refers to the work at hand, and the parts that any work has.
_REFERENCE = (
    r"(?i)\b(?:above|again|also|another|api|backend|below|both|chapter|class|component|conclusion|config|database|docs?|"
    r"documentation|endpoints?|everything|findings|first|footer|form|frontend|functions?|header|here|interface|"
    r"introduction|it|its|last|lexer|logic|menu|methods?|modules?|more|next|ones?|others?|output|paragraphs?|parser|"
    r"previous|quer(?:y|ies)|readme|remaining|rest|results?|same|schema|second|sections?|steps?|summary|tests?|their|"
    r"them|there|these|they|third|this|those|title|too|ui)\b|"
    r"(?:^\W*|\b(?:about|at|by|for|from|in|of|on|to|with)\s+)that\b|\bthat\W*$|"
    r"[它这该此其]|那[个些里]|上面|刚才|刚刚|继续|再|剩下|下一|第[一二三四五]|测试|文档|函数|标题|结果|页面|接口|模块"
)
_GENERIC_WORDS = frozenset(
    "about bug can code could error example file function help i i'd instead issue like line list me my need now our "
    "page part please problem some table text thing two want would you your 吗".split()
)
_CHINESE_COMMON_WORDS = r"[一两几][个份篇张条下些首家封]|关于|我的?|给|吗|错误|问题|代码|文件"


# No repetition is tried twice, so a longer phrase comes before its beginning.
_FILLER = (
    r"(?i)[\W\d_]*+(?:(?:a ?lot|again|agreed|ah|all (?:good|of (?:it|them))|alright|all right|and|approved|awesome|bye|"
    r"by me|carry on|cheers|confirm(?:ed)?|continue(?: the work| now)?|cool|correct|do(?: (?:it|so|that|this))?|done|"
    r"exactly(?: that)?|excellent|fine|for (?:it|that|your help|the help|me|now|today)|go ahead|go on|go|"
    r"good(?:bye)?|got it|great(?: (?:job|work))?|"
    r"have a (?:good|great|nice) (?:day|evening|night|one|time|weekend)|hmm+|i (?:agree|confirm|see)|i['’]?m ready|"
    r"(?:i want|i would like|i['’]d like) to (?=continue|go (?:on|ahead)|proceed)|"
    r"indeed|it (?:is|does)|keep (?:at it|going)|k|let['’]?s|lgtm|looks (?:good|great|right)|makes sense|more|"
    r"next(?: step)?|nice|no problem|nope|noted|no|oh|okay|ok|perfect|please|proceed|resume|right|so much|so|"
    r"sounds (?:good|great)|stop|super|sure(?: thing)?|thank you|thanks?|"
    r"that(?:['’]?s| is) (?:all|correct|fine|good|great|it|okay|ok|perfect|right)|that works|then|thx|understood|"
    r"very much|very|well|where you (?:left off|stopped)|"
    r"(?:from|with) (?:here|it|that|there|this|the (?:next(?: (?:one|step))?|rest|work))|working|works(?: for me)?|wow|"
    r"yeah|yep|yes|you (?:can|may) (?=continue|go (?:on|ahead)|proceed)|you too|you['’]?re welcome|yup)\b[\W\d_]*+)++|"
    r"[\W\d_]*+(?:(?:继续(?:做|执行|进行|下一步)?|请你?|你(?=继续)|接着(?:做|写|说|来)?|往下|下一步|开始吧|好的?|嗯+|"
    r"是的?|对的?|可以|行|没问题|谢谢你?|多谢|感谢|辛苦了|明白了?|知道了|收到|同意|就这样|很好|不错|不用了?|没有了?|"
    r"吧|啊|呢|了|ok)[\W\d_]*+)++"
)

_TASK_CUES = (
    r"(?i)\b(?:task|job|assignment|objective|goal|mission|ticket|project|topic|subject|instead|switch|switching|"
    r"move on|plans?|something (?:else|different))\b|任务|目标|改做|改为|换个|换一个|转到|转向"
)
_LEAD = (
    r"[\W_]*(?:(?:ok|okay|alright|right|great|good|perfect|thanks|thank you|so|and|now|please|hi|hello|hey|actually|"
    r"well|here['’]?s|here is|here comes|i have|i['’]ve got|we have|there['’]?s|there is|your|my|our|the|a|an|next up)"
    r"\b[\W_]*){0,6}"
)
_TASK = r"(?:task|job|assignment|objective|goal|mission|ticket|project|topic)"
_NEW_TASK = (
    rf"(?i){_LEAD}(?:"
    rf"(?:new|next|another|different|second|third|follow[- ]?up|other)\s+{_TASK}"
    r"(?=\s*(?:[:：,.;–—!-]\s*\w|[.!]?\s*$|for\s+(?:you|today|now)\b|(?:is|will\s+be)\s+(?:to\b|now\b|:)|now\b|#?\d))|"
    rf"(?:change|switch)\s+of\s+(?:plans?|{_TASK})\s*[:：,;–—-]\s*\w|{_TASK}\s+(?:has\s+changed|is\s+now)\b|"
    rf"{_TASK}\s+#?\d+\s*[:：–—-]|"
    r"(?:let['’]?s|let\s+us|we\s+(?:will|can|should)|i\s+want\s+(?:you\s+)?to|i['’]d\s+like\s+(?:you\s+)?to|can\s+we)?\s*"
    r"(?:now\s+)?(?:switch|change|turn|move\s+on|go\s+over|shift)\s+to\s+(?:an?(?:other)?\s+|the\s+)?"
    rf"(?:new\s+|next\s+|different\s+|other\s+)+(?:\w+\s+)?{_TASK}\b|"
    r"(?:let['’]?s|please)\s+(?:do|work\s+on|start)\s+something\s+(?:else|different|new)\b|"
    r"something\s+(?:(?:completely|entirely|quite)\s+)?(?:else|different)\s*(?:now\s*)?[:：.,;–—-]\s*\w|"
    r"(?:stop|drop|forget(?:\s+about)?|leave|set\s+aside|put\s+aside|never\s+mind)\s+(?:the|that|this|it|your|all)\b"
    rf"[^.!?]{{0,60}}\b(?:{_TASK})?\s*(?:[,;–—-]|\band\b)\s*(?:and\s+|now\s+|then\s+|please\s+)*"
    r"(?:build|create|do|draft|fix|implement|make|prepare|start|work|write)\b|"
    r"(?:(?:let['’]?s|let\s+us)\s+)?change\s+the\s+(?:subject|topic)\s*[:：,.;–—-]\s*\w)|"
    r"[\W_]*(?:(?:好的?|那|那么|现在|请|谢谢|接下来|我们|咱们|给你)[，,、\s]*)*(?:"
    r"(?:一个|个)?(?:新的?|下一个|另一个|另外一个|第[二三四五]个)\s*(?:任务|目标|项目)|换个?一?个?(?:新的?)?(?:任务|话题|项目)|"
    r"任务\s*[二三四五2-9]\s*[:：]|任务(?:变了|改为|变更)|目标(?:改为|变为|变了)|改做|不做[^，。！？]{1,20}了[，,]\s*(?:改|现在|先))"
)
_OPENING_GREETING = (
    r"(?i)[\W_]*(?:hi|hiya|hello|hey+|howdy|greetings|good (?:morning|afternoon|evening|day))\b(?!\s+again)|"
    r"[\W_]*(?:你好|您好|大家好|嗨|哈喽|早上好|上午好|下午好|晚上好)"
)

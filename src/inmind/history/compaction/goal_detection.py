"""Detects the messages with which a user starts a task, and those that ask for nothing new.

An ordinary next question belongs to the task at hand. A message starts a new task if it says so ("New task: …"), if it
opens like the message that started the current one, as programs write their tasks, or if after some turns it greets
again and asks for something, or says thanks or "now" and asks for something else, as people do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice

from inmind.core.events.session import RetainedItem
from inmind.core.language.prose import (
    compile_cached,
    first_sentences,
    is_greeting,
    is_request,
    own_words,
    split_sentences,
)
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
    sentences = (one for line in own_words(words) for one in split_sentences(line))
    return any(
        compile_cached(_NEW_TASK).match(one[:_MAX_SCANNED_CHARACTERS]) and not one.rstrip().endswith(("?", "？"))
        for one in islice(sentences, _SCANNED_SENTENCES)
    )


def find_goals(
    people: Sequence[TurnMessage], known: RetainedItem | None, *, place_of: Callable[[int], int]
) -> Iterator[RetainedItem]:
    """Yield the goals that messages of people state, in order.

    `known`: the goal stated before them, None if there was none; the first message beyond a greeting then states it.
    Its text is empty if it is not known. `place_of`: the place of a message in the conversation, by its number.
    """
    current = known
    for message in people:
        text = message.text
        if not message.starts_turn or is_filler(text):
            continue
        item = RetainedItem("goal", first_sentences(text, MAX_GOAL_CHARACTERS), message.seq)
        if current is None or announces_task(text) or _opens_like(text, current.text):
            yield (current := item)
        elif not current.text:
            current = item  # usually the first message, which stated the goal
        elif place_of(item.seq) - place_of(current.seq) >= _MIN_MESSAGES and (
            _returns(text) or _turns_to_another(text, current.text)
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


def _turns_to_another(text: str, goal: str) -> bool:
    """True if a person says thanks or "now" and asks for something else.

    The request then shares no word with the goal.
    """
    is_next = compile_cached(_OPENING_NEXT).match(text)
    if not is_next and not (compile_cached(_OPENING_THANKS).match(text) and is_request(text)):
        return False
    words, known = (set(compile_cached(_LONG_WORD).findall(one.lower())) for one in (text, goal))
    return len(words) >= _MIN_TASK_WORDS and words.isdisjoint(known - _COMMON_WORDS)


_PRAISE = r"(?i)[\W_]*(?:(?:great|perfect|ok|okay|good|好的?)\W+)?"
_OPENING_THANKS = rf"{_PRAISE}(?:thanks|thank you|thx|cheers|谢谢|多谢)"
_OPENING_NEXT = (
    rf"{_PRAISE}(?:(?:now|next)\W+(?:please\W+)?(?:book|build|compare|create|do|draft|find|fix|help|implement|make|plan|"
    r"prepare|search|summarize|translate|write)\b|(?:现在|接下来)[，,]?请?(?:帮|写|做|找|订|翻译|准备|修))"
)
_LONG_WORD = r"[^\W\d_]{4,}"
_MIN_TASK_WORDS = 5
"""A shorter request belongs to the task at hand."""
_COMMON_WORDS = frozenset(
    "about also could create find from have help like make need please prepare thanks that them then this want will "
    "with would write".split()
)


# No repetition is tried twice, so a longer phrase comes before its beginning.
_FILLER = (
    r"(?i)[\W\d_]*+(?:(?:a ?lot|again|agreed|ah|alright|all right|and|approved|awesome|bye|carry on|cheers|continue|"
    r"cool|correct|do (?:it|so|that)|done|exactly|excellent|fine|for (?:that|your help|the help|me|now|today)|"
    r"go ahead|go on|go|good(?:bye)?|got it|great|have a (?:good|great|nice) (?:day|evening|night|one|time|weekend)|"
    r"hmm+|i (?:agree|see)|indeed|keep going|k|lgtm|looks (?:good|great|right)|makes sense|more|next|nice|no problem|"
    r"nope|noted|no|oh|okay|ok|perfect|please do|please|proceed|resume|right|so much|so|sounds (?:good|great)|stop|"
    r"super|sure|thank you|thanks?|that['’]?s (?:all|correct|fine|good|great|it|okay|ok|perfect|right)|that works|then|"
    r"thx|understood|very much|very|well|with (?:it|that)|works(?: for me)?|wow|yeah|yep|yes|you too|"
    r"yup)\b[\W\d_]*+)++|"
    r"[\W\d_]*+(?:(?:继续|请继续|接着(?:做|写|说)?|往下|下一步|好的?|嗯+|是的?|对的?|可以|行|没问题|谢谢你?|多谢|感谢|"
    r"辛苦了|明白了?|知道了|收到|同意|就这样|很好|不错|不用了?|没有了?|吧|啊|呢|了|ok)[\W\d_]*+)++"
)

_TASK_CUES = (
    r"(?i)\b(?:task|job|assignment|objective|goal|mission|ticket|project|topic|instead|switch|switching|move on|plans?|"
    r"something (?:else|different))\b|任务|目标|改做|改为|换个|换一个|转到|转向"
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
    r"(?:instead|now)\s*,?\s+(?:please\s+)?(?:build|create|do|draft|implement|make|prepare|work|write)\b[^.!?]*"
    r"\binstead\b)|"
    r"[\W_]*(?:(?:好的?|那|那么|现在|请|谢谢|接下来|我们|咱们|给你)[，,、\s]*)*(?:"
    r"(?:一个|个)?(?:新的?|下一个|另一个|另外一个|第[二三四五]个)\s*(?:任务|目标|项目)|换个?一?个?(?:新的?)?(?:任务|话题|项目)|"
    r"任务\s*[二三四五2-9]\s*[:：]|任务(?:变了|改为|变更)|目标(?:改为|变为|变了)|改做|不做[^，。！？]{1,20}了[，,]\s*(?:改|现在|先))"
)
_OPENING_GREETING = (
    r"(?i)[\W_]*(?:hi|hiya|hello|hey+|howdy|greetings|good (?:morning|afternoon|evening|day))\b(?!\s+again)|"
    r"[\W_]*(?:你好|您好|大家好|嗨|哈喽|早上好|上午好|下午好|晚上好)"
)

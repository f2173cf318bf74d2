"""What a person says in a message, told apart from what they have only pasted into it.

People hand over logs, code, mails and the screens of terminals in the same message in which they ask for something; and
agents that work by text alone send what a command answered as if a user had said it. Whoever looks for a person's own
words looks here first.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from enum import Enum, auto
from functools import cache
from itertools import pairwise

compiled = cache(re.compile)
"""Patterns are compiled when a message first needs them: all of them at once would be a quarter of the import."""


def is_headed(words: str) -> bool:
    """Does it stand below the heading of what a tool answered? Nobody writes that by hand."""
    return bool(compiled(_HEADED).match(words))


def begins_as_output(words: str) -> bool:
    """Does it begin as what a program said? People hand such things over, too."""
    return bool(compiled(_OUTPUT_BEGINS).match(words))


def is_screen(words: str) -> bool:
    """Does it end as a terminal that waits for the next command? One line alone does not."""
    _, before, last = words[-_FIRST_WORDS:].rstrip().rpartition("\n")
    return bool(before and compiled(_PROMPT).fullmatch(last))


def own_words(words: str) -> Iterator[str]:
    """What a person says in a message, line by line, without what they have only pasted into it.

    Lines that are wrapped in the middle of a sentence come back as one, a list item with its mark.
    """
    pasted = _Pasted.NOTHING
    for block in _blocks(words):
        if not block:
            pasted = _Pasted.NOTHING  # what was announced stood between fences
        elif pasted is _Pasted.NOTHING or (pasted is _Pasted.OUTPUT and speaks(block[0])):
            said, pasted = _up_to_a_paste(block)
            yield from _unwrapped(said)


def is_greeting(words: str) -> bool:
    """Is nothing said but hello, or nothing at all?"""
    return len(words) <= _FIRST_WORDS and bool(compiled(_GREETING).fullmatch(words))


def speaks(words: str) -> bool:
    """Does somebody speak to somebody here, by its first words? Programs and pages say neither I nor please."""
    first = words.strip()[:_FIRST_WORDS].lower()
    return not compiled(_FOREIGN).match(first) and bool(compiled(_SPEAKS).search(first))


def asks(words: str) -> bool:
    """Does somebody ask for something here? Programs and pages speak to people, and hardly ever do that."""
    first = words.strip()[:_FIRST_WORDS].lower()
    return not compiled(_FOREIGN).match(first) and bool(compiled(_ASKS).search(first))


def sentences(text: str) -> list[str]:
    """The sentences of a text, English or Chinese. A point inside a number, a name or an abbreviation ends none."""
    borders = [0, *_sentence_ends(text), len(text)]
    return [one for start, end in pairwise(borders) if (one := text[start:end].strip())]


def beginning(words: str, most: int) -> str:
    """All of a text, or as many of its first sentences as there is room for; what was cut ends in an ellipsis."""
    text = words.strip()
    if len(text) <= most:
        return text
    head = text[: most - 2]
    stop = max(_sentence_ends(head), default=0)
    if stop < most // 4:
        # One endless sentence: behind a word, or anywhere in a script without spaces.
        stop = head.rfind(" ") if " " in head else len(head)
    return f"{head[:stop].rstrip()} …"


def _sentence_ends(text: str) -> Iterator[int]:
    """The places behind sentences."""
    for end in compiled(_SENTENCE_END).finditer(text):
        place = end.end()
        last = text[place - _LONGEST_WORD if place > _LONGEST_WORD else 0 : place].lower().rpartition(" ")[2]
        goes_on = _ABBREVIATIONS.get(last.lstrip(_OPENS))
        if goes_on is None or not compiled(goes_on).match(text, place):
            yield place


class _Pasted(Enum):
    """What comes behind somebody's "here it is": nothing, what a program said, or what another person wrote."""

    NOTHING = auto()
    OUTPUT = auto()
    TEXT = auto()


def _blocks(words: str) -> Iterator[list[str]]:
    """Paragraphs. One without lines stands for what was between fences or tags."""
    block: list[str] = []
    closes, at = "", 0
    ends = {end[0]: end.start() for end in compiled(_TAG_ENDS).finditer(words)} if "</" in words else {}
    for line in words.splitlines(keepends=True):
        at += len(line)
        if closes:
            closes = "" if closes in line else closes
            continue
        mark = line.strip()[:3]
        tag = compiled(_TAG).match(line) if mark[:1] == "<" else None
        if mark in _FENCES and line.count(mark) == 1:  # a pair on one line, as of a docstring, opens nothing
            closes = mark
        elif tag and ends.get(f"</{tag[1]}>", 0) >= at:
            closes = f"</{tag[1]}>"
        elif mark and mark not in _FENCES:
            block.append(line.rstrip("\r\n"))
            continue
        if block:
            yield block
        block = []
        if closes:
            yield block
    if block:
        yield block


def _up_to_a_paste(block: Sequence[str]) -> tuple[Sequence[str], _Pasted]:
    """The lines of a paragraph before what was pasted, and what that is; it may also come in the next one."""
    for place, line in enumerate(block, start=1):
        if len(line) > _LONGEST_LEAD:
            continue
        if (":" in line or "：" in line) and (asks := compiled(_HANDS_OVER).match(line)):
            return [*block[: place - 1], asks[0]], _Pasted.TEXT
        leads = line.rstrip().endswith((":", "："))
        if compiled(_TEXT).search(line) if leads else _announces(line):
            return block[:place], _Pasted.TEXT
        if leads and compiled(_OUTPUT).search(line):
            return block[:place], _Pasted.OUTPUT
    return block, _Pasted.NOTHING


def _announces(line: str) -> bool:
    """Does it say that somebody's text comes next? Every line is asked this, so only what could match is looked for."""
    low = line.lower()
    if ("here" in low or "below" in low) and compiled(_HERE_IT_IS).search(low):
        return True
    return bool(compiled(_REWORD_IT).match(low) or (not low.isascii() and compiled(_REWORD_IT_IN_CHINESE).search(low)))


def _unwrapped(block: Sequence[str]) -> Iterator[str]:
    """One paragraph's lines of prose; nothing if it is code or output for the most part."""
    foreign = [bool(compiled(_FOREIGN).match(line)) for line in block]
    if sum(foreign) > 1 and 3 * sum(foreign) >= len(block):
        return
    line = ""
    for new, skipped in zip(block, foreign, strict=True):
        goes_on = bool(line) and new.lstrip()[:1].islower() and not compiled(_LINE_ENDS).search(line) and not skipped
        if goes_on:
            line = f"{line} {new.strip()}"
            continue
        if line:
            yield line
        line = "" if skipped or compiled(_INDENTED).match(new) else new.strip()
    if line:
        yield line


_FENCES = {"```", "~~~", '"""', "'''"}

_TAG = r"\s*<([a-zA-Z][\w-]*)[^<>]*>\s*$"
_TAG_ENDS = r"</[a-zA-Z][\w-]*>"

_FIRST_WORDS = 300
_GREETING = (
    r"(?i)[\W_]*(?:(?:hi|hiya|hello|hey+|heya|howdy|yo|greetings|good (?:morning|afternoon|evening|day)|there|again|"
    r"all|everyone|team|folks|friend|how are you(?: doing)?|how['’]?s it going|what['’]?s up|today|are you there|"
    r"nice to meet you)\b[\W_]*)*|"
    r"[\W_]*(?:(?:你好|您好|大家好|嗨|哈喽|早上好|上午好|下午好|晚上好|早安|在吗|在么|有人吗)[啊呀\W_]*)*"
)
_ASKS = (
    r"\b(?:please|pls|can you|could you|would you|how do i|i (?:want|need|would like)|i['’]d like|let['’]?s)\b|"
    r"[?？]\s*(?:$|\n)|[请吗]"
)
_SPEAKS = (
    r"\b(?:i|i['’](?:m|d|ve|ll)|me|my|we|we['’](?:re|d|ve|ll)|our|us|you|your|please|pls|thanks|thank you|let['’]?s|"
    r"from now on|going forward|hi|hello|hey|ok|okay|yes|sorry|wait)\b|[?？]\s*(?:$|\n)|"
    r"[我你您请咱吗谢]|从现在|今后|以后"
)

# The heading under which a text-mode agent is told what its command did, and a prompt that waits for the next.
_HEADED = (
    r"(?i)\W*(?:observation\b\s*[:>\]]|execution result|exit ?code: -?\d+ \(|"
    r"(?:new |current )?(?:terminal|shell|console) (?:output|state|screen)s?:|"
    r"(?:command|tool|function)\s[\w.`'\"()/-]+ (?:returned|answered|printed):|"
    r"(?:command|tool|function|api|code|execution|script)s? (?:results?|outputs?|responses?)"
    r"(?: (?:of|for|from|to) [^\n:]{1,80})?\s*:|(?:results?|outputs?) (?:of|for|from) [^\n:]{1,80}:)|"
    r"\w+_\w+ ?-> |\[\w+ for [^\n\]]*\] Result:|"
    r"\s*<(?:\w*(?:outputs?|results?|responses?)|returncode|stdout|environment)\b|\s*\[(?:tool|output|result|file)\b"
)
_OUTPUT_BEGINS = r"(?i)\W*(?:traceback \(|exit ?code:|search results?(?: (?:of|for|from) [^\n:]{1,80})?\s*:)"
# A tag that closes is none, nor is a share.
_PROMPT = (
    r">>>|[$#>]|[\w.()-]*[-~:/)\]][\d.]*[$#>]|[^\s<]*[@~\\/][^\s<]*[$#>]|[^\s<%]+@[^\s<%]+(?: \S+)? ?%|"
    r"[\[(]\S+ \S+[\])][$#]"
)

# What comes behind these is not what the person says. Behind a program's words he is heard again where he speaks to
# somebody; behind another person's, nothing tells the two apart.
_LONGEST_LEAD = 400
_OUTPUT = (
    r"(?i)\b(?:logs?|outputs?|errors?|tracebacks?|trace|code|snippets?|files?|contents?|responses?|results?|dump)\b"
    r"[^.!?:]{0,40}[:：]\s*$|(?:日志|报错|输出|代码)[^。！？：:]{0,8}[:：]\s*$"
)
_WRITING = (
    r"(?:e-?mails?|articles?|texts?|messages?|pages?|documents?|docs?|transcripts?|letters?|reviews?|posts?|reply|"
    r"paragraphs?|passages?|essays?|chapters?|speech|threads?)"
)
_REWORD = r"(?:please\s+)?(?:summari[sz]e|translate|proofread|paraphrase|rephrase|shorten|correct)"
# "I don't have the email, so please use:" announces what the speaker says next.
_TURNS = r",\s+(?:so|can|could|would)\b"
_TEXT = (
    rf"(?i)\b(?:{_WRITING}|says|said|wrote|reads)\b(?:(?!{_TURNS})[^.!?:]){{0,40}}[:：]\s*$|"
    r"(?:如下|以下|内容|邮件|原文|写道|说)[^。！？：:]{0,8}[:：]\s*$"
)
_HERE_IT_IS = rf"\b(?:here(?:['’]s| is| are)|below is)\s+(?:the|an?|my|our|some)\s+(?:[\w'’]+\s+){{0,3}}{_WRITING}\b"
_REWORD_IT = (
    rf"\W*{_REWORD}\s+(?:(?:this|the following|these|the|my)(?:\s+\w+)?(?:\s+{_WRITING})|(?:this|the following|these))"
    r"(?:\s+(?:to|into|in|for)\s[^.!?:]{1,40})?\W*$"
)
_REWORD_IT_IN_CHINESE = (
    r"(?:总结|翻译|润色|改写|校对)[^。！？]{0,12}(?:文章|邮件|文本|段落|内容|下面|以下)[^。！？]{0,6}$"
)
_HANDS_OVER = (
    rf"(?i)\W*{_REWORD}\s[^.!?:\n]{{1,60}}:(?=\s*\S)|"
    r"(?:请)?(?:翻译|总结|润色|改写|校对)[^。！？：:\n]{0,20}[:：](?=\s*\S)"
)

# Each look ahead runs over the line once: no line, however long, is tried again from every place in it.
_FOREIGN = r"""(?x)\s*(?:
      \d+\s*[:|\t] | \d+\s{2,}\S                                        # numbered lines of a file
    | [>|] | \$\s | \.\.\.\s | In\s\[\d | [\w.-]+@[\w.-]+[:~]            # quotes, tables, prompts
    | \#(?!\s*$) | // | /\* | \*/ | \*\s*@ | --\s | ;; | <[!/?a-z]         # comments, headings, markup
    | \(\w[\w\s]*:.*\)$ | (?:@@|\+\+\+|---|===|\*\*\*)(?:\s|-|=|$) | [+]\s?\S   # remarks, rulers, differences
    | [\[{}\])] | ["'][\w .-]+["']\s*[:,\]] | \w[\w.]*\s*[:+-]?=(?!=)\s*\S   # data, assignments
    | \[?\d{4}[-/]\d\d[-/]\d\d | \[?\d\d:\d\d:\d\d | [-dl][rwx-]{9} | total\s\d+$   # logs, listings
    | (?:ERROR|WARN|WARNING|INFO|DEBUG|FATAL|CRITICAL|TRACE)\b[:\s\]|] | [\w.]*(?:Error|Exception|Warning):
    | Traceback\b | File\s" | at\s[\w.$<>]+\( | [~.]?/[\w./-]+:?\s*$
    | (?:def|class)\s\w+\s*[(:] | import\s\w+(?:\.\w+)*$ | from\s[\w.]+\simport\b | self\.
    | (?:assert|elif|await|const|fn|func)\s | (?:else|try|finally)\s*:\s*$
    | (?:import|return|if|for|while|except|raise|with|async|function|let|var|public|private|static|void|print|yield)\b
      (?=.*[:{;)\]}]\s*$) (?=.*(?:\w[(\[]|[=!<>]=|\s=\s|[{}]|->))
    | (?=.*(?:[{}]|\)\s*:|=>|\\)\s*$) | (?=.*;\s*$) .*[=(]
    )"""
_INDENTED = r"(?: {4}|\t)(?!\s*(?:[-*•]|\d+[.)])\s)"
_LINE_ENDS = r"[.!?:;。！？：；…][\"'”’)\]*_]*\s*$"
# The sign that ends a sentence stands in front of the choice: a search runs to it without trying every place before.
_SENTENCE_END = (
    r"[.!?…。！？；\n](?:(?<=[.!?…])[.!?…]*[\"'”’)*]*(?=\s)|(?<=[。！？；])[。！？；]*[”』」）]?|(?<=\n)\n*)"
)
# Words that begin a sentence and no name.
_BEGINS = (
    r"(?:A|All|Always|And|Any|Are|Ask|Avoid|But|Can|Could|Do|Don|Every|For|From|He|How|I|If|In|Is|It|Keep|Let|Make|My|"
    r"Never|Nothing|Only|Our|Please|She|So|Stop|Thanks|That|The|Then|There|These|They|This|Use|We|What|When|Why|You|Your)"
)
# Behind which words a point may end no sentence, and what follows where it does not.
_ABBREVIATIONS = {
    word: goes_on
    for words, goes_on in (
        (
            "approx. capt. cf. dr. e.g. gen. hon. i.e. lt. mr. mrs. ms. mt. prof. rev. st. u.k. u.s. vs.",
            rf"\s+(?!\s|{_BEGINS}\b)",
        ),
        ("a.m. co. corp. dept. etc. inc. jr. ltd. p.m. sr.", r"\s+[^\sA-Z]"),
        ("art. eq. fig. no. nos. p. pp. sec. vol.", r"\s+#?\d"),
    )
    for word in words.split()
}
# Longer than any of them, so that none is taken for the end of another word.
_LONGEST_WORD = 10
_OPENS = "(\"'“‘*"

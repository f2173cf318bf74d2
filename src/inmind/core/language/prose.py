"""Separates the words of a person in a message from the text that they pasted into it.

People paste logs, code, mails and terminal screens into the message in which they ask for something, and text-only
agents send the output of a command as a user message. Every rule that looks for a person's own words starts here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

from inmind.core.language.spans import compile_cached


def has_output_heading(words: str) -> bool:
    """True if the text starts with a heading of tool output, which people do not write by hand."""
    return bool(compile_cached(_OUTPUT_HEADING).match(words))


def starts_like_output(words: str) -> bool:
    """True if the text starts like the output of a program. People paste such texts too."""
    return bool(compile_cached(_OUTPUT_START).match(words))


def ends_with_shell_prompt(words: str) -> bool:
    """True if the text ends with a shell prompt after at least one other line."""
    _, before, last = words[-_FIRST_WORDS:].rstrip().rpartition("\n")
    return bool(before and compile_cached(_PROMPT).fullmatch(last))


def own_words(words: str) -> Iterator[str]:
    """The lines that a person wrote, without pasted text.

    Lines that were wrapped within a sentence are joined; a list item keeps its mark.
    """
    pasted: _PasteKind = "none"
    for block in _blocks(words):
        if not block:
            pasted = "none"  # the announced paste was between fences
        elif pasted == "none" or (pasted == "output" and is_addressed(block[0])):
            lines, pasted = _split_before_paste(block)
            yield from _join_wrapped_lines(lines)


def is_greeting(words: str) -> bool:
    """True if the text is only a greeting, or empty."""
    return len(words) <= _FIRST_WORDS and bool(compile_cached(_GREETING).fullmatch(words))


def is_addressed(words: str) -> bool:
    """True if the first words address a person, with "I", "you" or "please".

    Programs and pages do not.
    """
    first = words.strip()[:_FIRST_WORDS].lower()
    return not compile_cached(_FOREIGN).match(first) and bool(compile_cached(_ADDRESSING_WORDS).search(first))


def is_request(words: str) -> bool:
    """True if the first words are a request. Programs and pages rarely write one."""
    first = words.strip()[:_FIRST_WORDS].lower()
    return not compile_cached(_FOREIGN).match(first) and bool(compile_cached(_REQUEST_WORDS).search(first))


_PasteKind = Literal["none", "output", "text"]
"""The kind of text after an announcement such as "here it is"."""


def _blocks(words: str) -> Iterator[list[str]]:
    """Yield paragraphs. An empty list marks text between fences or tags."""
    block: list[str] = []
    closing_mark, at = "", 0
    ends = {end[0]: end.start() for end in compile_cached(_TAG_ENDS).finditer(words)} if "</" in words else {}
    for line in words.splitlines(keepends=True):
        at += len(line)
        if closing_mark:
            closing_mark = "" if closing_mark in line else closing_mark
            continue
        mark = line.strip()[:3]
        tag = compile_cached(_TAG).match(line) if mark[:1] == "<" else None
        if mark in _FENCES and line.count(mark) == 1:  # a pair on one line, as in a docstring, opens nothing
            closing_mark = mark
        elif tag and ends.get(f"</{tag[1]}>", 0) >= at:
            closing_mark = f"</{tag[1]}>"
        elif mark and mark not in _FENCES:
            block.append(line.rstrip("\r\n"))
            continue
        if block:
            yield block
        block = []
        if closing_mark:
            yield block
    if block:
        yield block


def _split_before_paste(block: Sequence[str]) -> tuple[Sequence[str], _PasteKind]:
    """The lines of a paragraph before a paste, and its kind.

    The paste may also be in the next paragraph.
    """
    for place, line in enumerate(block, start=1):
        if len(line) > _MAX_LEAD_CHARACTERS:
            continue
        if (":" in line or "：" in line) and (request := compile_cached(_REWORD_INLINE).match(line)):
            return [*block[: place - 1], request[0]], "text"
        ends_with_colon = line.rstrip().endswith((":", "："))
        if compile_cached(_TEXT).search(line) if ends_with_colon else _announces_paste(line):
            return block[:place], "text"
        if ends_with_colon and compile_cached(_OUTPUT).search(line):
            return block[:place], "output"
    return block, "none"


def _announces_paste(line: str) -> bool:
    """True if a text by another person follows.

    This runs for every line, so cheap checks come first.
    """
    low = line.lower()
    if ("here" in low or "below" in low) and compile_cached(_HERE_IT_IS).search(low):
        return True
    return bool(
        compile_cached(_REWORD_IT).match(low)
        or (not low.isascii() and compile_cached(_REWORD_IT_IN_CHINESE).search(low))
    )


def _join_wrapped_lines(block: Sequence[str]) -> Iterator[str]:
    """Lines of prose of one paragraph; none if it is mostly code or output."""
    foreign = [bool(compile_cached(_FOREIGN).match(line)) for line in block]
    if sum(foreign) > 1 and 3 * sum(foreign) >= len(block):
        return
    line = ""
    for new, skipped in zip(block, foreign, strict=True):
        continues = (
            bool(line) and new.lstrip()[:1].islower() and not compile_cached(_LINE_ENDS).search(line) and not skipped
        )
        if continues:
            line = f"{line} {new.strip()}"
            continue
        if line:
            yield line
        line = "" if skipped or compile_cached(_INDENTED).match(new) else new.strip()
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
_REQUEST_WORDS = (
    r"\b(?:please|pls|can you|could you|would you|how do i|i (?:want|need|would like)|i['’]d like|let['’]?s)\b|"
    r"[?？]\s*(?:$|\n)|[请吗]"
)
_ADDRESSING_WORDS = (
    r"\b(?:i|i['’](?:m|d|ve|ll)|me|my|we|we['’](?:re|d|ve|ll)|our|us|you|your|please|pls|thanks|thank you|let['’]?s|"
    r"from now on|going forward|hi|hello|hey|ok|okay|yes|sorry|wait)\b|[?？]\s*(?:$|\n)|"
    r"[我你您请咱吗谢]|从现在|今后|以后"
)

# Headings of command output in text-only agents, and shell prompts.
_OUTPUT_HEADING = (
    r"(?i)\W*(?:observation\b\s*[:>\]]|execution result|exit ?code: -?\d+ \(|"
    r"(?:new |current )?(?:terminal|shell|console) (?:output|state|screen)s?:|"
    r"(?:command|tool|function)\s[\w.`'\"()/-]+ (?:returned|answered|printed):|"
    r"(?:command|tool|function|api|code|execution|script)s? (?:results?|outputs?|responses?)"
    r"(?: (?:of|for|from|to) [^\n:]{1,80})?\s*:|(?:results?|outputs?) (?:of|for|from) [^\n:]{1,80}:)|"
    r"\w+_\w+ ?-> |\[\w+ for [^\n\]]*\] Result:|"
    r"\s*<(?:\w*(?:outputs?|results?|responses?)|returncode|stdout|environment)\b|\s*\[(?:tool|output|result|file)\b"
)
_OUTPUT_START = r"(?i)\W*(?:traceback \(|exit ?code:|search results?(?: (?:of|for|from) [^\n:]{1,80})?\s*:)"
# A closing tag is not a prompt, nor is a percentage.
_PROMPT = (
    r">>>|[$#>]|[\w.()-]*[-~:/)\]][\d.]*[$#>]|[^\s<]*[@~\\/][^\s<]*[$#>]|[^\s<%]+@[^\s<%]+(?: \S+)? ?%|"
    r"[\[(]\S+ \S+[\])][$#]"
)

# Lines that announce pasted text. After program output, a line that addresses the agent is the user's again; after a
# text by another person, the two cannot be distinguished.
_MAX_LEAD_CHARACTERS = 400
_OUTPUT = (
    r"(?i)\b(?:logs?|outputs?|errors?|tracebacks?|trace|code|snippets?|files?|contents?|responses?|results?|dump)\b"
    r"[^.!?:]{0,40}[:：]\s*$|(?:日志|报错|输出|代码)[^。！？：:]{0,8}[:：]\s*$"
)
_WRITING = (
    r"(?:e-?mails?|articles?|texts?|messages?|pages?|documents?|docs?|transcripts?|letters?|reviews?|posts?|reply|"
    r"paragraphs?|passages?|essays?|chapters?|speech|threads?)"
)
_REWORD = r"(?:please\s+)?(?:summari[sz]e|translate|proofread|paraphrase|rephrase|shorten|correct)"
# "I don't have the email, so please use:" announces the speaker's own words.
_CLAUSE_CHANGE = r",\s+(?:so|can|could|would)\b"
_TEXT = (
    rf"(?i)\b(?:{_WRITING}|says|said|wrote|reads)\b(?:(?!{_CLAUSE_CHANGE})[^.!?:]){{0,40}}[:：]\s*$|"
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
_REWORD_INLINE = (
    rf"(?i)\W*{_REWORD}\s[^.!?:\n]{{1,60}}:(?=\s*\S)|"
    r"(?:请)?(?:翻译|总结|润色|改写|校对)[^。！？：:\n]{0,20}[:：](?=\s*\S)"
)

# Each lookahead scans the line once, so the time is linear in the length of the line.
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

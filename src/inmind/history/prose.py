"""What a person says in a message, told apart from what they have only pasted into it.

People hand over logs, code, mails and the screens of terminals in the same message in which they ask for something; and
agents that work by text alone send what a command answered as if a user had said it. Whoever looks for a person's own
words looks here first.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache

compiled = cache(re.compile)
"""Patterns are compiled when a message first needs them: all of them at once would be a quarter of the import."""


def is_screen(words: str) -> bool:
    """Is it what a terminal or a tool answered? Agents that work by text alone send that as a user's message."""
    last = words.rstrip().rpartition("\n")[2]
    return bool(compiled(_SCREEN_BEGINS).match(words) or compiled(_PROMPT).fullmatch(last))


def own_words(words: str) -> Iterator[str]:
    """What a person says in a message, line by line, without what they have only pasted into it.

    Lines that are wrapped in the middle of a sentence come back as one, a list item with its mark.
    """
    block: list[str] = []
    fence, pasting = "", False
    for line in words.splitlines():
        mark = line.strip()[:3]
        if fence or mark in _FENCES:
            # A pair on one line, as of a docstring, opens nothing.
            if not (mark in _FENCES and not fence and line.count(mark) > 1):
                fence = "" if fence and fence in line else fence or mark
            pasting = False
        elif not mark:
            yield from _unwrapped(block)
            block = []
        elif pasting:
            break
        else:
            block.append(line)
            pasting = line.rstrip().endswith((":", "：")) and bool(compiled(_PASTES).search(line))
    yield from _unwrapped(block)


def sentences(text: str) -> list[str]:
    """The sentences of a text, English or Chinese. A point inside a number, a name or an abbreviation ends none."""
    found: list[str] = []
    start = 0
    for end in compiled(_SENTENCE_END).finditer(text):
        if not text.endswith(_ABBREVIATIONS, start, end.end()):
            found.append(text[start : end.end()].strip())
            start = end.end()
    return [one for one in (*found, text[start:].strip()) if one]


def beginning(words: str, most: int) -> str:
    """All of a text, or as many of its first sentences as there is room for; what was cut ends in an ellipsis."""
    text = words.strip()
    if len(text) <= most:
        return text
    head = text[: most - 2]
    stop = max((end.end() for end in compiled(_SENTENCE_END).finditer(head)), default=0)
    if stop < most // 4:
        # One endless sentence: behind a word, or anywhere in a script without spaces.
        stop = head.rfind(" ") if " " in head else len(head)
    return f"{head[:stop].rstrip()} …"


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

# The heading under which a text-mode agent is told what its command did, and a prompt that waits for the next.
_SCREEN_BEGINS = (
    r"(?i)\W*(?:observation\b\s*[:>\]]|execution result|traceback \()|"
    r"\s*<(?:output|returncode|result|stdout|tool_result|environment)\b|\s*\[(?:tool|output|result|file)\b"
)
_PROMPT = r">>>|[$#>]|[\w.()-]*[-~:/)\]][\d.]*[$#%>]|\S*[@~\\/]\S*[$#%>]|[\[(]\S+ \S+[\])][$#]"

# What comes behind is somebody's text that is handed over, but for instructions.
_PASTES = (
    r"(?i)\b(?:e?mails?|articles?|logs?|outputs?|errors?|traceback|trace|text|messages?|pages?|documents?|docs?|code|snippets?|"
    r"files?|contents?|responses?|results?|transcripts?|letters?|reviews?|posts?|dump|reply|says|said|wrote|reads)\b"
    r"[^.!?:]{0,40}[:：]\s*$|(?:如下|以下|内容|日志|报错|邮件|输出|原文|代码|写道|说)[^。！？：:]{0,8}[:：]\s*$"
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
_SENTENCE_END = r"[.!?…]+[\"'”’)*]*(?=\s)|[。！？；]+[”』」）]?|\n+"
_ABBREVIATIONS = ("e.g.", "i.e.", " vs.", " approx.")

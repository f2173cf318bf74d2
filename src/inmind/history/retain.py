"""What must survive every rewrite of the conversation, as declared data.

A summary is somebody's opinion of what mattered. The goal, the rules that people gave, what was decided, the last
request and what the host has pinned are no matter of opinion: they are taken down word for word from the messages
that are about to leave, checked item by item against what will be sent, and attached where they are missing.

Only people make rules. What a tool answered is never read here, and what a person merely pasted (code, logs, quotes,
the screen of a terminal) is told apart from what they say themselves, line by line. A sentence counts by its form: an
order that holds beyond this moment, in English or Chinese. Two rules that contradict each other both stay, the newer
last: which one holds is for the model to judge, who sees them in order.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import pairwise
from typing import Literal, NamedTuple

from inmind.history.spoken import Spoken
from inmind.journal import Item
from inmind.text import inert
from inmind.tokens import Counter

Kind = Literal["goal", "pinned", "decision", "rule", "request"]

MOST_GOAL = 800
"""Characters of a goal, and of a request. Beyond them it is cut behind a sentence, and says so."""

MOST_ITEM = 300
"""Characters of a rule or a decision. A longer sentence is cut to the clauses that matter, or it is none."""

# Nobody speaks a sentence of so many characters; it is data, whatever words are in it.
_LONGEST = 2_000


class Merged(NamedTuple):
    """The items that stay, in the order in which they are told, and those that their room was too small for."""

    kept: list[Item]
    left_out: list[Item]


def items_of(said: Sequence[Spoken], *, first: bool) -> list[Item]:
    """What the messages that leave ask to be kept. `first`: the session begins with them, so they state the goal."""
    found: list[Item] = []
    for before, one in pairwise([None, *said]):
        if one is None or one.by not in ("user", "operator") or one.answers:
            continue
        states_goal = first and one.begins_turn and bool(one.words.strip())
        if states_goal:
            found.append(Item("goal", _beginning(one.words), one.seq))
            first = False
        if before is not None and before.by == "assistant" and _compiled(_AGREES).match(one.words):
            found += (Item("decision", text, before.seq) for text in _proposed(before.words))
        # Before anything was run there is no screen to be read back.
        if _cued(one.words) and (states_goal or not is_screen(one.words)):
            found += (Item(kind, text, one.seq) for kind, text in _orders(one.words))
    return _once(found)


def request_of(said: Sequence[Spoken]) -> Item | None:
    """The last thing that a user asked for; None where a terminal's screen came in the place of a user's words."""
    last = next((one for one in reversed(said) if one.begins_turn), None)
    if last is None or not last.words.strip() or is_screen(last.words):
        return None
    return Item("request", _beginning(last.words), last.seq)


def merged(earlier: Sequence[Item], later: Sequence[Item], *, most_tokens: int, count: Counter) -> Merged:
    """One list over all compactions so far, with so much room for rules and decisions.

    Of those the newest stay, in one queue: many of the one kind must not crowd out all of the other. The goal, as it
    was stated first, and what the host has pinned stay beside them whatever they cost: in a room that they could fill
    no rule would be left. What the goal says itself is not said again.
    """
    goal = [item for item in (*earlier, *later) if item.kind == "goal"][:1]
    items = _once([*goal, *(item for item in (*earlier, *later) if item.kind != "goal")])
    kept = [item for item in items if item.kind in ("goal", "pinned")]
    queue = [item for item in items if item.kind not in ("goal", "pinned")]
    left_out: list[Item] = []
    for item in sorted(missing(queue, goal[0].text) if goal else queue, key=lambda item: item.seq, reverse=True):
        tokens = count(f"- {item.text}\n")
        (kept if tokens <= most_tokens else left_out).append(item)
        most_tokens -= tokens if tokens <= most_tokens else 0
    return Merged(sorted(kept, key=_told), sorted(left_out, key=_told))


def missing(items: Sequence[Item], text: str) -> list[Item]:
    """The items that do not stand in a text that will be sent, however it is wrapped, indented or made inert there.

    One that was cut stands where its beginning does.
    """
    squeezed = _squeezed(text)
    return [
        item
        for item in items
        if all(_squeezed(said).removesuffix("…") not in squeezed for said in (item.text, inert(item.text)))
    ]


def is_screen(words: str) -> bool:
    """Is it what a terminal or a tool answered? Agents that work by text alone send that as a user's message."""
    last = words.rstrip().rpartition("\n")[2]
    return bool(_compiled(_SCREEN_BEGINS).match(words) or _compiled(_PROMPT).fullmatch(last))


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
            pasting = line.rstrip().endswith((":", "：")) and bool(_compiled(_PASTES).search(line))
    yield from _unwrapped(block)


def sentences(text: str) -> list[str]:
    """The sentences of a text, English or Chinese. A point inside a number, a name or an abbreviation ends none."""
    found: list[str] = []
    start = 0
    for end in _compiled(_SENTENCE_END).finditer(text):
        if not text.endswith(_ABBREVIATIONS, start, end.end()):
            found.append(text[start : end.end()].strip())
            start = end.end()
    return [one for one in (*found, text[start:].strip()) if one]


def _told(item: Item) -> tuple[int, int]:
    return _ORDER.index(item.kind), item.seq


_ORDER: tuple[Kind, ...] = ("goal", "pinned", "decision", "rule", "request")


def _once(items: Sequence[Item]) -> list[Item]:
    """Each item once, where it was said last; but a goal stays the goal, and what is pinned stays pinned."""
    last: dict[str, Item] = {}
    for item in items:
        key = " ".join(_compiled(_WORDS).findall(item.text.casefold()))
        known = last.pop(key, item)
        last[key] = known if known.kind in ("goal", "pinned") else item
    return list(last.values())


def _squeezed(text: str) -> str:
    return "".join(text.split())


def _beginning(words: str) -> str:
    """All of a message, or as many of its first sentences as there is room for."""
    text = words.strip()
    if len(text) <= MOST_GOAL:
        return text
    head = text[: MOST_GOAL - 2]
    stop = max((end.end() for end in _compiled(_SENTENCE_END).finditer(head)), default=0)
    if stop < MOST_GOAL // 4:
        # One endless sentence: behind a word, or anywhere in a script without spaces.
        stop = head.rfind(" ") if " " in head else len(head)
    return f"{head[:stop].rstrip()} …"


def _orders(words: str) -> Iterator[tuple[Kind, str]]:
    """The rules and decisions in what a person says, one for each sentence or list item."""
    below_heading = False
    for line in own_words(words):
        listed = _compiled(_LIST_MARK).match(line)
        body = line[listed.end() :] if listed else line
        found = [order for one in sentences(body) if len(one) <= _LONGEST and _cued(one) for order in _order(one)]
        yield from found
        if not listed:
            # What is listed below "From now on:" or "Rules:" are rules, whatever their form.
            below_heading = line.endswith((":", "：")) and bool(
                found or _compiled(_HEADS_RULES).fullmatch(line.lower())
            )
        elif below_heading and not found and len(body) <= MOST_ITEM and not _compiled(_ASKS).search(body.lower()):
            yield "rule", _plain(body)


def _cued(text: str) -> bool:
    if not _CUES.isdisjoint(text.replace("’", "'").encode("ascii", "replace").translate(_APART).split()):
        return True
    return not text.isascii() and any(map(text.__contains__, _CHINESE_CUES))


def _order(sentence: str) -> Iterator[tuple[Kind, str]]:
    low = sentence.lower().replace("*", " ")
    if len(low) != len(sentence):
        # A capital that is two letters when small: the places below would be off, and our words are not spelt so.
        low = sentence
    for kind, forms in _FORMS:
        end = forms.end_in(low)
        if end is None or _quoted(sentence, end):
            continue
        if text := _clauses(sentence, low, end):
            yield kind, text
        return


def _clauses(sentence: str, low: str, end: int) -> str:
    """The sentence without the question it may go on with, inside the bound; nothing where the order is the question.

    People say what they prefer and ask for something else in the same breath. What is cut for its length is cut behind
    a clause, and says so.
    """
    if not _compiled(_POLITELY).search(low):
        asked = _compiled(_ASKS).search(low)
        if asked.start() < end if asked else _compiled(_QUESTION).search(low):
            return ""
        sentence = sentence[: asked.start()] if asked else sentence
    text = _plain(sentence)
    if _compiled(_FLEETING).search(text.lower()):
        return ""
    if len(text) <= MOST_ITEM:
        return text
    borders = [0, *(border.end() for border in _compiled(_CLAUSE_END).finditer(sentence))]
    start = max(border for border in borders if border < end)
    stops = [border for border in borders if end < border <= start + MOST_ITEM - 2]
    return f"{_plain(sentence[start : stops[-1]])} …" if stops else ""


def _quoted(sentence: str, place: int) -> bool:
    """Is it somebody else's word: inside quotation marks, or code?"""
    before = sentence[:place]
    return any(before.count(mark) % 2 for mark in '"`') or any(
        before.count(opens) > before.count(closes) for opens, closes in ("“”", "「」", "『』", "《》")
    )


def _proposed(words: str) -> list[str]:
    """What an assistant proposed last, in its own words: a user's yes makes it a decision."""
    if not _compiled(_PROPOSES).search(words.lower()):
        return []
    proposed = [one for line in own_words(words) for one in sentences(line) if _compiled(_PROPOSES).search(one.lower())]
    return [
        text for one in proposed[-1:] if len(text := _plain(_compiled(_LIST_MARK).sub("", one, count=1))) <= MOST_ITEM
    ]


def _plain(text: str) -> str:
    """On one line, without the emphasis around it or the comma that it was cut at."""
    line = " ".join(text.split()).rstrip(",，;； ")
    return _compiled(_EMPHASIZED).sub(r"\2", line)


def _unwrapped(block: Sequence[str]) -> Iterator[str]:
    """One paragraph's lines of prose; nothing if it is code or output for the most part."""
    foreign = [bool(_compiled(_FOREIGN).match(line)) for line in block]
    if sum(foreign) > 1 and 3 * sum(foreign) >= len(block):
        return
    line = ""
    for new, skipped in zip(block, foreign, strict=True):
        goes_on = bool(line) and new.lstrip()[:1].islower() and not _compiled(_LINE_ENDS).search(line) and not skipped
        if goes_on:
            line = f"{line} {new.strip()}"
            continue
        if line:
            yield line
        line = "" if skipped or _compiled(_INDENTED).match(new) else new.strip()
    if line:
        yield line


_compiled = cache(re.compile)
"""Patterns are compiled when a message first needs them: all of them at once would be a quarter of the import."""

# --- Whose words a line is --------------------------------------------------------------------------------------------

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
_LIST_MARK = (
    r"\s*(?:[-*–—]\s+|[•‣·]\s*|\(?(?:\d{1,3}|[a-z])[.)]\s+|[（(]?(?:\d{1,3}|[一二三四五六七八九十]+)[)）、]\s*)"
    r"(?:\[[ x]\]\s*)?"
)
_LINE_ENDS = r"[.!?:;。！？：；…][\"'”’)\]*_]*\s*$"

_SENTENCE_END = r"[.!?…]+[\"'”’)*]*(?=\s)|[。！？；]+[”』」）]?|\n+"
_ABBREVIATIONS = ("e.g.", "i.e.", " vs.", " approx.")
_CLAUSE_END = r"[,;:，；：]\s*|\s[-–—]+\s|\s(?=(?:and|but|so|because|since|which)\s)"
_EMPHASIZED = r"\A(\*\*|__|\*|_)([^*_]+)\1\Z"
_WORDS = r"[^\W_]+"


# --- What makes a sentence an order -----------------------------------------------------------------------------------
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
        match = _compiled(self.opening).match(low) or _compiled(self.inside).search(low)
        if match is None and not low.isascii():
            match = _compiled(self.chinese).search(low)
        return match.end() if match else None


_VERB = (
    "(?:add|address|answer|ask|assume|avoid|begin|book|call|cancel|change|charge|check|choose|cite|commit|confirm|convert|"
    "create|delete|deploy|edit|end|exceed|explain|format|give|guess|highlight|ignore|include|install|keep|limit|list|log|"
    "make|mention|merge|mix|modify|output|pick|post|provide|publish|push|put|recommend|refer|remove|repeat|reply|respond|"
    "restart|return|reveal|round|run|say|send|share|show|skip|speak|start|stick|store|suggest|summari[sz]e|tell|test|"
    "touch|translate|treat|use|warn|work|write)"
)
_NOT = r"(?:do\s+not|don['’]?t)"
# What may stand before an order: words that lead to it, then the case it is for.
_LEADS = (
    r"[\W_]*(?:(?:please|also|and|but|so|then|ok|okay|hey|oh|yes|no|well|important|note|attention|remember|rules?|"
    r"reminder|btw|by the way|one more thing|firstly?|secondly?|thirdly?|finally|lastly|again|just|kindly|in general|"
    r"in addition|generally|overall|plus|thanks|thank you|as a rule|going forward|from now on)\b(?:\s+#?\d+)?[\W_]*)*"
)
_CASE = (
    r"(?:(?:when(?:ever)?|if|for|in|before|after|on|unless|while|until|once|with|during|at|as|regarding|every time|"
    r"each time|any ?time)\b[^.!?]{2,160}?,\s*(?:then\s+)?(?:please\s+)?)?"
)
_CASE_OF_OURS = (
    r"(?:(?:when(?:ever)?|if|every time|each time|any ?time)\s+(?:i|we|you|someone|anyone|a user)|"
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
_GUESSED = r"(?:have|still|feel|look|mean|be\s+(?:an?|so|very|really|the|hard|tough|nice|fun|great|fine|in\s+an?))\b"
_NOUN = r"(?!you\b|they\b|it\b|i\b|we\b)\w[\w'’-]*\s+"
_POLITELY = (
    r"(?:can|could|would|will)\s+you\s+(?:please\s+)?"
    r"(?:always|never|stop\s+\w+ing|make\s+sure\s+(?:to\s+|you\s+)?(?:always|never))\b"
)

_RULE = _Forms.of(
    opening=(
        rf"{_CASE}(?:(?:always|never)\s+(?!{_NO_VERB})\w|{_NOT}(?:\s+ever)?\b{_NO_ORDER}|"
        r"(?:make|be)\s+(?:sure|certain)\b|ensure\b|avoid\b|refrain\s+from\b|under\s+no\s+circumstances\b|"
        rf"only\s+(?:ever\s+)?{_VERB}\b|{_VERB}\s+only\b|{_VERB}\b[^.!?]*\bonly\W*$|stick\s+to\b|stop\s+\w+ing\b|"
        r"be\s+(?:brief|concise|direct|formal|terse)\b|"
        rf"(?:all|any|each|every|no|our|the|these|those|your)\s+(?:{_NOUN}){{1,4}}(?:must|should)\s+(?!{_GUESSED}))",
        r"remember\s+(?:to|that)\b|(?:keep|bear)\s+in\s+mind\b|in\s+(?:the\s+)?future,",
        r"no\s+(?:more|longer|less)\s+than\b|no\s+more\s+\w+s\b",
        rf"no\s+(?!{_NO_BAN})\w+(?:\s+\w+)?\s+(?:on|in|after|before|without|during|unless)\b",
        rf"no\s+(?!{_NO_BAN})\w+s(?:,?\s+please)?\W*$",
        r"keep\s+(?:it|them|all|every|your|the|answers|replies|responses)\b[^.!?]*"
        r"\b(?:under|below|within|short|brief|concise)\b",
        rf"{_CASE_OF_OURS}{_VERB}\b",
        rf"{_VERB}\b[^.!?]*\b(?:when(?:ever)?|every time|each time)\s+(?:i|you)\b(?!\s+(?:can|get|have|are)\b)",
        rf"{_VERB}\b[^.!?]*(?:\band|\bbut|,)\s+(?:always|never|{_NOT})\b",
    ),
    inside=(
        r"from (?:now|today|tomorrow) (?:on|onwards?|forward)\b(?!,?\s+i(?:['’]|\s+(?:will|am|have|plan)\b))",
        r"(?:henceforth|at all times)\b",
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
        r"i(?:['’]d|\s+would|\s+do)?\s+(?:(?:really|strongly|always|usually|generally|much|definitely|still|also)\s+)*prefer\b",
        r"my\s+(?:\w+\s+)?preference\b",
        r"i(?:['’]d|\s+would)\s+(?:much\s+)?rather\s",
        r"i(?:['’]d|\s+would)?\s+(?:want|need|expect|like|ask)\s+you\s+to\s+(?:always|never|only|avoid|stop|not)\b",
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
_FORMS: tuple[tuple[Kind, _Forms], ...] = (("decision", _DECISION), ("rule", _RULE))

_HEADS_RULES = (
    r"\W*(?:\w+\s+){0,4}(?:rules?|constraints?|guidelines?|conventions?|preferences?)\W*|"
    r"[^，。]{0,8}(?:规则|约束|约定|规范|偏好|注意事项|原则|要求)\W*"
)

# Without one of these words none of the above can match: most sentences have none, and are not looked at further.
_CUES = frozenset(
    b"agreed all allowed always any avoid banned before brief certain chose chosen circumstances concise constraint "
    b"constraints convention conventions decided decision direct don't dont each ensure every forbidden formal future "
    b"go going guideline guidelines henceforth if instead keep let's lets limits mind minds must mustn't mustnt "
    b"never no non-negotiable not now off-limits only opted permitted prefer preference preferences prohibited rather "
    b"refrain remember rule rules settled shall shouldn't shouldnt stick stop sure terse time times today tomorrow "
    b"when whenever".split()
)
_CHINESE_CUES = tuple(
    "从现在 从今 从此 今后 以后 不要 别 不能 不可 勿 禁 不得 不准 不许 必须 务必 一定 一律 始终 总是 永远 尽量 "
    "避免 记 每次 每当 凡是 只 仅 最多 超过 更喜欢 偏好 倾向 宁 希望 要求 决定 就 定了 敲定 选定 改用 拍板 "
    "规则 约 规范 注意 原则 回答 回复 作答 输出 交流".split()
)
# Small letters, and a space for whatever parts two words.
_APART = bytes(
    code if chr(code) in "abcdefghijklmnopqrstuvwxyz0123456789'-" else 32 for code in bytes(range(256)).lower()
)

# Only for this moment: nothing that has to be told again later.
_FLEETING = r"\b(?:yet|this time|right now|just now|for now|at the moment)\b|这次|暂时|先别|还不要"

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
_PROPOSES = (
    r"\bi(?:['’]d|\s+would)?\s+(?:strongly\s+)?(?:suggest|propose|recommend)\b|\bmy\s+(?:suggestion|recommendation|proposal)\b|"
    r"\b(?:shall|should)\s+(?:we|i)\s+(?:go\s+with|use|switch\s+to|stick\s+(?:with|to))\b|建议|提议|推荐(?:用|使用|采用)"
)

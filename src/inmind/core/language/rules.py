"""Patterns of rules, decisions and open decisions in English and Chinese.

They match grammar, not vocabulary: an instruction to do something always, never or only; an obligation; a wish about
how things are done; a recurring case; a limit. A one-time request has the same verbs and none of these forms.

Patterns are in groups. Each group names cue words without which none of its patterns can match, so a sentence is
matched only against groups with a cue; most sentences have none. Everything is matched in lower case without
IGNORECASE, which is several times faster.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

from inmind.core.language.spans import compile_cached, cue_words, has_han

RuleKind = Literal["rule", "decision", "open_decision"]


class RulePatterns(NamedTuple):
    """Patterns of one kind with shared cues: at the start of a sentence, or anywhere in it."""

    kind: RuleKind
    opening: str
    anywhere: str

    def match_end(self, low: str) -> int | None:
        """Return the offset after the words that make it a rule; None if it is none."""
        match = compile_cached(self.opening).match(low) if self.opening else None
        if match is None and self.anywhere:
            match = compile_cached(self.anywhere).search(low)
        return match.end() if match else None


def patterns_for(text: str) -> list[RulePatterns]:
    """Return the groups with a cue in the text; for each language open decisions come first."""
    words = cue_words(text)
    groups = [] if _CUES.isdisjoint(words) else [forms for cues, forms in _ENGLISH if not cues.isdisjoint(words)]
    if has_han(text):
        groups += (forms for signs, forms in _CHINESE if any(map(text.__contains__, signs)))
    return groups


def _english(
    kind: RuleKind, cues: str, *, opening: Sequence[str] = (), inside: Sequence[str] = ()
) -> tuple[frozenset[str], RulePatterns]:
    opening_pattern = f"{_LEAD_IN}(?:{'|'.join(opening)})" if opening else ""
    return frozenset(cues.split()), RulePatterns(kind, opening_pattern, rf"\b(?:{'|'.join(inside)})" if inside else "")


def _chinese(kind: RuleKind, signs: str, *, inside: Sequence[str]) -> tuple[tuple[str, ...], RulePatterns]:
    return tuple(signs.split()), RulePatterns(kind, "", "|".join(inside))


_VERB = (
    "(?:add|address|answer|ask|assume|avoid|begin|book|call|cancel|change|charge|check|choose|cite|commit|confirm|convert|"
    "create|delete|deploy|edit|end|exceed|explain|format|give|go\\s+over|guess|highlight|ignore|include|install|keep|"
    "leave|limit|list|log|make|mention|merge|mix|modify|output|pause|pick|post|provide|publish|push|put|recommend|refer|"
    "remove|repeat|reply|respond|restart|return|reveal|round|run|say|send|share|show|skip|speak|start|stick|stop|store|"
    "suggest|summari[sz]e|tell|test|touch|translate|treat|use|wait|warn|work|write)"
)
_NOT = r"(?:do\s+not|don['’]?t)"

# Before an instruction: its topic, leading words, then its case.
_LEAD_IN = (
    r"(?:[\w/&'’-]+(?: [\w/&'’-]+){0,3}:\s+)?"
    r"[\W_]*(?:(?:please|pls|plz|also|and|but|so|then|ok|okay|hey|oh|yes|no|well|important|note|attention|remember|rules?|"
    r"reminder|btw|by the way|one more thing|firstly?|secondly?|thirdly?|finally|lastly|again|just|kindly|in general|"
    r"in addition|generally|overall|plus|thanks|thank you|as a rule|going forward|from now on)\b(?:\s+#?\d+)?[\W_]*)*"
)
_CASE = (
    r"(?:(?:when(?:ever)?|if|for|in|before|after|on|unless|while|until|once|with|during|at|as|regarding|every time|"
    r"each time|any ?time)\b[^.!?]{2,160}?,\s*(?:then\s+)?(?:please\s+)?)?"
)
# A case that occurs once, or only a polite phrase.
_ONCE = (
    r"(?:['’]re|\s+are)\s+(?:done|finished|ready|through|back)\b|\s+(?:finish|have\s+(?:finished|done))\b|"
    r"\s+(?:can|could|like|want|wish|don['’]?t\s+mind|have\s+time|please)\b(?!['’])"
)
# A case that may recur.
_RECURRING_CASE = (
    rf"(?:(?:when(?:ever)?|if|every time|each time|any ?time)\s+(?:i|we|you(?!{_ONCE})|an?|any\w*|some\w+|"
    r"no(?:body|thing)?)|(?:for|before)\s+(?:all|any|each|every)|before\s+you)\b[^.!?]{2,160}?,\s*"
    r"(?:then\s+)?(?:please\s+)?"
)
# In any case: stop the work, ask the user, or inform the user. Other requests for information are one-time requests.
_CONTACT_USER = (
    r"(?:(?:stop|pause|abort|halt)(?=\W*$|\s+(?:and|at\s+once|everything|immediately|right|there|until|work\w*)\b)|"
    r"(?:(?:alert|ask|consult|inform|notify|ping|tell|warn)|(?:check|confirm)\s+with|come\s+back\s+to)\s+(?:me|us)"
    r"(?=\W*$|\s+(?:and|at\s+once|before|first|immediately|right)\b)|let\s+(?:me|us)\s+know(?=\W*$))"
)
_NOT_A_CASE = r"[^.!?,]*\b(?:convenient|done|finished|necessary|needed|ok|okay|possible|ready|through|trouble)\b"

# Comforting phrases, or phrases with the "I" omitted.
_NOT_AN_ORDER = (
    r"(?!\s+(?:worry|know|forget|mind|you\b|think|hesitate|bother|get me|have|need|want|like|see|remember|understand|"
    r"feel|believe|really|even|care|love|miss|give up|sweat|stress|fear|be (?:sorry|afraid|shy|silly|so)))"
)
_NOT_A_VERB = r"(?:mind|again|been|had|heard|saw|seen|an?|the|in|on|at|up|here|there|too|so|\w+ed|\w+ing)\b"
_NOT_A_BAN = (
    r"(?:\d|(?:one|problems?|ideas?|way|need|doubt|changes?|luck|issues?|worries|thanks|questions?|plans?|rush|others?|"
    r"yes|point|action|constraints?)\b)"
)

# An assumption or a description, not an instruction.
_ASSUMPTION = (
    r"(?:have|still|feel|look|mean|pass|work|exist|compile|succeed|match|offer|say|"
    r"be\s+(?:an?|so|very|really|the|hard|tough|nice|fun|great|fine|in\s+an?))\b"
)
_NOUN = r"(?!you\b|they\b|it\b|i\b|we\b)\w[\w'’-]*\s+"
# Words before "must" or "should" that are not plural or refer to one thing.
_NOT_A_PLURAL = (
    r"(?:as|because|does|his|how|if|is|its|my|since|that|the|their|this|thus|unless|was|what|when|which|who)\b"
)
# Blame for the past: "have" and a participle.
_BLAME = r"\s+have\s+(?!(?:an?|all|any|at|both|fewer|less|more|no|some|the|to|two|three|your)\b|\d)"
# A single step of a longer task.
_ONE_STEP = r"\s+(?:that\s+)?this\b|[^.!?]*\band\s+then\b"
_ONE_OPTION = (
    r"\s+(?:the\s+(?:first|second|third|last|former|latter|other)|"
    r"(?:the|this|that|these|those)\s+(?:\w+\s+){0,3}(?:ones?|option|flight|seat|item))\b"
)
# Abilities and states, which cannot be instructed.
_ABILITY_VERBS = (
    r"\s+(?:access|be|fail|feel|find|get|have|hear|know|like|lose|need|reach|read|remember|see|understand|want)\b"
)
POLITE_QUESTION = (
    r"(?:can|could|would|will)\s+you\s+(?:please\s+)?"
    rf"(?:(?:always|never)\b(?!{_ABILITY_VERBS})|(?:stop\s+\w+ing|make\s+sure\s+(?:to\s+|you\s+)?(?:always|never))\b)"
)
"""A rule in the form of a question."""

RULE_HEADING = (
    r"\W*(?:\w+\s+){0,4}(?:rules?|constraints?|guidelines?|conventions?|preferences?)\W*|"
    r"[^，。]{0,8}(?:规则|约束|约定|规范|偏好|注意事项|原则|要求)\W*"
)
"""Heading of a list of rules. Its words are cues too."""

_MONEY = r"(?:about\s+|around\s+|roughly\s+)?(?:[$€£¥]\s?\d|\d[\d,.]*\s?(?:k\b|dollars|euros|pounds|usd|eur|gbp|bucks))"
_BOUND = r"(?:(?:at\s+most|below|max(?:imum)?|no\s+more\s+than|not\s+more\s+than|under|up\s+to)\s+)?"
_DATE = (
    r"(?:(?:the\s+)?(?:\d|end\s+of\b|(?:first|last)\s+of\b)|today\b|tonight\b|tomorrow\b|midnight\b|noon\b|"
    r"(?:next\s+|this\s+)?(?:(?:mon|tues|wednes|thurs|fri|satur|sun)day\b|week\b|month\b|"
    r"(?:jan|febr)uary\b|march\b|april\b|may\s+\d|june\b|july\b|august\b|(?:septem|octo|novem|decem)ber\b))"
)
# The language or format of output. A place or a time is none.
_OUTPUT_FORM = (
    r"(?:in|as)\s+(?!(?:an?|advance|detail|here|it|many|mind|much|my|one|order|place|soon|that|the|there|this|time|usual|"
    r"well|you)\b)[a-z]"
)

# Objects of "take" or "use" that are no choice between options.
_NOT_A_CHOICE = (
    r"(?:an?|advantage|care|it|notes?|part|some|that|them|these|this|those|time|your|"
    r"the\s+(?:chance|extra|opportunity|plunge|rest|time))\b"
)

_OPEN_DECISIONS = _english(
    "open_decision",
    "agreed choice chosen decide decided decision decisions open pending question questions settled tbd undecided "
    "unresolved",
    opening=(
        r"(?:open|unresolved|pending|outstanding)\s+(?:question|decision|choice)s?(?:\s+#?\d+)?\s*[:–—-](?!\s*no)",
        r"decisions?\s+(?:needed|required|pending|open|outstanding|to\s+(?:make|take))\s*(?:[:–—-]|on\b|about\b)",
        r"(?:to\s+be\s+decided|to\s+decide|undecided|tbd)\s*[:–—-]",
    ),
    inside=(
        r"(?:(?:i|we)\s+still\s+(?:have|need)\s+to|we\s+(?:have|need)\s+to(?:\s+still)?|(?:i|we)(?:['’]ve|\s+have)\s+yet\s+to)"
        r"\s+(?:choose|decide|settle)\b(?!\s+(?:it|that|this)\b)",
        r"(?:i|we)\s+(?:have|had)(?:n['’]?t|\s+not)\s+(?:yet\s+|really\s+)?(?:agreed|chosen|decided|settled)\b",
        r"(?:is|are|remains?|stays?)\s+(?:still\s+|yet\s+)?(?:undecided|to\s+be\s+decided|an\s+open\s+(?:question|decision))\b",
        r"(?:decision|choice)\s[^.!?]{0,60}\b(?:is|remains|stays)\s+(?:still\s+)?(?:open|pending)\b",
        r"(?:let['’]?s|we(?:['’]ll|\s+(?:can|should|will)))\s+decide\s+[^.!?]{0,80}\b(?:later|tomorrow|next\s+\w+)\b",
    ),
)
_DECISIONS = _english(
    "decision",
    "abandon agreed approach chose chosen decided decision ditch forget go going i'll instead let's lets mind minds "
    "number option opted plan postpone scrap settled shelve staying stick sticking switching take variant version "
    "we'll will",
    opening=(
        r"(?:use|take|choose|pick|try)\s+[^.!?]{1,80}\binstead\b",
        r"(?:go|stick)\s+with\b",
        rf"(?:(?:then|so)\W+)?(?:i|we)\s+take\s+(?!{_NOT_A_CHOICE})(?:the\s+)?\S+(?:\s+(?:one|then))?\W*$",
        r"(?:decision|decided)\s*:|agreed\s*[,:;–—-]\s*\w",
        r"(?:scrap|ditch|shelve|abandon|postpone|forget\s+about)\s+(?:the|our|my|all)\b",
        r"(?:(?:alright|fine|right|good|great|perfect)\b[\W_]*)?(?:the\s+)?"
        r"(?:option|plan|variant|version|approach|number)\s+#?\w{1,3}"
        r"(?:,?\s+(?:then|please|it\s+is|is\s+(?:fine|good|better)|sounds\s+good))?\W*$",
    ),
    inside=(
        r"let['’]?s\s+(?:just\s+)?(?:go\s+(?:with|for)|use|stick\s+(?:with|to)|stay\s+with|switch\s+to|settle\s+on|choose|"
        r"pick|adopt|drop|make\s+it|postpone|scrap|skip|keep\s+[^.!?,]{1,40}\b(?:as[\s-]is|as\s+it\s+is|at|simple|unchanged))\b",
        r"(?<!that )(?:i|we)(?:['’]ve|\s+have)?\s+(?:(?:now|finally|already|just|all|both)\s+)*"
        r"(?:(?:decided|agreed|settled|opted)\s+(?:\w+\s+)?(?:to|on|that|for|against|not|we)|"
        r"decided\s*[:–—-]\s*\w+|chosen|chose)\b",
        r"let['’]?s\s+decide\s+(?:for\s|on\s+(?!(?:an?|how|it|our|that|the|this|what|when|where|which|who)\b))"
        r"(?![^.!?]*\b(?:or|together)\b)",
        r"(?:i|we)(?:['’](?:ll|re|m)|\s+(?:will|am|are))\s+(?:(?:just|probably|definitely)\s+)?(?:go(?:ing)?\s+with|go\s+for|"
        r"stick(?:ing)?\s+(?:with|to)|stay(?:ing)?\s+with|switch(?:ing)?\s+to)\b",
        rf"(?:i|we)(?:['’]ll|\s+will)\s+(?:just\s+)?(?:take|use)\s+(?!{_NOT_A_CHOICE})[\w*]",
        r"(?:i|we)(?:['’](?:ll|re)|\s+(?:will|are))\s+(?!consider|have\b|looking|need\b|not\b|think|trying)"
        r"[^.!?,]{1,60}\binstead\b",
        r"(?:i|we)(?:\s+want|['’]d\s+like|\s+would\s+like)\s+to\s+go\s+with\b",
        r"made\s+up\s+(?:my|our)\s+minds?\b",
        r"(?<=,\s)(?:as\s+(?:we\s+)?(?:agreed|decided|settled)|(?:(?:it|that)(?:['’]s|\s+(?:is|was))\s+|already\s+|just\s+)+"
        r"(?:agreed|decided|settled)|(?:agreed|decided|settled)(?=\s))"
        r"(?:\s+(?:already|earlier|today|yesterday|(?:at|in|last|on|this|with)\s+[^.!?,]{2,40}))?\W*$",
        r"(?:my|our|the)\s+(?:final\s+)?decision\s+is\b",
    ),
)
_ORDERS = _english(
    "rule",
    "abort all always answer any anytime avoid before brief can't cannot cant case certain circumstances communicate "
    "concise constraint constraints conventions direct don't dont each ensure every everything everywhere formal "
    "future guideline guidelines halt if keep leave max maximum mind minimise minimize most never no "
    "nobody not "  # a word of users
    "nothing only pause prefer preferences quit refrain remember reply respond rule rules speak stick stop sure talk "
    "terse throughout unless when whenever",
    opening=(
        rf"{_CASE}(?:(?:always|never)\s+(?!{_NOT_A_VERB})\w|{_NOT}(?:\s+ever)?\b{_NOT_AN_ORDER}|"
        rf"(?:(?:make|be)\s+(?:sure|certain)|ensure|avoid)\b(?!{_ONE_STEP})|"
        rf"try\s+(?:to\s+(?:always|avoid|minimi[sz]e|never|only)|not\s+to)\b(?!{_ONE_STEP})|prefer\s+(?!not\b)\w|"
        r"refrain\s+from\b|under\s+no\s+circumstances\b|stick\s+to\b|(?:stop|quit)\s+\w+ing\b|"
        rf"only\s+(?:ever\s+)?{_VERB}\b|{_VERB}\s+only\b|{_VERB}\b[^.!?]*\bonly\W*$|"
        r"be\s+(?:brief|concise|direct|formal|terse)\b)",
        r"remember\s*(?:\s(?:to|that)\b|:)|(?:keep|bear)\s+in\s+mind\b|in\s+(?:the\s+)?future,",
        r"no\s+(?:more|longer|less|later|earlier)\s+than\b|no\s+more\s+\w+s\b|(?:max|maximum|at\s+most)\s+\d",
        rf"no\s+(?!{_NOT_A_BAN})\w+(?:\s+\w+)?\s+(?:on|in|after|before|without|during|unless)\b",
        rf"no\s+(?!{_NOT_A_BAN})(?:[\w-]+\s+){{0,2}}\w+s(?:,?\s+please)?\W*$",
        r"nothing\s+(?:that\s+(?!i\b|we\b|you\b)|(?:after|above|before|below|earlier|later|longer|over|under|with)\b)",
        r"keep\s+(?:it|them|all|every|your|the|answers|replies|responses)\b[^.!?]*"
        r"\b(?:under|below|within|short|brief|concise)\b",
        r"leave\s+(?!me\b)[^.!?,]{1,60}\b(?:alone|as[\s-]is|unchanged|untouched)\b",
        rf"(?:{_RECURRING_CASE}|for\s+(?:all|any|each|every)\s[^.!?,]{{2,60}}?\s){_VERB}\b",
        rf"(?:if|in\s+case|whenever)\s+(?!you(?:{_ONCE}))(?!{_NOT_A_CASE})[^.!?]{{2,160}}?,\s*(?:then\s+)?(?:please\s+)?{_CONTACT_USER}",
        r"(?:stop|pause|abort|halt)(?:\s+and\s+[^.!?,]{2,40}?|\s+(?:at\s+once|immediately|work\w*))?"
        r"\s+(?:as\s+soon\s+as|if|in\s+case|whenever)\s",
        rf"everything\s+{_OUTPUT_FORM}[\w-]*(?:,?\s+please)?\W*$",
        r"(?:ask|tell|warn|consult|notify|(?:check|confirm)\s+with)\s+(?:me|us)\b[^.!?]*\bbefore\b",
        rf"(?:{_VERB}|come|let)\b[^.!?]*\bbefore\s+(?:\w+ing|you\s+\w+)\s+(?:all|any\w*|changes|charges|every\w*)\b",
        r"(?:answer|communicate|reply|respond|speak|talk)\s+(?:to\s+me\s+)?(?:only\s+)?in\s+\w",
        r"(?:cite|format|quote|write)\s+(?:all|any|each|every)\b",
        r"use\s+[^.!?,]{1,60}(?:,\s+not\s+\w|\s(?:throughout|everywhere)\b|\sfor\s+(?:all|any|each|every)\b)",
        r"you\s+(?:can['’]?t|can\s?not)\s+(?!be\b|believe|find|get|help|imagine|know|see|tell|understand)\w",
        r"(?:nothing|nobody|no\s+(?:one|\w+))\s[^.!?]*\bwithout\s+(?:my|our)\b",  # a word of users
        rf"{_VERB}\b[^.!?]*\b(?:when(?:ever)?|every time|each time)\s+(?:i|you)\b(?!\s+(?:can|get|have|are)\b)",
        rf"{_VERB}\b[^.!?]*\b(?:only\s+(?:if|when|with)|unless)\b",
        rf"{_VERB}\b[^.!?]*(?:\band|\bbut|,)\s+(?:always|never|{_NOT})\b",
    ),
    inside=(
        rf"(?:and|but)\s+(?:please\s+)?only\s+{_VERB}\b(?!\s+up\b)",
        rf"(?:(?<=[,:;]\s)|(?:so|that\s+you)\s+)(?:please\s+)?(?:always|never|{_NOT})\s+(?:ever\s+)?{_VERB}\b(?!\s+up\b)",
    ),
)
_OBLIGATIONS = _english(
    "rule",
    "allowed banned cannot forbidden has limits must mustn't mustnt never negotiable not limits only permitted "
    "prohibited shall should shouldn't shouldnt",
    opening=(
        rf"{_CASE}(?:(?:no|our|these|those|your)\s+(?:{_NOUN}){{1,4}}(?:must|should|has\s+to)|"
        rf"the\s+(?:{_NOUN}){{1,4}}(?:must|has\s+to)|(?!{_NOT_A_PLURAL})(?:{_NOUN})?\w+s\s+(?:must|should))\s+"
        rf"(?!{_ASSUMPTION}|(?:always|never|not){_BLAME})",
    ),
    inside=(
        rf"(?<!how )(?<!what )(?:all|any|each|every)\s+(?:{_NOUN}){{1,4}}(?:must|should|has\s+to)\s+(?!{_ASSUMPTION})",
        rf"you(?:\s+(?:(?:must|should|shall)\s+(?:not|never|always|only)\b(?!{_BLAME})|(?:may|can)\s+(?:not|never|only)\b|"
        rf"(?:mustn|shouldn)['’]?t\b(?!{_BLAME})|can\s?not\s+(?:do|run|use)\s+any\b|"
        r"(?:must|shall)\s+(?!be\b|have\b|know|feel|miss|love|think|see|admit|understand)\w)|"
        r"(?:['’]re| are)\s+(?:not allowed|never (?:allowed )?to|only (?:allowed )?to|not to|forbidden)\b)",
        r"(?<!\bi )(?<!\bhe )(?<!\bshe )(?:(?<!\bit )(?<!\bthat )should\s+(?:always|never|only)|"
        rf"must\s+(?:not|never|always|only))\b(?!{_BLAME})",
        r"(?:is|are)\s+(?:strictly\s+|absolutely\s+)?"
        r"(?:forbidden|prohibited|not allowed|not permitted|off[- ]limits|banned|non-negotiable)\b",
    ),
)
_WISHES = _english(
    "rule",
    "all always answers avoid before can't cannot cant don't dont every everything never not only output prefer "
    "preference rather replies responses stop won't",
    inside=(
        r"i(?:['’]d|\s+would|\s+do)?\s+(?:(?:really|strongly|always|usually|generally|much|definitely|still|also)\s+)*"
        rf"prefer\b(?!{_ONE_OPTION})",
        r"my\s+(?:\w+\s+)?preference\s*(?::|(?:for|is|to|would)\b)",
        r"i(?:['’]d|\s+would)\s+(?:much\s+)?rather\s+(?!not\s+(?:read|repeat|retype|say|type)\b)",
        r"i\s+only\s+(?:accept|drink|eat|fly|travel|want)\b",
        r"i\s+(?:want|need|expect)\s+(?:all|every)\b",
        r"i(?:['’]d|\s+would)?\s+(?:like|want|need|expect)\s+(?:(?:everything|(?:(?:all|the|your)\s+)?"
        rf"(?:answers|output|replies|responses))\s+{_OUTPUT_FORM}|everything\s+(?:to\s+be|written|without)\b)",
        r"i(?:['’]d|\s+would)?\s+(?:want|need|expect|like|ask)\s+you\s+to\s+"
        r"(?:always|never|only|avoid|stop|not|(?:ask|tell|warn)\b[^.!?]*\bbefore)\b",
        rf"i\s+(?:{_NOT}|never)\s+want\s+(?:you\b|any\s+(?!of\b)|to\s+(?:see|get|receive|\w+\s+(?:\w+\s+)?(?:if|unless))\b)",
        rf"i\s+(?:{_NOT}|can['’]?t|cannot|won['’]?t|will\s+not)\s+(?:accept|drink|eat|tolerate)\b",
    ),
)
# Rules of another kind, such as firewall rules, are excluded by the words that name them.
_REVOCATIONS = _english(
    "rule",
    "disregard drop forget ignore lift mind revoke withdraw",
    opening=(
        r"(?:ignore|disregard|forget(?:\s+about)?|never\s+mind)\s+"
        r"(?:what\s+(?:i|we)\s+(?:said|told\s+you|asked|wrote)\b|"
        r"(?:(?:all|any|my|our|that|the|these|this|those)\s+)+(?:(?:earlier|first|last|old|other|previous|prior)\s+)?"
        r"(?:constraints?|guidelines?|instructions?|preferences?|restrictions?|rules?)\b)",
        r"(?:drop|lift|revoke|withdraw)\s+(?:my|our|that|the)\s+(?:(?:earlier|old|previous)\s+)?"
        r"(?:ban|limit|restriction|rule)\s+(?:about|against|on|that)\b",
    ),
)
_LASTING_RULES = _english(
    "rule",
    "always convention exceptions henceforth let's lets never now policy sure stop times today tomorrow when",
    inside=(
        r"from (?:now|today|tomorrow) (?:on|onwards?|forward)\b(?!,?\s+i(?:['’]|\s+(?:will|am|have|plan)\b))",
        r"(?:henceforth|at all times|no exceptions)\b|,\s+always\W*$",
        r"let['’]?s\s+(?:not|never|always)\b",
        rf"we\s+(?:always|never)\s+{_VERB}\b",
        r"(?:our|the)\s+(?:\w+\s+)?(?:convention|policy)\s+(?:here\s+)?is\b",
        rf"i\s+(?:hate|dislike|{_NOT}\s+like|like)\s+it\s+when\s+you\b",
        POLITE_QUESTION,
    ),
)
# Facts that bind like rules: a diet, an allergy, a budget, a deadline.
_BINDING_FACTS = _english(
    "rule",
    "allergic allergies allergy budget celiac coeliac deadline diabetic due intolerant keep pay pescatarian spend stay "
    "vegan vegetarian",
    inside=(
        r"i(?:['’]m|\s+am)\s+(?:an?\s+)?(?:strict(?:ly)?\s+)?(?:vegetarian|vegan|pescatarian|diabetic|celiac|coeliac)\b",
        r"(?:am|['’]m|is|are)\s+(?:(?:severely|very|highly|also)\s+)?(?:allergic\s+to|(?:lactose|gluten)[\s-]intolerant)\b",
        r"(?<!n['’]t )(?<!not )(?:have|has)\s+(?!no\b)(?:an?\s+)?(?:\w+\s+){0,2}allerg(?:y|ies)\b",
        rf"(?<!['’]s )budget(?:\s+for\s[^.!?,:]{{2,40}}?)?(?:\s+is|\s*:)\s+{_BOUND}{_MONEY}",
        r"deadline(?:\s+for\s[^.!?,:]{2,40}?)?(?:\s+(?:is|stays|remains)|\s*:)\s+"
        rf"(?:(?:on|by)\s+)?{_DATE}",
        rf"(?:['’]s|is)\s+due\s+(?:(?:on|by|at)\s+)?{_DATE}",
        rf"(?:keep|stay|spend|pay)\b[^.!?]{{0,60}}?\b(?:more\s+than|at\s+most|below|under|up\s+to|within)\s+{_MONEY}",
    ),
)

_COMFORTING_WORDS = "担心|着急|急|客气|怕|误会|介意|在意|生气|难过"
_CHINESE_OPEN_DECISIONS = _chinese(
    "open_decision",
    "决定 待定 待决 未决 未定 没定 没想好 没选 没确定 开放问题 悬而",
    inside=(
        r"(?:还|仍|尚)(?:没有?|未|得|要|需要?|须)[^，。！？]{0,6}(?:决定|定下来|想好|选好|确定)|还没定(?!时)",
        r"(?:需要|有待|等待|待)(?:大家|我们|你|您)?(?:做)?决定|(?:开放|未决)(?:的)?(?:问题|事项)\s*[:：]|悬而未决",
        r"(?:待定|待决|未决|未定)(?:事项|问题)?\s*(?:[:：]|[。！]?$)",
    ),
)
_CHINESE_DECISIONS = _chinese(
    "decision",
    "决定 就 定了 敲定 选 改用 拍板 先用 先采用 还是",
    inside=(
        r"决定(?:用|采用|选|使用|改|不|了|就|先|把|按|由|将|\s*[:：])",
        r"就(?:用|选|按|定)[^，。！？]{1,40}(?:吧|了|来)|(?:就这么|已经|都)定了|敲定|选定|改用|拍板",
        r"(?:^|[，,；;\s])(?:那|我们?|咱们)*(?:就|先|还是)(?:用|采用|选(?![择举]))(?!的|过|户)",
        r"(?:^|[，,；;\s])我要?选(?![修举拔择手了的])",
        r"^(?:好的?|行|可以|嗯)?[，,]?那就(?![是会好行这算不请麻谢更太没])\s*\S",
    ),
)
_CHINESE_RULES = _chinese(
    "rule",
    "从现在 从今 从此 今后 以后 接下来 不要 别 不能 不可 勿 禁 不得 不准 不许 除非 必须 务必 一定 一律 始终 总是 永远 "
    "尽量 避免 记 每 凡是 只 仅 最多 超过 更喜欢 偏好 倾向 宁 希望 要求 规则 约 规范 注意 原则 回答 回复 作答 输出 "
    "交流 所有 全部 统一 任何 注释 文档 代码 变量 日志 标题 邮件 报告 前 如果 要是 一旦 万一 说话 语气 接受 素 不吃 "
    "不喝 过敏 不耐受 预算 截止",
    inside=(
        r"从(?:现在|今天|今|此)(?:起|开始|以后|往后)|今后|自此以后",
        r"以后(?:都|请|不要|别|不准|不许|要|每|一律|只|回答|你|再(?![说看议])|凡|所有)",
        r"(?:^|[，,；;：:\s])以后[^，。！？]{1,15}(?:都|不|别|要|请|只)|接下来[^，。！？]{0,15}(?:都|一律|只)",
        r"(?:^|[，,；;：:\s请])(?:用|使用|以)[^，。！？]{1,8}(?:回答|回复|作答|输出|交流)",
        rf"(?<![我要])(?:不要|别再)(?!紧|了|钱|{_COMFORTING_WORDS})",
        r"(?:^|[，,；;：:、\s请但你])(?:千万|绝对|都|也|就|尽量|最好|决)*"
        rf"(?:别(?![人的墅处名扭致样]|{_COMFORTING_WORDS})|不能|不可)",
        r"切勿|请勿|禁止|严禁|不得(?![不了已])|不准|不许|除非",
        r"(?<![我他她])必须(?!承认)|务必|一定要|一律",
        r"(?:^|[，,；;：:、\s请但你要应该须])(?:始终|总是|永远|尽量|避免)",
        r"(?:^|[，,；;：:、\s请但你])(?:要|一定|也|都)*(?:记住|记得|牢记|谨记)(?![了吗])",
        r"每次[^，。！？]{0,30}[，,]?(?:都|要|先|必|请)|每当|凡是|每[^，。！？次当]{1,12}都(?:要|得|应|须)",
        r"(?<![我他她])只(?:能(?!说)|准|许|允许)|(?:^|[，,；;：:、\s请你都])(?:只用|只使用|仅用|仅使用|仅限)",
        r"(?:^|[，,；;：:、\s请])(?:最多|不(?:得|要|能)?超过)|不(?:能|可以?|得|要|应)超过",
        r"(?:所有|全部|任何)[^，。！？]{1,20}(?:要|得|须|应)|"
        r"(?<!把)(?:所有|全部|统一)[^，。！？把]{0,12}(?:用|采用|写成)(?!户)",
        r"之?前[^，。！？]{0,2}[，,]?(?:先|要|请|得)+[^，。！？]{0,3}(?:问|告诉|通知|征求|[跟和与找向]我)",
        r"(?:如果|要是|一旦|万一|超过)[^。！？]{1,30}(?:就|请|要)(?:立刻|马上|先)?(?:停|告诉我|通知我|问我|提醒我)",
        r"(?:说话|回答|回复|语气)[^，。！？]{0,6}(?:简洁|简短|简单|正式|客观|礼貌)",
        r"(?:注释|文档|代码|回复|回答|变量名?|日志|标题|邮件|报告)[^，。！？]{0,6}(?:写|用)(?:成|的是)?"
        r"(?:[英中法德日韩俄]文|[英汉法德日韩俄]语|[a-z])",
        r"我(?:更喜欢|(?:更|比较|一向)?(?:偏好|倾向于?)|宁愿|宁可|不希望|希望你|要求你)",
        r"(?:^|[，,；;：:、\s])我?不接受|我们?(?:是?素食|是?吃素|不吃|不喝)|我[^，。！？]{0,8}(?:过敏|不耐受)",
        r"预算(?:是|为|在|只有|最多|不超过|大概|大约)*\s*[\d一二两三四五六七八九十百千万]|最多(?:只能)?(?:花|付|出)",
        r"截止(?:日期|时间|日)?(?:是|为|在|到)*\s*[\d一二三四五六七八九十今明后本下周月]",
    ),
)

_ENGLISH = (_OPEN_DECISIONS, _DECISIONS, _ORDERS, _OBLIGATIONS, _WISHES, _REVOCATIONS, _LASTING_RULES, _BINDING_FACTS)
_CHINESE = (_CHINESE_OPEN_DECISIONS, _CHINESE_DECISIONS, _CHINESE_RULES)
_CUES = frozenset[str]().union(*(cues for cues, _ in _ENGLISH))

ALL_PATTERNS = tuple(forms for _, forms in (*_ENGLISH, *_CHINESE))

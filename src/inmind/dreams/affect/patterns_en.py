"""English patterns for thanks, praise, anger and urgency; see matcher.py."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from inmind.dreams.affect.matcher import LanguagePatterns, Saying, one_of

# Words that may precede a saying.
_LEAD_IN = (
    r"(?:(?:actually|again|ah+|aha|all right|alright|and|awesome|bro|but|cool|damn|dude|excellent|fantastic|fine|"
    r"god|good|"
    r"got it|great|guys|hah|haha|hello|hey|hi|hm+|honestly|just|lol|lovely|man|my god|nice|now|o+h|oh my god|ok|"
    r"okay|omg|"
    r"once again|perfect|please|right|seriously|so|sorry|super|sure|sweet|then|ugh|um|well|whoa|wonderful|wow|yay|"
    r"yeah|"
    r"yep|yes|yup) )*"
)
# No further word: a "great job offer" is not a "great job".
_END = r"(?! ?[\w'&/-])"
_VERY = r"(?:(?:so|very|really|truly|quite|extremely|super|absolutely|incredibly|totally|completely|just|such) )*"
_I_AM = r"(?:i'm|i am|we're|we are)"
_IT_IS = r"(?:this|that|it)(?:'s| is)"

# -- thanks ------------------------------------------------------------------------------------------------

_THANK = r"(?:thanks|thank (?:you|u|ya)|thankyou|thx|thnx|tysm|ty|tks|cheers)"
_DEGREE = r"(?:(?:so|very) much|a (?:lot|ton|bunch|million)|loads|heaps|tons|again)"
_HELP = r"for (?:all )?(?:of )?(?:your|the) (?:\w+ )?(?:help|time|assistance|support|patience)"
_FRIEND = r"(?:man|mate|dude|buddy|bro|(?:my )?friend|assistant|bot)"
# Objects of thanks in shops and newsletters.
_BUSINESS = (
    r"(?:nothing|(?:your|the) (?:order|purchase|payment|interest|subscription|attention|business)|choosing|contacting|"
    r"shopping|subscribing|joining|visiting|registering|signing|riding|flying|watching)\b"
)
_HARM = r"(?:breaking (?!\w+ down)|ruining|deleting|wasting|ignoring|messing|screwing)"
_THANKS = one_of(
    rf"(?:(?:so |very )?many |big |huge |much |heartfelt |a (?:million|thousand|big|huge) )?{_THANK}(?:{_END}|"
    rf" (?:{_DEGREE}|{_FRIEND}){_END}| (?:{_DEGREE} )?for (?!{_BUSINESS}|{_HARM})| to you\b|"
    r" (?:i|i'll|i'm|you|you're|you've|that|that's|this|it|it's)\b)",
    rf"i (?:do )?{_VERY}appreciate (?:(?:it|this|that){_END}|you\b|your\b|all\b|how\b|what you\b|"
    r"the (?:\w+ )?(?:help|effort|time|work|patience|explanation|support)\b)",
    rf"(?:(?:really|much|greatly|deeply|so|very much) appreciated?|appreciate (?:it|that|you|the help|your \w+)){_END}",
    r"(?:i )?(?:can't|cannot|can not|couldn't) thank you enough",
    rf"(?:i |i'd )?(?:just )?(?:want(?:ed)? to|have to|must|(?:would )?like to) (?:say )?{_THANK}(?:{_END}| (?:for|"
    r"so)\b)",
    rf"{_I_AM} {_VERY}(?:forever |deeply )?(?:grateful|thankful) (?:for (?:your|all|the help|this)|to you|that you)\b",
    rf"i owe you (?:one|big(?: time)?|a (?:beer|coffee|drink)){_END}",
    rf"{_I_AM} much obliged",
)
_FORMULA = rf"(?:many |big |much )?{_THANK}(?: {_DEGREE})?(?: {_HELP})?(?: in advance)?"
# Beginnings of statements. A sentence with another beginning, or a polite one, is a request.
_STATEMENT_START = (
    r"(?:a+h|aha|all|amazing|and|awesome|beautiful|brilliant|but|cool|correct|done|everything|exactly|excellent|"
    r"fantastic|"
    r"fine|fixed|for|found|glad|good|got|great|haha|hello|hey|hi|i|i'd|i'll|i'm|i've|impressive|indeed|it|it's|just|"
    r"looks|"
    r"lovely|makes|much|my|never ?mind|nice|no|nope|now|o+h|ok|okay|our|perfect|problem|really|right|so|solved|sounds|"
    r"splendid|super|sure|sweet|terrific|tests|that|that's|the|there|these|they|this|those|true|understood|very|we|"
    r"we're|"
    r"we've|well|what a|whoa|will do|with|wonderful|works|worked|wow|yay|yeah|yep|yes|yup|you|you're|you've|your)\b"
)
_POLITE = r"\b(?:please|pls|plz|can you|could you|would you|will you|i need|i want|i'd like|let me know|help me)\b"

# -- praise ------------------------------------------------------------------------------------------------

_GOOD = (
    r"(?:great|good|nice|excellent|amazing|awesome|fantastic|wonderful|brilliant|superb|outstanding|incredible|stellar|"
    r"terrific|impressive|lovely|splendid|beautiful|perfect|solid|top[- ]notch)"
)
_MANNER = r"(?:perfectly|great|beautifully|like a charm|wonders|well|flawlessly|fine|nicely|now|again)"
_ADVERBS = r"(?:(?:finally|actually|now|indeed|totally|really) )*"
_PRAISE = one_of(
    rf"(?:what (?:an? )?)?{_VERY}{_GOOD} (?:job|work|catch|stuff|thinking|find|fix|answer|explanation|"
    rf"debugging)(?:{_END}|"
    r" (?:on|with|as always|as usual|again|here|there|so far|today|everyone|\w+ing (?:that|this|it|the)|my friend|"
    r"buddy|"
    r"mate|man)\b)",
    rf"well done(?:{_END}| (?:on|with|for|my|mate|again)\b)",
    rf"(?:bravo|kudos|hats off|chapeau)(?:{_END}| (?:to you|for|on)\b)",
    rf"good (?:bot|boy|girl|robot){_END}",
    rf"you {_VERY}(?:rock|rule|nailed (?:it|this|that)|crushed it|killed it|did (?:it|great|well|amazing)){_END}",
    rf"you {_VERY}(?:made my (?:day|week)|did (?:an? )?(?:\w+ )?{_GOOD} (?:job|work))\b",
    rf"you(?:'re| are| really are| truly are| were) {_VERY}(?:the best|{_GOOD}|good at this|"
    r"an? (?:(?:absolute|real|true|total) )?(?:life ?-?saver|genius|star|legend|hero|gem|wizard|magician|rock ?star|"
    r"champ|"
    rf"treasure|god ?send)){_END}",
    rf"you(?:'re| are| were|'ve been| have been) {_VERY}(?:of )?(?:(?:great|huge|big|a great|a huge|a big) help|"
    r"helpful)\b",
    rf"you(?:'ve| have) (?:been|done) {_VERY}(?:{_GOOD}{_END}|(?:an? )?{_GOOD} (?:job|work))",
    r"you(?:'ve)? (?:just |really )?(?:saved|rescued) (?:me|us|my|our|the day)\b",
    rf"(?:{_IT_IS} )?{_VERY}exactly what (?:i|we) (?:needed|wanted|asked for|meant|had in mind|(?:was|"
    r"were) looking for)",
    rf"(?:that|this|it|which) {_ADVERBS}(?:worked|did the trick|does the trick|(?:fixed|solved|sorted|nailed|cracked) "
    rf"(?:it|everything|the \w+))(?: {_MANNER})?{_END}",
    rf"(?:it|everything|all) {_ADVERBS}works(?: {_MANNER})*{_END}",
    rf"(?:works|worked) {_MANNER}{_END}",
    rf"(?:that|this)(?:'s| is) {_VERY}(?:{_GOOD}|genius|helpful|"
    rf"much better){_END}(?<!good)(?<!nice)(?<!great)(?<!solid)",
    rf"{_I_AM} {_VERY}(?:impressed|blown away|happy)(?: (?:with|by) (?:you\b|your\b|this\b|that\b|how you\b)|"
    rf"{_END}(?<!happy))",
    rf"i {_VERY}love (?:it|this|that|what you\S*(?: \w+)?|your (?:work|answer|fix|solution|design|idea)s?){_END}",
    r"(?:i )?couldn't have (?:done|said) (?:it|this|that) (?:better|without you)",
)

# -- anger -------------------------------------------------------------------------------------------------

_SWEARING = r"the (?:hell|fuck|heck|f\*+k?|actual fuck)"
_BAD = (
    r"(?:useless|worthless|stupid|incompetent|terrible|hopeless|pathetic|garbage|trash|dumb|ridiculous|awful|horrible|"
    r"infuriating|the worst|an? (?:\w+ )?(?:idiot|moron|joke|disgrace|disaster|waste of (?:time|money)))"
)
_MISTAKES = one_of(
    r"ignor(?:e|ed|ing)\b",
    r"break(?:ing)? (?:it|my|the|things|everything|stuff)\b",
    r"mess(?:ing|ed)? (?:(?:it|this|that|things|everything|my \w+|the \w+) )?up\b",
    r"g[eo]t(?:ting)? (?:it|this|that|everything) wrong",
    r"mak(?:e|ing) (?:(?:the same|this|these|that) (?:\w+ )?mistakes?|(?:things|stuff) up|(?:it|things) worse)",
    r"do(?:ing)? (?:(?:this|that|it) wrong|the (?:wrong|opposite|exact opposite))",
    r"giv(?:e|ing) me (?:the )?(?:same )?(?:wrong|garbage|nonsense|crap)",
    r"chang(?:e|ing) things i\b|forget(?:ting)?\b|listen\b|lying\b|lie to\b|don't (?:get|understand|listen)\b|"
    r"wasted my\b",
)
_ANGER = one_of(
    rf"(?:why )?(?:you're|you are|are you) {_VERY}(?:(?:fucking|bloody|being|so) )*(?:{_BAD}|"
    r"not (?:even )?(?:listening|helping|reading|paying attention)|wasting my (?:\w+ )?time|ignoring (?:me|what|my)|"
    r"driving me (?:crazy|mad|insane|nuts))\b",
    r"(?:are|r) you (?:even|actually|really|fucking) (?:reading|listening|paying|trying|looking|kidding|serious)\b",
    rf"(?:are you|you've got to be|you're) kidding me{_END}",
    r"(?:did|do|can|have) you even (?:read|look|test|run|try|tried|bother|check|listen|know|understand|think)",
    rf"(?:why (?:do|did|are|would|must|{_SWEARING} (?:do|did|would)) )?you (?:(?:always|keep|kept|constantly|still|"
    r"never|just|"
    rf"again|once again|only) )+{_MISTAKES}",
    r"you (?:don't|won't|didn't) (?:ever |even )?listen",
    r"you(?:'ve)? (?:(?:just|completely|totally|have|again|fucking|really) )*(?:broken?|ruined|wrecked|botched|trashed|"
    r"butchered|(?:messed|screwed|fucked) up) (?:it|everything|my|our|this|all|production|prod|the (?:build|tests?|"
    r"app|site|"
    r"website|page|code|login|whole|entire|database|layout|deploy\w*|file|project|repo))\b(?! down| into)",
    r"you (?:(?:just|have|fucking) )*(?:deleted|lost|wiped|erased|overwrote) (?:the wrong|everything|"
    r"all (?:of )?(?:my|our)|"
    r"my (?:work|files?|code|changes|data))\b(?! as\b)",
    r"you(?:'ve)? (?:(?:just|have) )*(?:got|did|done|made|gotten) (?:it|that|this|everything) (?:all |completely |"
    r"totally )?"
    r"wrong",
    r"(?:(?:that's|that is|you're|it's|still) )?wrong (?:again|once more|as always)",
    rf"{_IT_IS} (?:(?:already|now|like|the) )*(?:second|third|fourth|fifth|sixth|tenth|hundredth|umpteenth|\d+(?:th|"
    r"rd|nd)) "
    r"(?:\w+ )?time (?:now )?(?:that )?(?:you|i(?:'ve| have|'m)? (?:told|asked|said|had|explain\w*|tell\w*|ask\w*))\b",
    r"how many (?:more )?times (?:do|must|have|did|will|should) i\b",
    r"(?:like )?i(?:'ve| have)? (?:(?:already|just|specifically|explicitly|clearly|literally) )*(?:told|asked) you "
    r"(?:already|(?:not|never) to|(?:a |like )?(?:\w+ )?(?:times|hundred|thousand|million)|twice|(?:over|again) and)\b",
    rf"what {_SWEARING} (?:are|were|did|have|is) (?:you|this|wrong|that)\b",
    r"(?:what is|what's) (?:fucking )?wrong with you\b",
    rf"wtf(?:{_END}| (?:are|were|did|have) you\b| is (?:this|wrong with you)\b)",
    r"stop (?:ignoring (?:me|what i|my)|wasting my|lying|making (?:things|stuff|shit|excuses)|hallucinating|"
    r"apologi[sz]ing|"
    r"inventing (?:things|stuff)|breaking (?:my|everything|things|stuff)|messing (?:with my|up|things)|being so \w+|"
    r"screwing|arguing|doing (?:that|this|things i))\b",
    rf"{_IT_IS} {_VERY}(?:(?:utterly|fucking|bloody|beyond) )*(?:unacceptable|ridiculous|garbage|bullshit|useless|"
    r"trash|crap|"
    rf"outrageous|infuriating|pathetic|absurd|a (?:joke|disgrace)){_END}",
    rf"{_I_AM} {_VERY}(?:angry|mad|furious|annoyed|fed up|disappointed|frustrated|pissed(?: off)?|sick(?: and tired)?|"
    r"tired|"
    r"disgusted) (?:at|with|of|by|in) (?:you\b|your\b|this (?:bot|assistant|nonsense|garbage))",
    rf"(?:fuck|screw|damn|f\*+) you\b|(?:just )?shut up{_END}|you (?:\w+ )?(?:suck\b|idiot|moron|piece of)|go to hell",
    rf"{_THANK} (?:a lot )?for (?:nothing\b|{_HARM})",
    r"worst (?:\w+ )?(?:answer|assistant|bot|ai|agent|response|advice|help|service|code)\b.*\b(?:ever|seen|had)\b",
    r"you(?:'ve| have)? (?:just )?wasted (?:my|an?|\w+) (?:\w+ )?(?:time|hours?|day|money)",
)

# -- urgency -----------------------------------------------------------------------------------------------

_SYSTEM = (
    r"(?:(?:the|our|my|whole|entire|main|live|production|prod|public|company|customer) )*(?:prod|production|web ?site|"
    r"site|"
    r"servers?|services?|api|database|db|app|systems?|checkout|cluster|store|shop|payments?|payment \w+|login|network|"
    r"platform|backend|webshop|dashboard|cdn|gateway|everything)"
)
_COUNT = r"(?:\d{1,2}|one|two|three|four|five|six|seven|eight|ten|fifteen|twenty|thirty|a few|a couple(?: of)?)"
_PERIOD = (
    r"(?:in|within) (?:(?:the next|less than|under|about|like) )*"
    rf"(?:{_COUNT}[ -]?(?:min(?:ute)?s?|sec(?:ond)?s?)|(?:half )?an hour|the hour|(?:1|one) ?h(?:our|r)?)\b"
)
_NOW = r"(?:right now|right away|immediately|asap|as soon as (?:humanly )?possible|urgently|now)"
_READY = r"(?:done|fixed|ready|working|live|back (?:up|online)|finished|solved|running|up|online|out|sorted|sent)"
_EVENT = (
    r"(?:\w+ )?(?:demo|presentation|meeting|exam|flight|interview|deadline|launch|call|talk|train|submission|pitch|"
    r"release)"
)
_URGENCY = one_of(
    rf"{_SYSTEM}(?:'s| (?:is|are|(?:just )?went|ha(?:s|ve) gone)) (?:(?:completely|totally|still|currently|all|now|"
    r"again|"
    rf"just) )*(?:down|offline|unreachable|on fire|crashing|dead|not responding)(?:{_END}| (?:and|since|right now|"
    r"again|now|"
    r"because|for (?:all|every\w*|our|half|hours|an hour|\d+)|in production|due to)\b)",
    r"(?:(?:all|our|the) )*(?:customers|users|clients|people|nobody|no one) "  # a word of users
    r"(?:can't|cannot|can not|can|are unable to) "
    r"(?:log ?in|sign in|pay|check ?out|buy|order|access|use|reach|connect|work)\b.*\b(?:right now|any ?more|at all|"
    r"since|"
    r"currently|at the moment)\b",
    r"we(?:'re| are) (?:currently |actively )?(?:losing (?:money|customers|data|orders|sales|revenue|users|\w+ of)|"
    r"under attack|being (?:hacked|attacked|ddosed)|(?:having|in the middle of) an? (?:\w+ )?(?:outage|incident))",
    r"(?:there's|there is|we have|we've got|we got) an? (?:\w+ )?(?:outage|emergency|sev ?-?[01]|p0)\b"
    r"(?! (?:plan|contact|fund|exit|room))",
    rf"{_IT_IS} {_VERY}(?:an? )?(?:urgent(?:{_END}| (?:matter|request|issue|problem|and|because|since|as)\b)|"
    rf"(?:real )?emergency{_END}|time[- ](?:critical|sensitive){_END}|(?:p0|sev ?-?[01])\b)",
    rf"(?:super |very |really |extremely )?urgent(?:{_END}| (?:help|request|issue|problem)\b)|(?:emergency|mayday|"
    rf"sos){_END}",
    r"(?:i|we) (?:(?:really|desperately|absolutely|just) )*(?:need|must have|have to have) (?:this|it|that|them|these|"
    r"those|"
    r"(?:the|an?) (?:\w+ )?(?:fix|answer|solution|report|results?|workaround|hotfix|rollback))"
    rf"(?: (?:to be )?{_READY})? (?:{_PERIOD}|{_NOW}{_END}|before (?:the|my|our) {_EVENT})",
    r"(?:i|we) urgently need\b",
    r"(?:this|it|that|the (?:fix|report|site|release)) (?:has to|needs to|must|should) (?:be|go) "
    rf"{_READY} (?:{_PERIOD}|{_NOW}{_END})",
    rf"(?:my|the|our) {_EVENT} (?:is|starts|begins|leaves|closes|ends|is due) {_PERIOD}",
    rf"(?:it|this|that|the \w+)(?:'s| is) due {_PERIOD}",
    rf"(?:we|i)(?:'re| are|'m| am)? (?:go(?:ing)? live|launch(?:ing)?|ship(?:ping)?|present(?:ing)?|demo(?:ing)?|"
    rf"releas(?:e|ing)|on stage) {_PERIOD}",
    rf"(?:i|we)(?:'ve)? (?:only )?(?:have|got) (?:(?:only|just|about|less than) )*{_COUNT} min(?:ute)?s? (?:left|until|"
    r"before|"
    r"till|to (?:fix|submit|finish))",
    rf"hurry(?: up)?(?:{_END}| (?:i|we|the)\b)|{_I_AM} (?:almost |nearly )?(?:running )?out of time{_END}|"
    r"every (?:minute|second) counts",
)

# -- cues --------------------------------------------------------------------------------------------------

_CUES: Final[Mapping[Saying, frozenset[bytes]]] = {
    "thanks": frozenset(
        b"""
        thanks thank thankyou thx thnx tysm ty tks cheers appreciate appreciated grateful thankful owe obliged
        """.split()
    ),
    "praise": frozenset(
        b"""
        great good nice excellent amazing awesome fantastic wonderful brilliant superb outstanding incredible stellar
        terrific impressive lovely splendid beautiful perfect solid notch done bravo kudos hats chapeau rock rule nailed
        crushed killed did made best lifesaver saver genius star legend hero gem wizard magician rockstar champ treasure
        godsend send help helpful saved rescued exactly worked works trick fixed solved sorted cracked better impressed
        blown happy love couldn't
        """.split()
    ),
    "anger": frozenset(
        b"""
        you you're you've your wrong time times told asked hell fuck heck wtf stop unacceptable ridiculous garbage
        bullshit useless trash crap outrageous infuriating pathetic absurd joke disgrace nonsense bot assistant shut
        nothing breaking ruining deleting wasting ignoring messing screwing worst
        """.split()
    ),
    "urgency": frozenset(
        b"""
        down offline unreachable fire crashing dead responding customers users clients people one losing attack
        hacked attacked ddosed outage incident emergency p0 sev sev0 sev1 urgent urgently critical sensitive mayday sos
        now away immediately asap possible before minute minutes min mins second seconds sec secs hour h hr hurry time
        counts
        """.split()
    )
    | {b"nobody"},  # a word of users
}
# Maps to lower case, and everything between words to a space.
_WORD_SEPARATORS = bytes(
    code if chr(code) in "abcdefghijklmnopqrstuvwxyz0123456789'" else 32 for code in bytes(range(256)).lower()
)


def _find_cues(text: str) -> Sequence[Saying]:
    words = text.replace("’", "'").encode("ascii", "replace").translate(_WORD_SEPARATORS).split()
    return [saying for saying, cues in _CUES.items() if not cues.isdisjoint(words)]


ENGLISH = LanguagePatterns(
    find_cues=_find_cues,
    sayings={
        "thanks": _LEAD_IN + _THANKS,
        "praise": _LEAD_IN + _PRAISE,
        "anger": _LEAD_IN + _ANGER,
        "urgency": _LEAD_IN + _URGENCY,
    },
    clause_end=(
        r"[,;:!?…]+(?=\s|$)|\.(?=\s|$)|\.{2,}|\s+[-–—]+\s+|—|\s+[(]|[)]\s+|\s+(?=but\b)|"
        r"\s+(?:and|so|because|cause|cuz|since|as)\s+(?=(?:you|i|it|thanks?|this|that|we|our|the|my|prod|production)\b)"
    ),
    condition=(
        r"(?:if|when(?:ever)?|unless|until|once|in case|suppose|imagine|pretend|assum(?:e|ing)|what if|what happens|"
        r"even if|"
        r"let's say|say|as soon as|after|before|while|should)\b"
    ),
    reported=(
        r"\b(?:says?|said|saying|(?<!i )(?<!i've )(?<!already )told|tells?|wrote|writes?|writing|written|shout(?:s|"
        r"ed)?|"
        r"yell(?:s|ed)?|scream(?:s|ed)?|repl(?:y|ies|ied)|respond(?:s|ed)?|answers?|answered|reads|called|titled|named|"
        r"label(?:s|ed|led)?|translates?|quotes?|quoted|phrases?|sentences?|lyrics?|subject|caption|headline|example|"
        r"e\.?g|"
        r"prints?|displays?|asks?|asked (?!you)|complain(?:s|ed)?|review(?:s|er)?|commented|tweet(?:s|ed)?|character|"
        r"line|"
        r"dialog(?:ue)?)\b"
    ),
    denial=r"\b(?:not(?! responding)|never|hardly|barely|neither|nor|nothing|(?:is|was|are|does|do|did|wo)n't)\b",
    retraction=(
        r"(?:but|however|except|although|though|unfortunately|still (?:not|no|doesn't|fail|broken|wrong)|just not)\b"
    ),
    refusal=r"(?:no|nope|nah|no no|not really|i'm (?:good|fine)|that's ok|it's fine)\Z",
    thanks_formula=_LEAD_IN + _FORMULA,
    request=rf"(?m){_POLITE}|^(?!{_STATEMENT_START})",
)

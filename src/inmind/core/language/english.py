"""English words."""

from __future__ import annotations

from inmind.core.language.english_dates import ENGLISH_DATES
from inmind.core.language.spans import any_of
from inmind.core.language.tables import (
    AffectPatterns,
    Language,
    ReferenceWords,
    ResultWords,
    numbered,
    time_picks,
    words,
)

_DEMONSTRATIVES = "this that these those"
_REFERENCES = ReferenceWords(
    generic_nouns=words("one thing item option result match choice object selection place location spot venue record"),
    number_nouns=words("number option choice no"),
    numbers=numbered("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", start=0),
    ordinals=numbered(
        "first 1st top former",
        "second 2nd",
        "third 3rd",
        "fourth 4th",
        "fifth 5th",
        "sixth 6th",
        "seventh 7th",
        "eighth 8th",
        "ninth 9th",
        "tenth 10th",
    )
    | numbered("penultimate", "last final bottom latter", start=-2),
    places=words("top bottom"),
    other=words("other others remaining"),
    picks=time_picks(previous="previous prior earlier preceding", oldest="oldest earliest", newest="newest latest"),
    deleted=words("deleted removed trashed erased"),
    restore=(
        r"(?i)\b(?:restor(?:e|ing)|undelete|recover(?:ing)?|revive|unarchive|resurrect)\b"
        r"|\bbring(?:ing)?\b[^.;!?]{0,40}?\bback\b(?! to\b)"
        r"|\b(?:get|want|have) (?:it|them|th\w+(?: \w+)?) back\b(?! to\b)"
    ),
    undo=r"(?i)\b(?:undo|undoing|revert|reverse)\b|\bput \w+(?: \w+)? back\b(?! to\b)",
    articles=words("the my your our"),
    demonstratives=words(_DEMONSTRATIVES),
    universal=words("both all each every"),
    pair=words("both"),
    possessives=words("its their his her"),
    indefinite=words("a an another some any no one new different more"),
    pronouns=words("it its itself them they their theirs themselves") | words(_DEMONSTRATIVES),
    plural_pronouns=words("them they their theirs themselves these those"),
    maybe_singular=words("they their theirs"),
    partitive=words("of"),
    skipped=words(
        "whole entire same current exact actual particular specific very new newly most recent recently just "
        "created updated old existing nice great good lovely beautiful perfect amazing own said mentioned above "
        "following original main so pretty really right"
    ),
    joining=words("and , & - or"),
    stop=words(
        "is are was were be been being am do does did done has have had having can could will would shall should may "
        "might must to of in on at by for from with without into onto over under about as than like if when while "
        "because so but then now not also too please thanks again instead here there up down out off back away i you "
        "he she we they it me us them him who which what where how why the a an this these that those my your our "
        "its before after until since once only just still already yet maybe actually and or sounds sound looks look "
        "seems seem works work fits fit feels feel goes go comes come costs cost gets get makes make needs need means "
        "mean helps happens happen matches match says say takes take includes include involves run going right "
        "correct fine great good perfect nice okay ok all enough alone yes no today tomorrow tonight later first next "
        "sometime either sure available possible really very well better best much more less"
    ),
    relative=words("that"),
    clause_subjects=words("i you he she we they it there the a an my your our his her their this these those"),
    finite_verbs=words(
        "is are was were has have had can could will would does do did fits matches contains costs includes works says "
        "looks serves starts plays offers allows comes goes accepts"
    ),
    qualifying=words("on in at with from by near behind beside under above below between next hanging"),
    speakers=words("i we you"),
    relative_words=words("that which just ever was were"),
    before=words("before"),
    mention_verbs=words("found mentioned said offered suggested showed listed recommended discussed created made"),
    use_verbs=words("opened made created added edited visited viewed uploaded wrote built started saw"),
    expletive=(
        r"(?i)(?:that|this|it)(?:['’](?:s|ll|d)| is| was| will| would)?(?: be)? "
        r"(?:all|it|everything|enough|correct|right|true|raining|time|late|possible|important|necessary)\b"
        r"|(?:that|this|it) (?:ok|okay|alright|fine)\b"
        r"|it (?:seems|looks like|turns out|appears|takes|would be (?:nice|great|good|better|helpful))\b"
        r"|(?:that|this) (?:way|time|morning|afternoon|evening|week|month|year|weekend|day|date|info|information)\b"
    ),
    expletive_after=(
        r"(?i)\b(?:do|did|doing|done) (?:it|that|this)"
        r"(?= (?:again|now|too|please|anyway|then|instead|for|with|yourself|later|once|first)\b)"
        r"|\b(?:(?:got|get|forget|appreciate|do|did|doing|time is|hear) it|"
        r"(?:do|did|doing|say|said|like|hear|such) that)"
        r"(?=\s*(?:[?.!,;]|$))"
    ),
    praise=(
        r"(?i)\W*(?:(?:ok|okay|yes|wow|oh|ah|thanks|thank you|so|well)\W+)*(?:that|this)(?:['’]?s| is| was)"
        r"(?: (?:so|really|very|just|pretty|absolutely))? (?:great|good|fine|perfect|nice|awesome|cool|wonderful|"
        r"amazing|excellent|fantastic|interesting|lovely|ok|okay|alright)"
        r"(?:\W+(?:thanks|thank you|so much|very much|a lot|then))*\W*"
    ),
)

# Remarks of users to the agent: thanks, praise, anger and urgency.

# Words that may precede a saying.
_LEAD_IN = (
    r"(?:(?:actually|again|ah+|aha|all right|alright|and|awesome|bro|but|cool|damn|dude|excellent|fantastic|fine|god|"
    r"good|got it|great|guys|hah|haha|hello|hey|hi|hm+|honestly|just|lol|lovely|man|my god|nice|now|o+h|oh my god|ok|"
    r"okay|omg|once again|perfect|please|right|seriously|so|sorry|super|sure|sweet|then|ugh|um|well|whoa|wonderful|"
    r"wow|yay|yeah|yep|yes|yup) )*"
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
_THANKS = any_of(
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
    r"fantastic|fine|fixed|for|found|glad|good|got|great|haha|hello|hey|hi|i|i'd|i'll|i'm|i've|impressive|indeed|it|"
    r"it's|just|looks|lovely|makes|much|my|never ?mind|nice|no|nope|now|o+h|ok|okay|our|perfect|problem|really|right|"
    r"so|solved|sounds|splendid|super|sure|sweet|terrific|tests|that|that's|the|there|these|they|this|those|true|"
    r"understood|very|we|we're|we've|well|what a|whoa|will do|with|wonderful|works|worked|wow|yay|yeah|yep|yes|yup|"
    r"you|you're|you've|your)\b"
)
_POLITE = r"\b(?:please|pls|plz|can you|could you|would you|will you|i need|i want|i'd like|let me know|help me)\b"

# -- praise ------------------------------------------------------------------------------------------------

_GOOD = (
    r"(?:great|good|nice|excellent|amazing|awesome|fantastic|wonderful|brilliant|superb|outstanding|incredible|stellar|"
    r"terrific|impressive|lovely|splendid|beautiful|perfect|solid|top[- ]notch)"
)
_MANNER = r"(?:perfectly|great|beautifully|like a charm|wonders|well|flawlessly|fine|nicely|now|again)"
_ADVERBS = r"(?:(?:finally|actually|now|indeed|totally|really) )*"
_PRAISE = any_of(
    rf"(?:what (?:an? )?)?{_VERY}{_GOOD} (?:job|work|catch|stuff|thinking|find|fix|answer|explanation|"
    rf"debugging)(?:{_END}|"
    r" (?:on|with|as always|as usual|again|here|there|so far|today|everyone|\w+ing (?:that|this|it|the)|my friend|"
    r"buddy|mate|man)\b)",
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
_MISTAKES = any_of(
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
_ANGER = any_of(
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
    r"all (?:of )?(?:my|our)|my (?:work|files?|code|changes|data))\b(?! as\b)",
    r"you(?:'ve)? (?:(?:just|have) )*(?:got|did|done|made|gotten) (?:it|that|this|everything) (?:all |completely |"
    r"totally )?wrong",
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
    r"apologi[sz]ing|inventing (?:things|stuff)|breaking (?:my|everything|things|stuff)|messing (?:with my|up|things)|"
    r"being so \w+|screwing|arguing|doing (?:that|this|things i))\b",
    rf"{_IT_IS} {_VERY}(?:(?:utterly|fucking|bloody|beyond) )*(?:unacceptable|ridiculous|garbage|bullshit|useless|"
    r"trash|crap|"
    rf"outrageous|infuriating|pathetic|absurd|a (?:joke|disgrace)){_END}",
    rf"{_I_AM} {_VERY}(?:angry|mad|furious|annoyed|fed up|disappointed|frustrated|pissed(?: off)?|sick(?: and tired)?|"
    r"tired|disgusted) (?:at|with|of|by|in) (?:you\b|your\b|this (?:bot|assistant|nonsense|garbage))",
    rf"(?:fuck|screw|damn|f\*+) you\b|(?:just )?shut up{_END}|you (?:\w+ )?(?:suck\b|idiot|moron|piece of)|go to hell",
    rf"{_THANK} (?:a lot )?for (?:nothing\b|{_HARM})",
    r"worst (?:\w+ )?(?:answer|assistant|bot|ai|agent|response|advice|help|service|code)\b.*\b(?:ever|seen|had)\b",
    r"you(?:'ve| have)? (?:just )?wasted (?:my|an?|\w+) (?:\w+ )?(?:time|hours?|day|money)",
)

# -- urgency -----------------------------------------------------------------------------------------------

_SYSTEM = (
    r"(?:(?:the|our|my|whole|entire|main|live|production|prod|public|company|customer) )*(?:prod|production|web ?site|"
    r"site|servers?|services?|api|database|db|app|systems?|checkout|cluster|store|shop|payments?|payment \w+|login|"
    r"network|platform|backend|webshop|dashboard|cdn|gateway|everything)"
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
_URGENCY = any_of(
    rf"{_SYSTEM}(?:'s| (?:is|are|(?:just )?went|ha(?:s|ve) gone)) (?:(?:completely|totally|still|currently|all|now|"
    r"again|"
    rf"just) )*(?:down|offline|unreachable|on fire|crashing|dead|not responding)(?:{_END}| (?:and|since|right now|"
    r"again|now|because|for (?:all|every\w*|our|half|hours|an hour|\d+)|in production|due to)\b)",
    r"(?:(?:all|our|the) )*(?:customers|users|clients|people|nobody|no one) "  # a word of users
    r"(?:can't|cannot|can not|can|are unable to) (?:log ?in|sign in|pay|check ?out|buy|order|access|use|reach|connect|"
    r"work)\b.*\b(?:right now|any ?more|at all|since|currently|at the moment)\b",
    r"we(?:'re| are) (?:currently |actively )?(?:losing (?:money|customers|data|orders|sales|revenue|users|\w+ of)|"
    r"under attack|being (?:hacked|attacked|ddosed)|(?:having|in the middle of) an? (?:\w+ )?(?:outage|incident))",
    r"(?:there's|there is|we have|we've got|we got) an? (?:\w+ )?(?:outage|emergency|sev ?-?[01]|p0)\b"
    r"(?! (?:plan|contact|fund|exit|room))",
    rf"{_IT_IS} {_VERY}(?:an? )?(?:urgent(?:{_END}| (?:matter|request|issue|problem|and|because|since|as)\b)|"
    rf"(?:real )?emergency{_END}|time[- ](?:critical|sensitive){_END}|(?:p0|sev ?-?[01])\b)",
    rf"(?:super |very |really |extremely )?urgent(?:{_END}| (?:help|request|issue|problem)\b)|(?:emergency|mayday|"
    rf"sos){_END}",
    r"(?:i|we) (?:(?:really|desperately|absolutely|just) )*(?:need|must have|have to have) (?:this|it|that|them|these|"
    r"those|(?:the|an?) (?:\w+ )?(?:fix|answer|solution|report|results?|workaround|hotfix|rollback))"
    rf"(?: (?:to be )?{_READY})? (?:{_PERIOD}|{_NOW}{_END}|before (?:the|my|our) {_EVENT})",
    r"(?:i|we) urgently need\b",
    r"(?:this|it|that|the (?:fix|report|site|release)) (?:has to|needs to|must|should) (?:be|go) "
    rf"{_READY} (?:{_PERIOD}|{_NOW}{_END})",
    rf"(?:my|the|our) {_EVENT} (?:is|starts|begins|leaves|closes|ends|is due) {_PERIOD}",
    rf"(?:it|this|that|the \w+)(?:'s| is) due {_PERIOD}",
    rf"(?:we|i)(?:'re| are|'m| am)? (?:go(?:ing)? live|launch(?:ing)?|ship(?:ping)?|present(?:ing)?|demo(?:ing)?|"
    rf"releas(?:e|ing)|on stage) {_PERIOD}",
    rf"(?:i|we)(?:'ve)? (?:only )?(?:have|got) (?:(?:only|just|about|less than) )*{_COUNT} min(?:ute)?s? (?:left|until|"
    r"before|till|to (?:fix|submit|finish))",
    rf"hurry(?: up)?(?:{_END}| (?:i|we|the)\b)|{_I_AM} (?:almost |nearly )?(?:running )?out of time{_END}|"
    r"every (?:minute|second) counts",
)

_AFFECT = AffectPatterns(
    cues={
        "thanks": words(
            "thanks thank thankyou thx thnx tysm ty tks cheers appreciate appreciated grateful thankful owe obliged"
        ),
        "praise": words(
            "great good nice excellent amazing awesome fantastic wonderful brilliant superb outstanding incredible "
            "stellar terrific impressive lovely splendid beautiful perfect solid notch done bravo kudos hats chapeau "
            "rock rule nailed crushed killed did made best lifesaver saver genius star legend hero gem wizard "
            "magician rockstar champ treasure godsend send help helpful saved rescued exactly worked works trick "
            "fixed solved sorted cracked better impressed blown happy love couldn't"
        ),
        "anger": words(
            "you you're you've your wrong time times told asked hell fuck heck wtf stop unacceptable ridiculous "
            "garbage bullshit useless trash crap outrageous infuriating pathetic absurd joke disgrace nonsense bot "
            "assistant shut nothing breaking ruining deleting wasting ignoring messing screwing worst"
        ),
        "urgency": words(
            "nobody "  # a word of users
            "down offline unreachable fire crashing dead responding customers users clients people one losing attack "
            "hacked attacked ddosed outage incident emergency p0 sev sev0 sev1 urgent urgently critical sensitive "
            "mayday sos now away immediately asap possible before minute minutes min mins second seconds sec secs "
            "hour h hr hurry time counts"
        ),
    },
    lead_in=_LEAD_IN,
    remarks={"thanks": _THANKS, "praise": _PRAISE, "anger": _ANGER, "urgency": _URGENCY},
    clause_end=(
        r"[,;:!?…]+(?=\s|$)|\.(?=\s|$)|\.{2,}|\s+[-–—]+\s+|—|\s+[(]|[)]\s+|\s+(?=but\b)|"
        r"\s+(?:and|so|because|cause|cuz|since|as)\s+(?=(?:you|i|it|thanks?|this|that|we|our|the|my|prod|production)\b)"
    ),
    condition=(
        r"(?:if|when(?:ever)?|unless|until|once|in case|suppose|imagine|pretend|assum(?:e|ing)|what if|what happens|"
        r"even if|let's say|say|as soon as|after|before|while|should)\b"
    ),
    reported=(
        r"\b(?:says?|said|saying|(?<!i )(?<!i've )(?<!already )told|tells?|wrote|writes?|writing|written|shout(?:s|"
        r"ed)?|yell(?:s|ed)?|scream(?:s|ed)?|repl(?:y|ies|ied)|respond(?:s|ed)?|answers?|answered|reads|called|titled|"
        r"named|label(?:s|ed|led)?|translates?|quotes?|quoted|phrases?|sentences?|lyrics?|subject|caption|headline|"
        r"example|e\.?g|prints?|displays?|asks?|asked (?!you)|complain(?:s|ed)?|review(?:s|er)?|commented|tweet(?:s|"
        r"ed)?|character|line|dialog(?:ue)?)\b"
    ),
    denial=r"\b(?:not(?! responding)|never|hardly|barely|neither|nor|nothing|(?:is|was|are|does|do|did|wo)n't)\b",
    retraction=(
        r"(?:but|however|except|although|though|unfortunately|still (?:not|no|doesn't|fail|broken|wrong)|just not)\b"
    ),
    refusal=r"(?:no|nope|nah|no no|not really|i'm (?:good|fine)|that's ok|it's fine)\Z",
    thanks_formula=_LEAD_IN + _FORMULA,
    request=rf"(?m){_POLITE}|^(?!{_STATEMENT_START})",
)

_RESULTS = ResultWords(
    failure=(
        r"(?:\w+(?:error|exception)|error|exception|failure|fatal|failed)"
        r"(?:\s*[:!(\[–—-]|\s*$|\s+(?:\d|code|occurred|while|when|to)\b)"
        r"|traceback\b|npm err!"
        r"|http(?:/[\d.]+)? [45]\d\d"
        r"(?:\s*$|:| (?:bad|client|conflict|error|forbidden|gone|internal|not|server|unauth))"
        r"|(?:(?:the )?(?:command|process|program) )?(?:exit(?:ed)?|failed|returned)(?: with)?(?: an?)?(?: non-zero)?"
        r"(?: exit| return)? (?:code|status)(?:\s*[:=]\s*|\s+)[1-9]\d{0,2}\b"
    ),
    completed=r"(?:created|updated|added|saved|sent|moved|renamed|done|success\w*|ok)\b",
    refusal=(
        r"\bnot found\b|\bdoes(?: not|n't) exist\b|\bno such \w+|\b(?:permission|access) denied\b|"
        r"\bunauthori[sz]ed\b|\bforbidden\b|\btimed out\b|\brate limit\b"
    ),
    not_deleted=(
        r"(?<![A-Za-z])(?:could ?n[o']t|cannot|can't|unable|not (?:allowed|deleted|permitted|possible|be)|permission|"
        r"denied|locked|time(?:d )?out|rate limit|are you sure|confirm|cancell?ed|queued|pending|approval|dry[- _]run|"
        r"failed|failure|would delete)(?![A-Za-z])"
    ),
    no_matches=(
        r"(?:process |command )?(?:exit(?:ed)?|return(?:ed)?|status)(?: with)?(?: code| status)?\W*1\b(?!\W*\d)"
        r"|no (?:\w+ )?(?:match|matches|results|files)\b|nothing (?:was )?found"
    ),
)

ENGLISH = Language(
    code="en",
    common_words=frozenset("the a an is are was of to and in on for with it that this you i we my not please".split()),
    negations=r"no|not|never|none|nobody|"  # a word of users
    r"nothing|cannot|without|neither|nor|\w+n't",
    hedges="maybe|perhaps|probably|possibly|might|hopefully|not sure|i think|i guess",
    hypotheticals=(
        "if|unless|whether|let's say|suppose|imagine|pretend|assume|what if|for example|for instance|e\\.g\\.|"
        "hypothetically|in the story|my character|role-?play|i wish|would have"
    ),
    reports="says?|said|wrote|told|asked|according to",
    temporary="today|tonight|right now|for now|at the moment|this time|this morning",
    question_starts=(
        r"(?:what|when|where|who|which|why|how)(?:'s)?\s+(?:\w+\s+)?"
        r"(?:is|are|was|were|do|does|did|can|could|should|would|will|has|have|many|much|long|far|often)|"
        r"(?:do|does) (?:you|anyone|anybody) know|i (?:wonder|was wondering)"
    ),
    prepositions="from|of|on|in|at|to|into|onto|for|with|like|by|above|below|under|behind|beside|near|than",
    target_prepositions="to|in|into|on|onto|for",
    exclusions=r"(?<!or )(?:not|neither|nor|none|except(?: for)?|instead of|rather than|other than)(?: of)?",
    all_but=r"(?:all|every\w*|any\w*|each|both)\b[^.;!?,]{0,40}?\bbut(?: for)?",
    verbs_after="is|are|was|were|has|have|had|does|do|did|can|will|would|should|must|needs?|looks?",
    conjunctions="and|or|plus|vs|versus|as well as",
    clause_breaks="and|then|but",
    naming_verbs="called|named|titled|labell?ed|entitled",
    new_name=(
        r"(?:rename|renaming|retitle)\b[^.;!?]{0,80}?\b(?:to|as)|"
        r"(?:change|set|update)\b[^.;!?]{0,40}?\b(?:title|name|heading|label)\b[^.;!?]{0,60}?\bto|"
        r"(?:call|name|title)\s+(?:it|this|that)(?=\s+(?-i:[A-Z“‘\"]))"
    ),
    which_question="Which {noun}: {first} or {last}?",
    which_noun="one",
    confirm_question="Do you mean {last}?",
    results=_RESULTS,
    references=_REFERENCES,
    affect=_AFFECT,
    dates=ENGLISH_DATES,
)

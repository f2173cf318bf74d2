"""English words."""

from __future__ import annotations

from inmind.core.language.tables import Language, ReferenceWords, numbered, time_picks, words

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
    plural_other=words("others"),
    picks=time_picks(previous="previous prior earlier preceding", oldest="oldest earliest", newest="newest latest"),
    deleted=words("deleted removed trashed erased"),
    restore=(
        r"(?i)\b(?:restor(?:e|ing)|undelete|recover(?:ing)?|revive|unarchive|resurrect)\b"
        r"|\bbring(?:ing)?\b[^.;!?]{0,40}?\bback\b(?! to\b)"
        r"|\b(?:get|want|have) (?:it|them|th\w+(?: \w+)?) back\b(?! to\b)"
    ),
    undo=r"(?i)\b(?:undo|undoing|revert|reverse)\b|\bput \w+(?: \w+)? back\b(?! to\b)",
    articles=words("the my your our"),
    owners=words("my your our"),
    demonstratives=words(_DEMONSTRATIVES),
    plural_demonstratives=words("these those"),
    universal=words("both all each every"),
    pair=words("both"),
    each=words("each every"),
    possessives=words("its their his her"),
    plural_possessives=words("their"),
    indefinite=words("a an another some any no one new different more"),
    indefinite_alone=words("another"),
    one=words("one"),
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
    before_pronoun=words(
        "and or but so then is are was were will would can could should does do did may might to of in on at by "
        "for from with into onto about like than as if when while because please yes no ok okay what how"
    ),
    qualifying=words("on in at with from by near behind beside under above below between next hanging"),
    speakers=words("i we you"),
    relative_words=words("that which just ever was were"),
    before=words("before"),
    mention_verbs=words("found mentioned said offered suggested showed listed recommended discussed created made"),
    use_verbs=words("opened made created added edited visited viewed uploaded wrote built started saw"),
    naming=words("called named titled labeled labelled entitled"),
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
    verbs_after=(r"\s+(?:is|are|was|were|has|have|had|does|do|did|can|will|would|should|must|needs?|looks?)\b"),
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
    first_person="i|i'm|i've|my|me|mine|myself",
    second_person="you|your",
    prepositions="from|of|on|in|at|to|into|onto|for|with|like|by|above|below|under|behind|beside|near|than",
    target_prepositions="to|in|into|on|onto|for",
    exclusions=r"(?<!or )(?:not|neither|nor|none|except(?: for)?|instead of|rather than|other than)(?: of)?",
    all_but=r"(?:all|every\w*|any\w*|each|both)\b[^.;!?,]{0,40}?\bbut(?: for)?",
    conjunctions="and|or|plus|vs|versus|as well as",
    clause_breaks="and|then|but",
    naming_verbs="called|named|titled",
    new_name=(
        r"(?:rename|renaming|retitle)\b[^.;!?]{0,80}?\b(?:to|as)|"
        r"(?:change|set|update)\b[^.;!?]{0,40}?\b(?:title|name|heading|label)\b[^.;!?]{0,60}?\bto|"
        r"(?:call|name|title)\s+(?:it|this|that)(?=\s+(?-i:[A-Z“‘\"]))"
    ),
    which_question="Which {noun}: {first} or {last}?",
    which_noun="one",
    confirm_question="Do you mean {last}?",
    references=_REFERENCES,
)

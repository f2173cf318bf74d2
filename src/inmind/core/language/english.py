"""English words."""

from __future__ import annotations

from inmind.core.language.tables import Language

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
)

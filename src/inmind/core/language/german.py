"""German words: experimental, for dates, negation and references."""

from __future__ import annotations

from inmind.core.language.tables import Language

GERMAN = Language(
    code="de",
    experimental=True,
    common_words=frozenset(
        "der die das den dem ein eine einen ist sind war und oder nicht ich du sie es wir mit auf für von zu zum zur "
        "bitte mein meine dein deine diese dieser dieses im am".split()
    ),
    negations="nicht|nie|niemals|nichts|niemand|ohne|weder|kein(?:e[mnrs]?)?",
    hedges="vielleicht|wahrscheinlich|vermutlich|eventuell|ich glaube",
    hypotheticals="wenn|falls|angenommen|zum beispiel|z\\.b\\.",
    reports="sagt|sagte|schrieb|laut",
    temporary="heute|heute abend|gerade|im moment|vorerst",
    question_starts="(?:was|wann|wo|wer|welche[mnrs]?|warum|wieso|wie) \\w+",
    first_person="ich|mich|mir|mein(?:e[mnrs]?)?",
    second_person="du|dich|dir|dein(?:e[mnrs]?)?|sie|ihr(?:e[mnrs]?)?",
)

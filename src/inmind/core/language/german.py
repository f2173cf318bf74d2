"""German words: experimental, for dates, negation and references."""

from __future__ import annotations

from inmind.core.language.tables import (
    DAY,
    MONTH,
    YEAR,
    DateWords,
    Language,
    ReferenceWords,
    group,
    numbered,
    time_picks,
    words,
)

_NOUNS = {
    "page": "seite:seiten",
    "section": "abschnitt:abschnitte",
    "image media": "bild:bilder foto:fotos",
    "post article": "artikel:artikel beitrag:beiträge",
    "task todo": "aufgabe:aufgaben",
    "collection": "sammlung:sammlungen",
    "entry": "eintrag:einträge",
    "order": "bestellung:bestellungen",
    "user customer": "nutzer:nutzer kunde:kunden",
    "file document": "datei:dateien dokument:dokumente",
    "email mail message": "nachricht:nachrichten mail:mails",
    "invoice": "rechnung:rechnungen",
    "booking reservation": "buchung:buchungen",
    "project": "projekt:projekte",
}
_PAIRS = [(types, *pair.split(":")) for types, pairs in _NOUNS.items() for pair in pairs.split()]
_DEMONSTRATIVES = "diese dieser dieses diesen diesem jene jener jenes jenen jenem"
_REFERENCES = ReferenceWords(
    nouns={one: tuple(types.split()) for types, one, _ in _PAIRS},
    plurals={several: one for _, one, several in _PAIRS if several != one},
    generic_nouns=words("ding sache element ergebnis"),
    number_nouns=words("nummer option"),
    numbers=numbered(
        "null", "eins", "zwei", "drei", "vier", "fünf", "sechs", "sieben", "acht", "neun", "zehn", start=0
    ),
    ordinals=numbered(
        "erste ersten erster erstes",
        "zweite zweiten zweiter zweites",
        "dritte dritten dritter drittes",
        "vierte vierten",
        "fünfte fünften",
    )
    | numbered("letzte letzten letzter letztes", start=-1),
    other=words("andere anderen anderer anderes"),
    picks=time_picks(
        previous="vorige vorigen voriges vorherige vorherigen vorheriges", oldest="älteste", newest="neueste"
    ),
    deleted=words("gelöschte gelöschten gelöschtes gelöscht entfernte"),
    restore=r"(?i)\bstelle?\b.{0,60}\bwieder her\b|\bwiederherstellen\b",
    undo=r"(?i)\brückgängig\b",
    articles=words("der die das den dem des mein meine meinen dein deine deinen unser unsere"),
    demonstratives=words(_DEMONSTRATIVES),
    universal=words("alle beide jede jeden jedes"),
    pair=words("beide"),
    possessives=words("sein seine seinen ihr ihre ihren"),
    indefinite=words("ein eine einen einem einer noch neue neues neuen kein keine keinen"),
    pronouns=words("es ihn ihm sie ihnen") | words(_DEMONSTRATIVES),
    plural_pronouns=words("sie ihnen"),
    maybe_singular=words("sie"),
    partitive=words("von"),
    joining=words("und oder ,"),
    stop=words(
        "ist sind war waren hat haben kann wird soll muss zu von in auf an bei für aus mit ohne über unter als wie "
        "wenn dann jetzt nicht auch bitte danke ich du er sie es wir mich mir dich dir uns und oder aber noch wieder"
    ),
    speakers=words("ich wir du"),
    expletive=r"(?i)es (?:ist|gibt|geht|scheint|regnet)\b|(?:dieses|diese) (?:mal|woche)\b",
)

_MONTH_NAMES = "januar februar märz april mai juni juli august september oktober november dezember".split()
_MONTHS = {spelling: number for number, name in enumerate(_MONTH_NAMES, 1) for spelling in (name, name[:3])}
_WEEKDAYS = numbered("montag", "dienstag", "mittwoch", "donnerstag", "freitag", "samstag sonnabend", "sonntag", start=0)
_SEASONS = numbered("frühling frühjahr", "sommer", "herbst", "winter", start=0)
_PARTS = numbered("anfang", "mitte", "ende", start=0)
_COUNTS = numbered(
    "ein eine einem einer einen", "zwei", "drei paar", "vier", "fünf", "sechs", "sieben", "acht", "neun", "zehn"
)
_BACK = numbered(
    "diese diesen dieses diesem",
    "letzte letzten letztes letztem vorige vorigen voriges vergangene vergangenen vergangenes",
    "vorletzte vorletzten vorletztes",
    start=0,
)
_DAYS_BACK = numbered("heute", "gestern", "vorgestern", start=0)
_UNITS = {
    "stunde": "hour",
    "stunden": "hour",
    "tag": "day",
    "tage": "day",
    "tagen": "day",
    "woche": "week",
    "wochen": "week",
    "monat": "month",
    "monate": "month",
    "monaten": "month",
    "jahr": "year",
    "jahre": "year",
    "jahren": "year",
}
_MONTH, _WEEKDAY = rf"{group('month', _MONTHS)}\b\.?", group("weekday", _WEEKDAYS)
_SEASON, _PART = group("season", _SEASONS), group("part", _PARTS)
_COUNTED = rf"{group('count', [*_COUNTS, '[0-9]{1,3}'])} {group('unit', _UNITS)}\b"
_DIGITS = rf"{DAY}\.{MONTH}\.{YEAR}\b"
"""After a preposition, since 1.2.2023 may also be a version."""
_LAST = r"(?:letzte[nrs]?|vergangene[nrs]?|vorige[nrs]?)"

_DATES = DateWords(
    numbers={
        "month": _MONTHS,
        "weekday": _WEEKDAYS,
        "season": _SEASONS,
        "part": _PARTS,
        "count": _COUNTS,
        "back": _BACK | _DAYS_BACK,
    },
    units=_UNITS,
    ranges=(
        r"\bzwischen (?P<first>.{3,40}?) und (?P<last>.{3,40})",
        r"\bvo[nm] (?P<first>.{3,40}?) bis (?:zum )?(?P<last>.{3,40})",
        r"\bseit (?:dem )?(?P<after>.{3,40})",
    ),
    days=(
        rf"\b{DAY}\. ?{_MONTH} {YEAR}\b",
        rf"\b(?:am|zum|bis) {_DIGITS}",
        rf"\b{DAY}\. ?{_MONTH}",
        rf"\b{group('back_day', _DAYS_BACK)}\b",
        rf"\b{group('back_week', _BACK)} woche\b",
        rf"\b(?:am|{_LAST}) {_WEEKDAY}\b",
        rf"\b(?P<ago>vor) {_COUNTED}",
        rf"\b(?P<recent>{_LAST}) {_COUNTED}",
        rf"\b(?P<last_weekend>{_LAST} wochenende)\b",
        r"\bam (?P<weekend>wochenende)\b",
    ),
    longer=(
        rf"\b{_PART} {_MONTH} {YEAR}\b",
        rf"\b{_MONTH} {YEAR}\b",
        rf"\b{_PART} {_MONTH}",
        rf"\b{group('back_month', _BACK)} monat\b",
        rf"\b(?P<finished>{_LAST}) {_MONTH}",
        rf"\bim {_MONTH}",
        rf"\b{_SEASON} {YEAR}\b",
        rf"\b(?P<finished>{_LAST}) {_SEASON}\b",
        rf"\b{_PART} {YEAR}\b",
        rf"\b{group('back_year', _BACK)} jahr\b",
        rf"\bim jahr {YEAR}\b",
    ),
    range_ends=(rf"\b{_DIGITS}", rf"\b{_MONTH}", rf"\b{_WEEKDAY}\b"),
)

# Every list is read in texts of every language, so it has no word of another one: not "was", "an" or "falls" alone.
GERMAN = Language(
    code="de",
    common_words=frozenset(
        "der die das den dem ein eine einen ist sind war und oder nicht ich du sie es wir mit auf für von zu zum zur "
        "bitte mein meine dein deine diese dieser dieses im am".split()
    ),
    negations="nicht|nie|niemals|nichts|niemand|ohne|weder|kein(?:e[mnrs]?)?",
    hedges="vielleicht|wahrscheinlich|vermutlich|eventuell|ich glaube",
    hypotheticals="wenn|falls (?:ich|du|er|sie|es|wir|ihr|der|die|das|ein|eine)|angenommen|zum beispiel|z\\.b\\.",
    reports="sagt|sagte|schrieb|laut (?:der|dem|den|einer|einem)",
    temporary="heute|heute abend|gerade|im moment|vorerst",
    question_starts=(
        r"(?:(?:wann|wer|welche[mnrs]?|warum|wieso|wie) \w+|"
        r"(?:was|wo) (?:ist|sind|war|waren|hat|haben|kann|soll|muss)\b)"
    ),
    prepositions="von|aus|auf|in|im|bei|zu|zur|zum|für|mit|unter|über|neben|hinter",
    target_prepositions="zu|zur|zum|in|auf|für",
    exclusions="nicht|ausser|außer|statt|anstatt",
    conjunctions="und|oder|sowie",
    clause_breaks="und|dann|aber",
    naming_verbs="namens|genannt",
    new_name=r"(?:benenne|nenne)\b[^.;!?]{0,80}?\b(?:in|um in)",
    which_question="Was ist gemeint: {first} oder {last}?",
    confirm_question="Ist {last} gemeint?",
    references=_REFERENCES,
    dates=_DATES,
)

"""What is called by a name in a text: people, places, products, titles.

By spelling alone. In English a name has a capital where no sentence begins, or capitals inside; in Chinese it stands in
the marks of a title, or behind a word that says so. What is spelt like that and names nothing (days, months, shouting)
is left out; so is every single word at the beginning of a sentence, since nothing tells whether it is a name.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from inmind.core.language.prose import compiled, own_words, sentences

MOST_NAME = 40


def names_in(text: str) -> list[str]:
    """Those that a person says in a text, in order, each once."""
    if not compiled(_MAY_NAME).search(text):
        return []
    return names_said(one for line in own_words(text) for one in sentences(line))


def names_said(said: Iterable[str]) -> list[str]:
    """Those in some sentences."""
    found = (name for sentence in said if compiled(_MAY_NAME).search(sentence) for name in _names(sentence))
    return list(dict.fromkeys(name for name in found if 1 < len(name) <= MOST_NAME))


def _names(sentence: str) -> Iterator[str]:
    yield from (one for pair in compiled(_MARKED).findall(sentence) for one in pair if one)
    tokens = sentence.split()
    capitals = sum(token[:1].isupper() and not _names_nothing(token) for token in tokens)
    if len(tokens) > 3 and 2 * capitals > len(tokens):
        return  # a headline
    for found in compiled(_SPELT).finditer(sentence):
        parts: list[str] = found[0].split()
        begins = not sentence[: found.start()].strip(_OPENS)
        while parts and (_names_nothing(parts[0]) or parts[0].isupper() or (begins and parts[0].endswith("ing"))):
            parts.pop(0)
            begins = False
        while parts and _names_nothing(parts[-1]):
            parts.pop()
        name = " ".join(parts)
        if parts and not (begins and len(parts) == 1 and not compiled(_INNER).search(name)):
            yield name.removesuffix("'s").removesuffix("’s")


def _names_nothing(word: str) -> bool:
    low = word.lower()
    return low in _NO_NAMES or low.removesuffix("s") in _NO_NAMES


_MAY_NAME = r"\S\s+[A-Z]\w|[a-z][A-Z]|[《叫]"
_OPENS = " \"'“‘(*_-•"
_MARKED = (
    r"《([^《》\n]{1,40})》|(?<!我)(?:名叫|叫做|叫作|叫)(?![什我你他她它])([一-鿿]{2,4}?)(?=[，。！？、,.!?\s]|的|$)"
)
_CAPITAL = r"[A-Z](?:[\w’'&-]|\.(?=\w))*\w"
_SPELT = rf"(?<![\w@#/.-]){_CAPITAL}(?:(?: (?:of|of the|de|van|von|der|la))? {_CAPITAL})*(?![\w@/])"
_INNER = r"[a-z][A-Z]"
_NO_NAMES = frozenset(
    """
    monday tuesday wednesday thursday friday saturday sunday mon tue tues wed thu thur thurs fri sat sun january
    february march april may june july august september october november december jan feb mar apr jun jul aug sep
    sept oct nov dec am pm in at on i i'm i've i'd i'll i’m i’ve i’d i’ll ok okay english chinese mandarin cantonese
    german french spanish italian japanese korean russian dutch portuguese polish turkish arabic hebrew hindi urdu
    bengali greek latin swedish norwegian danish finnish czech hungarian romanian ukrainian thai vietnamese
    indonesian persian irish scottish welsh swiss austrian belgian american british european asian african
    australian canadian mexican brazilian indian israeli egyptian cuban argentinian colombian caribbean
    mediterranean scandinavian catholic christian muslim jewish buddhist please thanks thank hi hello hey dear yes
    yeah yep yup nope no the this that these those and but or so if when what where who why how my your our his her
    their its it he she they we you there here then now today tomorrow yesterday last next also maybe perhaps just
    let let's can could would should will do does did is are was were have has had not don't great good nice sure
    well oh wow god aww haha woohoo congrats happy sorry christmas easter besides alright anyway since after before
    during another both halloween thanksgiving ramadan hanukkah diwali internet mr mrs ms dr prof sir madam ps mom
    mum dad mommy daddy grandma grandpa granny auntie
    """.split()
)

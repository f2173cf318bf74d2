"""Find names in a text: people, places, products, titles.

Only the spelling counts. An English name has a capital letter inside a sentence, or capitals inside a word. A Chinese
name is in title marks or follows a word for "called". Words that are spelled like that but name nothing (days, months,
capitalized headlines) are left out. So is a single capitalized word at the start of a sentence, which may be any word.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from inmind.core.language.prose import own_words
from inmind.core.language.spans import compile_cached, split_sentences

MAX_NAME_CHARACTERS = 40


def names_in(text: str) -> list[str]:
    """Names in a person's own words of a text, in order, each once."""
    if not compile_cached(_NAME_HINT).search(text):
        return []
    return names_in_sentences(sentence for line in own_words(text) for sentence in split_sentences(line))


def names_in_sentences(sentences: Iterable[str]) -> list[str]:
    """Names in these sentences, in order, each once."""
    names = (name for sentence in sentences if compile_cached(_NAME_HINT).search(sentence) for name in _names(sentence))
    return list(dict.fromkeys(name for name in names if 1 < len(name) <= MAX_NAME_CHARACTERS))


def _names(sentence: str) -> Iterator[str]:
    yield from (name for pair in compile_cached(_MARKED_NAME).findall(sentence) for name in pair if name)
    tokens = sentence.split()
    capitals = sum(token[:1].isupper() and not _is_not_a_name(token) for token in tokens)
    if len(tokens) > 3 and 2 * capitals > len(tokens):
        return  # a headline
    for match in compile_cached(_CAPITALIZED_NAME).finditer(sentence):
        parts: list[str] = match[0].split()
        at_start = not sentence[: match.start()].strip(_OPENING_MARKS)
        while parts and (_is_not_a_name(parts[0]) or parts[0].isupper() or (at_start and parts[0].endswith("ing"))):
            parts.pop(0)
            at_start = False
        while parts and _is_not_a_name(parts[-1]):
            parts.pop()
        name = " ".join(parts)
        if parts and not (at_start and len(parts) == 1 and not compile_cached(_INNER_CAPITAL).search(name)):
            yield name.removesuffix("'s").removesuffix("’s")


def _is_not_a_name(word: str) -> bool:
    lower = word.lower()
    return lower in _NOT_NAMES or lower.removesuffix("s") in _NOT_NAMES


_NAME_HINT = r"\S\s+[A-Z]\w|[a-z][A-Z]|[《叫]"
_OPENING_MARKS = " \"'“‘(*_-•"
_MARKED_NAME = (
    r"《([^《》\n]{1,40})》|(?<!我)(?:名叫|叫做|叫作|叫)(?![什我你他她它])([一-鿿]{2,4}?)(?=[，。！？、,.!?\s]|的|$)"
)
_CAPITAL = r"[A-Z](?:[\w’'&-]|\.(?=\w))*\w"
_CAPITALIZED_NAME = rf"(?<![\w@#/.-]){_CAPITAL}(?:(?: (?:of|of the|de|van|von|der|la))? {_CAPITAL})*(?![\w@/])"
_INNER_CAPITAL = r"[a-z][A-Z]"
_NOT_NAMES = frozenset(
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

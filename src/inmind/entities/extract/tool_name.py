"""Parses a tool name into verb, entity types and number."""

from __future__ import annotations

from functools import lru_cache

from inmind.core.frozen import frozen
from inmind.entities.nouns import COMMON_TYPES, is_plural, singular, split_words

_READ_VERBS = frozenset(
    "browse calculate call check count describe download execute extract fetch filter find get grep inspect invoke "
    "list lookup open peek query read retrieve run search show stat tail view watch".split()
)
_WRITE_VERBS = frozenset(
    "add append archive assign attach book build buy cancel change clone close complete compose convert copy "
    "create deploy draft duplicate edit exchange export finish generate hide import insert install invite issue "
    "make mark merge modify move new order patch pay place post publish put register rename replace reply "
    "reschedule reserve reset resize restore return revert save schedule send set share start stop submit "
    "subscribe swap sync toggle transfer undelete undo unpublish update upload upsert write".split()
)
_DELETE_VERBS = frozenset("delete destroy discard drop erase purge remove rm trash unlink".split())
_VERBS = _READ_VERBS | _WRITE_VERBS | _DELETE_VERBS
# Nouns as often as verbs: they count as a verb only in first position.
_NOUN_OR_VERB = frozenset(
    "book build call check copy count draft export import invite issue list mark order place post query return run "
    "schedule share show start stop tail view watch".split()
)
_PREPOSITIONS = frozenset(
    "about after and as at before by for from in into of on onto or per to using via with within without".split()
)
_IGNORED_WORDS = frozenset(
    "a all any available batch bulk by content contents current data detail details direct each every "
    "full id ids identifier info information latest many metadata most multiple my name names new next one "
    "onestop pending recent result results single specific status the text type types uuid value values v1 v2 v3 "
    "api tool async".split()
)
# Verbs whose `number` argument may be a quantity.
_QUANTITY_VERBS = frozenset(
    "add book buy create draw duplicate generate insert issue make new order place post register reserve return send "
    "transfer".split()
)
# Nouns that are too general without the preceding noun.
_WEAK_NOUNS = frozenset("group line link method plan point record request set unit".split())


@frozen
class ToolName:
    """A parsed tool name."""

    verb: str
    types: tuple[str, ...]
    """Types it may be about, in singular, most likely first."""
    plural: bool
    """True if its noun is a plural."""
    nouns: frozenset[str] = frozenset()
    """Every noun in the name, in singular."""
    removes_from: bool = False
    """True if it removes its object from a container, such as a cart, without deleting it."""

    @property
    def type(self) -> str:
        return self.types[0] if self.types else ""

    @property
    def is_delete(self) -> bool:
        return self.verb in _DELETE_VERBS and not self.removes_from

    @property
    def is_read(self) -> bool:
        return self.verb in _READ_VERBS

    @property
    def arguments_name_result(self) -> bool:
        """True if the arguments hold the name of the entity, not a search term."""
        return self.verb in _WRITE_VERBS

    @property
    def about_one(self) -> bool:
        """True if it is about one entity: a plain `number` argument is then an id, not a count."""
        return bool(self.verb) and not self.plural and self.verb not in _QUANTITY_VERBS


@lru_cache(maxsize=2048)
def parse_tool_name(name: str) -> ToolName:
    """Parse cms_createPage, create_page, pages.list or mcp__cms__get-page: all mean a page."""
    parts = split_words(name.rsplit("__", 1)[-1] if name.startswith("mcp__") else name)
    verb_index = _verb_index(parts)
    verb = parts[verb_index] if verb_index is not None else ""
    rest = parts[verb_index + 1 :] if verb_index is not None else parts
    nouns, plural = _nouns(rest)
    if not nouns and verb_index:  # pages.list is about pages; jira_search and web_search name the system
        nouns, plural = _nouns(parts[:verb_index])
        nouns = [noun for noun in nouns[-1:] if plural or noun in COMMON_TYPES]
    if verb not in _READ_VERBS and verb != "empty" and not {"trash", "bin"}.isdisjoint(parts):
        verb = "trash"
    all_nouns = frozenset(
        singular(word) for word in parts if word not in _IGNORED_WORDS | _PREPOSITIONS and word != verb
    )
    removes_from = verb in ("remove", "unlink") and not {"from", "off"}.isdisjoint(parts)
    return ToolName(verb=verb, types=_types(nouns), plural=plural, nouns=all_nouns, removes_from=removes_from)


def _verb_index(parts: tuple[str, ...]) -> int | None:
    certain = (n for n, word in enumerate(parts) if word in _VERBS and (n == 0 or word not in _NOUN_OR_VERB))
    return next(certain, next((n for n, word in enumerate(parts) if word in _VERBS), None))


def _nouns(parts: tuple[str, ...]) -> tuple[list[str], bool]:
    """Return the nouns up to a preposition, and whether the last one is plural."""
    nouns: list[str] = []
    for word in parts:
        if word in _PREPOSITIONS and nouns:
            break
        if word not in _PREPOSITIONS and not word.isdigit():
            nouns.append(word)
    plain = [noun for noun in nouns if noun not in _IGNORED_WORDS]
    return plain, bool(plain) and is_plural(plain[-1])


def _types(nouns: list[str]) -> tuple[str, ...]:
    if not nouns:
        return ()
    single = [singular(noun) for noun in nouns]
    ends = ["_".join(single[-n:]) for n in range(2, len(single) + 1)]
    first = [ends[0]] if ends and single[-1] in _WEAK_NOUNS else []
    return tuple(dict.fromkeys([*first, *reversed(single), *ends]))

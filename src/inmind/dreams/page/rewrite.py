"""MEMORY.md with a dream's edits: each by itself, on the page as it is now, and then all of it against the guards.

A proposal may have been made minutes ago, of a page that somebody has written to since, by a model that makes things
up. So an edit is carried out only if what it means still stands there and nothing gets lost by it that is not kept
elsewhere; the others go on without it. What leaves the page leaves for a pointer that was seen to work.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache

from inmind.core.events.base import Trust
from inmind.core.events.dreams import GuardVerdict, PageLine
from inmind.core.frozen import frozen
from inmind.core.text import shortened
from inmind.documents.notes_page import format_timestamp
from inmind.dreams.page.draft import Ground, Sheet
from inmind.dreams.page.edits import Add, Edit, Retire, Rewrite
from inmind.dreams.page.eviction import PRECIOUS, fitted, is_lossless, is_over, must_stay, of_people, share, spares_bond
from inmind.dreams.page.fact_checks import (
    LONGEST_LINE,
    SHARED,
    contradicts,
    invented,
    is_related,
    lost,
    one_line,
    quotes,
    same,
    share_kept,
    speaks_of,
)
from inmind.dreams.page.guards import ABOUT_PEOPLE, Change, lines_in, stands, verdicts
from inmind.dreams.page.page import header, written
from inmind.dreams.page.pointers import candidates, pointed, pointer_to
from inmind.dreams.page.retire import faded, few_pointers
from inmind.dreams.page.sections import Section

__all__ = ["Ground", "Rewritten", "rewritten"]


@frozen(kw_only=True)
class Rewritten:
    text: str
    lines: Mapping[str, PageLine]
    """All lines on it that dreams wrote, by their text."""
    fresh: tuple[PageLine, ...] = ()
    """Those that are new, or made of something else than before."""
    retired: tuple[PageLine, ...] = ()
    """What has left the page."""
    verdicts: tuple[GuardVerdict, ...] = ()
    refused: tuple[str, ...] = ()
    """What was proposed and not done, each with the reason."""

    @property
    def passed(self) -> bool:
        """May it be committed?"""
        return all(verdict.passed for verdict in self.verdicts)


def rewritten(before: str, edits: Sequence[Edit], ground: Ground) -> Rewritten:
    """What becomes of a page by these edits. The same of the same, and nothing more of the same twice."""
    rewriting = _Rewriting(before, replace(ground, finds=cache(ground.finds)))
    for edit in edits:
        rewriting.carry_out(edit)
    return rewriting.done()


class _Refused(Exception):
    """An edit that is not carried out, and why."""


class _Rewriting:
    def __init__(self, before: str, ground: Ground) -> None:
        self._before, self._ground = before, ground
        self._sheet = Sheet(before, ground.lines)
        self._people = self._sheet.theirs
        self._bond = self._sheet.entries(Section.BOND)
        self._worked_in: set[str] = set()
        """People's entries that dreams say from now on, or point at."""
        self._added: set[str] = set()
        self._retired: list[PageLine] = []
        self._refused: list[str] = []
        self._gone = 0
        self._most_gone = share(sum(not is_lossless(line) for line in self._sheet.lines.values()))
        self._said = {same(text): text for text in (*self._people, *self._sheet.lines)}

    def carry_out(self, edit: Edit) -> None:
        try:
            match edit:
                case Add():
                    self._add(edit)
                case Rewrite():
                    self._rewrite(edit)
                case Retire():
                    self._retire(edit)
        except _Refused as refused:
            what = edit.line if isinstance(edit, Retire) else edit.text
            self._refused.append(f"{type(edit).__name__.lower()} {shortened(what, 80)!r}: {refused}")

    def done(self) -> Rewritten:
        sheet, ground = self._sheet, self._ground
        for item in ground.must:
            if not any(stands(item.text, lines_in(text)) for text in sheet):
                sheet.write(item)
        few_pointers(sheet, ground)
        fit = fitted(
            sheet, self._added, ground, before=self._before, bond=self._bond, leaving=self._most_gone - self._gone
        )
        self._worked_in |= {line.text for line in fit.left}
        text = written(sheet.page(header(ground.now, ground.mood)))
        change = Change(
            before=self._before,
            after=text,
            lines=sheet.lines,
            survivors=(
                *(one for one in self._people if one not in self._worked_in),
                *(item.text for item in ground.must),
            ),
            retired=self._gone,
            most_retired=self._most_gone,
        )
        return Rewritten(
            text=text,
            lines=dict(sheet.lines),
            fresh=tuple(line for one, line in sheet.lines.items() if ground.lines.get(one) != line),
            retired=(*self._retired, *fit.left),
            verdicts=verdicts(change),
            refused=(*self._refused, *(f"no room for {shortened(line.text, 80)!r}" for line in fit.kept_out)),
        )

    def _add(self, edit: Add) -> None:
        text = self._line(edit.text, edit.section)
        if not edit.sources and edit.section not in _OF_ITS_OWN:
            raise _Refused("it does not say what it is made of")
        trust = self._trust(edit.sources, edit.trust, edit.section)
        if edit.sources and edit.kind not in _COUNTED:
            self._check_numbers(edit.text, edit.sources, edit.at)
            sources = [self._ground.source_text(source) for source in edit.sources]
            if not speaks_of(edit.text, *sources):
                raise _Refused("no source speaks of that")
            if contradicts(edit.text, *sources):
                raise _Refused("its sources say the opposite")
        line = PageLine(
            section=edit.section,
            text=text,
            sources=edit.sources,
            importance=edit.importance,
            kind=edit.kind,
            at=edit.at or format_timestamp(self._ground.now),
            trust=trust,
        )
        if (there := self._standing(text)) is not None:
            self._credit(there, line)
        else:
            self._write(line)
            self._added.add(text)

    def _rewrite(self, edit: Rewrite) -> None:
        text = self._line(edit.text, edit.section)
        old = [self._own(line) for line in dict.fromkeys(edit.lines)]
        if not old:
            raise _Refused("it names no line")
        trust = self._trust(edit.sources, Trust(min(line.trust for line in old)), edit.section)
        self._check_numbers(edit.text, edit.sources, edit.at, *(line.text for line in old))
        going = [line.text for line in old]
        if not self._spares_bond(going, [text] if edit.section is Section.BOND else []):
            if not edit.sources:
                raise _Refused("too little would be left of the Bond")
            going = []  # it stands beside them
        if not all(is_related(one, text) for one in going):
            raise _Refused("it speaks of something else")
        lossy = [line for line in old if line.text in going and _loses(line.text, text)]
        if lossy:
            self._check_said_anew(text, lossy, edit.sources)
            self._check_spending(len(lossy))
            self._gone += len(lossy)
        line = PageLine(
            section=edit.section,
            text=text,
            sources=tuple(dict.fromkeys((*edit.sources, *(source for line in old for source in line.sources)))),
            importance=max(edit.importance, *(line.importance for line in old)),
            kind=old[0].kind,
            at=max(edit.at, *(line.at for line in old)) or format_timestamp(self._ground.now),
            trust=trust,
        )
        self._worked_in |= {text for text in going if text not in self._sheet.lines}
        there = self._standing(text)
        if there is None or there in going:
            self._write(line, instead_of=going)
            return
        for one in going:
            self._sheet.strike(one)
        self._credit(there, line)

    def _retire(self, edit: Retire) -> None:
        sheet, ground = self._sheet, self._ground
        if edit.line not in sheet:
            raise _Refused("it is not there any more")
        if must_stay(edit.line, ground):
            raise _Refused("it has to stay")
        if edit.line not in sheet.lines:
            self._retire_of_people(edit)
            return
        line = sheet.lines[edit.line]
        if not is_lossless(line):
            if line.importance >= PRECIOUS:
                raise _Refused(f"its importance is {line.importance}")
            if not edit.topic:
                raise _Refused("nothing would point at it")
            self._check_spending(1)
        if not self._spares_bond([line.text]):
            raise _Refused("too little would be left of the Bond")
        if not edit.topic:
            sheet.strike(line.text)
        elif not faded(sheet, line, [pointer_to(edit.topic, keywords=edit.keywords)], ground):
            raise _Refused(f"a search for {shortened(edit.keywords, 80)!r} does not find it")
        self._gone += not is_lossless(line)
        self._retired.append(line)

    def _retire_of_people(self, edit: Retire) -> None:
        sheet, ground = self._sheet, self._ground
        if edit.line not in ground.theirs or sheet.untouched or not is_over(sheet):
            raise _Refused("somebody wrote it")
        if len(self._worked_in) >= share(len(self._people)):
            raise _Refused("enough of what people wrote leaves in this dream")
        line = of_people(edit.line, sheet, ground)
        offered = [pointer_to(edit.topic, keywords=edit.keywords)] if edit.topic else candidates(edit.line)
        if not faded(sheet, line, offered, ground):
            raise _Refused("no search finds it")
        self._worked_in.add(edit.line)
        self._retired.append(line)

    def _line(self, text: str, section: Section) -> str:
        line = one_line(text)
        if not line or len(line) > LONGEST_LINE:
            raise _Refused(f"a line has up to {LONGEST_LINE} characters, not {len(line)}")
        if section is Section.POINTERS or pointed(line):
            raise _Refused("a pointer comes by retiring what it points at")
        return line

    def _own(self, text: str) -> PageLine:
        """A line that dreams may say anew."""
        if text not in self._sheet:
            raise _Refused(f"{shortened(text, 80)!r} is not there any more")
        if (line := self._sheet.lines.get(text)) is not None:
            return line
        if text not in self._ground.seed or self._sheet.untouched:
            raise _Refused(f"somebody wrote {shortened(text, 80)!r}")
        return of_people(text, self._sheet, self._ground)

    def _trust(self, sources: Iterable[str], trust: Trust, section: Section) -> Trust:
        """The least of its sources, each of which there has to be."""
        for source in sources:
            if not self._ground.source_text(source):
                raise _Refused(f"there is no {shortened(source, 80)!r}")
            trust = min(trust, self._ground.source_trust(source))
        if trust <= Trust.DATA and section in ABOUT_PEOPLE:
            raise _Refused(f"{section} is nothing that tools or the web have a say in")
        return trust

    def _check_numbers(self, text: str, sources: Iterable[str], *more: str) -> None:
        if unknown := invented(text, *map(self._ground.source_text, sources), *more):
            raise _Refused(f"no source says {', '.join(unknown)}")

    def _check_said_anew(self, text: str, lossy: Iterable[PageLine], sources: Iterable[str]) -> None:
        """What a line said may go if somebody has said it anew: then this is in the words of that."""
        if not any(quotes(text, self._ground.source_text(source)) for source in sources):
            gone = next((lost(line.text, text) for line in lossy if lost(line.text, text)), ("what it was about",))
            raise _Refused(f"it would lose {', '.join(gone)}")

    def _check_spending(self, lines: int) -> None:
        if self._gone + lines > self._most_gone:
            raise _Refused(f"{self._most_gone} lines leave in this dream, and no more")

    def _spares_bond(self, gone: Sequence[str], put: Sequence[str] = ()) -> bool:
        return spares_bond(self._bond, self._sheet, gone=gone, put=put)

    def _standing(self, text: str) -> str | None:
        """The entry that says this already, whosever it is."""
        there = self._said.get(same(text))
        return there if there in self._sheet else None

    def _credit(self, there: str, line: PageLine) -> None:
        """A line of ours is made of these sources as well. Somebody else's stays as it is, and one about people is not
        made of what tools say."""
        own = self._sheet.lines.get(there)
        if own is not None and own.section in ABOUT_PEOPLE and line.trust <= Trust.DATA:
            heard = tuple(one for one in line.sources if self._ground.source_trust(one) > Trust.DATA)
            line = line._replace(sources=heard, importance=own.importance, trust=own.trust)
        if own is not None:
            more = own._replace(
                sources=tuple(dict.fromkeys((*own.sources, *line.sources))),
                importance=max(own.importance, line.importance),
                at=max(own.at, line.at) if {*line.sources} - {*own.sources} else own.at,
                trust=min(own.trust, line.trust),
            )
            self._sheet.lines[there] = more

    def _write(self, line: PageLine, *, instead_of: Iterable[str] = ()) -> None:
        self._sheet.write(line, instead_of=instead_of)
        self._said[same(line.text)] = line.text


def _loses(old: str, new: str) -> bool:
    return bool(lost(old, new)) or share_kept(old, new) < SHARED


_OF_ITS_OWN = (Section.NICHE, Section.GAPS, Section.SKILLS)
"""Sections with lines that memory works out itself."""

_COUNTED = ("insight", "skill")
"""Kinds of lines whose numbers memory has counted."""

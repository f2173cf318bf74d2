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
from inmind.core.text import shorten
from inmind.documents.notes_page import format_timestamp
from inmind.dreams.page.draft import PageDraft, RewriteContext
from inmind.dreams.page.edits import Add, Edit, Retire, Rewrite
from inmind.dreams.page.eviction import (
    MIN_PROTECTED_IMPORTANCE,
    evict_lines,
    is_lossless,
    is_required,
    is_too_long,
    keeps_bond,
    max_retired,
    user_line,
)
from inmind.dreams.page.fact_checks import (
    MAX_ENTRY_CHARACTERS,
    MIN_SHARED_WORDS,
    contradicts,
    invented_facts,
    is_quote_of,
    is_related,
    lost_facts,
    normalize_line,
    normalize_words,
    shared_word_ratio,
    shares_topic,
)
from inmind.dreams.page.guards import IDENTITY_SECTIONS, PageChange, contains_lines, line_set, run_guards
from inmind.dreams.page.page import render_header, render_page
from inmind.dreams.page.pointers import candidate_pointers, make_pointer, parse_pointer
from inmind.dreams.page.retire import limit_pointers, replace_with_pointer
from inmind.dreams.page.sections import Section

__all__ = ["RewriteContext", "RewriteResult", "rewrite_page"]


@frozen(kw_only=True)
class RewriteResult:
    text: str
    dream_lines: Mapping[str, PageLine]
    """All lines on it that dreams wrote, by their text."""
    changed_lines: tuple[PageLine, ...] = ()
    """Those that are new, or made of something else than before."""
    retired_lines: tuple[PageLine, ...] = ()
    """What has left the page."""
    verdicts: tuple[GuardVerdict, ...] = ()
    refused: tuple[str, ...] = ()
    """What was proposed and not done, each with the reason."""

    @property
    def passed(self) -> bool:
        """May it be committed?"""
        return all(verdict.passed for verdict in self.verdicts)


def rewrite_page(before: str, edits: Sequence[Edit], context: RewriteContext) -> RewriteResult:
    """What becomes of a page by these edits.

    The same of the same, and nothing more of the same twice.
    """
    rewriter = _PageRewriter(before, replace(context, search=cache(context.search)))
    for edit in edits:
        rewriter.apply(edit)
    return rewriter.finish()


class _EditRefused(Exception):
    """An edit that is not carried out, and why."""


class _PageRewriter:
    def __init__(self, before: str, context: RewriteContext) -> None:
        self._before, self._context = before, context
        self._draft = PageDraft(before, context.dream_lines)
        self._user_lines = self._draft.user_lines
        self._bond = self._draft.entries(Section.BOND)
        self._replaced_entries: set[str] = set()
        """People's entries that dreams say from now on, or point at."""
        self._added: set[str] = set()
        self._retired: list[PageLine] = []
        self._refused: list[str] = []
        self._retired_count = 0
        self._max_retired = max_retired(sum(not is_lossless(line) for line in self._draft.dream_lines.values()))
        self._text_by_words = {normalize_words(text): text for text in (*self._user_lines, *self._draft.dream_lines)}

    def apply(self, edit: Edit) -> None:
        try:
            match edit:
                case Add():
                    self._add(edit)
                case Rewrite():
                    self._rewrite(edit)
                case Retire():
                    self._retire(edit)
        except _EditRefused as refused:
            text = edit.line if isinstance(edit, Retire) else edit.text
            self._refused.append(f"{type(edit).__name__.lower()} {shorten(text, 80)!r}: {refused}")

    def finish(self) -> RewriteResult:
        draft, context = self._draft, self._context
        for line in context.required_lines:
            if not any(contains_lines(line.text, line_set(text)) for text in draft):
                draft.write_line(line)
        limit_pointers(draft, context)
        eviction = evict_lines(
            draft,
            self._added,
            context,
            before=self._before,
            bond=self._bond,
            max_leaving=self._max_retired - self._retired_count,
        )
        self._replaced_entries |= {line.text for line in eviction.evicted}
        text = render_page(draft.to_page(render_header(context.now, context.mood)))
        change = PageChange(
            before=self._before,
            after=text,
            dream_lines=draft.dream_lines,
            required_texts=(
                *(text_ for text_ in self._user_lines if text_ not in self._replaced_entries),
                *(line.text for line in context.required_lines),
            ),
            retired_count=self._retired_count,
            max_retired=self._max_retired,
        )
        return RewriteResult(
            text=text,
            dream_lines=dict(draft.dream_lines),
            changed_lines=tuple(
                line for text_, line in draft.dream_lines.items() if context.dream_lines.get(text_) != line
            ),
            retired_lines=(*self._retired, *eviction.evicted),
            verdicts=run_guards(change),
            refused=(*self._refused, *(f"no room for {shorten(line.text, 80)!r}" for line in eviction.not_added)),
        )

    def _add(self, edit: Add) -> None:
        text = self._validate_line(edit.text, edit.section)
        if not edit.sources and edit.section not in _SECTIONS_WITHOUT_SOURCES:
            raise _EditRefused("it does not say what it is made of")
        trust = self._least_trust(edit.sources, edit.trust, edit.section)
        if edit.sources and edit.kind not in _COUNTED_KINDS:
            self._check_invented(edit.text, edit.sources, edit.at)
            sources = [self._context.source_text(source) for source in edit.sources]
            if not shares_topic(edit.text, *sources):
                raise _EditRefused("no source speaks of that")
            if contradicts(edit.text, *sources):
                raise _EditRefused("its sources say the opposite")
        line = PageLine(
            section=edit.section,
            text=text,
            sources=edit.sources,
            importance=edit.importance,
            kind=edit.kind,
            at=edit.at or format_timestamp(self._context.now),
            trust=trust,
        )
        if (existing := self._find_existing(text)) is not None:
            self._add_sources(existing, line)
        else:
            self._write(line)
            self._added.add(text)

    def _rewrite(self, edit: Rewrite) -> None:
        text = self._validate_line(edit.text, edit.section)
        old_lines = [self._find_rewritable(line) for line in dict.fromkeys(edit.lines)]
        if not old_lines:
            raise _EditRefused("it names no line")
        trust = self._least_trust(edit.sources, Trust(min(line.trust for line in old_lines)), edit.section)
        self._check_invented(edit.text, edit.sources, edit.at, *(line.text for line in old_lines))
        replaced = [line.text for line in old_lines]
        if not self._keeps_bond(replaced, [text] if edit.section is Section.BOND else []):
            if not edit.sources:
                raise _EditRefused("too little would be left of the Bond")
            replaced = []  # it stands beside them
        if not all(is_related(text_, text) for text_ in replaced):
            raise _EditRefused("it speaks of something else")
        lossy_lines = [line for line in old_lines if line.text in replaced and _loses_facts(line.text, text)]
        if lossy_lines:
            self._check_lost(text, lossy_lines, edit.sources)
            self._check_retire_limit(len(lossy_lines))
            self._retired_count += len(lossy_lines)
        line = PageLine(
            section=edit.section,
            text=text,
            sources=tuple(dict.fromkeys((*edit.sources, *(source for line in old_lines for source in line.sources)))),
            importance=max(edit.importance, *(line.importance for line in old_lines)),
            kind=old_lines[0].kind,
            at=max(edit.at, *(line.at for line in old_lines)) or format_timestamp(self._context.now),
            trust=trust,
        )
        self._replaced_entries |= {text for text in replaced if text not in self._draft.dream_lines}
        existing = self._find_existing(text)
        if existing is None or existing in replaced:
            self._write(line, instead_of=replaced)
            return
        for text_ in replaced:
            self._draft.remove(text_)
        self._add_sources(existing, line)

    def _retire(self, edit: Retire) -> None:
        draft, context = self._draft, self._context
        if edit.line not in draft:
            raise _EditRefused("it is not there any more")
        if is_required(edit.line, context):
            raise _EditRefused("it has to stay")
        if edit.line not in draft.dream_lines:
            self._retire_user_line(edit)
            return
        line = draft.dream_lines[edit.line]
        if not is_lossless(line):
            if line.importance >= MIN_PROTECTED_IMPORTANCE:
                raise _EditRefused(f"its importance is {line.importance}")
            if not edit.topic:
                raise _EditRefused("nothing would point at it")
            self._check_retire_limit(1)
        if not self._keeps_bond([line.text]):
            raise _EditRefused("too little would be left of the Bond")
        if not edit.topic:
            draft.remove(line.text)
        elif not replace_with_pointer(draft, line, [make_pointer(edit.topic, keywords=edit.keywords)], context):
            raise _EditRefused(f"a search for {shorten(edit.keywords, 80)!r} does not find it")
        self._retired_count += not is_lossless(line)
        self._retired.append(line)

    def _retire_user_line(self, edit: Retire) -> None:
        draft, context = self._draft, self._context
        if edit.line not in context.user_lines or draft.is_unwritten or not is_too_long(draft):
            raise _EditRefused("somebody wrote it")
        if len(self._replaced_entries) >= max_retired(len(self._user_lines)):
            raise _EditRefused("enough of what people wrote leaves in this dream")
        line = user_line(edit.line, draft, context)
        pointers = [make_pointer(edit.topic, keywords=edit.keywords)] if edit.topic else candidate_pointers(edit.line)
        if not replace_with_pointer(draft, line, pointers, context):
            raise _EditRefused("no search finds it")
        self._replaced_entries.add(edit.line)
        self._retired.append(line)

    def _validate_line(self, text: str, section: Section) -> str:
        line = normalize_line(text)
        if not line or len(line) > MAX_ENTRY_CHARACTERS:
            raise _EditRefused(f"a line has up to {MAX_ENTRY_CHARACTERS} characters, not {len(line)}")
        if section is Section.POINTERS or parse_pointer(line):
            raise _EditRefused("a pointer comes by retiring what it points at")
        return line

    def _find_rewritable(self, text: str) -> PageLine:
        """A line that dreams may say anew."""
        if text not in self._draft:
            raise _EditRefused(f"{shorten(text, 80)!r} is not there any more")
        if (line := self._draft.dream_lines.get(text)) is not None:
            return line
        if text not in self._context.adopted_entries or self._draft.is_unwritten:
            raise _EditRefused(f"somebody wrote {shorten(text, 80)!r}")
        return user_line(text, self._draft, self._context)

    def _least_trust(self, sources: Iterable[str], trust: Trust, section: Section) -> Trust:
        """The least of its sources, each of which there has to be."""
        for source in sources:
            if not self._context.source_text(source):
                raise _EditRefused(f"there is no {shorten(source, 80)!r}")
            trust = min(trust, self._context.source_trust(source))
        if trust <= Trust.DATA and section in IDENTITY_SECTIONS:
            raise _EditRefused(f"{section} is nothing that tools or the web have a say in")
        return trust

    def _check_invented(self, text: str, sources: Iterable[str], *more: str) -> None:
        if unknown := invented_facts(text, *map(self._context.source_text, sources), *more):
            raise _EditRefused(f"no source says {', '.join(unknown)}")

    def _check_lost(self, text: str, lossy_lines: Iterable[PageLine], sources: Iterable[str]) -> None:
        """What a line said may go if somebody has said it anew: then this is in the words of that."""
        if not any(is_quote_of(text, self._context.source_text(source)) for source in sources):
            lost = next(
                (lost_facts(line.text, text) for line in lossy_lines if lost_facts(line.text, text)),
                ("what it was about",),
            )
            raise _EditRefused(f"it would lose {', '.join(lost)}")

    def _check_retire_limit(self, lines: int) -> None:
        if self._retired_count + lines > self._max_retired:
            raise _EditRefused(f"{self._max_retired} lines leave in this dream, and no more")

    def _keeps_bond(self, removed: Sequence[str], added: Sequence[str] = ()) -> bool:
        return keeps_bond(self._bond, self._draft, removed=removed, added=added)

    def _find_existing(self, text: str) -> str | None:
        """The entry that says this already, whosever it is."""
        existing = self._text_by_words.get(normalize_words(text))
        return existing if existing in self._draft else None

    def _add_sources(self, text: str, line: PageLine) -> None:
        """A line of ours is made of these sources as well.

        Somebody else's stays as it is, and one about people is not
        made of what tools say."""
        dream_line = self._draft.dream_lines.get(text)
        if dream_line is not None and dream_line.section in IDENTITY_SECTIONS and line.trust <= Trust.DATA:
            sources = tuple(source for source in line.sources if self._context.source_trust(source) > Trust.DATA)
            line = line._replace(sources=sources, importance=dream_line.importance, trust=dream_line.trust)
        if dream_line is not None:
            updated = dream_line._replace(
                sources=tuple(dict.fromkeys((*dream_line.sources, *line.sources))),
                importance=max(dream_line.importance, line.importance),
                at=max(dream_line.at, line.at) if {*line.sources} - {*dream_line.sources} else dream_line.at,
                trust=min(dream_line.trust, line.trust),
            )
            self._draft.dream_lines[text] = updated

    def _write(self, line: PageLine, *, instead_of: Iterable[str] = ()) -> None:
        self._draft.write_line(line, instead_of=instead_of)
        self._text_by_words[normalize_words(line.text)] = line.text


def _loses_facts(old: str, new: str) -> bool:
    return bool(lost_facts(old, new)) or shared_word_ratio(old, new) < MIN_SHARED_WORDS


_SECTIONS_WITHOUT_SOURCES = (Section.NICHE, Section.GAPS, Section.SKILLS)
"""Sections with lines that memory works out itself."""

_COUNTED_KINDS = ("insight", "skill")
"""Kinds of lines whose numbers memory has counted."""

"""Apply a dream's edits to MEMORY.md, each checked separately, then run the guards.

A proposal may be minutes old, the page may have been edited since, and a model may invent things. An edit is applied
only if its lines are still there and it loses nothing that is not stored elsewhere. Other edits are not affected by a
refused one. A pointer replaces a line only after a search with it found the sources of the line.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache

from inmind.core.events.base import Trust
from inmind.core.events.dreams import GuardVerdict, PageLine
from inmind.core.fair_turns import giving_way
from inmind.core.frozen import frozen
from inmind.core.text import shorten
from inmind.documents.notes_page import format_timestamp
from inmind.dreams.page.draft import PageDraft, RewriteContext
from inmind.dreams.page.edits import (
    MAX_ENTRY_CHARACTERS,
    MIN_SHARED_WORDS,
    Add,
    Edit,
    Retire,
    Rewrite,
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
from inmind.dreams.page.eviction import (
    MIN_PROTECTED_IMPORTANCE,
    evict_lines,
    is_lossless,
    is_required,
    keeps_bond,
    limit_pointers,
    max_retired,
    replace_with_pointer,
    user_line,
)
from inmind.dreams.page.guards import IDENTITY_SECTIONS, contains_lines, line_set, run_guards
from inmind.dreams.page.page import Section, render_header, render_page
from inmind.dreams.page.pointers import make_pointer, parse_pointer


@frozen(kw_only=True)
class RewriteResult:
    """The rewritten page and the verdicts of the guards."""

    text: str
    dream_lines: Mapping[str, PageLine]
    """All lines on it that dreams wrote, by their text."""
    changed_lines: tuple[PageLine, ...] = ()
    """Lines that are new or have new sources."""
    retired_lines: tuple[PageLine, ...] = ()
    """Lines that were removed from the page."""
    verdicts: tuple[GuardVerdict, ...] = ()
    refused: tuple[str, ...] = ()
    """Edits that were not applied, each with the reason."""

    @property
    def passed(self) -> bool:
        """True if all guards passed, so that it may be committed."""
        return all(verdict.passed for verdict in self.verdicts)


def rewrite_page(before: str, edits: Sequence[Edit], context: RewriteContext) -> RewriteResult:
    """The page after these edits.

    The result is deterministic, and applying the same edits twice changes nothing more.
    """
    rewriter = _PageRewriter(before, replace(context, search=cache(context.search)))
    for edit in giving_way(edits):
        rewriter.apply(edit)
    return rewriter.finish()


class _EditRefused(Exception):
    """An edit that is not applied; the message is the reason."""


class _PageRewriter:
    """Applies edits to one page."""

    def __init__(self, before: str, context: RewriteContext) -> None:
        self._before, self._context = before, context
        self._draft = PageDraft(before, context.dream_lines)
        self._user_lines = self._draft.user_lines
        self._bond = self._draft.entries(Section.BOND)
        self._replaced_entries: set[str] = set()
        """Entries of users that dreams have rewritten or replaced with a pointer."""
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
            operation = "add" if isinstance(edit, Add) else type(edit).__name__.lower()
            text = edit.line if isinstance(edit, Retire) else edit.text
            self._refused.append(f"{operation} {shorten(text, 80)!r}: {refused}")

    def finish(self) -> RewriteResult:
        draft, context = self._draft, self._context
        for line in context.required_lines:
            if not any(contains_lines(line.text, line_set(text)) for text in draft):
                draft.write_line(line)
        limit_pointers(draft, context)
        evicted, not_added = evict_lines(
            draft,
            self._added,
            context,
            before=self._before,
            bond=self._bond,
            max_evicted=self._max_retired - self._retired_count,
        )
        self._replaced_entries |= {line.text for line in evicted}
        text = render_page(draft.to_page(render_header(context.now, context.mood)))
        user_lines = (line for line in self._user_lines if line not in self._replaced_entries)
        verdicts = run_guards(
            self._before,
            text,
            draft.dream_lines,
            required_texts=(*user_lines, *(line.text for line in context.required_lines)),
            retired_count=self._retired_count,
            max_retired=self._max_retired,
        )
        return RewriteResult(
            text=text,
            dream_lines=dict(draft.dream_lines),
            changed_lines=tuple(
                line for text_, line in draft.dream_lines.items() if context.dream_lines.get(text_) != line
            ),
            retired_lines=(*self._retired, *evicted),
            verdicts=tuple(verdicts),
            refused=(*self._refused, *(f"no room for {shorten(line.text, 80)!r}" for line in not_added)),
        )

    def _add(self, edit: Add) -> None:
        text = self._validate_line(edit.text, edit.section)
        if not edit.sources and edit.section not in _SECTIONS_WITHOUT_SOURCES:
            raise _EditRefused("it has no sources")
        trust = self._least_trust(edit.sources, Trust(edit.trust), edit.section)
        if edit.sources and edit.kind not in _COUNTED_KINDS:
            self._check_invented(edit.text, edit.sources, edit.at)
            sources = [self._context.source_text(source) for source in edit.sources]
            if not shares_topic(edit.text, *sources):
                raise _EditRefused("no source is about this topic")
            if contradicts(edit.text, *sources):
                raise _EditRefused("it contradicts its sources")
        line = edit._replace(text=text, at=edit.at or format_timestamp(self._context.now), trust=trust)
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
        if not keeps_bond(
            self._bond, self._draft, removed=replaced, added=[text] if edit.section is Section.BOND else []
        ):
            if not edit.sources:
                raise _EditRefused("too little of The Bond would remain")
            replaced = []  # the old lines stay
        if not all(is_related(text_, text) for text_ in replaced):
            raise _EditRefused("it is about another topic")
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
            raise _EditRefused("it is no longer on the page")
        if is_required(edit.line, context):
            raise _EditRefused("it is required")
        if edit.line not in draft.dream_lines:
            raise _EditRefused("a user wrote it")
        line = draft.dream_lines[edit.line]
        if not is_lossless(line):
            if line.importance >= MIN_PROTECTED_IMPORTANCE:
                raise _EditRefused(f"its importance is {line.importance}")
            if not edit.topic:
                raise _EditRefused("it needs a pointer")
            self._check_retire_limit(1)
        if not keeps_bond(self._bond, draft, removed=[line.text]):
            raise _EditRefused("too little of The Bond would remain")
        if not edit.topic:
            draft.remove(line.text)
        elif not replace_with_pointer(draft, line, [make_pointer(edit.topic, keywords=edit.keywords)], context):
            raise _EditRefused(f"a search for {shorten(edit.keywords, 80)!r} does not find it")
        self._retired_count += not is_lossless(line)
        self._retired.append(line)

    def _validate_line(self, text: str, section: str) -> str:
        line = normalize_line(text)
        if not line or len(line) > MAX_ENTRY_CHARACTERS:
            raise _EditRefused(f"a line has up to {MAX_ENTRY_CHARACTERS} characters, not {len(line)}")
        if section == Section.POINTERS or parse_pointer(line):
            raise _EditRefused("a pointer is created by retiring a line")
        return line

    def _find_rewritable(self, text: str) -> PageLine:
        """The line to rewrite: of a dream, or an adopted entry."""
        if text not in self._draft:
            raise _EditRefused(f"{shorten(text, 80)!r} is no longer on the page")
        if (line := self._draft.dream_lines.get(text)) is not None:
            return line
        if text not in self._context.adopted_entries or self._draft.is_unwritten:
            raise _EditRefused(f"a user wrote {shorten(text, 80)!r}")
        return user_line(text, self._draft, self._context)

    def _least_trust(self, sources: Iterable[str], trust: Trust, section: str) -> Trust:
        """The lowest trust among the sources. Each source must exist."""
        for source in sources:
            if not self._context.source_text(source):
                raise _EditRefused(f"unknown source {shorten(source, 80)!r}")
            trust = min(trust, self._context.source_trust(source))
        if trust <= Trust.DATA and section in IDENTITY_SECTIONS:
            raise _EditRefused(f"{section} must not contain text from tools or the web")
        return trust

    def _check_invented(self, text: str, sources: Iterable[str], *more: str) -> None:
        if unknown := invented_facts(text, *map(self._context.source_text, sources), *more):
            raise _EditRefused(f"not in any source: {', '.join(unknown)}")

    def _check_lost(self, text: str, lossy_lines: Iterable[PageLine], sources: Iterable[str]) -> None:
        """A line may lose facts only if the new text quotes a source that replaces them."""
        if not any(is_quote_of(text, self._context.source_text(source)) for source in sources):
            lost = next(
                (lost_facts(line.text, text) for line in lossy_lines if lost_facts(line.text, text)),
                ("its topic",),
            )
            raise _EditRefused(f"it would lose {', '.join(lost)}")

    def _check_retire_limit(self, lines: int) -> None:
        if self._retired_count + lines > self._max_retired:
            raise _EditRefused(f"{self._max_retired} lines may leave in one dream")

    def _find_existing(self, text: str) -> str | None:
        """The entry with the same words, of a dream or a user."""
        existing = self._text_by_words.get(normalize_words(text))
        return existing if existing in self._draft else None

    def _add_sources(self, text: str, line: PageLine) -> None:
        """Add sources to an existing line of a dream.

        Entries of users stay as they are, and lines about people get no sources from tools.
        """
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
"""Sections with derived lines, which need no sources."""

_COUNTED_KINDS = ("insight", "skill")
"""Kinds of lines with counted numbers, which are in no source."""

"""`inmind undo`, and a summary of its effects."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict

from inmind.apps.cli.console import json_option, open_existing_session, print_json, print_text, session_argument
from inmind.core.frozen import frozen
from inmind.core.text import count_noun
from inmind.history.compaction.build import CompactionUndoReport
from inmind.session.state import SessionState


@session_argument
@json_option
def undo(session: str, as_json: bool) -> None:
    """Undo the last change of a session.

    That may be a compaction; the change stays in the journal.
    """
    with open_existing_session(session) as opened:
        before = opened.state
        reverted_to, after = opened.undo(), opened.state
        summary = _UndoSummary.of(before, after)
        if as_json:
            return print_json({"reverted_to": reverted_to, "version": after.seq, **asdict(summary)})
        print_text(f"Undone: events {reverted_to + 1} to {before.seq}. The undo itself is event {after.seq}.")
        for line in summary.describe():
            print_text(line)
    return None


@frozen(kw_only=True)
class _UndoSummary:
    """Visible effects of an undo: compactions, messages and pages."""

    sent_again: tuple[CompactionUndoReport, ...]
    """Compactions that were undone."""
    archived_again: tuple[CompactionUndoReport, ...]
    """Compactions that are active again."""
    messages: int
    """Number of messages removed from the conversation."""
    as_before: tuple[str, ...]
    """Pages restored to their earlier text, without archive pages of `sent_again`."""
    removed: tuple[str, ...]
    """Pages that did not exist before."""

    @classmethod
    def of(cls, before: SessionState, after: SessionState) -> _UndoSummary:
        pages = after.documents.by_path
        compactions_before, compactions_after = (
            {one.seq: one.payload for one in state.history.compactions} for state in (before, after)
        )
        undone = sorted(compactions_before.keys() - compactions_after.keys())
        reported = {path for seq in undone for path in compactions_before[seq].archives}
        changed = [path for path, page in sorted(before.documents.by_path.items()) if page != pages.get(path)]
        return cls(
            sent_again=tuple(
                CompactionUndoReport.of(
                    seq,
                    compactions_before[seq],
                    [path for path in compactions_before[seq].archives if path not in pages],
                )
                for seq in undone
            ),
            archived_again=tuple(
                CompactionUndoReport.of(seq, compactions_after[seq], ())
                for seq in sorted(compactions_after.keys() - compactions_before.keys())
            ),
            messages=len({entry.id for entry in before.conversation} - {entry.id for entry in after.conversation}),
            as_before=tuple(path for path in changed if path in pages and path not in reported),
            removed=tuple(path for path in changed if path not in pages and path not in reported),
        )

    def describe(self) -> Iterator[str]:
        yield from map(str, self.sent_again)
        for one in self.archived_again:
            yield f"Archived again: {count_noun(one.messages, 'message')}, in {', '.join(one.stay)}."
        if self.messages:
            yield f"Removed from the conversation: {count_noun(self.messages, 'message')}."
        if pages := sorted((*self.as_before, *(f"{path} (removed)" for path in self.removed))):
            yield f"Restored: {', '.join(pages)}."

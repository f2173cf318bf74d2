"""`inmind undo`, and what became of the session by it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict

from inmind.apps.cli.console import AsJson, SessionId, existing_session, print_json, say
from inmind.core.frozen import frozen
from inmind.core.text import counted
from inmind.history.compaction.report import Lifted
from inmind.session.state import SessionState


def undo(session: SessionId, as_json: AsJson = False) -> None:
    """Take back the last change of a session. Be it a compaction; it stays in the journal."""
    with existing_session(session) as opened:
        before = opened.mind
        went_to, after = opened.undo(), opened.mind
        taken = _TakenBack.of(before, after)
        if as_json:
            return print_json({"reverted_to": went_to, "version": after.seq, **asdict(taken)})
        say(f"Back to how it was after event {went_to}; the reversal is event {after.seq}.")
        for line in taken.told():
            say(line)
    return None


@frozen(kw_only=True)
class _TakenBack:
    """What an undo has changed, as far as a person would look for it: what is sent, what was said, the pages."""

    sent_again: tuple[Lifted, ...]
    """Compactions that are no longer in force."""
    archived_again: tuple[Lifted, ...]
    """Those that are again."""
    messages: int
    """Messages that are no longer in the conversation."""
    as_before: tuple[str, ...]
    """Pages that read as they did; those of the compactions are told there."""
    removed: tuple[str, ...]
    """Pages that there were not."""

    @classmethod
    def of(cls, before: SessionState, after: SessionState) -> _TakenBack:
        pages = after.documents.by_path
        then, now = ({one.seq: one.what for one in mind.history.compactions} for mind in (before, after))
        lifted = sorted(then.keys() - now.keys())
        told = {path for seq in lifted for path in then[seq].archives}
        changed = [path for path, page in sorted(before.documents.by_path.items()) if page != pages.get(path)]
        return cls(
            sent_again=tuple(
                Lifted.of(seq, then[seq], [path for path in then[seq].archives if path not in pages]) for seq in lifted
            ),
            archived_again=tuple(Lifted.of(seq, now[seq], ()) for seq in sorted(now.keys() - then.keys())),
            messages=len({entry.id for entry in before.line} - {entry.id for entry in after.line}),
            as_before=tuple(path for path in changed if path in pages and path not in told),
            removed=tuple(path for path in changed if path not in pages and path not in told),
        )

    def told(self) -> Iterator[str]:
        yield from map(str, self.sent_again)
        for one in self.archived_again:
            yield f"Archived again: {counted(one.messages, 'message')}, in {', '.join(one.stay)}."
        if self.messages:
            yield f"No longer in the conversation: {counted(self.messages, 'message')}."
        if pages := sorted((*self.as_before, *(f"{path} (removed)" for path in self.removed))):
            yield f"As before: {', '.join(pages)}."

"""Commands about sessions and pages: sessions, search, note, edit, compact and undo."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from inmind.apps.cli.console import (
    CommandResult,
    check_exists,
    choice_option,
    collapse_whitespace,
    complete_choices,
    get_session,
    last_used_session,
    open_existing_memory,
    prints_result,
    progress_bar,
    resource_option,
    session_command,
    session_option,
    table,
)
from inmind.apps.cli.exit_codes import exit_with
from inmind.apps.signals import handle_signals
from inmind.core.events.base import Origin
from inmind.core.paths import CONFIG, INDEX
from inmind.core.settings import SOURCES, Settings
from inmind.core.text import count_noun
from inmind.documents.document import MAX_DOCUMENT_BYTES, MEMORY_PAGE_PATH, NOTES_PAGE_PATH, OVERVIEW_PATH
from inmind.documents.notes_page import format_timestamp
from inmind.errors import Conflict, InmindError, InvalidInput
from inmind.history.compaction.policy import STRATEGIES, CompactionReport, CompactionUndoReport, KeptItem
from inmind.history.compaction.select import DEFAULT_KEEP_RECENT, TARGETS
from inmind.memory.documents import SETTINGS_PATHS, Page
from inmind.memory.memory import Memory
from inmind.search.crystal import KINDS
from inmind.search.note import DEFAULT_IMPORTANCE
from inmind.search.query import Hit
from inmind.search.render import render_hits
from inmind.session.session import Session
from inmind.session.state import SessionState

STDIN = "-"

DEFAULT_EDITOR = "vi"
"""Used if neither $VISUAL nor $EDITOR is set."""

complete_paths = complete_choices((OVERVIEW_PATH, MEMORY_PAGE_PATH, NOTES_PAGE_PATH, CONFIG, "detail/", "archive/"))


@click.option("--here", is_flag=True, help="Only sessions started in the current folder.")
@resource_option
@click.option("--limit", type=int, metavar="N", help="Maximum number of sessions.")
@prints_result
def sessions(here: bool, resource: str | None, limit: int | None) -> CommandResult:
    """List the sessions, most recently used first."""
    with open_existing_memory() as memory:
        check_exists(memory, resource=resource)
        infos = memory.sessions(cwd="." if here else None, resource=resource, limit=limit)
    if not infos and (here or resource):
        return infos, f"No matching sessions in {memory.location}."
    if not infos:
        return infos, f"No sessions in {memory.location} yet."
    from rich.table import Column

    title, cwd = (Column(name, no_wrap=True, ratio=share) for name, share in (("title", 2), ("working directory", 1)))
    columns = ("session", title, "resource", "msgs", "calls", "last used (UTC)", cwd)
    rows = (
        (info.id, info.title, info.resource, info.messages, info.calls, info.updated[:16].replace("T", " "), info.cwd)
        for info in infos
    )
    return infos, [table(columns, rows, wide=True, expand=True)]


@click.argument("query", help="A question, or a few words.")
@click.option("--limit", default=10, help="Maximum number of hits.")
@resource_option
@session_option
@choice_option("--kind", "kinds", choices=KINDS, multiple=True, help="Only entries of this kind.")
@choice_option("--source", "sources", choices=SOURCES, multiple=True, help="Only from this source.")
@click.option("--since", metavar="DAY", help="Only since this day or time.")
@click.option("--until", metavar="DAY", help="Only until this day or time.")
@click.option("--as-of", metavar="DAY", help="What was known on this date.")
@prints_result
def search(
    query: str,
    resource: str | None,
    session: str | None,
    kinds: tuple[str, ...],
    sources: tuple[str, ...],
    **filters: Any,
) -> CommandResult:
    """Search everything that was said, noted or seen."""
    with open_existing_memory() as memory:
        check_exists(memory, session=session, resource=resource)
        is_indexed = memory.home is None or (memory.home / INDEX).exists()
        with nullcontext() if is_indexed else progress_bar("indexing"):  # of the whole journal
            scope = memory if resource is None else memory.resource(resource)
            hits = scope.search(query, session=session, kinds=kinds or None, sources=sources or None, **filters)
    return map(_hit_json, hits), render_hits(hits) if hits else "No hits."


def _hit_json(hit: Hit) -> dict[str, Any]:
    crystal = hit.crystal
    as_is = ("kind", "source", "resource", "session", "path", "speaker", "importance", "lifecycle", "superseded_by")
    return {
        "id": crystal.id,
        "score": hit.score,
        "parts": dict(hit.parts),
        "text": hit.passage,
        "before": hit.before,
        "after": hit.after,
        **{name: getattr(crystal, name) for name in as_is},
        "origin": crystal.origin.value,
        "trust": crystal.trust.name.lower(),
        "at": crystal.at.isoformat(),
    }


@click.argument("text", help="Text of the note; - reads it from stdin.")
@click.option("--importance", default=DEFAULT_IMPORTANCE, help="From 0 to 1.")
@choice_option("--kind", choices=KINDS, default="general", help="Kind of the note.")
@session_option
@resource_option
@prints_result
def note(text: str, importance: float, kind: str, session: str | None, resource: str | None) -> CommandResult:
    """Save a note.

    Without --session or --resource, it is saved for the session last used in this folder.
    """
    if session is not None and resource is not None:
        raise InvalidInput(field="--resource", value=resource, expected="no --session: the two cannot be combined")
    with open_existing_memory(embedder=None, create=resource is not None) as memory:
        if resource is not None:  # it need not have sessions yet
            owner = memory.resource(resource)
        else:
            owner = get_session(memory, session or last_used_session(memory))
            resource = owner.resource
        if text == STDIN:
            text = _decode(sys.stdin.buffer.read(), "TEXT").removesuffix("\n")
        saved = owner.note(text, importance=importance, kind=kind, origin=Origin.USER)
    data = {"id": saved.id, "at": saved.date.isoformat(), "resource": resource}
    return data, f"Saved at {format_timestamp(saved.date)} as {saved.id}."


@click.argument(
    "path",
    help=f"{OVERVIEW_PATH}, detail/…, archive/…, {MEMORY_PAGE_PATH}, {NOTES_PAGE_PATH} or {CONFIG}.",
    shell_complete=complete_paths,
)
@session_option
@resource_option
@click.option("--from", "source", metavar="FILE", help="Read the new text from FILE; - is stdin.")
@prints_result
def edit(path: str, session: str | None, resource: str | None, source: str | None) -> CommandResult:
    """Edit a page or config.toml in $EDITOR.

    If stdin is a pipe, the new text is read from it. Without --session or --resource, edits a page of the session last
    used in this folder. If another process changed the page, nothing is overwritten; your text is kept in a file, and
    its path is printed.
    """
    with _open_memory(path, resource) as memory:
        check_exists(memory, session=session)
        is_new = resource is not None and not memory.has_resource(resource)
        page = read_page(memory, path, session, resource)
    draft: Path | None = None
    if source is None and sys.stdin.isatty():
        draft = _write_draft(page, page.text)
        text = _edit_in_editor(page, draft)
    else:
        text = _read_source(source or STDIN)
    if text.strip() == "":
        raise InvalidInput(field=page.path, expected="a text that is not empty; nothing was written")
    try:
        with _open_memory(path, resource) as memory:
            edited = memory.edit(page, text)
    except InmindError as error:
        places = f"your text is in {draft or _write_draft(page, text)}"
        if isinstance(error, Conflict) and error.theirs is not None:
            places += f", the other version in {_write_draft(page, error.theirs)}"
        exit_with(error.code, f"{error}; {places}")
    if draft is not None:
        shutil.rmtree(draft.parent, ignore_errors=True)
    changed = edited.text != page.text
    suffix = f" {resource} is a new resource." if is_new else ""
    message = f"{page.path} was saved.{suffix}" if changed else "Unchanged: nothing was written."
    return {"path": page.path, "version": edited.version, "changed": changed}, message


def read_page(memory: Memory, path: str, session: str | None, resource: str | None) -> Page:
    """A page of the named owner; by default, of the session last used in the current folder."""
    is_named = session is not None or resource is not None or path in SETTINGS_PATHS
    return memory.page(path, session=session if is_named else last_used_session(memory), resource=resource)


def _open_memory(path: str, resource: str | None) -> AbstractContextManager[Memory]:
    """Open the memory; create it for config.toml or a named resource.

    For config.toml the default settings are used, because the existing ones may be the text to repair.
    """
    settings = Settings() if path in SETTINGS_PATHS else None
    return open_existing_memory(settings, embedder=None, create=settings is not None or resource is not None)


def _edit_in_editor(page: Page, draft: Path) -> str:
    """Run the editor on a private file, which stays there unless its text is written."""
    editor = shlex.split(os.environ.get("VISUAL") or os.environ.get("EDITOR") or DEFAULT_EDITOR)
    try:
        # Ctrl-C goes to the editor, which owns the terminal.
        with handle_signals(lambda _number, _frame: None, signal.SIGINT):
            status = subprocess.Popen([*editor, str(draft)]).wait()  # noqa: S603 -- the user chose the editor
    except OSError as error:
        shutil.rmtree(draft.parent, ignore_errors=True)
        expected = f"an editor that can be run ({error.strerror})"
        raise InvalidInput(field="$EDITOR", value=shlex.join(editor), expected=expected) from error
    if status:
        exit_with("FAILED", f"{shlex.join(editor)} exited with {status}: nothing was written; your text is in {draft}")
    text = _decode(draft.read_bytes(), str(draft))
    return page.text if text == f"{page.text}\n" else text  # most editors add a final newline


def _read_source(source: str) -> str:
    try:
        with click.open_file(source, "rb") as opened:
            return _decode(opened.read(MAX_DOCUMENT_BYTES + 1), "stdin" if source == STDIN else source)
    except OSError as error:
        expected = f"a file that can be read ({error.strerror})"
        raise InvalidInput(field="--from", value=source, expected=expected) from error


def _decode(data: bytes, place: str) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise InvalidInput(field=place, value=str(error), expected="text in UTF-8") from error


def _write_draft(page: Page, text: str) -> Path:
    folder = Path(tempfile.mkdtemp(prefix="inmind-edit-"))  # readable only by the owner
    file = folder / page.path.rpartition("/")[2]
    file.write_bytes(text.encode())
    return file


@choice_option("--target", choices=TARGETS, default="all", help="What to archive: turns, tool outputs, or all.")
@choice_option("--strategy", choices=STRATEGIES, default="archive", help="archive (pointer only) or summarize.")
@click.option(
    "--keep-recent", default=DEFAULT_KEEP_RECENT, help="How many recent turns, rounds and tool outputs to keep."
)
@click.option("--archive-to", metavar="PATH", help="Target page: archive/<name>.md or detail/<name>.md.")
@click.option("--undo", is_flag=True, help="Undo the last compaction instead.")
@session_command
def compact(session: Session, target: str, undo: bool, **options: Any) -> CommandResult:
    """Archive old messages of a session.

    They are no longer sent to the model; --undo restores them.
    """
    if undo:
        _check_undo_alone(click.get_current_context())
        undone = session.undo_compaction()
        return {**asdict(undone), "version": session.state.seq}, str(undone)
    report = session.compact(target, **options)
    return {**compaction_json(report), "version": session.state.seq}, describe_compaction(report)


def _check_undo_alone(context: click.Context) -> None:
    """Reject options that have no effect together with --undo."""
    for name in ("target", "strategy", "keep_recent", "archive_to"):
        source = context.get_parameter_source(name)
        if source is not None and source.name != "DEFAULT":
            field, expected = f"--{name.replace('_', '-')}", "no --undo: the two cannot be combined"
            raise InvalidInput(field=field, value=context.params[name], expected=expected)


def describe_compaction(report: CompactionReport) -> Iterator[str]:
    yield str(report)
    yield from describe_items(report.items)
    for item in report.left_out:
        yield f"- {item.kind}, only in the archive: {collapse_whitespace(item.text)}"


def describe_items(items: Sequence[KeptItem]) -> Iterator[str]:
    for item in items:
        place = "in memory" if item.location == "memory" else "in the conversation"
        yield f"- {item.kind}, {place}: {collapse_whitespace(item.text)}"


def compaction_json(report: CompactionReport) -> dict[str, Any]:
    return {**asdict(report), "left_out": [item._asdict() for item in report.left_out]}


@session_command
def undo(session: Session) -> CommandResult:
    """Undo the last change of a session.

    That may be a compaction; the change stays in the journal.
    """
    before = session.state
    reverted_to, after = session.undo(), session.state
    effects = _undo_effects(before, after)
    first = f"Undone: events {reverted_to + 1} to {before.seq}. The undo itself is event {after.seq}."
    return {"reverted_to": reverted_to, "version": after.seq, **effects}, [first, *_describe_effects(**effects)]


def _undo_effects(before: SessionState, after: SessionState) -> dict[str, Any]:
    """Compactions that are undone or active again, removed messages, and changed pages.

    Pages do not include the archives of an undone compaction.
    """
    pages = after.documents.by_path
    compacted, compacted_after = (
        {one.seq: one.payload for one in state.history.compactions} for state in (before, after)
    )
    undone = sorted(compacted.keys() - compacted_after.keys())
    reported = {path for seq in undone for path in compacted[seq].archives}
    changed = [path for path, page in sorted(before.documents.by_path.items()) if page != pages.get(path)]
    sent_again = [
        CompactionUndoReport.of(seq, compacted[seq], [path for path in compacted[seq].archives if path not in pages])
        for seq in undone
    ]
    archived_again = [
        CompactionUndoReport.of(seq, compacted_after[seq], ())
        for seq in sorted(compacted_after.keys() - compacted.keys())
    ]
    return {
        "sent_again": sent_again,
        "archived_again": archived_again,
        "messages": len({entry.id for entry in before.conversation} - {entry.id for entry in after.conversation}),
        "as_before": [path for path in changed if path in pages and path not in reported],
        "removed": [path for path in changed if path not in pages and path not in reported],
    }


def _describe_effects(
    sent_again: Sequence[CompactionUndoReport],
    archived_again: Sequence[CompactionUndoReport],
    messages: int,
    as_before: Sequence[str],
    removed: Sequence[str],
) -> Iterator[str]:
    yield from map(str, sent_again)
    for one in archived_again:
        yield f"Archived again: {count_noun(one.messages, 'message')}, in {', '.join(one.stay)}."
    if messages:
        yield f"Removed from the conversation: {count_noun(messages, 'message')}."
    if pages := sorted((*as_before, *(f"{path} (removed)" for path in removed))):
        yield f"Restored: {', '.join(pages)}."

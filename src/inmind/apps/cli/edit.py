"""`inmind edit`: edit a page in an editor; a concurrent change is never overwritten."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
from contextlib import AbstractContextManager
from pathlib import Path

import click

from inmind.apps.cli.console import (
    CommandResult,
    check_exists,
    complete_choices,
    last_used_session,
    open_existing_memory,
    prints_result,
    resource_option,
    selected_place,
    session_option,
)
from inmind.apps.cli.exit_codes import exit_with
from inmind.core.paths import CONFIG
from inmind.core.settings import Settings
from inmind.documents.document import MAX_DOCUMENT_BYTES, MEMORY_PAGE_PATH, NOTES_PAGE_PATH, OVERVIEW_PATH
from inmind.errors import Conflict, InmindError, InvalidInput
from inmind.memory.documents import SETTINGS_PATHS, Page
from inmind.memory.memory import Memory

STDIN = "-"

DEFAULT_EDITOR = "vi"
"""Used if neither $VISUAL nor $EDITOR is set."""


complete_paths = complete_choices((OVERVIEW_PATH, MEMORY_PAGE_PATH, NOTES_PAGE_PATH, CONFIG, "detail/", "archive/"))


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
    if path in SETTINGS_PATHS or resource is not None:
        return Memory.open(selected_place(), settings=settings, embedder=None)
    return open_existing_memory(settings, embedder=None)


def _edit_in_editor(page: Page, draft: Path) -> str:
    """Run the editor on a private file, which stays there unless its text is written."""
    editor = shlex.split(os.environ.get("VISUAL") or os.environ.get("EDITOR") or DEFAULT_EDITOR)
    try:
        status = _run_editor([*editor, str(draft)])
    except OSError as error:
        shutil.rmtree(draft.parent, ignore_errors=True)
        expected = f"an editor that can be run ({error.strerror})"
        raise InvalidInput(field="$EDITOR", value=shlex.join(editor), expected=expected) from error
    if status:
        exit_with("FAILED", f"{shlex.join(editor)} exited with {status}: nothing was written; your text is in {draft}")
    text = _decode(draft.read_bytes(), str(draft))
    return page.text if text == f"{page.text}\n" else text  # most editors add a final newline


def _run_editor(command: list[str]) -> int:
    """Run the editor and return its exit status.

    Ctrl-C goes to the editor, which owns the terminal.
    """
    editor = subprocess.Popen(command)  # noqa: S603 -- the user chose the editor
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        return editor.wait()
    finally:
        signal.signal(signal.SIGINT, before)


def _read_source(source: str) -> str:
    if source == STDIN:
        return _decode(sys.stdin.buffer.read(MAX_DOCUMENT_BYTES + 1), "stdin")
    try:
        with Path(source).open("rb") as opened:
            return _decode(opened.read(MAX_DOCUMENT_BYTES + 1), source)
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

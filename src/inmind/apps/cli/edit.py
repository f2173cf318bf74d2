"""`inmind edit`: edit a page in an editor; a concurrent change is never overwritten."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import click

from inmind.apps.cli.console import (
    check_exists,
    complete_choices,
    json_option,
    open_existing_memory,
    print_json,
    print_text,
    resource_option,
    selected_place,
    session_option,
)
from inmind.apps.cli.exit_codes import exit_with
from inmind.apps.cli.note import last_used_session
from inmind.core.frozen import frozen
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
@json_option
def edit(path: str, session: str | None, resource: str | None, source: str | None, as_json: bool) -> None:
    """Edit a page or config.toml in $EDITOR.

    If stdin is a pipe, the new text is read from it. Without --session or --resource, edits a page of the session last
    used in this folder. If another process changed the page, nothing is overwritten; your text is kept in a file, and
    its path is printed.
    """
    with _open_memory(path, resource) as memory:
        check_exists(memory, session=session)
        is_new = resource is not None and not memory.has_resource(resource)
        is_named = session is not None or resource is not None or path in SETTINGS_PATHS
        page = memory.page(path, session=session if is_named else last_used_session(memory), resource=resource)
    in_editor = source is None and sys.stdin.isatty()
    new = _edit_in_editor(page) if in_editor else _read_source(source or STDIN)
    if new.text.strip() == "":
        raise InvalidInput(field=page.path, expected="a text that is not empty; nothing was written")
    try:
        with _open_memory(path, resource) as memory:
            edited = memory.edit(page, new.text)
    except InmindError as error:
        exit_with(error.code, f"{error}; {_keep_draft(page, new, error)}")
    if in_editor and new.file is not None:
        shutil.rmtree(new.file.parent, ignore_errors=True)
    changed = edited.text != page.text
    if as_json:
        return print_json({"path": page.path, "version": edited.version, "changed": changed})
    suffix = f" {resource} is a new resource." if is_new else ""
    print_text(f"{page.path} was saved.{suffix}" if changed else "Unchanged: nothing was written.")
    return None


@frozen(kw_only=True)
class _NewText:
    """The text to write."""

    text: str
    file: Path | None
    """File that holds it; None if it was read from stdin."""


@contextmanager
def _open_memory(path: str, resource: str | None) -> Generator[Memory]:
    """Open the memory; create it for config.toml or a named resource.

    For config.toml the default settings are used, because the existing ones may be the text to repair.
    """
    settings = Settings() if path in SETTINGS_PATHS else None
    if path in SETTINGS_PATHS or resource is not None:
        with Memory.open(selected_place(), settings=settings, embedder=None) as memory:
            yield memory
    else:
        with open_existing_memory(settings, embedder=None) as memory:
            yield memory


def _edit_in_editor(page: Page) -> _NewText:
    """Run the editor on a private temporary file.

    The file stays there unless its text was written.
    """
    file = _write_draft(page, page.text)
    editor = shlex.split(os.environ.get("VISUAL") or os.environ.get("EDITOR") or DEFAULT_EDITOR)
    try:
        status = _run_editor([*editor, str(file)])
    except OSError as error:
        shutil.rmtree(file.parent, ignore_errors=True)
        expected = f"an editor that can be run ({error.strerror})"
        raise InvalidInput(field="$EDITOR", value=shlex.join(editor), expected=expected) from error
    if status:
        exit_with("FAILED", f"{shlex.join(editor)} exited with {status}: nothing was written; your text is in {file}")
    text = _decode(file.read_bytes(), str(file))
    if text == f"{page.text}\n":  # most editors add a final newline
        text = page.text
    return _NewText(text=text, file=file)


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


def _read_source(source: str) -> _NewText:
    if source == STDIN:
        return _NewText(text=_decode(sys.stdin.buffer.read(MAX_DOCUMENT_BYTES + 1), "stdin"), file=None)
    file = Path(source)
    try:
        with file.open("rb") as opened:
            data = opened.read(MAX_DOCUMENT_BYTES + 1)
    except OSError as error:
        raise InvalidInput(
            field="--from", value=source, expected=f"a file that can be read ({error.strerror})"
        ) from error
    return _NewText(text=_decode(data, source), file=file)


def _decode(data: bytes, place: str) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise InvalidInput(field=place, value=str(error), expected="text in UTF-8") from error


def _keep_draft(page: Page, new: _NewText, error: InmindError) -> str:
    """Keep the text that was not written, and on a conflict the other version.

    Returns a message with their paths.
    """
    file = new.file or _write_draft(page, new.text)
    message = f"your text is in {file}"
    if not isinstance(error, Conflict) or error.theirs is None:
        return message
    theirs = _write_draft(page, error.theirs)
    return f"{message}, the other version in {theirs}"


def _write_draft(page: Page, text: str) -> Path:
    folder = Path(tempfile.mkdtemp(prefix="inmind-edit-"))  # readable only by the owner
    file = folder / page.path.rpartition("/")[2]
    file.write_bytes(text.encode())
    return file

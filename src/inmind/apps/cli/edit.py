"""`inmind edit`: a page in an editor, written back only where nobody else has written it meanwhile."""

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
from typing import Annotated

import typer

from inmind.apps.cli.console import (
    JsonOption,
    ResourceOption,
    SessionOption,
    check_exists,
    open_existing_memory,
    print_json,
    print_text,
    selected_place,
)
from inmind.apps.cli.exit_codes import exit_with
from inmind.apps.cli.note import last_used_session
from inmind.core.frozen import frozen
from inmind.core.paths import CONFIG
from inmind.core.settings import Settings
from inmind.documents.document import MOST_BYTES, OVERVIEW, SCRATCH, STATE
from inmind.errors import Conflict, InmindError, InvalidInput
from inmind.memory.documents import SETTINGS_PATHS, Page
from inmind.memory.memory import Memory

STDIN = "-"

DEFAULT_EDITOR = "vi"
"""The editor of whoever has named none."""


def complete_paths(incomplete: str) -> list[str]:
    return [path for path in (OVERVIEW, STATE, SCRATCH, CONFIG, "detail/", "archive/") if path.startswith(incomplete)]


def edit(
    path: Annotated[
        str,
        typer.Argument(
            metavar="PATH",
            help=f"{OVERVIEW}, detail/…, archive/…, {STATE}, {SCRATCH} or {CONFIG}.",
            autocompletion=complete_paths,
        ),
    ],
    session: SessionOption = None,
    resource: ResourceOption = None,
    source: Annotated[
        str | None, typer.Option("--from", metavar="FILE", help="Take its new text from there; - is stdin.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Edit a page, or config.toml, in $EDITOR. In a pipe, its new text is what comes from there.

    Without --session or --resource it is a page of the session last used in this folder. If somebody else has written
    it meanwhile nothing is overwritten, and what you have written is kept in a file that is named then.
    """
    with _open_memory(path, resource) as memory:
        check_exists(memory, session=session)
        is_new = resource is not None and not memory.has_resource(resource)
        is_named = session is not None or resource is not None or path in SETTINGS_PATHS
        page = memory.page(path, session=session if is_named else last_used_session(memory), resource=resource)
    in_editor = source is None and sys.stdin.isatty()
    new = _edit_in_editor(page) if in_editor else _read_source(source or STDIN)
    if new.text.strip() == "":
        raise InvalidInput(field=page.path, expected="a text: nothing is written where there is none")
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
    print_text(f"{page.path} is written.{suffix}" if changed else "Unchanged: nothing was written.")
    return None


@frozen(kw_only=True)
class _NewText:
    """What somebody has written."""

    text: str
    file: Path | None
    """Where it is; None if only here."""


@contextmanager
def _open_memory(path: str, resource: str | None) -> Generator[Memory]:
    """With settings, by the usual ones: those that are there may be what has to be mended. Who writes these, or for
    somebody, may begin a memory."""
    settings = Settings() if path in SETTINGS_PATHS else None
    if path in SETTINGS_PATHS or resource is not None:
        with Memory.open(selected_place(), settings=settings, embedder=None) as memory:
            yield memory
    else:
        with open_existing_memory(settings, embedder=None) as memory:
            yield memory


def _edit_in_editor(page: Page) -> _NewText:
    """In a file of its own, which nobody else can read; it stays there unless what it says is written."""
    file = _write_draft(page, page.text)
    editor = shlex.split(os.environ.get("VISUAL") or os.environ.get("EDITOR") or DEFAULT_EDITOR)
    try:
        status = _run_editor([*editor, str(file)])
    except OSError as error:
        shutil.rmtree(file.parent, ignore_errors=True)
        expected = f"an editor that can be run ({error.strerror})"
        raise InvalidInput(field="$EDITOR", value=shlex.join(editor), expected=expected) from error
    if status:
        exit_with("FAILED", f"{shlex.join(editor)} ended with {status}: nothing was written; its file is {file}")
    text = _decode(file.read_bytes(), str(file))
    if text == f"{page.text}\n":  # most editors end a file with a line
        text = page.text
    return _NewText(text=text, file=file)


def _run_editor(command: list[str]) -> int:
    """Ctrl-C is for the editor, which has the terminal."""
    editor = subprocess.Popen(command)  # noqa: S603 -- whoever runs us has named it
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        return editor.wait()
    finally:
        signal.signal(signal.SIGINT, before)


def _read_source(source: str) -> _NewText:
    if source == STDIN:
        return _NewText(text=_decode(sys.stdin.buffer.read(MOST_BYTES + 1), "stdin"), file=None)
    file = Path(source)
    try:
        with file.open("rb") as opened:
            data = opened.read(MOST_BYTES + 1)
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
    """Where what was written is, for whoever wants to write it after all; and beside it what was written meanwhile."""
    file = new.file or _write_draft(page, new.text)
    message = f"your text is in {file}"
    if not isinstance(error, Conflict) or error.theirs is None:
        return message
    theirs = _write_draft(page, error.theirs)
    return f"{message}, theirs in {theirs}"


def _write_draft(page: Page, text: str) -> Path:
    folder = Path(tempfile.mkdtemp(prefix="inmind-edit-"))  # for the owner alone
    file = folder / page.path.rpartition("/")[2]
    file.write_bytes(text.encode())
    return file

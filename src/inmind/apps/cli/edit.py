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
    AsJson,
    OfResource,
    OfSession,
    check_known,
    chosen_place,
    existing_memory,
    print_json,
    say,
)
from inmind.apps.cli.exit_codes import leave
from inmind.apps.cli.note import last_used
from inmind.core.frozen import frozen
from inmind.core.paths import CONFIG
from inmind.core.settings import Settings
from inmind.documents.document import MOST_BYTES, OVERVIEW, SCRATCH, STATE
from inmind.errors import Conflict, InmindError, InvalidInput
from inmind.memory.documents import SETTINGS, Page
from inmind.memory.memory import Memory

STDIN = "-"

USUAL = "vi"
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
    session: OfSession = None,
    resource: OfResource = None,
    source: Annotated[
        str | None, typer.Option("--from", metavar="FILE", help="Take its new text from there; - is stdin.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Edit a page, or config.toml, in $EDITOR. In a pipe, its new text is what comes from there.

    Without --session or --resource it is a page of the session last used in this folder. If somebody else has written
    it meanwhile nothing is overwritten, and what you have written is kept in a file that is named then.
    """
    with _opened(path, resource) as memory:
        check_known(memory, session=session)
        is_new = resource is not None and not memory.knows(resource)
        named = session is not None or resource is not None or path in SETTINGS
        page = memory.page(path, session=session if named else last_used(memory), resource=resource)
    typed = source is None and sys.stdin.isatty()
    mine = _typed(page) if typed else _given(source or STDIN)
    if mine.text.strip() == "":
        raise InvalidInput(field=page.path, expected="a text: nothing is written where there is none")
    try:
        with _opened(path, resource) as memory:
            edited = memory.edit(page, mine.text)
    except InmindError as error:
        leave(error.code, f"{error}; {_kept(page, mine, error)}")
    if typed and mine.file is not None:
        shutil.rmtree(mine.file.parent, ignore_errors=True)
    changed = edited.text != page.text
    if as_json:
        return print_json({"path": page.path, "version": edited.version, "changed": changed})
    begun = f" {resource} is a new resource." if is_new else ""
    say(f"{page.path} is written.{begun}" if changed else "Unchanged: nothing was written.")
    return None


@frozen(kw_only=True)
class _Mine:
    """What somebody has written."""

    text: str
    file: Path | None
    """Where it is; None if only here."""


@contextmanager
def _opened(path: str, resource: str | None) -> Generator[Memory]:
    """With settings, by the usual ones: those that are there may be what has to be mended. Who writes these, or for
    somebody, may begin a memory."""
    settings = Settings() if path in SETTINGS else None
    if path in SETTINGS or resource is not None:
        with Memory.open(chosen_place(), settings=settings, embedder=None) as memory:
            yield memory
    else:
        with existing_memory(settings, embedder=None) as memory:
            yield memory


def _typed(page: Page) -> _Mine:
    """In a file of its own, which nobody else can read; it stays there unless what it says is written."""
    file = _draft(page, page.text)
    editor = shlex.split(os.environ.get("VISUAL") or os.environ.get("EDITOR") or USUAL)
    try:
        ended = _run([*editor, str(file)])
    except OSError as error:
        shutil.rmtree(file.parent, ignore_errors=True)
        expected = f"an editor that can be run ({error.strerror})"
        raise InvalidInput(field="$EDITOR", value=shlex.join(editor), expected=expected) from error
    if ended:
        leave("FAILED", f"{shlex.join(editor)} ended with {ended}: nothing was written; its file is {file}")
    text = _decoded(file.read_bytes(), str(file))
    if text == f"{page.text}\n":  # most editors end a file with a line
        text = page.text
    return _Mine(text=text, file=file)


def _run(command: list[str]) -> int:
    """Ctrl-C is for the editor, which has the terminal."""
    editor = subprocess.Popen(command)  # noqa: S603 -- whoever runs us has named it
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        return editor.wait()
    finally:
        signal.signal(signal.SIGINT, before)


def _given(source: str) -> _Mine:
    if source == STDIN:
        return _Mine(text=_decoded(sys.stdin.buffer.read(MOST_BYTES + 1), "stdin"), file=None)
    file = Path(source)
    try:
        with file.open("rb") as opened:
            data = opened.read(MOST_BYTES + 1)
    except OSError as error:
        raise InvalidInput(
            field="--from", value=source, expected=f"a file that can be read ({error.strerror})"
        ) from error
    return _Mine(text=_decoded(data, source), file=file)


def _decoded(data: bytes, place: str) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise InvalidInput(field=place, value=str(error), expected="text in UTF-8") from error


def _kept(page: Page, mine: _Mine, error: InmindError) -> str:
    """Where what was written is, for whoever wants to write it after all; and beside it what was written meanwhile."""
    file = mine.file or _draft(page, mine.text)
    said = f"your text is in {file}"
    if not isinstance(error, Conflict) or error.theirs is None:
        return said
    theirs = _draft(page, error.theirs)
    return f"{said}, theirs in {theirs}"


def _draft(page: Page, text: str) -> Path:
    folder = Path(tempfile.mkdtemp(prefix="inmind-edit-"))  # for the owner alone
    file = folder / page.path.rpartition("/")[2]
    file.write_bytes(text.encode())
    return file

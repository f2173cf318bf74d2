"""`inmind export` and `inmind import`: a whole home as one file, there and back."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, BinaryIO, cast

import typer

from inmind.apps.cli.console import (
    JsonOption,
    ResourceOption,
    open_existing_memory,
    print_json,
    print_lines,
    progress_bar,
    selected_place,
)
from inmind.core.paths import shown_url
from inmind.core.text import counted, printable
from inmind.errors import InvalidInput
from inmind.memory.memory import Memory
from inmind.store.atomic_files import make_private, sync_folder

if TYPE_CHECKING:
    from inmind.memory.bundle.export_bundle import Exported
    from inmind.memory.bundle.import_bundle import Imported

STDIO = "-"


def export(
    file: Annotated[
        str | None,
        typer.Argument(metavar="FILE", help="Where to; - is stdout. By default inmind-DATE.inmind in this folder."),
    ] = None,
    resource: ResourceOption = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite a file that is there.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Put a whole home into one file, while it is in use.

    What people have typed into files of the home is taken in first. The file is read back and checked before it gets
    its name. With --resource it has all of that resource: its pages and dreams, and all of its sessions.
    """
    if file == STDIO:
        return _export_to_stdout(resource, as_json=as_json)
    to = Path(file or f"inmind-{date.today().isoformat()}.inmind")
    with open_existing_memory(embedder=None) as memory, progress_bar("exporting") as watch, _name_file_argument():
        exported = memory.export(to, resource=resource, overwrite=force, watch=watch)
    if as_json:
        return print_json(asdict(exported))
    return print_lines(_describe_export(exported))


def import_(
    file: Annotated[str, typer.Argument(metavar="FILE", help="What `inmind export` made; - is stdin.")],
    only_new: Annotated[
        bool, typer.Option("--into-new-home", help="Refuse a home that has anything in it already.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Take in a file that `inmind export` made: all of it, or nothing.

    What is here already is left as it is, and what goes on from it is continued; so the same file twice is once. What
    has gone on differently here and there is refused, and named. Nobody else can write to this home meanwhile, so bring
    a large one in while agents are at rest. Take in only what you trust as you trust this memory: a bundle says itself
    who said what.
    """
    with _open_bundle(file) as bundle, _open_target() as memory, progress_bar("importing") as watch:
        imported = memory.import_bundle(bundle, only_new=only_new, watch=watch)
    place = selected_place()
    shown = shown_url(place) if isinstance(place, str) else str(place)
    if as_json:
        return print_json({"home": shown, **asdict(imported)})
    return print_lines(_describe_import(imported, shown))


def _export_to_stdout(resource: str | None, *, as_json: bool) -> None:
    """It is written, read back and checked before its first byte goes out."""
    if as_json:
        raise InvalidInput(field="--json", expected="a FILE beside it: stdout has the bundle")
    if sys.stdout.isatty():
        raise InvalidInput(field="FILE", value=STDIO, expected="a pipe or a file behind it, not a terminal")
    from inmind.memory.bundle.staging import aside

    with aside(Path(tempfile.gettempdir()) / "bundle") as folder:
        with open_existing_memory(embedder=None) as memory, progress_bar("exporting") as watch:
            exported = memory.export(folder / "bundle", resource=resource, watch=watch)
        with exported.path.open("rb") as written:
            shutil.copyfileobj(written, sys.stdout.buffer)
    sys.stdout.buffer.flush()
    for line in exported.left_out:
        print(printable(f"inmind: left out: {line}"), file=sys.stderr)


@contextmanager
def _open_bundle(file: str) -> Generator[BinaryIO]:
    """Something that can be gone through twice: stdin cannot, and is put down first."""
    from inmind.memory.bundle.import_bundle import opened

    if file != STDIO:
        with opened(Path(file)) as named:
            yield named
        return
    if sys.stdin.isatty():
        raise InvalidInput(field="FILE", value=STDIO, expected="a bundle in a pipe, not a terminal")
    with tempfile.TemporaryFile() as spooled:
        shutil.copyfileobj(sys.stdin.buffer, spooled)
        spooled.flush()
        yield cast(BinaryIO, spooled)


@contextmanager
def _open_target() -> Generator[Memory]:
    """The home; one that is not there yet is made aside, and gets its name when everything is in it."""
    from inmind.memory.bundle.staging import aside, sweep

    selected = selected_place()
    if isinstance(selected, str):
        with Memory.open(selected, embedder=None) as memory:
            yield memory
        return
    place = selected.expanduser().absolute()
    if os.path.exists(place):
        sweep(place)
        with Memory.open(place, embedder=None) as memory:
            yield memory
        return
    make_private(place.parent)
    with aside(place) as folder:
        with Memory.open(staged := folder / "home", embedder=None) as memory:
            yield memory
        os.rename(staged, place)
        sync_folder(place.parent)


@contextmanager
def _name_file_argument() -> Generator[None]:
    """What is wrong with the place is said of the argument that has named it."""
    try:
        yield
    except InvalidInput as error:
        if error.field != "to":
            raise
        raise InvalidInput(field="FILE", value=error.value, expected=error.expected) from error


def _describe_export(exported: Exported) -> Iterator[str]:
    counts = f"{counted(exported.sessions, 'session')}, {counted(exported.resources, 'resource')}, {counted(exported.events, 'event')}"
    extra_files = f" and {counted(exported.kept, 'file')} beside them" if exported.kept else ""
    yield f"Exported {counts}{extra_files} to {exported.path}: {exported.bytes:,} bytes, read back and checked."
    yield f"SHA-256 {exported.sha256}"
    for name in exported.left_out:
        yield f"Left out: {name} (too large, no plain file, or one that differs from another only in case)"


def _describe_import(imported: Imported, home: str) -> Iterator[str]:
    if imported.events or imported.keys or imported.kept:
        streams = f"{imported.added} new, {imported.extended} continued, {imported.unchanged} as they were"
        yield f"Imported {counted(imported.events, 'event')} into {home}; of its sessions and resources {streams}."
    else:
        yield f"All of it is in {home} already; nothing was changed."
    for name in imported.kept:
        yield f"Put beside them: {name}"
    for name in imported.left_out:
        yield f"Left out: {name} (a database has no files beside it)"
    if imported.unsourced:
        yield f"{counted(imported.unsourced, 'event')} came without what they were derived from."

"""Actors that die at a chosen point between journal and file, or race with an editor."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from torture.harness import ActorChannel
from torture.writers import opened, session_of

from inmind.core.events.base import Draft, Origin
from inmind.core.events.documents import DocumentWritten
from inmind.store import file_operations
from inmind.store.atomic_files import Folder
from inmind.store.protocol import Batch
from inmind.store.sqlite.store import SqliteStore

PLACES = ("committed", "written", "ready", "displaced", "shown", "marked")
"""In order: the change is in the journal; the new file is on the disk, under another name; it is about to be
exchanged; it was exchanged, and the displaced file not read yet; it is published; the journal marks it as published."""


def die_at(
    channel: ActorChannel, *, home: str, place: str, path: str, text: str, saved: str | None, other: str | None
) -> None:
    """Write a document and die on the way.

    `saved`: the text that a user saves to the file right before.

    `other`: the text that another process commits at the same moment.
    """
    memory = opened(home)
    session = session_of(memory)
    session.read(path)
    file = file_of(home, path)
    armed = [False]

    def die() -> None:
        if not armed[0]:
            return
        if saved is not None:
            file.write_text(saved)
        if other is not None:
            store = memory._context.store  # pyright: ignore[reportPrivateUsage] -- like another process
            drafts = [_draft(path, other)]
            stream = "session/s" if path == "overview.md" else "resource/ada"
            store.append(Batch(stream, drafts, store.version(stream)), at=memory._context.clock())  # pyright: ignore[reportPrivateUsage]
        channel.report("dying", place)
        os._exit(9)

    _act_at(place, die)
    armed[0] = True
    session.write(path, text, origin=Origin.USER)


def save_at(channel: ActorChannel, *, home: str, place: str, path: str, text: str, saved: str) -> dict[str, Any]:
    """Without a kill: a user saves once during the write, and the call continues."""
    memory = opened(home)
    session = session_of(memory)
    session.read(path)
    file = file_of(home, path)
    remaining = [1]

    def save() -> None:
        if remaining[0]:
            remaining[0] -= 1
            temporary = file.with_name(file.name + "~")
            temporary.write_text(saved)
            os.replace(temporary, file)
            channel.report("saved", place)

    _act_at(place, save)
    session.write(path, text, origin=Origin.USER)
    answer = {"text": session.read(path), "file": file.read_text(), "versions": versions(session, path)}
    memory.close()
    return answer


def look(channel: ActorChannel, *, home: str, path: str) -> dict[str, Any]:
    memory = opened(home)
    session = session_of(memory)
    text = session.read(path)
    answer = {
        "text": text,
        "file": file_of(home, path).read_text(),
        "versions": versions(session, path),
        "leftovers": [
            file.name for file in Path(home).rglob("*") if ".inmind-" in file.name or ".damaged" in file.name
        ],
        "notices": list(session.prepare([{"role": "user", "content": "hi"}]).report.notices),
    }
    memory.close()
    channel.report("looked", path)
    return answer


def begin(channel: ActorChannel, *, home: str, path: str, texts: list[str]) -> None:
    memory = opened(home)
    session = session_of(memory)
    for text in texts:
        session.write(path, text, origin=Origin.USER)
    memory.close()
    channel.report("begun", path)


def file_of(home: str, path: str) -> Path:
    folder = Path(home, "sessions", "--w--", "s", "working-memory")
    return (Path(home, "resources", "ada") if path == "MEMORY.md" else folder) / path


def versions(session: Any, path: str) -> list[list[str]]:
    """Every text of the document, with its origin."""
    stream = "resource/ada" if path == "MEMORY.md" else "session/s"
    events = session._store.read(stream, kind="document")
    return [
        [event.payload.text, event.origin.value]
        for event in events
        if isinstance(event.payload, DocumentWritten) and event.payload.path == path
    ]


def _draft(path: str, text: str) -> Any:
    return Draft(payload=DocumentWritten(path=path, text=text), origin=Origin.ASSISTANT)


def _act_at(place: str, act: Callable[[], None]) -> None:
    match place:
        case "committed":
            _before(Folder, "exchange", act)
        case "written":
            _after(file_operations, "write_new", act)
        case "ready":
            _before(file_operations, "swap_in", act)
        case "displaced":
            _after(file_operations, "_exchange_names", act)
        case "shown":
            _before(SqliteStore, "mark_published", act)
        case "marked":
            _after(SqliteStore, "mark_published", act)
        case _:
            raise AssertionError(place)


def _before(owner: Any, name: str, act: Callable[[], None]) -> None:
    real = getattr(owner, name)

    def first(*arguments: Any, **options: Any) -> Any:
        act()
        return real(*arguments, **options)

    setattr(owner, name, first)


def _after(owner: Any, name: str, act: Callable[[], None]) -> None:
    real = getattr(owner, name)

    def then(*arguments: Any, **options: Any) -> Any:
        answer = real(*arguments, **options)
        act()
        return answer

    setattr(owner, name, then)


# -- special files -----------------------------------------------------------------------------------------


def use_special_file(channel: ActorChannel, *, home: str, path: str, again: bool, newer: str) -> dict[str, Any]:
    """Read, write and read a document whose file was replaced by a special file."""
    memory = opened(home)
    session = session_of(memory)
    if again:
        session.read(path)
    texts = [session.read(path)]
    notices = list(session.prepare([{"role": "user", "content": "hi"}]).report.notices)
    session.write(path, newer)
    texts.append(session.read(path))
    session.add([{"role": "user", "content": "more"}])
    texts.append(session.read(path))
    session.prepare()
    notices += [notice for notice in session.prepare().report.notices if notice not in notices or path in notice]
    memory.close()
    channel.report("met", path)
    return {"texts": texts, "notices": notices}


def save_slowly(channel: ActorChannel, *, file: str, home: str, text: str) -> dict[str, Any]:
    """An editor that truncates the file and writes it while another process already reads."""
    memory = opened(home)
    session = session_of(memory)
    session.read("overview.md")
    descriptor = os.open(file, os.O_WRONLY | os.O_TRUNC)

    def write() -> None:
        time.sleep(0.05)
        os.write(descriptor, text.encode())
        os.close(descriptor)

    editor = threading.Thread(target=write)
    editor.start()
    text_read = session.read("overview.md")
    editor.join()
    aside = [str(file) for file in Path(home).rglob("*.damaged-*")]
    memory.close()
    channel.report("saved")
    return {"text": text_read, "file": Path(file).read_text(), "aside": aside}

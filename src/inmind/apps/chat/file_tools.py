"""The files of one folder, as tools: what a model may list, read, search and write, and how no path of its leads out.

A model's path is taken apart and walked step by step through descriptors, and a link is never followed: what a name
meant a moment ago does not matter. Hidden files are left alone, whatever they are: most keys and most things that run
by themselves are in one. So is memory's own home, where opening the database beside SQLite would drop its locks.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from io import StringIO
from pathlib import Path
from typing import Any

from inmind.core.frozen import frozen
from inmind.core.text import counted, shortened
from inmind.session.recorded import HostCall

MOST_BYTES = 1_000_000
"""Of a file: what is larger is no text that anybody has written."""

MOST_CHARACTERS = 20_000
"""Of one answer: one that fills the window helps nobody."""

MOST_LISTED = 200
MOST_FOUND = 50
MOST_SEARCHED = 20_000
"""Files that one search looks into."""

LONGEST_LINE = 300
"""Characters of a line that was found."""

SEARCHING = 5.0
"""Seconds: a person waits."""

Json = dict[str, Any]


class Unfit(Exception):
    """Why a call was not carried out, as the model is told."""


@frozen
class Outcome:
    said: str
    """To the model."""
    gist: str
    """To the person, in a few words."""
    error: bool = False


@frozen
class Change:
    """What a file would become."""

    path: str
    before: str | None
    """None where there is no such file yet."""
    after: str


@frozen
class Writing:
    """What a file is to become, now that nobody has anything against it."""

    steps: tuple[str, ...]
    data: bytes
    then: Outcome


@frozen
class Tool:
    description: str
    properties: Mapping[str, Json]
    required: tuple[str, ...]
    decide: Callable[[Workplace, Json], Outcome | Writing]

    @property
    def parameters(self) -> Json:
        closed = {"required": list(self.required), "additionalProperties": False}
        return {"type": "object", "properties": dict(self.properties), **closed}


class Workplace:
    """`home`: where memory is kept, if in a folder. `refuses` says of a change why it may not be; None allows all.
    `may_stop` is around all that a person may stop: looking, asking, and never the write itself."""

    def __init__(
        self,
        root: Path,
        *,
        home: Path | None,
        refuses: Callable[[Change], str] | None = None,
        may_stop: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> None:
        self._root, self._home, self._refuses, self._may_stop = root, home, refuses, may_stop
        self._ours: tuple[os.stat_result, ...] = ()

    def carry_out(self, call: HostCall) -> Outcome:
        """What a call comes to. What is wrong with it is an answer too: an agent must be able to go on."""
        tool = TOOLS[call.name]
        try:
            with self._may_stop():
                self._ours = (self._home.stat(), *_statuses(self._home)) if self._home else ()
                decided = tool.decide(self, _checked(call, tool))
            if isinstance(decided, Outcome):
                return decided
            self._put(decided)
            return decided.then
        except Unfit as error:
            return Outcome(str(error), shortened(str(error), LONGEST_LINE), error=True)
        except OSError as error:
            why = os.strerror(error.errno or 0)
            return Outcome(f"That did not work: {why}.", why, error=True)

    def list_files(self, asked: Json) -> Outcome:
        path = asked.get("path", ".")
        with self._within(_steps(path)) as folder, os.scandir(folder) as entries:
            there = sorted(entries, key=lambda entry: entry.name)
            hidden = sum(_is_hidden(entry.name) for entry in there)
            seen = list(_listed(entry for entry in there if not _is_hidden(entry.name)))
        lines = [*seen[:MOST_LISTED], *_left(len(seen) - MOST_LISTED, "more")]
        lines += [f"({counted(hidden, 'hidden one')} left out)"] if hidden else []
        return Outcome("\n".join(lines) or "(nothing is there)", counted(len(seen), "name"))

    def read_file(self, asked: Json) -> Outcome:
        text = self._text(asked["path"])
        lines = _lines(text)
        first = asked.get("line", 1)
        if not 1 <= first <= max(1, len(lines)):
            raise Unfit(f"{asked['path']} has {counted(len(lines), 'line')}: there is no line {first}.")
        shown = list(_fitting(lines[first - 1 :], MOST_CHARACTERS))
        left = len(lines) - (first - 1) - len(shown)
        said = "".join(shown)
        if left:
            said += f"\n({counted(left, 'more line')}: read on with line={first + len(shown)})"
        return Outcome(said or "(the file is empty)", counted(len(shown), "line"))

    def search_files(self, asked: Json) -> Outcome:
        wanted, until = asked["text"].casefold(), time.monotonic() + SEARCHING
        if not wanted.strip():
            raise Unfit("text: expected something to look for.")
        found: list[str] = []
        whole = True
        for number, (path, text) in enumerate(self._texts(asked.get("path", "."))):
            if number >= MOST_SEARCHED or time.monotonic() > until:
                whole = False
                break
            lines = ((place, line) for place, line in enumerate(_lines(text), 1) if wanted in line.casefold())
            found += [f"{path}:{place}: {shortened(line, LONGEST_LINE)}" for place, line in lines]
            if len(found) > MOST_FOUND:
                break
        lines = [*found[:MOST_FOUND], *_left(len(found) - MOST_FOUND, "or more further ones")]
        lines += [] if whole else ["(not all files were looked into: search a folder below)"]
        return Outcome("\n".join(lines) or "Nothing was found.", counted(min(len(found), MOST_FOUND), "line"))

    def write_file(self, asked: Json) -> Outcome | Writing:
        path, after = asked["path"], asked["text"]
        if len(after.encode()) > MOST_BYTES:
            raise Unfit(f"text: expected at most {MOST_BYTES:,} bytes.")
        before = self._as_it_is(path)
        size = counted(len(_lines(after)), "line")
        if before == after:
            return Outcome(f"{path} says that already.", "as it is")
        if self._refuses is not None and (why := self._refuses(Change(path, before, after))):
            raise Unfit(f"Not written, {why}.")
        if self._as_it_is(path) != before:
            raise Unfit(f"Not written, since {path} was changed while the person was asked: read it again.")
        then = Outcome(f"{'Wrote' if before is not None else 'Created'} {path}: {size}.", size)
        return Writing(_steps(path), after.encode(), then)

    def _texts(self, path: str) -> Iterator[tuple[str, str]]:
        """Every text below a folder, or the one file that is named."""
        steps = _steps(path)
        with suppress(OSError, Unfit):
            yield "/".join(steps), self._text(path)
            return
        with self._within(steps) as top:
            for way, folders, leaves, folder in os.fwalk(".", dir_fd=top):
                folders[:] = sorted(one for one in folders if not _is_hidden(one) and not self._is_ours(folder, one))
                between = [*steps, *(step for step in way.split("/") if step != ".")]
                for leaf in sorted(leaves):
                    with suppress(OSError, Unfit):
                        if not _is_hidden(leaf):
                            yield _spelt("/".join([*between, leaf])), self._read(folder, leaf)

    def _as_it_is(self, path: str) -> str | None:
        try:
            return self._text(path)
        except FileNotFoundError:
            return None

    def _text(self, path: str) -> str:
        *between, leaf = _steps(path) or ("",)
        with self._within(between) as folder:
            return self._read(folder, leaf)

    def _read(self, folder: int, leaf: str) -> str:
        name = leaf or "."
        status = os.stat(name, dir_fd=folder, follow_symlinks=False)
        if stat.S_ISLNK(status.st_mode):
            raise Unfit(f"{name} is a link, and links are not followed.")
        if stat.S_ISDIR(status.st_mode):
            raise Unfit(f"{name} is a folder.")
        if not stat.S_ISREG(status.st_mode) or self._is_ours(folder, leaf):
            raise Unfit(f"{name} is not a file to be read.")
        if status.st_size > MOST_BYTES:
            raise Unfit(f"{name} has {status.st_size:,} bytes, and at most {MOST_BYTES:,} are read.")
        descriptor = os.open(leaf, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
        with os.fdopen(descriptor, "rb") as file:
            data = file.read(MOST_BYTES + 1)
        try:
            text = data.decode()
        except UnicodeDecodeError as error:
            raise Unfit(f"{name} is not a text.") from error
        if "\x00" in text:
            raise Unfit(f"{name} is not a text.")
        return text

    def _put(self, writing: Writing) -> None:
        """All of the bytes or none of them, in the place of what stood there and with its permissions."""
        *between, leaf = writing.steps
        with self._within(between, create=True) as folder:
            mode = None
            with suppress(FileNotFoundError):
                mode = stat.S_IMODE(os.stat(leaf, dir_fd=folder, follow_symlinks=False).st_mode)
            part = f".{leaf}.{os.getpid()}.part"
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            descriptor = os.open(part, flags, 0o666, dir_fd=folder)
            try:
                with os.fdopen(descriptor, "wb") as file:
                    if mode is not None:
                        os.fchmod(descriptor, mode)
                    file.write(writing.data)
                    file.flush()
                    os.fsync(descriptor)
                os.rename(part, leaf, src_dir_fd=folder, dst_dir_fd=folder)
            except BaseException:
                with suppress(OSError):  # why it failed is what counts
                    os.unlink(part, dir_fd=folder)
                raise

    @contextmanager
    def _within(self, steps: Sequence[str], *, create: bool = False) -> Generator[int]:
        """The descriptor of a folder below the root, walked to without following a link."""
        if self._home is not None and self._root.is_relative_to(self._home):
            raise Unfit("This folder is where memory itself is kept: there are no files to work on.")
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
        folder = os.open(self._root, flags & ~os.O_NOFOLLOW)
        try:
            for step in steps:
                if self._is_ours(folder, step):
                    raise Unfit(f"{step} is where memory itself is kept: use its own tools.")
                if create:
                    with suppress(FileExistsError):
                        os.mkdir(step, dir_fd=folder)
                try:
                    inner = os.open(step, flags, dir_fd=folder)
                except NotADirectoryError as error:
                    raise Unfit(f"{step} is a file or a link, and links are not followed.") from error
                os.close(folder)
                folder = inner
            yield folder
        finally:
            os.close(folder)

    def _is_ours(self, folder: int, name: str) -> bool:
        """Is this the home of memory, or one of its files under another name?"""
        with suppress(OSError):
            status = os.stat(name, dir_fd=folder, follow_symlinks=False)
            return any(os.path.samestat(status, one) for one in self._ours)
        return False


def _statuses(folder: Path) -> Iterator[os.stat_result]:
    """Of what is in a folder of memory's, where files come and go."""
    with os.scandir(folder) as entries:
        for entry in entries:
            with suppress(FileNotFoundError):
                yield entry.stat(follow_symlinks=False)


def _checked(call: HostCall, tool: Tool) -> Json:
    """The arguments of a call, if they are what the tool takes."""
    given = call.arguments
    if not isinstance(given, dict):
        raise Unfit("arguments: expected an object of JSON.")
    asked: Json = {}
    for name, value in given.items():  # pyright: ignore[reportUnknownVariableType] -- a model wrote it
        if name not in tool.properties:
            raise Unfit(f"{name!r}: expected only {', '.join(tool.properties)}.")
        wanted = str if tool.properties[name]["type"] == "string" else int
        if type(value) is not wanted:  # pyright: ignore[reportUnknownArgumentType]
            raise Unfit(f"{name}: expected {'a text' if wanted is str else 'a whole number'}.")
        asked[name] = value
    if not all(_is_encodable(value) for value in asked.values()):
        raise Unfit("arguments: expected text without half of a surrogate pair.")
    for name in tool.required:
        if name not in asked:
            raise Unfit(f"{name}: expected, and missing.")
    return asked


def _steps(path: str) -> tuple[str, ...]:
    """A path below the root, step by step; one that could lead elsewhere is refused, however it is spelt."""
    if path.startswith(("/", "~")) or "\\" in path or not path.isprintable():
        raise Unfit(f"{path!r}: expected a path below the working directory, like src/app.py.")
    steps = tuple(step for step in path.split("/") if step not in ("", "."))
    if ".." in steps:
        raise Unfit(f"{path!r} leads out of the working directory.")
    if any(_is_hidden(step) for step in steps):
        raise Unfit(f"{path!r} is hidden, and hidden files are left alone.")
    return steps


def _is_encodable(value: object) -> bool:
    try:
        str(value).encode()
    except UnicodeEncodeError:
        return False
    return True


def _is_hidden(name: str) -> bool:
    return name.startswith(".")


def _listed(entries: Iterable[os.DirEntry[str]]) -> Iterator[str]:
    for entry in entries:
        name = _spelt(entry.name)
        if entry.is_symlink():
            yield f"{name} (a link)"
        elif entry.is_dir(follow_symlinks=False):
            yield f"{name}/"
        else:
            with suppress(FileNotFoundError):  # it has gone meanwhile
                yield f"{name} ({entry.stat(follow_symlinks=False).st_size:,} bytes)"


def _spelt(name: str) -> str:
    """A name as text. One that is none in UTF-8 has backslashes in it, which no path may have."""
    return os.fsencode(name).decode(errors="backslashreplace")


def _lines(text: str) -> list[str]:
    """As editors count them: many another character ends a line elsewhere."""
    return StringIO(text).readlines()


def _left(number: int, what: str) -> list[str]:
    return [f"({number} {what})"] if number > 0 else []


def _fitting(lines: Sequence[str], most: int) -> Iterator[str]:
    """As many lines as have room; of a first one that has none, its beginning."""
    for place, line in enumerate(lines):
        if (most := most - len(line)) < 0:
            if not place:
                yield f"{line[:most]}… (the line goes on)"
            return
        yield line


_PATH: Json = {"type": "string", "description": "Below the working directory, like src/app.py."}
_FOLDER: Json = {"type": "string", "description": "A folder below the working directory; all of it by default."}
_LINE: Json = {"type": "integer", "minimum": 1, "description": "The line to begin with; the first by default."}

TOOLS: Mapping[str, Tool] = {
    "list_files": Tool(
        "List a folder: its files with their sizes, and its folders.", {"path": _FOLDER}, (), Workplace.list_files
    ),
    "read_file": Tool("Read a text file.", {"path": _PATH, "line": _LINE}, ("path",), Workplace.read_file),
    "search_files": Tool(
        "Find the lines that have a text in them, in all files of a folder. Case does not matter.",
        {"text": {"type": "string"}, "path": _FOLDER},
        ("text",),
        Workplace.search_files,
    ),
    "write_file": Tool(
        "Write a whole text file, a new one or in the place of the old. The person may refuse it.",
        {"path": _PATH, "text": {"type": "string", "description": "All of the file."}},
        ("path", "text"),
        Workplace.write_file,
    ),
}

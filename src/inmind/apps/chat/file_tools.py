"""File tools of the chat: list, read, search and write files of one folder.

Nothing outside of the folder is accessed. A path is opened step by step with directory descriptors, and links are never
followed, so a concurrent change cannot redirect it. Hidden files are never accessed: most keys and startup files are
hidden. The memory's home is never accessed either: opening its database here would drop SQLite's locks.
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
from inmind.core.text import count_noun, shorten
from inmind.session.recorded import HostCall

MAX_FILE_BYTES = 1_000_000
"""Maximum size of a file."""

MAX_RESULT_CHARS = 20_000
"""Maximum length of a result, so that it does not fill the context window."""

MAX_LISTED = 200
MAX_MATCHES = 50
MAX_SEARCHED_FILES = 20_000
"""Maximum number of files of one search."""

MAX_LINE_CHARS = 300
"""Maximum length of a matching line."""

SEARCH_SECONDS = 5.0
"""Time limit of a search."""

Json = dict[str, Any]


class ToolCallError(Exception):
    """The reason why a call was not executed, as the model reads it."""


@frozen
class ToolOutput:
    text: str
    """For the model."""
    summary: str
    """For the user, in a few words."""
    error: bool = False


@frozen
class FileChange:
    """A proposed change of a file."""

    path: str
    before: str | None
    """None for a new file."""
    after: str


@frozen
class PendingWrite:
    """An approved write."""

    parts: tuple[str, ...]
    data: bytes
    result: ToolOutput


@frozen
class FileTool:
    description: str
    properties: Mapping[str, Json]
    required: tuple[str, ...]
    run: Callable[[FileTools, Json], ToolOutput | PendingWrite]

    @property
    def parameters(self) -> Json:
        closed = {"required": list(self.required), "additionalProperties": False}
        return {"type": "object", "properties": dict(self.properties), **closed}


class FileTools:
    """Executes file tool calls below `root`.

    `home` is the folder of the memory, if any. `refuse_write` returns why a change is refused; None allows all.
    `interruptible` wraps everything that the user may interrupt: reading and asking, never the write.
    """

    def __init__(
        self,
        root: Path,
        *,
        home: Path | None,
        refuse_write: Callable[[FileChange], str] | None = None,
        interruptible: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> None:
        self._root, self._home, self._refuse_write, self._interruptible = root, home, refuse_write, interruptible
        self._memory_files: tuple[os.stat_result, ...] = ()

    def execute(self, call: HostCall) -> ToolOutput:
        """Result of a call. Errors are results too, so that the model can continue."""
        tool = TOOLS[call.name]
        try:
            with self._interruptible():
                self._memory_files = (self._home.stat(), *_statuses(self._home)) if self._home else ()
                result = tool.run(self, _check_arguments(call, tool))
            if isinstance(result, ToolOutput):
                return result
            self._write(result)
            return result.result
        except ToolCallError as error:
            return ToolOutput(str(error), shorten(str(error), MAX_LINE_CHARS), error=True)
        except OSError as error:
            why = os.strerror(error.errno or 0)
            return ToolOutput(f"Failed: {why}.", why, error=True)

    def list_files(self, arguments: Json) -> ToolOutput:
        path = arguments.get("path", ".")
        with self._open_folder(_split_path(path)) as folder, os.scandir(folder) as entries:
            sorted_entries = sorted(entries, key=lambda entry: entry.name)
            hidden = sum(_is_hidden(entry.name) for entry in sorted_entries)
            visible = list(_format_entries(entry for entry in sorted_entries if not _is_hidden(entry.name)))
        lines = [*visible[:MAX_LISTED], *_count_note(len(visible) - MAX_LISTED, "more")]
        lines += [f"({count_noun(hidden, 'hidden name')} left out)"] if hidden else []
        return ToolOutput("\n".join(lines) or "(empty folder)", count_noun(len(visible), "name"))

    def read_file(self, arguments: Json) -> ToolOutput:
        text = self._text(arguments["path"])
        lines = _lines(text)
        first = arguments.get("line", 1)
        if not 1 <= first <= max(1, len(lines)):
            raise ToolCallError(f"{arguments['path']} has {count_noun(len(lines), 'line')}: there is no line {first}.")
        lines_read = list(_fit_lines(lines[first - 1 :], MAX_RESULT_CHARS))
        remaining = len(lines) - (first - 1) - len(lines_read)
        result = "".join(lines_read)
        if remaining:
            result += f"\n({count_noun(remaining, 'more line')}: read on with line={first + len(lines_read)})"
        return ToolOutput(result or "(the file is empty)", count_noun(len(lines_read), "line"))

    def search_files(self, arguments: Json) -> ToolOutput:
        query, deadline = arguments["text"].casefold(), time.monotonic() + SEARCH_SECONDS
        if not query.strip():
            raise ToolCallError("text: expected a text to search for.")
        matches: list[str] = []
        is_complete = True
        for number, (path, text) in enumerate(self._walk_texts(arguments.get("path", "."))):
            if number >= MAX_SEARCHED_FILES or time.monotonic() > deadline:
                is_complete = False
                break
            lines = ((place, line) for place, line in enumerate(_lines(text), 1) if query in line.casefold())
            matches += [f"{path}:{place}: {shorten(line, MAX_LINE_CHARS)}" for place, line in lines]
            if len(matches) > MAX_MATCHES:
                break
        lines = [*matches[:MAX_MATCHES], *_count_note(len(matches) - MAX_MATCHES, "or more further matches")]
        lines += [] if is_complete else ["(not all files were searched: search a subfolder)"]
        return ToolOutput("\n".join(lines) or "No matches.", count_noun(min(len(matches), MAX_MATCHES), "line"))

    def write_file(self, arguments: Json) -> ToolOutput | PendingWrite:
        path, after = arguments["path"], arguments["text"]
        if len(after.encode()) > MAX_FILE_BYTES:
            raise ToolCallError(f"text: expected at most {MAX_FILE_BYTES:,} bytes.")
        before = self._current_text(path)
        size = count_noun(len(_lines(after)), "line")
        if before == after:
            return ToolOutput(f"{path} already has this text.", "unchanged")
        if self._refuse_write is not None and (why := self._refuse_write(FileChange(path, before, after))):
            raise ToolCallError(f"Not written: {why}.")
        if self._current_text(path) != before:
            raise ToolCallError(f"Not written: {path} changed while the user was asked. Read it again.")
        result = ToolOutput(f"{'Wrote' if before is not None else 'Created'} {path}: {size}.", size)
        return PendingWrite(_split_path(path), after.encode(), result)

    def _walk_texts(self, path: str) -> Iterator[tuple[str, str]]:
        """All text files below a folder, or the named file."""
        parts = _split_path(path)
        with suppress(OSError, ToolCallError):
            yield "/".join(parts), self._text(path)
            return
        with self._open_folder(parts) as top:
            for subfolder, folders, leaves, folder in os.fwalk(".", dir_fd=top):
                folders[:] = sorted(
                    one for one in folders if not _is_hidden(one) and not self._is_memory_file(folder, one)
                )
                folder_parts = [*parts, *(step for step in subfolder.split("/") if step != ".")]
                for leaf in sorted(leaves):
                    with suppress(OSError, ToolCallError):
                        if not _is_hidden(leaf):
                            yield _decode_name("/".join([*folder_parts, leaf])), self._read(folder, leaf)

    def _current_text(self, path: str) -> str | None:
        try:
            return self._text(path)
        except FileNotFoundError:
            return None

    def _text(self, path: str) -> str:
        *parents, leaf = _split_path(path) or ("",)
        with self._open_folder(parents) as folder:
            return self._read(folder, leaf)

    def _read(self, folder: int, leaf: str) -> str:
        name = leaf or "."
        status = os.stat(name, dir_fd=folder, follow_symlinks=False)
        if stat.S_ISLNK(status.st_mode):
            raise ToolCallError(f"{name} is a link; links are not followed.")
        if stat.S_ISDIR(status.st_mode):
            raise ToolCallError(f"{name} is a folder.")
        if not stat.S_ISREG(status.st_mode) or self._is_memory_file(folder, leaf):
            raise ToolCallError(f"{name} cannot be read as a file.")
        if status.st_size > MAX_FILE_BYTES:
            raise ToolCallError(f"{name} has {status.st_size:,} bytes; at most {MAX_FILE_BYTES:,} are read.")
        descriptor = os.open(leaf, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
        with os.fdopen(descriptor, "rb") as file:
            data = file.read(MAX_FILE_BYTES + 1)
        try:
            text = data.decode()
        except UnicodeDecodeError as error:
            raise ToolCallError(f"{name} is not a UTF-8 text.") from error
        if "\x00" in text:
            raise ToolCallError(f"{name} is not a UTF-8 text.")
        return text

    def _write(self, pending: PendingWrite) -> None:
        """Replace the file atomically and keep its permissions."""
        *parents, leaf = pending.parts
        with self._open_folder(parents, create=True) as folder:
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
                    file.write(pending.data)
                    file.flush()
                    os.fsync(descriptor)
                os.rename(part, leaf, src_dir_fd=folder, dst_dir_fd=folder)
            except BaseException:
                with suppress(OSError):  # keep the original error
                    os.unlink(part, dir_fd=folder)
                raise

    @contextmanager
    def _open_folder(self, parts: Sequence[str], *, create: bool = False) -> Generator[int]:
        """Descriptor of a folder below the root, opened without following links."""
        if self._home is not None and self._root.is_relative_to(self._home):
            raise ToolCallError("This folder is inside the memory's home: file tools cannot be used here.")
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
        folder = os.open(self._root, flags & ~os.O_NOFOLLOW)
        try:
            for step in parts:
                if self._is_memory_file(folder, step):
                    raise ToolCallError(f"{step} is the memory's home: use the memory tools.")
                if create:
                    with suppress(FileExistsError):
                        os.mkdir(step, dir_fd=folder)
                try:
                    inner = os.open(step, flags, dir_fd=folder)
                except NotADirectoryError as error:
                    raise ToolCallError(f"{step} is a file or a link; links are not followed.") from error
                os.close(folder)
                folder = inner
            yield folder
        finally:
            os.close(folder)

    def _is_memory_file(self, folder: int, name: str) -> bool:
        """True for the memory's home and its files, even under another name."""
        with suppress(OSError):
            status = os.stat(name, dir_fd=folder, follow_symlinks=False)
            return any(os.path.samestat(status, one) for one in self._memory_files)
        return False


def _statuses(folder: Path) -> Iterator[os.stat_result]:
    """Status of the entries of a folder; entries may disappear in between."""
    with os.scandir(folder) as entries:
        for entry in entries:
            with suppress(FileNotFoundError):
                yield entry.stat(follow_symlinks=False)


def _check_arguments(call: HostCall, tool: FileTool) -> Json:
    """The validated arguments of a call."""
    raw = call.arguments
    if not isinstance(raw, dict):
        raise ToolCallError("arguments: expected a JSON object.")
    arguments: Json = {}
    for name, value in raw.items():  # pyright: ignore[reportUnknownVariableType] -- a model wrote it
        if name not in tool.properties:
            raise ToolCallError(f"{name!r}: expected only {', '.join(tool.properties)}.")
        expected_type = str if tool.properties[name]["type"] == "string" else int
        if type(value) is not expected_type:  # pyright: ignore[reportUnknownArgumentType]
            raise ToolCallError(f"{name}: expected {'a text' if expected_type is str else 'a whole number'}.")
        arguments[name] = value
    if not all(_is_encodable(value) for value in arguments.values()):
        raise ToolCallError("arguments: expected text without unpaired surrogates.")
    for name in tool.required:
        if name not in arguments:
            raise ToolCallError(f"{name}: required but missing.")
    return arguments


def _split_path(path: str) -> tuple[str, ...]:
    """Parts of a path below the root; any other path is refused."""
    if path.startswith(("/", "~")) or "\\" in path or not path.isprintable():
        raise ToolCallError(f"{path!r}: expected a path below the working directory, such as src/app.py.")
    parts = tuple(step for step in path.split("/") if step not in ("", "."))
    if ".." in parts:
        raise ToolCallError(f"{path!r} is outside of the working directory.")
    if any(_is_hidden(step) for step in parts):
        raise ToolCallError(f"{path!r} is hidden; hidden files cannot be accessed.")
    return parts


def _is_encodable(value: object) -> bool:
    try:
        str(value).encode()
    except UnicodeEncodeError:
        return False
    return True


def _is_hidden(name: str) -> bool:
    return name.startswith(".")


def _format_entries(entries: Iterable[os.DirEntry[str]]) -> Iterator[str]:
    for entry in entries:
        name = _decode_name(entry.name)
        if entry.is_symlink():
            yield f"{name} (a link)"
        elif entry.is_dir(follow_symlinks=False):
            yield f"{name}/"
        else:
            with suppress(FileNotFoundError):  # removed in between
                yield f"{name} ({entry.stat(follow_symlinks=False).st_size:,} bytes)"


def _decode_name(name: str) -> str:
    """A name as text.

    Bytes that are not UTF-8 become backslash escapes, which no path may contain.
    """
    return os.fsencode(name).decode(errors="backslashreplace")


def _lines(text: str) -> list[str]:
    """Lines as editors count them; str.splitlines splits at more characters."""
    return StringIO(text).readlines()


def _count_note(number: int, noun: str) -> list[str]:
    return [f"({number} {noun})"] if number > 0 else []


def _fit_lines(lines: Sequence[str], room: int) -> Iterator[str]:
    """Leading lines that fit; the start of the first one if even that is too long."""
    for place, line in enumerate(lines):
        if (room := room - len(line)) < 0:
            if not place:
                yield f"{line[:room]}… (line is cut)"
            return
        yield line


_PATH: Json = {"type": "string", "description": "Below the working directory, such as src/app.py."}
_FOLDER: Json = {"type": "string", "description": "A folder below the working directory; default: all of it."}
_LINE: Json = {"type": "integer", "minimum": 1, "description": "First line to read; default: 1."}

TOOLS: Mapping[str, FileTool] = {
    "list_files": FileTool(
        "List a folder: files with sizes, and subfolders.", {"path": _FOLDER}, (), FileTools.list_files
    ),
    "read_file": FileTool("Read a text file.", {"path": _PATH, "line": _LINE}, ("path",), FileTools.read_file),
    "search_files": FileTool(
        "Find lines that contain a text, in all files of a folder. Ignores case.",
        {"text": {"type": "string"}, "path": _FOLDER},
        ("text",),
        FileTools.search_files,
    ),
    "write_file": FileTool(
        "Write a whole text file; creates or replaces it. The user may refuse it.",
        {"path": _PATH, "text": {"type": "string", "description": "The whole file."}},
        ("path", "text"),
        FileTools.write_file,
    ),
}

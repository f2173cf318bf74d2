"""Where a memory is, where everything lies in a home, and what may be a name there.

A memory is in a folder, its home, or in a database, which is named by its URL and has no files beside it.

home/
  inmind.db                                     the journal
  index.db                                      what search looks up, made of the journal and deletable
  config.toml                                   settings, if there are any
  sessions/--<cwd>--/<session>/                 live files of a session
      messages.jsonl  meta.json  working-memory/overview.md  detail/  archive/
  resources/<resource>/MEMORY.md  memory/scratch.md
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from urllib.parse import parse_qsl, quote, unquote, urlencode

from inmind.core.encoding import digest
from inmind.core.events.base import Event
from inmind.core.streams import ANONYMOUS, RESOURCE_PREFIX, SESSION_PREFIX, opened_by, resource_of
from inmind.errors import InvalidInput

DATABASE = "inmind.db"
INDEX = "index.db"
CONFIG = "config.toml"
SESSIONS, RESOURCES = "sessions", "resources"
MOST_NAME = 200

DATABASES = ("postgresql://", "postgres://")
"""How the URLs of databases begin."""

_PAIR = r"(host|hostaddr|port|dbname|user|sslmode)\s*=\s*\S*\s*"
_CALLED = re.compile(rf"postgres(ql)?:|(.*\s)?password\s*=|\s*({_PAIR}){{2,}}$")
"""How anything begins that leads to a database, in one of the ways that others take."""

_TOLD_OF_A_URL = frozenset(["host", "hostaddr", "port", "user", "dbname", "sslmode"])
_HOST = r"(?:\[[0-9a-fA-F:.%]+\]|[^:@/?#,\[\]]*)(?::[0-9]*)?"
_URL = re.compile(
    r"(?P<scheme>[a-z]+)://(?:(?P<user>[^:@/?#]*)(?::[^@/?#]*)?@)?"
    rf"(?P<where>{_HOST}(?:,{_HOST})*(?:/[^:@?#]*)?)(?:\?(?P<more>[^@#]*))?"
)


def default_home() -> Path:
    if not (named := os.environ.get("INMIND_HOME")):
        return Path.home() / ".inmind"
    refuse_database(named, "$INMIND_HOME", "$INMIND_DB")
    return Path(named).expanduser()


def default_place() -> Path | str:
    """Where a memory is that nobody has named: the database in $INMIND_DB, or the usual home."""
    url = os.environ.get("INMIND_DB")
    if not url:
        return default_home()
    if os.environ.get("INMIND_HOME"):
        raise InvalidInput(field="$INMIND_DB", expected="nothing beside $INMIND_HOME: a memory is in one of the two")
    return checked_url(url, "$INMIND_DB")


def is_database(place: object) -> bool:
    """By how it begins: no folder of this machine is called like that."""
    return isinstance(place, str) and place.startswith(DATABASES)


def refuse_database(folder: str, field: str, instead: str) -> None:
    """What leads to a database is the name of no folder, and may have a password in it, which is not repeated."""
    if _CALLED.match(folder):
        raise InvalidInput(field=field, expected=f"a folder on this machine: a database is given by {instead}")


def checked_url(url: object, field: str) -> str:
    """One of which it can be told what is a password: what a driver says of others may well be part of it."""
    if isinstance(url, str) and "://" not in url and os.path.isdir(os.path.expanduser(url)):
        raise InvalidInput(field=field, value=url, expected="the URL of a database; a folder is given by --home")
    if not isinstance(url, str) or not is_database(url) or not url.isprintable() or not _URL.fullmatch(url):
        value = shown_url(url) if isinstance(url, str) else url
        expected = "the URL of a database, like postgresql://user:password@host/name, special characters as %XX"
        raise InvalidInput(field=field, value=value, expected=expected)
    return url


def shown_url(url: str) -> str:
    """The URL of a database as people may read it: without its password, nor what could hide one.

    Where it cannot be told what is a password, nothing is shown but which kind of database it is.
    """
    found = _URL.fullmatch(url)
    if found is None:
        return f"{url.partition('://')[0]}://…" if "://" in url else "…"
    user, more = found["user"] or "", [pair for pair in parse_qsl(found["more"] or "") if pair[0] in _TOLD_OF_A_URL]
    asked = f"?{urlencode(more, safe='/')}" if more else ""
    return f"{found['scheme']}://{user}{'@' if user else ''}{found['where']}{asked}"


def session_folder(home: Path, id: str, cwd: str) -> Path:
    """sessions/--<cwd>--/<session>, the working directory with "/" as "-"; a very long one ends in its digest."""
    return home / SESSIONS / folder_of(cwd) / as_file(id)


def resource_folder(home: Path, resource: str) -> Path:
    return home / RESOURCES / as_file(resource)


def resources_in(home: Path) -> list[str]:
    """Those that have a folder."""
    return [name for path in (home / RESOURCES).glob("*") if _is_name(name := unquote(path.name))]


def place_of(home: Path, first: Event) -> Path:
    """Where the files of a stream are, by its first event."""
    if first.stream.startswith(RESOURCE_PREFIX):
        return resource_folder(home, resource_of(first))
    return session_folder(home, first.stream.removeprefix(SESSION_PREFIX), opened_by(first).cwd)


def folder_of(cwd: str) -> str:
    where = cwd.strip("/").replace("/", "-")
    if len(where.encode()) > MOST_NAME:
        where = f"{where.encode()[: MOST_NAME - 20].decode(errors='ignore')}-{digest(cwd)}"
    return f"--{where}--"


def as_file(name: str) -> str:
    quoted = quote(name, safe=" @+=,()!")
    return f"%2E{quoted[1:]}" if quoted.startswith(".") else quoted


def checked_name(value: object, field: str) -> str:
    """A name that can be a folder's: short, printable, without a way to lead elsewhere."""
    plain = isinstance(value, str) and value.isprintable() and value.strip() == value and value not in (".", "..")
    if not plain or not 0 < len(as_file(str(value))) <= MOST_NAME:
        expected = f"a printable name of at most {MOST_NAME} bytes, not '.' or '..', without space around it"
        raise InvalidInput(field=field, value=value, expected=expected)
    return str(value)


def require_resource(resource: object) -> str:
    """A resource in particular: sessions that name none are strangers to each other, and share nothing to dream of."""
    name = checked_name(resource, "resource")
    if name == ANONYMOUS:
        raise InvalidInput(field="resource", value=resource, expected="a resource in particular, not that of nobody")
    return name


def checked_home(home: object) -> Path:
    if isinstance(home, Path) and str(home).startswith(("postgresql:/", "postgres:/")):
        raise InvalidInput(field="home", expected="the URL of a database as a text: a Path takes a slash away from it")
    if isinstance(home, str | Path):
        refuse_database(str(home), "home", "its URL, like postgresql://user:password@host/name")
    if not isinstance(home, str | Path) or not str(home) or "://" in str(home):
        value = shown_url(str(home)) if isinstance(home, str | Path) and str(home) else home
        raise InvalidInput(field="home", value=value, expected="a folder on this machine, or the URL of a database")
    try:
        return _encodable(Path(home).expanduser(), "home")
    except RuntimeError as error:  # ~somebody, who is not there
        raise InvalidInput(field="home", value=home, expected="a folder on this machine") from error


def checked_file(path: object, field: str) -> Path:
    if not isinstance(path, str | Path) or not str(path):
        raise InvalidInput(field=field, value=path, expected="a file")
    return _encodable(Path(path), field)


def working_directory(cwd: object) -> str:
    """The one that a session belongs to: the given one, or the current."""
    if cwd is not None and not isinstance(cwd, str | Path):
        raise InvalidInput(field="cwd", value=cwd, expected="a folder")
    try:
        return str(_encodable(Path(os.getcwd() if cwd is None else cwd).absolute(), "cwd"))
    except OSError as error:
        raise InvalidInput(field="cwd", value=cwd, expected="a folder; the current one is gone, so name one") from error


def _is_name(value: str) -> bool:
    try:
        return bool(checked_name(value, "name"))
    except InvalidInput:
        return False


def _encodable(path: Path, field: str) -> Path:
    try:
        if b"\x00" not in str(path).encode():
            return path
    except UnicodeEncodeError:
        pass
    raise InvalidInput(field=field, value=str(path), expected="a path in UTF-8, without NUL")

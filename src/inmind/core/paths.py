"""Locations of memories, the layout of a home, names allowed in it, and names of streams.

A memory is in a folder, its home, or in a database, which is named by its URL and has no files.

home/
  inmind.db                                     the journal
  index.db                                      the search index, derived from the journal and deletable
  config.toml                                   settings, if any
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
from inmind.core.events.base import Event, EventPayload
from inmind.core.events.session import SessionOpened
from inmind.errors import InvalidInput

SESSION_PREFIX, RESOURCE_PREFIX = "session/", "resource/"
"""Prefixes of stream names."""

SETTINGS_STREAM = "settings"
"""The stream of settings of a memory without a folder."""

ANONYMOUS = "default"
"""The resource of sessions that name none. Such sessions share nothing: orders of one customer must not appear in the
session of another."""

PRIVATE = "\x01"
"""Prefix of an owner that is one session. No resource name can start with it, and unlike NUL every database can store
it."""

DATABASE = "inmind.db"
INDEX = "index.db"
CONFIG = "config.toml"
SESSIONS, RESOURCES = "sessions", "resources"
MAX_NAME_BYTES = 200

DATABASE_SCHEMES = ("postgresql://", "postgres://")
"""Schemes of database URLs."""

_PAIR = r"(host|hostaddr|port|dbname|user|sslmode)\s*=\s*\S*\s*"
_LOOKS_LIKE_DATABASE = re.compile(rf"postgres(ql)?:|(.*\s)?password\s*=|\s*({_PAIR}){{2,}}$")
"""Texts that other programs accept as the address of a database."""

_SHOWN_URL_PARAMETERS = frozenset(["host", "hostaddr", "port", "user", "dbname", "sslmode"])
_HOST = r"(?:\[[0-9a-fA-F:.%]+\]|[^:@/?#,\[\]]*)(?::[0-9]*)?"
_URL = re.compile(
    r"(?P<scheme>[a-z]+)://(?:(?P<user>[^:@/?#]*)(?::[^@/?#]*)?@)?"
    rf"(?P<address>{_HOST}(?:,{_HOST})*(?:/[^:@?#]*)?)(?:\?(?P<query>[^@#]*))?"
)


def default_home() -> Path:
    if not (named := os.environ.get("INMIND_HOME")):
        return Path.home() / ".inmind"
    refuse_database(named, "$INMIND_HOME", "$INMIND_DB")
    return Path(named).expanduser()


def default_place() -> Path | str:
    """The default location of a memory: the database in $INMIND_DB, or the default home."""
    url = os.environ.get("INMIND_DB")
    if not url:
        return default_home()
    if os.environ.get("INMIND_HOME"):
        raise InvalidInput(field="$INMIND_DB", expected="only one of $INMIND_DB and $INMIND_HOME to be set")
    return check_database_url(url, "$INMIND_DB")


def is_database(place: object) -> bool:
    """True for a database URL. No folder name starts like one."""
    return isinstance(place, str) and place.startswith(DATABASE_SCHEMES)


def refuse_database(folder: str, field: str, instead: str) -> None:
    """Raise InvalidInput if a folder name is the address of a database.

    The message repeats no password.
    """
    if _LOOKS_LIKE_DATABASE.match(folder):
        raise InvalidInput(field=field, expected=f"a folder on this machine; use {instead} for a database")


def check_database_url(url: object, field: str) -> str:
    """Check a database URL. Its password must be recognisable.

    Otherwise an error of the driver could repeat the password.
    """
    if isinstance(url, str) and "://" not in url and os.path.isdir(os.path.expanduser(url)):
        raise InvalidInput(field=field, value=url, expected="the URL of a database; use --home for a folder")
    if not isinstance(url, str) or not is_database(url) or not url.isprintable() or not _URL.fullmatch(url):
        value = redact_url(url) if isinstance(url, str) else url
        expected = "the URL of a database, like postgresql://user:password@host/name, special characters as %XX"
        raise InvalidInput(field=field, value=value, expected=expected)
    return url


def redact_url(url: str) -> str:
    """A database URL without its password and anything that could contain one.

    If the password cannot be recognised, only the scheme is returned.
    """
    match = _URL.fullmatch(url)
    if match is None:
        return f"{url.partition('://')[0]}://…" if "://" in url else "…"
    user = match["user"] or ""
    parameters = [pair for pair in parse_qsl(match["query"] or "") if pair[0] in _SHOWN_URL_PARAMETERS]
    query = f"?{urlencode(parameters, safe='/')}" if parameters else ""
    return f"{match['scheme']}://{user}{'@' if user else ''}{match['address']}{query}"


def session_folder(home: Path, id: str, cwd: str) -> Path:
    """sessions/--<cwd>--/<session>, with "/" in the working directory as "-".

    A very long working directory is cut and ends in its digest.
    """
    return home / SESSIONS / cwd_folder_name(cwd) / to_file_name(id)


def resource_folder(home: Path, resource: str) -> Path:
    return home / RESOURCES / to_file_name(resource)


def resources_with_folder(home: Path) -> list[str]:
    """Names of the resources that have a folder."""
    return [name for path in (home / RESOURCES).glob("*") if _is_name(name := unquote(path.name))]


def stream_folder(home: Path, first: Event) -> Path:
    """The folder of a stream's files, derived from its first event."""
    if first.stream.startswith(RESOURCE_PREFIX):
        return resource_folder(home, resource_of(first))
    return session_folder(home, first.stream.removeprefix(SESSION_PREFIX), opened_by(first).cwd)


def owner_of(stream: str, resource: str) -> str:
    """The owner of a session's crystals: its resource, or the session itself if it has none."""
    return f"{PRIVATE}{stream}" if resource == ANONYMOUS else resource


def owner_from_first_event(stream: str, first: EventPayload) -> str:
    """The owner of a stream, derived from its first event. Empty if that event names none."""
    if stream.startswith(RESOURCE_PREFIX):
        return stream.removeprefix(RESOURCE_PREFIX)
    return owner_of(stream, first.resource) if isinstance(first, SessionOpened) else ""


def opened_by(first: Event) -> SessionOpened:
    """The opening event of a session, or an empty one for other streams."""
    return first.payload if isinstance(first.payload, SessionOpened) else SessionOpened(resource="", cwd="")


def resource_of(first: Event) -> str:
    """The resource that a stream belongs to, derived from its first event."""
    is_resource_stream = first.stream.startswith(RESOURCE_PREFIX)
    return first.stream.removeprefix(RESOURCE_PREFIX) if is_resource_stream else opened_by(first).resource


def cwd_folder_name(cwd: str) -> str:
    name = cwd.strip("/").replace("/", "-")
    if len(name.encode()) > MAX_NAME_BYTES:
        name = f"{name.encode()[: MAX_NAME_BYTES - 20].decode(errors='ignore')}-{digest(cwd)}"
    return f"--{name}--"


def to_file_name(name: str) -> str:
    quoted = quote(name, safe=" @+=,()!")
    return f"%2E{quoted[1:]}" if quoted.startswith(".") else quoted


def check_name(value: object, field: str) -> str:
    """Check a name that is used as a folder name: short, printable, not a path."""
    plain = isinstance(value, str) and value.isprintable() and value.strip() == value and value not in (".", "..")
    if not plain or not 0 < len(to_file_name(str(value))) <= MAX_NAME_BYTES:
        expected = f"a printable name of at most {MAX_NAME_BYTES} bytes, not '.' or '..', without space around it"
        raise InvalidInput(field=field, value=value, expected=expected)
    return str(value)


def require_resource(resource: object) -> str:
    """Check the name of a resource. The default one is refused: its sessions share nothing."""
    name = check_name(resource, "resource")
    if name == ANONYMOUS:
        raise InvalidInput(
            field="resource",
            value=resource,
            expected="a named resource, as in memory.session(id, resource=NAME)",
        )
    return name


def check_home(home: object) -> Path:
    if isinstance(home, Path) and str(home).startswith(("postgresql:/", "postgres:/")):
        raise InvalidInput(field="home", expected="a database URL as a string: a Path removes a slash from it")
    if isinstance(home, str | Path):
        refuse_database(str(home), "home", "its URL, like postgresql://user:password@host/name")
    if not isinstance(home, str | Path) or not str(home) or "://" in str(home):
        value = redact_url(str(home)) if isinstance(home, str | Path) and str(home) else home
        raise InvalidInput(field="home", value=value, expected="a folder on this machine, or the URL of a database")
    try:
        return _check_encodable(Path(home).expanduser(), "home")
    except RuntimeError as error:  # "~name" of an unknown user
        raise InvalidInput(field="home", value=home, expected="a folder on this machine") from error


def check_file(path: object, field: str) -> Path:
    if not isinstance(path, str | Path) or not str(path):
        raise InvalidInput(field=field, value=path, expected="a file")
    return _check_encodable(Path(path), field)


def working_directory(cwd: object) -> str:
    """The working directory of a session: the given one, or the current."""
    if cwd is not None and not isinstance(cwd, str | Path):
        raise InvalidInput(field="cwd", value=cwd, expected="a folder")
    try:
        return str(_check_encodable(Path(os.getcwd() if cwd is None else cwd).absolute(), "cwd"))
    except OSError as error:
        raise InvalidInput(
            field="cwd", value=cwd, expected="a folder; the current directory no longer exists"
        ) from error


def _is_name(value: str) -> bool:
    try:
        return bool(check_name(value, "name"))
    except InvalidInput:
        return False


def _check_encodable(path: Path, field: str) -> Path:
    try:
        if b"\x00" not in str(path).encode():
            return path
    except UnicodeEncodeError:
        pass
    raise InvalidInput(field=field, value=str(path), expected="a path in UTF-8, without NUL")

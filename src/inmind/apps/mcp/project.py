"""Which session a call is about, and whose memory it may touch.

One server is asked by many, and one home has the memory of many projects. What a client works on is its project: the
folder that it says it works in, the one that the server was started in or for, or a name in the URL that it was
configured with. A project's memory is its own resource, and a session that a model names is a session of that resource:
no call reaches another one by its name. An operator may give the resource instead, or open all of them.

A project that is called after a folder has a few characters of the digest of its path in its name: two folders of one
name are two projects.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

from inmind.core.frozen import frozen
from inmind.core.paths import checked_name, require_resource
from inmind.core.streams import ANONYMOUS
from inmind.errors import InvalidInput, NotFound

LONGEST = 48
"""Bytes of a folder's name in that of its project."""

SESSION, RESOURCE = "INMIND_SESSION", "INMIND_RESOURCE"

_SAY_WHICH = "a project: ?project=NAME in the client's URL, or --cwd, --session or --resource for the server"


@frozen(kw_only=True)
class Project:
    """What a client works on."""

    name: str
    folder: Path | None = None
    """Where that is, if it is known."""

    @classmethod
    def at(cls, folder: Path) -> Project:
        return cls(name=named_after(folder), folder=folder)

    @classmethod
    def named(cls, name: str) -> Project:
        return cls(name=require_resource(name))


@frozen(kw_only=True)
class Place:
    """The session that a call is about."""

    session: str
    """By the name that whoever asks has for it."""
    resource: str
    """Whose it is."""
    anybody: bool
    """Unless it is there already: then it may be anybody's."""
    own: bool
    """The name is the caller's own choice, which has to say nothing about what others have chosen."""
    folder: Path | None

    @property
    def within(self) -> str:
        """What the session is called where somebody else may have that name: in this home an id is unique."""
        return f"{self.session}@{self.resource}"


@frozen(kw_only=True)
class Usual:
    """What calls are about that do not say it, and what none can be about."""

    project: Project | None = None
    """Of clients that have none of their own; None where our own folder is nobody's."""
    told: bool = False
    """Somebody has said which it is: then no client is asked for its folder."""
    session: str = ""
    resource: str = ""
    everybody: bool = False
    """All resources of the home are open to all."""

    @classmethod
    def of(
        cls,
        environment: Mapping[str, str],
        *,
        cwd: Path | None = None,
        session: str | None = None,
        resource: str | None = None,
        everybody: bool = False,
        here: bool = True,
    ) -> Usual:
        """As it was told on the command line, or else by the environment. `here`: our own folder is the client's."""
        about = environment.get(SESSION, "") if session is None else session
        whose = environment.get(RESOURCE, "") if resource is None else resource
        if whose and everybody:
            raise InvalidInput(field="--all-resources", value=whose, expected="no --resource beside it")
        folder = cwd or (Path.cwd() if here else None)
        return cls(
            project=Project.at(folder.resolve()) if folder else None,
            told=cwd is not None,
            session=about and checked_name(about, "session"),
            resource=whose and require_resource(whose),
            everybody=everybody,
        )

    def leaves_open(self, session: str = "", resource: str = "") -> bool:
        """Does it depend on the client's folder what a call is about that names these?"""
        known = self.resource or (self.everybody and resource)
        return not self.told and not ((session or self.session) and known)

    def whose(self, project: Project | None) -> str:
        """Whose memory a client with this project may touch."""
        found = project or self.project
        if owner := self.resource or (found.name if found else self.session):
            return owner
        raise InvalidInput(field="project", value="none", expected=_SAY_WHICH)

    def place(self, session: str = "", resource: str = "", *, project: Project | None = None) -> Place:
        """Where a call belongs that names these."""
        found = project or self.project
        if self.everybody:
            owner = resource or (session if session and found is None else self.whose(project))
        else:
            owner = self.whose(project)
            if resource not in ("", owner):
                raise InvalidInput(field="resource", value=resource, expected=f"{owner!r}, or none")
            if owner == ANONYMOUS and session not in ("", self.session):
                # Sessions of nobody in particular are strangers to each other.
                raise NotFound(what="session", name=session, hint=f"this server is for {self.session!r} alone")
        return Place(
            session=session or self.session or (found.name if found else owner),
            resource=owner,
            anybody=self.everybody and not resource,
            own=bool(session) and session != self.session and not self.everybody,
            folder=found.folder if found else None,
        )


def named_after(folder: Path) -> str:
    """The name of a folder, and enough of its path's digest to tell it from others of that name."""
    plain = "".join(each if each.isalnum() or each in "-_." else "-" for each in folder.name) or "root"
    short = plain.encode(errors="replace")[:LONGEST].decode(errors="ignore")
    return f"{short}-{sha256(os.fsencode(folder)).hexdigest()[:6]}"


def folder_of(uri: str) -> Path | None:
    """The folder that a client names by its URI; None where it is none on a file system."""
    try:
        parts = urlsplit(uri)
        path = Path(url2pathname(parts.path))
        return path.resolve() if parts.scheme == "file" and path.is_absolute() else None
    except (ValueError, OSError, RuntimeError):  # no URI, no path, or a path that leads in circles
        return None

"""Resolves the session and the resource of a call.

One server has many clients, and one home has the memory of many projects. The project of a client is the folder that
it reports, the folder of the server, or a name in its configured URL. Each project is a separate resource, and a
session that a model names is a session of that resource: no call reaches another resource by name. An operator can set
the resource instead, or open all of them.

The name of a folder's project contains a part of the digest of its path, so that two folders with the same name are two
projects.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

from inmind.core.frozen import frozen
from inmind.core.paths import check_name, require_resource
from inmind.core.stream_names import ANONYMOUS
from inmind.errors import InvalidInput, NotFound

MAX_NAME_BYTES = 48
"""Bytes of the folder name in the project name."""

SESSION, RESOURCE = "INMIND_SESSION", "INMIND_RESOURCE"

_EXPECTED_PROJECT = "a project: ?project=NAME in the client's URL, or --cwd, --session or --resource for the server"


@frozen(kw_only=True)
class Project:
    """The project of a client."""

    name: str
    folder: Path | None = None
    """Its folder, if known."""

    @classmethod
    def at(cls, folder: Path) -> Project:
        return cls(name=folder_project_name(folder), folder=folder)

    @classmethod
    def from_name(cls, name: str) -> Project:
        return cls(name=require_resource(name))


@frozen(kw_only=True)
class SessionTarget:
    """The session of a call."""

    session: str
    """Name that the caller uses."""
    resource: str
    """Owner of the session."""
    any_resource: bool
    """If the session exists, it may belong to any resource."""
    is_callers_choice: bool
    """The caller chose the name; it must not reveal which names other projects use."""
    folder: Path | None

    @property
    def qualified_id(self) -> str:
        """Session id if another resource already uses the name: ids are unique in a home."""
        return f"{self.session}@{self.resource}"


@frozen(kw_only=True)
class ServerDefaults:
    """Defaults and restrictions for calls."""

    project: Project | None = None
    """Project of clients without one; None if the server's folder belongs to no client."""
    is_fixed: bool = False
    """The operator set the project: clients are not asked for their folders."""
    session: str = ""
    resource: str = ""
    all_resources: bool = False
    """Every client can access all resources of the home."""

    @classmethod
    def from_options(
        cls,
        environment: Mapping[str, str],
        *,
        cwd: Path | None = None,
        session: str | None = None,
        resource: str | None = None,
        all_resources: bool = False,
        use_cwd: bool = True,
    ) -> ServerDefaults:
        """Read the command line, then the environment.

        `use_cwd`: the current folder is that of the client.
        """
        session_name = environment.get(SESSION, "") if session is None else session
        resource_name = environment.get(RESOURCE, "") if resource is None else resource
        if resource_name and all_resources:
            raise InvalidInput(
                field="--all-resources", value=resource_name, expected="no --resource: the two cannot be combined"
            )
        folder = cwd or (Path.cwd() if use_cwd else None)
        return cls(
            project=Project.at(folder.resolve()) if folder else None,
            is_fixed=cwd is not None,
            session=session_name and check_name(session_name, "session"),
            resource=resource_name and require_resource(resource_name),
            all_resources=all_resources,
        )

    def depends_on_project(self, session: str = "", resource: str = "") -> bool:
        """True if a call with these names needs the client's folder to be resolved."""
        known = self.resource or (self.all_resources and resource)
        return not self.is_fixed and not ((session or self.session) and known)

    def owner_of(self, project: Project | None) -> str:
        """The resource that a client with this project can access."""
        known_project = project or self.project
        if owner := self.resource or (known_project.name if known_project else self.session):
            return owner
        raise InvalidInput(field="project", value="none", expected=_EXPECTED_PROJECT)

    def target(self, session: str = "", resource: str = "", *, project: Project | None = None) -> SessionTarget:
        """Resolve the session of a call that names these."""
        known_project = project or self.project
        if self.all_resources:
            owner = resource or (session if session and known_project is None else self.owner_of(project))
        else:
            owner = self.owner_of(project)
            if resource not in ("", owner):
                raise InvalidInput(field="resource", value=resource, expected=f"{owner!r}, or none")
            if owner == ANONYMOUS and session not in ("", self.session):
                # Anonymous sessions cannot access each other.
                raise NotFound(what="session", name=session, hint=f"this server only serves {self.session!r}")
        return SessionTarget(
            session=session or self.session or (known_project.name if known_project else owner),
            resource=owner,
            any_resource=self.all_resources and not resource,
            is_callers_choice=bool(session) and session != self.session and not self.all_resources,
            folder=known_project.folder if known_project else None,
        )


def folder_project_name(folder: Path) -> str:
    """Folder name plus six hex digits of the digest of its path."""
    plain = "".join(each if each.isalnum() or each in "-_." else "-" for each in folder.name) or "root"
    short = plain.encode(errors="replace")[:MAX_NAME_BYTES].decode(errors="ignore")
    return f"{short}-{sha256(os.fsencode(folder)).hexdigest()[:6]}"


def folder_from_uri(uri: str) -> Path | None:
    """Local folder of a file URI; None for any other URI."""
    try:
        parts = urlsplit(uri)
        path = Path(url2pathname(parts.path))
        return path.resolve() if parts.scheme == "file" and path.is_absolute() else None
    except (ValueError, OSError, RuntimeError):  # invalid URI or path, or a symlink loop
        return None

"""What a client can attach without calling a tool: MEMORY.md, overview.md, the things in mind, the list of sessions.

    inmind://sessions                 as JSON
    inmind://memory/{resource}        MEMORY.md, and the notes that the next dream will take in
    inmind://overview/{session}
    inmind://entities/{session}

They are those of the project that the client works on; another's are not there. Reading one begins no session and no
resource. What is read may well end up in a prompt, so it is inert.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from urllib.parse import quote, unquote

from mcp_types import Resource, ResourceTemplate

from inmind.apps.mcp.project import Place, Project, Usual
from inmind.apps.mcp.session_pool import Keeper
from inmind.core.streams import ANONYMOUS
from inmind.core.text import inert
from inmind.documents.document import MEMORY_PAGE_PATH, NOTES_PAGE_PATH
from inmind.entities.render import BANNER, render_block
from inmind.errors import NotFound

SCHEME = "inmind://"
SESSIONS = f"{SCHEME}sessions"

NOTHING = "(nothing yet)"

_MARKDOWN, _PLAIN, _JSON = "text/markdown", "text/plain", "application/json"

_KINDS = {
    "memory": ("resource", "MEMORY.md", "What is known of a resource, over all of its sessions.", _MARKDOWN),
    "overview": ("session", "overview.md", "Task, decisions, facts and open problems of a session.", _MARKDOWN),
    "entities": ("session", "Things in mind", "What a session is about right now, with ids.", _PLAIN),
}


def listed(place: Place) -> list[Resource]:
    """Those of the place where the client works, and the list of all."""
    names = {"resource": place.resource, "session": place.session}
    return [
        *(
            Resource(
                uri=_uri(kind, names[whose]),
                name=f"{title} of {inert(names[whose])}",
                description=what,
                mime_type=mime,
            )
            for kind, (whose, title, what, mime) in _KINDS.items()
        ),
        Resource(uri=SESSIONS, name="Sessions", description="Every session that is open to you.", mime_type=_JSON),
    ]


def templates() -> list[ResourceTemplate]:
    return [
        ResourceTemplate(uri_template=f"{SCHEME}{kind}/{{{whose}}}", name=title, description=what, mime_type=mime)
        for kind, (whose, title, what, mime) in _KINDS.items()
    ]


def read(uri: str, keeper: Keeper, usual: Usual, project: Project | None) -> tuple[str, str]:
    """The text of a resource, and its type. What `listed` has named is there, if only to say that it is empty."""
    if uri == SESSIONS:
        return inert(_sessions(keeper, usual, project)), _JSON
    kind, _, quoted = uri.removeprefix(SCHEME).partition("/")
    name = unquote(quoted)
    if not uri.startswith(SCHEME) or kind not in _KINDS or not name:
        there = ", ".join([SESSIONS, *(template.uri_template for template in templates())])
        raise NotFound(what="resource at", name=uri, hint=f"there are: {there}")
    try:
        return _READ[kind](keeper, usual, project, name), _KINDS[kind][-1]
    except NotFound:
        here = usual.place(project=project)
        if name != (here.resource if kind == "memory" else here.session):
            raise
        return NOTHING, _PLAIN


def _memory(keeper: Keeper, usual: Usual, project: Project | None, name: str) -> str:
    if not (usual.everybody or name == usual.whose(project)) or not keeper.memory.has_resource(name):
        raise NotFound(what="resource", name=name, hint="nothing of it is open to you")
    documents = keeper.memory.resource(name).state.documents
    return inert(
        "\n".join(text for path in (MEMORY_PAGE_PATH, NOTES_PAGE_PATH) if (text := documents.text(path))) or NOTHING
    )


def _overview(keeper: Keeper, usual: Usual, project: Project | None, name: str) -> str:
    return inert(keeper.session(usual.place(name, project=project), begin=False).overview)


def _entities(keeper: Keeper, usual: Usual, project: Project | None, name: str) -> str:
    """As it stands in a prompt: inert, but for its own banner."""
    text = render_block(keeper.session(usual.place(name, project=project), begin=False).entities)
    return f"{BANNER}{inert(text.removeprefix(BANNER))}"


_READ = {"memory": _memory, "overview": _overview, "entities": _entities}


def _sessions(keeper: Keeper, usual: Usual, project: Project | None) -> str:
    whose = None if usual.everybody else usual.whose(project)
    found = keeper.memory.sessions(resource=whose)
    if whose == ANONYMOUS:
        found = [info for info in found if info.id == usual.session]
    return json.dumps(
        [{**asdict(info), "folder": info.folder and str(info.folder)} for info in found], ensure_ascii=False, indent=2
    )


def _uri(kind: str, name: str) -> str:
    return f"{SCHEME}{kind}/{quote(name, safe='')}"

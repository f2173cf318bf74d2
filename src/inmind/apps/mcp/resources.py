"""Resources and prompts of the server, which a user attaches or picks in the client.

    inmind://sessions                 as JSON
    inmind://memory/{resource}        MEMORY.md, and the notes for the next dream
    inmind://overview/{session}
    inmind://entities/{session}

A client can read only the resources of its project. Reading one creates no session and no resource. The text may end up
in a prompt, so it is made inert.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from urllib.parse import quote, unquote

from mcp_types import GetPromptResult, Prompt, PromptArgument, PromptMessage, Resource, ResourceTemplate, TextContent

from inmind.apps.mcp.sessions import Project, ServerDefaults, SessionPool, SessionTarget
from inmind.core.paths import ANONYMOUS
from inmind.core.text import escape_markup
from inmind.documents.document import MEMORY_PAGE_PATH, NOTES_PAGE_PATH
from inmind.entities.render import BANNER, render_block
from inmind.errors import NotFound
from inmind.session.session import Session

SCHEME = "inmind://"
SESSIONS = f"{SCHEME}sessions"

EMPTY_TEXT = "(nothing yet)"

_MARKDOWN, _PLAIN, _JSON = "text/markdown", "text/plain", "application/json"

_KINDS = {
    "memory": ("resource", "MEMORY.md", "Long-term memory of a resource, across its sessions.", _MARKDOWN),
    "overview": ("session", "overview.md", "Task, decisions, facts and open problems of a session.", _MARKDOWN),
    "entities": ("session", "Entities", "Current entities of a session, with ids.", _PLAIN),
}


def list_resources(target: SessionTarget) -> list[Resource]:
    """Resources of the client's session, and the list of sessions."""
    names = {"resource": target.resource, "session": target.session}
    return [
        *(
            Resource(
                uri=_uri(kind, names[owner_kind]),
                name=f"{title} of {escape_markup(names[owner_kind])}",
                description=description,
                mime_type=mime,
            )
            for kind, (owner_kind, title, description, mime) in _KINDS.items()
        ),
        Resource(uri=SESSIONS, name="Sessions", description="All sessions that you can access.", mime_type=_JSON),
    ]


def list_templates() -> list[ResourceTemplate]:
    return [
        ResourceTemplate(
            uri_template=f"{SCHEME}{kind}/{{{owner_kind}}}", name=title, description=description, mime_type=mime
        )
        for kind, (owner_kind, title, description, mime) in _KINDS.items()
    ]


def read_resource(uri: str, pool: SessionPool, defaults: ServerDefaults, project: Project | None) -> tuple[str, str]:
    """Text and MIME type of a resource.

    Listed resources always exist, if only as an empty text.
    """
    if uri == SESSIONS:
        return escape_markup(_read_sessions(pool, defaults, project)), _JSON
    kind, _, quoted = uri.removeprefix(SCHEME).partition("/")
    name = unquote(quoted)
    if not uri.startswith(SCHEME) or kind not in _KINDS or not name:
        available = ", ".join([SESSIONS, *(template.uri_template for template in list_templates())])
        raise NotFound(what="resource at", name=uri, hint=f"available: {available}")
    try:
        if kind == "memory":
            return _read_memory(pool, defaults, project, name), _MARKDOWN
        session = pool.session(defaults.target(name, project=project), create=False)
        return (_entities(session), _PLAIN) if kind == "entities" else (escape_markup(session.overview), _MARKDOWN)
    except NotFound:
        target = defaults.target(project=project)
        if name != (target.resource if kind == "memory" else target.session):
            raise
        return EMPTY_TEXT, _PLAIN


def _read_memory(pool: SessionPool, defaults: ServerDefaults, project: Project | None, name: str) -> str:
    if not (defaults.all_resources or name == defaults.owner_of(project)) or not pool.memory.has_resource(name):
        raise NotFound(what="resource", name=name, hint="it does not exist, or you have no access")
    documents = pool.memory.resource(name).state.documents
    return escape_markup(
        "\n".join(text for path in (MEMORY_PAGE_PATH, NOTES_PAGE_PATH) if (text := documents.text(path))) or EMPTY_TEXT
    )


def _entities(session: Session) -> str:
    """The entity block as in a prompt: inert except its banner."""
    return f"{BANNER}{escape_markup(render_block(session.entities).removeprefix(BANNER))}"


def _read_sessions(pool: SessionPool, defaults: ServerDefaults, project: Project | None) -> str:
    owner = None if defaults.all_resources else defaults.owner_of(project)
    infos = pool.memory.sessions(resource=owner)
    if owner == ANONYMOUS:
        infos = [info for info in infos if info.id == defaults.session]
    return json.dumps(
        [{**asdict(info), "folder": info.folder and str(info.folder)} for info in infos], ensure_ascii=False, indent=2
    )


def _uri(kind: str, name: str) -> str:
    return f"{SCHEME}{kind}/{quote(name, safe='')}"


# -- prompts ------------------------------------------------------------------------------------------------

IN_MIND, HAND_OVER = "what_do_you_have_in_mind", "hand_over"

_SESSION_ARGUMENT = PromptArgument(name="session", description="Session; default: this project's.", required=False)

_PROMPTS: Mapping[str, tuple[str, str]] = {
    IN_MIND: ("What do you have in mind?", "Current content of working memory."),
    HAND_OVER: ("Hand over to a new session", "State, task, decisions, entities with ids, and a list of pages."),
}


def list_prompts() -> list[Prompt]:
    return [
        Prompt(name=name, title=title, description=description, arguments=[_SESSION_ARGUMENT])
        for name, (title, description) in _PROMPTS.items()
    ]


def check_prompt_name(name: str) -> None:
    if name not in _PROMPTS:
        raise NotFound(what="prompt", name=name, hint=f"available: {', '.join(_PROMPTS)}")


def build_prompt(name: str, session: Session) -> GetPromptResult:
    state = session.call_tool("working_memory_show").text
    if name == IN_MIND:
        text = f"Summarize what you have in mind and what you would do next. This is your memory:\n\n{state}"
    else:
        session_id, resource = escape_markup(session.id), escape_markup(session.resource)
        pages = session.call_tool("memory_list").text
        text = (
            f"You take over session {session_id} of {resource}. Its working memory:\n\n{state}\n\n"
            f'memory_read with session "{session_id}" shows these in full:\n{pages}\n\n'
            "State the task, the decisions and your next step; then continue."
        )
    message = PromptMessage(role="user", content=TextContent(type="text", text=text))
    return GetPromptResult(description=_PROMPTS[name][1], messages=[message])

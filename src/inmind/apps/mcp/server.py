"""The MCP server: parses each request, runs it in a thread, and renders the result.

Uses the SDK's low-level server, because the tools come from the library's registry and are not functions here. They are
those of the registry, except compaction: the conversation belongs to the client. Each tool also takes its session, and
its resource if all are open. Without connection state, tools that overwrite something take what the caller has `seen`;
otherwise the server tracks that.
"""

from __future__ import annotations

import json
from functools import partial
from importlib.metadata import version
from typing import Any

from mcp.server import Server, ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    GetPromptRequestParams,
    GetPromptResult,
    ListPromptsResult,
    ListResourcesResult,
    ListResourceTemplatesResult,
    ListToolsResult,
    NotificationParams,
    PaginatedRequestParams,
    ReadResourceRequestParams,
    ReadResourceResult,
    TextContent,
    TextResourceContents,
    Tool,
)

from inmind.apps.mcp import resources
from inmind.apps.mcp.sessions import Connections, Project, ServerDefaults, SessionPool, configured_project
from inmind.core.json import is_object
from inmind.core.text import escape_markup
from inmind.errors import InmindError, InvalidInput, NotFound
from inmind.memory.session_opener import default_layers
from inmind.session.tools.base import ToolResult
from inmind.session.tools.registry import tool_schemas
from inmind.session.tools.table import TOOLS

INSTRUCTIONS = (
    "Your working memory, which persists across conversations. At the start of a task call working_memory_show. Save "
    "lasting facts with working_memory_note, the state of the task with working_memory_update and memory_write "
    "(overview.md). memory_search finds anything said or noted before: use it before you ask the user again. Report "
    'results of your other tools with working_memory_observe, so that "that page" can be resolved.'
)

KEY_META = "inmind/key"
"""Idempotency key in the `_meta` of a call: repeated calls with the same key are executed once."""

WITHIN = "within"
"""Name of the session filter of a search here, because `session` names the caller's session."""

_NAMES = {"type": "object", "additionalProperties": {"type": "string"}}
_SESSION = {"type": "string", "description": "Session; default: this project's."}
_RESOURCE = {"type": "string", "description": "Owner of a new session."}
_SEEN = {**_NAMES, "description": "`seen` of the last answer about what you overwrite."}
_WITHIN = {"type": "string", "description": "Only from this session."}

_OVERWRITING = frozenset(tool.wire_name for tool in TOOLS if tool.overwrites)
_SHOWING_PAGES = frozenset(tool.wire_name for tool in TOOLS if tool.shows_pages)
_EXCLUDED = frozenset({"compact_history"})
"""Tools about the conversation, which belongs to the client."""

Context = ServerRequestContext[Any, Any]


def build_server(pool: SessionPool, defaults: ServerDefaults) -> Server[Any]:
    """A server for any number of connections over any transport."""
    handlers = _Handlers(pool, defaults)
    server: Server[Any] = Server(
        "inmind",
        title="inmind",
        version=version("inmind"),
        instructions=INSTRUCTIONS,
        on_list_tools=handlers.list_tools,
        on_call_tool=handlers.call_tool,
        on_list_resources=handlers.list_resources,
        on_list_resource_templates=handlers.list_resource_templates,
        on_read_resource=handlers.read_resource,
        on_list_prompts=handlers.list_prompts,
        on_get_prompt=handlers.get_prompt,
    )
    server.add_notification_handler("notifications/roots/list_changed", NotificationParams, handlers.on_roots_changed)
    return server


class _Handlers:
    def __init__(self, pool: SessionPool, defaults: ServerDefaults) -> None:
        self._pool, self._defaults, self._connections = pool, defaults, Connections()
        self._tools = {
            tracked: {tool.name: tool for tool in mcp_tools(tracked=tracked, all_resources=defaults.all_resources)}
            for tracked in (True, False)
        }

    async def list_tools(self, context: Context, _: PaginatedRequestParams | None) -> ListToolsResult:
        return ListToolsResult(tools=list(self._tools[self._connections.get(context) is not None].values()))

    async def call_tool(self, context: Context, params: CallToolRequestParams) -> CallToolResult:
        connection = self._connections.get(context)
        offered = self._tools[connection is not None]
        tool = offered.get(params.name)
        if tool is None:
            raise _invalid_params(NotFound(what="tool", name=params.name, hint=f"available: {', '.join(offered)}"))
        arguments, key = dict(params.arguments or {}), (params.meta or {}).get(KEY_META)
        try:
            name, resource = _take_name(arguments, "session"), _take_name(arguments, "resource")
            within = _take_name(arguments, WITHIN) if WITHIN in tool.input_schema["properties"] else ""
            seen = _take_seen(arguments)
            project = await self._project(context, name, resource)
            target = partial(self._defaults.target, resource=resource, project=project)
            reads_only = tool.annotations is not None and tool.annotations.read_only_hint is True

            def call() -> ToolResult:
                session = self._pool.session(target(name), create=not (reads_only and name))
                if within:
                    arguments["session"] = self._pool.session(target(within), create=False).id
                # `seen` of the call only adds to what this connection was shown.
                versions = connection.versions[session.id] if connection else {}
                result = session.call_tool(params.name, arguments, seen={**seen, **versions}, key=key)
                versions.update(result.seen)
                return result

            result = await self._pool.run(call)
        except InmindError as error:
            return error_result(error)
        return tool_result(result, tracked=connection is not None)

    async def list_resources(self, context: Context, _: PaginatedRequestParams | None) -> ListResourcesResult:
        """Empty if the project is unknown."""
        try:
            target = self._defaults.target(project=await self._project(context))
        except InmindError:
            return ListResourcesResult(resources=[])
        return ListResourcesResult(resources=resources.list_resources(target))

    async def list_resource_templates(
        self, _: Context, __: PaginatedRequestParams | None
    ) -> ListResourceTemplatesResult:
        return ListResourceTemplatesResult(resource_templates=resources.list_templates())

    async def read_resource(self, context: Context, params: ReadResourceRequestParams) -> ReadResourceResult:
        uri = str(params.uri)
        try:
            project = await self._project(context)
            text, kind = await self._pool.run(
                partial(resources.read_resource, uri, self._pool, self._defaults, project)
            )
        except InmindError as error:
            raise _invalid_params(error) from error
        return ReadResourceResult(contents=[TextResourceContents(uri=uri, text=text, mime_type=kind)])

    async def list_prompts(self, _: Context, __: PaginatedRequestParams | None) -> ListPromptsResult:
        return ListPromptsResult(prompts=resources.list_prompts())

    async def get_prompt(self, context: Context, params: GetPromptRequestParams) -> GetPromptResult:
        name = (params.arguments or {}).get("session", "")
        try:
            resources.check_prompt_name(params.name)
            target = self._defaults.target(name, project=await self._project(context, name))
            return await self._pool.run(
                lambda: resources.build_prompt(params.name, self._pool.session(target, create=not name))
            )
        except InmindError as error:
            raise _invalid_params(error) from error

    async def on_roots_changed(self, context: Context, _: NotificationParams) -> None:
        if (connection := self._connections.get(context)) is not None:
            connection.reset_project()

    async def _project(self, context: Context, session: str = "", resource: str = "") -> Project | None:
        """Project of the client, which is asked for its folder only if the result depends on it."""
        if (project := configured_project(context)) is not None:
            return project
        connection = self._connections.get(context)
        if connection is None or not self._defaults.depends_on_project(session, resource):
            return None
        return await connection.project(context)


def mcp_tools(*, tracked: bool, all_resources: bool) -> tuple[Tool, ...]:
    """All tools.

    `tracked`: the server tracks what the caller has seen. `all_resources`: all are open.
    """
    tools: list[Tool] = []
    for schema in tool_schemas(default_layers(), "mcp"):
        name, inputs, outputs = schema["name"], schema["inputSchema"], schema["outputSchema"]
        if name in _EXCLUDED:
            continue
        handles = {"session": _SESSION, **({"resource": _RESOURCE} if all_resources else {})}
        if "session" in inputs["properties"]:
            handles = {WITHIN: _WITHIN, **handles}
        if name in _OVERWRITING and not tracked:
            handles = {"seen": _SEEN, **handles}
        own = {field: value for field, value in inputs["properties"].items() if field != "session"}
        versions = {"seen": _NAMES} if name in _SHOWING_PAGES else {}
        with_handles = {
            "inputSchema": {**inputs, "properties": {**own, **handles}},
            "outputSchema": {**outputs, "properties": {**outputs["properties"], **versions}},
        }
        tools.append(Tool.model_validate({**schema, **with_handles}))
    return tuple(tools)


def _take_name(arguments: dict[str, Any], field: str) -> str:
    """Remove a handle from the arguments of a tool; models pass an empty text for none."""
    value = arguments.pop(field, None) or ""
    if not isinstance(value, str):
        raise InvalidInput(field=field, value=value, expected="a name")
    return value


def _take_seen(arguments: dict[str, Any]) -> dict[str, str]:
    value: Any = arguments.pop("seen", None) or {}
    if not is_object(value) or not all(isinstance(version, str) for version in value.values()):
        raise InvalidInput(field="seen", value=value, expected="`seen` of an earlier answer")
    return value


def tool_result(result: ToolResult, *, tracked: bool) -> CallToolResult:
    """Result of a tool. If `tracked`, `seen` is not printed for the model."""
    seen = dict(result.seen)
    text = f"{result.code}: {result.text}" if result.error and result.code else result.text
    if seen and not tracked:
        text = f"{text}\n[seen: {json.dumps(seen, ensure_ascii=False)}]"
    content = None if result.error else {**result.content, **({"seen": seen} if seen else {})}
    return CallToolResult(
        content=[TextContent(type="text", text=text)], structured_content=content, is_error=result.error
    )


def error_result(error: InmindError) -> CallToolResult:
    """An error as a tool result, so that the model can read it and continue."""
    return CallToolResult(content=[TextContent(type="text", text=_error_text(error))], is_error=True)


def _error_text(error: InmindError) -> str:
    """Text of an error, made inert: it may contain names chosen by others."""
    return escape_markup(f"{error.code}: {error}")


def _invalid_params(error: InmindError) -> MCPError:
    return MCPError(code=INVALID_PARAMS, message=_error_text(error))

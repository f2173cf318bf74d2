"""The MCP server: parses each request, runs it in a thread, and renders the result.

Uses the SDK's low-level server, because the tools come from the library's registry and are not functions here.
"""

from __future__ import annotations

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
    TextResourceContents,
)

from inmind.apps.mcp import resources, tools
from inmind.apps.mcp.connections import Connections, McpConnection, configured_project
from inmind.apps.mcp.project import Project, ServerDefaults
from inmind.apps.mcp.session_pool import SessionPool
from inmind.errors import InmindError, NotFound
from inmind.session.tools.base import ToolResult

INSTRUCTIONS = (
    "Your working memory, which persists across conversations. At the start of a task call working_memory_show. Save "
    "lasting facts with working_memory_note, the state of the task with working_memory_update and memory_write "
    "(overview.md). memory_search finds anything said or noted before: use it before you ask the user again. Report "
    'results of your other tools with working_memory_observe, so that "that page" can be resolved.'
)

KEY_META = "inmind/key"
"""Idempotency key in the `_meta` of a call: repeated calls with the same key are executed once."""

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
            tracked: {
                tool.name: tool for tool in tools.mcp_tools(tracked=tracked, all_resources=defaults.all_resources)
            }
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
        try:
            call = tools.parse_call(tool, params.arguments or {})
            project = await self._project(context, call.session, call.resource)
            key = (params.meta or {}).get(KEY_META)
            result = await self._pool.run(partial(self._call, call, project, connection, key))
        except InmindError as error:
            return tools.error_result(error)
        return tools.tool_result(result, tracked=connection is not None)

    def _call(
        self, call: tools.ParsedCall, project: Project | None, connection: McpConnection | None, key: str | None
    ) -> ToolResult:
        target = self._defaults.target(call.session, call.resource, project=project)
        session = self._pool.session(target, create=call.may_create)
        arguments = dict(call.arguments)
        if call.search_session:
            within = self._defaults.target(call.search_session, call.resource, project=project)
            arguments["session"] = self._pool.session(within, create=False).id
        # `seen` of the call only adds to what this connection was shown.
        seen = {**call.seen, **(connection.seen_versions(session.id) if connection else {})}
        result = session.call_tool(call.tool, arguments, seen=seen, key=key)
        if connection is not None:
            connection.add_seen(session.id, result.seen)
        return result

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
        """Project of the client.

        The client is asked for its folder only if the result depends on it.
        """
        if (project := configured_project(context)) is not None:
            return project
        connection = self._connections.get(context)
        return (
            await connection.project(context)
            if connection and self._defaults.depends_on_project(session, resource)
            else None
        )


def _invalid_params(error: InmindError) -> MCPError:
    return MCPError(code=INVALID_PARAMS, message=tools.error_text(error))

"""The server: each request of the protocol is read, asked of the memory in a thread, and presented.

It stands on the SDK's low-level server, since the tools are not functions of this file but rows of the library's table.
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

from inmind.apps.mcp import prompts, resources, tools
from inmind.apps.mcp.connections import Caller, Callers, configured
from inmind.apps.mcp.project import Project, Usual
from inmind.apps.mcp.session_pool import Keeper
from inmind.errors import InmindError, NotFound
from inmind.session.tools.base import ToolResult

INSTRUCTIONS = (
    "Your working memory, which outlasts this conversation. At the start of a task call working_memory_show. Keep what "
    "must last with working_memory_note, the state of the task with working_memory_update and memory_write "
    "(overview.md). memory_search finds what was ever said or noted: use it before you ask the user again. Tell "
    'working_memory_observe what your other tools made, so that "that page" can be resolved.'
)

KEY = "inmind/key"
"""In the `_meta` of a call: under the same key it is carried out once, however often it is sent."""

Context = ServerRequestContext[Any, Any]


def server_of(keeper: Keeper, usual: Usual) -> Server[Any]:
    """A server for any number of connections, over any transport."""
    door = _Door(keeper, usual)
    server: Server[Any] = Server(
        "inmind",
        title="inmind",
        version=version("inmind"),
        instructions=INSTRUCTIONS,
        on_list_tools=door.list_tools,
        on_call_tool=door.call_tool,
        on_list_resources=door.list_resources,
        on_list_resource_templates=door.list_resource_templates,
        on_read_resource=door.read_resource,
        on_list_prompts=door.list_prompts,
        on_get_prompt=door.get_prompt,
    )
    server.add_notification_handler("notifications/roots/list_changed", NotificationParams, door.roots_have_changed)
    return server


class _Door:
    def __init__(self, keeper: Keeper, usual: Usual) -> None:
        self._keeper, self._usual, self._callers = keeper, usual, Callers()
        self._offered = {
            remembered: {tool.name: tool for tool in tools.tools(remembered=remembered, everybody=usual.everybody)}
            for remembered in (True, False)
        }

    async def list_tools(self, context: Context, _: PaginatedRequestParams | None) -> ListToolsResult:
        return ListToolsResult(tools=list(self._offered[self._callers.of(context) is not None].values()))

    async def call_tool(self, context: Context, params: CallToolRequestParams) -> CallToolResult:
        caller = self._callers.of(context)
        offered = self._offered[caller is not None]
        tool = offered.get(params.name)
        if tool is None:
            raise _unusable(NotFound(what="tool", name=params.name, hint=f"there are: {', '.join(offered)}"))
        try:
            asked = tools.read_call(tool, params.arguments or {})
            project = await self._project(context, asked.session, asked.resource)
            key = (params.meta or {}).get(KEY)
            called = await self._keeper.ask(partial(self._call, asked, project, caller, key))
        except InmindError as error:
            return tools.refused(error)
        return tools.answered(called, remembered=caller is not None)

    def _call(self, asked: tools.Asked, project: Project | None, caller: Caller | None, key: str | None) -> ToolResult:
        place = self._usual.place(asked.session, asked.resource, project=project)
        session = self._keeper.session(place, begin=asked.begins)
        arguments = dict(asked.arguments)
        if asked.within:
            within = self._usual.place(asked.within, asked.resource, project=project)
            arguments["session"] = self._keeper.session(within, begin=False).id
        # What it hands back adds to what we know it was shown, and takes nothing away.
        seen = {**asked.seen, **(caller.knows(session.id) if caller else {})}
        called = session.call_tool(asked.tool, arguments, seen=seen, key=key)
        if caller is not None:
            caller.hears(session.id, called.seen)
        return called

    async def list_resources(self, context: Context, _: PaginatedRequestParams | None) -> ListResourcesResult:
        """None where nobody can say of which project."""
        try:
            place = self._usual.place(project=await self._project(context))
        except InmindError:
            return ListResourcesResult(resources=[])
        return ListResourcesResult(resources=resources.listed(place))

    async def list_resource_templates(
        self, _: Context, __: PaginatedRequestParams | None
    ) -> ListResourceTemplatesResult:
        return ListResourceTemplatesResult(resource_templates=resources.templates())

    async def read_resource(self, context: Context, params: ReadResourceRequestParams) -> ReadResourceResult:
        uri = str(params.uri)
        try:
            project = await self._project(context)
            text, kind = await self._keeper.ask(partial(resources.read, uri, self._keeper, self._usual, project))
        except InmindError as error:
            raise _unusable(error) from error
        return ReadResourceResult(contents=[TextResourceContents(uri=uri, text=text, mime_type=kind)])

    async def list_prompts(self, _: Context, __: PaginatedRequestParams | None) -> ListPromptsResult:
        return ListPromptsResult(prompts=prompts.listed())

    async def get_prompt(self, context: Context, params: GetPromptRequestParams) -> GetPromptResult:
        named = (params.arguments or {}).get("session", "")
        try:
            prompts.check(params.name)
            place = self._usual.place(named, project=await self._project(context, named))
            return await self._keeper.ask(
                lambda: prompts.made(params.name, self._keeper.session(place, begin=not named))
            )
        except InmindError as error:
            raise _unusable(error) from error

    async def roots_have_changed(self, context: Context, _: NotificationParams) -> None:
        if (caller := self._callers.of(context)) is not None:
            caller.has_moved()

    async def _project(self, context: Context, session: str = "", resource: str = "") -> Project | None:
        """What the client works on. It is asked for its folder only if that decides something."""
        if (project := configured(context)) is not None:
            return project
        caller = self._callers.of(context)
        return await caller.project(context) if caller and self._usual.leaves_open(session, resource) else None


def _unusable(error: InmindError) -> MCPError:
    return MCPError(code=INVALID_PARAMS, message=tools.told(error))

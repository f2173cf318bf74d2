"""The tool compact_history: archive old messages."""

from __future__ import annotations

from typing import Any

from inmind.documents.document import OVERVIEW_PATH
from inmind.history.compaction.select import TARGETS
from inmind.prompt.layers.base import Layer
from inmind.session.tools.base import (
    INTEGER,
    TEXT,
    TEXTS,
    MemoryTool,
    ToolAnswer,
    ToolContext,
    always_offered,
    has_pages,
    number_argument,
    object_schema,
    required_object,
)


def _compact_history(context: ToolContext, _: Layer, arguments: dict[str, Any]) -> ToolAnswer:
    plan = context.compact({**arguments, "keep_recent": number_argument(arguments, "keep_recent")})
    report = plan.report
    content = {
        "messages": report.messages,
        "tokens": report.tokens,
        "archives": report.archives,
        "reason": report.reason,
    }
    return ToolAnswer(text=str(report), content=content, drafts=tuple(plan.drafts), about=OVERVIEW_PATH)


COMPACT_HISTORY = MemoryTool(
    name="compact_history",
    wire_name="compact_history",
    title="Compact the history",
    shows_pages=True,
    uses_pages=True,
    mcp_parameters={
        "keep_recent": {"description": "Turns to keep."},
        "archive_to": {"description": "A page of archive/; by default a new one."},
    },
    output=required_object({"messages": INTEGER, "tokens": INTEGER, "archives": TEXTS, "reason": TEXT}),
    offered_by=has_pages,
    declare=always_offered(
        "Remove old conversation, tool outputs (tools) or both (all) from your context. All of it is archived, and "
        "memory_read reads it.",
        object_schema(
            {
                "target": {"type": "string", "enum": list(TARGETS)},
                "strategy": {"type": "string", "enum": ["archive", "summarize"]},
                "keep_recent": INTEGER,
                "archive_to": TEXT,
            },
            required=("target",),
        ),
    ),
    run=_compact_history,
)

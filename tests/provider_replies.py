"""Replies in the shapes that providers send, with our own texts.

Hand-made messages have only the fields their author thought of; these have all fields. The contract tests parse each
with the provider's SDK, so an outdated shape is found.
"""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]

CHAT_PARALLEL_CALLS: Json = {
    "role": "assistant",
    "content": "I will look at both pages.",
    "refusal": None,
    "annotations": [],
    "tool_calls": [
        {"id": "call_Ab1", "type": "function", "function": {"name": "get_page", "arguments": '{"id": "page-1"}'}},
        {"id": "call_Cd2", "type": "function", "function": {"name": "get_page", "arguments": '{"id":"page-2"}'}},
    ],
}

CHAT_REFUSAL: Json = {"role": "assistant", "content": None, "refusal": "I cannot help with that.", "annotations": []}

CHAT_REASONING: Json = {
    "role": "assistant",
    "content": "The page is called About Us.",
    "reasoning_content": "The last result names one page only.",
}

CHAT_AUDIO: Json = {
    "role": "assistant",
    "content": None,
    "refusal": None,
    "audio": {"id": "audio_77", "data": "UklGRg==", "expires_at": 1760000000, "transcript": "Here you are."},
}

CHAT_CUSTOM_CALL: Json = {
    "role": "assistant",
    "content": None,
    "tool_calls": [{"id": "call_Ef3", "type": "custom", "custom": {"name": "run_sql", "input": "select 1"}}],
}

CHAT_REPLIES: list[Json] = [CHAT_PARALLEL_CALLS, CHAT_REFUSAL, CHAT_REASONING, CHAT_AUDIO, CHAT_CUSTOM_CALL]

RESPONSES_OUTPUT: list[Json] = [
    {
        "id": "rs_01",
        "type": "reasoning",
        "summary": [{"type": "summary_text", "text": "Two pages need a look."}],
        "encrypted_content": "gAAAAABo+secret==",
        "status": None,
    },
    {
        "id": "msg_01",
        "type": "message",
        "role": "assistant",
        "status": "completed",
        "content": [
            {
                "type": "output_text",
                "text": "I will look at both pages.",
                "annotations": [
                    {
                        "type": "url_citation",
                        "start_index": 0,
                        "end_index": 6,
                        "title": "Pages",
                        "url": "https://example.com/pages",
                    }
                ],
                "logprobs": [{"token": "I", "bytes": [73], "logprob": -0.01, "top_logprobs": []}],
            }
        ],
    },
    {
        "id": "fc_01",
        "type": "function_call",
        "call_id": "call_Ab1",
        "name": "get_page",
        "arguments": '{"id": "page-1"}',
        "status": "completed",
    },
    {
        "id": "fc_02",
        "type": "function_call",
        "call_id": "call_Cd2",
        "name": "get_page",
        "arguments": '{"id":"page-2"}',
        "status": "completed",
    },
]

ANTHROPIC_REPLY: Json = {
    "role": "assistant",
    "content": [
        {"type": "thinking", "thinking": "Two pages need a look.", "signature": "EqoBCkgIARABGAIiQL=="},
        {"type": "redacted_thinking", "data": "EmwKAhgBEgy3va3pzix/LafPsn4="},
        {
            "type": "text",
            "text": "I will look at both pages.",
            "citations": [
                {
                    "type": "char_location",
                    "cited_text": "Both pages are drafts.",
                    "document_index": 0,
                    "document_title": "Site notes",
                    "start_char_index": 0,
                    "end_char_index": 22,
                    "file_id": None,
                }
            ],
        },
        {"type": "tool_use", "id": "toolu_01Ab", "name": "get_page", "input": {"id": "page-1"}},
        {"type": "tool_use", "id": "toolu_01Cd", "name": "get_page", "input": {"id": "page-2"}},
    ],
}

ANTHROPIC_SEARCH: Json = {
    "role": "assistant",
    "content": [
        {"type": "server_tool_use", "id": "srvtoolu_01", "name": "web_search", "input": {"query": "hero section"}},
        {
            "type": "web_search_tool_result",
            "tool_use_id": "srvtoolu_01",
            "content": [
                {
                    "type": "web_search_result",
                    "title": "Hero sections",
                    "url": "https://example.com/hero",
                    "encrypted_content": "EqgfCioIARgBIiQ3",
                    "page_age": None,
                }
            ],
        },
        {"type": "text", "text": "A hero section is the first thing a visitor sees."},
    ],
}

ANTHROPIC_REPLIES: list[Json] = [ANTHROPIC_REPLY, ANTHROPIC_SEARCH]

REPLIES: dict[str, list[Json]] = {
    "openai": CHAT_REPLIES,
    "responses": RESPONSES_OUTPUT,
    "anthropic": ANTHROPIC_REPLIES,
}

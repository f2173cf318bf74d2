"""The host's arguments and memory's request, combined for a provider."""

from __future__ import annotations

from typing import Any

import pytest
from builders import user

from inmind.core.messages.anthropic import AnthropicMessages
from inmind.core.messages.model import PromptHead
from inmind.integrations.wrap.call_loop import adapt_anthropic_request

Json = dict[str, Any]

MARK: Json = {"type": "ephemeral"}
HOUR: Json = {"type": "ephemeral", "ttl": "1h"}


def a_request(*messages: Json) -> Json:
    return AnthropicMessages().request(PromptHead(system=None, memory="MEMORY"), messages, None)


def marks(body: Json) -> list[Json]:
    """The cache marks of memory and of the messages, in order."""
    blocks = [*body["system"], *(block for message in body["messages"] for block in message["content"])]
    return [block["cache_control"] for block in blocks if "cache_control" in block]


@pytest.mark.spec("D4", "D7")
@pytest.mark.parametrize(("top_level", "expected"), [(None, MARK), (MARK, MARK), (HOUR, HOUR)])
def test_our_marks_get_the_lifetime_of_a_top_level_mark(top_level: Json | None, expected: Json) -> None:
    body = adapt_anthropic_request(a_request(user("hi")), {"cache_control": top_level})
    assert marks(body) == [expected, expected]


@pytest.mark.spec("D4", "D7")
def test_a_short_top_level_mark_does_not_change_ours() -> None:
    prefill: Json = {"role": "assistant", "content": [{"type": "text", "text": "Sure,", "cache_control": HOUR}]}
    body = adapt_anthropic_request(a_request(user("hi"), prefill), {"cache_control": MARK})
    assert marks(body) == [HOUR, HOUR, HOUR]

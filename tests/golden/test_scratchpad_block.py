"""The exact text of the scratchpad block."""

from __future__ import annotations

from textwrap import dedent
from typing import Any

import pytest
from builders import user

from inmind import Memory, Prompt, Session
from inmind.layers import Budget, ScratchpadLayer

pytestmark = pytest.mark.spec("C4")

TASK = {"type": "object", "properties": {"goal": {"type": "string"}}}


def text(block: str) -> str:
    return dedent(block).strip("\n")


def session_with(memory: Memory, **options: Any) -> Session:
    return memory.session("s", cwd="/w", layers=[ScratchpadLayer(**options)], memory_tools=False)


def block(prompt: Prompt) -> str:
    """The text after the guide: such a session has no other memory."""
    return str(prompt.messages[0]["content"]).partition("</memory_guide>\n\n")[2]


def changes(prompt: Prompt) -> str:
    return str(prompt.messages[-1]["content"][-2]["text"])


def test_an_object_has_one_line_per_field_and_more_for_long_fields(memory: Memory) -> None:
    session = session_with(memory, schema=TASK)
    session.scratchpad.update(
        {
            "goal": "Deploy v2",
            "done": True,
            "steps": ["write tests", "ask for a review"],
            "owner": {"name": "Ada", "语言": "中文"},
            "hosts": {
                "staging": ["web-1.staging.example.com", "web-2.staging.example.com"],
                "production": [],
                "n": 2.5,
            },
        }
    )
    assert block(session.prepare([user("hi")])) == text("""
        <working_memory>
        {
          "goal": "Deploy v2",
          "done": true,
          "steps": ["write tests", "ask for a review"],
          "owner": {"name": "Ada", "语言": "中文"},
          "hosts": {
            "staging": ["web-1.staging.example.com", "web-2.staging.example.com"],
            "production": [],
            "n": 2.5
          }
        }
        </working_memory>
    """)


def test_a_text_is_unchanged_and_cannot_close_its_block(memory: Memory) -> None:
    session = session_with(memory)
    session.scratchpad.update("Mei wants a refund.\n</working_memory>\n  - of 20 €\n")
    assert block(session.prepare([user("hi")])) == text("""
        <working_memory>
        Mei wants a refund.
        &lt;/working_memory>
          - of 20 €
        </working_memory>
    """)


def test_an_object_over_the_budget_omits_whole_fields_by_name(memory: Memory) -> None:
    session = session_with(memory, schema=TASK, budget=Budget(max=80))
    session.scratchpad.update({"goal": "Deploy v2", "log": ["one more step was done"] * 50, "owner": {"name": "Ada"}})
    assert block(session.prepare([user("hi")])) == text("""
        <working_memory>
        {
          "goal": "Deploy v2",
          "owner": {"name": "Ada"}
        }
        [left out to fit: log (377 tokens); read all of it in scratchpad]
        </working_memory>
    """)


def test_a_text_over_the_budget_is_cut_at_the_end_of_a_line(memory: Memory) -> None:
    session = session_with(memory, budget=Budget(max=60))
    session.scratchpad.update("\n".join(f"- line {number} of the notes" for number in range(30)))
    prompt = session.prepare([user("hi")])
    assert block(prompt) == text("""
        <working_memory>
        - line 0 of the notes
        - line 1 of the notes
        - line 2 of the notes
        - line 3 of the notes
        - line 4 of the notes
        [cut to fit: read all of it, 215 tokens, in scratchpad]
        </working_memory>
    """)
    assert prompt.report.cut == ("working-memory: 25 lines",)


def test_changes_are_at_the_end_of_the_prompt_as_lines_of_their_fields(memory: Memory) -> None:
    session = session_with(memory, schema=TASK)
    facts = {f"fact {number}": "which stays as it is" for number in range(30)}
    session.scratchpad.update({"goal": "Deploy v2", **facts, "blockers": ["no approval"]})
    session.prepare([user("hi")])
    session.scratchpad.update({"goal": "Ship v2", "owner": "Ada"}, delete=["blockers"])
    assert changes(session.prepare([user("hi"), user("and?")])).rstrip() == text("""
        <memory_changes>
        Since then (+ added, - removed):
        working-memory:
        -   "goal": "Deploy v2",
        +   "goal": "Ship v2",
        -   "blockers": ["no approval"]
        +   "owner": "Ada"
        </memory_changes>
    """)

"""Requests as a verb and a noun, and sentences that are no request."""

from __future__ import annotations

import pytest
from builders import WHEN
from tables import each_row

from inmind.dreams.material import Utterance
from inmind.dreams.sentences import find_request

pytestmark = pytest.mark.spec("G5")


def request_in(text: str) -> str:
    return find_request(Utterance(id="session/s#1", session="s", at=WHEN, role="user", text=text).sentences)


@each_row(
    ("text", "task"),
    [
        ("Refactor the auth module in TypeScript", "refactor module"),
        ("Could you please refactor the payment modules in billing/?", "refactor module"),
        ("I'd like you to write unit tests for the parser.", "write test"),
        ("fix the failing test in parser.py", "fix test"),
        ("Please fix src/auth.py", "fix file"),
        ("review PR 123", "review pr"),
        ("Refactor the module number 3", "refactor module"),
        ("close ticket no. 17", "close ticket"),
        ("change my phone number", "change number"),
        ("Thanks! Now open issue #42", "open issue"),
        ("The build failed. Fix the build", "fix build"),
        ("Hi! Add a hero section to it", "add section"),
        ("send Bob an email about it", "send email"),
        ("set up a meeting with Bob", "set up meeting"),
        ("run the tests again please", "run test"),
        ("Let’s book 2 flights from JFK to SFO", "book flight"),
        ("写一封邮件给老板", "写邮件"),
        ("请帮我修复登录页面的bug", "修复bug"),
        ("把这段文字翻译成英文", "翻译文字"),
        ("能不能帮我写单元测试？", "写测试"),
        ("总结一下这篇文章", "总结文章"),
        ("帮我订一张去上海的机票", "订机票"),
    ],
)
def test_a_task_is_a_verb_and_a_noun(text: str, task: str) -> None:
    assert request_in(text) == task


@each_row(
    "text",
    [
        "",
        "I love refactoring",
        "What is the weather?",
        "Explain the theory of relativity",
        "make sure it works",
        "translate this to German",
        "add it",
        "Run!",
        "The test was fixed by Bob",
        "Writing tests is fun",
        "```\nfix the parser\n```",
        "> fix the parser",
        "他写的代码不错",
        "我做了一个梦",
        "我今天很累",
        "没问题",
        "fix " + "x" * 100,
    ],
)
def test_a_sentence_without_verb_and_noun_is_no_task(text: str) -> None:
    assert request_in(text) == ""


def test_a_late_request_is_not_found() -> None:
    assert request_in("It rained. We stayed in. It was fine. We read. Fix the roof.") == ""

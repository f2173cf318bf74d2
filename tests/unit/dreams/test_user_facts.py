"""User facts: statements that are kept, and statements that are not."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from dream_builders import NOW, a_user_crystal
from tables import each_row

from inmind.core.events.base import Origin, Trust
from inmind.dreams.statements import MAX_FACTS, find_user_facts, to_third_person

pytestmark = pytest.mark.spec("G3", "G12")


def lines(*texts: str, **more: Any) -> list[str]:
    return [one.text for one in find_user_facts([a_user_crystal(text, **more) for text in texts])]


@each_row(
    ("text", "kind"),
    [
        ("My name is Ada Lovelace.", "relationship"),
        ("Call me Ada.", "relationship"),
        ("I prefer tabs over spaces.", "preference"),
        ("I live in Munich.", "relationship"),
        ("I live near Niagara Falls.", "relationship"),
        ("I work for Laut Records.", "relationship"),
        ("I moved to Berlin last month.", "relationship"),
        ("I work at BMW as a designer.", "relationship"),
        ("I'm a nurse in a children's hospital.", "relationship"),
        ("I’m allergic to peanuts.", "relationship"),
        ("I don't eat pork.", "relationship"),
        ("My birthday is March 4.", "relationship"),
        ("My wife's name is Ann.", "relationship"),
        ("My daughter is called Emma.", "relationship"),
        ("I have two kids.", "relationship"),
        ("Never use semicolons in JavaScript.", "preference"),
        ("From now on, answer in German.", "preference"),
        ("Always run the tests before you commit.", "preference"),
        ("My favourite editor is Vim.", "relationship"),
        ("The deadline for the API migration is March 20th.", "goal"),
        ("The report is due on Friday, June 5.", "goal"),
        ("Remember that the staging server is down on Sundays.", "fact"),
        ("I hate long explanations.", "preference"),
        ("I usually like my summaries in bullet points.", "preference"),
        ("My goal is to run a marathon in October.", "goal"),
        ("I'm learning Portuguese.", "goal"),
        ("我叫韩梅梅。", "relationship"),
        ("请叫我小李。", "relationship"),
        ("我住在上海。", "relationship"),
        ("我对花生过敏。", "relationship"),
        ("我更喜欢简短的回答。", "preference"),
        ("我的生日是5月3日。", "relationship"),
        ("以后请用中文回答。", "preference"),
        ("我女儿叫小美。", "relationship"),
        ("记住，周五不要部署。", "fact"),
        ("截止日期是3月20日。", "goal"),
    ],
)
def test_a_lasting_fact_is_kept_verbatim(text: str, kind: str) -> None:
    [one] = find_user_facts([a_user_crystal(text)])
    assert (one.text, one.kind) == (f"User: {text}", kind)


@each_row(
    "text",
    [
        "What is my name?",
        "Do I prefer tabs?",
        "I like it.",
        "I love this idea!",
        "I prefer the second one.",
        "I'm a bit confused.",
        "I live with the bug for now.",
        "If I live in Munich, which tax applies?",
        "Suppose my name is Bob.",
        'He said "I prefer tabs".',
        "Anna told me I work at a bad place.",
        'Write a letter that begins: "My name is Carl".',
        "Can you remember that file?",
        "Never mind.",
        "I never said that.",
        "I always get an error here.",
        "Call me when it is done.",
        "The deadline might move.",
        "Is the deadline March 20?",
        "I work on the login page.",
        "I like how you did that.",
        "Thanks, I love you!",
        "My code is broken.",
        "My name field is empty in the form.",
        "I moved the file to src.",
        "I hate to say it but the build is broken.",
        "What should I always check?",
        "I am a few minutes late.",
        "I have a question about my dog's vaccination app.",
        "Here is the log:\n\n```\nmy name is root\nI prefer tabs\n```",
        "I prefer tabs, " + "and so on, " * 40 + "always.",
        "我叫你停下来。",
        "我喜欢这个。",
        "如果我住在上海呢？",
        "我叫什么名字？",
        "这是我的问题。",
        "",
    ],
)
def test_questions_hypotheses_quotes_and_temporary_facts_are_skipped(text: str) -> None:
    assert lines(text) == []


def test_only_the_sentence_is_learned() -> None:
    text = "Hello there! I'm allergic to peanuts. Can you plan a dinner for six?"
    assert lines(text) == ["User: I'm allergic to peanuts."]


@pytest.mark.spec("J5")
@each_row(
    "more",
    [
        {"origin": Origin.TOOL, "trust": Trust.DATA},
        {"origin": Origin.WEB, "trust": Trust.DATA},
        {"origin": Origin.USER, "trust": Trust.DATA},
        {"origin": Origin.ASSISTANT, "trust": Trust.AGENT},
        {"kind": "general"},
    ],
    ids=str,
)
def test_only_statements_of_people_are_learned(more: dict[str, Any]) -> None:
    assert lines("My name is Ada.", **more) == []


def test_a_named_speaker_is_named_in_the_line() -> None:
    assert lines("Ada: I live in Rome.", speaker="Ada") == ["Ada: I live in Rome."]


def test_of_equal_facts_the_latest_is_kept() -> None:
    one, other = (
        a_user_crystal("I live in Rome.", at=NOW - timedelta(days=3)),
        a_user_crystal("I live in Rome.", at=NOW),
    )
    [fact] = find_user_facts([other, one])
    assert fact.ids == (other.id,)


def test_the_number_of_facts_is_limited_to_the_newest() -> None:
    many = [a_user_crystal(f"I live in Town{n}.", at=NOW + timedelta(minutes=n)) for n in range(MAX_FACTS + 9)]
    facts = find_user_facts(many)
    assert len(facts) == MAX_FACTS
    assert facts[-1].text == f"User: I live in Town{MAX_FACTS + 8}."


@each_row(
    ("line", "third_person"),
    [
        ("User: I live in Rome.", "User lives in Rome."),
        ("User: I'm a nurse.", "User is a nurse."),
        ("User: Hi, I have two kids.", "User has two kids."),
        ("User: I don't eat pork.", "User does not eat pork."),
        ("User: I really prefer tabs.", "User really prefers tabs."),
        ("User: My name is Ada.", "User's name is Ada."),
        ("Ada: Call me Addie.", "Ada's name is Addie."),
        ("User: Remember that the API is down.", "the API is down."),
        ("User: 我住在上海。", "用户住在上海。"),
        ("The user lives in Rome", "The user lives in Rome"),
    ],
)
def test_a_line_is_compared_in_the_third_person(line: str, third_person: str) -> None:
    assert to_third_person(line) == third_person

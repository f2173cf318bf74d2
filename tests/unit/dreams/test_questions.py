"""Questions that expect an answer, and replies without an answer."""

from __future__ import annotations

import pytest
from builders import WHEN
from tables import each_row

from inmind.dreams.material import Utterance
from inmind.dreams.sentences import questions_in, split_unanswered

pytestmark = pytest.mark.spec("G3", "G5")


def find_questions(text: str) -> list[str]:
    return [*questions_in(Utterance(id="session/s#1", session="s", at=WHEN, role="user", text=text).sentences)]


@each_row(
    "question",
    [
        "When does the ferry to Brodick leave?",
        "Where is Brodick?",
        "how do I rotate the TLS certificate",
        "Can you tell me when the shop opens?",
        "Could you remind me what the wifi password of the office is?",
        "Would you recommend the harbour pub to my sister?",
        "你能告诉我轮渡几点开吗？",
        "Do you know which dentist my sister recommended?",
        "I wonder how many tickets are left",
        "码头在哪里？",
        "请问轮渡几点开",
        "我妹妹推荐的牙医是谁？",
        "轮渡周日开吗",
    ],
)
def test_a_question_is_kept_verbatim(question: str) -> None:
    assert find_questions(f"It rained all day. {question}") == [question]


@each_row(
    "text",
    [
        "How are you?",
        "hello?",
        "Hey, how's it going?",
        "right?",
        "You said it leaves at nine, right?",
        "Who knows?",
        "What could possibly go wrong?",
        "Isn't that great?",
        "How cool is that ferry?",
        "Does that make sense?",
        "What happened?",
        "What do you mean?",
        "Can you fix the header?",
        "Could you write a test for the parser?",
        "Can you remind me to send the invoice to Ben tomorrow?",
        "Would you please water the plants on Sunday?",
        "Also, could you call the dentist?",
        "Would you mind closing the harbour window?",
        "Can I speak to a human about the ferry?",
        "Is there someone else I can speak to about the ferry?",
        "能不能帮我给花浇水？",
        "你可以提醒我周五交房租吗？",
        "麻烦你给牙医打个电话好不好？",
        'She asked "where is the ferry?"',
        "I love the ferry.",
        "> where is the ferry?",
        "```\nwhere is the ferry?\n```",
        "where is " + "the ferry " * 60 + "?",
        "好吗？",
        "九点开船，对吧？",
        "难道我不知道轮渡吗？",
        "帮我写一封邮件好吗？",
        "我喜欢轮渡。",
    ],
)
def test_small_talk_and_requests_are_no_questions(text: str) -> None:
    assert find_questions(text) == []


@each_row(
    "reply",
    [
        "I don't know.",
        "I’m not sure.",
        "Sorry, I couldn't find anything about that ferry.",
        "I couldn't find it, but I can search the web if you like.",
        "Unfortunately I don't have any information on that.",
        "There is no record of it.",
        "抱歉，我不知道。",
        "没有找到相关记录。",
        "我不确定，不过我可以帮你查一下。",
    ],
)
def test_a_reply_that_does_not_know_leaves_the_question_open(reply: str) -> None:
    assert split_unanswered(reply) == (True, "")


@each_row(
    "reply",
    [
        "It leaves at nine.",
        "I don't know the exact hour, but ferries usually leave at nine.",
        "I don't know about you, but I would take the ferry.",
        "If you don't know the port, ask the captain.",
        "The captain said that he did not know.",
        "不确定，但是一般九点开船。",
        "九点开船。",
    ],
)
def test_a_reply_with_partial_knowledge_is_an_answer(reply: str) -> None:
    assert split_unanswered(reply) == (False, reply)


def test_the_known_part_of_a_reply_is_separated() -> None:
    assert split_unanswered("I don't know when it leaves. The port is in Ardrossan.") == (
        True,
        "The port is in Ardrossan.",
    )

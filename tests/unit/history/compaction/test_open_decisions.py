"""An open decision is listed until a user chooses one of its alternatives."""

from __future__ import annotations

import pytest
from tables import each_row

from inmind.core.events.session import RetainedItem
from inmind.core.tokens import estimator
from inmind.history.compaction.retention import extract_items, merge_items
from inmind.history.turns import Speaker, TurnMessage

OPEN = "We still have to decide between UPS and DHL."
OPEN_IN_CHINESE = "我们还没决定用UPS还是DHL。"


def kept(question: str, answer: str, *, by: Speaker = "user") -> list[tuple[str, str]]:
    """Return the decisions after an answer; the question is in an earlier compaction or in this one."""
    messages = [TurnMessage(seq=1, speaker=by, text=question), TurnMessage(seq=2, speaker="user", text=answer)]
    earlier = [RetainedItem("open_decision", question, 1)]
    items = extract_items(messages, first=False)
    assert items[:1] == earlier
    later = extract_items(messages[1:], first=False, open_decisions=[question])
    assert later == items[1:]
    return [(item.kind, item.text) for item in merge_items(earlier, later, max_tokens=900, count=estimator()).kept]


@pytest.mark.spec("E6", "E8")
@each_row(
    ("question", "answer"),
    [
        *((OPEN, answer) for answer in ("We take UPS.", "UPS it is.", "Let's go with UPS.", "I'd go with UPS then")),
        *((OPEN, answer) for answer in ("UPS, please.", "Let's use DHL", "DHL then.", "ups", "Ok, DHL is fine.")),
        *((OPEN, answer) for answer in ("We'll use UPS.", "Let's decide on DHL.", "I've decided: DHL.", "Use UPS.")),
        *(
            (OPEN_IN_CHINESE, answer)
            for answer in ("就用UPS吧", "选UPS", "用 DHL 就好", "那就DHL。", "还是用UPS吧。", "UPS")
        ),
        ("Open question: should the lamp be blue or red?", "The red one, please."),
        ("We still have to decide between Kafka, RabbitMQ and NATS.", "NATS."),
        ("Open question: red or blue paint?", "Blue."),
        ("We need to decide between the blue lamp and the red lamp.", "The blue lamp."),
        ("还没决定用红色还是蓝色。", "红色的吧。"),
        ("还没决定用红色还是蓝色。", "选蓝色。"),
    ],
)
def test_a_short_choice_of_an_alternative_is_a_decision_and_closes_the_open_one(question: str, answer: str) -> None:
    for by in ("user", "assistant"):
        assert kept(question, answer, by=by) == [("decision", answer)]


@pytest.mark.spec("E6", "E8")
@each_row(
    ("question", "answer"),
    [
        *(
            (OPEN, answer)
            for answer in ("UPS?", "Not UPS.", "UPS or DHL.", "UPS is too expensive.", "It came from UPS.")
        ),
        *(
            (OPEN, answer)
            for answer in ("UPS is still open.", "Ask UPS.", "How is UPS", "If UPS then.", "FedEx, please.")
        ),
        *((OPEN, answer) for answer in ("I like UPS.", "Maybe UPS.", "We have UPS.", "No UPS.", "ok", "Then please.")),
        *(
            (OPEN_IN_CHINESE, answer)
            for answer in ("不用UPS", "UPS吗？", "UPS太贵了。", "用 FedEx。", "好的", "UPS还是DHL")
        ),
        ("We need to decide between the blue lamp and the red lamp.", "The lamp."),
        ("TBD: the name of the service.", "The service."),
    ],
)
def test_other_remarks_about_an_alternative_leave_the_decision_open(question: str, answer: str) -> None:
    assert [kind for kind, _ in kept(question, answer) if kind != "rule"] == ["open_decision"]


@pytest.mark.spec("E8")
def test_a_choice_without_an_open_decision_is_none() -> None:
    words = [TurnMessage(seq=1, speaker="user", text="UPS, please."), TurnMessage(seq=2, speaker="user", text=OPEN)]
    assert extract_items(words, first=False) == [RetainedItem("open_decision", OPEN, 2)]


@pytest.mark.spec("E8")
@each_row(
    ("sentence", "is_decision"),
    [
        ("Let's decide on Postgres.", True),
        ("Let's decide for the second offer.", True),
        ("I've decided: we ship on Monday.", True),
        ("I have decided - Postgres.", True),
        ("We decided to use Postgres.", True),
        ("We've decided on the blue one.", True),
        ("我们决定：用 Postgres。", True),
        ("Let's decide on a name.", False),
        ("Let's decide on the name together.", False),
        ("Let's decide which one is best.", False),
        ("Let's decide on Postgres or MySQL.", False),
        ("Have you decided: yes or no?", False),
        ("We decided, and left.", False),
        ("我们来决定名字。", False),
    ],
)
def test_a_sentence_with_decide_is_a_decision_if_it_names_the_result(sentence: str, is_decision: bool) -> None:
    items = extract_items([TurnMessage(seq=1, speaker="user", text=sentence)], first=False)
    assert items == ([RetainedItem("decision", sentence, 1)] if is_decision else [])

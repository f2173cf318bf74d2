"""What was asked for or promised, and whether it is still open."""

from __future__ import annotations

from datetime import timedelta

import pytest
from builders import WHEN
from tables import each_row

from inmind.core.events.base import Trust
from inmind.dreams.activity import ANSWER_GRACE, ToolUse, Utterance
from inmind.dreams.open_loops import closed_lines, find_open_loops, loop_text

pytestmark = pytest.mark.spec("G3")

MINUTE = timedelta(minutes=1)
PASSPORT = "Remind me to renew the passport."


def said(
    role: str, text: str = "", *, session: str = "s", tool: str = "", about: str = "", failed: bool = False
) -> Utterance:
    own = {"user": Trust.PERSON, "assistant": Trust.AGENT}.get(role, Trust.DATA)
    used = (ToolUse(tool=tool, arguments=about, failed=failed),) if tool else ()
    return Utterance(
        id=f"session/{session}#1", session=session, at=WHEN, role=role, text=text, tool_uses=used, trust=own
    )


def user(text: str, *, session: str = "s") -> Utterance:
    return said("user", text, session=session)


def assistant(text: str, *, session: str = "s") -> Utterance:
    return said("assistant", text, session=session)


def left(*talk: Utterance, after: timedelta = timedelta()) -> list[str]:
    return [loop.text for loop in find_open_loops(talk, WHEN + after)]


@each_row(
    "text",
    [
        PASSPORT,
        "Can you remind me to send the invoice to Ben tomorrow?",
        "能不能提醒我周五交房租？",
        "Don’t let me forget to call the dentist.",
        "TODO: order the tiles for the bathroom",
        "- [ ] order the tiles for the bathroom",
        "We still need to order the tiles.",
        "The budget for the bathroom is still open.",
        "Let's finish the bathroom plan next week.",
        "I'll send you the measurements tomorrow.",
        "提醒我周五交房租。",
        "待办：给浴室订瓷砖",
        "浴室的瓷砖还没订好，还需要联系供应商。",
    ],
)
def test_requests_and_plans_of_a_user_open_loops(text: str) -> None:
    assert left(user(f"It rained all day.\n{text}"), assistant("I see.")) == [text]


@pytest.mark.parametrize(
    "text",
    ["I'll send you the measurements tomorrow.", "We still need to order the tiles.", "我明天会把报告发给你。"],
)
def test_a_promise_of_the_assistant_is_open(text: str) -> None:
    assert left(user("Hello there"), assistant(text)) == [text]


@each_row(
    "text",
    [
        "I'll be in Berlin tomorrow.",
        "I'll see you tomorrow at the harbour.",
        "I'll do it later.",
        "You reminded me to renew the passport.",
        "Did I ask you to remind me to renew the passport?",
        'He said "remind me to renew the passport".',
        "My boss told me to remember to renew the passport.",
        "If we still need to order tiles, that is fine.",
        "You don't need to remind me to renew the passport.",
        "I still like the old bathroom tiles.",
        "我还没吃饭。",
        "如果还需要联系供应商，那也没关系。",
        "> remind me to renew the passport",
    ],
)
def test_similar_words_are_no_loop(text: str) -> None:
    assert left(user(text), assistant("I see.")) == []


def test_a_status_report_is_no_promise() -> None:
    assert left(user("Where is it?"), assistant("Your order of tiles is still pending.")) == []


def test_tool_results_open_no_loops() -> None:
    assert left(said("tool", PASSPORT)) == []


def test_advice_of_the_assistant_is_no_promise() -> None:
    assert left(user("Hello there"), assistant("Don't forget to renew the passport.")) == []


@each_row(
    "talk",
    [
        [assistant("Done, the reminder is set.")],
        [assistant("I've added it to your calendar.")],
        [assistant("Sure."), user("I renewed the passport today.")],
        [assistant("Sure."), user("The passport thing, renew and all, is done.", session="t")],
        [assistant("Sure."), user("Never mind the passport, no need to renew it.")],
        [assistant("Sure."), said("tool", tool="create_reminder", about='{"text": "renew passport"}')],
    ],
    ids=["done", "added", "past", "elsewhere", "never mind", "a tool"],
)
def test_a_done_or_cancelled_loop_is_closed(talk: list[Utterance]) -> None:
    assert left(user(PASSPORT), *talk) == []


@each_row(
    "talk",
    [
        [assistant("Sure, I will.")],
        [assistant("Sure."), user("I paid the rent, that is done.")],
        [assistant("Sure."), user("What did I say about it?"), assistant("I've added the rent to your list.")],
        [assistant("Sure."), said("tool", "renew passport", tool="web_search", about='{"q": "renew passport"}')],
        [assistant("Sure."), said("tool", tool="create_reminder", about='{"text": "renew passport"}', failed=True)],
        [assistant("Sure."), said("tool", "The passport was renewed, all done.")],
        [assistant("Done.", session="t")],
    ],
    ids=["agreed", "another", "a later turn", "only read", "failed", "what a tool says", "another session"],
)
def test_an_undone_loop_stays_open(talk: list[Utterance]) -> None:
    assert left(user(PASSPORT), *talk) == [PASSPORT]


def test_an_earlier_action_closes_no_loop() -> None:
    assert left(user("I renewed the passport, done."), user(PASSPORT), assistant("Sure.")) == [PASSPORT]


def test_it_is_done_in_chinese_too() -> None:
    asked = user("提醒我周五交房租。")
    assert left(asked, assistant("好。"), user("周五的房租已经交了。")) == []
    assert left(asked, assistant("已经帮你设置好了。")) == []


def test_an_unanswered_last_request_is_open_after_the_grace_period() -> None:
    assert left(user("Write a test for the parser"), after=ANSWER_GRACE) == ["Write a test for the parser"]
    assert left(user("Could you water the plants?"), after=ANSWER_GRACE) == ["Could you water the plants?"]
    assert left(user("Write a test for the parser"), after=ANSWER_GRACE - MINUTE) == []
    assert left(user("Write a test for the parser"), assistant("On it."), after=ANSWER_GRACE) == []
    assert left(user("Thanks, that was great"), after=ANSWER_GRACE) == []


# -- on the page -------------------------------------------------------------------------------------------


def lines(*talk: Utterance) -> list[str]:
    return [loop.line for loop in find_open_loops(talk, WHEN)]


@pytest.mark.parametrize("text", [PASSPORT, "提醒我周五交房租。"])
def test_a_loop_is_known_again_by_its_line(text: str) -> None:
    (line,) = lines(user(text))
    assert loop_text(line) == text
    assert loop_text(text) == ""


def test_a_line_is_closed_by_what_would_have_closed_the_loop_and_by_nothing_else() -> None:
    both = lines(user(PASSPORT), user("We still need to order the tiles."))
    passport, _ = both
    assert closed_lines(both, [user("I renewed the passport today.", session="t")]) == (passport,)
    assert closed_lines(both, [said("tool", tool="create_reminder", about='{"text": "renew passport"}')]) == (passport,)
    assert closed_lines(both, [user("I paid the rent, that is done."), assistant("Done.")]) == ()
    assert closed_lines(["The passport was renewed"], [user("I renewed the passport today.")]) == ()


def test_a_negated_statement_closes_no_loop() -> None:
    (loop,) = find_open_loops([user("Remind me to send the invoice to Ben.")], WHEN + ANSWER_GRACE)
    assert closed_lines([loop.line], [user("I haven't sent the invoice to Ben yet.")]) == ()
    assert closed_lines([loop.line], [user("I sent the invoice to Ben.")]) == (loop.line,)

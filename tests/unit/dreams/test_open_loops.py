"""Open loops: requests and promises, and whether they are still open."""

from __future__ import annotations

from datetime import timedelta

import pytest
from builders import WHEN
from tables import each_row

from inmind.core.events.base import Trust
from inmind.dreams.material import ANSWER_GRACE, ToolUse, Utterance
from inmind.dreams.open_loops import closed_lines, find_open_loops, loop_text

pytestmark = pytest.mark.spec("G3")

MINUTE = timedelta(minutes=1)
PASSPORT = "Remind me to renew the passport."


def an_utterance(
    role: str, text: str = "", *, session: str = "s", tool: str = "", about: str = "", failed: bool = False
) -> Utterance:
    own = {"user": Trust.PERSON, "assistant": Trust.AGENT}.get(role, Trust.DATA)
    uses = (ToolUse(tool=tool, arguments=about, failed=failed),) if tool else ()
    return Utterance(
        id=f"session/{session}#1", session=session, at=WHEN, role=role, text=text, tool_uses=uses, trust=own
    )


def user(text: str, *, session: str = "s") -> Utterance:
    return an_utterance("user", text, session=session)


def assistant(text: str, *, session: str = "s") -> Utterance:
    return an_utterance("assistant", text, session=session)


def open_loops(*messages: Utterance, after: timedelta = timedelta()) -> list[str]:
    return [loop.text for loop in find_open_loops(messages, WHEN + after)]


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
    assert open_loops(user(f"It rained all day.\n{text}"), assistant("I see.")) == [text]


@pytest.mark.parametrize(
    "text",
    ["I'll send you the measurements tomorrow.", "We still need to order the tiles.", "我明天会把报告发给你。"],
)
def test_a_promise_of_the_assistant_is_open(text: str) -> None:
    assert open_loops(user("Hello there"), assistant(text)) == [text]


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
def test_similar_sentences_open_no_loop(text: str) -> None:
    assert open_loops(user(text), assistant("I see.")) == []


def test_a_status_report_is_no_promise() -> None:
    assert open_loops(user("Where is it?"), assistant("Your order of tiles is still pending.")) == []


def test_tool_results_open_no_loops() -> None:
    assert open_loops(an_utterance("tool", PASSPORT)) == []


def test_advice_of_the_assistant_is_no_promise() -> None:
    assert open_loops(user("Hello there"), assistant("Don't forget to renew the passport.")) == []


@each_row(
    "messages",
    [
        [assistant("Done, the reminder is set.")],
        [assistant("I've added it to your calendar.")],
        [assistant("Sure."), user("I renewed the passport today.")],
        [assistant("Sure."), user("The passport thing, renew and all, is done.", session="t")],
        [assistant("Sure."), user("Never mind the passport, no need to renew it.")],
        [assistant("Sure."), an_utterance("tool", tool="create_reminder", about='{"text": "renew passport"}')],
    ],
    ids=["done", "added", "past", "elsewhere", "never mind", "a tool"],
)
def test_a_done_or_cancelled_loop_is_closed(messages: list[Utterance]) -> None:
    assert open_loops(user(PASSPORT), *messages) == []


@each_row(
    "messages",
    [
        [assistant("Sure, I will.")],
        [assistant("Sure."), user("I paid the rent, that is done.")],
        [assistant("Sure."), user("What did I say about it?"), assistant("I've added the rent to your list.")],
        [
            assistant("Sure."),
            an_utterance("tool", "renew passport", tool="web_search", about='{"q": "renew passport"}'),
        ],
        [
            assistant("Sure."),
            an_utterance("tool", tool="create_reminder", about='{"text": "renew passport"}', failed=True),
        ],
        [assistant("Sure."), an_utterance("tool", "The passport was renewed, all done.")],
        [assistant("Done.", session="t")],
    ],
    ids=["agreed", "another", "a later turn", "only read", "failed", "tool text", "another session"],
)
def test_an_unfinished_loop_stays_open(messages: list[Utterance]) -> None:
    assert open_loops(user(PASSPORT), *messages) == [PASSPORT]


def test_an_earlier_action_closes_no_loop() -> None:
    assert open_loops(user("I renewed the passport, done."), user(PASSPORT), assistant("Sure.")) == [PASSPORT]


def test_chinese_loops_are_closed_too() -> None:
    request = user("提醒我周五交房租。")
    assert open_loops(request, assistant("好。"), user("周五的房租已经交了。")) == []
    assert open_loops(request, assistant("已经帮你设置好了。")) == []


def test_an_unanswered_last_request_is_open_after_the_grace_period() -> None:
    assert open_loops(user("Write a test for the parser"), after=ANSWER_GRACE) == ["Write a test for the parser"]
    assert open_loops(user("Could you water the plants?"), after=ANSWER_GRACE) == ["Could you water the plants?"]
    assert open_loops(user("Write a test for the parser"), after=ANSWER_GRACE - MINUTE) == []
    assert open_loops(user("Write a test for the parser"), assistant("On it."), after=ANSWER_GRACE) == []
    assert open_loops(user("Thanks, that was great"), after=ANSWER_GRACE) == []


# -- on the page -------------------------------------------------------------------------------------------


def lines(*messages: Utterance) -> list[str]:
    return [loop.line for loop in find_open_loops(messages, WHEN)]


@pytest.mark.parametrize("text", [PASSPORT, "提醒我周五交房租。"])
def test_a_loop_is_recognized_by_its_line(text: str) -> None:
    (line,) = lines(user(text))
    assert loop_text(line) == text
    assert loop_text(text) == ""


def test_a_line_is_closed_by_the_same_messages_as_its_loop() -> None:
    both = lines(user(PASSPORT), user("We still need to order the tiles."))
    passport, _ = both
    assert closed_lines(both, [user("I renewed the passport today.", session="t")]) == (passport,)
    assert closed_lines(both, [an_utterance("tool", tool="create_reminder", about='{"text": "renew passport"}')]) == (
        passport,
    )
    assert closed_lines(both, [user("I paid the rent, that is done."), assistant("Done.")]) == ()
    assert closed_lines(["The passport was renewed"], [user("I renewed the passport today.")]) == ()


def test_a_negated_statement_closes_no_loop() -> None:
    (loop,) = find_open_loops([user("Remind me to send the invoice to Ben.")], WHEN + ANSWER_GRACE)
    assert closed_lines([loop.line], [user("I haven't sent the invoice to Ben yet.")]) == ()
    assert closed_lines([loop.line], [user("I sent the invoice to Ben.")]) == (loop.line,)

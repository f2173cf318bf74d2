"""A host's list is completed from the line, whichever way the host keeps the replies it was given."""

from __future__ import annotations

from typing import Any

import pytest
from builders import a_call, a_line, a_result, assistant, user
from hypothesis import given
from hypothesis import strategies as st
from provider import Asks, asks

from inmind.clients.rounds import completed
from inmind.errors import InvalidInput
from inmind.history import Line
from inmind.prompt.formats import FORMATS

Json = dict[str, Any]

NOTE = asks("memory_write", id="note")
PAGE = asks("get_page", id="page")


def is_hidden(name: str) -> bool:
    return name.startswith("memory_")


def said(text: str, *calls: Asks, **more: Any) -> Json:
    """A reply with calls, as the journal has it."""
    made = [{"id": c.id, "type": "function", "function": {"name": c.name, "arguments": c.arguments}} for c in calls]
    return {"role": "assistant", "content": text or None, **({"tool_calls": made} if made else {}), **more}


def whole(line: list[Json], theirs: list[Any]) -> list[Any]:
    return completed(a_line(line), theirs, FORMATS["openai"], is_hidden)


NOTED = [user("Note this."), said("", NOTE), a_result("note"), assistant("Noted.")]


def test_a_hidden_round_is_put_back_before_the_reply_that_followed_it() -> None:
    assert whole(NOTED, [user("Note this."), assistant("Noted."), user("Thanks.")]) == [*NOTED, user("Thanks.")]


def test_a_system_prompt_in_front_stays_in_front() -> None:
    system = {"role": "system", "content": "Be brief."}
    assert whole(NOTED, [system, user("Note this."), assistant("Noted."), user("Thanks.")])[:2] == [system, NOTED[0]]


def test_a_mixed_reply_gets_its_hidden_call_and_the_answer_back() -> None:
    line = [user("Both."), said("Well.", NOTE, PAGE), a_result("note")]
    theirs = [user("Both."), said("Well.", PAGE), a_result("page", "About Us")]
    assert whole(line, theirs) == [*line, a_result("page", "About Us")]


@pytest.mark.parametrize(
    "kept",
    [
        [assistant("Done, as you asked.")],
        [{**assistant("Done, as you asked."), "refusal": None, "tool_calls": None, "annotations": []}],
        [assistant("One moment.\n\nDone, as you asked.")],
        [assistant("One moment.Done, as you asked.  ")],
        [{"role": "assistant", "content": [{"type": "text", "text": "Done, as you asked."}]}],
        [said("One moment.", NOTE), a_result("note"), assistant("Done, as you asked.")],
    ],
    ids=["bare", "with nulls", "streamed", "joined", "in parts", "every round"],
)
def test_a_reply_is_known_in_whichever_form_a_host_keeps_it(kept: list[Json]) -> None:
    line = [
        user("Do it."),
        said("One moment.", NOTE),
        a_result("note"),
        said("Done, as you asked.", reasoning_content="It was easy."),
    ]
    assert whole(line, [line[0], *kept, user("Thanks.")]) == [*line, user("Thanks.")]


@pytest.mark.parametrize(
    "theirs",
    [
        [user("Note that."), assistant("Noted."), user("Thanks.")],
        [user("Note this."), assistant("I have noted it."), user("Thanks.")],
        [user("Note this."), user("Never mind.")],
        [user("Note this."), said("Noted.", PAGE), a_result("page")],
        [user("Note this.")],
        [],
    ],
    ids=["an edited question", "another answer", "the answer dropped", "another call", "asked again", "nothing"],
)
def test_from_a_difference_on_the_list_is_the_hosts_own(theirs: list[Json]) -> None:
    assert whole(NOTED, theirs) == theirs


def test_an_edit_leaves_the_rounds_before_it_in_place() -> None:
    line = [*NOTED, user("And this."), said("", NOTE), a_result("note"), assistant("Noted too.")]
    theirs = [user("Note this."), assistant("Noted."), user("And that.")]
    assert whole(line, theirs) == [*NOTED, user("And that.")]


@pytest.mark.parametrize("then", [[], [user("Are you there?")]], ids=["asked again", "asked on"])
def test_a_round_whose_call_failed_is_gone_on_from(then: list[Json]) -> None:
    """The note is written: a model that does not see that would write it again."""
    line = [user("Note this."), said("", NOTE), a_result("note")]
    assert whole(line, [user("Note this."), *then]) == [*line, *then]


def test_half_of_a_broken_stream_in_the_list_stands_for_the_round_that_it_told_of() -> None:
    line = [user("Note this."), said("I will", NOTE), a_result("note")]
    theirs = [user("Note this."), assistant("I will. The no"), user("Go on.")]
    assert whole(line, theirs) == theirs


def test_the_hosts_own_messages_keep_the_hosts_own_form() -> None:
    """It may move a cache mark from message to message: that is not said, but it is meant."""
    marked = {
        "role": "user",
        "content": [{"type": "text", "text": "Note this.", "cache_control": {"type": "ephemeral"}}],
    }
    line = [marked, *NOTED[1:]]
    assert whole(line, [user("Note this."), assistant("Noted."), user("Thanks.")])[0] == user("Note this.")


def test_a_host_that_drops_the_beginning_keeps_the_rounds_of_the_rest() -> None:
    line = [user("Hello."), assistant("Hi."), *NOTED]
    assert whole(line, [user("Note this."), assistant("Noted."), user("Thanks.")]) == [*NOTED, user("Thanks.")]


def test_a_list_that_begins_like_something_said_before_is_not_taken_for_it() -> None:
    line = [user("Hello."), assistant("Hi."), *NOTED, user("Bye."), assistant("Bye.")]
    theirs = [user("Note this."), assistant("Noted."), user("Thanks.")]
    assert whole(line, theirs) == theirs


def test_a_mixed_reply_that_the_host_dropped_stays_dropped() -> None:
    line = [user("Both."), said("Well.", NOTE, PAGE), a_result("note")]
    assert whole(line, [user("Both.")]) == [user("Both.")]


def test_a_line_in_another_format_is_not_told_in_this_one() -> None:
    theirs = [{"role": "user", "content": "Note this."}, {"role": "assistant", "content": "Noted."}]
    assert completed(a_line(NOTED), theirs, FORMATS["anthropic"], is_hidden) == theirs


def test_a_message_that_is_none_is_refused_with_its_place() -> None:
    with pytest.raises(InvalidInput, match=r"messages\[1\]\.role"):
        whole(NOTED, [user("Note this."), {"role": "robot", "content": "Noted."}])


def test_a_list_that_begins_with_the_whole_line_comes_back_as_it_is() -> None:
    theirs = [*NOTED, user("Thanks.")]
    assert whole(NOTED, theirs) is theirs
    assert completed(Line(), theirs, FORMATS["openai"], is_hidden) == theirs


words = st.text(st.sampled_from("abc xyz."), min_size=1, max_size=12).filter(str.strip)


@st.composite
def talks(draw: st.DrawFn) -> tuple[list[Json], list[Json]]:
    """A conversation as the journal has it, and as a host that was streamed or handed the replies has it."""
    line: list[Json] = []
    host: list[Json] = []
    for turn in range(draw(st.integers(1, 4))):
        question = user(f"{turn} {draw(words)}")
        line.append(question)
        host.append(question)
        heard = ""
        streamed = draw(st.booleans())
        for number in range(draw(st.integers(0, 3))):
            call = asks("memory_read", id=f"note-{turn}-{number}")
            text = draw(words | st.just(""))
            line += [said(text, call), a_result(call.id)]
            heard += text
        answer = draw(words)
        if draw(st.booleans()):
            page = asks("get_page", id=f"page-{turn}")
            both = [asks("memory_read", id=f"both-{turn}")] if draw(st.booleans()) else []
            line += [said(answer, *both, page), *(a_result(call.id) for call in both), a_result(page.id, "About Us")]
            host += [said((heard if streamed else "") + answer, page), a_result(page.id, "About Us")]
            answer, heard = draw(words), ""
        line.append(assistant(answer))
        host.append(assistant((heard if streamed else "") + answer))
    return line, host


@given(talk=talks(), then=words)
def test_whatever_was_hidden_the_list_is_the_line_again_and_what_is_new(
    talk: tuple[list[Json], list[Json]], then: str
) -> None:
    line, host = talk
    assert whole(line, [*host, user(then)]) == [*line, user(then)]


@given(talk=talks(), at=st.integers(0, 20), then=words)
def test_an_edit_anywhere_keeps_what_is_before_it_and_nothing_behind(
    talk: tuple[list[Json], list[Json]], at: int, then: str
) -> None:
    line, host = talk
    questions = [place for place, wire in enumerate(host) if wire["role"] == "user"]
    place = questions[at % len(questions)]
    put = whole(line, [*host[:place], user(f"no, {then}")])
    assert put[:-1] == line[: line.index(host[place])]
    assert put[-1] == user(f"no, {then}")


def test_the_builders_agree_with_the_format() -> None:
    assert said("", NOTE) == a_call("note", "memory_write")

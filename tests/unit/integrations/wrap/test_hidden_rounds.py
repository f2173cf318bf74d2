"""A host's list is completed from the journal, however the host keeps replies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from builders import a_call, a_result, an_event, assistant, user
from hypothesis import given
from hypothesis import strategies as st
from provider import Asks, asks
from tables import each_row

from inmind.core.events.session import MessageAdded
from inmind.core.messages import FORMATS, Message
from inmind.core.messages.model import Wire
from inmind.core.messages.openai import OpenAIChat
from inmind.errors import InvalidInput
from inmind.history import Conversation
from inmind.integrations.wrap.hidden_rounds import HiddenRounds

Json = dict[str, Any]

CHAT = FORMATS["openai"]
NOTE = asks("memory_write", id="note")
PAGE = asks("get_page", id="page")


def a_reply(text: str, *calls: Asks, **more: Any) -> Json:
    """A reply with calls, as in the journal."""
    made = [{"id": c.id, "type": "function", "function": {"name": c.name, "arguments": c.arguments}} for c in calls]
    return {"role": "assistant", "content": text or None, **({"tool_calls": made} if made else {}), **more}


def a_conversation(wires: Sequence[Json], format: str = "openai") -> Conversation:
    """A conversation in which memory answered the named calls."""
    return grown(Conversation(), wires, format)


def grown(line: Conversation, wires: Sequence[Json], format: str = "openai") -> Conversation:
    for number, wire in enumerate(wires, start=len(line) + 1):
        results = FORMATS[format].read(wire).results
        ours = bool(results) and all(result.id.startswith("note") for result in results)
        line = line.apply(an_event(MessageAdded(wire=wire, format=format, from_memory=ours), number))
    return line


def whole(line: list[Json], theirs: list[Any]) -> list[Any]:
    return HiddenRounds().restore(a_conversation(line), theirs, CHAT)


NOTED = [user("Note this."), a_reply("", NOTE), a_result("note"), assistant("Noted.")]


def test_a_hidden_round_is_restored_before_the_reply_after_it() -> None:
    assert whole(NOTED, [user("Note this."), assistant("Noted."), user("Thanks.")]) == [*NOTED, user("Thanks.")]


def test_the_hidden_call_of_a_mixed_reply_and_its_answer_are_restored() -> None:
    line = [user("Both."), a_reply("Well.", NOTE, PAGE), a_result("note")]
    theirs = [user("Both."), a_reply("Well.", PAGE), a_result("page", "About Us")]
    assert whole(line, theirs) == [*line, a_result("page", "About Us")]


@each_row(
    "kept",
    [
        assistant("Done, as you asked."),
        {**assistant("Done, as you asked."), "refusal": None, "tool_calls": None, "annotations": []},
        assistant("One moment.\n\nDone, as you asked."),
        assistant("One moment.Done, as you asked.  "),
        {"role": "assistant", "content": [{"type": "text", "text": "Done, as you asked."}]},
    ],
    ids=["the last round", "with nulls", "streamed", "joined", "in parts"],
)
def test_a_reply_is_recognized_in_every_form_a_host_may_keep(kept: Json) -> None:
    line = [
        user("Do it."),
        a_reply("One moment.", NOTE),
        a_result("note"),
        a_reply("Done, as you asked.", reasoning_content="It was easy."),
    ]
    assert whole(line, [line[0], kept, user("Thanks.")]) == [*line, user("Thanks.")]


def test_a_complete_list_is_unchanged() -> None:
    theirs = [NOTED[0], {**NOTED[1], "refusal": None}, *NOTED[2:], user("Thanks.")]
    assert whole(NOTED, theirs) == theirs


@each_row(
    "theirs",
    [
        [user("Note that."), assistant("Noted."), user("Thanks.")],
        [user("Note this."), assistant("I have noted it."), user("Thanks.")],
        [user("Note this."), assistant("Noted. And more."), user("Thanks.")],
        [user("Note this."), user("Never mind.")],
        [user("Note this."), a_reply("Noted.", PAGE), a_result("page")],
        [user("Note this.")],
        [],
    ],
    ids=["an edited question", "another answer", "a longer one", "no answer", "another call", "asked again", "nothing"],
)
def test_a_changed_reply_is_the_hosts_own(theirs: list[Json]) -> None:
    assert whole(NOTED, theirs) == theirs


def test_an_edit_keeps_the_rounds_before_it() -> None:
    line = [*NOTED, user("And this."), a_reply("", NOTE), a_result("note"), assistant("Noted too.")]
    theirs = [user("Note this."), assistant("Noted."), user("And that.")]
    assert whole(line, theirs) == [*NOTED, user("And that.")]


# -- what was hidden is what memory has answered -----------------------------------------------------------


def test_a_call_that_memory_did_not_answer_is_the_hosts_whatever_its_name() -> None:
    call = asks("memory_write", id="theirs")
    line = [user("Write."), a_reply("", call), a_result("theirs", "a secret"), assistant("Written.")]
    cleared = [*line[:2], a_result("theirs", "(cleared)"), line[3], user("Thanks.")]
    assert whole(line, cleared) == cleared
    assert whole(line, [line[0], line[3], user("Thanks.")]) == [line[0], line[3], user("Thanks.")]


def test_call_ids_that_restart_in_every_reply_are_understood() -> None:
    again = asks("get_page", id="note")
    line = [
        user("Both."),
        a_reply("", NOTE),
        a_result("note"),
        a_reply("Well.", again),
    ]
    theirs = [user("Both."), a_reply("Well.", again), a_result("note", "About Us")]
    assert whole(line, theirs) == [*line, a_result("note", "About Us")]


# -- replies that the host has only a part of --------------------------------------------------------------


@pytest.mark.parametrize("then", [[], [user("Are you there?")]], ids=["asked again", "asked on"])
def test_a_failed_call_continues_from_its_last_round(then: list[Json]) -> None:
    """The note is stored: a model that does not see that would write it again."""
    line = [user("Note this."), a_reply("", NOTE), a_result("note")]
    assert whole(line, [user("Note this."), *then]) == [*line, *then]
    later = [*line, user("Are you there?"), assistant("Yes.")]
    assert whole(later, [user("Note this."), *later[3:], user("Good.")]) == [*later, user("Good.")]


def test_a_round_of_a_failed_call_belongs_to_its_question() -> None:
    line = [user("Go on."), a_reply("", NOTE), a_result("note"), user("Stop."), assistant("Yes.")]
    assert whole(line, [user("Go on.")]) == [user("Go on.")]


@pytest.mark.parametrize(
    ("words", "kept", "rest"),
    [
        ("I will", "I will\n\nOne tw", [assistant("One tw")]),
        ("", "One tw", [assistant("One tw")]),
        ("", "Sorry, something went wrong.", [assistant("Sorry, something went wrong.")]),
        ("I will", "I will ", []),
    ],
    ids=["behind the words", "the first words", "the host's own words", "nothing yet"],
)
def test_a_stream_closed_in_a_later_round_continues_from_that_round(words: str, kept: str, rest: list[Json]) -> None:
    line = [user("Note this."), a_reply(words, NOTE), a_result("note")]
    theirs = [user("Note this."), assistant(kept), user("Go on.")]
    full = [*line, *rest, user("Go on.")]
    assert whole(line, theirs) == full
    answered = [*full, assistant("Three.")]
    assert whole(answered, [*theirs, assistant("Three."), user("Thanks.")]) == [*answered, user("Thanks.")]


@pytest.mark.parametrize(
    ("kept", "told"), [("One moment. Done, as", "Done, as"), ("Done, as", "Done, as"), ("One moment.", "")]
)
def test_the_beginning_of_a_reply_keeps_the_rounds_before_it(kept: str, told: str) -> None:
    """The user interrupted, and the rest was never received."""
    line = [user("Do it."), a_reply("One moment.", NOTE), a_result("note"), assistant("Done, as you asked.")]
    theirs = [line[0], assistant(kept), user("Wait.")]
    assert whole(line, theirs) == [*line[:3], *([assistant(told)] if told else []), user("Wait.")]


def test_a_mixed_reply_that_the_host_dropped_stays_dropped() -> None:
    line = [user("Both."), a_reply("Well.", NOTE, PAGE), a_result("note")]
    assert whole(line, [user("Both.")]) == [user("Both.")]


# -- the host's own messages -------------------------------------------------------------------------------


CUT = [user("Look."), a_reply("", NOTE), a_result("note"), a_reply("I look.", PAGE)]


@pytest.mark.parametrize(
    ("kept", "told"),
    [
        ([assistant("I look.")], [assistant("I look.")]),
        ([assistant("I lo")], [assistant("I lo")]),
        ([assistant("")], [assistant("")]),
    ],
    ids=["its words", "some of them", "nothing"],
)
def test_a_reply_without_its_call_keeps_the_rounds_before_it(kept: list[Json], told: list[Json]) -> None:
    assert whole(CUT, [CUT[0], *kept, user("Go on.")]) == [*CUT[:3], *told, user("Go on.")]


def test_a_dropped_reply_with_only_a_call_keeps_the_rounds_before_it() -> None:
    line = [*CUT[:3], a_reply("", PAGE)]
    assert whole(line, [line[0], user("Go on.")]) == [*CUT[:3], user("Go on.")]


@pytest.mark.parametrize("kept", [assistant("I will not."), a_reply("I look.", asks("deploy", id="other"))])
def test_a_reply_that_replaces_one_with_a_call_is_the_hosts_own(kept: Json) -> None:
    theirs = [CUT[0], kept, *([a_result("other")] if "tool_calls" in kept else []), user("Go on.")]
    assert whole(CUT, theirs) == theirs


PLAIN = [user("Write it."), assistant("if x:\n  y()\nz()")]


@pytest.mark.parametrize("kept", ["if x:\n  y()\n  z()", "if x:\n  y()\nz()\n", " if x:\n  y()\nz()"])
def test_without_hidden_calls_a_changed_space_is_an_edit(kept: str) -> None:
    theirs = [PLAIN[0], assistant(kept), user("Run it.")]
    assert whole(PLAIN, theirs) == theirs


def test_adjacent_text_parts_may_be_joined() -> None:
    parts = {"role": "assistant", "content": [{"type": "text", "text": text} for text in ("One. ", "Two.", " Three.")]}
    line = [user("Count."), parts]
    for kept in ("One. Two. Three.", "One. \n\nTwo.\n\n Three."):
        assert whole(line, [line[0], assistant(kept), user("Go on.")]) == [*line, user("Go on.")]
    edited = [line[0], assistant("One.  Two . Three."), user("Go on.")]
    assert whole(line, edited) == edited


def test_messages_of_the_host_keep_their_form() -> None:
    """The host may move a cache mark between messages."""
    marked = {
        "role": "user",
        "content": [{"type": "text", "text": "Note this.", "cache_control": {"type": "ephemeral"}}],
    }
    line = [marked, *NOTED[1:]]
    assert whole(line, [user("Note this."), assistant("Noted."), user("Thanks.")])[0] == user("Note this.")


def test_cleared_results_stay_cleared_and_the_rounds_after_them_are_restored() -> None:
    line = [
        user("Both."),
        a_reply("", PAGE),
        a_result("page", "a long page"),
        a_reply("", NOTE),
        a_result("note"),
        assistant("Noted."),
    ]
    theirs = [line[0], line[1], a_result("page", "(cleared)"), assistant("Noted."), user("Thanks.")]
    assert whole(line, theirs) == [*line[:2], a_result("page", "(cleared)"), *line[3:], user("Thanks.")]


def test_an_image_cleared_from_a_result_keeps_the_rounds_after_it() -> None:
    call: Json = {"type": "computer_call", "call_id": "click", "id": "cu_1", "action": {"type": "wait"}}
    seen: Json = {
        "type": "computer_call_output",
        "call_id": "click",
        "output": {"image_url": "data:image/png;base64,AA=="},
    }
    noted: list[Json] = [
        {"type": "function_call", "call_id": "note", "name": "memory_write", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "note", "output": "Written."},
    ]
    line = [user("Click."), call, seen, *noted, assistant("Clicked.")]
    cleared = {**seen, "output": {"image_url": ""}}
    theirs = [user("Click."), call, cleared, assistant("Clicked."), user("Thanks.")]
    full = HiddenRounds().restore(a_conversation(line, "responses"), theirs, FORMATS["responses"])
    assert full == [user("Click."), call, cleared, *noted, *theirs[3:]]


def test_another_image_is_another_message() -> None:
    def pictured(name: str) -> Json:
        picture = {"type": "image_url", "image_url": {"url": f"https://example.com/{name}.png"}}
        return {"role": "user", "content": [{"type": "text", "text": "Note this."}, picture]}

    line = [pictured("a"), *NOTED[1:]]
    assert whole(line, [pictured("a"), NOTED[3], user("Thanks.")]) == [*line, user("Thanks.")]
    other = [pictured("b"), NOTED[3], user("Thanks.")]
    assert whole(line, other) == other


def test_an_audio_reply_is_recognized_by_its_id() -> None:
    heard = {"role": "assistant", "content": None, "audio": {"id": "aud_1", "data": "c291bmQ=", "transcript": "Hello."}}
    line = [user("Say it."), a_reply("", NOTE), a_result("note"), heard]
    kept: Json = {"role": "assistant", "audio": {"id": "aud_1"}}
    assert whole(line, [user("Say it."), kept, user("Again.")]) == [*line, user("Again.")]


def test_an_item_without_a_role_is_not_the_assistants() -> None:
    asked = {"type": "mcp_approval_request", "id": "mcpr_1", "server_label": "x", "name": "drop", "arguments": "{}"}
    call = {"type": "function_call", "call_id": "note", "name": "memory_write", "arguments": "{}"}
    line = [user("Drop it."), asked, call, {"type": "function_call_output", "call_id": "note", "output": "Written."}]
    consent = {"type": "mcp_approval_response", "approval_request_id": "mcpr_1", "approve": True}
    full = HiddenRounds().restore(
        a_conversation(line, "responses"), [user("Drop it."), asked, consent], FORMATS["responses"]
    )
    assert full == [*line, consent]


# -- lists that begin elsewhere ----------------------------------------------------------------------------

HELLO = [user("Hello."), assistant("Hi.")]
MORE = [user("And this."), a_reply("", asks("memory_write", id="note-2")), a_result("note-2"), assistant("Noted too.")]
SUMMARY = [user("Before this: a greeting."), assistant("I see.")]


@pytest.mark.parametrize(
    ("theirs", "full"),
    [
        ([NOTED[0], NOTED[3], user("Thanks.")], [*NOTED, user("Thanks.")]),
        ([*SUMMARY, NOTED[0], NOTED[3], user("Thanks.")], [*SUMMARY, *NOTED, user("Thanks.")]),
        ([SUMMARY[0], NOTED[0], NOTED[3], user("Thanks.")], [SUMMARY[0], *NOTED, user("Thanks.")]),
        ([HELLO[0], NOTED[0], NOTED[3], user("Thanks.")], [HELLO[0], *NOTED, user("Thanks.")]),
    ],
    ids=["dropped", "a summary in its place", "a question in its place", "an answer dropped"],
)
def test_replies_keep_their_rounds_whatever_comes_before(theirs: list[Json], full: list[Json]) -> None:
    assert whole([*HELLO, *NOTED], theirs) == full


def test_a_list_without_its_middle_keeps_the_rounds_of_both_ends() -> None:
    line = [*NOTED, *HELLO, *MORE]
    theirs = [NOTED[0], NOTED[3], MORE[0], MORE[3], user("Thanks.")]
    assert whole(line, theirs) == [*NOTED, *MORE, user("Thanks.")]


def test_replies_after_an_edited_answer_keep_their_rounds() -> None:
    theirs = [NOTED[0], assistant("I have noted it."), MORE[0], MORE[3], user("Thanks.")]
    assert whole([*NOTED, *MORE], theirs) == [*theirs[:2], *MORE, user("Thanks.")]


def test_a_list_without_its_beginning_and_with_an_edited_end_keeps_the_middle() -> None:
    theirs = [*SUMMARY, NOTED[0], NOTED[3], user("And that.")]
    assert whole([*HELLO, *NOTED, *MORE], theirs) == [*SUMMARY, *NOTED, user("And that.")]


def test_the_same_text_after_another_question_is_another_reply() -> None:
    theirs = [user("Write it down."), assistant("Noted."), user("Thanks.")]
    assert whole([*HELLO, *NOTED], theirs) == theirs


def test_of_several_matches_the_longest_run_is_used() -> None:
    def turn(number: int) -> list[Json]:
        call = asks("memory_read", id=f"note-{number}")
        return [user("Go on."), a_reply("", call), a_result(call.id), assistant("Yes.")]

    line = [*turn(1), *HELLO, *turn(2), *turn(3), *turn(4)]
    heard = [user("Go on."), assistant("Yes.")]
    theirs = [user("A summary."), *heard, *heard, *heard, user("Go on.")]
    assert whole(line, theirs) == [user("A summary."), *turn(2), *turn(3), *turn(4), user("Go on.")]


# -- other providers ---------------------------------------------------------------------------------------


def test_a_conversation_in_another_format_continues_unchanged() -> None:
    theirs = [user("Note this."), {"role": "assistant", "content": [{"type": "text", "text": "Noted."}]}, user("Hm.")]
    assert HiddenRounds().restore(a_conversation(NOTED), theirs, FORMATS["anthropic"]) == [*NOTED, user("Hm.")]


def test_results_match_in_one_message_or_in_several() -> None:
    pages = [asks("get_page", {"id": name}, id=name) for name in ("page-1", "page-2")]
    results = [a_result(page.id, f"This is {page.id}.") for page in pages]
    line = [user("Both."), a_reply("", NOTE, *pages), a_result("note"), *results, assistant("Read."), *MORE]
    used: list[Json] = [
        {"type": "tool_use", "id": page.id, "name": "get_page", "input": {"id": page.id}} for page in pages
    ]
    given = [{"type": "tool_result", "tool_use_id": page.id, "content": f"This is {page.id}."} for page in pages]
    theirs: list[Json] = [
        user("Both."),
        {"role": "assistant", "content": used},
        {"role": "user", "content": given},
        assistant("Read."),
        MORE[0],
        MORE[3],
        user("Thanks."),
    ]
    assert HiddenRounds().restore(a_conversation(line), theirs, FORMATS["anthropic"]) == [*line, user("Thanks.")]
    given[0] = {**given[0], "content": "(cleared)"}
    assert HiddenRounds().restore(a_conversation(line), theirs, FORMATS["anthropic"]) == theirs


def test_an_edited_list_is_valid_in_its_format() -> None:
    used: Json = {"type": "tool_use", "id": "note-2", "name": "memory_write", "input": {}}
    reply: Json = {"role": "assistant", "content": [used]}
    answer: Json = {
        "role": "user",
        "content": [{"type": "tool_result", "tool_use_id": "note-2", "content": "Written."}],
    }
    line = grown(a_conversation(NOTED), [MORE[0], reply, answer, MORE[3]], "anthropic")
    theirs = [*SUMMARY, NOTED[0], NOTED[3], MORE[0], MORE[3], user("Hm.")]
    full = HiddenRounds().restore(line, theirs, FORMATS["anthropic"])
    assert full == [*SUMMARY, NOTED[0], NOTED[3], MORE[0], reply, answer, MORE[3], user("Hm.")]


def test_arguments_match_as_text_or_object() -> None:
    call = asks("get_page", '{"id":"page-1"}', id="page")
    line = [user("Both."), a_reply("", NOTE, call), a_result("note")]
    used = {"type": "tool_use", "id": "page", "name": "get_page", "input": {"id": "page-1"}}
    result = {"type": "tool_result", "tool_use_id": "page", "content": "About Us"}
    theirs = [user("Both."), {"role": "assistant", "content": [used]}, {"role": "user", "content": [result]}]
    assert HiddenRounds().restore(a_conversation(line), theirs, FORMATS["anthropic"]) == [*line, theirs[-1]]


# -- one list after the other ------------------------------------------------------------------------------


def test_an_invalid_message_is_rejected_with_its_index() -> None:
    with pytest.raises(InvalidInput, match=r"messages\[1\]\.role"):
        whole(NOTED, [user("Note this."), {"role": "robot", "content": "Noted."}])
    with pytest.raises(InvalidInput, match=r"messages\[3\]\.role"):
        HiddenRounds().restore(a_conversation(NOTED), [NOTED[0], {"role": "robot", "content": "Noted."}], CHAT, lead=2)


def test_a_list_that_starts_with_the_conversation_is_unchanged() -> None:
    theirs = [*NOTED, user("Thanks.")]
    assert whole(NOTED, theirs) == theirs
    assert whole([], theirs) == theirs


class Reading(OpenAIChat):
    """A format that counts the messages it parses."""

    def __init__(self) -> None:
        self.read_so_far = 0

    def read(self, wire: Wire) -> Message:
        self.read_so_far += 1
        return super().read(wire)


def test_messages_of_the_previous_list_are_not_parsed_again() -> None:
    rounds, reading = HiddenRounds(), Reading()
    line, theirs = Conversation(), list[Json]()
    for number in range(30):
        call = asks("memory_read", id=f"note-{number}")
        theirs.append(user(f"Question {number}."))
        before = reading.read_so_far
        full = rounds.restore(line, theirs, reading)
        assert full == [*line.wires, theirs[-1]]
        assert reading.read_so_far - before <= 3
        line = grown(line, [theirs[-1], a_reply("", call), a_result(call.id), assistant(f"Answer {number}.")])
        theirs.append(assistant(f"Answer {number}."))


def test_a_change_in_place_is_noticed() -> None:
    rounds = HiddenRounds()
    line = a_conversation([*NOTED, *MORE])
    theirs = [user("Note this."), assistant("Noted."), user("And this.")]
    assert rounds.restore(line, theirs, CHAT) == [*NOTED, MORE[0]]
    theirs[0]["content"] = "(cleared)"
    assert rounds.restore(line, [*theirs, MORE[3]], CHAT) == [user("(cleared)"), assistant("Noted."), *MORE]


def test_a_failed_call_continues_in_the_next_list_too() -> None:
    rounds = HiddenRounds()
    line = a_conversation(NOTED)
    theirs = [NOTED[0], NOTED[3], user("And this.")]
    line = grown(line, rounds.restore(line, theirs, CHAT)[len(line) :])
    line = grown(line, MORE[1:3])
    assert rounds.restore(line, theirs, CHAT) == [*NOTED, *MORE[:3]]
    assert rounds.restore(line, [*theirs, user("Well?")], CHAT) == [*NOTED, *MORE[:3], user("Well?")]


# -- any conversation --------------------------------------------------------------------------------------

words = st.text(st.sampled_from("abc xyz."), min_size=1, max_size=12).filter(str.strip)


@st.composite
def talks(draw: st.DrawFn) -> tuple[list[Json], list[Json]]:
    """A conversation as in the journal, and as a host has it that saw all rounds or only the last."""
    line: list[Json] = []
    host: list[Json] = []
    for turn in range(draw(st.integers(1, 4))):
        question = user(f"{turn} {draw(words)}")
        line.append(question)
        host.append(question)
        heard = ""
        all_rounds = draw(st.booleans())
        for number in range(draw(st.integers(0, 3))):
            call = asks("memory_read", id=f"note-{turn}-{number}")
            text = draw(words | st.just(""))
            line += [a_reply(text, call), a_result(call.id)]
            heard += text
        answer = draw(words)
        if draw(st.booleans()):
            page = asks("get_page", id=f"page-{turn}")
            both = [asks("memory_read", id=f"note-{turn}-both")] if draw(st.booleans()) else []
            line += [a_reply(answer, *both, page), *(a_result(call.id) for call in both), a_result(page.id, "About Us")]
            host += [a_reply((heard if all_rounds else "") + answer, page), a_result(page.id, "About Us")]
            answer, heard = draw(words), ""
        line.append(assistant(answer))
        host.append(assistant((heard if all_rounds else "") + answer))
    return line, host


@given(talk=talks(), then=words)
def test_any_hidden_rounds_are_restored(talk: tuple[list[Json], list[Json]], then: str) -> None:
    line, host = talk
    assert whole(line, [*host, user(then)]) == [*line, user(then)]


@given(talk=talks(), at=st.integers(0, 20), then=words)
def test_an_edit_keeps_everything_before_it_and_nothing_after(
    talk: tuple[list[Json], list[Json]], at: int, then: str
) -> None:
    line, host = talk
    questions = [place for place, wire in enumerate(host) if wire["role"] == "user"]
    place = questions[at % len(questions)]
    put = whole(line, [*host[:place], user(f"no, {then}")])
    assert put[:-1] == line[: line.index(host[place])]
    assert put[-1] == user(f"no, {then}")


def spoken(wires: Sequence[Json]) -> list[tuple[str, str, list[str]]]:
    """The speakers and texts as a host sees them: without memory's calls, and replies joined."""
    seen: list[tuple[str, str, list[str]]] = []
    for wire in wires:
        message = CHAT.read(wire)
        if any(result.id.startswith("note") for result in message.results):
            continue
        calls = [call.id for call in message.calls if not call.id.startswith("note")]
        text = "".join(str(wire["content"] or "").split())
        if seen and seen[-1][0] == wire["role"] == "assistant":
            seen[-1] = ("assistant", seen[-1][1] + text, seen[-1][2] + calls)
        else:
            seen.append((wire["role"], text, calls))
    return seen


@st.composite
def tampered(draw: st.DrawFn) -> tuple[list[Json], list[Json]]:
    """The host drops, cuts, clears, rewrites and adds messages."""
    line, host = draw(talks())
    theirs: list[Json] = []
    for wire in host:
        done = draw(st.sampled_from(["kept"] * 6 + ["dropped", "changed", "cut", "added"]))
        if done == "changed" and not wire.get("tool_calls"):
            theirs.append({**wire, "content": draw(words)})
        elif done == "cut" and wire["role"] == "assistant" and not wire.get("tool_calls"):
            theirs.append({**wire, "content": wire["content"][: draw(st.integers(1, 6))]})
        elif done != "dropped":
            theirs.append(wire)
        if done == "added":
            theirs.append(user(draw(words)))
    return line, [*theirs, user("And now?")]


@given(talk=tampered())
def test_any_change_of_the_list_adds_no_visible_text(
    talk: tuple[list[Json], list[Json]],
) -> None:
    """Except texts of earlier rounds, if only the last round was shown."""
    line, theirs = talk
    heard, told = spoken(theirs), spoken(whole(line, theirs))
    assert [(who, calls) for who, _, calls in told] == [(who, calls) for who, _, calls in heard]
    assert all(mine.endswith(text) for (_, mine, _), (_, text, _) in zip(told, heard, strict=True))


@given(talk=talks(), begin=st.integers(0, 20), front=st.lists(words, max_size=2), then=words)
def test_a_list_without_its_beginning_has_all_its_rounds(
    talk: tuple[list[Json], list[Json]], begin: int, front: list[str], then: str
) -> None:
    line, host = talk
    questions = [place for place, wire in enumerate(host) if wire["role"] == "user"]
    place = questions[begin % len(questions)]
    summary = [user(f"before: {text}") for text in front]
    put = whole(line, [*summary, *host[place:], user(f"then: {then}")])
    assert put == [*summary, *line[line.index(host[place]) :], user(f"then: {then}")]


def test_the_builders_agree_with_the_format() -> None:
    assert a_reply("", NOTE) == a_call("note", "memory_write")

"""A host's list is completed from the journal, however the host keeps replies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from builders import a_call, a_result, an_event, assistant, user
from hypothesis import given
from hypothesis import strategies as st
from provider import ScriptedCall, a_tool_call
from tables import each_row

from inmind.core.events.session import MessageAdded
from inmind.core.messages import FORMATS
from inmind.core.messages.model import Message, Wire
from inmind.core.messages.openai import OpenAIChat
from inmind.errors import InvalidInput
from inmind.history.history import Conversation
from inmind.integrations.wrap.hidden_rounds import HiddenRounds

Json = dict[str, Any]

CHAT = FORMATS["openai"]
NOTE = a_tool_call("memory_write", id="note")
PAGE = a_tool_call("get_page", id="page")


def a_reply(text: str, *calls: ScriptedCall, **more: Any) -> Json:
    """A reply with calls, as in the journal."""
    tool_calls = [
        {"id": c.id, "type": "function", "function": {"name": c.name, "arguments": c.arguments}} for c in calls
    ]
    return {"role": "assistant", "content": text or None, **({"tool_calls": tool_calls} if tool_calls else {}), **more}


def a_conversation(wires: Sequence[Json], format: str = "openai") -> Conversation:
    """A conversation in which memory answered the named calls."""
    return grown(Conversation(), wires, format)


def grown(line: Conversation, wires: Sequence[Json], format: str = "openai") -> Conversation:
    for number, wire in enumerate(wires, start=len(line) + 1):
        results = FORMATS[format].read(wire).results
        ours = bool(results) and all(result.id.startswith("note") for result in results)
        line = line.apply(an_event(MessageAdded(wire=wire, format=format, from_memory=ours), number))
    return line


def restore(line: list[Json], host_messages: list[Any]) -> list[Any]:
    return HiddenRounds().restore(a_conversation(line), host_messages, CHAT)


NOTED = [user("Note this."), a_reply("", NOTE), a_result("note"), assistant("Noted.")]


def test_a_hidden_round_is_restored_before_the_reply_after_it() -> None:
    assert restore(NOTED, [user("Note this."), assistant("Noted."), user("Thanks.")]) == [*NOTED, user("Thanks.")]


def test_the_hidden_call_of_a_mixed_reply_and_its_answer_are_restored() -> None:
    line = [user("Both."), a_reply("Well.", NOTE, PAGE), a_result("note")]
    host_messages = [user("Both."), a_reply("Well.", PAGE), a_result("page", "About Us")]
    assert restore(line, host_messages) == [*line, a_result("page", "About Us")]


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
    assert restore(line, [line[0], kept, user("Thanks.")]) == [*line, user("Thanks.")]


def test_a_complete_list_is_unchanged() -> None:
    host_messages = [NOTED[0], {**NOTED[1], "refusal": None}, *NOTED[2:], user("Thanks.")]
    assert restore(NOTED, host_messages) == host_messages


@each_row(
    "host_messages",
    [
        [user("Note that."), assistant("Noted."), user("Thanks.")],
        [user("Note this."), assistant("I have noted it."), user("Thanks.")],
        [user("Note this."), assistant("Noted. And more."), user("Thanks.")],
        [user("Note this."), user("Never mind.")],
        [user("Note this."), a_reply("Noted.", PAGE), a_result("page")],
        [user("Note this.")],
        [],
    ],
    ids=["an edited question", "another answer", "a longer one", "no answer", "another call", "retried", "nothing"],
)
def test_a_changed_reply_belongs_to_the_host(host_messages: list[Json]) -> None:
    assert restore(NOTED, host_messages) == host_messages


def test_an_edit_keeps_the_rounds_before_it() -> None:
    line = [*NOTED, user("And this."), a_reply("", NOTE), a_result("note"), assistant("Noted too.")]
    host_messages = [user("Note this."), assistant("Noted."), user("And that.")]
    assert restore(line, host_messages) == [*NOTED, user("And that.")]


# -- hidden calls are those that memory has answered -------------------------------------------------------


def test_a_call_that_memory_did_not_answer_belongs_to_the_host() -> None:
    call = a_tool_call("memory_write", id="theirs")
    line = [user("Write."), a_reply("", call), a_result("theirs", "a secret"), assistant("Written.")]
    cleared = [*line[:2], a_result("theirs", "(cleared)"), line[3], user("Thanks.")]
    assert restore(line, cleared) == cleared
    assert restore(line, [line[0], line[3], user("Thanks.")]) == [line[0], line[3], user("Thanks.")]


def test_call_ids_that_restart_in_every_reply_are_understood() -> None:
    again = a_tool_call("get_page", id="note")
    line = [
        user("Both."),
        a_reply("", NOTE),
        a_result("note"),
        a_reply("Well.", again),
    ]
    host_messages = [user("Both."), a_reply("Well.", again), a_result("note", "About Us")]
    assert restore(line, host_messages) == [*line, a_result("note", "About Us")]


# -- replies of which the host has a part ------------------------------------------------------------------


@pytest.mark.parametrize("then", [[], [user("Are you there?")]], ids=["retried", "continued"])
def test_a_failed_call_continues_from_its_last_round(then: list[Json]) -> None:
    """The note is stored: a model that does not see that would write it again."""
    line = [user("Note this."), a_reply("", NOTE), a_result("note")]
    assert restore(line, [user("Note this."), *then]) == [*line, *then]
    later = [*line, user("Are you there?"), assistant("Yes.")]
    assert restore(later, [user("Note this."), *later[3:], user("Good.")]) == [*later, user("Good.")]


def test_a_round_of_a_failed_call_belongs_to_its_question() -> None:
    line = [user("Go on."), a_reply("", NOTE), a_result("note"), user("Stop."), assistant("Yes.")]
    assert restore(line, [user("Go on.")]) == [user("Go on.")]


@pytest.mark.parametrize(
    ("words", "kept", "rest"),
    [
        ("I will", "I will\n\nOne tw", [assistant("One tw")]),
        ("", "One tw", [assistant("One tw")]),
        ("", "Sorry, something went wrong.", [assistant("Sorry, something went wrong.")]),
        ("I will", "I will ", []),
    ],
    ids=["after the text", "the first words", "text of the host", "no new text"],
)
def test_a_stream_closed_in_a_later_round_continues_from_that_round(words: str, kept: str, rest: list[Json]) -> None:
    line = [user("Note this."), a_reply(words, NOTE), a_result("note")]
    host_messages = [user("Note this."), assistant(kept), user("Go on.")]
    full = [*line, *rest, user("Go on.")]
    assert restore(line, host_messages) == full
    answered = [*full, assistant("Three.")]
    assert restore(answered, [*host_messages, assistant("Three."), user("Thanks.")]) == [*answered, user("Thanks.")]


@pytest.mark.parametrize(
    ("kept", "expected"), [("One moment. Done, as", "Done, as"), ("Done, as", "Done, as"), ("One moment.", "")]
)
def test_the_beginning_of_a_reply_keeps_the_rounds_before_it(kept: str, expected: str) -> None:
    """The user interrupted, and the rest was never received."""
    line = [user("Do it."), a_reply("One moment.", NOTE), a_result("note"), assistant("Done, as you asked.")]
    host_messages = [line[0], assistant(kept), user("Wait.")]
    assert restore(line, host_messages) == [*line[:3], *([assistant(expected)] if expected else []), user("Wait.")]


def test_a_mixed_reply_that_the_host_dropped_stays_dropped() -> None:
    line = [user("Both."), a_reply("Well.", NOTE, PAGE), a_result("note")]
    assert restore(line, [user("Both.")]) == [user("Both.")]


# -- the host's own messages -------------------------------------------------------------------------------


CUT = [user("Look."), a_reply("", NOTE), a_result("note"), a_reply("I look.", PAGE)]


@pytest.mark.parametrize(
    ("kept", "expected"),
    [
        ([assistant("I look.")], [assistant("I look.")]),
        ([assistant("I lo")], [assistant("I lo")]),
        ([assistant("")], [assistant("")]),
    ],
    ids=["its words", "some of them", "nothing"],
)
def test_a_reply_without_its_call_keeps_the_rounds_before_it(kept: list[Json], expected: list[Json]) -> None:
    assert restore(CUT, [CUT[0], *kept, user("Go on.")]) == [*CUT[:3], *expected, user("Go on.")]


def test_a_dropped_reply_with_only_a_call_keeps_the_rounds_before_it() -> None:
    line = [*CUT[:3], a_reply("", PAGE)]
    assert restore(line, [line[0], user("Go on.")]) == [*CUT[:3], user("Go on.")]


@pytest.mark.parametrize("kept", [assistant("I will not."), a_reply("I look.", a_tool_call("deploy", id="other"))])
def test_a_reply_that_replaces_one_with_a_call_belongs_to_the_host(kept: Json) -> None:
    host_messages = [CUT[0], kept, *([a_result("other")] if "tool_calls" in kept else []), user("Go on.")]
    assert restore(CUT, host_messages) == host_messages


PLAIN = [user("Write it."), assistant("if x:\n  y()\nz()")]


@pytest.mark.parametrize("kept", ["if x:\n  y()\n  z()", "if x:\n  y()\nz()\n", " if x:\n  y()\nz()"])
def test_without_hidden_calls_a_changed_space_is_an_edit(kept: str) -> None:
    host_messages = [PLAIN[0], assistant(kept), user("Run it.")]
    assert restore(PLAIN, host_messages) == host_messages


def test_adjacent_text_parts_may_be_joined() -> None:
    parts = {"role": "assistant", "content": [{"type": "text", "text": text} for text in ("One. ", "Two.", " Three.")]}
    line = [user("Count."), parts]
    for kept in ("One. Two. Three.", "One. \n\nTwo.\n\n Three."):
        assert restore(line, [line[0], assistant(kept), user("Go on.")]) == [*line, user("Go on.")]
    edited = [line[0], assistant("One.  Two . Three."), user("Go on.")]
    assert restore(line, edited) == edited


def test_messages_of_the_host_keep_their_form() -> None:
    """The host may move a cache mark between messages."""
    marked = {
        "role": "user",
        "content": [{"type": "text", "text": "Note this.", "cache_control": {"type": "ephemeral"}}],
    }
    line = [marked, *NOTED[1:]]
    assert restore(line, [user("Note this."), assistant("Noted."), user("Thanks.")])[0] == user("Note this.")


def test_cleared_results_stay_cleared_and_the_rounds_after_them_are_restored() -> None:
    line = [
        user("Both."),
        a_reply("", PAGE),
        a_result("page", "a long page"),
        a_reply("", NOTE),
        a_result("note"),
        assistant("Noted."),
    ]
    host_messages = [line[0], line[1], a_result("page", "(cleared)"), assistant("Noted."), user("Thanks.")]
    assert restore(line, host_messages) == [*line[:2], a_result("page", "(cleared)"), *line[3:], user("Thanks.")]


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
    host_messages = [user("Click."), call, cleared, assistant("Clicked."), user("Thanks.")]
    full = HiddenRounds().restore(a_conversation(line, "responses"), host_messages, FORMATS["responses"])
    assert full == [user("Click."), call, cleared, *noted, *host_messages[3:]]


def test_another_image_is_another_message() -> None:
    def pictured(name: str) -> Json:
        picture = {"type": "image_url", "image_url": {"url": f"https://example.com/{name}.png"}}
        return {"role": "user", "content": [{"type": "text", "text": "Note this."}, picture]}

    line = [pictured("a"), *NOTED[1:]]
    assert restore(line, [pictured("a"), NOTED[3], user("Thanks.")]) == [*line, user("Thanks.")]
    other = [pictured("b"), NOTED[3], user("Thanks.")]
    assert restore(line, other) == other


def test_an_audio_reply_is_recognized_by_its_id() -> None:
    audio = {"role": "assistant", "content": None, "audio": {"id": "aud_1", "data": "c291bmQ=", "transcript": "Hello."}}
    line = [user("Say it."), a_reply("", NOTE), a_result("note"), audio]
    kept: Json = {"role": "assistant", "audio": {"id": "aud_1"}}
    assert restore(line, [user("Say it."), kept, user("Again.")]) == [*line, user("Again.")]


def test_an_item_without_a_role_does_not_belong_to_the_assistant() -> None:
    approval = {"type": "mcp_approval_request", "id": "mcpr_1", "server_label": "x", "name": "drop", "arguments": "{}"}
    call = {"type": "function_call", "call_id": "note", "name": "memory_write", "arguments": "{}"}
    line = [user("Drop it."), approval, call, {"type": "function_call_output", "call_id": "note", "output": "Written."}]
    consent = {"type": "mcp_approval_response", "approval_request_id": "mcpr_1", "approve": True}
    full = HiddenRounds().restore(
        a_conversation(line, "responses"), [user("Drop it."), approval, consent], FORMATS["responses"]
    )
    assert full == [*line, consent]


# -- lists without the beginning ---------------------------------------------------------------------------

HELLO = [user("Hello."), assistant("Hi.")]
MORE = [
    user("And this."),
    a_reply("", a_tool_call("memory_write", id="note-2")),
    a_result("note-2"),
    assistant("Noted too."),
]
SUMMARY = [user("Before this: a greeting."), assistant("I see.")]


@pytest.mark.parametrize(
    ("host_messages", "full"),
    [
        ([NOTED[0], NOTED[3], user("Thanks.")], [*NOTED, user("Thanks.")]),
        ([*SUMMARY, NOTED[0], NOTED[3], user("Thanks.")], [*SUMMARY, *NOTED, user("Thanks.")]),
        ([SUMMARY[0], NOTED[0], NOTED[3], user("Thanks.")], [SUMMARY[0], *NOTED, user("Thanks.")]),
        ([HELLO[0], NOTED[0], NOTED[3], user("Thanks.")], [HELLO[0], *NOTED, user("Thanks.")]),
    ],
    ids=["dropped", "a summary in its place", "a question in its place", "an answer dropped"],
)
def test_replies_keep_their_rounds_whatever_comes_before(host_messages: list[Json], full: list[Json]) -> None:
    assert restore([*HELLO, *NOTED], host_messages) == full


def test_a_list_without_its_middle_keeps_the_rounds_of_both_ends() -> None:
    line = [*NOTED, *HELLO, *MORE]
    host_messages = [NOTED[0], NOTED[3], MORE[0], MORE[3], user("Thanks.")]
    assert restore(line, host_messages) == [*NOTED, *MORE, user("Thanks.")]


def test_replies_after_an_edited_answer_keep_their_rounds() -> None:
    host_messages = [NOTED[0], assistant("I have noted it."), MORE[0], MORE[3], user("Thanks.")]
    assert restore([*NOTED, *MORE], host_messages) == [*host_messages[:2], *MORE, user("Thanks.")]


def test_a_list_without_its_beginning_and_with_an_edited_end_keeps_the_middle() -> None:
    host_messages = [*SUMMARY, NOTED[0], NOTED[3], user("And that.")]
    assert restore([*HELLO, *NOTED, *MORE], host_messages) == [*SUMMARY, *NOTED, user("And that.")]


def test_the_same_text_after_another_question_is_another_reply() -> None:
    host_messages = [user("Write it down."), assistant("Noted."), user("Thanks.")]
    assert restore([*HELLO, *NOTED], host_messages) == host_messages


def test_of_several_matches_the_longest_run_is_used() -> None:
    def turn(number: int) -> list[Json]:
        call = a_tool_call("memory_read", id=f"note-{number}")
        return [user("Go on."), a_reply("", call), a_result(call.id), assistant("Yes.")]

    line = [*turn(1), *HELLO, *turn(2), *turn(3), *turn(4)]
    visible = [user("Go on."), assistant("Yes.")]
    host_messages = [user("A summary."), *visible, *visible, *visible, user("Go on.")]
    assert restore(line, host_messages) == [user("A summary."), *turn(2), *turn(3), *turn(4), user("Go on.")]


# -- other providers ---------------------------------------------------------------------------------------


def test_a_conversation_in_another_format_continues_unchanged() -> None:
    host_messages = [
        user("Note this."),
        {"role": "assistant", "content": [{"type": "text", "text": "Noted."}]},
        user("Hm."),
    ]
    assert HiddenRounds().restore(a_conversation(NOTED), host_messages, FORMATS["anthropic"]) == [*NOTED, user("Hm.")]


def test_results_match_in_one_message_or_in_several() -> None:
    pages = [a_tool_call("get_page", {"id": name}, id=name) for name in ("page-1", "page-2")]
    results = [a_result(page.id, f"This is {page.id}.") for page in pages]
    line = [user("Both."), a_reply("", NOTE, *pages), a_result("note"), *results, assistant("Read."), *MORE]
    used: list[Json] = [
        {"type": "tool_use", "id": page.id, "name": "get_page", "input": {"id": page.id}} for page in pages
    ]
    given = [{"type": "tool_result", "tool_use_id": page.id, "content": f"This is {page.id}."} for page in pages]
    host_messages: list[Json] = [
        user("Both."),
        {"role": "assistant", "content": used},
        {"role": "user", "content": given},
        assistant("Read."),
        MORE[0],
        MORE[3],
        user("Thanks."),
    ]
    assert HiddenRounds().restore(a_conversation(line), host_messages, FORMATS["anthropic"]) == [*line, user("Thanks.")]
    given[0] = {**given[0], "content": "(cleared)"}
    assert HiddenRounds().restore(a_conversation(line), host_messages, FORMATS["anthropic"]) == host_messages


def test_an_edited_list_is_valid_in_its_format() -> None:
    used: Json = {"type": "tool_use", "id": "note-2", "name": "memory_write", "input": {}}
    reply: Json = {"role": "assistant", "content": [used]}
    answer: Json = {
        "role": "user",
        "content": [{"type": "tool_result", "tool_use_id": "note-2", "content": "Written."}],
    }
    line = grown(a_conversation(NOTED), [MORE[0], reply, answer, MORE[3]], "anthropic")
    host_messages = [*SUMMARY, NOTED[0], NOTED[3], MORE[0], MORE[3], user("Hm.")]
    full = HiddenRounds().restore(line, host_messages, FORMATS["anthropic"])
    assert full == [*SUMMARY, NOTED[0], NOTED[3], MORE[0], reply, answer, MORE[3], user("Hm.")]


def test_arguments_match_as_text_or_object() -> None:
    call = a_tool_call("get_page", '{"id":"page-1"}', id="page")
    line = [user("Both."), a_reply("", NOTE, call), a_result("note")]
    used = {"type": "tool_use", "id": "page", "name": "get_page", "input": {"id": "page-1"}}
    result = {"type": "tool_result", "tool_use_id": "page", "content": "About Us"}
    host_messages = [user("Both."), {"role": "assistant", "content": [used]}, {"role": "user", "content": [result]}]
    assert HiddenRounds().restore(a_conversation(line), host_messages, FORMATS["anthropic"]) == [
        *line,
        host_messages[-1],
    ]


# -- successive lists --------------------------------------------------------------------------------------


def test_an_invalid_message_is_rejected_with_its_index() -> None:
    with pytest.raises(InvalidInput, match=r"messages\[1\]\.role"):
        restore(NOTED, [user("Note this."), {"role": "robot", "content": "Noted."}])
    with pytest.raises(InvalidInput, match=r"messages\[3\]\.role"):
        HiddenRounds().restore(a_conversation(NOTED), [NOTED[0], {"role": "robot", "content": "Noted."}], CHAT, lead=2)


def test_a_list_that_starts_with_the_conversation_is_unchanged() -> None:
    host_messages = [*NOTED, user("Thanks.")]
    assert restore(NOTED, host_messages) == host_messages
    assert restore([], host_messages) == host_messages


class CountingFormat(OpenAIChat):
    """A format that counts the messages it parses."""

    def __init__(self) -> None:
        self.read_count = 0

    def read(self, wire: Wire) -> Message:
        self.read_count += 1
        return super().read(wire)


def test_messages_of_the_previous_list_are_not_parsed_again() -> None:
    rounds, counting = HiddenRounds(), CountingFormat()
    line, host_messages = Conversation(), list[Json]()
    for number in range(30):
        call = a_tool_call("memory_read", id=f"note-{number}")
        host_messages.append(user(f"Question {number}."))
        before = counting.read_count
        full = rounds.restore(line, host_messages, counting)
        assert full == [*line.wires, host_messages[-1]]
        assert counting.read_count - before <= 3
        line = grown(line, [host_messages[-1], a_reply("", call), a_result(call.id), assistant(f"Answer {number}.")])
        host_messages.append(assistant(f"Answer {number}."))


def test_a_change_in_place_is_noticed() -> None:
    rounds = HiddenRounds()
    line = a_conversation([*NOTED, *MORE])
    host_messages = [user("Note this."), assistant("Noted."), user("And this.")]
    assert rounds.restore(line, host_messages, CHAT) == [*NOTED, MORE[0]]
    host_messages[0]["content"] = "(cleared)"
    assert rounds.restore(line, [*host_messages, MORE[3]], CHAT) == [user("(cleared)"), assistant("Noted."), *MORE]


def test_a_failed_call_continues_in_the_next_list_too() -> None:
    rounds = HiddenRounds()
    line = a_conversation(NOTED)
    host_messages = [NOTED[0], NOTED[3], user("And this.")]
    line = grown(line, rounds.restore(line, host_messages, CHAT)[len(line) :])
    line = grown(line, MORE[1:3])
    assert rounds.restore(line, host_messages, CHAT) == [*NOTED, *MORE[:3]]
    assert rounds.restore(line, [*host_messages, user("Well?")], CHAT) == [*NOTED, *MORE[:3], user("Well?")]


# -- properties --------------------------------------------------------------------------------------------

words = st.text(st.sampled_from("abc xyz."), min_size=1, max_size=12).filter(str.strip)


@st.composite
def conversations(draw: st.DrawFn) -> tuple[list[Json], list[Json]]:
    """A conversation as in the journal, and as a host that saw all rounds or only the last has it."""
    line: list[Json] = []
    host: list[Json] = []
    for turn in range(draw(st.integers(1, 4))):
        question = user(f"{turn} {draw(words)}")
        line.append(question)
        host.append(question)
        earlier_text = ""
        all_rounds = draw(st.booleans())
        for number in range(draw(st.integers(0, 3))):
            call = a_tool_call("memory_read", id=f"note-{turn}-{number}")
            text = draw(words | st.just(""))
            line += [a_reply(text, call), a_result(call.id)]
            earlier_text += text
        answer = draw(words)
        if draw(st.booleans()):
            page = a_tool_call("get_page", id=f"page-{turn}")
            both = [a_tool_call("memory_read", id=f"note-{turn}-both")] if draw(st.booleans()) else []
            line += [a_reply(answer, *both, page), *(a_result(call.id) for call in both), a_result(page.id, "About Us")]
            host += [a_reply((earlier_text if all_rounds else "") + answer, page), a_result(page.id, "About Us")]
            answer, earlier_text = draw(words), ""
        line.append(assistant(answer))
        host.append(assistant((earlier_text if all_rounds else "") + answer))
    return line, host


@given(conversation=conversations(), then=words)
def test_any_hidden_rounds_are_restored(conversation: tuple[list[Json], list[Json]], then: str) -> None:
    line, host = conversation
    assert restore(line, [*host, user(then)]) == [*line, user(then)]


@given(conversation=conversations(), at=st.integers(0, 20), then=words)
def test_an_edit_keeps_everything_before_it_and_nothing_after(
    conversation: tuple[list[Json], list[Json]], at: int, then: str
) -> None:
    line, host = conversation
    questions = [place for place, wire in enumerate(host) if wire["role"] == "user"]
    place = questions[at % len(questions)]
    restored = restore(line, [*host[:place], user(f"no, {then}")])
    assert restored[:-1] == line[: line.index(host[place])]
    assert restored[-1] == user(f"no, {then}")


def visible_texts(wires: Sequence[Json]) -> list[tuple[str, str, list[str]]]:
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
def edited_conversations(draw: st.DrawFn) -> tuple[list[Json], list[Json]]:
    """The host drops, cuts, clears, rewrites and adds messages."""
    line, host = draw(conversations())
    host_messages: list[Json] = []
    for wire in host:
        action = draw(st.sampled_from(["kept"] * 6 + ["dropped", "changed", "cut", "added"]))
        if action == "changed" and not wire.get("tool_calls"):
            host_messages.append({**wire, "content": draw(words)})
        elif action == "cut" and wire["role"] == "assistant" and not wire.get("tool_calls"):
            host_messages.append({**wire, "content": wire["content"][: draw(st.integers(1, 6))]})
        elif action != "dropped":
            host_messages.append(wire)
        if action == "added":
            host_messages.append(user(draw(words)))
    return line, [*host_messages, user("And now?")]


@given(conversation=edited_conversations())
def test_any_change_of_the_list_adds_no_visible_text(
    conversation: tuple[list[Json], list[Json]],
) -> None:
    """Except texts of earlier rounds, if only the last round was shown."""
    line, host_messages = conversation
    before, after = visible_texts(host_messages), visible_texts(restore(line, host_messages))
    assert [(speaker, calls) for speaker, _, calls in after] == [(speaker, calls) for speaker, _, calls in before]
    assert all(mine.endswith(text) for (_, mine, _), (_, text, _) in zip(after, before, strict=True))


@given(conversation=conversations(), begin=st.integers(0, 20), front=st.lists(words, max_size=2), then=words)
def test_a_list_without_its_beginning_has_all_its_rounds(
    conversation: tuple[list[Json], list[Json]], begin: int, front: list[str], then: str
) -> None:
    line, host = conversation
    questions = [place for place, wire in enumerate(host) if wire["role"] == "user"]
    place = questions[begin % len(questions)]
    summary = [user(f"before: {text}") for text in front]
    restored = restore(line, [*summary, *host[place:], user(f"then: {then}")])
    assert restored == [*summary, *line[line.index(host[place]) :], user(f"then: {then}")]


def test_the_builders_agree_with_the_format() -> None:
    assert a_reply("", NOTE) == a_call("note", "memory_write")

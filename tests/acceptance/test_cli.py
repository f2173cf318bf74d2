"""The command line, as a person and as a script would use it."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from builders import Home, assistant, page_of, turns, user
from terminal import at_once, fitting, inmind, on_a_screen

from inmind import Memory, Trust
from inmind.layers import ScratchpadLayer
from inmind.types import EntityRules


@pytest.fixture
def used(home: Home) -> Home:
    with Memory.open(home) as memory:
        session = memory.session("support-42", resource="ada", cwd="/website")
        session.prepare([user("Create a page"), assistant("Done\x1b[2J"), user("Add a hero to it")])
        session.write("overview.md", "# Mine\n- a fact\n")
    return home


@pytest.mark.spec("G2")
def test_a_note_is_taken_in_a_persons_name(used: Home) -> None:
    ran = inmind("note", "Ada prefers tabs", "--importance", "0.9", "--resource", "ada", home=used)
    assert re.fullmatch(r"Saved at \d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ as resource/ada#1\.\n", ran.stdout), ran.stderr
    given = ("note", "-", "--session", "support-42", "--kind", "fact", "--json")
    said = json.loads(inmind(*given, home=used, stdin="and coffee\nand tea\n").stdout)
    assert (said["id"], said["resource"]) == ("resource/ada#2", "ada")
    with Memory.open(used) as memory:
        assert page_of(memory, "memory/scratch.md").endswith("(importance: 0.7) and coffee\n  and tea\n")
        belongings = memory.session("support-42").resource_state
    assert belongings.documents.by_path["memory/scratch.md"].trust is Trust.PERSON


@pytest.mark.spec("G2", "J3")
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["note", " ", "--resource", "ada"], "INVALID_INPUT: TEXT: expected a non-empty note"),
        (["note", "x", "--kind", "whim", "--resource", "ada"], "INVALID_INPUT: --kind: expected one of fact, "),
        (["note", "x", "--importance", "nan", "--resource", "ada"], "INVALID_INPUT: --importance: expected a number"),
        (["note", "x", "--session", "support-42", "--resource", "ada"], "no --session: the two cannot be combined"),
        (["note", "x", "--session", "none"], "NOT_FOUND: no session 'none'"),
        (["note", "x", "--resource", "default"], "INVALID_INPUT: --resource: expected a named resource"),
        (["note", "x"], "NOT_FOUND: no session in '"),
    ],
)
def test_a_note_that_cannot_be_taken_is_refused_in_one_line(used: Home, arguments: list[str], said: str) -> None:
    ran = inmind(*arguments, home=used)
    assert (ran.returncode, ran.stderr.count("\n")) == (fitting(ran.stderr), 1)
    assert said in ran.stderr
    with Memory.open(used) as memory:
        assert "memory/scratch.md" not in memory.resource("ada").state.documents.by_path


@pytest.mark.embedded
@pytest.mark.spec("G2", "I2")
def test_a_note_needs_neither_a_home_nor_a_session_of_whom_it_is_for(home: Path) -> None:
    ran = at_once("note", "Ada prefers tabs", "--resource", "ada", home=home)
    assert (ran.exit_code, ran.stderr) == (0, "")
    assert ran.stdout.endswith(" as resource/ada#1.\n")
    assert (home / "resources/ada/memory/scratch.md").read_text().endswith("(importance: 0.7) Ada prefers tabs\n")
    with Memory.open(home) as memory:
        assert (memory.resources(), memory.sessions()) == (["ada"], [])
        assert "Ada prefers tabs" in str(memory.session("first", resource="ada").prepare([user("Hi")]).messages)


@pytest.mark.spec("H5")
def test_upkeep_says_whether_all_of_it_is_done(used: Home) -> None:
    with Memory.open(used) as memory:
        for text in ("User lives in Berlin", "User lives in Hamburg"):
            memory.session("support-42").note(text)
    assert inmind("upkeep", home=used).stdout.endswith("Upkeep finished.\n")
    with Memory.open(used) as memory:
        hits = memory.search("lives in", sources=["memory"])
        memory.resource("ben").note("One more whom there is to look after")
    assert [bool(hit.crystal.superseded_by) for hit in hits] == [False, True]
    assert json.loads(inmind("upkeep", "--seconds", "60", "--json", home=used).stdout)["finished"] is True
    assert inmind("upkeep", "--seconds", "0", home=used).stdout == "Stopped after 0 s; the next upkeep continues.\n"
    refused = inmind("upkeep", "--seconds", "-1", home=used)
    assert (refused.returncode, refused.stderr.count("\n")) == (fitting(refused.stderr), 1)


def test_sessions_are_listed(used: Home) -> None:
    ran = inmind("sessions", home=used)
    assert "support-42" in ran.stdout
    (row,) = json.loads(inmind("sessions", "--json", home=used).stdout)
    assert (row["id"], row["resource"], row["messages"]) == ("support-42", "ada", 3)


@pytest.mark.spec("E1")
def test_sessions_are_listed_by_title_by_folder_and_by_resource(home: Home) -> None:
    with Memory.open(home) as memory:
        memory.session("one", resource="ada", cwd=Path.cwd()).add([user("fix [/bold] in\x1b[2J the parser")])
        memory.session("two", resource="bob", cwd="/elsewhere").add([user("write the docs")])
    listed = inmind("sessions", home=home).stdout
    assert "write the docs" in listed
    assert "\x1b" not in listed
    titles = {row["id"]: row["title"] for row in json.loads(inmind("sessions", "--json", home=home).stdout)}
    assert titles == {"one": "fix [/bold] in\x1b[2J the parser", "two": "write the docs"}
    here = inmind("sessions", "--here", home=home).stdout
    assert ("fix [/bold]" in here, "write" in here) == (True, False)
    assert [row["id"] for row in json.loads(inmind("sessions", "--resource", "bob", "--json", home=home).stdout)] == [
        "two"
    ]


@pytest.mark.spec("E1")
def test_sessions_and_events_have_a_line_each_however_long_they_are(home: Home) -> None:
    with Memory.open(home) as memory:
        for id in ("support-41", "support-42"):
            session = memory.session(id, resource="ada-lovelace", cwd="/home/ada/work/a-website-with-a-long-name")
            session.add([user("Create a page about all that we have ever sold. " + "And say so. " * 500)])
    listed = on_a_screen("sessions", home=home)
    assert len(listed) == 3
    assert all("support-4" in line and " Create a page ab" in line and "…" in line for line in listed[1:])
    events = on_a_screen("show", "journal", "support-41", home=home)
    assert [int(line.split()[0]) for line in events] == list(range(1, len(events) + 1))
    assert all(len(line) <= 80 for line in (*listed, *events))
    piped = inmind("show", "journal", "support-41", home=home).stdout.splitlines()
    assert (len(piped), max(map(len, piped))) == (len(events), 200)
    assert len(inmind("show", "journal", "support-41", "--json", home=home).stdout) > 6_000


def test_a_filter_that_nothing_passes_says_so_and_a_bad_one_fails_in_one_line(used: Home) -> None:
    assert inmind("sessions", "--here", home=used).stdout.startswith("No matching sessions in ")
    ran = inmind("sessions", "--resource", " ", home=used)
    assert (ran.returncode, ran.stdout) == (fitting(ran.stderr), "")
    assert ran.stderr.startswith("inmind: INVALID_INPUT: --resource: ")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["sessions", "--resource", "adda"], "no resource 'adda'"),
        (["search", "page", "--resource", "adda"], "no resource 'adda'"),
        (["search", "page", "--session", "support-24"], "no session 'support-24'"),
    ],
)
def test_a_name_that_is_mistyped_is_not_an_empty_answer(used: Home, arguments: list[str], said: str) -> None:
    ran = at_once(*arguments, home=used)
    assert (ran.exit_code, ran.stdout) == (3, "")
    assert ran.stderr.startswith(f"inmind: NOT_FOUND: {said}: ")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["sessions", "--resource", "adda"], "no resource 'adda': did you mean 'ada'? "),
        (["affect", "Ada"], "no resource 'Ada': did you mean 'ada'? "),
        (["show", "prompt", "support42"], "no session 'support42': did you mean 'support-42'? "),
        (["show", "state", "suport-42"], "no resource or session 'suport-42': did you mean 'support-42'? "),
        (["show", "prompt", "zzz"], "no session 'zzz': "),
    ],
)
def test_a_mistyped_name_suggests_the_nearest_one(used: Home, arguments: list[str], said: str) -> None:
    ran = at_once(*arguments, home=used)
    assert (ran.exit_code, ran.stdout) == (3, "")
    listed = "there is ada" if said.startswith("no resource '") else "`inmind sessions` lists all"
    assert ran.stderr == f"inmind: NOT_FOUND: {said}{listed}\n"


def test_a_session_of_another_resource_is_an_error(used: Home) -> None:
    with Memory.open(used) as memory:
        memory.session("other", resource="bob").add([user("Hi")])
    assert at_once("search", "page", "--session", "support-42", "--resource", "ada", home=used).exit_code == 0
    ran = at_once("search", "page", "--session", "support-42", "--resource", "bob", home=used)
    assert (ran.exit_code, ran.stdout) == (2, "")
    assert ran.stderr.endswith(": --resource: expected 'ada', the owner of session 'support-42', got 'bob'\n")


def test_a_default_is_not_reported_as_given(used: Home) -> None:
    ran = at_once("export", "-", "--json", home=used)
    assert (
        ran.stderr == "inmind: INVALID_INPUT: --json: expected a FILE: it cannot be combined with a bundle on stdout\n"
    )


@pytest.mark.spec("I2")
def test_a_table_in_a_pipe_is_as_wide_as_what_it_says(used: Home) -> None:
    head, row = at_once("sessions", home=used).stdout.splitlines()
    assert re.fullmatch(r"session    title         resource msgs calls last used \(UTC\)  working directory", head)
    assert re.fullmatch(r"support-42 Create a page ada      3    1     \d{4}-\d\d-\d\d \d\d:\d\d /website", row)
    shown = at_once("show", "prompt", "support-42", home=used).stdout.split("\n── ")[0]
    assert "why\n" in shown
    with Memory.open(used) as memory:
        memory.session("long", resource="ada", cwd="/website").add([user("Say so. " * 100)])
        memory.session("deep", resource="ada", cwd=f"/{'website/' * 40}").add([user("Say so. " * 100)])
    cut = at_once("sessions", home=used).stdout
    assert max(map(len, cut.splitlines())) == 200
    assert all(line == line.rstrip() for line in (*shown.splitlines(), *cut.splitlines()))
    assert "support-42 Create a page " in cut


def test_sessions_without_a_resource_are_found_by_their_listed_name(home: Home) -> None:
    with Memory.open(home) as memory:
        memory.session("stranger").add([user("Hi")])
    assert "stranger" in at_once("sessions", "--resource", "default", home=home).stdout
    assert at_once("search", "Hi", "--resource", "default", home=home).exit_code == 0


@pytest.mark.embedded
@pytest.mark.spec("I2")
def test_the_first_search_says_on_a_terminal_what_it_waits_for_and_nothing_in_a_pipe(used: Path) -> None:
    assert at_once("search", "page", home=used).stderr == ""
    assert not any("indexing" in line for line in on_a_screen("search", "page", home=used, terminal="xterm"))
    (used / "index.db").unlink()
    assert any("indexing" in line for line in on_a_screen("search", "page", home=used, terminal="xterm"))


def test_a_folder_with_a_line_break_in_its_name_takes_one_line(home: Home) -> None:
    with Memory.open(home) as memory:
        memory.session("one", cwd="/web\nsite").add([user("Hi")])
    assert len(at_once("sessions", home=home).stdout.splitlines()) == 2


@pytest.mark.embedded
def test_a_home_that_is_not_there_is_not_made_and_says_what_to_do_next(home: Path) -> None:
    ran = inmind("sessions", home=home)
    assert (ran.returncode, home.exists()) == (3, False)
    assert "inmind demo" in ran.stderr


def test_an_empty_home_has_no_sessions(home: Home) -> None:
    Memory.open(home).close()
    assert inmind("sessions", home=home).stdout.startswith("No sessions in ")


def test_the_version_is_printed() -> None:
    assert inmind("--version").stdout.startswith("inmind 0.")


def test_the_prompt_of_a_call_is_shown_with_its_reasons(used: Home) -> None:
    ran = inmind("show", "prompt", "support-42", "--call", "1", home=used)
    assert ran.stdout.startswith("Call 1, for openai: ")
    assert re.search(r"\no overview +\d+ +\d+% new +anchored since call 1 \(first call\)", ran.stdout)
    assert re.search(r"── H history, user ─+\nAdd a hero to it\n\n── M context_meta ─+\n<context_meta>", ran.stdout)
    assert "\x1b" not in ran.stdout
    told = json.loads(inmind("show", "prompt", "support-42", "--call", "1", "--json", home=used).stdout)
    with Memory.open(used) as memory:
        prompt = memory.session("support-42").prompt(1)
    assert told["request"] == prompt.request
    assert (told["tokens"], told["tokens_used"]) == (dict(prompt.report.tokens), prompt.report.tokens_used)


@pytest.mark.spec("I2")
@pytest.mark.parametrize("format", ["openai", "responses", "anthropic"])
def test_what_the_next_call_would_send_is_shown_to_the_letter_and_stores_nothing(home: Home, format: str) -> None:
    with Memory.open(home) as memory:
        session = memory.session("s", resource="ada", window=9_000, reserve=700, memory_tools=False)
        session.prepare([user("Create a page")], system="You build pages.", format=format)
        session.add([assistant("Done"), user("Add a hero to it")], format=format)
        session.note("Ada prefers tabs")
        before = session.state.seq
    ran = at_once("show", "prompt", "s", home=home)
    assert ran.stdout.startswith(f"Next call, for {format}: ")
    assert "Add a hero to it" in ran.stdout
    told = json.loads(at_once("show", "prompt", "s", "--json", home=home).stdout)
    with Memory.open(home) as memory:
        session = memory.session("s", window=9_000, reserve=700, memory_tools=False)
        assert session.state.seq == before
        prompt = session.prepare(format=format)
    assert (told["call"], told["sent"], told["request"]) == (2, False, prompt.request)
    assert told["tokens"] == dict(prompt.report.tokens)


def test_a_session_that_was_never_asked_shows_what_it_would_be_asked_first(home: Home) -> None:
    with Memory.open(home) as memory:
        memory.session("fresh").add([user("Hi")])
    told = json.loads(at_once("show", "prompt", "fresh", "--json", home=home).stdout)
    assert (told["call"], told["sent"]) == (1, False)
    ran = at_once("show", "prompt", "fresh", "--call", "1", home=home)
    assert ran.stderr == "inmind: NOT_FOUND: no call 1: this session has not made one yet\n"


def test_entities_are_shown_with_pins_and_the_deleted_and_cannot_act_in_a_terminal(home: Home) -> None:
    with Memory.open(home) as memory:
        session = memory.session("s", entities=EntityRules(window=2))
        session.observe("delete_page", {"page_id": "page-1"}, "ok")
        session.observe("get_page", {}, {"page": {"id": "page-2", "name": "Two"}})
        session.observe("get_page", {}, {"page": {"id": "page-3", "name": "Three\u202e\x1b[2J\nno line"}})
        session.pin("page-3")
        session.observe("delete_page", {"page_id": "page-2"}, "ok")
    ran = inmind("show", "entities", "s", home=home)
    assert ran.returncode == 0
    assert '"Two" (page-2) [deleted]' in ran.stdout
    (pinned,) = (line for line in ran.stdout.splitlines() if line.startswith("Pinned: "))
    assert pinned.startswith('Pinned: page-3, "Three')
    assert pinned.endswith('no line".')
    assert "Outside the window: 1 more, 1 of them deleted." in ran.stdout
    assert all(line.isprintable() for line in ran.stdout.split("\n"))


def scratchpad_of(session: str, home: Home, *options: str) -> str:
    ran = inmind("show", "scratchpad", session, *options, home=home)
    assert (ran.returncode, ran.stderr) == (0, "")
    return ran.stdout


@pytest.mark.spec("C9")
def test_a_scratchpad_is_shown_as_the_model_reads_it_and_cannot_act_in_a_terminal(home: Home) -> None:
    with Memory.open(home) as memory:
        memory.session("text").scratchpad.update("Mei wants a refund.\n\x1b[2J\u202eof 20 €\n")
        task = memory.session("object", layers=[ScratchpadLayer(schema={"type": "object"})])
        task.scratchpad.update({"goal": "Deploy v2", "steps": ["write tests"], "owner": {"name": "美"}})
        memory.session("fresh").add([user("Hi")])
    text = scratchpad_of("text", home)
    assert text.startswith("Mei wants a refund.\n")
    assert all(line.isprintable() for line in text.split("\n"))
    assert scratchpad_of("object", home) == (
        '{\n  "goal": "Deploy v2",\n  "steps": ["write tests"],\n  "owner": {"name": "美"}\n}\n'
    )
    assert scratchpad_of("fresh", home) == "The scratchpad is empty.\n"


@pytest.mark.spec("C1", "C9")
def test_a_scratchpad_of_the_resource_is_shown_beside_the_sessions_own(home: Home) -> None:
    with Memory.open(home) as memory:
        shared = ScratchpadLayer(scope="resource", schema={"type": "object"})
        memory.session("one", resource="ada", layers=[shared]).scratchpad.update({"city": "Vienna"})
        memory.session("two", resource="ada").scratchpad.update("mine")
    assert scratchpad_of("one", home) == '{\n  "city": "Vienna"\n}\n'
    assert scratchpad_of("two", home) == (
        '-- working-memory of the session\nmine\n-- working-memory of the resource\n{\n  "city": "Vienna"\n}\n'
    )
    assert json.loads(scratchpad_of("two", home, "--json")) == {
        "thread": {"working-memory": "mine"},
        "resource": {"working-memory": {"city": "Vienna"}},
    }
    assert json.loads(scratchpad_of("one", home, "--json"))["thread"] == {}


def test_overview_and_journal_are_shown(used: Home) -> None:
    assert inmind("show", "overview", "support-42", home=used).stdout == "# Mine\n- a fact\n"
    rows = json.loads(inmind("show", "journal", "support-42", "--json", home=used).stdout)
    assert [row["seq"] for row in rows] == list(range(1, len(rows) + 1))
    assert {"id", "at", "kind", "origin", "trust", "sources", "payload"} <= set(rows[0])
    lines = inmind("show", "journal", "support-42", home=used).stdout.splitlines()
    assert len(lines) == len(rows)
    assert any("Add a hero to it" in line for line in lines)


def test_undo_takes_back_the_last_change(used: Home) -> None:
    assert inmind("undo", "support-42", home=used).returncode == 0
    assert inmind("show", "overview", "support-42", home=used).stdout.startswith("# Working memory")


@pytest.fixture
def talked(home: Home) -> Home:
    """A session with turns to spare, a goal with a trick in it, and a rule."""
    with Memory.open(home) as memory:
        said = [user("Move the shop\x1b[2J of Ada."), assistant("Yes."), user("Always answer in one sentence.")]
        memory.session("long", cwd="/website").add([*said, assistant("Yes."), *turns(8, words=40)])
    return home


@pytest.mark.spec("E3")
def test_compact_says_what_it_takes_and_what_it_does_by_default(home: Home) -> None:
    ran = inmind("compact", "--help", home=home)
    assert ran.returncode == 0
    for words in ("conversation|tools|all", "archive|summarize", "--keep-recent", "--archive-to PATH", "--undo"):
        assert words in ran.stdout


@pytest.mark.spec("E3", "E8")
def test_compact_says_what_left_where_it_is_and_where_each_item_stands(talked: Home) -> None:
    ran = inmind("compact", "long", "--keep-recent", "2", "--archive-to", "detail/early.md", home=talked)
    assert (ran.returncode, ran.stderr) == (0, "")
    first, *items = ran.stdout.splitlines()
    assert first.startswith("Compacted 16 messages, ")
    assert "All of it is in detail/early.md." in first
    assert items == [
        "- goal, in memory: Move the shop⟨U+001B⟩[2J of Ada.",
        "- rule, in memory: Always answer in one sentence.",
        "- request, in the conversation: and now",
    ]
    with Memory.open(talked) as memory:
        session = memory.session("long")
        assert "Move the shop" in session.read("detail/early.md")
        assert len(session.state.history.sent) == 6


@pytest.mark.spec("E3", "E7", "E8")
def test_compact_has_a_json_form(talked: Home) -> None:
    ran = inmind("compact", "long", "--target", "conversation", "--strategy", "summarize", "--json", home=talked)
    shown = json.loads(ran.stdout)
    assert (shown["reason"], shown["messages"], shown["left_out"]) == ("asked by the host", 10, [])
    assert shown["tokens"] > 0
    assert shown["items"][1] == {"kind": "rule", "text": "Always answer in one sentence.", "location": "memory"}
    with Memory.open(talked) as memory:
        session = memory.session("long")
        assert shown["version"] == session.state.seq
        assert all(path in session.documents() for path in shown["archives"])
        assert "Summary:" in session.state.history.sent.wires[0]["content"]


@pytest.mark.spec("E8")
def test_what_there_was_no_room_for_is_said_too(home: Home) -> None:
    with Memory.open(home) as memory:
        rules = [user(f"Always write the letter {'very ' * 40}{name} in capitals.") for name in range(200)]
        said = [message for rule in rules for message in (rule, assistant("Yes."))]
        memory.session("strict").add([user("hello"), assistant("hello"), *said, user("and now")])
    ran = inmind("compact", "strict", "--keep-recent", "0", home=home)
    gone = [line for line in ran.stdout.splitlines() if line.startswith("- rule, only in the archive: ")]
    assert 0 < len(gone) < 200
    inmind("compact", "strict", "--undo", home=home)
    shown = json.loads(inmind("compact", "strict", "--keep-recent", "0", "--json", home=home).stdout)
    assert [f"- rule, only in the archive: {item['text']}" for item in shown["left_out"]] == gone


@pytest.mark.spec("E3")
def test_nothing_to_compact_is_said_and_is_no_failure(used: Home) -> None:
    ran = inmind("compact", "support-42", home=used)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout == "Nothing was compacted: no message is old or large enough to archive.\n"
    shown = json.loads(inmind("compact", "support-42", "--json", home=used).stdout)
    assert (shown["messages"], shown["archives"], shown["items"]) == (0, [], [])


@pytest.mark.spec("E9")
def test_a_compaction_is_taken_back_by_its_own_option_and_by_undo(talked: Home) -> None:
    def sent() -> int:
        with Memory.open(talked) as memory:
            return len(memory.session("long").state.history.sent)

    whole = sent()
    inmind("compact", "long", home=talked)
    assert sent() < whole
    ran = inmind("compact", "long", "--undo", home=talked)
    assert ran.returncode == 0
    assert re.fullmatch(
        r"Restored to the prompt: 10 messages, \d+ tokens, of archive/001-move-the-shop-.*\.md \(removed\)\.\n",
        ran.stdout,
    )
    assert sent() == whole
    inmind("compact", "long", "--archive-to", "detail/early.md", home=talked)
    shown = json.loads(inmind("compact", "long", "--undo", "--json", home=talked).stdout)
    assert 0 < shown["event"] < shown["version"]
    assert (shown["messages"], shown["removed"], shown["stay"]) == (10, ["detail/early.md"], [])
    inmind("compact", "long", home=talked)
    shown = json.loads(inmind("undo", "long", "--json", home=talked).stdout)
    (again,) = shown["sent_again"]
    assert (again["messages"], again["stay"], shown["as_before"]) == (10, [], ["overview.md"])
    assert 0 < shown["reverted_to"] < again["event"] < shown["version"]
    inmind("compact", "long", home=talked)
    first, *told = inmind("undo", "long", home=talked).stdout.splitlines()
    assert first.startswith("Undone: events ")
    assert told == [ran.stdout.strip(), "Restored: overview.md."]
    assert sent() == whole


@pytest.mark.spec("A4")
def test_undo_says_what_is_no_longer_there_and_what_is_archived_again(talked: Home) -> None:
    inmind("compact", "long", "--archive-to", "detail/early.md", home=talked)
    inmind("compact", "long", "--undo", home=talked)
    assert "Archived again: 10 messages, in detail/early.md.\n" in inmind("undo", "long", home=talked).stdout
    with Memory.open(talked) as memory:
        session = memory.session("long")
        session.write("detail/plan.md", "first the shelves")
        session.add([assistant("Yes."), user("And then?")])
    assert "Removed from the conversation: 2 messages.\n" in inmind("undo", "long", home=talked).stdout
    assert "detail/plan.md (removed)" in inmind("undo", "long", home=talked).stdout


@pytest.mark.spec("E8")
def test_what_must_survive_is_shown_with_where_it_stands(talked: Home, used: Home) -> None:
    said = inmind("show", "retained", "long", home=talked).stdout
    assert said.splitlines() == [
        "- goal, in the conversation: Move the shop⟨U+001B⟩[2J of Ada.",
        "- rule, in the conversation: Always answer in one sentence.",
    ]
    inmind("compact", "long", home=talked)
    assert inmind("show", "retained", "long", home=talked).stdout == said.replace("the conversation", "memory")
    shown = json.loads(inmind("show", "retained", "long", "--json", home=talked).stdout)
    assert shown[1] == {"kind": "rule", "text": "Always answer in one sentence.", "location": "memory"}
    with Memory.open(used) as memory:
        memory.session("new")
    assert inmind("show", "retained", "new", home=used).stdout.startswith("No retained items")


@pytest.mark.spec("E5", "E8")
def test_a_prompt_is_shown_with_what_was_compacted_for_it(home: Home) -> None:
    with Memory.open(home) as memory:
        session = memory.session("long", window=6_000, reserve=500)
        session.add([user("Move the shop."), assistant("Yes."), *turns(20, words=120)])
        session.prepare()
    text = inmind("show", "prompt", "long", "--call", "1", home=home).stdout
    told = text.partition("\nCompacted before this call: the window was full\n")[2].removesuffix("\n")
    assert told.startswith("Compacted ")
    assert told.endswith("- goal, in memory: Move the shop.\n- request, in the conversation: and now")
    (shown,) = json.loads(inmind("show", "prompt", "long", "--call", "1", "--json", home=home).stdout)["compactions"]
    assert (shown["reason"], shown["items"][0]["kind"]) == ("the window was full", "goal")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["compact", "nobody"], "NOT_FOUND"),
        (["compact", "support-42", "--undo"], "NOT_FOUND"),
        (["compact", "support-42", "--undo", "--keep-recent", "5"], "INVALID_INPUT: --keep-recent"),
        (["compact", "support-42", "--target", "everything"], "INVALID_INPUT"),
        (["compact", "support-42", "--strategy", "forget"], "INVALID_INPUT"),
        (["compact", "support-42", "--keep-recent", "-1"], "INVALID_INPUT"),
        (["compact", "support-42", "--archive-to", "../x.md"], "INVALID_PATH"),
        (["show", "overview", "nobody"], "NOT_FOUND"),
        (["show", "scratchpad", "nobody"], "NOT_FOUND"),
        (["show", "prompt", "support-42", "--call", "99"], "NOT_FOUND"),
    ],
)
def test_an_error_is_one_line_and_an_exit_code(used: Home, arguments: list[str], said: str) -> None:
    ran = inmind(*arguments, home=used)
    assert ran.returncode == fitting(ran.stderr)
    assert ran.stderr.startswith(f"inmind: {said}: ")
    assert ran.stderr.count("\n") == 1
    assert "Traceback" not in ran.stderr


def test_looking_at_a_session_does_not_begin_it(home: Home) -> None:
    inmind("show", "overview", "ghost", home=home)
    with Memory.open(home) as memory:
        assert memory.sessions() == []


def test_a_closed_pipe_is_left_quietly() -> None:
    command = f"{sys.executable} -c 'from inmind.apps.cli import main; main()' demo | head -1"
    ran = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=60, check=False)
    assert "Traceback" not in ran.stderr
    assert "Exception" not in ran.stderr


def test_without_the_extra_the_command_says_what_to_install() -> None:
    code = "import sys; sys.modules['typer'] = None; from inmind.apps.cli import main; main()"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert ran.returncode == 1
    assert 'pip install "inmind[cli]"' in ran.stderr


def test_a_part_of_a_library_that_is_missing_is_not_taken_for_an_extra_that_is() -> None:
    code = "import sys; sys.modules['typer._click.shell_completion'] = None; from inmind.apps.cli import main; main()"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert ran.returncode == 1
    assert "typer._click.shell_completion" in ran.stderr
    assert "pip install" not in ran.stderr

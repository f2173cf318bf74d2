"""The command line, in a pipe and on a terminal."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from builders import Home, assistant, page_of, turns, user
from terminal import exit_code_for, inmind, run_in_process, run_on_terminal

from inmind import Memory, Trust
from inmind.layers import ScratchpadLayer
from inmind.types import EntityRules


@pytest.fixture
def sample_home(home: Home) -> Home:
    with Memory.open(home) as memory:
        session = memory.session("support-42", resource="ada", cwd="/website")
        session.prepare([user("Create a page"), assistant("Done\x1b[2J"), user("Add a hero to it")])
        session.write("overview.md", "# Mine\n- a fact\n")
    return home


@pytest.mark.spec("G2")
def test_a_note_of_the_command_line_has_the_trust_of_a_person(sample_home: Home) -> None:
    ran = inmind("note", "Ada prefers tabs", "--importance", "0.9", "--resource", "ada", home=sample_home)
    assert re.fullmatch(r"Saved at \d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ as resource/ada#1\.\n", ran.stdout), ran.stderr
    given = ("note", "-", "--session", "support-42", "--kind", "fact", "--json")
    result = json.loads(inmind(*given, home=sample_home, stdin="and coffee\nand tea\n").stdout)
    assert (result["id"], result["resource"]) == ("resource/ada#2", "ada")
    with Memory.open(sample_home) as memory:
        assert page_of(memory, "memory/scratch.md").endswith("(importance: 0.7) and coffee\n  and tea\n")
        resource_state = memory.session("support-42").resource_state
    assert resource_state.documents.by_path["memory/scratch.md"].trust is Trust.PERSON


@pytest.mark.spec("G2", "J3")
@pytest.mark.parametrize(
    ("arguments", "message"),
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
def test_an_invalid_note_is_refused_in_one_line(sample_home: Home, arguments: list[str], message: str) -> None:
    ran = inmind(*arguments, home=sample_home)
    assert (ran.returncode, ran.stderr.count("\n")) == (exit_code_for(ran.stderr), 1)
    assert message in ran.stderr
    with Memory.open(sample_home) as memory:
        assert "memory/scratch.md" not in memory.resource("ada").state.documents.by_path


@pytest.mark.embedded
@pytest.mark.spec("G2", "I2")
def test_a_note_for_a_resource_needs_no_home_and_no_session(home: Path) -> None:
    ran = run_in_process("note", "Ada prefers tabs", "--resource", "ada", home=home)
    assert (ran.exit_code, ran.stderr) == (0, "")
    assert ran.stdout.endswith(" as resource/ada#1.\n")
    assert (home / "resources/ada/memory/scratch.md").read_text().endswith("(importance: 0.7) Ada prefers tabs\n")
    with Memory.open(home) as memory:
        assert (memory.resources(), memory.sessions()) == (["ada"], [])
        assert "Ada prefers tabs" in str(memory.session("first", resource="ada").prepare([user("Hi")]).messages)


@pytest.mark.spec("H5")
def test_upkeep_prints_whether_it_finished(sample_home: Home) -> None:
    with Memory.open(sample_home) as memory:
        for text in ("User lives in Berlin", "User lives in Hamburg"):
            memory.session("support-42").note(text)
    assert inmind("upkeep", home=sample_home).stdout.endswith("Upkeep finished.\n")
    with Memory.open(sample_home) as memory:
        hits = memory.search("lives in", sources=["memory"])
        memory.resource("ben").note("One more resource for upkeep")
    assert [bool(hit.crystal.superseded_by) for hit in hits] == [False, True]
    assert json.loads(inmind("upkeep", "--seconds", "60", "--json", home=sample_home).stdout)["finished"] is True
    assert (
        inmind("upkeep", "--seconds", "0", home=sample_home).stdout == "Stopped after 0 s; the next upkeep continues.\n"
    )
    refused = inmind("upkeep", "--seconds", "-1", home=sample_home)
    assert (refused.returncode, refused.stderr.count("\n")) == (exit_code_for(refused.stderr), 1)


def test_sessions_are_listed(sample_home: Home) -> None:
    ran = inmind("sessions", home=sample_home)
    assert "support-42" in ran.stdout
    (row,) = json.loads(inmind("sessions", "--json", home=sample_home).stdout)
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
def test_long_sessions_and_events_take_one_line_each(home: Home) -> None:
    with Memory.open(home) as memory:
        for id in ("support-41", "support-42"):
            session = memory.session(id, resource="ada-lovelace", cwd="/home/ada/work/a-website-with-a-long-name")
            session.add([user("Create a page about every product of the shop. " + "And say so. " * 500)])
    listed = run_on_terminal("sessions", home=home)
    assert len(listed) == 3
    assert all("support-4" in line and " Create a page ab" in line and "…" in line for line in listed[1:])
    events = run_on_terminal("show", "journal", "support-41", home=home)
    assert [int(line.split()[0]) for line in events] == list(range(1, len(events) + 1))
    assert all(len(line) <= 80 for line in (*listed, *events))
    piped = inmind("show", "journal", "support-41", home=home).stdout.splitlines()
    assert (len(piped), max(map(len, piped))) == (len(events), 200)
    assert len(inmind("show", "journal", "support-41", "--json", home=home).stdout) > 6_000


def test_a_filter_without_matches_is_reported_and_an_invalid_one_fails(sample_home: Home) -> None:
    assert inmind("sessions", "--here", home=sample_home).stdout.startswith("No matching sessions in ")
    ran = inmind("sessions", "--resource", " ", home=sample_home)
    assert (ran.returncode, ran.stdout) == (exit_code_for(ran.stderr), "")
    assert ran.stderr.startswith("inmind: INVALID_INPUT: --resource: ")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["sessions", "--resource", "adda"], "no resource 'adda'"),
        (["search", "page", "--resource", "adda"], "no resource 'adda'"),
        (["search", "page", "--session", "support-24"], "no session 'support-24'"),
    ],
)
def test_a_mistyped_name_is_an_error(sample_home: Home, arguments: list[str], message: str) -> None:
    ran = run_in_process(*arguments, home=sample_home)
    assert (ran.exit_code, ran.stdout) == (3, "")
    assert ran.stderr.startswith(f"inmind: NOT_FOUND: {message}: ")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["sessions", "--resource", "adda"], "no resource 'adda': did you mean 'ada'? "),
        (["affect", "Ada"], "no resource 'Ada': did you mean 'ada'? "),
        (["show", "prompt", "support42"], "no session 'support42': did you mean 'support-42'? "),
        (["show", "state", "suport-42"], "no resource or session 'suport-42': did you mean 'support-42'? "),
        (["show", "prompt", "zzz"], "no session 'zzz': "),
    ],
)
def test_a_mistyped_name_suggests_the_nearest_one(sample_home: Home, arguments: list[str], message: str) -> None:
    ran = run_in_process(*arguments, home=sample_home)
    assert (ran.exit_code, ran.stdout) == (3, "")
    listed = "there is ada" if message.startswith("no resource '") else "`inmind sessions` lists all"
    assert ran.stderr == f"inmind: NOT_FOUND: {message}{listed}\n"


def test_a_session_of_another_resource_is_an_error(sample_home: Home) -> None:
    with Memory.open(sample_home) as memory:
        memory.session("other", resource="bob").add([user("Hi")])
    assert (
        run_in_process("search", "page", "--session", "support-42", "--resource", "ada", home=sample_home).exit_code
        == 0
    )
    ran = run_in_process("search", "page", "--session", "support-42", "--resource", "bob", home=sample_home)
    assert (ran.exit_code, ran.stdout) == (2, "")
    assert ran.stderr.endswith(": --resource: expected 'ada', the owner of session 'support-42', got 'bob'\n")


def test_a_default_is_not_reported_as_given(sample_home: Home) -> None:
    ran = run_in_process("export", "-", "--json", home=sample_home)
    assert (
        ran.stderr == "inmind: INVALID_INPUT: --json: expected a FILE: it cannot be combined with a bundle on stdout\n"
    )


@pytest.mark.spec("I2")
def test_a_table_in_a_pipe_is_as_wide_as_its_content(sample_home: Home) -> None:
    head, row = run_in_process("sessions", home=sample_home).stdout.splitlines()
    assert re.fullmatch(r"session    title         resource msgs calls last used \(UTC\)  working directory", head)
    assert re.fullmatch(r"support-42 Create a page ada      3    1     \d{4}-\d\d-\d\d \d\d:\d\d /website", row)
    rendered = run_in_process("show", "prompt", "support-42", home=sample_home).stdout.split("\n── ")[0]
    assert "why\n" in rendered
    with Memory.open(sample_home) as memory:
        memory.session("long", resource="ada", cwd="/website").add([user("Say so. " * 100)])
        memory.session("deep", resource="ada", cwd=f"/{'website/' * 40}").add([user("Say so. " * 100)])
    cut = run_in_process("sessions", home=sample_home).stdout
    assert max(map(len, cut.splitlines())) == 200
    assert all(line == line.rstrip() for line in (*rendered.splitlines(), *cut.splitlines()))
    assert "support-42 Create a page " in cut


def test_sessions_without_a_resource_are_found_by_their_listed_name(home: Home) -> None:
    with Memory.open(home) as memory:
        memory.session("anonymous").add([user("Hi")])
    assert "anonymous" in run_in_process("sessions", "--resource", "default", home=home).stdout
    assert run_in_process("search", "Hi", "--resource", "default", home=home).exit_code == 0


@pytest.mark.embedded
@pytest.mark.spec("I2")
def test_the_first_search_reports_indexing_on_a_terminal_and_not_in_a_pipe(sample_home: Path) -> None:
    assert run_in_process("search", "page", home=sample_home).stderr == ""
    assert not any("indexing" in line for line in run_on_terminal("search", "page", home=sample_home, terminal="xterm"))
    (sample_home / "index.db").unlink()
    assert any("indexing" in line for line in run_on_terminal("search", "page", home=sample_home, terminal="xterm"))


def test_a_folder_with_a_line_break_in_its_name_takes_one_line(home: Home) -> None:
    with Memory.open(home) as memory:
        memory.session("one", cwd="/web\nsite").add([user("Hi")])
    assert len(run_in_process("sessions", home=home).stdout.splitlines()) == 2


@pytest.mark.embedded
def test_a_missing_home_is_not_created_and_the_error_names_the_demo(home: Path) -> None:
    ran = inmind("sessions", home=home)
    assert (ran.returncode, home.exists()) == (3, False)
    assert "inmind demo" in ran.stderr


def test_an_empty_home_has_no_sessions(home: Home) -> None:
    Memory.open(home).close()
    assert inmind("sessions", home=home).stdout.startswith("No sessions in ")


def test_the_version_is_printed() -> None:
    assert inmind("--version").stdout.startswith("inmind 0.")


def test_the_prompt_of_a_call_is_shown_with_its_reasons(sample_home: Home) -> None:
    ran = inmind("show", "prompt", "support-42", "--call", "1", home=sample_home)
    assert ran.stdout.startswith("Call 1, for openai: ")
    assert re.search(r"\nT tools +\d+ +\d+% new +tools of the host and of layers", ran.stdout)
    assert re.search(r"── H history, user ─+\nAdd a hero to it\n\n── M context_meta ─+\n<context_meta>", ran.stdout)
    assert "\x1b" not in ran.stdout
    output = json.loads(inmind("show", "prompt", "support-42", "--call", "1", "--json", home=sample_home).stdout)
    with Memory.open(sample_home) as memory:
        prompt = memory.session("support-42").prompt(1)
    assert output["request"] == prompt.request
    assert (output["tokens"], output["tokens_used"]) == (dict(prompt.report.tokens), prompt.report.tokens_used)


@pytest.mark.spec("I2")
@pytest.mark.parametrize("format", ["openai", "responses", "anthropic"])
def test_the_next_prompt_is_shown_exactly_and_nothing_is_stored(home: Home, format: str) -> None:
    with Memory.open(home) as memory:
        session = memory.session("s", resource="ada", window=9_000, reserve=700, memory_tools=False)
        session.prepare([user("Create a page")], system="You build pages.", format=format)
        session.add([assistant("Done"), user("Add a hero to it")], format=format)
        session.note("Ada prefers tabs")
        before = session.state.seq
    ran = run_in_process("show", "prompt", "s", home=home)
    assert ran.stdout.startswith(f"Next call, for {format}: ")
    assert "Add a hero to it" in ran.stdout
    output = json.loads(run_in_process("show", "prompt", "s", "--json", home=home).stdout)
    with Memory.open(home) as memory:
        session = memory.session("s", window=9_000, reserve=700, memory_tools=False)
        assert session.state.seq == before
        prompt = session.prepare(format=format)
    assert (output["call"], output["sent"], output["request"]) == (2, False, prompt.request)
    assert output["tokens"] == dict(prompt.report.tokens)


def test_a_session_without_calls_shows_its_first_prompt(home: Home) -> None:
    with Memory.open(home) as memory:
        memory.session("fresh").add([user("Hi")])
    output = json.loads(run_in_process("show", "prompt", "fresh", "--json", home=home).stdout)
    assert (output["call"], output["sent"]) == (1, False)
    ran = run_in_process("show", "prompt", "fresh", "--call", "1", home=home)
    assert ran.stderr == "inmind: NOT_FOUND: no call 1: this session has not made one yet\n"


def test_entities_are_shown_with_pins_and_deletions_and_are_escaped(home: Home) -> None:
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
def test_a_scratchpad_is_shown_as_the_model_reads_it_and_escaped(home: Home) -> None:
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
def test_scratchpads_of_the_session_and_the_resource_are_shown_together(home: Home) -> None:
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


def test_overview_and_journal_are_shown(sample_home: Home) -> None:
    assert inmind("show", "overview", "support-42", home=sample_home).stdout == "# Mine\n- a fact\n"
    rows = json.loads(inmind("show", "journal", "support-42", "--json", home=sample_home).stdout)
    assert [row["seq"] for row in rows] == list(range(1, len(rows) + 1))
    assert {"id", "at", "kind", "origin", "trust", "sources", "payload"} <= set(rows[0])
    lines = inmind("show", "journal", "support-42", home=sample_home).stdout.splitlines()
    assert len(lines) == len(rows)
    assert any("Add a hero to it" in line for line in lines)


def test_undo_reverts_the_last_change(sample_home: Home) -> None:
    assert inmind("undo", "support-42", home=sample_home).returncode == 0
    assert inmind("show", "overview", "support-42", home=sample_home).stdout.startswith("# Working memory")


@pytest.fixture
def long_session(home: Home) -> Home:
    """A home with a long session: a goal with a control character, a rule and more turns."""
    with Memory.open(home) as memory:
        messages = [user("Move the shop\x1b[2J of Ada."), assistant("Yes."), user("Always answer in one sentence.")]
        memory.session("long", cwd="/website").add([*messages, assistant("Yes."), *turns(8, words=80)])
    return home


@pytest.mark.spec("E3")
def test_the_help_of_compact_lists_its_options(home: Home) -> None:
    ran = inmind("compact", "--help", home=home)
    assert ran.returncode == 0
    for words in ("conversation|tools|all", "archive|summarize", "--keep-recent", "--archive-to PATH", "--undo"):
        assert words in ran.stdout


@pytest.mark.spec("E3", "E8")
def test_compact_prints_the_archive_and_where_each_retained_item_is(long_session: Home) -> None:
    ran = inmind("compact", "long", "--keep-recent", "2", "--archive-to", "detail/early.md", home=long_session)
    assert (ran.returncode, ran.stderr) == (0, "")
    first, *items = ran.stdout.splitlines()
    assert first.startswith("Compacted 16 messages, ")
    assert "All of it is in detail/early.md." in first
    assert items == [
        "- goal, in memory: Move the shop⟨U+001B⟩[2J of Ada.",
        "- rule, in memory: Always answer in one sentence.",
        "- request, in the conversation: and now",
    ]
    with Memory.open(long_session) as memory:
        session = memory.session("long")
        assert "Move the shop" in session.read("detail/early.md")
        assert len(session.state.history.sent) == 6


@pytest.mark.spec("E3", "E7", "E8")
def test_compact_has_a_json_form(long_session: Home) -> None:
    ran = inmind("compact", "long", "--target", "conversation", "--strategy", "summarize", "--json", home=long_session)
    report = json.loads(ran.stdout)
    assert (report["reason"], report["messages"], report["left_out"]) == ("asked by the host", 10, [])
    assert 0 < report["tokens"] < 1_000
    assert report["items"][1] == {"kind": "rule", "text": "Always answer in one sentence.", "location": "memory"}
    with Memory.open(long_session) as memory:
        session = memory.session("long")
        assert report["version"] == session.state.seq
        assert all(path in session.documents() for path in report["archives"])
        stub = session.state.history.sent.wires[0]["content"]
        assert stub.startswith("<compacted_history>\n10 messages, archived: archive/001:")
        assert "\nAsked:\n- " in stub


@pytest.mark.spec("E8")
def test_compact_prints_items_without_room(home: Home) -> None:
    with Memory.open(home) as memory:
        rules = [user(f"Always write the letter {'very ' * 40}{name} in capitals.") for name in range(200)]
        messages = [message for rule in rules for message in (rule, assistant("Yes."))]
        memory.session("strict").add([user("hello"), assistant("hello"), *messages, user("and now")])
    ran = inmind("compact", "strict", "--keep-recent", "0", home=home)
    dropped = [line for line in ran.stdout.splitlines() if line.startswith("- rule, only in the archive: ")]
    assert 0 < len(dropped) < 200
    inmind("compact", "strict", "--undo", home=home)
    report = json.loads(inmind("compact", "strict", "--keep-recent", "0", "--json", home=home).stdout)
    assert [f"- rule, only in the archive: {item['text']}" for item in report["left_out"]] == dropped


@pytest.mark.spec("E3")
def test_nothing_to_compact_is_reported_and_succeeds(sample_home: Home) -> None:
    ran = inmind("compact", "support-42", home=sample_home)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout == "Nothing was compacted: no message is old or large enough to archive.\n"
    report = json.loads(inmind("compact", "support-42", "--json", home=sample_home).stdout)
    assert (report["messages"], report["archives"], report["items"]) == (0, [], [])


@pytest.mark.spec("E9")
def test_a_compaction_is_reverted_by_compact_undo_and_by_undo(long_session: Home) -> None:
    def sent() -> int:
        with Memory.open(long_session) as memory:
            return len(memory.session("long").state.history.sent)

    whole = sent()
    inmind("compact", "long", home=long_session)
    assert sent() < whole
    ran = inmind("compact", "long", "--undo", home=long_session)
    assert ran.returncode == 0
    assert re.fullmatch(
        r"Restored to the prompt: 10 messages, \d+ tokens, of archive/001-move-the-shop-.*\.md \(removed\)\.\n",
        ran.stdout,
    )
    assert sent() == whole
    inmind("compact", "long", "--archive-to", "detail/early.md", home=long_session)
    result = json.loads(inmind("compact", "long", "--undo", "--json", home=long_session).stdout)
    assert 0 < result["event"] < result["version"]
    assert (result["messages"], result["removed"], result["stay"]) == (10, ["detail/early.md"], [])
    inmind("compact", "long", home=long_session)
    result = json.loads(inmind("undo", "long", "--json", home=long_session).stdout)
    (again,) = result["sent_again"]
    assert (again["messages"], again["stay"], result["as_before"]) == (10, [], ["overview.md"])
    assert 0 < result["reverted_to"] < again["event"] < result["version"]
    inmind("compact", "long", home=long_session)
    first, *lines = inmind("undo", "long", home=long_session).stdout.splitlines()
    assert first.startswith("Undone: events ")
    assert lines == [ran.stdout.strip(), "Restored: overview.md."]
    assert sent() == whole


@pytest.mark.spec("A4")
def test_undo_prints_removed_messages_and_pages_and_restored_archives(long_session: Home) -> None:
    inmind("compact", "long", "--archive-to", "detail/early.md", home=long_session)
    inmind("compact", "long", "--undo", home=long_session)
    assert "Archived again: 10 messages, in detail/early.md.\n" in inmind("undo", "long", home=long_session).stdout
    with Memory.open(long_session) as memory:
        session = memory.session("long")
        session.write("detail/plan.md", "first the shelves")
        session.add([assistant("Yes."), user("And then?")])
    assert "Removed from the conversation: 2 messages.\n" in inmind("undo", "long", home=long_session).stdout
    assert "detail/plan.md (removed)" in inmind("undo", "long", home=long_session).stdout


@pytest.mark.spec("E8")
def test_retained_items_are_shown_with_where_they_are(long_session: Home, sample_home: Home) -> None:
    text = inmind("show", "retained", "long", home=long_session).stdout
    assert text.splitlines() == [
        "- goal, in the conversation: Move the shop⟨U+001B⟩[2J of Ada.",
        "- rule, in the conversation: Always answer in one sentence.",
    ]
    inmind("compact", "long", home=long_session)
    assert inmind("show", "retained", "long", home=long_session).stdout == text.replace("the conversation", "memory")
    items = json.loads(inmind("show", "retained", "long", "--json", home=long_session).stdout)
    assert items[1] == {"kind": "rule", "text": "Always answer in one sentence.", "location": "memory"}
    with Memory.open(sample_home) as memory:
        memory.session("new")
    assert inmind("show", "retained", "new", home=sample_home).stdout.startswith("No retained items")


@pytest.mark.spec("E5", "E8")
def test_a_prompt_is_shown_with_its_compaction(home: Home) -> None:
    with Memory.open(home) as memory:
        session = memory.session("long", window=6_000, reserve=500)
        session.add([user("Move the shop."), assistant("Yes."), *turns(20, words=120)])
        session.prepare()
    text = inmind("show", "prompt", "long", "--call", "1", home=home).stdout
    summary = text.partition("\nCompacted before this call: the window was full\n")[2].removesuffix("\n")
    assert summary.startswith("Compacted ")
    assert summary.endswith("- goal, in memory: Move the shop.\n- request, in the conversation: and now")
    (compaction,) = json.loads(inmind("show", "prompt", "long", "--call", "1", "--json", home=home).stdout)[
        "compactions"
    ]
    assert (compaction["reason"], compaction["items"][0]["kind"]) == ("the window was full", "goal")


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["compact", "missing"], "NOT_FOUND"),
        (["compact", "support-42", "--undo"], "NOT_FOUND"),
        (["compact", "support-42", "--undo", "--keep-recent", "5"], "INVALID_INPUT: --keep-recent"),
        (["compact", "support-42", "--target", "everything"], "INVALID_INPUT"),
        (["compact", "support-42", "--strategy", "forget"], "INVALID_INPUT"),
        (["compact", "support-42", "--keep-recent", "-1"], "INVALID_INPUT"),
        (["compact", "support-42", "--archive-to", "../x.md"], "INVALID_PATH"),
        (["show", "overview", "missing"], "NOT_FOUND"),
        (["show", "scratchpad", "missing"], "NOT_FOUND"),
        (["show", "prompt", "support-42", "--call", "99"], "NOT_FOUND"),
    ],
)
def test_an_error_is_one_line_and_an_exit_code(sample_home: Home, arguments: list[str], code: str) -> None:
    ran = inmind(*arguments, home=sample_home)
    assert ran.returncode == exit_code_for(ran.stderr)
    assert ran.stderr.startswith(f"inmind: {code}: ")
    assert ran.stderr.count("\n") == 1
    assert "Traceback" not in ran.stderr


def test_showing_a_session_does_not_create_it(home: Home) -> None:
    inmind("show", "overview", "ghost", home=home)
    with Memory.open(home) as memory:
        assert memory.sessions() == []


def test_a_closed_pipe_prints_no_traceback() -> None:
    command = f"{sys.executable} -c 'from inmind.apps.cli import main; main()' demo | head -1"
    ran = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=60, check=False)
    assert "Traceback" not in ran.stderr
    assert "Exception" not in ran.stderr


def test_without_the_extra_the_command_names_the_package_to_install() -> None:
    code = "import sys; sys.modules['click'] = None; from inmind.apps.cli import main; main()"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert ran.returncode == 1
    assert 'pip install "inmind[cli]"' in ran.stderr


def test_a_broken_library_is_not_reported_as_a_missing_extra() -> None:
    code = "import sys; sys.modules['click.shell_completion'] = None; from inmind.apps.cli import main; main()"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert ran.returncode == 1
    assert "click.shell_completion" in ran.stderr
    assert "pip install" not in ran.stderr

"""The pages below docs/ work as written, cover every public name, and build a complete site."""

from __future__ import annotations

import dataclasses
import json
import re
import runpy
import sqlite3
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from event_loop import ASYNC_CLASSES
from pages import PROJECT, PageFolders, complaints, steps
from provider import Provider, ScriptedReply, a_tool_call, reply_with

import inmind
from docs.building.commands import options_by_path
from docs.building.names import PAGES, async_page, public_path, undocumented
from docs.building.site import SITE, build, external_fetches, missing_pages, staged_pages, strip_for_site
from docs.building.source import HOST_OBJECTS, members_of, public
from inmind import layers, types
from inmind.apps.cli.exit_codes import EXIT_CODE_HELP, EXIT_CODES
from inmind.core.settings import Settings
from inmind.errors import InmindError
from inmind.session.tools.registry import tool_schemas

DOCS = PROJECT / "docs"
EXECUTED_PAGES = sorted(path for path in DOCS.rglob("*.md") if any(True for _ in steps(path.read_text("utf-8"))))

# Answers of the model, in order, for each page that calls one.
SCRIPTS: Mapping[str, Callable[[], list[ScriptedReply]]] = {
    "how-to/add-memory-to-my-agent.md": lambda: [
        reply_with("", a_tool_call("working_memory_note", {"note": "Ada prefers short answers.", "importance": 0.8})),
        reply_with("Build 118 runs on staging."),
        reply_with("Not yet: staging runs build 118 since this morning."),
        reply_with("", a_tool_call("get_order", {"order_id": "W-118"})),
        reply_with("It is on its way."),
    ],
    "how-to/chat.md": lambda: [reply_with("Hello, Ada."), reply_with("On its way.")],
    "tutorial.md": lambda: [reply_with("You want short sentences, and your site goes live on May 3.")],
}


# `make test` follows the tutorial and the pages of each subject; `make test-all` follows the how-to pages as well.
@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, marks=pytest.mark.exhaustive if page.parent.name == "how-to" else ())
        for page in EXECUTED_PAGES
    ],
    ids=[str(page.relative_to(DOCS)) for page in EXECUTED_PAGES],
)
def test_a_page_does_what_it_says(page: Path, tmp_path: Path) -> None:
    name = str(page.relative_to(DOCS))
    with Provider() as provider:
        provider.will(*SCRIPTS.get(name, list[ScriptedReply])())
        place = PageFolders.under(
            tmp_path,
            OPENAI_BASE_URL=provider.openai,
            OPENAI_API_KEY="none",
            ANTHROPIC_BASE_URL=provider.anthropic,
            ANTHROPIC_API_KEY="none",
        )
        assert complaints(page.read_text("utf-8"), place, page=name) == []
        assert (provider.unused, provider.failures) == (0, [])


# Users keep the other library for a while, so an import must also take later changes.

Importer = Callable[[str], Callable[[], str]]


@pytest.fixture
def importer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Importer:
    """Prepare everything before the first command of a page; return a call that runs it and returns its output."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("INMIND_HOME", str(tmp_path / "home"))

    def prepare(name: str) -> Callable[[], str]:
        for step in steps(page(name)):
            if step.kind == "file":
                Path(step.name).write_text(step.code, "utf-8")
            elif step.kind == "python":
                exec(compile(step.code, name, "exec"), {})  # noqa: S102 -- a page of this repository
            elif step.kind == "sh":
                return partial(run, step.code.split()[1:])
        raise AssertionError(f"{name} has no command")

    def run(arguments: Sequence[str]) -> str:
        monkeypatch.setattr(sys, "argv", arguments)
        runpy.run_path(arguments[0])
        return capsys.readouterr().out

    return prepare


def test_a_later_mem0_update_is_imported_as_a_newer_note(importer: Importer) -> None:
    run_import = importer("how-to/from-mem0.md")
    assert run_import() == "3 of 3 notes are new\n"
    (short, deadline), at = json_in("mem0.json")["results"], "2026-03-08T09:00:00.000000+00:00"
    short["metadata"] = {"category": "fact"}
    updated = {**deadline, "memory": "The deadline of the shop is April 9", "updated_at": at}
    not_in_the_history = {**short, "id": "3c", "memory": "Sells tea"}
    Path("mem0.json").write_text(json.dumps({"results": [short, updated, not_in_the_history]}))
    with sqlite3.connect("history.db") as database:
        row = (deadline["memory"], updated["memory"], "UPDATE", deadline["created_at"], at, 0, None, "user")
        database.execute(f"INSERT INTO history VALUES ({', '.join('?' * 10)})", ("h3", deadline["id"], *row))
    database.close()
    assert run_import() == "2 of 5 notes are new\n"
    assert run_import() == "0 of 5 notes are new\n"
    with inmind.Memory.open() as memory:
        memory.resource("ada").consolidate()
        crystals = [hit.crystal for hit in memory.resource("ada").search("deadline of the shop", limit=3)]
        assert [crystal.text[-8:] for crystal in crystals] == [" April 9", " April 2", "March 20"]
        assert [f"{crystal.valid_to:%m-%d}" if crystal.valid_to else "" for crystal in crystals] == [
            "",
            "03-08",
            "03-01",
        ]


def test_a_langgraph_thread_continues_and_a_changed_item_is_a_newer_note(importer: Importer) -> None:
    run_import = importer("how-to/from-langgraph.md")
    assert run_import().startswith("support-7: 4 messages\n")
    thread = json_in("threads.jsonl")
    thread["messages"][0]["content"] += " (edited)"
    thread["messages"][1]["created_at"] = "2026-03-03T10:00:00+00:00"  # earlier checkpoints were pruned
    thread["messages"].append(
        {"role": "user", "content": "Send it.", "id": "6a.0", "created_at": "2026-03-03T11:00:00"}
    )
    Path("threads.jsonl").write_text(json.dumps(thread))
    put = "UPDATE store SET value = ?, updated_at = ? WHERE key = 'm1'"
    for text, day in (("Ada prefers spaces.", "02"), ("Ada prefers tabs.", "04"), ("Ada prefers spaces.", "06")):
        with sqlite3.connect("store.db") as database:
            database.execute(put, (json.dumps({"text": text, "kind": "preference"}), f"2026-03-{day} 09:30:00"))
        database.close()
        for _ in range(2):
            assert run_import().startswith("support-7: 5 messages\n")
    with inmind.Memory.open() as memory:
        line = memory.session("support-7").state.conversation
        assert [line[0].wire["content"], line[4].wire["content"]] == ["What is in order W-118?", "Send it."]
        memory.resource("ada").consolidate()
        notes = [hit.crystal for hit in memory.resource("ada").search("what does Ada prefer", sources=["memory"])]
        current = [(note.text, note.at.day) for note in notes if note.text.startswith("Ada") and not note.superseded_by]
        assert current == [("Ada prefers spaces.", 6)]


def test_later_letta_changes_are_imported_for_their_agent(importer: Importer) -> None:
    run_import = importer("how-to/from-letta.md")
    assert run_import() == "harbour: 4 messages, 1 passages\n"
    with inmind.Memory.open() as memory:
        session = memory.session("letta-harbour")
        session.write("MEMORY.md", session.read("MEMORY.md") + "\nWritten by hand.\n")
    exported, passages = json_in("agent.af"), json_in("passages.json")
    [agent] = exported["agents"]
    at, calls = "2026-02-02T08:00:00+00:00", [{**agent["messages"][2]["tool_calls"][0], "id": id} for id in ("a", "b")]
    agent["messages"] = [
        *agent["messages"][5:],  # a file has only the last messages, numbered from 0
        {"role": "user", "content": "And in winter?", "created_at": at},
        {"role": "assistant", "content": None, "tool_calls": calls, "created_at": at},
        *({"role": "tool", "content": "OK", "tool_call_id": call["id"], "created_at": at} for call in calls),
    ]
    for number, message in enumerate(agent["messages"]):
        message["id"] = f"message-{number}"
    exported["agents"].append({**agent, "name": "harbour-sleeptime", "messages": []})
    Path("agent.af").write_text(json.dumps(exported))
    [[passage]] = passages.values()
    passage |= {"text": passage["text"].replace("15", "20"), "updated_at": "2026-02-12T10:00:00+00:00"}
    Path("passages.json").write_text(json.dumps(passages))
    for _ in range(2):
        assert run_import() == "harbour: 8 messages, 1 passages\nharbour-sleeptime: 0 messages, 0 passages\n"
    with inmind.Memory.open() as memory:
        session = memory.session("letta-harbour")
        assert session.read("MEMORY.md").endswith("Written by hand.\n")
        assert session.state.conversation[4].wire["content"] == "And in winter?"
        crystals = [hit.crystal for hit in session.search("winter timetable of the ferry", sources=["memory"], limit=2)]
        assert sorted((one.text[-3:], one.at.month) for one in crystals) == [("15.", 1), ("20.", 2)]
        other_hits = memory.resource("harbour-sleeptime").search("winter timetable of the ferry")
        assert not [hit for hit in other_hits if "ferry" in hit.crystal.text]
    exported["blocks"][0]["value"] = "The harbour master is Olga."
    Path("agent.af").write_text(json.dumps(exported))
    run_import()
    with inmind.Memory.open() as memory:
        assert "Olga" in memory.session("letta-harbour").read("MEMORY.md")


def exported_names() -> set[str]:
    """The public names. Type checkers read them as imports, not as `__all__`."""
    return {name for module in (inmind, layers, types) for name in vars(module)["__all__"]}


def test_every_public_name_is_documented_on_one_reference_page() -> None:
    placed = [name for page in PAGES.values() for name in page.names]
    assert sorted(placed) == sorted(exported_names())
    assert undocumented() == []


def test_every_name_of_an_async_class_is_on_the_async_page() -> None:
    listed = re.findall(r"^(?:- |### )`(?:await )?(\w+)", async_page(), re.MULTILINE)
    names = [name for one in ASYNC_CLASSES.values() for name in dir(one) if not name.startswith("_")]
    assert sorted({*names, "sync"} - {*listed}) == []


def test_every_call_of_a_host_is_in_the_table_of_calls() -> None:
    table = page("reference/calls.md")
    rows = re.findall(r"^\| (`.+?) \| (.+) \|$", table, re.MULTILINE)
    calls = re.findall(
        r"`(memory|session|ada)\.(\w+)", " ".join(call for call, _ in rows).replace("`Memory.", "`memory.")
    )
    documented = {f"{'Resource' if holder == 'ada' else holder.capitalize()}.{name}" for holder, name in calls}
    for holder in ("Scratchpad", "Affect", "Economics"):  # each has one row that lists its members
        [has] = [does for _, does in rows if f"`{holder}`:" in does]
        documented |= {f"{holder}.{name}" for name in re.findall(r"`(\w+)", has)}
    called = [f"{holder}.{name}" for holder in HOST_OBJECTS for name, _ in members_of(public(public_path(holder)))]
    assert [one for one in called if one not in documented] == []
    assert [name for name in sorted(exported_names()) if f"`{name}`" not in table] == []


def test_fields_in_the_table_of_calls_exist() -> None:
    """A row names the fields of what a call returns as "a `Recorded`: `text`, `results`"."""
    values = {name: getattr(module, name) for module in (types, inmind) for name in module.__all__}
    listed = re.findall(r"`(\w+)`s?: ((?:`\w+(?:\([^`]*\))?`(?:, | and |,? and )?)+)", page("reference/calls.md"))
    assert len(listed) > 8
    fields = [(name, field) for name, names in listed for field in re.findall(r"`(\w+)", names)]
    instance_only = {("Affect", "enabled")}
    assert [(n, f) for n, f in fields if not has_member(values[n], f) and (n, f) not in instance_only] == []


def has_member(value: type, name: str) -> bool:
    return hasattr(value, name) or name in getattr(value, "__dataclass_fields__", {})


def test_every_command_is_documented() -> None:
    table = page("reference/commands.md")
    assert [path for path in options_by_path() if f"`inmind {path}" not in table] == []


def test_commands_without_json_are_listed() -> None:
    sentence = re.search(r"^Every command except (.+?) has `--json`", page("reference/commands.md"), re.MULTILINE)
    assert sentence
    without_json = {path for path, options in options_by_path().items() if "--json" not in options}
    assert {*re.findall(r"`([\w ]+)`", sentence[1])} == without_json


def test_every_exit_code_is_documented_with_its_errors() -> None:
    rows = re.findall(r"^\| (\d+) \| (.+) \|$", page("reference/commands.md"), re.MULTILINE)
    assert sorted(int(code) for code, _ in rows) == sorted(EXIT_CODE_HELP)
    assert {error: int(code) for code, text in rows for error in re.findall(r"`([A-Z_]+)`", text)} == EXIT_CODES


def test_every_tool_is_documented() -> None:
    table = page("tools.md")
    names = [str(tool["name"]) for tool in tool_schemas(inmind.default_layers(), "mcp")]
    assert "memory_search" in names
    assert [name for name in names if f"| `{name}` |" not in table] == []


def test_every_error_code_is_documented() -> None:
    table = page("reference/errors.md")
    assert [code for code in sorted(codes(InmindError)) if f"`{code}`" not in table] == []


def test_every_setting_is_documented() -> None:
    table = page("dreams.md")
    groups = {group.name: group.default_factory for group in dataclasses.fields(Settings)}
    settings = [
        f"{name}.{one.name}" for name, kind in groups.items() if callable(kind) for one in dataclasses.fields(kind())
    ]
    assert len(settings) > 10
    assert [one for one in settings if f"`{one}`" not in table] == []


def test_page_titles_of_the_site_are_unique() -> None:
    titles = Counter(text.partition("\n")[0] for text in staged_pages(PROJECT).values())
    assert [title for title, pages in titles.items() if pages > 1] == []


@pytest.mark.exhaustive
def test_the_site_is_complete_and_fetches_nothing_external(tmp_path: Path) -> None:
    assert build(PROJECT, into=tmp_path) == 0
    assert (tmp_path / SITE / "docs" / "reference" / "names" / "session.html").is_file()


# The checks of the site on small sites.


def test_external_fetches_of_a_site_are_found(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text(
        '<link rel="canonical" href="https://here.example/a"><a href="https://there.example">a link</a>'
        '<link rel="stylesheet" href="//cdn.example/x.css"><script src="https://cdn.example/x.js"></script>'
        '<img src="b.png">'
    )
    (tmp_path / "b.css").write_text('@import "https://fonts.example/c.css"; body { background: url(d.png) }')
    assert list(external_fetches(tmp_path)) == [
        "a.html fetches //cdn.example/x.css",
        "a.html fetches https://cdn.example/x.js",
        "b.css fetches https://fonts.example/c.css",
    ]


def test_a_page_missing_from_the_site_is_reported(tmp_path: Path) -> None:
    (tmp_path / "index.html").touch()
    assert list(missing_pages(tmp_path, ["README.md", "docs/gone.md"])) == ["docs/gone.md is not in the site"]


def test_a_link_to_a_file_that_is_not_a_page_becomes_text() -> None:
    links = "[a](b.md) [c](d.md#e) [f](#g) [h](https://i.example/j) [k](examples) [l](LICENSE)"
    assert strip_for_site(links) == "[a](b.md) [c](d.md#e) [f](#g) [h](https://i.example/j) k l"
    code = "`run[a](b)` and\n```python\nrun[a](b)\n```\nthen "
    assert strip_for_site(f"{code}[k](examples)") == f"{code}k"
    assert strip_for_site("```python no-run\nrun()\n```") == "```python\nrun()\n```"


def json_in(name: str) -> Any:
    return json.loads(Path(name).read_text("utf-8"))


def page(name: str) -> str:
    return (DOCS / name).read_text("utf-8")


def codes(kind: type[InmindError]) -> set[str]:
    codes_below = {code for one in kind.__subclasses__() for code in codes(one)}
    return codes_below | ({kind.code} if "code" in vars(kind) and kind is not InmindError else set())

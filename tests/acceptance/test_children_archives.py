"""Archives of a child are copied whole: stubs refer to their lines, so they are never merged."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from builders import a_call, a_result, assistant, user

from inmind import Memory, Session
from inmind.documents.overview.sections import read_section
from inmind.history.compaction import stubs

FIRST = "archive/001-outputs-of-search.md"


def parent_of(memory: Memory) -> Session:
    return memory.session("parent", resource="ada", cwd="/website")


def archive_search_result(session: Session, word: str, **where: Any) -> str:
    """Run a search in the session, archive its result and return the path."""
    call = f"call-{word}"
    session.add([user("Where is it?"), a_call(call, "search"), a_result(call, f"{word}\n" * 200), assistant("There.")])
    session.add([user("Thanks.")])
    (path, *_) = session.compact("tools", keep_recent=0, **where).archives
    return path


def archives(session: Session) -> dict[str, str]:
    """Archive pages in the order of their creation."""
    return {path: session.read(path) for path in session.state.documents.by_path if path.startswith("archive/")}


def index(session: Session) -> list[str]:
    """The pages named on the overview."""
    return re.findall(r"^- (\S+) \(\d+ KB\)", read_section(session.overview, "Detail and archive"), re.MULTILINE)


def check_stub_references(session: Session) -> bool:
    """Whether each stub names the lines of a page that the archived text has, as the model reads them."""
    text = "\n".join(str(message.get("content")) for message in session.prepare().messages)
    named = re.findall(r"^\[pruned: (archive/\S+)\]$", text, re.MULTILINE)
    pages = [session.call_tool("memory_read", {"path": location}).text for location in named]
    return bool(named) and all(re.match(r"## \d+: tool\n\nanswers \(\S+\):\n(\w+\n)+", page) for page in pages)


@pytest.mark.spec("C8", "E3")
def test_archives_with_one_name_and_two_texts_are_both_kept(memory: Memory) -> None:
    parent = parent_of(memory)
    child = parent.spawn(policy="fork")
    assert (archive_search_result(parent, "oak"), archive_search_result(child, "elm")) == (FIRST, FIRST)
    ours, theirs = parent.read(FIRST), child.read(FIRST)
    report = parent.merge_back(child)
    assert (report.taken, report.combined, report.conflicts) == (("archive/002-outputs-of-search.md",), (), ())
    assert archives(parent) == {FIRST: ours, "archive/002-outputs-of-search.md": theirs}
    assert archives(child) == {FIRST: theirs}
    assert check_stub_references(parent)
    assert check_stub_references(child)


@pytest.mark.spec("C8", "F3")
def test_the_parents_index_uses_the_parents_name_of_an_archive(memory: Memory) -> None:
    parent = parent_of(memory)
    child = parent.spawn(policy="fork")
    archive_search_result(parent, "oak")
    archive_search_result(child, "elm")
    parent.merge_back(child)
    assert index(parent) == ["archive/002-outputs-of-search.md", FIRST]
    assert index(child) == [FIRST]


@pytest.mark.spec("C8")
def test_an_archive_keeps_a_name_that_is_free(memory: Memory) -> None:
    parent = parent_of(memory)
    child = parent.spawn(policy="fork")
    archive_search_result(child, "elm")
    assert parent.merge_back(child).taken == (FIRST,)
    assert archives(parent) == archives(child)


@pytest.mark.spec("C8", "A6")
def test_an_archive_is_copied_once(memory: Memory) -> None:
    parent = parent_of(memory)
    child = parent.spawn(policy="fork")
    archive_search_result(parent, "oak")
    archive_search_result(child, "elm")
    parent.merge_back(child)
    copied = archives(parent)
    assert parent.merge_back(child).repeated
    child.write("detail/found.md", "an elm")
    assert parent.merge_back(child).taken == ("detail/found.md",)
    assert archives(parent) == copied


@pytest.mark.spec("C8")
def test_the_same_archive_of_two_children_is_copied_once(memory: Memory) -> None:
    parent = parent_of(memory)
    twins = [parent.spawn(name, policy="fork") for name in ("castor", "pollux")]
    archive_search_result(parent, "oak")
    assert [archive_search_result(twin, "elm") for twin in twins] == [FIRST, FIRST]
    assert [parent.merge_back(twin).taken for twin in twins] == [("archive/002-outputs-of-search.md",), ()]
    assert len(archives(parent)) == 2


@pytest.mark.spec("C8")
def test_an_inherited_archive_is_not_copied_back(memory: Memory) -> None:
    parent = parent_of(memory)
    archive_search_result(parent, "oak")
    child = parent.spawn(policy="fork")
    child.write("archive/copied.md", parent.read(FIRST))
    report = parent.merge_back(child)
    assert (report.taken, list(archives(parent))) == ((), [FIRST])


@pytest.mark.spec("C8")
def test_a_continued_archive_extends_its_copy(memory: Memory) -> None:
    parent = parent_of(memory)
    child = parent.spawn(policy="fork")
    parent.write("archive/trees.md", "the parent's own")
    archive_search_result(child, "elm", archive_to="archive/trees.md")
    assert parent.merge_back(child).taken == ("archive/001-trees.md",)
    archive_search_result(child, "ash", archive_to="archive/trees.md")
    assert parent.merge_back(child).taken == ("archive/001-trees.md",)
    assert archives(parent) == {
        "archive/trees.md": "the parent's own",
        "archive/001-trees.md": child.read("archive/trees.md"),
    }


@pytest.mark.spec("C8")
def test_a_rewritten_archive_does_not_change_the_parents(memory: Memory) -> None:
    parent = parent_of(memory)
    child = parent.spawn(policy="fork")
    child.write("archive/trees.md", "elm\nash\n")
    parent.merge_back(child)
    child.write("archive/trees.md", "ash\nelm\n")
    assert parent.merge_back(child).taken == ("archive/001-trees.md",)
    assert archives(parent) == {"archive/trees.md": "elm\nash\n", "archive/001-trees.md": "ash\nelm\n"}


@pytest.mark.spec("C8")
def test_a_renamed_archive_avoids_names_of_the_child(memory: Memory) -> None:
    parent = parent_of(memory)
    child = parent.spawn(policy="fork")
    archive_search_result(parent, "oak")
    assert [archive_search_result(child, tree) for tree in ("elm", "ash")] == [
        FIRST,
        "archive/002-outputs-of-search.md",
    ]
    assert parent.merge_back(child).taken == ("archive/003-outputs-of-search.md", "archive/002-outputs-of-search.md")
    assert parent.read("archive/002-outputs-of-search.md") == child.read("archive/002-outputs-of-search.md")


@pytest.mark.spec("C8", "E3")
def test_continued_pages_refer_to_the_parents_names(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stubs, "MAX_PAGE_BYTES", 400)
    parent = parent_of(memory)
    child = parent.spawn(policy="fork")
    archive_search_result(parent, "oak")
    archive_search_result(child, "elm")
    own = dict(zip(archives(child), parent.merge_back(child).taken, strict=True))
    further = [(own[path], text) for path, text in archives(child).items() if "Goes on from" in text]
    assert len(further) > 1
    for path, text in further:
        (before,) = re.findall(r"^Goes on from (\S+)\.$", text, re.MULTILINE)
        assert parent.read(path) == text.replace(f"from {before}.", f"from {own[before]}.", 1)
    copied = archives(parent)
    archive_search_result(child, "ash")
    parent.merge_back(child)
    assert {path: parent.read(path) for path in copied} == copied


@pytest.mark.spec("C8")
def test_detail_pages_are_merged_line_by_line(memory: Memory) -> None:
    parent = parent_of(memory)
    parent.write("detail/trees.md", "oak\n\nelm\n\nash\n")
    child = parent.spawn(policy="fork")
    parent.write("detail/trees.md", "Oak\n\nelm\n\nash\n")
    child.write("detail/trees.md", "oak\n\nelm\n\nAsh\n")
    assert parent.merge_back(child).combined == ("detail/trees.md",)
    assert parent.read("detail/trees.md") == "Oak\n\nelm\n\nAsh\n"


MERGE_AND_DIE = """
import os, signal, sys
import apsw
from inmind import Memory

home, word, number = sys.argv[1], sys.argv[2], int(sys.argv[3])
connections, statements = [], []
apsw.connection_hooks.append(connections.append)
parent = Memory.open(home).session("parent")
parent.documents()

def trace(_, statement, __):
    statements.append(statement.split()[0].upper())
    if statements[-1] == word and statements.count(word) == number:
        os.kill(os.getpid(), signal.SIGKILL)
    return True

for connection in connections:
    connection.exec_trace = trace
parent.merge_back("child")
"""


@pytest.mark.embedded
@pytest.mark.spec("C8", "J1")
@pytest.mark.parametrize(("word", "number"), [("INSERT", 1), ("INSERT", 2), ("INSERT", 3), ("COMMIT", 1)])
def test_a_merge_killed_before_its_commit_changes_nothing(memory: Memory, home: Path, word: str, number: int) -> None:
    parent = parent_of(memory)
    child = parent.spawn("child", policy="fork")
    archive_search_result(parent, "oak")
    for tree in ("elm", "ash"):
        archive_search_result(child, tree)
    before = parent.state.seq
    died = subprocess.run([sys.executable, "-c", MERGE_AND_DIE, str(home), word, str(number)], check=False)
    assert died.returncode == -signal.SIGKILL
    assert list(archives(parent)) == [FIRST]
    assert parent.state.seq == before
    report = parent.merge_back(child)
    assert (len(report.taken), report.repeated) == (2, False)
    assert sorted(archives(parent)) == sorted([FIRST, *report.taken])

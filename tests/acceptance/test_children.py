"""Child sessions: inheritance, and how their changes are merged back."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from typing import Any

import pytest
from builders import Home, assistant, home_of, user
from pydantic import BaseModel

from inmind import Memory, Session, default_layers
from inmind.core.encoding import to_json
from inmind.core.events.base import Origin, Trust
from inmind.core.events.documents import DocumentWritten, OverviewEvent
from inmind.documents.overview.sections import read_section
from inmind.errors import InvalidInput, ReadOnly, SchemaViolation
from inmind.layers import ScratchpadLayer
from inmind.session.state import SessionFold

SCHEMA = {"type": "object", "properties": {"goal": {"type": "string"}, "steps": {"type": "array"}}}
INITIAL = {"goal": "Deploy v2", "steps": ["plan"], "owner": {"name": "Mei"}}


def parent_of(memory: Memory, **options: Any) -> Session:
    layers = default_layers(ScratchpadLayer(schema=SCHEMA, **options))
    session = memory.session("parent", resource="ada", cwd="/website", layers=layers)
    session.scratchpad.update(INITIAL)
    return session


def block(session: Session) -> str:
    prompt = session.prepare([user("hi")])
    return next(
        (part for part in prompt.messages[0]["content"].split("\n\n") if part.startswith("<working_memory")), ""
    )


@pytest.mark.spec("C8")
def test_by_default_a_child_copies_the_resource_scratchpad_and_nothing_else(
    memory: Memory,
) -> None:
    assert parent_of(memory).spawn().scratchpad.snapshot == {}
    shared = memory.session("other", resource="bob", layers=[ScratchpadLayer(schema=SCHEMA, scope="resource")])
    shared.scratchpad.update(INITIAL)
    child = shared.spawn()
    assert child.scratchpad.snapshot == INITIAL
    child.scratchpad.update({"goal": "mine"})
    assert shared.scratchpad.snapshot == INITIAL
    assert shared.merge_back(child).taken == ("goal",)
    assert shared.scratchpad.snapshot == {**INITIAL, "goal": "mine"}


@pytest.mark.spec("C8")
def test_a_fork_is_an_independent_copy(memory: Memory) -> None:
    parent = parent_of(memory)
    child = parent.spawn(policy="fork")
    child.scratchpad.update({"goal": "child's"})
    parent.scratchpad.update({"goal": "parent's"})
    assert (child.scratchpad.snapshot, parent.scratchpad.snapshot) == (
        {**INITIAL, "goal": "child's"},
        {**INITIAL, "goal": "parent's"},
    )
    assert child.resource == "ada"
    assert child.state.conversation.wires == []


@pytest.mark.spec("C8")
def test_a_view_shows_the_parents_current_state_and_is_read_only(memory: Memory) -> None:
    parent = parent_of(memory)
    child = parent.spawn(policy="view")
    parent.scratchpad.update({"goal": "newer"})
    assert '"goal": "newer"' in block(child)
    assert child.scratchpad.snapshot == parent.scratchpad.snapshot
    with pytest.raises(ReadOnly):
        child.scratchpad.update({"goal": "child's"})
    assert "working_memory_update" not in json.dumps(child.tools())
    grandchild = child.spawn()
    parent.scratchpad.update({"goal": "newest"})
    assert '"goal": "newest"' in block(grandchild)
    assert parent.merge_back(child).ok


@pytest.mark.spec("C8", "D1")
def test_each_layer_is_inherited_by_its_policy(memory: Memory) -> None:
    parent = parent_of(memory)
    parent.write("overview.md", "# Overview\n\n- by the parent\n")
    parent.write("detail/a.md", "a detail")
    parent.observe("create_page", {}, {"page": {"id": "page-1", "title": "Home"}})
    forked = parent.spawn(policy={"overview": "fork", "entities": "fork"})
    assert forked.overview == parent.overview
    assert forked.read("detail/a.md") == "a detail"
    assert [entity.id for entity in forked.entities] == ["page-1"]
    assert forked.scratchpad.snapshot == {}
    viewing = parent.spawn(policy={"overview": "view", "entities": "view"})
    parent.write("overview.md", "# Overview\n\n- newer\n")
    text = viewing.prepare([user("hi")]).messages[0]["content"]
    assert "- newer" in text
    assert "page-1" in text
    default_child = parent.spawn()
    assert "newer" not in default_child.overview
    assert len(default_child.entities) == 0


@pytest.mark.both_stores
@pytest.mark.spec("C8")
def test_different_fields_of_two_children_are_merged(memory: Memory) -> None:
    parent = parent_of(memory)
    one, other = parent.spawn(policy="fork"), parent.spawn(policy="fork")
    one.scratchpad.update({"owner": {"phone": "555"}})
    other.scratchpad.update({"goal": "Ship"}, delete=["owner.name"])
    assert parent.merge_back(one).taken == ("owner.phone",)
    report = parent.merge_back(other)
    assert set(report.taken) == {"goal", "owner.name"}
    assert report.ok
    assert parent.scratchpad.snapshot == {"goal": "Ship", "steps": ["plan"], "owner": {"phone": "555"}}


@pytest.mark.spec("C8")
def test_the_same_field_changed_by_two_children_is_a_conflict(memory: Memory) -> None:
    parent = parent_of(memory)
    one, other = parent.spawn(policy="fork"), parent.spawn(policy="fork")
    one.scratchpad.update({"goal": "one's"})
    other.scratchpad.update({"goal": "other's", "extra": 1})
    assert parent.merge_back(one).ok
    report = parent.merge_back(other)
    (clash,) = report.conflicts
    assert (clash.path, clash.base, clash.ours, clash.theirs) == ("goal", "Deploy v2", "one's", "other's")
    assert report.taken == ("extra",)
    assert parent.scratchpad.snapshot == {**INITIAL, "goal": "one's", "extra": 1}


@pytest.mark.spec("C8")
def test_list_additions_are_combined_and_rewritten_lists_conflict(
    memory: Memory,
) -> None:
    parent = parent_of(memory)
    one, other = parent.spawn(policy="fork"), parent.spawn(policy="fork")
    one.scratchpad.update({"steps": ["plan", "build"]})
    other.scratchpad.update({"steps": ["plan", "test", "build"]})
    parent.merge_back(one)
    assert parent.merge_back(other).combined == ("steps",)
    assert parent.scratchpad.snapshot == {**INITIAL, "steps": ["plan", "build", "test"]}
    third, fourth = parent.spawn(policy="fork"), parent.spawn(policy="fork")
    third.scratchpad.update({"steps": ["a"]})
    fourth.scratchpad.update({"steps": ["b"]})
    parent.merge_back(third)
    assert [clash.path for clash in parent.merge_back(fourth).conflicts] == ["steps"]


@pytest.mark.spec("C8", "A6")
def test_a_child_can_be_merged_again_with_later_changes(memory: Memory) -> None:
    parent = parent_of(memory)
    child = parent.spawn(policy="fork")
    child.scratchpad.update({"goal": "first"})
    assert parent.merge_back(child).taken == ("goal",)
    before = parent.state.seq
    assert parent.merge_back(child).repeated
    assert parent.state.seq == before
    parent.scratchpad.update({"goal": "the parent's own"})
    child.scratchpad.update({"steps": ["plan", "done"]})
    again = parent.merge_back(child)
    assert (again.taken, again.conflicts) == (("steps",), ())
    assert parent.scratchpad.snapshot == {**INITIAL, "goal": "the parent's own", "steps": ["plan", "done"]}


@pytest.mark.spec("C8")
def test_pages_and_entities_of_a_child_are_merged(memory: Memory) -> None:
    parent = parent_of(memory)
    child = parent.spawn(policy="fork")
    child.write("detail/found.md", "a finding")
    child.write("overview.md", child.overview + "- found\n")
    child.observe("create_page", {}, {"page": {"id": "page-7", "title": "Found"}})
    report = parent.merge_back(child)
    assert set(report.taken) == {"detail/found.md", "overview.md"}
    assert report.entities == 1
    assert parent.overview.endswith("- found\n")
    assert parent.read("detail/found.md") == "a finding"
    assert parent.entities.get("page-7") is not None


@pytest.mark.both_stores
@pytest.mark.spec("C8", "J1")
def test_changes_of_a_killed_child_are_merged_by_its_id(memory: Memory, home: Home) -> None:
    parent = parent_of(memory)
    child = parent.spawn("research", policy="fork")
    script = (
        "import os, signal, sys\n"
        "from inmind import Memory\n"
        "from inmind.layers import ScratchpadLayer\n"
        "session = Memory.open(sys.argv[1]).session('research', layers=[ScratchpadLayer(schema={'type': 'object'})])\n"
        "session.scratchpad.update({'goal': 'found it'})\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    died = subprocess.run([sys.executable, "-c", script, str(home)], check=False)
    assert died.returncode == -signal.SIGKILL
    assert parent.scratchpad.snapshot == INITIAL
    assert parent.merge_back("research").taken == ("goal",)
    assert parent.scratchpad.snapshot == {**INITIAL, "goal": "found it"}
    assert child.scratchpad.snapshot == {**INITIAL, "goal": "found it"}


@pytest.mark.spec("C8")
def test_a_child_is_reopened_by_its_id_as_it_was_inherited(memory: Memory) -> None:
    parent = parent_of(memory)
    child = parent.spawn("helper", policy={"working-memory": "fork", "overview": "view"})
    child.scratchpad.update({"goal": "mine"})
    assert parent.spawn("helper", policy="none").scratchpad.snapshot == {**INITIAL, "goal": "mine"}
    again = memory.session("helper", layers=default_layers(ScratchpadLayer(schema=SCHEMA)))
    parent.write("overview.md", "# Overview\n\n- seen from below\n")
    assert "- seen from below" in again.prepare([user("hi")]).messages[0]["content"]
    assert again.scratchpad.snapshot == {**INITIAL, "goal": "mine"}
    assert {info.id: info.parent for info in memory.sessions()} == {"parent": "", "helper": "parent"}


@pytest.mark.spec("A1", "J5")
def test_merged_events_name_their_sources(memory: Memory) -> None:
    parent = parent_of(memory)
    child = parent.spawn(policy="fork")
    child.scratchpad.update({"goal": "mine"})
    parent.merge_back(child)
    event = next(event for event in reversed(parent.events()) if event.kind == "pad_merged")
    assert event.sources == (f"session/{child.id}#{child.state.seq}",)
    assert event.trust == child.state.scratchpads.by_name["working-memory"].trust


@pytest.mark.both_stores
@pytest.mark.spec("A4")
def test_a_merge_is_undone_as_one_change(memory: Memory) -> None:
    parent = parent_of(memory)
    child = parent.spawn(policy="fork")
    child.scratchpad.update({"goal": "mine"})
    child.write("detail/a.md", "a")
    parent.merge_back(child)
    parent.undo()
    assert parent.scratchpad.snapshot == INITIAL
    assert "detail/a.md" not in parent.documents()
    assert parent.merge_back(child).taken == ("goal", "detail/a.md")


@pytest.mark.spec("J3")
def test_a_session_that_is_not_a_child_is_rejected(memory: Memory) -> None:
    parent = parent_of(memory)
    unrelated = memory.session("unrelated", resource="ada")
    for wrong in ("unrelated", unrelated, "missing", "parent"):
        with pytest.raises(InvalidInput, match="a child session of parent"):
            parent.merge_back(wrong)
    with pytest.raises(InvalidInput, match="a child of this session"):
        parent.spawn("unrelated")
    for policy in ("sometimes", {"no such layer": "fork"}, {"overview": "maybe"}, 7):
        with pytest.raises(InvalidInput, match="policy"):
            parent.spawn(policy=policy)  # pyright: ignore[reportArgumentType] -- callers without type checks
    assert {info.id for info in memory.sessions()} == {"parent", "unrelated"}


@pytest.mark.embedded
def test_looking_for_an_unknown_child_creates_no_stream(memory: Memory) -> None:
    parent = parent_of(memory)
    with pytest.raises(InvalidInput):
        parent.merge_back("missing")
    assert os.listdir(home_of(memory) / "sessions" / "--website--") == ["parent"]


@pytest.mark.spec("C8")
@pytest.mark.parametrize("policy", [None, "fork", "none"])
def test_an_unchanged_text_scratchpad_does_not_block_a_merge(memory: Memory, policy: str | None) -> None:
    parent = memory.session("plain")
    parent.scratchpad.update("the parent's")
    child = parent.spawn("helper", policy=policy)
    child.write("detail/found.md", "it")
    assert parent.merge_back(child).taken == ("detail/found.md",)
    assert parent.scratchpad.snapshot == "the parent's"


@pytest.mark.spec("C8")
def test_rewritten_texts_conflict_and_additions_are_combined(memory: Memory) -> None:
    parent = memory.session("plain")
    parent.scratchpad.update("begun")
    one, other = parent.spawn(policy="fork"), parent.spawn(policy="fork")
    one.scratchpad.update("one's", append=True)
    other.scratchpad.update("rewritten")
    parent.scratchpad.update("started over\nthe parent's")
    assert parent.merge_back(one).combined == ("working-memory",)
    assert [clash.path for clash in parent.merge_back(other).conflicts] == ["working-memory"]
    assert parent.scratchpad.snapshot == "started over\nthe parent's\none's"


@pytest.mark.both_stores
@pytest.mark.spec("C8")
@pytest.mark.parametrize("schema", [None, SCHEMA])
def test_children_that_append_and_merge_in_turn_never_conflict(memory: Memory, schema: Any) -> None:
    parent = memory.session("parent", layers=default_layers(ScratchpadLayer(schema=schema)))
    workers = [parent.spawn(id, policy="fork") for id in ("a", "b")]
    for turn in range(3):
        for worker in workers:
            line = f"{worker.id}{turn}"
            pad = worker.scratchpad.snapshot
            if isinstance(pad, str):
                worker.scratchpad.update(line, append=True)
            else:
                worker.scratchpad.update({"steps": [*pad.get("steps", []), line]})
            worker.write("overview.md", f"{worker.overview}\n- {line}")
            assert parent.merge_back(worker).ok
    pad = parent.scratchpad.snapshot
    lines = pad.split("\n") if isinstance(pad, str) else pad["steps"]
    assert lines == ["a0", "b0", "a1", "b1", "a2", "b2"]
    assert sorted(parent.overview.split("\n")[-6:]) == sorted(f"- {line}" for line in lines)


@pytest.mark.spec("C8", "A6")
@pytest.mark.parametrize("key", [None, "k"])
def test_a_repeated_merge_returns_the_same_report(memory: Memory, key: str | None) -> None:
    parent = parent_of(memory)
    child = parent.spawn(policy="fork")
    child.scratchpad.update({"goal": "child's", "extra": None}, delete=["owner"])
    parent.scratchpad.update({"goal": "parent's"})
    first = parent.merge_back(child, key=key)
    again = parent.merge_back(child, key=key)
    assert (first.repeated, again.repeated) == (False, True)
    assert (again.taken, again.conflicts) == (first.taken, first.conflicts)
    assert [clash.path for clash in again.conflicts] == ["goal"]


@pytest.mark.spec("C8")
def test_sections_written_by_both_are_combined(memory: Memory) -> None:
    parent = parent_of(memory)
    parent.write(
        "overview.md", parent.overview.replace("## Known facts\n", "## Known facts\n- by the parent, before\n")
    )
    child = parent.spawn()
    child.write("overview.md", child.overview.replace("## Open problems\n", "## Open problems\n- by the child\n"))
    parent.write("overview.md", parent.overview.replace("## Current task\n", "## Current task\n- by the parent\n"))
    report = parent.merge_back(child)
    assert (report.combined, report.conflicts) == (("overview.md",), ())
    assert all(line in parent.overview for line in ("- by the parent, before", "- by the parent\n", "- by the child"))


@pytest.mark.spec("C8", "C6")
def test_a_merge_that_violates_the_schema_is_a_conflict(memory: Memory) -> None:
    schema = {"type": "object", "properties": {"steps": {"type": "array", "maxItems": 2}}}
    parent = memory.session("narrow", resource="ada", layers=default_layers(ScratchpadLayer(schema=schema)))
    parent.scratchpad.update({"steps": ["a"]})
    child = parent.spawn(policy="fork")
    child.scratchpad.update({"steps": ["a", "b"]})
    child.write("detail/found.md", "it")
    parent.scratchpad.update({"steps": ["a", "c"]})
    report = parent.merge_back(child)
    assert (report.taken, [clash.path for clash in report.conflicts]) == (("detail/found.md",), ["working-memory"])
    assert parent.scratchpad.snapshot == {"steps": ["a", "c"]}


@pytest.mark.spec("C8")
def test_archive_pages_are_not_inherited(memory: Memory) -> None:
    parent = parent_of(memory)
    parent.write("archive/old.md", "old")
    parent.write("detail/new.md", "new")
    assert set(parent.spawn(policy="fork").documents()) >= {"detail/new.md", "overview.md"}
    assert "archive/old.md" not in parent.spawn(policy="fork").documents()


@pytest.mark.spec("C7", "C8")
def test_nothing_is_merged_into_a_read_only_scratchpad(memory: Memory) -> None:
    child = parent_of(memory).spawn("helper", policy="fork")
    child.scratchpad.update({"goal": "mine"})
    child.write("detail/found.md", "it")
    layers = default_layers(ScratchpadLayer(schema=SCHEMA, read_only=True))
    parent = memory.session("parent", resource="ada", layers=layers)
    report = parent.merge_back("helper")
    assert (report.taken, [clash.path for clash in report.conflicts]) == (("detail/found.md",), ["working-memory"])
    assert parent.scratchpad.snapshot == INITIAL


@pytest.mark.spec("C3", "C8")
def test_a_child_state_that_no_longer_fits_deletes_nothing(memory: Memory) -> None:
    child = parent_of(memory).spawn("helper", policy="fork")
    child.scratchpad.update({"goal": "mine"})
    schema = {"type": "object", "properties": {"goal": {"enum": ["Deploy v2"]}}}
    parent = memory.session("parent", resource="ada", layers=default_layers(ScratchpadLayer(schema=schema)))
    [clash] = parent.merge_back("helper").conflicts
    assert (clash.path, clash.base, clash.ours, clash.theirs) == (
        "working-memory",
        INITIAL,
        INITIAL,
        {**INITIAL, "goal": "mine"},
    )
    assert parent.scratchpad.snapshot == INITIAL


@pytest.mark.spec("C8", "A6")
@pytest.mark.parametrize("key", [None, "k"])
@pytest.mark.parametrize(
    "pads",
    [
        [],
        [ScratchpadLayer()],
        [ScratchpadLayer(schema=SCHEMA, read_only=True)],
        [ScratchpadLayer(schema={"type": "object", "properties": {"goal": {"enum": ["Deploy v2"]}}})],
    ],
    ids=["none", "without its schema", "read-only", "narrower"],
)
def test_changes_without_a_layer_are_merged_later(memory: Memory, pads: list[ScratchpadLayer], key: str | None) -> None:
    child = parent_of(memory).spawn("helper", policy="fork")
    child.scratchpad.update({"goal": "mine", "steps": ["plan", "do"]})
    child.write("detail/found.md", "it")
    others = [layer for layer in default_layers() if not isinstance(layer, ScratchpadLayer)]
    parent = memory.session("parent", resource="ada", layers=[*others, *pads])
    report = parent.merge_back("helper", key=key)
    assert (report.taken, [clash.path for clash in report.conflicts]) == (("detail/found.md",), ["working-memory"])
    again = parent.merge_back("helper", key=key)
    assert (again.conflicts, again.repeated) == (report.conflicts, True)
    parent = memory.session("parent", resource="ada", layers=default_layers(ScratchpadLayer(schema=SCHEMA)))
    assert parent.merge_back("helper").taken == ("goal", "steps")
    assert parent.scratchpad.snapshot == {**INITIAL, "goal": "mine", "steps": ["plan", "do"]}
    assert parent.merge_back("helper").repeated


@pytest.mark.spec("C8", "A4")
def test_merging_again_after_an_undo_changes_the_resource_once(memory: Memory) -> None:
    layers = default_layers(ScratchpadLayer(schema=SCHEMA, scope="resource"))
    parent = memory.session("parent", resource="ada", layers=layers)
    parent.scratchpad.update(INITIAL)
    child = parent.spawn()
    child.scratchpad.update({"steps": ["plan", "do"]})
    child.write("detail/found.md", "it")
    parent.merge_back(child)
    parent.undo()
    assert parent.merge_back(child).taken == ("detail/found.md",)
    assert parent.scratchpad.snapshot == {**INITIAL, "steps": ["plan", "do"]}


@pytest.mark.spec("C8")
def test_merged_pages_are_not_merged_again_while_the_scratchpad_waits(memory: Memory) -> None:
    child = parent_of(memory).spawn("helper", policy="fork")
    child.scratchpad.update({"goal": "mine"})
    child.write("detail/found.md", "the child's draft\n")
    child.observe("get_page", {"id": "page-1"}, {"page": {"id": "page-1", "title": "Home"}})
    parent = memory.session("parent", resource="ada", layers=default_layers(ScratchpadLayer()))
    first = parent.merge_back("helper")
    assert (first.taken, first.entities) == (("detail/found.md",), 1)
    parent.write("detail/found.md", "the parent's final text", base=parent.documents()["detail/found.md"])
    parent.observe("get_page", {"id": "page-2"}, {"page": {"id": "page-2", "title": "About"}})
    events = len(parent.events())
    again = parent.merge_back("helper")
    assert (again.repeated, again.conflicts, len(parent.events())) == (True, first.conflicts, events)
    parent = memory.session("parent", resource="ada", layers=default_layers(ScratchpadLayer(schema=SCHEMA)))
    assert parent.merge_back("helper").taken == ("goal",)
    assert parent.read("detail/found.md") == "the parent's final text"
    assert [entity.id for entity in parent.entities] == ["page-2", "page-1"]


@pytest.mark.spec("C8")
def test_a_child_with_a_view_can_pass_on_a_copy_or_nothing(memory: Memory) -> None:
    parent = parent_of(memory)
    parent.write("detail/plan.md", "the plan")
    child = parent.spawn(policy="view")
    copied, bare = child.spawn(policy="fork"), child.spawn(policy="none")
    assert (copied.scratchpad.snapshot, copied.read("detail/plan.md")) == (INITIAL, "the plan")
    copied.scratchpad.update({"goal": "its own"})
    bare.scratchpad.update({"goal": "its own too"})
    assert copied.scratchpad.snapshot == {**INITIAL, "goal": "its own"}
    assert bare.scratchpad.snapshot == {"goal": "its own too"}
    assert parent.scratchpad.snapshot == INITIAL
    again = memory.session(copied.id, layers=default_layers(ScratchpadLayer(schema=SCHEMA)))
    assert again.scratchpad.snapshot == copied.scratchpad.snapshot


@pytest.mark.spec("C8", "J5")
def test_combined_text_has_the_lowest_trust(memory: Memory) -> None:
    parent = memory.session("parent")
    parent.scratchpad.update("from the web", origin=Origin.WEB)
    parent.write("detail/a.md", "from the web\n", origin=Origin.WEB)
    child = parent.spawn(policy="fork")
    child.scratchpad.update("the child's", append=True)
    child.write("detail/a.md", "from the web\nthe child's\n", origin=Origin.ASSISTANT)
    parent.scratchpad.update("more from the web", append=True, origin=Origin.WEB)
    parent.write("detail/a.md", "more\nfrom the web\n", origin=Origin.WEB)
    assert parent.merge_back(child).combined == ("working-memory", "detail/a.md")
    state = parent.state
    assert state.scratchpads.by_name["working-memory"].trust == Trust.DATA
    assert state.documents.by_path["detail/a.md"].trust == Trust.DATA
    [joined] = [
        event
        for event in parent.events()
        if isinstance(event.payload, DocumentWritten) and "the child's" in event.payload.text
    ]
    assert len(joined.sources) == 2


@pytest.mark.spec("C8")
def test_the_merge_report_is_in_the_journal_and_not_in_the_state(memory: Memory) -> None:
    parent = parent_of(memory)
    child = parent.spawn(policy="fork")
    child.scratchpad.update({"goal": "c" * 100_000})
    parent.scratchpad.update({"goal": "p"})
    assert parent.merge_back(child).conflicts[0].theirs == "c" * 100_000
    assert len(to_json(SessionFold("session/parent").freeze(parent.state))) < 50_000
    assert parent.merge_back(child).conflicts[0].theirs == "c" * 100_000


class Email(BaseModel):
    address: str


class Phone(BaseModel):
    number: str
    country: str


class Person(BaseModel):
    contact: Email | Phone


@pytest.mark.spec("C6", "C8")
def test_a_union_value_is_replaced_as_a_whole(memory: Memory) -> None:
    parent = memory.session("parent", layers=default_layers(ScratchpadLayer(schema=Person)))
    parent.scratchpad.update({"contact": {"address": "a@example.com"}})
    child = parent.spawn(policy="fork")
    with pytest.raises(SchemaViolation, match="cannot be removed"):
        child.scratchpad.update(delete=["contact.address"])
    child.scratchpad.update({"contact": {"number": "1"}}, delete=["contact"])
    child.scratchpad.update({"contact": {"country": "at"}})
    assert parent.merge_back(child).ok
    assert parent.scratchpad.snapshot == {"contact": {"number": "1", "country": "at"}}


@pytest.mark.spec("C8", "A6")
def test_the_same_key_opens_the_same_child(memory: Memory) -> None:
    parent = parent_of(memory)
    child = parent.spawn(policy="fork", key="research")
    child.scratchpad.update({"goal": "mine"})
    assert parent.spawn(policy="fork", key="research").scratchpad.snapshot == {**INITIAL, "goal": "mine"}
    assert len({child.id, parent.spawn(key="other").id, parent.spawn().id, parent.spawn().id}) == 4


@pytest.mark.spec("C8")
def test_pages_wait_if_the_parent_has_only_a_view(memory: Memory) -> None:
    viewer = parent_of(memory).spawn("viewer", policy="view")
    child = viewer.spawn("child", policy="fork")
    child.write("detail/found.md", "it")
    for _ in range(2):
        report = viewer.merge_back(child)
        assert (report.taken, [clash.path for clash in report.conflicts]) == ((), ["detail/found.md"])


@pytest.mark.spec("C8", "F5")
def test_decisions_of_a_child_are_merged_and_its_task_is_not(memory: Memory) -> None:
    parent = parent_of(memory)
    parent.event("task_started", "ship v2")
    parent.event("decision_made", "we take SQLite")
    child = parent.spawn(policy="fork")
    child.event("task_started", "look around")
    child.event("decision_made", "we take no cache")
    child.event("bug_found", "the basket counts twice")
    child.event("task_completed", "look around")
    for _ in range(2):
        parent.merge_back(child)
        assert read_section(parent.overview, "Current task").split("\n")[1:] == ["- ship v2 ·"]
        assert read_section(parent.overview, "Key decisions").split("\n")[1:] == [
            "- we take no cache ·",
            "- we take SQLite ·",
        ]
        assert read_section(parent.overview, "Open problems").split("\n")[1:] == ["- the basket counts twice ·"]
        assert read_section(parent.overview, "Recent actions").split("\n")[1:] == ["- done: look around ·"]
    overview_events = [event for event in parent.events() if isinstance(event.payload, OverviewEvent)]
    assert all(source.startswith(f"session/{child.id}#") for event in overview_events[2:] for source in event.sources)


@pytest.mark.spec("C8", "F3")
def test_the_parents_index_lists_merged_pages_under_one_heading(memory: Memory) -> None:
    parent = parent_of(memory)
    parent.write("detail/known.md", "# Known\n")
    child = parent.spawn(policy="fork")
    child.write("detail/found.md", "# Found\n")
    child.write("overview.md", child.overview.replace("Known ·\n", "Known ·\n- see the wiki, too\n"))
    assert parent.merge_back(child).ok
    assert read_section(parent.overview, "Detail and archive").split("\n") == [
        "- detail/found.md (1 KB): Found ·",
        "- detail/known.md (1 KB): Known ·",
        "- see the wiki, too",
    ]
    assert parent.overview.count("## Detail and archive") == 1


@pytest.mark.spec("C8", "F3")
def test_a_copied_overview_does_not_name_missing_archives(memory: Memory) -> None:
    parent = parent_of(memory)
    parent.event("decision_made", "we take SQLite")
    parent.add([message for step in range(9) for message in (user(f"Step {step}."), assistant("done " * 60))])
    (page,) = parent.compact("conversation", keep_recent=0).archives
    assert page in parent.overview
    child = parent.spawn(policy="fork")
    assert ("archive/" in child.overview.partition("## ")[2], "we take SQLite" in child.overview) == (False, True)
    parent.merge_back(child)
    assert "- archived 16 messages: " in read_section(parent.overview, "Recent actions")


@pytest.mark.spec("C8", "F5")
def test_the_report_names_the_overview_if_lines_were_added(memory: Memory) -> None:
    parent = parent_of(memory)
    child = parent.spawn(policy="fork")
    child.write("detail/found.md", "# Found\n")
    assert parent.merge_back(child).combined == ()
    child.event("decision_made", "we take no cache")
    assert parent.merge_back(child).combined == ("overview.md",)
    assert "we take no cache" in parent.overview
    child.write("overview.md", child.overview + "\nMore.\n")
    child.event("decision_made", "we take no queue")
    report = parent.merge_back(child)
    assert sorted((*report.taken, *report.combined)) == ["overview.md"]

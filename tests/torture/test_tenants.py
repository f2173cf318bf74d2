"""Moving and erasing tenants with kills: one of the two places is always complete.

A retry is safe. The tables of faults call this M40 and C02.
"""

from __future__ import annotations

import shutil
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from postgres import Run, Server
from tenant_builders import create_tenant, fill_tenant
from torture import tenants
from torture.harness import ask, need_strace, points_of, run, sample_points, seeded_random, traced

from inmind.apps.tenants.folders import TenantHomes
from inmind.store.tenants import Tenants


@pytest.fixture(scope="module")
def servers(postgres_run: Run) -> Generator[list[Server]]:
    with postgres_run.server() as one, postgres_run.server() as other:
        one.start()
        other.start()
        yield [one, other]


def create_filled_tenant(place: Tenants) -> None:
    address = create_tenant(place, tenants.NAME)
    fill_tenant(address)
    fill_tenant(address, session="later")


# -- between homes: at system calls ---------------------------------------------------------------------------


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    "act",
    [tenants.move_tenant, pytest.param(tenants.erase_tenant, marks=pytest.mark.exhaustive)],
    ids=["moved", "erased"],
)
def test_a_move_killed_at_a_system_call_leaves_a_complete_tenant_or_none(tmp_path: Path, act: Any) -> None:
    need_strace()
    start = tmp_path / "start"
    create_filled_tenant(TenantHomes(start / "here"))
    before = ask(tenants.look, place=str(start / "here"))
    assert before

    def places(name: str) -> dict[str, str]:
        folder = shutil.copytree(start, tmp_path / name)
        both = {"here": str(folder / "here"), "there": str(folder / "there")}
        return both if act is tenants.move_tenant else {"here": both["here"]}

    whole = traced(act, trace=tmp_path / "counted.trace", **places("counted"))
    assert whole.code == 0, whole.output
    points = points_of(whole)
    assert len(points) > 20
    chosen, results = sample_points(points, 10, seeded_random()), set[bool]()
    for point in chosen:
        locations = places(f"at-{point}")
        inject = f"{point.call}:signal=SIGKILL:when={point.number}"
        outcome = traced(act, inject, trace=tmp_path / f"{point}.trace", **locations)
        assert outcome.killed, f"at {point} no fault was injected: {outcome.code} {outcome.output}"
        here = ask(tenants.look, place=locations["here"])
        assert here in (before, None), f"killed at {point}: part of it remains"
        results.add(here is not None)
        if act is tenants.move_tenant:
            there = ask(tenants.look, place=locations["there"])
            assert before in (here, there), f"killed at {point}: neither has it"
            again = retry(locations)
            assert not outcome.all("done") or again == ["NOT_FOUND"], again
            assert ask(tenants.look, place=locations["there"]) == before
        else:
            run(act, **locations)
        assert ask(tenants.look, place=locations["here"]) is None
        remaining = [path for place in locations.values() for path in Path(place).glob("*")]
        assert [path.name for path in remaining] == (["ada"] if act is tenants.move_tenant else [])
    assert results == {True, False}, "all kills happened on one side of the commit"


# -- with databases: before each statement --------------------------------------------------------------------


@pytest.mark.parametrize(
    "way",
    [
        "into a database",
        *(pytest.param(way, marks=pytest.mark.exhaustive) for way in ("out of one", "from one to another")),
    ],
)
def test_a_move_killed_between_statements_leaves_one_complete_place(
    tmp_path: Path, servers: list[Server], way: str
) -> None:
    one, other = (server.url(tcp=True) for server in servers)
    homes = str(tmp_path / "homes")
    here, there = {"into a database": (homes, one), "out of one": (one, homes)}.get(way, (one, other))
    kill_at(here, there, -1)  # the first one also creates objects of the server
    points = range(kill_at(here, there, -1))
    assert len(points) > 20
    for step in [*seeded_random().sample(points, 3), points[-1]]:
        kill_at(here, there, step)


@pytest.mark.parametrize("way", ["from a folder", pytest.param("from a database", marks=pytest.mark.exhaustive)])
def test_a_move_killed_in_the_last_round_leaves_the_source_usable(
    tmp_path: Path, servers: list[Server], way: str
) -> None:
    homes, url = str(tmp_path / "homes"), servers[0].url(tcp=True)
    here, there = (homes, url) if way == "from a folder" else (url, homes)
    with tenants.tenants_at(here) as source, tenants.tenants_at(there) as target:
        address = create_tenant(source, tenants.NAME)
        fill_tenant(address)
        assert run(tenants.move_tenant, here=here, there=there, die=True).killed
        fill_tenant(address, session="later")
        before = ask(tenants.look, place=here)
        assert retry({"here": here, "there": there}) == []
        assert (ask(tenants.look, place=here), ask(tenants.look, place=there)) == (None, before)
        target.erase(tenants.NAME)


def kill_at(here: str, there: str, step: int) -> int:
    """Start over, be killed, check, call again, check, and clean up."""
    places = {"here": here, "there": there}
    with tenants.tenants_at(here) as source, tenants.tenants_at(there) as target:
        create_filled_tenant(source)
        before = ask(tenants.look, place=here)
        outcome = run(tenants.move_tenant, step=step, **places)
        assert outcome.killed == (step >= 0), f"before statement {step}: {outcome.code} {outcome.output}"
        contents = ask(tenants.look, place=here), ask(tenants.look, place=there)
        assert before in contents, f"before statement {step} neither has it"
        again = retry(places)
        assert again in ([], ["NOT_FOUND"])
        assert again == [] or contents == (None, before)
        assert (ask(tenants.look, place=here), ask(tenants.look, place=there)) == (None, before)
        assert [one.can_log_in for one in target.list_all()] == [True]
        target.erase(tenants.NAME)
        assert not list(Path(here).glob("*"))
    return outcome.answer if step < 0 else 0


def retry(places: dict[str, str]) -> list[str]:
    """Call again; return the error, if there was one."""
    outcome = run(tenants.move_tenant, **places)
    assert outcome.code == 0, outcome.output
    return [code for code, _ in outcome.all("refused")]

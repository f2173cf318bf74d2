"""Moving and erasing tenants with kills: at every moment one of two places is complete, and a retry is safe.

The tables of faults call this M40 and C02.
"""

from __future__ import annotations

import shutil
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from postgres import Run, Server
from tenant_builders import lived, made
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


def a_tenant(place: Tenants) -> None:
    address = made(place, tenants.NAME)
    lived(address)
    lived(address, session="later")


# -- between homes: at system calls ---------------------------------------------------------------------------


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    "act", [tenants.carry, pytest.param(tenants.drop, marks=pytest.mark.exhaustive)], ids=["moved", "erased"]
)
def test_a_move_killed_at_a_system_call_leaves_a_complete_tenant_or_none(tmp_path: Path, act: Any) -> None:
    need_strace()
    start = tmp_path / "start"
    a_tenant(TenantHomes(start / "here"))
    before = ask(tenants.look, place=str(start / "here"))
    assert before

    def places(name: str) -> dict[str, str]:
        folder = shutil.copytree(start, tmp_path / name)
        both = {"here": str(folder / "here"), "there": str(folder / "there")}
        return both if act is tenants.carry else {"here": both["here"]}

    whole = traced(act, trace=tmp_path / "counted.trace", **places("counted"))
    assert whole.code == 0, whole.output
    points = points_of(whole)
    assert len(points) > 20
    chosen, left_in = sample_points(points, 10, seeded_random()), set[bool]()
    for point in chosen:
        where = places(f"at-{point}")
        inject = f"{point.call}:signal=SIGKILL:when={point.number}"
        ended = traced(act, inject, trace=tmp_path / f"{point}.trace", **where)
        assert ended.killed, f"at {point} nothing fired: {ended.code} {ended.output}"
        here = ask(tenants.look, place=where["here"])
        assert here in (before, None), f"killed at {point}: half of it is left"
        left_in.add(here is not None)
        if act is tenants.carry:
            there = ask(tenants.look, place=where["there"])
            assert before in (here, there), f"killed at {point}: neither has it"
            again = ask_again(where)
            assert not ended.all("done") or again == ["NOT_FOUND"], again
            assert ask(tenants.look, place=where["there"]) == before
        else:
            run(act, **where)
        assert ask(tenants.look, place=where["here"]) is None
        left = [path for place in where.values() for path in Path(place).glob("*")]
        assert [path.name for path in left] == (["ada"] if act is tenants.carry else [])
    assert left_in == {True, False}, "all kills fell on one side"


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
        address = made(source, tenants.NAME)
        lived(address)
        assert run(tenants.carry, here=here, there=there, die=True).killed
        lived(address, session="later")
        before = ask(tenants.look, place=here)
        assert ask_again({"here": here, "there": there}) == []
        assert (ask(tenants.look, place=here), ask(tenants.look, place=there)) == (None, before)
        target.erase(tenants.NAME)


def kill_at(here: str, there: str, step: int) -> int:
    """Start over, be killed, check, call again, check, and clean up."""
    places = {"here": here, "there": there}
    with tenants.tenants_at(here) as source, tenants.tenants_at(there) as target:
        a_tenant(source)
        before = ask(tenants.look, place=here)
        ended = run(tenants.carry, step=step, **places)
        assert ended.killed == (step >= 0), f"before statement {step}: {ended.code} {ended.output}"
        found = ask(tenants.look, place=here), ask(tenants.look, place=there)
        assert before in found, f"before statement {step} neither has it"
        again = ask_again(places)
        assert again in ([], ["NOT_FOUND"])
        assert again == [] or found == (None, before)
        assert (ask(tenants.look, place=here), ask(tenants.look, place=there)) == (None, before)
        assert [one.can_log_in for one in target.list_all()] == [True]
        target.erase(tenants.NAME)
        assert not list(Path(here).glob("*"))
    return ended.answer if step < 0 else 0


def ask_again(places: dict[str, str]) -> list[str]:
    """Call again; return the error, if there was one."""
    ended = run(tenants.carry, **places)
    assert ended.code == 0, ended.output
    return [code for code, _ in ended.all("refused")]

"""Memories in PostgreSQL used by many processes at once, like those of several machines.

The tables of faults call these K14, K17, K20 and K25; the actors are the same as for a home.
"""

from __future__ import annotations

import asyncio
import random
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from mcp import Client, StdioServerParameters, stdio_client
from mcp_client import call_tool
from postgres import Tenants
from terminal import command, inmind
from torture import writers
from torture.harness import RunningActor, ask, run, run_together, seeded_random, start_all
from torture.postgres import memory_steps
from torture.postgres.conftest import OwnServer

from inmind.store.postgres import PostgresStore


def write_together(url: str, folder: Path, *, processes: int, each: int, extra: int) -> None:
    """Writers, and at the same time command-line users and a client of the MCP server."""
    ask(memory_steps.begin, url=url)
    before = ask(memory_steps.all_notes, url=url)
    running = [RunningActor(memory_steps.note_many, url=url, name=f"w{n}", number=each) for n in range(processes)]

    def by_command(number: int) -> str:
        ran = inmind("--db", url, "note", f"cli-{number}", "--resource", memory_steps.RESOURCE)
        assert ran.returncode == 0, ran.stderr
        return f"cli-{number}"

    with ThreadPoolExecutor(2) as pool:
        by_server = pool.submit(lambda: asyncio.run(by_mcp(url, folder, extra)))
        by_user = pool.submit(lambda: [by_command(number) for number in range(extra)])
        written = [text for outcome in run_together(running) for text in outcome.answer]
        others = [*by_user.result(), *by_server.result()]
    notes = ask(memory_steps.all_notes, url=url)
    assert len(written) == processes * each
    assert len(others) == 2 * extra
    assert sorted(notes) == sorted([*before, *written, *others])
    print(f"{len(written)} notes by {processes} processes, {len(others)} by command line and server")


async def by_mcp(url: str, folder: Path, number: int) -> list[str]:
    program, *rest = command("--db", url, "mcp", "--resource", memory_steps.RESOURCE)
    parameters = StdioServerParameters(command=program, args=rest, cwd=folder)
    async with Client(stdio_client(parameters)) as client:
        for n in range(number):
            await call_tool(client, "working_memory_note", note=f"mcp-{n}")
    return [f"mcp-{n}" for n in range(number)]


@pytest.mark.spec("K14", "J2", "J8")
def test_four_processes_a_command_line_and_a_server_take_notes_in_one_memory(tenant_url: str, tmp_path: Path) -> None:
    write_together(tenant_url, tmp_path, processes=4, each=50, extra=2)


@pytest.mark.torture
@pytest.mark.spec("K14", "J2", "J8")
def test_eight_processes_a_command_line_and_a_server_take_1600_notes(tenant_url: str, tmp_path: Path) -> None:
    write_together(tenant_url, tmp_path, processes=8, each=200, extra=20)


@pytest.mark.spec("K20", "G7", "J9")
def test_one_of_five_processes_dreams_and_no_writer_waits(tenant_url: str) -> None:
    ask(memory_steps.begin, url=tenant_url)
    actors = [RunningActor(memory_steps.dream_at_once, url=tenant_url) for _ in range(5)]
    try:
        dreaming = start_all(actors)
        writer = RunningActor(memory_steps.note_many, url=tenant_url, name="late", number=10)
        late = run_together([writer])[0].answer
        dreaming.resume()
    finally:
        outcomes = [actor.finish() for actor in actors]
    assert sorted(one.answer[0] for one in outcomes) == ["DREAM_RUNNING"] * 4 + ["done"]
    result = ask(memory_steps.describe_dreams, url=tenant_url)
    assert result["dreams"] == ["done"]
    assert "harbour master" in result["page"]
    assert not [text for text in late if text in result["page"]], (
        "the dream used notes that were added after it started"
    )


def check_retry(url: str, call: str) -> None:
    first = ask(writers.retry, home=url, call=call)
    assert first["before"] == first["after"], "the retry repeated the effect"
    assert first["first"] == first["again"]
    assert first["refused"] == ("KEY_REUSED" if call in writers.OTHERS else "")
    later = ask(writers.retry, home=url, call=call)
    assert (later["first"], later["again"], later["after"]) == (first["first"], first["first"], first["after"])


def lose_reply(url: str, call: str) -> None:
    outcome = run(writers.lose_reply, home=url, call=call)
    assert outcome.killed, f"it was not killed: {outcome.code} {outcome.output}"
    assert outcome.all("calling") == [[call]]


@pytest.mark.spec("K25", "A6", "J8")
def test_a_retry_after_a_lost_reply_has_one_effect_and_one_result(tenants: Tenants) -> None:
    """A random selection of all calls."""
    for call in seeded_random().sample(sorted(writers.CALLS), 4):
        with tenants.fresh() as url:
            lose_reply(url, call)
            check_retry(url, call)


@pytest.mark.torture
@pytest.mark.spec("K25", "A6", "J8")
@pytest.mark.parametrize("call", writers.CALLS)
def test_a_retry_of_any_call_has_one_effect_and_one_result(tenants: Tenants, call: str) -> None:
    with tenants.fresh() as url, tenants.fresh() as other:
        lose_reply(url, call)
        check_retry(url, call)
        before, after = ask(writers.call_in, home=other, call=call)
        assert after > before, "a key of another tenant was used"


@pytest.mark.spec("K25", "P30", "J8")
def test_a_retry_after_a_server_restart_finds_the_first_result(own: OwnServer) -> None:
    url = own.tenant("retried")
    PostgresStore.open(url).close()
    lose_reply(url, "record")
    own.server.restart(random.choice(["fast", "immediate"]))
    check_retry(url, "record")

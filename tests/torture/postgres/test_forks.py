"""A store that was open when the process forked.

Parent and child continue with separate connections. The tables of faults call this K23. A shared connection would mix
the statements of both, and while one of them has it open, the server does not notice that the other has ended.
"""

from __future__ import annotations

import pytest
from torture.harness import RunningActor, ask
from torture.postgres.actors import (
    both_write,
    census,
    die_with_a_lock,
    fork_during_writes,
    fork_in_a_transaction,
    names,
    put,
)

from inmind.store.postgres import PostgresStore


@pytest.mark.spec("K23", "J2")
@pytest.mark.parametrize(
    "exit", [*(pytest.param(exit, marks=pytest.mark.exhaustive) for exit in ("sys.exit", "closed")), "killed"]
)
def test_parent_and_child_continue_to_write(tenant_url: str, exit: str) -> None:
    outcome = RunningActor(both_write, fresh=True, url=tenant_url, number=10, exit=exit).finish()
    assert outcome.code == 0, outcome.output
    wanted = [f"{name}-{n}" for name in ("parent", "child") for n in range(10)]
    assert sorted(ask(census, url=tenant_url)) == sorted(["before", *wanted, "after"])


@pytest.mark.spec("K23", "J2")
def test_a_fork_during_the_writes_of_other_threads(tenant_url: str) -> None:
    """Whichever lock a thread held, no child waits for it forever."""
    forks = 12
    outcome = RunningActor(fork_during_writes, url=tenant_url, forks=forks).finish()
    written = outcome.answer
    assert written, "no thread wrote anything"
    names_stored = ask(census, url=tenant_url)
    assert sorted(name for name in names_stored if name.startswith("child")) == sorted(
        f"child-{n}" for n in range(forks)
    )
    assert len(names_stored) == len(set(names_stored)) == written + forks


@pytest.mark.spec("K23")
def test_a_child_forked_inside_a_transaction_cannot_end_it(tenant_url: str) -> None:
    """Neither commit nor roll it back; and its own calls use a new connection."""
    result = ask(fork_in_a_transaction, url=tenant_url)
    assert result["child"] == ["STORE_UNAVAILABLE", "wrote"]
    assert sorted(ask(census, url=tenant_url)) == ["before", "by the child"]
    assert len(ask(census, url=tenant_url, stream="resource/parent")) == 3


@pytest.mark.spec("K23", "P33")
def test_locks_of_a_killed_parent_are_released_although_its_child_lives(tenant_url: str) -> None:
    actor = RunningActor(die_with_a_lock, fresh=True, url=tenant_url)
    actor.receive_until("waiting")
    store = PostgresStore.open(tenant_url, seconds=5)
    put(store, "by another", keyed=False)
    assert names(store) == ["before", "by another"]
    store.close()
    actor.resume()
    assert actor.finish().all("child alive") == [[]]

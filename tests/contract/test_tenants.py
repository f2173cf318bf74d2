"""What every place for tenants promises, be it a folder of homes or a database, whichever operator has it."""

from __future__ import annotations

from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest
from postgres import Run, Server
from tenant_builders import ODD_NAMES, OPERATOR, REFUSED_NAMES, lived, made, operators_url

from inmind import Memory
from inmind.apps.tenants.folders import TenantHomes
from inmind.errors import InmindError, InvalidInput, NotFound
from inmind.store.postgres.tenants import TenantRoles
from inmind.store.tenants import EMPTY_INVENTORY, Tenants

pytestmark = pytest.mark.spec("J8")


@pytest.fixture(scope="module")
def server(postgres_run: Run) -> Generator[Server]:
    with postgres_run.server() as own:
        own.start()
        operators_url(own)
        yield own


@pytest.fixture(params=["folder", "superuser", "operator"])
def tenants(request: pytest.FixtureRequest, tmp_path: Path) -> Generator[Tenants]:
    if request.param == "folder":
        with TenantHomes(tmp_path / "homes") as homes:
            yield homes
        return
    own: Server = request.getfixturevalue("server")
    user = OPERATOR if request.param == "operator" else "postgres"
    with TenantRoles(own.url(user, tcp=True)) as roles:
        yield roles
        for one in roles.list_all():
            roles.erase(one.name)


def names(tenants: Tenants) -> list[str]:
    return [one.name for one in tenants.list_all()]


def entered(tenants: Tenants, name: str) -> None:
    with tenants.open_as_operator(name):
        pass


# -- made ----------------------------------------------------------------------------------------------------


def test_a_tenant_that_was_made_opens_its_memory_by_its_address(tenants: Tenants) -> None:
    address = made(tenants, "ada")
    lived(address)
    with Memory.open(address, embedder=None) as memory:
        assert memory.session("shop").read("detail/harbour.md").startswith("# Harbour")
    [one] = tenants.list_all()
    assert (one.name, one.can_log_in) == ("ada", True)
    assert one.bytes > 1_000


def test_whatever_tenants_are_called_each_is_itself(tenants: Tenants) -> None:
    addresses = {name: made(tenants, name) for name in ODD_NAMES}
    assert names(tenants) == sorted(ODD_NAMES)
    for number, (name, address) in enumerate(addresses.items()):
        with Memory.open(address, embedder=None) as memory:
            memory.resource("ada").note(f"I am {name}")
            memory.session(f"own-{number}", resource="ada")
    for number, name in enumerate(ODD_NAMES):
        with tenants.open_as_operator(name) as place, Memory.open(place, embedder=None) as memory:
            assert [info.id for info in memory.sessions()] == [f"own-{number}"]
        assert tenants.inventory(name).versions.keys() == {"resource/ada", f"session/own-{number}"}
    for left, name in zip(range(len(ODD_NAMES) - 1, -1, -1), ODD_NAMES, strict=True):
        tenants.erase(name)
        assert len(names(tenants)) == left


@pytest.mark.parametrize("name", [*REFUSED_NAMES, None, 7, b"ada"], ids=repr)
def test_names_that_some_place_could_not_have_are_refused_everywhere(tenants: Tenants, name: str) -> None:
    calls: list[Callable[[str], object]] = [
        lambda name: made(tenants, name),
        tenants.inventory,
        partial(entered, tenants),
        tenants.erase,
    ]
    for call in calls:
        with pytest.raises(InvalidInput) as refused:
            call(name)
        assert refused.value.field == "name"
    assert names(tenants) == []


def test_a_name_that_somebody_has_is_refused_and_nothing_of_theirs_changes(tenants: Tenants) -> None:
    address = made(tenants, "ada")
    lived(address)
    before = tenants.inventory("ada")
    with pytest.raises(InvalidInput, match="a tenant name that does not exist yet"):
        made(tenants, "ada")
    assert tenants.inventory("ada") == before
    lived(address, session="later")


def test_one_who_was_killed_before_it_was_let_in_is_made_again(tenants: Tenants) -> None:
    """Nobody has heard its password, and nobody could have come in."""
    with pytest.raises(KeyboardInterrupt), tenants.create("ada"):
        raise KeyboardInterrupt
    lived(made(tenants, "ada"))
    assert tenants.inventory("ada").events > 3


# -- those there are -----------------------------------------------------------------------------------------


def test_of_whom_there_is_none_nothing_is_told_and_nothing_is_made(tenants: Tenants) -> None:
    made(tenants, "ada")
    for call in (tenants.inventory, partial(entered, tenants), tenants.erase):
        with pytest.raises(NotFound):
            call("bob")
    assert names(tenants) == ["ada"]
    assert tenants.identity("bob") is None


def test_an_inventory_is_what_there_is(tenants: Tenants) -> None:
    address = made(tenants, "ada")
    assert tenants.inventory("ada") == EMPTY_INVENTORY
    with Memory.open(address, embedder=None) as memory:
        memory.resource("ada").note("likes tea", key="a")
        memory.resource("ada").note("likes tea", key="a")
        memory.resource("ada").note("likes rum", key="b")
    inventory = tenants.inventory("ada")
    assert (inventory.versions, inventory.keys, inventory.events) == ({"resource/ada": 2}, 2, 2)


# -- erased --------------------------------------------------------------------------------------------------


def test_who_is_erased_is_gone_and_all_others_have_what_they_had(tenants: Tenants) -> None:
    ada, bob = made(tenants, "ada"), made(tenants, "bob")
    lived(ada)
    lived(bob)
    theirs, was = tenants.inventory("bob"), tenants.inventory("ada")
    assert tenants.erase("ada") == was
    assert names(tenants) == ["bob"]
    assert tenants.inventory("bob") == theirs
    lived(bob, session="later")
    with pytest.raises(NotFound):
        tenants.inventory("ada")
    assert made(tenants, "ada")
    assert tenants.inventory("ada").events == 0


def test_nobody_writes_to_a_tenant_that_is_held_and_everybody_does_afterwards(tenants: Tenants) -> None:
    address = made(tenants, "ada")
    lived(address)
    with Memory.open(address, embedder=None) as memory, ThreadPoolExecutor() as pool:
        with tenants.lock("ada") as held:
            seen = held.inventory()
            writing = pool.submit(memory.resource("ada").note, "said in the last moment")
            with Memory.open(held.place, embedder=None) as theirs:
                assert theirs.session("shop").read("detail/harbour.md").startswith("# Harbour")
            with pytest.raises(TimeoutError):
                writing.result(0.3)
            assert held.inventory() == seen
        writing.result(30)
    assert tenants.inventory("ada").events == seen.events + 1


def test_a_tenant_that_is_erased_while_it_is_held_is_gone_when_all_went_well(tenants: Tenants) -> None:
    address = made(tenants, "ada")
    lived(address)
    was = tenants.inventory("ada")
    with pytest.raises(ZeroDivisionError), tenants.lock("ada") as held:
        assert held.erase() or 1 / 0
    assert tenants.inventory("ada") == was
    lived(address, session="later")
    with tenants.lock("ada") as held:
        held.erase()
    assert names(tenants) == []


def test_whoever_has_a_memory_open_while_it_is_erased_is_told_with_the_next_call(tenants: Tenants) -> None:
    address = made(tenants, "ada")
    lived(address)
    with Memory.open(address, embedder=None) as memory:
        session = memory.session("shop")
        session.note("one more")
        tenants.erase("ada")
        for call in (
            lambda: memory.resource("ada").note("lost?"),
            lambda: session.note("lost?"),
            lambda: memory.session("new"),
        ):
            with pytest.raises(InmindError):
                call()
    assert names(tenants) == []

"""Guarantees of every collection of tenants: a folder of homes, or a database with any kind of operator."""

from __future__ import annotations

from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest
from postgres import Run, Server
from tenant_builders import ODD_NAMES, OPERATOR, REFUSED_NAMES, create_tenant, fill_tenant, operator_url

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
        operator_url(own)
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


def open_as_operator(tenants: Tenants, name: str) -> None:
    with tenants.open_as_operator(name):
        pass


# -- creating ------------------------------------------------------------------------------------------------


def test_a_new_tenant_opens_its_memory_with_its_address(tenants: Tenants) -> None:
    address = create_tenant(tenants, "ada")
    fill_tenant(address)
    with Memory.open(address, embedder=None) as memory:
        assert memory.session("shop").read("detail/harbour.md").startswith("# Harbour")
    [one] = tenants.list_all()
    assert (one.name, one.can_log_in) == ("ada", True)
    assert one.bytes > 1_000


def test_tenants_with_any_names_are_separate(tenants: Tenants) -> None:
    addresses = {name: create_tenant(tenants, name) for name in ODD_NAMES}
    assert names(tenants) == sorted(ODD_NAMES)
    for number, (name, address) in enumerate(addresses.items()):
        with Memory.open(address, embedder=None) as memory:
            memory.resource("ada").note(f"I am {name}")
            memory.session(f"own-{number}", resource="ada")
    for number, name in enumerate(ODD_NAMES):
        with tenants.open_as_operator(name) as place, Memory.open(place, embedder=None) as memory:
            assert [info.id for info in memory.sessions()] == [f"own-{number}"]
        assert tenants.inventory(name).versions.keys() == {"resource/ada", f"session/own-{number}"}
    for remaining, name in zip(range(len(ODD_NAMES) - 1, -1, -1), ODD_NAMES, strict=True):
        tenants.erase(name)
        assert len(names(tenants)) == remaining


@pytest.mark.parametrize("name", [*REFUSED_NAMES, None, 7, b"ada"], ids=repr)
def test_names_that_are_invalid_in_one_store_are_refused_by_all(tenants: Tenants, name: str) -> None:
    calls: list[Callable[[str], object]] = [
        lambda name: create_tenant(tenants, name),
        tenants.inventory,
        partial(open_as_operator, tenants),
        tenants.erase,
    ]
    for call in calls:
        with pytest.raises(InvalidInput) as refused:
            call(name)
        assert refused.value.field == "name"
    assert names(tenants) == []


def test_an_existing_name_is_refused_and_its_tenant_is_unchanged(tenants: Tenants) -> None:
    address = create_tenant(tenants, "ada")
    fill_tenant(address)
    before = tenants.inventory("ada")
    with pytest.raises(InvalidInput, match="a tenant name that does not exist yet"):
        create_tenant(tenants, "ada")
    assert tenants.inventory("ada") == before
    fill_tenant(address, session="later")


def test_a_tenant_left_by_a_killed_creation_is_created_again(tenants: Tenants) -> None:
    """Its password was never handed out, so no process could have logged in."""
    with pytest.raises(KeyboardInterrupt), tenants.create("ada"):
        raise KeyboardInterrupt
    fill_tenant(create_tenant(tenants, "ada"))
    assert tenants.inventory("ada").events > 3


# -- existing tenants ----------------------------------------------------------------------------------------


def test_an_unknown_tenant_is_not_found_and_not_created(tenants: Tenants) -> None:
    create_tenant(tenants, "ada")
    for call in (tenants.inventory, partial(open_as_operator, tenants), tenants.erase):
        with pytest.raises(NotFound):
            call("bob")
    assert names(tenants) == ["ada"]
    assert tenants.identity("bob") is None


def test_an_inventory_counts_all_streams_and_keys(tenants: Tenants) -> None:
    address = create_tenant(tenants, "ada")
    assert tenants.inventory("ada") == EMPTY_INVENTORY
    with Memory.open(address, embedder=None) as memory:
        memory.resource("ada").note("likes tea", key="a")
        memory.resource("ada").note("likes tea", key="a")
        memory.resource("ada").note("likes rum", key="b")
    inventory = tenants.inventory("ada")
    assert (inventory.versions, inventory.keys, inventory.events) == ({"resource/ada": 2}, 2, 2)


# -- erasing -------------------------------------------------------------------------------------------------


def test_an_erased_tenant_is_gone_and_the_others_are_unchanged(tenants: Tenants) -> None:
    ada, bob = create_tenant(tenants, "ada"), create_tenant(tenants, "bob")
    fill_tenant(ada)
    fill_tenant(bob)
    before_bob, before = tenants.inventory("bob"), tenants.inventory("ada")
    assert tenants.erase("ada") == before
    assert names(tenants) == ["bob"]
    assert tenants.inventory("bob") == before_bob
    fill_tenant(bob, session="later")
    with pytest.raises(NotFound):
        tenants.inventory("ada")
    assert create_tenant(tenants, "ada")
    assert tenants.inventory("ada").events == 0


def test_a_locked_tenant_refuses_writes_until_it_is_released(tenants: Tenants) -> None:
    address = create_tenant(tenants, "ada")
    fill_tenant(address)
    with Memory.open(address, embedder=None) as memory, ThreadPoolExecutor() as pool:
        with tenants.lock("ada") as held:
            seen = held.inventory()
            writing = pool.submit(memory.resource("ada").note, "written during the lock")
            with Memory.open(held.place, embedder=None) as theirs:
                assert theirs.session("shop").read("detail/harbour.md").startswith("# Harbour")
            with pytest.raises(TimeoutError):
                writing.result(0.3)
            assert held.inventory() == seen
        writing.result(30)
    assert tenants.inventory("ada").events == seen.events + 1


def test_a_locked_tenant_is_erased_when_the_block_succeeds(tenants: Tenants) -> None:
    address = create_tenant(tenants, "ada")
    fill_tenant(address)
    before = tenants.inventory("ada")
    with pytest.raises(ZeroDivisionError), tenants.lock("ada") as held:
        assert held.erase() or 1 / 0
    assert tenants.inventory("ada") == before
    fill_tenant(address, session="later")
    with tenants.lock("ada") as held:
        held.erase()
    assert names(tenants) == []


def test_an_open_memory_of_an_erased_tenant_fails_with_the_next_call(tenants: Tenants) -> None:
    address = create_tenant(tenants, "ada")
    fill_tenant(address)
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

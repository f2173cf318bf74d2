"""Moving a tenant between places: all its data arrives, and one place always has all of it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator
from contextlib import ExitStack
from pathlib import Path

import pytest
from bundle_builders import fill_home_with_all_kinds
from postgres import Run, Server, wait_until
from tenant_builders import PASSWORD, create_tenant, fill_tenant, operator_url

from inmind import Memory
from inmind.apps.tenants import TenantCopy, move, open_store
from inmind.apps.tenants.folders import TenantHomes
from inmind.core.events.crystals import NoteAdded
from inmind.core.events.documents import SettingsWritten
from inmind.errors import BundleDiverged, InmindError, InvalidInput, NotFound
from inmind.store.postgres.tenants import TenantRoles
from inmind.store.tenants import Tenants

pytestmark = pytest.mark.spec("J8")


@pytest.fixture(scope="module")
def servers(postgres_run: Run) -> Generator[list[Server]]:
    """Two servers; the operator of the second is no superuser."""
    with postgres_run.server() as one, postgres_run.server() as other:
        one.start()
        other.start()
        operator_url(other)
        yield [one, other]


Opening = Callable[[str], Tenants]


@pytest.fixture
def at(request: pytest.FixtureRequest, tmp_path: Path) -> Generator[Opening]:
    with ExitStack() as stack:

        def place(kind: str) -> Tenants:
            if not kind.startswith("server"):
                return stack.enter_context(TenantHomes(tmp_path / kind))
            servers: list[Server] = request.getfixturevalue("servers")
            one, other = servers
            url = one.url(tcp=True) if kind == "server" else other.url("operator", password=PASSWORD, tcp=True)
            roles = stack.enter_context(TenantRoles(url))
            stack.callback(lambda: [roles.erase(tenant.name) for tenant in roles.list_all()])
            return roles

        yield place


ROUTES = pytest.mark.parametrize(
    ("here", "there"),
    [
        pytest.param("homes", "elsewhere", marks=pytest.mark.exhaustive),
        ("homes", "server"),
        ("server", "homes"),
        pytest.param("server", "server of another", marks=pytest.mark.exhaustive),
    ],
    ids=lambda kind: kind,
)


class AddressLog(list[tuple[str, TenantCopy]]):
    """The addresses and copies that a move reports."""

    def __call__(self, address: str, copied: TenantCopy) -> None:
        self.append((address, copied))


def move_ada(source: Tenants, target: Tenants, log: AddressLog | None = None, **options: object) -> TenantCopy:
    received = AddressLog() if log is None else log
    return move("ada", source, target, on_address=received, watch=lambda _done, _total: None, **options)  # pyright: ignore[reportArgumentType] -- as the test says


def names(tenants: Tenants) -> list[str]:
    return [one.name for one in tenants.list_all()]


@ROUTES
def test_a_move_copies_everything_and_erases_the_source(at: Opening, here: str, there: str) -> None:
    source, target = at(here), at(there)
    create_tenant(source, "bob")
    address = create_tenant(source, "ada")
    fill_tenant(address)
    with Memory.open(address, embedder=None) as memory:
        for source_name in ("sessions", "memory"):
            memory.edit(memory.page("config.toml"), f"[search]\nsources = ['{source_name}']\n")
        before = [message.wire for message in memory.session("shop").state.conversation]
        texts = [memory.session("shop").read(path) for path in ("detail/harbour.md", "overview.md")]
    original, log = source.inventory("ada"), AddressLog()
    result = move_ada(source, target, log)
    assert (result.erased, result.left_out) == (True, ())
    assert (names(source), names(target)) == (["bob"], ["ada"])
    arrived = target.inventory("ada").versions
    assert arrived.items() >= original.versions.items()
    assert set(arrived) - set(original.versions) <= {"settings"}, "the settings of a file become events"
    assert result.inventory == original
    assert target.inventory("ada").keys == original.keys
    [(new, _)] = log
    with Memory.open(new, embedder=None) as memory:
        session = memory.session("shop")
        assert [message.wire for message in session.state.conversation] == before
        assert [session.read(path) for path in ("detail/harbour.md", "overview.md")] == texts
        assert memory.settings.search.sources == ("memory",)
        session.add([{"role": "user", "content": "Where is the harbour of shop?"}], key="asked")  # a repeated key
        assert len(session.state.conversation) == len(before)


def test_a_tenant_with_all_kinds_of_data_is_the_same_after_a_round_trip(at: Opening, tmp_path: Path) -> None:
    """Including dreams, whose events contain positions in the journal."""
    homes, server, back = at("homes"), at("server"), at("elsewhere")
    fill_home_with_all_kinds(Path(create_tenant(homes, "ada")))
    original = homes.inventory("ada")
    first = move_ada(homes, server)
    second = move_ada(server, back)
    assert (first.erased, second.erased) == (True, True)
    assert first.sha256 == second.sha256
    assert back.inventory("ada") == original
    with Memory.open(tmp_path / "elsewhere" / "ada", embedder=None) as memory:
        assert [dream.status for dream in memory.resource("ada").dreams()]
        assert memory.dream("ada").status == "done"


@ROUTES
def test_a_copy_of_a_tenant_in_use_can_be_updated_later(at: Opening, here: str, there: str) -> None:
    source, target = at(here), at(there)
    address = create_tenant(source, "ada")
    fill_tenant(address)
    log = AddressLog()
    assert not move_ada(source, target, log, keep=True).erased
    assert (names(source), names(target)) == (["ada"], ["ada"])
    fill_tenant(address, session="later")
    assert move_ada(source, target, log).erased
    assert names(source) == []
    fill_tenant(log[0][0], session="after")  # the first address still works
    assert {"session/shop", "session/later", "session/after"} <= {*target.inventory("ada").versions}


def ignore_progress(_done: int, _total: int) -> None:
    """Takes the progress of a move."""


class Writer(threading.Thread):
    """Writes notes until one is refused."""

    def __init__(self, address: str) -> None:
        super().__init__(daemon=True)
        self._address = address
        self.acknowledged: list[str] = []
        self.refusal: Exception | None = None

    def run(self) -> None:
        try:
            with Memory.open(self._address, embedder=None) as memory:
                for number in range(100_000):
                    resource, text = ("ada", "bob")[number % 2], f"thing number {number}"
                    memory.resource(resource).note(text, key=text)
                    self.acknowledged.append(text)
        except InmindError as error:
            self.refusal = error


@ROUTES
def test_a_move_during_writes_keeps_all_acknowledged_notes(at: Opening, here: str, there: str) -> None:
    source, target = at(here), at(there)
    address = create_tenant(source, "ada")
    fill_tenant(address)
    writer, log = Writer(address), AddressLog()
    writer.start()
    wait_until(lambda: len(writer.acknowledged) > 5, "no note was written")
    assert move_ada(source, target, log).erased
    writer.join(60)
    assert writer.refusal is not None, "the writer was not refused"
    [(_, copied)] = log
    with target.open_as_operator("ada") as place, open_store(place) as store:
        events = [event.payload for name in ("ada", "bob") for event in store.read(f"resource/{name}")]
    assert {note.text for note in events if isinstance(note, NoteAdded)} >= set(writer.acknowledged)
    assert copied.inventory.versions == target.inventory("ada").versions


@ROUTES
def test_a_move_that_fails_in_its_last_round_leaves_the_source_in_use(at: Opening, here: str, there: str) -> None:
    source, target = at(here), at(there)
    address = create_tenant(source, "ada")
    fill_tenant(address)

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        move("ada", source, target, on_address=interrupt, watch=ignore_progress)
    fill_tenant(address, session="later")
    log = AddressLog()
    assert move_ada(source, target, log).erased
    fill_tenant(log[0][0], session="after")
    assert {"session/shop", "session/later"} <= {*target.inventory("ada").versions}


# -- refusals -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("here", "there"), [("homes", "elsewhere"), ("homes", "server"), ("server", "homes")])
def test_a_tenant_is_not_moved_onto_another_of_the_same_name(at: Opening, here: str, there: str) -> None:
    source, target = at(here), at(there)
    fill_tenant(create_tenant(source, "ada"))
    other_address = create_tenant(target, "ada")
    for _ in ("an empty tenant", "a tenant with data"):
        before = source.inventory("ada"), target.inventory("ada")
        with pytest.raises(InvalidInput, match="does not exist yet"):
            move_ada(source, target)
        assert (source.inventory("ada"), target.inventory("ada")) == before
        fill_tenant(other_address)


def test_diverged_copies_are_left_unchanged(at: Opening) -> None:
    source, target = at("homes"), at("server")
    address = create_tenant(source, "ada")
    fill_tenant(address)
    log = AddressLog()
    move_ada(source, target, log, keep=True)
    for place in (address, log[0][0]):
        with Memory.open(place, embedder=None) as memory:
            memory.session("shop").add([{"role": "user", "content": f"Said in {place[:4]}"}])
    before = source.inventory("ada"), target.inventory("ada")
    with pytest.raises(BundleDiverged):
        move_ada(source, target)
    assert (source.inventory("ada"), target.inventory("ada")) == before


def test_a_tenant_is_not_moved_to_its_own_place(at: Opening, servers: list[Server], tmp_path: Path) -> None:
    """Its copy would be found complete, and the only data would be erased."""
    homes, server = at("homes"), at("server")
    fill_tenant(create_tenant(homes, "ada"))
    fill_tenant(create_tenant(server, "ada"))
    (tmp_path / "link").symlink_to(tmp_path / "homes")
    with TenantRoles(servers[0].url()) as by_its_socket, pytest.raises(InvalidInput, match="another place"):
        move_ada(server, by_its_socket)
    for folder in (tmp_path / "homes", tmp_path / "link", tmp_path / "homes" / "ada" / "sessions"):
        with pytest.raises(InvalidInput, match="another place"):
            move_ada(homes, TenantHomes(folder))
    assert homes.inventory("ada").events == server.inventory("ada").events > 3


def test_an_unknown_or_moved_tenant_is_not_found(at: Opening) -> None:
    source, target = at("homes"), at("server")
    with pytest.raises(NotFound, match="tenant list"):
        move_ada(source, target)
    assert names(target) == []
    fill_tenant(create_tenant(source, "ada"))
    move_ada(source, target)
    with pytest.raises(NotFound, match="moved already"):
        move_ada(source, target)


def test_nothing_is_erased_while_a_file_cannot_be_moved(at: Opening, tmp_path: Path) -> None:
    source, target = at("homes"), at("server")
    fill_tenant(create_tenant(source, "ada"))
    damaged = tmp_path / "homes/ada/resources/ada/MEMORY.md.damaged-1"
    damaged.parent.mkdir(parents=True, exist_ok=True)
    damaged.write_bytes(b"the only copy")
    result = move_ada(source, target)
    assert (result.erased, result.left_out) == (False, ("resources/ada/MEMORY.md.damaged-1",))
    assert damaged.read_bytes() == b"the only copy"
    damaged.rename(damaged.with_name("MEMORY.md.seed-backup"))  # the journal contains this file
    assert move_ada(source, target).erased


def test_the_history_of_settings_survives_a_move_through_a_folder(at: Opening) -> None:
    source, between, target = at("server"), at("homes"), at("server of another")
    fill_tenant(address := create_tenant(source, "ada"))

    def write(address: str, text: str) -> None:
        with Memory.open(address, embedder=None) as memory:
            memory.edit(memory.page("config.toml"), text)

    for number in (1, 2, 3):
        write(address, f"[model]\ndaily_tokens = {number}\n")
    log = AddressLog()
    move_ada(source, between, log)
    write(log[0][0], "[model]\ndaily_tokens = 4\n")
    move_ada(between, target, log)
    with target.open_as_operator("ada") as place, open_store(place) as store:
        texts = [event.payload.text for event in store.read("settings") if isinstance(event.payload, SettingsWritten)]
    assert texts == [f"[model]\ndaily_tokens = {number}\n" for number in (1, 2, 3, 4)]


def test_diverged_settings_are_left_unchanged(at: Opening) -> None:
    source, target = at("server"), at("server of another")
    fill_tenant(address := create_tenant(source, "ada"))
    log = AddressLog()
    move_ada(source, target, log, keep=True)
    for number, place in enumerate((address, log[0][0]), start=1):
        with Memory.open(place, embedder=None) as memory:
            memory.edit(memory.page("config.toml"), f"[model]\ndaily_tokens = {number}\n")
    result = move_ada(source, target)
    assert (result.erased, result.left_out) == (False, ("config.toml",))
    for number, place in enumerate((address, log[0][0]), start=1):
        with Memory.open(place, embedder=None) as memory:
            assert memory.page("config.toml").text == f"[model]\ndaily_tokens = {number}\n"


def test_invalid_settings_are_kept_as_an_imported_page(at: Opening, tmp_path: Path) -> None:
    source, target = at("homes"), at("server")
    fill_tenant(create_tenant(source, "ada"))
    (tmp_path / "homes/ada/config.toml").write_text("no = toml = at all\n")
    log = AddressLog()
    assert move_ada(source, target, log).erased
    with Memory.open(log[0][0], embedder=None) as memory:
        assert memory.page("config.toml.imported").text == "no = toml = at all\n"

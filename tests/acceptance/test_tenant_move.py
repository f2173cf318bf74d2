"""A tenant, moved from any place to any other: all of it, and never so that neither place has it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator
from contextlib import ExitStack
from pathlib import Path

import pytest
from bundle_builders import fill_home_with_all_kinds
from postgres import Run, Server, wait_until
from tenant_builders import PASSWORD, lived, made, operators_url

from inmind import Memory
from inmind.apps.tenants.folders import TenantHomes
from inmind.apps.tenants.move import MoveResult, TenantCopy, move, open_store
from inmind.core.events.crystals import NoteAdded
from inmind.core.events.documents import SettingsWritten
from inmind.errors import BundleDiverged, InmindError, InvalidInput, NotFound
from inmind.store.postgres.tenants import TenantRoles
from inmind.store.tenants import Tenants

pytestmark = pytest.mark.spec("J8")


@pytest.fixture(scope="module")
def servers(postgres_run: Run) -> Generator[list[Server]]:
    """Two of them; of the second the operator is no superuser."""
    with postgres_run.server() as one, postgres_run.server() as other:
        one.start()
        other.start()
        operators_url(other)
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
            stack.callback(lambda: [roles.erase(left.name) for left in roles.list_all()])
            return roles

        yield place


WAYS = pytest.mark.parametrize(
    ("here", "there"),
    [
        pytest.param("homes", "elsewhere", marks=pytest.mark.exhaustive),
        ("homes", "server"),
        ("server", "homes"),
        pytest.param("server", "server of another", marks=pytest.mark.exhaustive),
    ],
    ids=lambda kind: kind,
)


class Told(list[tuple[str, TenantCopy]]):
    """What a mover is told."""

    def __call__(self, address: str, copied: TenantCopy) -> None:
        self.append((address, copied))


def moved(source: Tenants, target: Tenants, told: Told | None = None, **options: object) -> MoveResult:
    heard = Told() if told is None else told
    return move("ada", source, target, on_address=heard, watch=lambda _done, _total: None, **options)  # pyright: ignore[reportArgumentType] -- as the test says


def names(tenants: Tenants) -> list[str]:
    return [one.name for one in tenants.list_all()]


@WAYS
def test_all_of_a_tenant_is_there_and_nothing_of_it_here(at: Opening, here: str, there: str) -> None:
    source, target = at(here), at(there)
    made(source, "bob")
    address = made(source, "ada")
    lived(address)
    with Memory.open(address, embedder=None) as memory:
        for source_of_words in ("sessions", "memory"):
            memory.edit(memory.page("config.toml"), f"[search]\nsources = ['{source_of_words}']\n")
        before = [message.wire for message in memory.session("shop").state.conversation]
        texts = [memory.session("shop").read(path) for path in ("detail/harbour.md", "overview.md")]
    was, told = source.inventory("ada"), Told()
    done = moved(source, target, told)
    assert (done.erased, done.copy.left_out) == (True, ())
    assert (names(source), names(target)) == (["bob"], ["ada"])
    arrived = target.inventory("ada").versions
    assert arrived.items() >= was.versions.items()
    assert set(arrived) - set(was.versions) <= {"settings"}, "those of a file are written down"
    assert done.copy.inventory == was
    assert target.inventory("ada").keys == was.keys
    [(new, _)] = told
    with Memory.open(new, embedder=None) as memory:
        session = memory.session("shop")
        assert [message.wire for message in session.state.conversation] == before
        assert [session.read(path) for path in ("detail/harbour.md", "overview.md")] == texts
        assert memory.settings.search.sources == ("memory",)
        session.add([{"role": "user", "content": "Where is the harbour of shop?"}], key="asked")  # a repeated key
        assert len(session.state.conversation) == len(before)


def test_a_life_with_everything_in_it_is_the_same_after_a_round_trip(at: Opening, tmp_path: Path) -> None:
    """Dreams among it, which say how far they have read in the journal that they stand in."""
    homes, server, back = at("homes"), at("server"), at("elsewhere")
    fill_home_with_all_kinds(Path(made(homes, "ada")))
    whole = homes.inventory("ada")
    there = moved(homes, server)
    again = moved(server, back)
    assert (there.erased, again.erased) == (True, True)
    assert there.copy.sha256 == again.copy.sha256
    assert back.inventory("ada") == whole
    with Memory.open(tmp_path / "elsewhere" / "ada", embedder=None) as memory:
        assert [dream.status for dream in memory.resource("ada").dreams()]
        assert memory.dream("ada").status == "done"


@WAYS
def test_a_copy_is_made_of_what_is_in_use_and_brought_up_to_date_later(at: Opening, here: str, there: str) -> None:
    source, target = at(here), at(there)
    address = made(source, "ada")
    lived(address)
    told = Told()
    assert not moved(source, target, told, keep=True).erased
    assert (names(source), names(target)) == (["ada"], ["ada"])
    lived(address, session="later")
    assert moved(source, target, told).erased
    assert names(source) == []
    lived(told[0][0], session="after")  # which lets in whom it was told to, also after the second time
    assert {"session/shop", "session/later", "session/after"} <= {*target.inventory("ada").versions}


def unwatched(_done: int, _total: int) -> None:
    """Whoever waits looks at something else."""


class Writer(threading.Thread):
    """One who never rests, until it is told that it cannot go on."""

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


@WAYS
def test_one_who_never_rests_is_moved_with_all_that_was_acknowledged(at: Opening, here: str, there: str) -> None:
    source, target = at(here), at(there)
    address = made(source, "ada")
    lived(address)
    writer, told = Writer(address), Told()
    writer.start()
    wait_until(lambda: len(writer.acknowledged) > 5, "nobody writes")
    before = len(writer.acknowledged)
    assert moved(source, target, told).erased
    writer.join(60)
    assert writer.refusal is not None, "it writes to what is gone"
    assert len(writer.acknowledged) > before, "nothing was written meanwhile"
    [(_, copied)] = told
    with target.open_as_operator("ada") as place, open_store(place) as store:
        events = [event.payload for name in ("ada", "bob") for event in store.read(f"resource/{name}")]
    assert {what.text for what in events if isinstance(what, NoteAdded)} >= set(writer.acknowledged)
    assert copied.inventory.versions == target.inventory("ada").versions


@WAYS
def test_a_move_that_fails_in_its_last_round_leaves_the_source_in_use(at: Opening, here: str, there: str) -> None:
    source, target = at(here), at(there)
    address = made(source, "ada")
    lived(address)

    def cut_off(*_: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        move("ada", source, target, on_address=cut_off, watch=unwatched)
    lived(address, session="later")
    told = Told()
    assert moved(source, target, told).erased
    lived(told[0][0], session="after")
    assert {"session/shop", "session/later"} <= {*target.inventory("ada").versions}


# -- what is refused ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("here", "there"), [("homes", "elsewhere"), ("homes", "server"), ("server", "homes")])
def test_another_tenant_of_the_same_name_is_never_mixed_up_with_it(at: Opening, here: str, there: str) -> None:
    source, target = at(here), at(there)
    lived(made(source, "ada"))
    theirs = made(target, "ada")
    for _ in ("with nothing in it", "with a life of its own"):
        before = source.inventory("ada"), target.inventory("ada")
        with pytest.raises(InvalidInput, match="does not exist yet"):
            moved(source, target)
        assert (source.inventory("ada"), target.inventory("ada")) == before
        lived(theirs)


def test_two_copies_that_have_both_gone_on_are_left_as_they_are(at: Opening) -> None:
    source, target = at("homes"), at("server")
    address = made(source, "ada")
    lived(address)
    told = Told()
    moved(source, target, told, keep=True)
    for place in (address, told[0][0]):
        with Memory.open(place, embedder=None) as memory:
            memory.session("shop").add([{"role": "user", "content": f"Said in {place[:4]}"}])
    before = source.inventory("ada"), target.inventory("ada")
    with pytest.raises(BundleDiverged):
        moved(source, target)
    assert (source.inventory("ada"), target.inventory("ada")) == before


def test_a_tenant_is_not_moved_to_its_own_place(at: Opening, servers: list[Server], tmp_path: Path) -> None:
    """By whichever way: a copy of itself would be found whole, and erased."""
    homes, server = at("homes"), at("server")
    lived(made(homes, "ada"))
    lived(made(server, "ada"))
    (tmp_path / "link").symlink_to(tmp_path / "homes")
    with TenantRoles(servers[0].url()) as by_its_socket, pytest.raises(InvalidInput, match="another place"):
        moved(server, by_its_socket)
    for folder in (tmp_path / "homes", tmp_path / "link", tmp_path / "homes" / "ada" / "sessions"):
        with pytest.raises(InvalidInput, match="another place"):
            moved(homes, TenantHomes(folder))
    assert homes.inventory("ada").events == server.inventory("ada").events > 3


def test_who_is_not_there_is_not_moved_and_who_was_moved_is_told_of(at: Opening) -> None:
    source, target = at("homes"), at("server")
    with pytest.raises(NotFound, match="tenant list"):
        moved(source, target)
    assert names(target) == []
    lived(made(source, "ada"))
    moved(source, target)
    with pytest.raises(NotFound, match="moved already"):
        moved(source, target)


def test_as_long_as_a_file_has_no_place_there_nothing_is_erased(at: Opening, tmp_path: Path) -> None:
    source, target = at("homes"), at("server")
    lived(made(source, "ada"))
    damaged = tmp_path / "homes/ada/resources/ada/MEMORY.md.damaged-1"
    damaged.parent.mkdir(parents=True, exist_ok=True)
    damaged.write_bytes(b"somebody's only copy")
    done = moved(source, target)
    assert (done.erased, done.copy.left_out) == (False, ("resources/ada/MEMORY.md.damaged-1",))
    assert damaged.read_bytes() == b"somebody's only copy"
    damaged.rename(damaged.with_name("MEMORY.md.seed-backup"))  # which is in the journal as well
    assert moved(source, target).erased


def test_what_settings_ever_were_comes_along_by_way_of_a_folder_too(at: Opening) -> None:
    source, between, target = at("server"), at("homes"), at("server of another")
    lived(address := made(source, "ada"))

    def write(address: str, text: str) -> None:
        with Memory.open(address, embedder=None) as memory:
            memory.edit(memory.page("config.toml"), text)

    for number in (1, 2, 3):
        write(address, f"[model]\ndaily_tokens = {number}\n")
    told = Told()
    moved(source, between, told)
    write(told[0][0], "[model]\ndaily_tokens = 4\n")
    moved(between, target, told)
    with target.open_as_operator("ada") as place, open_store(place) as store:
        texts = [event.payload.text for event in store.read("settings") if isinstance(event.payload, SettingsWritten)]
    assert texts == [f"[model]\ndaily_tokens = {number}\n" for number in (1, 2, 3, 4)]


def test_settings_that_have_gone_on_in_both_places_are_left_as_they_are(at: Opening) -> None:
    source, target = at("server"), at("server of another")
    lived(address := made(source, "ada"))
    told = Told()
    moved(source, target, told, keep=True)
    for number, place in enumerate((address, told[0][0]), start=1):
        with Memory.open(place, embedder=None) as memory:
            memory.edit(memory.page("config.toml"), f"[model]\ndaily_tokens = {number}\n")
    done = moved(source, target)
    assert (done.erased, done.copy.left_out) == (False, ("config.toml",))
    for number, place in enumerate((address, told[0][0]), start=1):
        with Memory.open(place, embedder=None) as memory:
            assert memory.page("config.toml").text == f"[model]\ndaily_tokens = {number}\n"


def test_settings_that_cannot_be_read_come_along_for_a_person_to_look_at(at: Opening, tmp_path: Path) -> None:
    source, target = at("homes"), at("server")
    lived(made(source, "ada"))
    (tmp_path / "homes/ada/config.toml").write_text("no = toml = at all\n")
    told = Told()
    assert moved(source, target, told).erased
    with Memory.open(told[0][0], embedder=None) as memory:
        assert memory.page("config.toml.imported").text == "no = toml = at all\n"

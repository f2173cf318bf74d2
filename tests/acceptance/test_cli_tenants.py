"""`inmind tenant` as an operator meets it: in a process of its own and in this one, on a database and on a folder."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from collections.abc import Generator
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from postgres import Run, Server
from tenant_builders import PASSWORD, lived, made, operators_url, tell
from terminal import command, fitting, inmind
from typer.testing import CliRunner, Result

from inmind import Memory
from inmind.apps.cli.app import app
from inmind.apps.tenants.folders import TenantHomes
from inmind.store.postgres.tenants import TenantRoles
from inmind.store.tenants import Tenants

pytestmark = pytest.mark.spec("J8")


@pytest.fixture(autouse=True)
def _unnamed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "somebody"))
    for name in ("INMIND_HOME", "INMIND_DB"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(scope="module")
def server(postgres_run: Run) -> Generator[Server]:
    with postgres_run.server() as own:
        own.start()
        operators_url(own)
        tell(own.url(), "CREATE EXTENSION vector")
        yield own


@pytest.fixture(params=["folder", "database"])
def at(request: pytest.FixtureRequest, tmp_path: Path) -> Generator[tuple[list[str], Tenants]]:
    """How tenants are named to a command, and the tenants."""
    if request.param == "folder":
        yield ["--home", str(tmp_path / "homes")], TenantHomes(tmp_path / "homes")
        return
    own: Server = request.getfixturevalue("server")
    url = own.url("operator", password=PASSWORD, tcp=True)
    with TenantRoles(url) as roles:
        yield ["--db", url], roles
        for one in roles.list_all():
            roles.erase(one.name)


def here(*arguments: str, stdin: str = "") -> Result:
    return CliRunner().invoke(app, ["tenant", *arguments], input=stdin)


def refused(ran: Result) -> str:
    assert (ran.exit_code, ran.stderr.count("\n")) == (fitting(ran.stderr), 1), ran.stderr
    return ran.stderr


def test_each_command_in_a_process_of_its_own(at: tuple[list[str], Tenants], tmp_path: Path) -> None:
    where, tenants = at
    ran = inmind("tenant", "create", "ada", *where)
    assert (ran.returncode, ran.stdout.count("\n"), ran.stderr) == (0, 1, "")
    lived(ran.stdout.strip())
    ran = inmind("tenant", "list", *where)
    assert ran.stdout.splitlines()[1].startswith("ada")
    ran = inmind("tenant", "export", "ada", "ada.inmind", *where)
    assert ran.stdout.startswith("Exported 1 session, 1 resource"), ran
    with Memory.open(tmp_path / "copy", embedder=None) as memory:
        assert memory.import_bundle(tmp_path / "ada.inmind").sessions == 1
    ran = inmind("tenant", "move", "ada", "--to", str(tmp_path / "elsewhere"), *where)
    assert (ran.returncode, ran.stderr) == (0, "")
    address, said = ran.stdout.splitlines()
    assert (address, said[:8]) == (str(tmp_path / "elsewhere" / "ada"), "Moved 2 ")
    lived(address, session="later")
    assert [one.name for one in tenants.list_all()] == []
    ran = inmind("tenant", "move", "ada", "--to", where[1], "--home", str(tmp_path / "elsewhere"))
    lived(ran.stdout.splitlines()[0], session="back again")
    ran = inmind("tenant", "erase", "ada", "--yes", *where)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout.startswith("Erased tenant 'ada': 4 streams, ")
    assert [one.name for one in tenants.list_all()] == []
    assert inmind("tenant", "list", *where).stdout.startswith("No tenants in ")


def test_each_command_prints_json(at: tuple[list[str], Tenants], tmp_path: Path) -> None:
    where, _ = at
    created = json.loads(here("create", "ada", "--json", *where).stdout)
    assert [*created] == ["tenant", "address"]
    lived(created["address"])
    [listed] = json.loads(here("list", "--json", *where).stdout)
    assert (listed["name"], listed["admitted"]) == ("ada", True)
    exported = json.loads(here("export", "ada", "ada.inmind", "--json", *where).stdout)
    assert exported["sessions"] == 1
    moved = json.loads(here("move", "ada", "--to", str(tmp_path / "there"), "--keep", "--json", *where).stdout)
    assert (moved["address"], moved["left_out"], len(moved["sha256"])) == (str(tmp_path / "there" / "ada"), [], 64)
    erased = json.loads(here("erase", "ada", "--yes", "--json", *where).stdout)
    assert {erased[name] for name in ("streams", "events", "keys")} == {
        moved[name] for name in ("streams", "events", "keys")
    }


def test_an_export_goes_into_a_pipe_too(at: tuple[list[str], Tenants], tmp_path: Path) -> None:
    where, tenants = at
    lived(made(tenants, "ada"))
    piped = subprocess.run(command("tenant", "export", "ada", "-", *where), capture_output=True, timeout=60, check=True)
    (tmp_path / "piped").write_bytes(piped.stdout)
    with Memory.open(tmp_path / "copy", embedder=None) as memory:
        assert memory.import_bundle(tmp_path / "piped").resources == 1


def test_an_existing_file_is_not_overwritten(at: tuple[list[str], Tenants], tmp_path: Path) -> None:
    where, tenants = at
    lived(made(tenants, "ada"))
    (tmp_path / "there").write_text("somebody's")
    assert "FILE" in refused(here("export", "ada", "there", *where))
    assert here("export", "ada", "there", "--force", *where).exit_code == 0


@pytest.mark.parametrize("name", ["pg_ada", "a\nb", "public", "", "n" * 64])
def test_a_name_that_does_not_fit_is_refused_by_its_argument(at: tuple[list[str], Tenants], name: str) -> None:
    where, tenants = at
    for arguments in (["create", name], ["export", name, "x"], ["erase", name, "--yes"], ["move", name, "--to", "y"]):
        assert "INVALID_INPUT: NAME: expected a printable name" in refused(here(*arguments, *where))
    assert tenants.list_all() == []


def test_who_is_not_there_is_not_found(at: tuple[list[str], Tenants]) -> None:
    where, _ = at
    for arguments in (["export", "ada", "x"], ["erase", "ada", "--yes"], ["move", "ada", "--to", "y"]):
        assert "NOT_FOUND: no tenant 'ada'" in refused(here(*arguments, *where))


def test_a_mistyped_name_is_answered_with_the_nearest(at: tuple[list[str], Tenants]) -> None:
    where, tenants = at
    made(tenants, "Fish & Sons")
    assert "did you mean 'Fish & Sons'?" in refused(here("export", "Fish & Son", "x", *where))


def test_an_admitted_tenant_is_told_which_password_is_valid(server: Server, tmp_path: Path) -> None:
    homes, url = TenantHomes(tmp_path / "homes"), server.url(tcp=True)
    lived(made(homes, "ada"))
    first = here("move", "ada", "--keep", "--to", url, "--home", homes.place)
    assert ("password" in first.stderr, bool(urlsplit(first.stdout.split()[0]).password)) == (False, True)
    again = here("move", "ada", "--to", url, "--home", homes.place)
    assert "its password is the one printed then" in again.stderr
    lived(first.stdout.split()[0], session="later")
    with TenantRoles(url) as roles:
        roles.erase("ada")


def test_a_move_within_a_server_says_which_way_there_is(server: Server, tmp_path: Path) -> None:
    url = server.url(tcp=True)
    tell(url, "CREATE DATABASE elsewhere")
    with TenantRoles(url) as roles, TenantRoles(server.url(database="elsewhere", tcp=True)) as others:
        lived(made(roles, "ada"))
        to = ["--to", server.url(database="elsewhere", tcp=True)]
        complaint = refused(here("move", "ada", *to, "--db", url))
        assert "move a tenant of another database on it to a folder first" in complaint
        assert here("move", "ada", "--to", str(tmp_path / "homes"), "--db", url).exit_code == 0
        assert here("move", "ada", *to, "--home", str(tmp_path / "homes")).exit_code == 0
        others.erase("ada")
    tell(url, "DROP DATABASE elsewhere")


def test_who_has_to_do_without_vectors_is_told_by_whom_they_come(server: Server) -> None:
    """The operator is no superuser, and the extension is not there."""
    tell(server.url(), "CREATE DATABASE plain", "GRANT CREATE ON DATABASE plain TO operator")
    where = ["--db", server.url("operator", password=PASSWORD, database="plain", tcp=True)]
    ran = here("create", "ada", *where)
    assert (ran.exit_code, ran.stdout.count("\n")) == (0, 1)
    assert "has no pgvector: search uses words only until a superuser runs CREATE EXTENSION vector" in ran.stderr
    assert here("erase", "ada", "--yes", *where).exit_code == 0
    tell(server.url(), "DROP DATABASE plain")


def test_a_name_that_is_taken_is_refused(at: tuple[list[str], Tenants]) -> None:
    where, tenants = at
    made(tenants, "ada")
    assert "NAME: expected a tenant name that does not exist yet" in refused(here("create", "ada", *where))


# -- erased, but asked first ----------------------------------------------------------------------------------


def test_without_a_terminal_nothing_is_erased_without_yes(at: tuple[list[str], Tenants]) -> None:
    where, tenants = at
    made(tenants, "ada")
    assert "stdin is not a terminal: pass --yes" in refused(here("erase", "ada", *where, stdin="y\n"))
    assert [one.name for one in tenants.list_all()] == ["ada"]


@pytest.mark.parametrize(("answer", "left"), [pytest.param("y\n", [], marks=pytest.mark.exhaustive), ("\n", ["ada"])])
def test_a_person_is_asked_and_told_what_there_is(at: tuple[list[str], Tenants], answer: str, left: list[str]) -> None:
    where, tenants = at
    lived(made(tenants, "ada"))
    said = typed(answer, "tenant", "erase", "ada", *where)
    assert "Erase tenant 'ada' in " in said
    assert " permanently (2 streams, 6 events)? [y/N]" in said
    assert ("Erased tenant 'ada'" in said) == (not left)
    assert [one.name for one in tenants.list_all()] == left


def typed(answer: str, *arguments: str) -> str:
    """What is on the terminal in the end, where somebody answers this."""
    ours, theirs = pty.openpty()
    with subprocess.Popen(command(*arguments), stdin=theirs, stdout=theirs, stderr=theirs) as process:
        os.close(theirs)
        said = b""
        with suppress(OSError):  # how a terminal says that nobody writes any more
            while more := os.read(ours, 4_096):
                said += more
                if b"[y/N]" in more:
                    os.write(ours, answer.encode())
        process.wait(60)
    os.close(ours)
    return said.decode()


# -- passwords ------------------------------------------------------------------------------------------------


def test_a_password_can_be_read_from_stdin(server: Server, tmp_path: Path) -> None:
    url = server.url(tcp=True)
    with TenantRoles(url) as roles:
        ran = inmind("tenant", "create", "ada", "--password-stdin", "--db", url, stdin="of my choice\n")
        assert urlsplit(ran.stdout.strip()).password == "of%20my%20choice"
        ran = here("create", "bob", "--password-stdin", "--db", url, stdin="\n")
        assert ("password" in refused(ran), ran.stdout) == (True, "")
        lived(made(homes := TenantHomes(tmp_path / "homes"), "bob"))
        ran = here("move", "bob", "--password-stdin", "--to", url, "--home", homes.place, stdin="\n")
        assert ("password" in refused(ran), ran.stdout) == (True, "")
        assert [one.name for one in roles.list_all()] == ["ada"]
        roles.erase("ada")
        for one in roles.list_all():
            roles.erase(one.name)


def test_a_home_has_no_password(tmp_path: Path) -> None:
    where = ["--home", str(tmp_path / "homes")]
    assert "--password-stdin" in refused(here("create", "ada", "--password-stdin", *where, stdin="x\n"))
    assert not (tmp_path / "homes" / "ada").exists()


def test_nothing_that_is_said_has_an_operators_password_in_it(server: Server) -> None:
    wrong = server.url("operator", password="hush-hush", tcp=True)
    weak = server.url("postgres", tcp=True)
    with TenantRoles(weak) as roles:
        address = made(roles, "ada", password="hush-hush")
        for arguments in (
            ["list", "--db", wrong],
            ["create", "bob", "--db", address],
            ["create", "bob", "--debug", "--db", address],
            ["move", "ada", "--to", wrong, "--db", weak],
            ["erase", "ada", "--yes", "--db", address],
            ["list", "--db", "postgresql://a:hush-hush@b:c@d/e"],
        ):
            ran = inmind("tenant", *arguments)
            assert ran.returncode != 0
            assert "hush-hush" not in ran.stdout + ran.stderr, arguments
        roles.erase("ada")


# -- which place is meant -------------------------------------------------------------------------------------


def test_the_usual_home_is_no_folder_of_homes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever names none has forgotten to: tenants would lie in somebody's own memory."""
    for arguments in (["list"], ["create", "ada"], ["list", "--home", str(tmp_path / "somebody" / ".inmind")]):
        assert "a folder of homes, not the default home" in refused(here(*arguments))
    monkeypatch.setenv("INMIND_HOME", str(tmp_path / "mine"))
    assert "default home" in refused(here("create", "ada"))
    assert not (tmp_path / "mine").exists()


def test_an_operators_url_can_be_in_the_environment(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a command line others could read it."""
    monkeypatch.setenv("INMIND_DB", server.url(tcp=True))
    assert "No tenants" in here("list").stdout


def test_a_place_that_is_none_is_said_of_the_option_that_named_it(tmp_path: Path) -> None:
    lived(tmp_path / "home")
    assert "--home: expected a folder of homes" in refused(here("list", "--home", str(tmp_path / "home")))
    made(TenantHomes(tmp_path / "homes"), "ada")
    where = ["--home", str(tmp_path / "homes")]
    assert "--to: " in refused(here("move", "ada", "--to", str(tmp_path / "home"), *where))
    assert "--to: " in refused(here("move", "ada", "--to", str(tmp_path / "homes"), *where))


def test_files_without_a_place_are_named_and_the_move_has_failed(server: Server, tmp_path: Path) -> None:
    homes = TenantHomes(tmp_path / "homes")
    lived(made(homes, "ada"))
    damaged = tmp_path / "homes/ada/resources/ada/MEMORY.md.damaged-1"
    damaged.parent.mkdir(parents=True, exist_ok=True)
    damaged.write_bytes(b"somebody's only copy")
    url = server.url(tcp=True)
    ran = here("move", "ada", "--to", url, "--home", str(tmp_path / "homes"))
    assert (ran.exit_code, "MEMORY.md.damaged-1" in ran.stderr) == (1, True)
    assert [one.name for one in homes.list_all()] == ["ada"]
    with TenantRoles(url) as roles:
        roles.erase("ada")


def test_commands_on_a_folder_need_no_driver_of_a_database(tmp_path: Path) -> None:
    code = "import sys; sys.modules['psycopg'] = None\nfrom inmind.apps.cli import main; main()\n"
    for arguments, code_of_it, said in (
        (["create", "ada", "--home", str(tmp_path / "homes")], 0, ""),
        (["list", "--db", "postgresql://a@b/c"], 2, "inmind[postgres]"),
    ):
        asked = [sys.executable, "-c", code, "tenant", *arguments]
        ran = subprocess.run(asked, capture_output=True, text=True, timeout=60, check=False)
        assert (ran.returncode, said in ran.stderr) == (code_of_it, True), ran.stderr

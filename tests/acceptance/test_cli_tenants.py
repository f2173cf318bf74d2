"""`inmind tenant` on a database and on a folder of homes."""

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
from click.testing import CliRunner, Result
from postgres import Run, Server
from tenant_builders import PASSWORD, create_tenant, execute_sql, fill_tenant, operator_url
from terminal import command, exit_code_for, inmind

from inmind import Memory
from inmind.apps.cli.app import app
from inmind.apps.tenants.folders import TenantHomes
from inmind.store.postgres.tenants import TenantRoles
from inmind.store.tenants import Tenants

pytestmark = pytest.mark.spec("J8")


@pytest.fixture(autouse=True)
def _no_default_place(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "operator"))
    for name in ("INMIND_HOME", "INMIND_DB"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(scope="module")
def server(postgres_run: Run) -> Generator[Server]:
    with postgres_run.server() as own:
        own.start()
        operator_url(own)
        execute_sql(own.url(), "CREATE EXTENSION vector")
        yield own


@pytest.fixture(params=["folder", "database"])
def tenant_place(request: pytest.FixtureRequest, tmp_path: Path) -> Generator[tuple[list[str], Tenants]]:
    """The options that name a place of tenants, and its tenants."""
    if request.param == "folder":
        yield ["--home", str(tmp_path / "homes")], TenantHomes(tmp_path / "homes")
        return
    own: Server = request.getfixturevalue("server")
    url = own.url("operator", password=PASSWORD, tcp=True)
    with TenantRoles(url) as roles:
        yield ["--db", url], roles
        for one in roles.list_all():
            roles.erase(one.name)


def run_tenant(*arguments: str, stdin: str = "") -> Result:
    return CliRunner().invoke(app, ["tenant", *arguments], input=stdin)


def error_line(ran: Result) -> str:
    assert (ran.exit_code, ran.stderr.count("\n")) == (exit_code_for(ran.stderr), 1), ran.stderr
    return ran.stderr


def test_each_command_works_in_a_separate_process(tenant_place: tuple[list[str], Tenants], tmp_path: Path) -> None:
    where, tenants = tenant_place
    ran = inmind("tenant", "create", "ada", *where)
    assert (ran.returncode, ran.stdout.count("\n"), ran.stderr) == (0, 1, "")
    fill_tenant(ran.stdout.strip())
    ran = inmind("tenant", "list", *where)
    assert ran.stdout.splitlines()[1].startswith("ada")
    ran = inmind("tenant", "export", "ada", "ada.inmind", *where)
    assert ran.stdout.startswith("Exported 1 session, 1 resource"), ran
    with Memory.open(tmp_path / "copy", embedder=None) as memory:
        assert memory.import_bundle(tmp_path / "ada.inmind").sessions == 1
    ran = inmind("tenant", "move", "ada", "--to", str(tmp_path / "elsewhere"), *where)
    assert (ran.returncode, ran.stderr) == (0, "")
    address, summary = ran.stdout.splitlines()
    assert (address, summary[:8]) == (str(tmp_path / "elsewhere" / "ada"), "Moved 2 ")
    fill_tenant(address, session="later")
    assert [one.name for one in tenants.list_all()] == []
    ran = inmind("tenant", "move", "ada", "--to", where[1], "--home", str(tmp_path / "elsewhere"))
    fill_tenant(ran.stdout.splitlines()[0], session="back again")
    ran = inmind("tenant", "erase", "ada", "--yes", *where)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout.startswith("Erased tenant 'ada': 4 streams, ")
    assert [one.name for one in tenants.list_all()] == []
    assert inmind("tenant", "list", *where).stdout.startswith("No tenants in ")


def test_each_command_prints_json(tenant_place: tuple[list[str], Tenants], tmp_path: Path) -> None:
    where, _ = tenant_place
    created = json.loads(run_tenant("create", "ada", "--json", *where).stdout)
    assert [*created] == ["tenant", "address"]
    fill_tenant(created["address"])
    [listed] = json.loads(run_tenant("list", "--json", *where).stdout)
    assert (listed["name"], listed["admitted"]) == ("ada", True)
    exported = json.loads(run_tenant("export", "ada", "ada.inmind", "--json", *where).stdout)
    assert exported["sessions"] == 1
    moved = json.loads(run_tenant("move", "ada", "--to", str(tmp_path / "there"), "--keep", "--json", *where).stdout)
    assert (moved["address"], moved["left_out"], len(moved["sha256"])) == (str(tmp_path / "there" / "ada"), [], 64)
    erased = json.loads(run_tenant("erase", "ada", "--yes", "--json", *where).stdout)
    assert {erased[name] for name in ("streams", "events", "keys")} == {
        moved[name] for name in ("streams", "events", "keys")
    }


def test_an_export_can_be_piped(tenant_place: tuple[list[str], Tenants], tmp_path: Path) -> None:
    where, tenants = tenant_place
    fill_tenant(create_tenant(tenants, "ada"))
    piped = subprocess.run(command("tenant", "export", "ada", "-", *where), capture_output=True, timeout=60, check=True)
    (tmp_path / "piped").write_bytes(piped.stdout)
    with Memory.open(tmp_path / "copy", embedder=None) as memory:
        assert memory.import_bundle(tmp_path / "piped").resources == 1


def test_an_existing_file_is_not_overwritten(tenant_place: tuple[list[str], Tenants], tmp_path: Path) -> None:
    where, tenants = tenant_place
    fill_tenant(create_tenant(tenants, "ada"))
    (tmp_path / "there").write_text("other data")
    assert "FILE" in error_line(run_tenant("export", "ada", "there", *where))
    assert run_tenant("export", "ada", "there", "--force", *where).exit_code == 0


@pytest.mark.parametrize("name", ["pg_ada", "a\nb", "public", "", "n" * 64])
def test_an_invalid_name_is_refused(tenant_place: tuple[list[str], Tenants], name: str) -> None:
    where, tenants = tenant_place
    for arguments in (["create", name], ["export", name, "x"], ["erase", name, "--yes"], ["move", name, "--to", "y"]):
        assert "INVALID_INPUT: NAME: expected a printable name" in error_line(run_tenant(*arguments, *where))
    assert tenants.list_all() == []


def test_an_unknown_tenant_is_not_found(tenant_place: tuple[list[str], Tenants]) -> None:
    where, _ = tenant_place
    for arguments in (["export", "ada", "x"], ["erase", "ada", "--yes"], ["move", "ada", "--to", "y"]):
        assert "NOT_FOUND: no tenant 'ada'" in error_line(run_tenant(*arguments, *where))


def test_a_mistyped_name_suggests_the_nearest_one(tenant_place: tuple[list[str], Tenants]) -> None:
    where, tenants = tenant_place
    create_tenant(tenants, "Fish & Sons")
    assert "did you mean 'Fish & Sons'?" in error_line(run_tenant("export", "Fish & Son", "x", *where))


def test_a_repeated_move_says_which_password_is_valid(server: Server, tmp_path: Path) -> None:
    homes, url = TenantHomes(tmp_path / "homes"), server.url(tcp=True)
    fill_tenant(create_tenant(homes, "ada"))
    first = run_tenant("move", "ada", "--keep", "--to", url, "--home", homes.place)
    assert ("password" in first.stderr, bool(urlsplit(first.stdout.split()[0]).password)) == (False, True)
    again = run_tenant("move", "ada", "--to", url, "--home", homes.place)
    assert "its password is the one printed then" in again.stderr
    fill_tenant(first.stdout.split()[0], session="later")
    with TenantRoles(url) as roles:
        roles.erase("ada")


def test_a_move_within_a_server_suggests_a_folder_first(server: Server, tmp_path: Path) -> None:
    url = server.url(tcp=True)
    execute_sql(url, "CREATE DATABASE elsewhere")
    with TenantRoles(url) as roles, TenantRoles(server.url(database="elsewhere", tcp=True)) as others:
        fill_tenant(create_tenant(roles, "ada"))
        to = ["--to", server.url(database="elsewhere", tcp=True)]
        complaint = error_line(run_tenant("move", "ada", *to, "--db", url))
        assert "move a tenant of another database on it to a folder first" in complaint
        assert run_tenant("move", "ada", "--to", str(tmp_path / "homes"), "--db", url).exit_code == 0
        assert run_tenant("move", "ada", *to, "--home", str(tmp_path / "homes")).exit_code == 0
        others.erase("ada")
    execute_sql(url, "DROP DATABASE elsewhere")


def test_a_database_without_pgvector_names_the_command_for_a_superuser(server: Server) -> None:
    """The operator is not a superuser, and the extension is not installed."""
    execute_sql(server.url(), "CREATE DATABASE plain", "GRANT CREATE ON DATABASE plain TO operator")
    where = ["--db", server.url("operator", password=PASSWORD, database="plain", tcp=True)]
    ran = run_tenant("create", "ada", *where)
    assert (ran.exit_code, ran.stdout.count("\n")) == (0, 1)
    assert "has no pgvector: search uses words only until a superuser runs CREATE EXTENSION vector" in ran.stderr
    assert run_tenant("erase", "ada", "--yes", *where).exit_code == 0
    execute_sql(server.url(), "DROP DATABASE plain")


def test_an_existing_name_is_refused(tenant_place: tuple[list[str], Tenants]) -> None:
    where, tenants = tenant_place
    create_tenant(tenants, "ada")
    assert "NAME: expected a tenant name that does not exist yet" in error_line(run_tenant("create", "ada", *where))


# -- erase with confirmation ----------------------------------------------------------------------------------


def test_without_a_terminal_nothing_is_erased_without_yes(tenant_place: tuple[list[str], Tenants]) -> None:
    where, tenants = tenant_place
    create_tenant(tenants, "ada")
    assert "stdin is not a terminal: pass --yes" in error_line(run_tenant("erase", "ada", *where, stdin="y\n"))
    assert [one.name for one in tenants.list_all()] == ["ada"]


@pytest.mark.parametrize(
    ("answer", "remaining"), [pytest.param("y\n", [], marks=pytest.mark.exhaustive), ("\n", ["ada"])]
)
def test_erase_asks_for_confirmation_with_counts(
    tenant_place: tuple[list[str], Tenants], answer: str, remaining: list[str]
) -> None:
    where, tenants = tenant_place
    fill_tenant(create_tenant(tenants, "ada"))
    screen = run_and_answer(answer, "tenant", "erase", "ada", *where)
    assert "Erase tenant 'ada' in " in screen
    assert " permanently (2 streams, 6 events)? [y/N]" in screen
    assert ("Erased tenant 'ada'" in screen) == (not remaining)
    assert [one.name for one in tenants.list_all()] == remaining


def run_and_answer(answer: str, *arguments: str) -> str:
    """Run a command on a terminal, answer its question and return the output."""
    ours, theirs = pty.openpty()
    with subprocess.Popen(command(*arguments), stdin=theirs, stdout=theirs, stderr=theirs) as process:
        os.close(theirs)
        output = b""
        with suppress(OSError):  # end of the terminal: no process writes to it
            while more := os.read(ours, 4_096):
                output += more
                if b"[y/N]" in more:
                    os.write(ours, answer.encode())
        process.wait(60)
    os.close(ours)
    return output.decode()


# -- passwords ------------------------------------------------------------------------------------------------


def test_a_password_can_be_read_from_stdin(server: Server, tmp_path: Path) -> None:
    url = server.url(tcp=True)
    with TenantRoles(url) as roles:
        ran = inmind("tenant", "create", "ada", "--password-stdin", "--db", url, stdin="of my choice\n")
        assert urlsplit(ran.stdout.strip()).password == "of%20my%20choice"
        ran = run_tenant("create", "bob", "--password-stdin", "--db", url, stdin="\n")
        assert ("password" in error_line(ran), ran.stdout) == (True, "")
        fill_tenant(create_tenant(homes := TenantHomes(tmp_path / "homes"), "bob"))
        ran = run_tenant("move", "bob", "--password-stdin", "--to", url, "--home", homes.place, stdin="\n")
        assert ("password" in error_line(ran), ran.stdout) == (True, "")
        assert [one.name for one in roles.list_all()] == ["ada"]
        roles.erase("ada")
        for one in roles.list_all():
            roles.erase(one.name)


def test_a_home_has_no_password(tmp_path: Path) -> None:
    where = ["--home", str(tmp_path / "homes")]
    assert "--password-stdin" in error_line(run_tenant("create", "ada", "--password-stdin", *where, stdin="x\n"))
    assert not (tmp_path / "homes" / "ada").exists()


def test_no_output_shows_an_operators_password(server: Server) -> None:
    wrong = server.url("operator", password="hush-hush", tcp=True)
    weak = server.url("postgres", tcp=True)
    with TenantRoles(weak) as roles:
        address = create_tenant(roles, "ada", password="hush-hush")
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


# -- selecting a place ----------------------------------------------------------------------------------------


def test_the_default_home_is_refused_as_a_folder_of_homes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without an explicit folder, tenants would be created inside a user's own memory."""
    for arguments in (["list"], ["create", "ada"], ["list", "--home", str(tmp_path / "operator" / ".inmind")]):
        assert "a folder of homes, not the default home" in error_line(run_tenant(*arguments))
    monkeypatch.setenv("INMIND_HOME", str(tmp_path / "mine"))
    assert "default home" in error_line(run_tenant("create", "ada"))
    assert not (tmp_path / "mine").exists()


def test_an_operators_url_can_be_in_the_environment(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """Other users could read it on a command line."""
    monkeypatch.setenv("INMIND_DB", server.url(tcp=True))
    assert "No tenants" in run_tenant("list").stdout


def test_an_invalid_place_is_reported_with_its_option(tmp_path: Path) -> None:
    fill_tenant(tmp_path / "home")
    assert "--home: expected a folder of homes" in error_line(run_tenant("list", "--home", str(tmp_path / "home")))
    create_tenant(TenantHomes(tmp_path / "homes"), "ada")
    where = ["--home", str(tmp_path / "homes")]
    assert "--to: " in error_line(run_tenant("move", "ada", "--to", str(tmp_path / "home"), *where))
    assert "--to: " in error_line(run_tenant("move", "ada", "--to", str(tmp_path / "homes"), *where))


def test_a_move_fails_and_names_files_that_cannot_be_stored(server: Server, tmp_path: Path) -> None:
    homes = TenantHomes(tmp_path / "homes")
    fill_tenant(create_tenant(homes, "ada"))
    damaged = tmp_path / "homes/ada/resources/ada/MEMORY.md.damaged-1"
    damaged.parent.mkdir(parents=True, exist_ok=True)
    damaged.write_bytes(b"the only copy")
    url = server.url(tcp=True)
    ran = run_tenant("move", "ada", "--to", url, "--home", str(tmp_path / "homes"))
    assert (ran.exit_code, "MEMORY.md.damaged-1" in ran.stderr) == (1, True)
    assert [one.name for one in homes.list_all()] == ["ada"]
    with TenantRoles(url) as roles:
        roles.erase("ada")


def test_commands_on_a_folder_need_no_database_driver(tmp_path: Path) -> None:
    code = "import sys; sys.modules['psycopg'] = None\nfrom inmind.apps.cli import main; main()\n"
    for arguments, exit_code, message in (
        (["create", "ada", "--home", str(tmp_path / "homes")], 0, ""),
        (["list", "--db", "postgresql://a@b/c"], 2, "inmind[postgres]"),
    ):
        command_line = [sys.executable, "-c", code, "tenant", *arguments]
        ran = subprocess.run(command_line, capture_output=True, text=True, timeout=60, check=False)
        assert (ran.returncode, message in ran.stderr) == (exit_code, True), ran.stderr

"""The command line on a database, and `inmind edit` on both kinds of memory."""

from __future__ import annotations

import json
import os
import pty
import re
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from builders import turns, user
from click.testing import CliRunner, Result
from postgres import Run
from provider import Provider, reply_with
from terminal import command, exit_code_for

from inmind import Memory
from inmind.apps.cli.app import app
from inmind.apps.doctor import home as home_checks
from inmind.apps.mcp.http_auth import ENV_VARIABLE
from inmind.core.paths import check_database_url, default_place, redact_url
from inmind.errors import InmindError, InvalidInput
from inmind.store.postgres import connection
from inmind.store.postgres.connection import Connection, connect
from inmind.store.protocol import Batch

pytestmark = pytest.mark.embedded


@pytest.fixture(autouse=True)
def _no_default_place(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Only options name the memory, and drafts are kept in a temporary folder."""
    drafts = str(tmp_path_factory.mktemp("drafts"))
    monkeypatch.setenv("TMPDIR", drafts)
    monkeypatch.setattr(tempfile, "tempdir", drafts)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("INMIND_HOME", raising=False)
    monkeypatch.delenv("INMIND_DB", raising=False)


@pytest.fixture
def db(tenant_url: str) -> str:
    """A database with a session and a note."""
    with Memory.open(tenant_url, embedder=None) as memory:
        session = memory.session("support-42", resource="ada")
        session.prepare([*turns(8), user("Add a hero to it")])
        session.note("Ada prefers tabs")
    return tenant_url


@pytest.fixture(params=["home", "db"])
def where(request: pytest.FixtureRequest, home: Path) -> list[str]:
    """The options that name a memory with a session, of either kind."""
    if request.param == "db":
        return ["--db", request.getfixturevalue("db")]
    with Memory.open(home, embedder=None) as memory:
        memory.session("support-42", resource="ada").prepare([user("Add a hero to it")])
    return ["--home", str(home)]


def inmind(*arguments: str, stdin: str = "") -> Result:
    return CliRunner().invoke(app, arguments, input=stdin)


def in_one_line(ran: Result) -> str:
    message = ran.stderr
    assert (ran.exit_code, message.count("\n")) == (exit_code_for(message), 1), message
    return message


# -- selecting a memory ------------------------------------------------------------------------------------


ALL_COMMANDS = (
    ["sessions"],
    ["sessions", "--here", "--limit", "1"],
    ["show", "prompt", "support-42"],
    ["show", "entities", "support-42"],
    ["show", "scratchpad", "support-42"],
    ["show", "overview", "support-42"],
    ["show", "page", "MEMORY.md", "--resource", "ada"],
    ["show", "retained", "support-42"],
    ["show", "journal", "support-42"],
    ["show", "state", "ada"],
    ["search", "tabs"],
    ["affect", "ada", "--spike", "reward", "--why", "it works"],
    ["economics", "ada", "earning", "5"],
    ["note", "likes tea", "--session", "support-42"],
    ["note", "likes cake"],
    ["compact", "support-42", "--keep-recent", "0"],
    ["compact", "support-42", "--undo"],
    ["dream", "run", "ada"],
    ["dream", "list", "ada"],
    ["dream", "show", "ada"],
    ["dream", "diff", "ada"],
    ["dream", "undo", "ada"],
    ["undo", "support-42"],
    ["upkeep"],
    ["doctor", "--offline"],
    ["export", "all.inmind"],
    ["import", "all.inmind"],
)


def test_every_command_works_on_a_database(db: str) -> None:
    with Memory.open(db, embedder=None) as memory:
        memory.edit(memory.page("MEMORY.md", resource="ada"), "# Ada\n\n- by hand\n")
    for arguments in ALL_COMMANDS:
        ran = inmind(*arguments, "--db", db)
        assert (ran.exit_code, ran.stderr) == (0, ""), (arguments, ran.stdout, ran.exception)
    assert list(Path.cwd().iterdir()) == [Path.cwd() / "all.inmind"]
    output = json.loads(inmind("--db", db, "sessions", "--json").stdout)
    assert [(one["id"], one["folder"]) for one in output] == [("support-42", None)]


def test_a_database_is_named_before_or_after_a_command_or_by_the_environment(
    db: str, monkeypatch: pytest.MonkeyPatch, home: Path
) -> None:
    wanted = inmind("--db", db, "sessions").stdout
    assert "support-42" in wanted
    assert inmind("sessions", "--db", db).stdout == wanted
    monkeypatch.setenv("INMIND_DB", db)
    assert inmind("sessions").stdout == wanted
    with Memory.open() as memory:
        assert (memory.location, memory.home) == (redact_url(db), None)
    with Memory.open(home) as memory:
        memory.session("elsewhere")
    assert "elsewhere" in inmind("--home", str(home), "sessions").stdout
    monkeypatch.setenv("INMIND_HOME", str(home))
    assert inmind("--db", db, "sessions").stdout == wanted
    assert in_one_line(inmind("sessions")).startswith("inmind: INVALID_INPUT: $INMIND_DB: expected only one of $INM")


@pytest.mark.spec("I2", "J3")
@pytest.mark.parametrize("named", [["--db", "postgresql://ada:secret@localhost/memory"], ["--home", "elsewhere"]])
def test_the_demo_rejects_a_home_and_a_database(named: list[str], tmp_path: Path) -> None:
    for arguments in ([*named, "demo"], ["demo", *named]):
        ran = inmind(*arguments)
        message = in_one_line(ran)
        assert (ran.exit_code, ran.stdout) == (2, "")
        assert named[0] in message
        assert "the demo uses a temporary folder" in message
        assert "secret" not in message
    assert not list(tmp_path.iterdir())


def test_a_home_and_a_database_cannot_be_combined(home: Path) -> None:
    message = in_one_line(inmind("--home", str(home), "sessions", "--db", "postgresql://ada:hunter2@there/db"))
    assert (
        message
        == "inmind: INVALID_INPUT: --db: expected no --home: the two cannot be combined, got 'postgresql://ada@there/db'\n"
    )
    assert not home.exists()


@pytest.mark.spec("J3")
@pytest.mark.parametrize(
    "url",
    [
        "postgresql://ada:hunter2@127.0.0.1:1/db",
        "postgresql://ada:hunter2@[::1]:1/db?connect_timeout=1",
        "postgresql://127.0.0.1:1/db?user=ada&password=hunter2",
        "postgresql://ada:hunter2@@127.0.0.1:1/db",
        "postgresql://ada:hun/ter2@127.0.0.1:1/db",
        "postgresql://ada:hunter2?@127.0.0.1:1/db",
        "postgresql://ada:hunter2#@127.0.0.1:1/db",
        "postgresql://ada:hunter2\n@127.0.0.1:1/db",
        "postgresql://ada:hunter2@127.0.0.1:port/db",
        "postgres://ada:hunter2@127.0.0.1:1/db?nonsense=hunter2",
        "mysql://ada:hunter2@127.0.0.1/db",
    ],
)
@pytest.mark.parametrize("debug", [[], ["--debug"]], ids=["plain", "debug"])
def test_no_message_shows_a_password(url: str, debug: list[str], caplog: pytest.LogCaptureFixture) -> None:
    ran = inmind(*debug, "--db", url, "sessions")
    assert (ran.exit_code in (2, 5), "ter2" in f"{ran.output}{ran.stderr}{caplog.text}") == (True, False), ran.stderr
    with pytest.raises(InmindError) as raised:
        Memory.open(url)
    assert "ter2" not in str(raised.value)
    assert "ter2" not in str(inmind("doctor", "--db", url, "--json").output)


@pytest.mark.spec("J3")
@pytest.mark.parametrize(
    "url",
    [
        "postgresql://ada:hunter2@127.0.0.1:1/db",
        "postgres://ada:hunter2@there/db",
        "host=127.0.0.1 dbname=memory password=hunter2",
        "password = hunter2",
        "host=there port=5432 user=ada",
    ],
)
def test_a_database_url_as_home_is_refused_without_its_password(
    url: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    message = in_one_line(inmind("--home", url, "sessions"))
    assert message == "inmind: INVALID_INPUT: --home: expected a folder on this machine; use --db for a database\n"
    for opened in (Path(url), *([] if "://" in url else [url])):
        with pytest.raises(InvalidInput) as refused:
            Memory.open(opened)
        assert "hunter2" not in str(refused.value)
    monkeypatch.setenv("INMIND_HOME", url)
    assert "$INMIND_HOME: expected a folder on this machine; use $INMIND_DB for a database" in in_one_line(
        inmind("sessions")
    )
    assert [*tmp_path.iterdir()] == []


@pytest.mark.parametrize(
    ("parameter", "message"),
    [
        ("inmind_conections=4", "did you mean 'inmind_connections'?, got 'inmind_conections'"),
        ("ssslmode=require", "did you mean 'sslmode'?, got 'ssslmode'"),
    ],
)
def test_a_mistyped_parameter_is_named(parameter: str, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    url = f"postgresql://ada:hunter2@127.0.0.1:1/db?{parameter}"
    assert in_one_line(inmind("--db", url, "sessions")) == (
        f"inmind: INVALID_INPUT: --db: expected known parameters: {message}\n"
    )
    assert f"--db: expected known parameters: {message}" in in_one_line(inmind("tenant", "list", "--db", url))
    monkeypatch.setenv("INMIND_DB", url)
    assert "INVALID_INPUT: $INMIND_DB: expected known parameters" in in_one_line(inmind("sessions"))


def test_the_package_can_be_run_as_a_module() -> None:
    ran = subprocess.run([sys.executable, "-m", "inmind", "--version"], capture_output=True, text=True, timeout=60)
    assert (ran.returncode, ran.stdout[:7]) == (0, "inmind ")


def test_a_folder_as_database_is_refused(tmp_path: Path) -> None:
    message = in_one_line(inmind("--db", str(tmp_path), "sessions"))
    assert "--db: expected the URL of a database; use --home for a folder, got " in message


def test_a_redacted_url_keeps_user_host_and_database() -> None:
    assert redact_url("postgresql://ada:pw@db.example:5432/memory") == "postgresql://ada@db.example:5432/memory"
    assert redact_url("postgresql:///m?host=/run/pg&password=pw") == "postgresql:///m?host=/run/pg"
    assert redact_url("postgresql://ada:p%40w:x@a,b:5/m?sslmode=require") == "postgresql://ada@a,b:5/m?sslmode=require"
    assert check_database_url("postgresql://ada:pw@[::1]:5432/m", "x").startswith("postgresql://")


def test_without_the_postgres_extra_the_error_names_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith("inmind.store.postgres")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "psycopg", None)
    message = in_one_line(inmind("--db", "postgresql://ada:hunter2@there/db", "sessions"))
    assert 'pip install "inmind[postgres]"' in message
    assert "INVALID_INPUT" in message
    assert 'fix: `pip install "inmind[postgres]"`' in inmind("doctor", "--db", "postgresql://there/db").stdout


def test_names_are_completed_from_a_database(db: str) -> None:
    line = ["inmind", "--db", f"'{db}'", "show", "overview", "supp"]
    environment = {"COMP_WORDS": " ".join(line), "COMP_CWORD": "5", "_INMIND_COMPLETE": "bash_complete"}
    assert CliRunner().invoke(app, prog_name="inmind", env=environment).stdout.split() == ["plain,support-42"]


@pytest.mark.spec("J3")
def test_reading_an_empty_database_does_not_create_a_memory(tenant_url: str) -> None:
    for arguments in (["sessions"], ["search", "tabs"], ["status"], ["export", "all.inmind"], ["note", "tea"]):
        message = in_one_line(inmind("--db", tenant_url, *arguments))
        assert message.startswith(f"inmind: NOT_FOUND: no memory at {redact_url(tenant_url)!r}"), message
        assert "--db" in message
    line = ["inmind", "--db", f"'{tenant_url}'", "show", "overview", "supp"]
    environment = {"COMP_WORDS": " ".join(line), "COMP_CWORD": "5", "_INMIND_COMPLETE": "bash_complete"}
    assert CliRunner().invoke(app, prog_name="inmind", env=environment).stdout.split() == []
    assert findings(inmind("--db", tenant_url, "doctor", "--offline", "--json"))["schema"][0] == "warning"
    assert inmind("--db", tenant_url, "note", "tea", "--resource", "ada").exit_code == 0
    assert inmind("--db", tenant_url, "sessions").exit_code == 0


# -- the doctor --------------------------------------------------------------------------------------------


def findings(ran: Result) -> dict[str, tuple[str, str]]:
    return {one["check"]: (one["verdict"], one["seen"]) for one in json.loads(ran.stdout)["findings"]}


@pytest.mark.parametrize("arguments", [["sessions"], ["show", "state", "ada"], ["status"], ["search", "tabs"]])
def test_a_command_connects_once(db: str, arguments: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    connections: list[str] = []

    def counted(conninfo: str, until: float) -> Connection:
        connections.append(conninfo)
        return connect(conninfo, until)

    monkeypatch.setattr(connection, "connect", counted)
    ran = inmind("--db", db, *arguments)
    assert (ran.exit_code, len(connections)) == (0, 1), ran.output


def test_the_doctor_checks_a_database_and_creates_nothing(tenant_url: str) -> None:
    for _ in range(2):
        ran = inmind("--db", tenant_url, "doctor", "--offline", "--json")
        assert findings(ran)["schema"] == ("warning", "no memory yet: opening it creates one")
    Memory.open(tenant_url).close()
    ran = inmind("--db", tenant_url, "doctor", "--offline", "--json")
    by_check = findings(ran)
    assert (ran.exit_code, {verdict for verdict, _ in by_check.values()}) == (0, {"ok"})
    assert by_check["durability"][1] == "fsync on, full_page_writes on, synchronous_commit on"
    assert "connected as t_" in by_check["connection"][1]
    assert json.loads(ran.stdout)["home"] == redact_url(tenant_url)


def test_the_doctor_reports_a_read_only_database(db: str) -> None:
    url = f"{db}{'&' if '?' in db else '?'}options=-c%20default_transaction_read_only%3Don"
    ran = inmind("--db", url, "doctor", "--offline", "--json")
    expected = ("trouble", "default_transaction_read_only is on")
    assert (ran.exit_code, findings(ran)["writing"]) == (5, expected)


def test_the_doctor_reports_whether_vectors_are_created_here(db: str, monkeypatch: pytest.MonkeyPatch) -> None:
    by_check = findings(inmind("--db", db, "doctor", "--offline", "--json"))
    assert by_check["vectors"] == ("ok", "searched with pgvector")

    def none_is_installed(_: object) -> None: ...

    monkeypatch.setattr(home_checks, "create_embedder", none_is_installed)
    by_check = findings(inmind("--db", db, "doctor", "--offline", "--json"))
    assert by_check["vectors"] == ("ok", "none are created here; those of other processes are searched with pgvector")


@pytest.mark.parametrize(
    "arguments",
    [
        ["edit", "overview.md", "--session", "support-4"],
        ["show", "page", "overview.md", "--session", "support-4"],
        ["show", "page", "MEMORY.md", "--resource", "adda"],
    ],
)
def test_a_mistyped_name_suggests_the_nearest_one(db: str, arguments: list[str]) -> None:
    with Memory.open(db, embedder=None) as memory:
        memory.session("support-42", resource="ada").note("Ada prefers tabs")
    meant = "ada" if "adda" in arguments else "support-42"
    assert f"did you mean {meant!r}?" in in_one_line(inmind("--db", db, *arguments, stdin="# New\n"))


def test_an_edit_that_creates_a_resource_reports_it(db: str) -> None:
    edit = ["--db", db, "edit", "MEMORY.md", "--resource", "ned"]
    outputs = [inmind(*edit, stdin=text).stdout for text in ("# A\n", "# B\n")]
    assert outputs == ["MEMORY.md was saved. ned is a new resource.\n", "MEMORY.md was saved.\n"]


def test_the_doctor_reports_fsync_off_and_an_operator_role(postgres_run: Run) -> None:
    with postgres_run.server(fsync="off") as server:
        server.start()
        ran = inmind("--db", server.url(), "doctor", "--offline", "--json")
        assert (ran.exit_code, findings(ran)["durability"]) == (5, ("trouble", "off: fsync"))
        assert findings(ran)["schema"] == ("warning", "postgres is an operator role without a memory")
        checks = [one["check"] for one in json.loads(ran.stdout)["findings"]]
        assert len(checks) == len(set(checks)), "a check is reported twice"
        url = server.url()
    ran = inmind("--db", url, "doctor", "--offline", "--json")
    assert (ran.exit_code, findings(ran)["connection"][0]) == (5, "trouble")
    assert in_one_line(inmind("--db", url, "sessions")).startswith("inmind: STORE_UNAVAILABLE: ")


# -- chat and MCP ------------------------------------------------------------------------------------------


def test_a_chat_uses_the_settings_of_a_database_and_is_stored_there(db: str) -> None:
    with Provider() as provider:
        provider.will(reply_with("Hello, Ada."))
        text = f'[model]\nurl = "{provider.openai}"\nname = "some-model"\n'
        assert inmind("--db", db, "edit", "config.toml", stdin=text).exit_code == 0
        ran = inmind("--db", db, "chat", "--session", "talk", "--resource", "ada", stdin="I am Ada\n")
    assert (ran.exit_code, ran.stdout) == (0, "Hello, Ada.\n"), ran.stderr
    with Memory.open(db, embedder=None) as memory:
        assert [entry.wire["content"] for entry in memory.session("talk").state.conversation] == [
            "I am Ada",
            "Hello, Ada.",
        ]


def test_an_http_server_on_a_database_requires_a_token(db: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(ENV_VARIABLE, raising=False)
    message = in_one_line(inmind("--db", db, "mcp", "--http", "--port", "0", "--no-dreams"))
    assert f"${ENV_VARIABLE}: expected a token: with a database none is generated" in message


# -- export and import between both kinds ------------------------------------------------------------------


def test_a_home_moves_into_a_database_and_back(home: Path, tenant_url: str, tmp_path: Path) -> None:
    with Memory.open(home, embedder=None) as memory:
        session = memory.session("support-42", resource="ada")
        session.prepare([user("Where is my order?")])
        session.note("Ada prefers tabs")
        sent = session.prepare([user("Where is my order?")]).request
    (home / "config.toml").write_text("[dream]\nenabled = false\n")
    older = home / "sessions" / "--w--" / "older.jsonl"
    older.parent.mkdir(parents=True)
    older.write_text(json.dumps(user("hello")))
    assert inmind("--home", str(home), "export", "one.inmind").exit_code == 0
    ran = inmind("--db", tenant_url, "import", "one.inmind")
    assert ran.exit_code == 0, ran.stderr
    assert ran.stdout.splitlines()[1:] == [
        "Extra file: config.toml.imported",
        "Left out: sessions/--w--/older.jsonl (a database cannot store extra files)",
    ]
    assert inmind("--db", tenant_url, "show", "page", "config.toml").exit_code == 3
    assert inmind("--db", tenant_url, "show", "page", "config.toml.imported").stdout == "[dream]\nenabled = false\n"
    again = inmind("--db", tenant_url, "import", "one.inmind").stdout
    assert again.startswith(f"Everything is in {redact_url(tenant_url)} already; nothing was changed.\n")
    with Memory.open(tenant_url, embedder=None) as memory:
        assert memory.settings.dream.enabled
        assert memory.session("support-42").prompt(2).request == sent
    settings = "[dream]\nenabled = true\n"
    assert inmind("--db", tenant_url, "edit", "config.toml", stdin=settings).exit_code == 0
    assert inmind("--db", tenant_url, "export", "two.inmind").exit_code == 0
    third = tmp_path / "third"
    assert inmind("--home", str(third), "import", "two.inmind").exit_code == 0
    assert (third / "config.toml.imported").read_text() == settings
    assert not (third / "config.toml").exists()
    with Memory.open(third, embedder=None) as memory:
        assert memory.session("support-42").prompt(2).request == sent
        assert memory.resources() == ["ada"]
    ran = inmind("--db", tenant_url, "import", "two.inmind", "--into-new-home")
    assert "expected an empty home" in in_one_line(ran)


# -- editing -----------------------------------------------------------------------------------------------


def test_edit_reads_a_page_from_a_pipe_or_a_file(where: list[str]) -> None:
    ran = inmind(*where, "edit", "overview.md", "--session", "support-42", stdin="# Mine\n")
    assert (ran.exit_code, ran.stdout) == (0, "overview.md was saved.\n"), ran.stderr
    assert inmind(*where, "show", "page", "overview.md").stdout == "# Mine\n"
    again = inmind(*where, "edit", "overview.md", "--session", "support-42", stdin="# Mine\n")
    assert again.stdout == "Unchanged: nothing was written.\n"
    Path("mine.md").write_text("# From a file\n")
    ran = inmind(*where, "edit", "MEMORY.md", "--resource", "ada", "--from", "mine.md", "--json")
    assert json.loads(ran.stdout) == {
        "path": "MEMORY.md",
        "version": json.loads(ran.stdout)["version"],
        "changed": True,
    }
    assert inmind(*where, "show", "page", "MEMORY.md", "--resource", "ada").stdout == "# From a file\n"
    if where[0] == "--home":
        assert (Path(where[1]) / "resources" / "ada" / "MEMORY.md").read_text() == "# From a file\n"


@pytest.mark.spec("J3")
@pytest.mark.parametrize(
    ("arguments", "stdin", "message"),
    [
        (["overview.md", "--session", "support-42"], "", "INVALID_INPUT: overview.md: expected a text"),
        (["overview.md", "--session", "missing"], "x", "NOT_FOUND: no session 'missing'"),
        (["elsewhere.md", "--session", "support-42"], "x", "INVALID_PATH"),
        (["overview.md", "--session", "support-42", "--resource", "ada"], "x", "INVALID_INPUT: --resource: expected"),
        (["overview.md", "--resource", "ada"], "x", "INVALID_INPUT: --session: expected the session that overview.md"),
        (["overview.md", "--session", "support-42", "--from", "gone"], "", "INVALID_INPUT: --from: expected a file"),
        (["config.toml", "--resource", "ada"], "x", "INVALID_INPUT"),
    ],
)
def test_an_invalid_edit_is_refused_in_one_line(
    where: list[str], arguments: list[str], stdin: str, message: str
) -> None:
    before = inmind(*where, "show", "journal", "support-42", "--json").stdout
    assert message in in_one_line(inmind(*where, "edit", *arguments, stdin=stdin))
    assert inmind(*where, "show", "journal", "support-42", "--json").stdout == before


def path_in(message: str, label: str) -> Path:
    match = re.search(rf"{label} in (\S+?)[,\s]", message)
    assert match, message
    return Path(match[1])


def test_broken_settings_are_refused_and_the_text_is_kept(where: list[str]) -> None:
    text = "[dream]\nenabeld = true\n"
    message = in_one_line(inmind(*where, "edit", "config.toml", stdin=text))
    assert message.startswith("inmind: INVALID_INPUT: settings.dream.enabeld: expected a known setting")
    kept = path_in(message, "your text is")
    assert (kept.read_text(), stat.S_IMODE(kept.parent.stat().st_mode)) == (text, 0o700)
    assert inmind(*where, "show", "page", "config.toml").exit_code == 3


def test_settings_that_block_every_command_can_be_fixed(where: list[str]) -> None:
    assert inmind(*where, "edit", "config.toml", stdin="[dream]\nenabled = false\n").exit_code == 0
    if where[0] == "--home":
        (Path(where[1]) / "config.toml").write_text("dream = [")
    else:  # as a newer inmind with more settings has written them
        from inmind.core.events.base import Draft, Origin
        from inmind.core.events.documents import SettingsWritten
        from inmind.store.postgres import PostgresStore

        store = PostgresStore.open(where[1])
        draft = Draft(payload=SettingsWritten("config.toml", "[of_tomorrow]\nx = 1\n"), origin=Origin.OPERATOR)
        store.append(Batch("settings", [draft], 1), at=store.read("settings")[0].at)
        store.close()
    assert inmind(*where, "sessions").exit_code == 2
    assert "trouble" in inmind(*where, "doctor", "--offline").stdout
    assert inmind(*where, "show", "page", "config.toml").exit_code == 0
    assert inmind(*where, "edit", "config.toml", stdin="[dream]\nenabled = true\n").exit_code == 0
    assert inmind(*where, "sessions").exit_code == 0


# -- in an editor, on a terminal ---------------------------------------------------------------------------


class EditorUser:
    """A user at a terminal whose editor is a shell script that gets the page as "$1"."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
        self._monkeypatch, self._capfd = monkeypatch, capfd

    def edits(self, *arguments: str, editor: str) -> tuple[int, str]:
        """Run the command and return the exit code and the output."""
        script = Path("editor.sh")
        script.write_text(f"{editor}\n")
        ours, theirs = pty.openpty()
        with os.fdopen(theirs) as terminal, self._monkeypatch.context() as patched:
            patched.delenv("VISUAL", raising=False)
            patched.setenv("EDITOR", f"sh {script.absolute()}")
            patched.setattr(sys, "stdin", terminal)
            with pytest.raises(SystemExit) as raised:
                app(arguments)
        os.close(ours)
        return int(raised.value.code or 0), " ".join("".join(self._capfd.readouterr()).split())


@pytest.fixture
def user_at_terminal(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> EditorUser:
    return EditorUser(monkeypatch, capfd)


def test_an_editor_gets_the_page_and_its_text_is_saved(where: list[str], user_at_terminal: EditorUser) -> None:
    inmind(*where, "edit", "overview.md", stdin="# Mine\n- a fact\n")
    code, output = user_at_terminal.edits(
        *where, "edit", "overview.md", editor='echo "$1" > named; cp "$1" was; echo "- and more" >> "$1"'
    )
    assert (code, output) == (0, "overview.md was saved.")
    assert (Path("was").read_text(), Path("named").read_text().strip()[-12:]) == ("# Mine\n- a fact\n", "/overview.md")
    assert inmind(*where, "show", "page", "overview.md").stdout == "# Mine\n- a fact\n- and more\n"
    assert not Path(Path("named").read_text().strip()).parent.exists()


def test_an_editor_that_changes_nothing_or_fails_writes_nothing(where: list[str], user_at_terminal: EditorUser) -> None:
    before = inmind(*where, "show", "journal", "support-42", "--json").stdout
    assert user_at_terminal.edits(*where, "edit", "overview.md", editor=":") == (0, "Unchanged: nothing was written.")
    code, output = user_at_terminal.edits(*where, "edit", "overview.md", editor='echo x > "$1"; exit 3')
    assert code == 1
    failure = r"inmind: FAILED: sh \S+ exited with 3: nothing was written; your text is in \S+/overview.md$"
    assert re.match(failure, output)
    code, output = user_at_terminal.edits(*where, "edit", "overview.md", editor=': > "$1"')
    assert (code, "expected a text" in output) == (2, True)
    assert inmind(*where, "show", "journal", "support-42", "--json").stdout == before


def test_a_faster_writer_is_not_overwritten_and_no_text_is_lost(where: list[str], user_at_terminal: EditorUser) -> None:
    """Another process writes the same page while the editor runs."""
    other = " ".join(f"'{word}'" for word in command(*where, "edit", "overview.md", "--session", "support-42"))
    code, output = user_at_terminal.edits(
        *where,
        "edit",
        "overview.md",
        "--session",
        "support-42",
        editor=f'echo "# Mine" > "$1"; echo "# Theirs" | {other} > other',
    )
    assert Path("other").read_text() == "overview.md was saved.\n"
    assert (code, output.startswith("inmind: CONFLICT: overview.md is at version ")) == (4, True), output
    assert path_in(f"{output} ", "your text is").read_text() == "# Mine\n"
    assert path_in(f"{output} ", "the other version").read_text() == "# Theirs\n"
    assert inmind(*where, "show", "page", "overview.md").stdout == "# Theirs\n"


def test_a_missing_editor_is_named(where: list[str]) -> None:
    ours, theirs = pty.openpty()
    environment = {**os.environ, "VISUAL": "no-such-editor --wait"}
    ran = subprocess.run(
        command(*where, "edit", "overview.md"),
        stdin=theirs,
        capture_output=True,
        text=True,
        env=environment,
        timeout=60,
    )
    os.close(theirs)
    os.close(ours)
    assert ran.returncode == 2
    assert "$EDITOR: expected an editor that can be run" in ran.stderr


def test_the_environment_names_the_default_place(monkeypatch: pytest.MonkeyPatch, home: Path) -> None:
    monkeypatch.setenv("INMIND_HOME", str(home))
    assert default_place() == home
    monkeypatch.setenv("INMIND_DB", "")
    assert default_place() == home
    monkeypatch.delenv("INMIND_HOME")
    monkeypatch.setenv("INMIND_DB", "postgresql://there/db")
    assert default_place() == "postgresql://there/db"

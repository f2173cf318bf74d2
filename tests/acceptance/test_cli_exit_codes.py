"""Failing commands print one line, set an exit code and lose nothing."""

from __future__ import annotations

import ast
import os
import pty
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib import import_module
from inspect import getdoc
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import apsw
import pytest
from builders import turns, user
from click.testing import CliRunner
from tables import each_row
from terminal import command, inmind, run_in_process

from inmind import Memory
from inmind.apps.cli.app import COMMANDS, app
from inmind.apps.cli.exit_codes import EXIT_CODE_HELP, EXIT_CODES
from inmind.errors import InmindError

pytestmark = pytest.mark.embedded

NEED_A_HOME = (
    ["sessions"],
    ["show", "prompt", "support-42"],
    ["show", "entities", "support-42"],
    ["show", "scratchpad", "support-42"],
    ["show", "overview", "support-42"],
    ["show", "retained", "support-42"],
    ["show", "page", "overview.md", "--session", "support-42"],
    ["show", "journal", "support-42"],
    ["show", "state", "ada"],
    ["search", "tabs"],
    ["affect", "ada"],
    ["economics", "ada"],
    ["note", "likes tea", "--session", "support-42"],
    ["edit", "overview.md", "--session", "support-42", "--from", __file__],
    ["compact", "support-42"],
    ["dream", "run", "ada"],
    ["dream", "list", "ada"],
    ["dream", "show", "ada"],
    ["dream", "diff", "ada"],
    ["dream", "undo", "ada"],
    ["undo", "support-42"],
    ["export", "-"],
    ["upkeep"],
    ["worker"],
    ["status"],
)
"""Every command that reads a home, with valid arguments."""

OTHER_USER_ID = 65_534
"""The id of an unprivileged user on most systems."""

MAKE_A_HOME = ("chat", "mcp", "import")
NEED_NONE = ("demo", "replay", "doctor", "tenant")

WRITING_COMMANDS = (
    ["note", "likes tea", "--resource", "ada"],
    ["affect", "ada", "--spike", "reward"],
    ["economics", "ada", "earning", "5"],
    ["edit", "overview.md", "--session", "support-42", "--from", __file__],
    ["compact", "support-42", "--keep-recent", "0"],
    ["dream", "run", "ada"],
    ["undo", "support-42"],
)


@pytest.fixture
def sample_home(home: Path) -> Path:
    with Memory.open(home) as memory:
        session = memory.session("support-42", resource="ada", cwd="/website")
        session.prepare([*turns(8), user("Add a hero to it")])
        session.note("Ada prefers tabs")
    return home


def in_one_line(complaint: str) -> str:
    assert complaint.count("\n") == 1, complaint
    assert complaint.startswith("inmind: ")
    assert "Traceback" not in complaint
    return complaint


def events_in(home: Path) -> list[tuple[str, bytes]]:
    """All events of the journal; the bytes of the database may differ."""
    with Memory.open(home) as memory:
        streams = [
            *(f"session/{info.id}" for info in memory.sessions()),
            *map("resource/{}".format, memory.resources()),
        ]
        store = memory._context.store  # pyright: ignore[reportPrivateUsage] -- all events, not only those of a session
        return [(event.id, repr(event.payload).encode()) for name in streams for event in store.read(name)]


@pytest.mark.spec("I2")
def test_the_command_table_has_the_first_sentence_of_each_help() -> None:
    for commands in COMMANDS.values():
        for name, (target, help) in commands.items():
            module, _, attribute = target.partition(":")
            entry_point = getattr(import_module(f"inmind.apps.{module}"), attribute)
            if callable(entry_point):  # the help of a group is in the table only
                assert (getdoc(entry_point) or "").replace("\n", " ").startswith(help), name


@pytest.mark.spec("I2")
def test_every_command_is_in_a_list_above() -> None:
    named = {name for commands in COMMANDS.values() for name in commands}
    assert named == {arguments[0] for arguments in NEED_A_HOME} | {*MAKE_A_HOME, *NEED_NONE}


@pytest.mark.spec("I2")
def test_the_help_lists_every_command_and_every_exit_code_in_80_columns() -> None:
    ran = inmind("--help")
    assert ran.returncode == 0
    help_text = " ".join(ran.stdout.split())
    for commands in COMMANDS.values():
        for name, (_, help) in commands.items():
            assert f" {name} {help}" in help_text
    assert all(f"{code} {meaning}" in help_text for code, meaning in EXIT_CODE_HELP.items())
    assert all(len(line) <= 80 for line in ran.stdout.splitlines())


def test_every_exit_code_belongs_to_an_existing_error() -> None:
    def codes_of(error: type[InmindError]) -> Iterator[str]:
        yield error.code
        for more in error.__subclasses__():
            yield from codes_of(more)

    assert set(EXIT_CODES) - {"INTERRUPTED"} <= set(codes_of(InmindError))
    assert set(EXIT_CODES.values()) <= set(EXIT_CODE_HELP)


@pytest.mark.spec("I2", "J3")
@pytest.mark.parametrize("arguments", NEED_A_HOME, ids=" ".join)
def test_a_missing_home_is_not_created(arguments: list[str], home: Path) -> None:
    ran = run_in_process(*arguments, home=home)
    assert (ran.exit_code, ran.stdout, home.exists()) == (3, "", False)
    assert in_one_line(ran.stderr).startswith("inmind: NOT_FOUND: no memory at ")


@pytest.mark.spec("I2", "J3")
@pytest.mark.parametrize("arguments", NEED_A_HOME, ids=" ".join)
@pytest.mark.parametrize(
    "config",
    [
        "dream = [",
        pytest.param("[dream]\nenabeld = true\n", marks=pytest.mark.exhaustive),
        pytest.param('[dream]\nenabled = "no"\n', marks=pytest.mark.exhaustive),
    ],
)
def test_a_broken_config_is_reported_and_nothing_changes(arguments: list[str], config: str, sample_home: Path) -> None:
    before = events_in(sample_home)
    (sample_home / "config.toml").write_text(config)
    ran = run_in_process(*arguments, home=sample_home)
    assert (ran.exit_code, ran.stdout) == (2, "")
    assert "config.toml" in in_one_line(ran.stderr) or "dream." in ran.stderr
    (sample_home / "config.toml").unlink()
    assert events_in(sample_home) == before


@pytest.mark.spec("I2", "J3", "M36")
@pytest.mark.parametrize("arguments", WRITING_COMMANDS, ids=" ".join)
def test_a_home_with_a_newer_schema_is_read_and_not_written(arguments: list[str], sample_home: Path) -> None:
    before = events_in(sample_home)
    database: Any = apsw.Connection(str(sample_home / "inmind.db"))
    database.execute("PRAGMA user_version = 10000")
    database.close()
    ran = run_in_process(*arguments, home=sample_home)
    assert ran.exit_code == 5
    assert "READ_ONLY" in in_one_line(ran.stderr)
    assert run_in_process("sessions", home=sample_home).exit_code == 0
    assert events_in(sample_home) == before


@pytest.mark.spec("I2", "J3")
@pytest.mark.parametrize("arguments", [a for a in NEED_A_HOME if "support-42" in a], ids=" ".join)
def test_an_unknown_session_is_not_created(arguments: list[str], sample_home: Path) -> None:
    before = events_in(sample_home)
    ran = run_in_process(*("missing" if one == "support-42" else one for one in arguments), home=sample_home)
    assert (ran.exit_code, ran.stdout) == (3, "")
    assert "no session 'missing'" in in_one_line(ran.stderr)
    assert events_in(sample_home) == before


@pytest.mark.spec("I2", "J3")
@pytest.mark.parametrize(
    "arguments",
    [
        ["search", "x", "--limit", "many"],
        ["note", "x", "--importance", "very"],
        ["show", "journal", "support-42", "--after", "noon"],
        ["show", "prompt", "support-42", "--call", "last"],
        ["dream", "show", "ada", "first"],
        ["compact", "support-42", "--keep-recent", "1.5"],
        ["worker", "--every", "day"],
        ["replay", "x", "--window", "wide"],
        ["show", "prompt"],
        ["show", "secrets"],
        ["sessions", "--colour"],
        ["nap"],
        ["--hom", "x", "sessions"],
    ],
    ids=" ".join,
)
def test_a_usage_error_is_one_line_that_names_the_help(arguments: list[str], sample_home: Path) -> None:
    ran = run_in_process(*arguments, home=sample_home)
    assert (ran.exit_code, ran.stdout) == (2, "")
    assert in_one_line(ran.stderr).startswith("inmind: USAGE: ")
    assert " --help`." in ran.stderr


@pytest.mark.spec("I2")
@pytest.mark.parametrize(
    "arguments",
    [
        ["sessions", "--json", "--home", "HOME"],
        ["sessions", "--home=HOME", "--json"],
        ["--home", "/nowhere", "sessions", "--json", "--home", "HOME"],
        ["show", "--home", "HOME", "journal", "support-42", "--json"],
        ["show", "journal", "support-42", "--json", "--home", "HOME"],
    ],
    ids=" ".join,
)
def test_the_home_may_be_named_after_the_command(arguments: list[str], sample_home: Path) -> None:
    ran = CliRunner().invoke(app, [one.replace("HOME", str(sample_home)) for one in arguments])
    assert (ran.exit_code, ran.stderr) == (0, "")
    assert "support-42" in ran.stdout


@pytest.mark.spec("I2")
def test_values_that_look_like_global_options_are_taken_as_values(sample_home: Path) -> None:
    assert run_in_process("note", "--resource", "ada", "--", "--home", home=sample_home).exit_code == 0
    assert run_in_process("note", "likes tea", "--resource", "--debug", home=sample_home).exit_code == 0
    with Memory.open(sample_home) as memory:
        assert "--home\n" in memory.resource("ada").state.documents.text("memory/scratch.md")
        assert sorted(memory.resources()) == ["--debug", "ada"]


@pytest.mark.spec("I2")
@pytest.mark.parametrize("arguments", [["--debug", "undo", "missing"], ["undo", "missing", "--debug"]], ids=" ".join)
def test_debug_may_be_given_after_the_command(arguments: list[str], sample_home: Path) -> None:
    stderr_text = run_in_process(*arguments, home=sample_home).stderr
    assert stderr_text.startswith("Traceback ")
    assert stderr_text.splitlines()[-1].startswith("inmind: NOT_FOUND: no session 'missing'")
    assert in_one_line(run_in_process("undo", "missing", home=sample_home).stderr)


@pytest.mark.spec("I2")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["sesions"], "No such command 'sesions'. Did you mean 'sessions'? See `inmind --help`."),
        (["show", "promt", "x"], "No such command 'promt'. Did you mean 'prompt'? See `inmind show --help`."),
        (["nap"], "No such command 'nap'. See `inmind --help`."),
    ],
)
def test_a_mistyped_command_suggests_the_nearest_one(arguments: list[str], message: str) -> None:
    ran = CliRunner().invoke(app, arguments, prog_name="inmind")
    assert (ran.exit_code, ran.stderr) == (2, f"inmind: USAGE: {message}\n")


@pytest.mark.spec("I2")
@each_row("path", [[], ["sessions"], ["dream"], ["dream", "run"], ["show"]], ids=" ".join)
def test_short_h_prints_help_and_only_the_top_level_offers_completion(path: list[str]) -> None:
    short, long = (CliRunner().invoke(app, [*path, option]) for option in ("-h", "--help"))
    assert (short.exit_code, short.stdout) == (0, long.stdout)
    assert ("--install-completion" in long.stdout) == (not path)
    assert "--home DIR" in long.stdout


@pytest.mark.spec("I2", "J3")
def test_a_home_of_another_user_is_refused() -> None:
    if os.getuid() != 0:
        pytest.skip("only root can become another user")
    code = (
        "import os, sys; from click.testing import CliRunner; from inmind.apps.cli.app import app\n"
        "home = ['--home', sys.argv[1]]\n"
        "assert CliRunner().invoke(app, [*home, 'sessions']).exit_code == 0\n"  # loads all modules first
        f"os.setuid({OTHER_USER_ID}); app([*home, 'sessions'])"
    )
    with TemporaryDirectory() as place:  # tmp_path is below folders that another user may not read
        Path(place).chmod(0o755)
        home = Path(place) / "home"
        Memory.open(home).close()
        line = [sys.executable, "-c", code, str(home)]
        ran = subprocess.run(line, capture_output=True, text=True, timeout=60, check=False, cwd="/")
    assert (ran.returncode, ran.stdout) == (5, "")
    assert f"{home} cannot store a memory safely: permission denied: the folder belongs to another user" in in_one_line(
        ran.stderr
    )


@pytest.mark.spec("I2", "J1")
@pytest.mark.parametrize(
    ("sent", "ends", "says"),
    [(signal.SIGINT, 130, "inmind: INTERRUPTED: stopped; acknowledged changes are saved\n"), (signal.SIGTERM, 143, "")],
)
def test_a_command_interrupted_before_its_input_ends_changes_nothing(
    sample_home: Path, sent: signal.Signals, ends: int, says: str
) -> None:
    before = events_in(sample_home)
    line = command("note", "-", "--resource", "ada", home=sample_home)
    with subprocess.Popen(line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdin is not None
        process.stdin.write(b"half a no")
        process.stdin.flush()
        _wait_until_it_reads(process.pid)
        process.send_signal(sent)
        output, complaint = process.communicate(timeout=20)
    assert (process.returncode, output, complaint.decode()) == (ends, b"", says)
    assert events_in(sample_home) == before


@pytest.mark.spec("I2")
@pytest.mark.parametrize("form", [[], ["--json"]], ids=["text", "json"])
def test_a_closed_reader_ends_a_command_quietly(sample_home: Path, form: list[str]) -> None:
    with Memory.open(sample_home) as memory:
        memory.session("support-42").add([user(f"{number} {'x' * 1_000}") for number in range(200)])
    line = command("show", "journal", "support-42", *form, home=sample_home)
    with subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.read(1)
        process.stdout.close()
        assert process.stderr is not None
        complaint = process.stderr.read()
        assert (process.wait(20), complaint) == (141, b"")


@pytest.mark.spec("I2")
def test_a_full_disk_for_the_output_is_reported(sample_home: Path) -> None:
    with Path("/dev/full").open("w") as full:
        line = command("sessions", "--json", home=sample_home)
        ran = subprocess.run(line, stdout=full, stderr=subprocess.PIPE, text=True, timeout=60, check=False)
    assert ran.returncode == 74
    assert "No space left on device" in in_one_line(ran.stderr)


@pytest.mark.spec("I2")
@pytest.mark.parametrize("unbuffered", ["", "1"], ids=["at the end", "at once"])
def test_a_stored_change_with_failed_output_is_reported_as_done(sample_home: Path, unbuffered: str) -> None:
    environment = {**os.environ, "PYTHONUNBUFFERED": unbuffered}
    with Path("/dev/full").open("w") as full:
        line = command("note", "likes tea", "--resource", "ada", home=sample_home)
        ran = subprocess.run(
            line, stdout=full, stderr=subprocess.PIPE, text=True, timeout=60, check=False, env=environment
        )
    assert ran.returncode == 74
    assert in_one_line(ran.stderr) == (
        "inmind: UNSAID: done, but the output could not be written: No space left on device\n"
    )
    with Memory.open(sample_home) as memory:
        assert "likes tea" in memory.resource("ada").state.documents.text("memory/scratch.md")


@pytest.mark.spec("I2")
@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["note", "--help"]], ids=" ".join)
def test_help_into_a_closed_pipe_ends_quietly(arguments: list[str]) -> None:
    read_end, write_end = os.pipe()
    os.close(read_end)
    ran = subprocess.run(command(*arguments), stdout=write_end, stderr=subprocess.PIPE, timeout=60, check=False)
    os.close(write_end)
    assert (ran.returncode, ran.stderr) == (141, b"")


@pytest.mark.spec("I2")
def test_a_command_works_without_terminal_and_streams(sample_home: Path) -> None:
    started = f"exec {' '.join(map(_quote, command('note', 'likes tea', '--resource', 'ada', home=sample_home)))}"
    ran = subprocess.run(["sh", "-c", f"{started} <&- >&- 2>&-"], start_new_session=True, timeout=60, check=False)
    assert ran.returncode == 0
    assert "likes tea" in inmind("search", "tea", home=sample_home).stdout


@pytest.mark.spec("I2")
@pytest.mark.parametrize(
    ("arguments", "without", "ends", "message"),
    [
        (["show", "overview", "missing"], "2>&-", 3, ""),
        (["show", "overview", "missing"], ">&-", 3, "inmind: NOT_FOUND: no session 'missing'"),
        (["note", "-", "--resource", "ada"], "<&-", 2, "inmind: INVALID_INPUT: TEXT: "),
    ],
)
def test_output_for_a_closed_stream_is_not_written_to_another(
    sample_home: Path, arguments: list[str], without: str, ends: int, message: str
) -> None:
    started = f"exec {' '.join(map(_quote, command(*arguments, home=sample_home)))} {without}"
    ran = subprocess.run(["sh", "-c", started], capture_output=True, text=True, timeout=60, check=False)
    assert (ran.returncode, ran.stdout) == (ends, "")
    assert ran.stderr.startswith(message)
    assert bool(ran.stderr) is bool(message)


@pytest.mark.spec("I2")
def test_an_ascii_terminal_shows_escaped_characters(sample_home: Path) -> None:
    environment = {**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    inmind("note", "Ada trinkt Käffchen", "--resource", "ada", home=sample_home)
    line = command("search", "trinkt", home=sample_home)
    ran = subprocess.run(line, capture_output=True, text=True, timeout=60, check=False, env=environment)
    assert ran.returncode == 0
    assert "K\\xe4ffchen" in ran.stdout


@pytest.mark.spec("I2")
def test_debug_prints_a_traceback_and_the_same_last_line(sample_home: Path) -> None:
    plain = inmind("show", "overview", "missing", home=sample_home)
    debug = inmind("--debug", "show", "overview", "missing", home=sample_home)
    assert debug.returncode == plain.returncode
    assert "Traceback (most recent call last)" in debug.stderr
    assert debug.stderr.endswith(plain.stderr)


@pytest.mark.spec("I2")
def test_a_defect_is_one_line_that_asks_to_report_it(sample_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def defective(*_: object, **__: object) -> None:
        raise RuntimeError("half of a thing")

    monkeypatch.setattr(Memory, "sessions", defective)
    ran = run_in_process("sessions", home=sample_home)
    assert (ran.exit_code, ran.stdout) == (70, "")
    assert in_one_line(ran.stderr).startswith("inmind: DEFECT: RuntimeError: half of a thing; ")


@pytest.mark.spec("I2")
def test_an_os_error_without_number_is_reported_with_its_text(
    sample_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(*_: object, **__: object) -> None:
        raise OSError("half of a thing")

    monkeypatch.setattr(Memory, "sessions", failing)
    ran = run_in_process("sessions", home=sample_home)
    assert (ran.exit_code, in_one_line(ran.stderr)) == (1, "inmind: FAILED: half of a thing\n")


@pytest.mark.spec("I2")
def test_a_damaged_home_refers_to_the_doctor(sample_home: Path) -> None:
    (sample_home / "inmind.db").write_bytes(b"no database " * 1_000)
    ran = run_in_process("sessions", home=sample_home)
    assert ran.exit_code == 5
    assert in_one_line(ran.stderr).endswith("; run `inmind doctor` for details\n")


@pytest.mark.spec("I2")
@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["search", "x", "--limit", "0"], "--limit"),
        (["search", "x", "--kind", "whim"], "--kind"),
        (["search", "x", "--since", "never"], "--since"),
        (["show", "journal", "support-42", "--after", "-1"], "--after"),
        (["affect", "ada", "--spike", "whim"], "--spike"),
        (["affect", "ada", "--hours", "1e300"], "--hours"),
        (["worker", "--every", "1e300"], "--every"),
        (["upkeep", "--seconds", "-1"], "--seconds"),
        (["economics", "ada", "earning", "much"], "AMOUNT"),
        (["economics", "ada", "gift", "5"], "earning|spending|listing"),
        (["compact", "support-42", "--target", "everything"], "--target"),
        (["replay", "/dev/zero"], "FILE"),
    ],
)
def test_a_refused_argument_is_named_as_it_was_typed(arguments: list[str], named: str, sample_home: Path) -> None:
    ran = run_in_process(*arguments, home=sample_home)
    assert (ran.exit_code, ran.stdout) == (2, "")
    assert in_one_line(ran.stderr).startswith(f"inmind: INVALID_INPUT: {named}: expected ")


@pytest.mark.spec("I2")
def test_an_option_with_fixed_values_completes_to_them(sample_home: Path) -> None:
    def completed(*words: str) -> list[str]:
        line = ["inmind", "--home", str(sample_home), *words]
        environment = {"COMP_WORDS": " ".join(line), "COMP_CWORD": str(len(line) - 1)}
        completion = {**environment, "_INMIND_COMPLETE": "bash_complete"}
        lines = CliRunner().invoke(app, prog_name="inmind", env=completion).stdout.split()
        return [line.removeprefix("plain,") for line in lines]

    assert completed("note", "x", "--kind", "pref") == ["preference"]
    assert completed("search", "x", "--source", "s") == ["sessions"]
    assert completed("compact", "support-42", "--target", "t") == ["tools"]
    assert completed("compact", "support-42", "--strategy", "s") == ["summarize"]
    assert completed("affect", "ada", "--spike", "r") == ["reward", "recall"]
    assert completed("economics", "ada", "e") == ["earning"]
    assert completed("show", "state", "a") == ["ada"]
    assert completed("show", "state", "su") == ["support-42"]
    assert completed("show", "state", "--home", str(sample_home / "nowhere"), "su") == []


@pytest.mark.spec("I2")
def test_completion_never_offers_a_name_that_the_shell_would_run(sample_home: Path, tmp_path: Path) -> None:
    if shutil.which("bash") is None:
        pytest.skip("bash is not installed")
    with Memory.open(sample_home) as memory:
        memory.session("evil$(touch${IFS}ran)", resource="evil`touch${IFS}ran`").add([user("Hi")])
        memory.session("-rf", resource="--version").add([user("Hi")])
    screen = in_bash(
        tmp_path,
        f"inmind --home {sample_home} show overview support-\t\n",
        f"inmind --home {sample_home} show overview ev\t\n",
    )
    assert "# Working memory" in screen, "the session was not completed"
    assert "NOT_FOUND: no session 'ev'" in screen
    assert not (tmp_path / "ran").exists()


@pytest.mark.spec("I2")
@pytest.mark.parametrize(
    "shell", ["bash", *(pytest.param(shell, marks=pytest.mark.exhaustive) for shell in ("zsh", "fish"))]
)
def test_a_shell_completes_commands_sessions_and_resources(sample_home: Path, shell: str) -> None:
    def completed(*words: str) -> str:
        line = " ".join(("inmind", "--home", str(sample_home), *words))
        current = words[-1] if shell == "fish" else str(len(line.split()) - 1)  # fish passes the word itself
        environment = {
            **os.environ,
            "_INMIND_COMPLETE": f"{shell}_complete",
            "COMP_WORDS": line,
            "COMP_CWORD": current,
        }
        started = [
            sys.executable,
            "-c",
            "import sys; sys.argv[0] = 'inmind'; from inmind.apps.cli import main; main()",
        ]
        return subprocess.run(started, capture_output=True, text=True, timeout=60, check=False, env=environment).stdout

    assert "sessions" in completed("sess")
    assert "support-42" in completed("show", "prompt", "sup")
    assert "ada" in completed("dream", "list", "a")


@pytest.mark.spec("I2")
def test_only_the_exit_code_module_catches_broad_errors() -> None:
    """Only one module may turn errors into exit codes."""
    folder = Path(import_module("inmind.apps.cli").__file__ or "").parent
    names = {"InmindError", "BaseException", "BrokenPipeError", "Exception"}
    catching = {
        path.name
        for path in folder.glob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.ExceptHandler) and node.type is not None and names & _names_in(node.type)
    }
    continues = {"background.py", "replay.py"}  # with the next round or file
    keeps_text = {"session_commands.py"}  # of the user
    assert catching == {"exit_codes.py", *continues, *keeps_text}


def in_bash(folder: Path, *typed: str) -> str:
    """The screen of a shell with completion after these keys were typed."""
    script = folder / "bin" / "inmind"
    script.parent.mkdir()
    script.write_text(f"#!{sys.executable}\nfrom inmind.apps.cli import main\nmain()\n")
    script.chmod(0o755)
    (folder / "rc").write_text('eval "$(inmind --show-completion bash)"\nPS1="ready> "\n')
    environment = {**os.environ, "PATH": f"{script.parent}:{os.environ['PATH']}", "TERM": "dumb"}
    ours, theirs = pty.openpty()
    line = ["bash", "--noprofile", "--rcfile", str(folder / "rc"), "-i"]
    with subprocess.Popen(
        line, stdin=theirs, stdout=theirs, stderr=theirs, cwd=folder, env=environment, start_new_session=True
    ) as shell:
        os.close(theirs)
        screen = _read_until_ready(ours)
        for keys in typed:
            os.write(ours, keys.encode())
            screen += _read_until_ready(ours)
        os.write(ours, b"exit\n")
        shell.wait(30)
    os.close(ours)
    return screen


def _read_until_ready(terminal: int) -> str:
    output = b""
    while not output.endswith(b"ready> "):
        assert select.select([terminal], [], [], 30)[0], output
        output += os.read(terminal, 4_096)
    return output.decode()


def _names_in(node: ast.AST) -> set[str]:
    return {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}


def _quote(word: str) -> str:
    return "'" + word.replace("'", "'\\''") + "'"


def _wait_until_it_reads(process: int) -> None:
    """Wait until the process reads standard input: an earlier signal would hit the start of Python."""
    for _ in range(2_000):
        if Path(f"/proc/{process}/wchan").read_text() and _has_open_file(process, "inmind.db"):
            return
        time.sleep(0.01)
    raise AssertionError("the process never read its input")


def _has_open_file(process: int, name: str) -> bool:
    return any(_link_target(one).endswith(name) for one in Path(f"/proc/{process}/fd").iterdir())


def _link_target(descriptor: Path) -> str:
    try:
        return os.readlink(descriptor)
    except FileNotFoundError:  # closed since it was listed
        return ""

"""How every command ends when something is wrong: one line, an exit code, and nothing lost."""

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
import typer
from builders import turns, user
from tables import each_row
from terminal import at_once, command, inmind
from typer.testing import CliRunner

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
    ["ledger", "ada"],
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
"""Every command that looks into a home, with arguments that are right."""

NOBODY = 65_534
"""The user id of nobody, on most systems."""

MAKE_A_HOME = ("chat", "mcp", "import")
NEED_NONE = ("demo", "replay", "doctor", "tenant")

WRITE = (
    ["note", "likes tea", "--resource", "ada"],
    ["affect", "ada", "--raise", "reward"],
    ["ledger", "ada", "earning", "5"],
    ["edit", "overview.md", "--session", "support-42", "--from", __file__],
    ["compact", "support-42", "--keep-recent", "0"],
    ["dream", "run", "ada"],
    ["undo", "support-42"],
)


@pytest.fixture
def used(home: Path) -> Path:
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


def everything_in(home: Path) -> list[tuple[str, bytes]]:
    """The journal as it reads, whatever the database does with its pages."""
    with Memory.open(home) as memory:
        streams = [
            *(f"session/{info.id}" for info in memory.sessions()),
            *map("resource/{}".format, memory.resources()),
        ]
        store = memory._context.store  # pyright: ignore[reportPrivateUsage] -- all events, not only those of a session
        return [(event.id, repr(event.payload).encode()) for name in streams for event in store.read(name)]


@pytest.mark.spec("I2")
def test_the_table_says_of_each_command_what_its_own_help_says_first() -> None:
    for commands in COMMANDS.values():
        for name, entry in commands.items():
            module, _, attribute = entry.target.partition(":")
            found = getattr(import_module(module), attribute)
            told = str(found.info.help) if isinstance(found, typer.Typer) else (getdoc(found) or "").replace("\n", " ")
            assert told.startswith(entry.help), name


@pytest.mark.spec("I2")
def test_every_command_is_tried_here() -> None:
    named = {name for commands in COMMANDS.values() for name in commands}
    assert named == {arguments[0] for arguments in NEED_A_HOME} | {*MAKE_A_HOME, *NEED_NONE}


@pytest.mark.spec("I2")
def test_the_help_lists_every_command_and_every_exit_code_in_80_columns() -> None:
    ran = inmind("--help")
    assert ran.returncode == 0
    said = " ".join(ran.stdout.split())
    for commands in COMMANDS.values():
        for name, entry in commands.items():
            assert f" {name} {entry.help}" in said
    assert all(f"{code} {meaning}" in said for code, meaning in EXIT_CODE_HELP.items())
    assert all(len(line) <= 80 for line in ran.stdout.splitlines())


def test_every_exit_code_is_of_an_error_that_there_is() -> None:
    def below(error: type[InmindError]) -> Iterator[str]:
        yield error.code
        for more in error.__subclasses__():
            yield from below(more)

    assert set(EXIT_CODES) - {"INTERRUPTED"} <= set(below(InmindError))
    assert set(EXIT_CODES.values()) <= set(EXIT_CODE_HELP)


@pytest.mark.spec("I2", "J3")
@pytest.mark.parametrize("arguments", NEED_A_HOME, ids=" ".join)
def test_a_home_that_is_not_there_is_not_made(arguments: list[str], home: Path) -> None:
    ran = at_once(*arguments, home=home)
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
def test_a_broken_config_is_said_and_nothing_is_done(arguments: list[str], config: str, used: Path) -> None:
    before = everything_in(used)
    (used / "config.toml").write_text(config)
    ran = at_once(*arguments, home=used)
    assert (ran.exit_code, ran.stdout) == (2, "")
    assert "config.toml" in in_one_line(ran.stderr) or "dream." in ran.stderr
    (used / "config.toml").unlink()
    assert everything_in(used) == before


@pytest.mark.spec("I2", "J3", "M36")
@pytest.mark.parametrize("arguments", WRITE, ids=" ".join)
def test_a_home_with_a_newer_schema_is_read_and_not_written(arguments: list[str], used: Path) -> None:
    before = everything_in(used)
    database: Any = apsw.Connection(str(used / "inmind.db"))
    database.execute("PRAGMA user_version = 10000")
    database.close()
    ran = at_once(*arguments, home=used)
    assert ran.exit_code == 5
    assert "READ_ONLY" in in_one_line(ran.stderr)
    assert at_once("sessions", home=used).exit_code == 0
    assert everything_in(used) == before


@pytest.mark.spec("I2", "J3")
@pytest.mark.parametrize("arguments", [a for a in NEED_A_HOME if "support-42" in a], ids=" ".join)
def test_a_session_that_is_not_there_is_not_begun(arguments: list[str], used: Path) -> None:
    before = everything_in(used)
    ran = at_once(*("nobody" if one == "support-42" else one for one in arguments), home=used)
    assert (ran.exit_code, ran.stdout) == (3, "")
    assert "no session 'nobody'" in in_one_line(ran.stderr)
    assert everything_in(used) == before


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
def test_an_argument_that_does_not_fit_is_said_in_one_line_with_where_to_read_on(
    arguments: list[str], used: Path
) -> None:
    ran = at_once(*arguments, home=used)
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
def test_the_home_may_be_named_behind_the_command_too(arguments: list[str], used: Path) -> None:
    ran = CliRunner().invoke(app, [one.replace("HOME", str(used)) for one in arguments])
    assert (ran.exit_code, ran.stderr) == (0, "")
    assert "support-42" in ran.stdout


@pytest.mark.spec("I2")
def test_what_only_looks_like_an_option_of_all_is_taken_as_it_is(used: Path) -> None:
    assert at_once("note", "--resource", "ada", "--", "--home", home=used).exit_code == 0
    assert at_once("note", "likes tea", "--resource", "--debug", home=used).exit_code == 0
    with Memory.open(used) as memory:
        assert "--home\n" in memory.resource("ada").state.documents.text("memory/scratch.md")
        assert sorted(memory.resources()) == ["--debug", "ada"]


@pytest.mark.spec("I2")
@pytest.mark.parametrize("arguments", [["--debug", "undo", "nobody"], ["undo", "nobody", "--debug"]], ids=" ".join)
def test_debugging_may_be_asked_for_behind_the_command_too(arguments: list[str], used: Path) -> None:
    shown = at_once(*arguments, home=used).stderr
    assert shown.startswith("Traceback ")
    assert shown.splitlines()[-1].startswith("inmind: NOT_FOUND: no session 'nobody'")
    assert in_one_line(at_once("undo", "nobody", home=used).stderr)


@pytest.mark.spec("I2")
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["sesions"], "No such command 'sesions'. Did you mean 'sessions'? See `inmind --help`."),
        (["show", "promt", "x"], "No such command 'promt'. Did you mean 'prompt'? See `inmind show --help`."),
        (["nap"], "No such command 'nap'. See `inmind --help`."),
    ],
)
def test_a_mistyped_command_suggests_the_nearest_one(arguments: list[str], said: str) -> None:
    ran = CliRunner().invoke(app, arguments, prog_name="inmind")
    assert (ran.exit_code, ran.stderr) == (2, f"inmind: USAGE: {said}\n")


@pytest.mark.spec("I2")
@each_row("path", [[], ["sessions"], ["dream"], ["dream", "run"], ["show"]], ids=" ".join)
def test_a_short_h_asks_for_help_and_only_the_whole_offers_completion(path: list[str]) -> None:
    short, long = (CliRunner().invoke(app, [*path, option]) for option in ("-h", "--help"))
    assert (short.exit_code, short.stdout) == (0, long.stdout)
    assert ("--install-completion" in long.stdout) == (not path)
    assert "--home DIR" in long.stdout


@pytest.mark.spec("I2", "J3")
def test_a_home_of_another_user_is_left_alone() -> None:
    if os.getuid() != 0:
        pytest.skip("only root can be somebody else")
    code = (
        "import os, sys; from typer.testing import CliRunner; from inmind.apps.cli.app import app\n"
        "home = ['--home', sys.argv[1]]\n"
        "assert CliRunner().invoke(app, [*home, 'sessions']).exit_code == 0\n"  # what it takes is loaded now
        f"os.setuid({NOBODY}); app([*home, 'sessions'])"
    )
    with TemporaryDirectory() as place:  # that of a test is below folders that are somebody else's already
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
def test_a_command_that_is_stopped_in_the_middle_has_done_nothing(
    used: Path, sent: signal.Signals, ends: int, says: str
) -> None:
    before = everything_in(used)
    line = command("note", "-", "--resource", "ada", home=used)
    with subprocess.Popen(line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdin is not None
        process.stdin.write(b"half a no")
        process.stdin.flush()
        _wait_until_it_reads(process.pid)
        process.send_signal(sent)
        said, complaint = process.communicate(timeout=20)
    assert (process.returncode, said, complaint.decode()) == (ends, b"", says)
    assert everything_in(used) == before


@pytest.mark.spec("I2")
@pytest.mark.parametrize("form", [[], ["--json"]], ids=["text", "json"])
def test_a_reader_that_goes_away_ends_a_command_quietly(used: Path, form: list[str]) -> None:
    with Memory.open(used) as memory:
        memory.session("support-42").add([user(f"{number} {'x' * 1_000}") for number in range(200)])
    line = command("show", "journal", "support-42", *form, home=used)
    with subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.read(1)
        process.stdout.close()
        assert process.stderr is not None
        complaint = process.stderr.read()
        assert (process.wait(20), complaint) == (141, b"")


@pytest.mark.spec("I2")
def test_a_disk_that_is_full_behind_the_output_is_said(used: Path) -> None:
    with Path("/dev/full").open("w") as full:
        line = command("sessions", "--json", home=used)
        ran = subprocess.run(line, stdout=full, stderr=subprocess.PIPE, text=True, timeout=60, check=False)
    assert ran.returncode == 74
    assert "No space left on device" in in_one_line(ran.stderr)


@pytest.mark.spec("I2")
@pytest.mark.parametrize("unbuffered", ["", "1"], ids=["at the end", "at once"])
def test_a_change_that_was_made_is_not_said_to_have_failed_where_only_its_print_has(
    used: Path, unbuffered: str
) -> None:
    environment = {**os.environ, "PYTHONUNBUFFERED": unbuffered}
    with Path("/dev/full").open("w") as full:
        line = command("note", "likes tea", "--resource", "ada", home=used)
        ran = subprocess.run(
            line, stdout=full, stderr=subprocess.PIPE, text=True, timeout=60, check=False, env=environment
        )
    assert ran.returncode == 74
    assert in_one_line(ran.stderr) == (
        "inmind: UNSAID: done, but the output could not be written: No space left on device\n"
    )
    with Memory.open(used) as memory:
        assert "likes tea" in memory.resource("ada").state.documents.text("memory/scratch.md")


@pytest.mark.spec("I2")
@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["note", "--help"]], ids=" ".join)
def test_help_into_a_closed_pipe_ends_quietly(arguments: list[str]) -> None:
    reads, writes = os.pipe()
    os.close(reads)
    ran = subprocess.run(command(*arguments), stdout=writes, stderr=subprocess.PIPE, timeout=60, check=False)
    os.close(writes)
    assert (ran.returncode, ran.stderr) == (141, b"")


@pytest.mark.spec("I2")
def test_a_command_needs_neither_a_terminal_nor_any_stream(used: Path) -> None:
    started = f"exec {' '.join(map(_quoted, command('note', 'likes tea', '--resource', 'ada', home=used)))}"
    ran = subprocess.run(["sh", "-c", f"{started} <&- >&- 2>&-"], start_new_session=True, timeout=60, check=False)
    assert ran.returncode == 0
    assert "likes tea" in inmind("search", "tea", home=used).stdout


@pytest.mark.spec("I2")
@pytest.mark.parametrize(
    ("arguments", "without", "ends", "said"),
    [
        (["show", "overview", "nobody"], "2>&-", 3, ""),
        (["show", "overview", "nobody"], ">&-", 3, "inmind: NOT_FOUND: no session 'nobody'"),
        (["note", "-", "--resource", "ada"], "<&-", 2, "inmind: INVALID_INPUT: TEXT: "),
    ],
)
def test_what_goes_to_a_stream_that_is_not_there_goes_nowhere_else(
    used: Path, arguments: list[str], without: str, ends: int, said: str
) -> None:
    started = f"exec {' '.join(map(_quoted, command(*arguments, home=used)))} {without}"
    ran = subprocess.run(["sh", "-c", started], capture_output=True, text=True, timeout=60, check=False)
    assert (ran.returncode, ran.stdout) == (ends, "")
    assert ran.stderr.startswith(said)
    assert bool(ran.stderr) is bool(said)


@pytest.mark.spec("I2")
def test_a_terminal_that_knows_only_ascii_shows_which_character_it_was(used: Path) -> None:
    environment = {**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    inmind("note", "Ada trinkt Käffchen", "--resource", "ada", home=used)
    line = command("search", "trinkt", home=used)
    ran = subprocess.run(line, capture_output=True, text=True, timeout=60, check=False, env=environment)
    assert ran.returncode == 0
    assert "K\\xe4ffchen" in ran.stdout


@pytest.mark.spec("I2")
def test_debug_shows_what_led_to_a_failure_and_ends_with_the_same_line(used: Path) -> None:
    plain = inmind("show", "overview", "nobody", home=used)
    told = inmind("--debug", "show", "overview", "nobody", home=used)
    assert told.returncode == plain.returncode
    assert "Traceback (most recent call last)" in told.stderr
    assert told.stderr.endswith(plain.stderr)


@pytest.mark.spec("I2")
def test_a_defect_is_one_line_that_asks_to_report_it(used: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def defective(*_: object, **__: object) -> None:
        raise RuntimeError("half of a thing")

    monkeypatch.setattr(Memory, "sessions", defective)
    ran = at_once("sessions", home=used)
    assert (ran.exit_code, ran.stdout) == (70, "")
    assert in_one_line(ran.stderr).startswith("inmind: DEFECT: RuntimeError: half of a thing; ")


@pytest.mark.spec("I2")
def test_a_failure_that_has_no_number_is_said_in_its_own_words(used: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(*_: object, **__: object) -> None:
        raise OSError("half of a thing")

    monkeypatch.setattr(Memory, "sessions", failing)
    ran = at_once("sessions", home=used)
    assert (ran.exit_code, in_one_line(ran.stderr)) == (1, "inmind: FAILED: half of a thing\n")


@pytest.mark.spec("I2")
def test_a_home_that_is_damaged_says_who_tells_more(used: Path) -> None:
    (used / "inmind.db").write_bytes(b"no database " * 1_000)
    ran = at_once("sessions", home=used)
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
        (["affect", "ada", "--raise", "whim"], "--raise"),
        (["affect", "ada", "--hours", "1e300"], "--hours"),
        (["worker", "--every", "1e300"], "--every"),
        (["upkeep", "--seconds", "-1"], "--seconds"),
        (["ledger", "ada", "earning", "much"], "AMOUNT"),
        (["ledger", "ada", "gift", "5"], "earning|spending|listing"),
        (["compact", "support-42", "--target", "everything"], "--target"),
        (["replay", "/dev/zero"], "FILE"),
    ],
)
def test_what_is_refused_is_named_as_it_was_typed(arguments: list[str], named: str, used: Path) -> None:
    ran = at_once(*arguments, home=used)
    assert (ran.exit_code, ran.stdout) == (2, "")
    assert in_one_line(ran.stderr).startswith(f"inmind: INVALID_INPUT: {named}: expected ")


@pytest.mark.spec("I2")
def test_an_option_that_takes_one_of_several_completes_to_them(used: Path) -> None:
    def completed(*words: str) -> list[str]:
        line = ["inmind", "--home", str(used), *words]
        environment = {"COMP_WORDS": " ".join(line), "COMP_CWORD": str(len(line) - 1)}
        told = {**environment, "_INMIND_COMPLETE": "complete_bash"}
        return CliRunner().invoke(app, prog_name="inmind", env=told).stdout.split()

    assert completed("note", "x", "--kind", "pref") == ["preference"]
    assert completed("search", "x", "--source", "s") == ["sessions"]
    assert completed("compact", "support-42", "--target", "t") == ["tools"]
    assert completed("compact", "support-42", "--strategy", "s") == ["summarize"]
    assert completed("affect", "ada", "--raise", "r") == ["reward", "recall"]
    assert completed("ledger", "ada", "e") == ["earning"]
    assert completed("show", "state", "a") == ["ada"]
    assert completed("show", "state", "su") == ["support-42"]
    assert completed("show", "state", "--home", str(used / "nowhere"), "su") == []


@pytest.mark.spec("I2")
def test_a_shell_is_never_offered_a_name_that_it_would_run(used: Path, tmp_path: Path) -> None:
    if shutil.which("bash") is None:
        pytest.skip("there is no bash")
    with Memory.open(used) as memory:
        memory.session("evil$(touch${IFS}ran)", resource="evil`touch${IFS}ran`").add([user("Hi")])
        memory.session("-rf", resource="--version").add([user("Hi")])
    said = in_bash(
        tmp_path, f"inmind --home {used} show overview support-\t\n", f"inmind --home {used} show overview ev\t\n"
    )
    assert "# Working memory" in said, "completed, as it should be"
    assert "NOT_FOUND: no session 'ev'" in said
    assert not (tmp_path / "ran").exists()


@pytest.mark.spec("I2")
@pytest.mark.parametrize(
    "shell", ["bash", *(pytest.param(shell, marks=pytest.mark.exhaustive) for shell in ("zsh", "fish"))]
)
def test_a_shell_completes_commands_sessions_and_resources(used: Path, shell: str) -> None:
    def completed(*words: str) -> str:
        line = " ".join(("inmind", "--home", str(used), *words))
        environment = {
            **os.environ,
            "_INMIND_COMPLETE": f"complete_{shell}",
            "_TYPER_COMPLETE_ARGS": line,
            "COMP_WORDS": line,
            "COMP_CWORD": str(len(line.split()) - (not line.endswith(" "))),
            "_TYPER_COMPLETE_FISH_ACTION": "get-args",
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
def test_no_command_catches_what_the_door_has_to_end() -> None:
    """A second place that ends commands would be the one that gets the exit code wrong."""
    door = Path(import_module("inmind.apps.cli").__file__ or "").parent
    names = {"InmindError", "BaseException", "BrokenPipeError", "Exception"}
    catching = {
        path.name
        for path in door.glob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.ExceptHandler) and node.type is not None and names & _named(node.type)
    }
    goes_on = {"replay_view.py"}  # with the next file
    keeps = {"edit.py"}  # what somebody has written
    assert catching == {"exit_codes.py", *goes_on, *keeps}


def in_bash(folder: Path, *typed: str) -> str:
    """What a person sees who types this into a shell with completion, key by key."""
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
        said = _until_ready(ours)
        for keys in typed:
            os.write(ours, keys.encode())
            said += _until_ready(ours)
        os.write(ours, b"exit\n")
        shell.wait(30)
    os.close(ours)
    return said


def _until_ready(terminal: int) -> str:
    said = b""
    while not said.endswith(b"ready> "):
        assert select.select([terminal], [], [], 30)[0], said
        said += os.read(terminal, 4_096)
    return said.decode()


def _named(node: ast.AST) -> set[str]:
    return {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}


def _quoted(word: str) -> str:
    return "'" + word.replace("'", "'\\''") + "'"


def _wait_until_it_reads(process: int) -> None:
    """Until it waits for standard input: whoever is stopped earlier is stopped while Python starts."""
    for _ in range(2_000):
        if Path(f"/proc/{process}/wchan").read_text() and _opened(process, "inmind.db"):
            return
        time.sleep(0.01)
    raise AssertionError("it never came to read")


def _opened(process: int, name: str) -> bool:
    return any(_leads_to(one).endswith(name) for one in Path(f"/proc/{process}/fd").iterdir())


def _leads_to(descriptor: Path) -> str:
    try:
        return os.readlink(descriptor)
    except FileNotFoundError:  # closed since it was listed
        return ""

"""`inmind demo`: its checks are real, its output is short, and it leaves no files."""

from __future__ import annotations

import json
import os
import pty
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import false_ack
import pytest
from click.testing import CliRunner
from terminal import command

from inmind import Memory
from inmind.apps.cli.app import app
from inmind.apps.demo import command as demo_command
from inmind.apps.demo import cost, crash, full_window, references
from inmind.apps.demo.command import DemoContext
from inmind.history.compaction.policy import compaction_target

pytestmark = pytest.mark.embedded

TIMEOUT_SECONDS = 60.0
HEADINGS = re.compile(r"^(\d)  \S", re.MULTILINE)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder for temporary files of all demos in this module."""
    return tmp_path_factory.mktemp("temporary")


def run_demo(place: Path, *options: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "TMPDIR": str(place), "TERM": "dumb"}
    return subprocess.run(
        command("demo", *options), capture_output=True, text=True, timeout=TIMEOUT_SECONDS, check=False, env=environment
    )


@pytest.fixture(scope="module")
def piped_demo(place: Path) -> subprocess.CompletedProcess[str]:
    return run_demo(place)


@pytest.fixture(scope="module")
def facts(place: Path) -> dict[str, Any]:
    ran = run_demo(place, "--json")
    assert (ran.returncode, ran.stderr) == (0, "")
    return json.loads(ran.stdout)


@pytest.mark.spec("I2")
def test_the_demo_passes_in_five_acts_and_leaves_no_files(
    piped_demo: subprocess.CompletedProcess[str], place: Path
) -> None:
    assert (piped_demo.returncode, piped_demo.stderr) == (0, "")
    assert HEADINGS.findall(piped_demo.stdout) == list("12345")
    assert "NOT SO" not in piped_demo.stdout
    assert list(place.iterdir()) == []


def test_the_output_is_short_and_needs_no_colour(piped_demo: subprocess.CompletedProcess[str]) -> None:
    lines = piped_demo.stdout.splitlines()
    assert len(lines) <= 90
    assert all(len(line) <= 80 for line in lines if "mcp add" not in line)
    assert "\x1b" not in piped_demo.stdout


@pytest.mark.spec("B3")
def test_references_are_resolved_or_lead_to_a_question(
    piped_demo: subprocess.CompletedProcess[str], facts: dict[str, Any]
) -> None:
    act = piped_demo.stdout.partition("\n2  ")[0]
    assert 'it → page-123, "About Us"' in act
    assert "asks: Which picture: dawn.jpg or lake.jpg?" in act
    assert 'the other one → img-790, "lake.jpg"' in act
    assert "page-132 was never seen; did you mean page-123" in " ".join(act.split())
    replies = facts["references"]["said"]
    assert [one["ids"] for one in replies] == [
        [turn.expected] if turn.expected not in (None, "?") else [] for turn in references.TURNS
    ]
    tokens = facts["references"]["prompt"]["tokens"]
    assert sum(tokens.values()) == facts["references"]["prompt"]["tokens_used"]
    assert re.search(r"^ +T+S+.*H+.*M+·+⋯·+$", act, re.MULTILINE)


@pytest.mark.spec("E5", "E8")
def test_a_full_window_is_compacted_without_loss(facts: dict[str, Any]) -> None:
    act = facts["compaction"]
    first = act["first"]
    assert first["report"]["reason"] == "the window was full"
    assert first["after"]["tokens"]["history"] < first["before"]["tokens"]["history"]
    share = first["after"]["room_used"] / first["after"]["room"]
    assert share == pytest.approx(compaction_target(first["after"]["room"]), abs=0.05)
    assert first["ids_before"] == first["ids_known_after"] > 50
    assert act["ids_known"] == act["ids"] == 2 * full_window.DELIVERIES
    assert [item["text"] for item in first["report"]["items"][:3]] == [full_window.GOAL, *full_window.RULES]
    assert full_window.DETAIL in first["found"]


@pytest.mark.spec("G1", "G2", "G3", "G9")
def test_a_dream_moves_notes_into_the_next_prompt(
    piped_demo: subprocess.CompletedProcess[str], facts: dict[str, Any]
) -> None:
    dream = facts["dream"]
    assert (len(dream["notes"]), dream["notes_left"]) == (2, [])
    assert all(f"+- {note}" in dream["diff"].splitlines() for note in dream["notes"])
    assert all(f"- {note}" in dream["state_in_next_prompt"].splitlines() for note in dream["notes"])
    act = piped_demo.stdout.partition("\n3  ")[2].partition("\n4  ")[0]
    assert re.search(r"\+## The Bond\n +\+- Ada prefers alt texts in English\.\n", act)


@pytest.mark.spec("J1", "C02")
def test_acknowledged_notes_survive_a_kill_during_a_write(facts: dict[str, Any]) -> None:
    act = facts["crash"]
    assert act["killed"]
    assert (act["acknowledged"], act["found"], act["half"], act["lost"]) == (
        crash.NOTE_COUNT,
        crash.NOTE_COUNT,
        [],
        [],
    )
    assert act["troubles"] == []


@pytest.mark.spec("D6")
def test_the_price_is_shown_for_a_short_and_a_long_run(
    piped_demo: subprocess.CompletedProcess[str], facts: dict[str, Any]
) -> None:
    short, long = facts["price"]["bills"]
    assert short["ratio"] > 1 > long["ratio"]
    assert short["pays_from_call"] is None
    assert 1 < long["pays_from_call"] < long["calls"]
    assert f"From call {long['pays_from_call']} on memory is cheaper." in " ".join(piped_demo.stdout.split())


@pytest.mark.spec("J1")
def test_the_write_is_cut_in_the_middle_of_a_page(tmp_path: Path) -> None:
    """The write-ahead log ends in half a page, so SQLite has to repair it."""
    home = tmp_path / "home"
    died = subprocess.run([sys.executable, "-m", crash.CHILD_MODULE, str(home)], capture_output=True, check=False)
    assert died.returncode == -signal.SIGKILL
    log = (home / "inmind.db-wal").stat().st_size
    header, frame = 32, 24 + crash.PAGE_BYTES
    assert (log - header) % frame == 24 + crash.PAGE_BYTES // 2


def test_a_failed_check_is_printed_and_sets_the_exit_code(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The process acknowledges notes it did not store, and the run is too short to save costs."""
    monkeypatch.setattr(crash, "CHILD_MODULE", false_ack.__name__)
    monkeypatch.setattr(full_window, "DELIVERIES", 60)
    monkeypatch.setenv("PYTHONPATH", str(Path(false_ack.__file__).parent), prepend=os.pathsep)
    ran = CliRunner().invoke(app, ["demo", "--verbose"])
    assert ran.exit_code == 1
    act = ran.stdout.partition("\n4  ")[2].partition("\n5  ")[0]
    assert f"found     {false_ack.KEPT - 1} of {crash.NOTE_COUNT} acknowledged; incomplete: 1" in act
    assert "FAILED: every acknowledged note is found" in act
    assert "FAILED: no note is incomplete" in act
    assert "FAILED: a long run costs less with memory" in ran.stdout
    assert ran.stderr.startswith("inmind: FAILED: ")
    assert "crash: every acknowledged note is found" in ran.stderr
    assert "\nNext\n" not in ran.stdout
    assert ran.stdout.count("\n── T tools ──") == 3, "--verbose shows the prompts of the first three acts"


@contextmanager
def demo_on_terminal(place: Path, *options: str) -> Generator[tuple[subprocess.Popen[bytes], int]]:
    """Run the demo on a narrow terminal whose Ctrl-C reaches all its processes."""
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TMPDIR": str(place), "TERM": "xterm-256color", "COLUMNS": "60"}
    running = subprocess.Popen(
        command("demo", *options),
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env=environment,
        start_new_session=True,
        preexec_fn=_set_controlling_terminal,
    )
    os.close(theirs)
    try:
        yield running, ours
    finally:
        running.kill()
        running.wait()
        os.close(ours)


def _set_controlling_terminal() -> None:
    import fcntl
    import termios

    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def read_terminal(terminal: int, upto: bytes = b"") -> bytes:
    """Read a terminal up to some words, or until no process writes to it."""
    output, deadline = b"", time.monotonic() + TIMEOUT_SECONDS
    with suppress(OSError):  # end of the terminal: no process writes to it
        while (not upto or upto not in output) and time.monotonic() < deadline and (more := os.read(terminal, 65_536)):
            output += more
    return output


def process_state(process: int) -> tuple[str, int]:
    """The state of a process and the id of its parent."""
    with suppress(OSError):
        state, parent, *_ = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        return state, int(parent)
    return "X", 0


def children_of(process: int) -> list[int]:
    there = (int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit())
    return [one for one in there if process_state(one)[1] == process]


def is_alive(process: int) -> bool:
    """Whether a process runs; a zombie does not."""
    return process_state(process)[0] not in "ZX"


@pytest.mark.exhaustive
@pytest.mark.skipif(not Path("/proc").exists(), reason="parents of processes are read from /proc")
def test_ctrl_c_during_the_crash_ends_all_processes_and_leaves_no_files(tmp_path: Path) -> None:
    with demo_on_terminal(tmp_path) as (running, terminal):
        output = read_terminal(terminal, upto=crash.TITLE.encode())
        deadline = time.monotonic() + TIMEOUT_SECONDS
        while not (children := children_of(running.pid)) and running.poll() is None:
            assert time.monotonic() < deadline
            time.sleep(0.002)
        os.write(terminal, b"\x03")
        rest = read_terminal(terminal)
        assert running.wait(TIMEOUT_SECONDS) == 130
    assert children, "the crash process had not started"
    while any(map(is_alive, children)):  # the key interrupts them as well
        assert time.monotonic() < deadline
        time.sleep(0.002)
    assert list(tmp_path.iterdir()) == []
    assert b"Traceback" not in rest
    assert rest.count(b"inmind: INTERRUPTED: ") == 1
    coloured = re.search(rb"\x1b\[\d+;\d+mTT+\x1b\[0m", output)
    assert coloured, "the bar has no colour on a colour terminal"
    plain = re.sub(rb"\x1b\[[0-9;]*m", b"", output).decode()
    assert max(len(line) for line in plain.splitlines()) <= 60


def test_a_closed_reader_ends_the_demo_quietly(tmp_path: Path) -> None:
    script = f"{shlex.join(command('demo'))} | head -1; exit ${{PIPESTATUS[0]}}"
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    ran = subprocess.run(
        ["bash", "-c", script], capture_output=True, text=True, timeout=TIMEOUT_SECONDS, check=False, env=environment
    )
    assert (ran.returncode, ran.stderr) == (141, "")
    assert list(tmp_path.iterdir()) == []


def test_the_prompt_shown_as_a_bar_was_sent(memory: Memory, tmp_path: Path) -> None:
    act = references.play(DemoContext(memory=memory, folder=tmp_path, width=77))
    assert act.prompt is not None
    prompt, explanation = act.prompt
    assert prompt.request == memory.session(references.SESSION).prompt(prompt.call).request
    assert explanation.call == prompt.call


def test_a_cost_comparison_matches_the_recorded_usage(memory: Memory, tmp_path: Path) -> None:
    references.play(DemoContext(memory=memory, folder=tmp_path, width=77))
    session = memory.session(references.SESSION)
    bill = cost.compare_costs(session)
    assert bill.calls == session.usage.calls
    assert bill.with_memory[-1] == pytest.approx(session.usage.price(cost.RATES))
    assert list(bill.full_history) == sorted(bill.full_history)


class TestNextSteps:
    def test_the_commands_work_as_they_are_printed(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Each command is run with --help: model, client and pager are missing."""
        monkeypatch.chdir(Path(__file__).parents[2])
        chat, mcp, tutorial = (shlex.split(command) for command, _ in demo_command.next_steps())
        server = mcp[mcp.index("--") + 1 :]
        for arguments in (chat, server):
            ran = subprocess.run(
                [*arguments, "--help"], capture_output=True, text=True, timeout=TIMEOUT_SECONDS, check=False
            )
            assert (ran.returncode, ran.stderr) == (0, "")
        assert Path(server[0]).is_absolute() or server[0] == "inmind"
        assert tutorial[0] == "less"
        assert Path(tutorial[1]).exists()

    def test_a_command_on_the_path_is_printed_by_its_name(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        program = tmp_path / "with space" / "inmind"
        program.parent.mkdir()
        program.touch(mode=0o755)
        monkeypatch.setattr(demo_command, "get_path", {"scripts": str(program.parent)}.__getitem__)
        monkeypatch.setenv("PATH", str(program.parent))
        assert demo_command.next_steps()[0][0] == "inmind chat"
        monkeypatch.setenv("PATH", "/nowhere")
        monkeypatch.chdir(tmp_path)
        assert demo_command.next_steps()[0][0] == "'with space/inmind' chat"
        assert demo_command.next_steps()[1][0] == f"claude mcp add inmind -- '{program}' mcp"

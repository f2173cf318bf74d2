"""Dreams, affect, economics and upkeep on the command line."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace
from threading import Event

import pytest
from builders import Home, assistant, configure, page_of, user
from model_server import HttpReply, model_server
from terminal import command, exit_code_for, inmind, run_in_process, run_on_terminal

from inmind import Memory
from inmind.apps.cli.resource_commands import describe_dream
from inmind.dreams.state import LIMIT_REACHED
from inmind.testing import ManualClock

TABS = "Ada prefers tabs over spaces."
DEADLINE = "The deadline of the API migration is March 20."


@pytest.fixture
def home_with_notes(home: Home) -> Home:
    """A home with one resource and two waiting notes."""
    with Memory.open(home) as memory:
        session = memory.session("support-42", resource="ada", cwd="/website")
        session.note(TABS, kind="preference", importance=0.8)
        session.note(DEADLINE, kind="fact")
    return home


@pytest.fixture
def home_with_dream(home_with_notes: Home) -> Home:
    with Memory.open(home_with_notes) as memory:
        memory.dream("ada")
    return home_with_notes


def state_of(home: Home) -> str:
    with Memory.open(home) as memory:
        return page_of(memory, "MEMORY.md")


def waiting_notes(home: Home) -> str:
    with Memory.open(home) as memory:
        return page_of(memory, "memory/scratch.md")


def refusal(*arguments: str, home: Home) -> str:
    """The one line in which a command reports its error."""
    ran = inmind(*arguments, home=home)
    assert (ran.returncode, ran.stderr.count("\n")) == (exit_code_for(ran.stderr), 1), ran.stdout + ran.stderr
    return ran.stderr


@pytest.mark.spec("G3", "G13")
def test_a_dream_prints_its_phases_and_merged_notes(home_with_notes: Home) -> None:
    ran = inmind("dream", "run", "ada", home=home_with_notes)
    assert (ran.returncode, ran.stderr) == (0, "")
    *phases, head, _, _ = ran.stdout.splitlines()
    assert [line.partition(":")[0] for line in phases] == ["gather", "propose", "check", "commit", "index"]
    assert "by rules in " in head
    assert head.endswith(" s: 2 notes merged, 2 lines added to MEMORY.md, 0 removed.")
    assert f"+ The Bond: {TABS}\n" in ran.stdout
    assert f"\n- {TABS}\n" in state_of(home_with_notes)
    assert TABS not in waiting_notes(home_with_notes)


def test_a_dream_without_a_model_call_gives_its_reason_once(home_with_notes: Home) -> None:
    with Memory.open(home_with_notes, embedder=None) as memory:
        dream = replace(memory.dream("ada"), reason=f"{LIMIT_REACHED}tokens_per_day has no room for one more answer")
    assert [line for line in describe_dream(dream) if line.startswith("By rules")] == [
        "By rules, without a model call: limit reached: tokens_per_day has no room for one more answer"
    ]


@pytest.mark.spec("G13")
def test_on_a_terminal_only_the_outcome_of_a_dream_stays(home_with_notes: Home) -> None:
    lines = run_on_terminal("dream", "run", home=home_with_notes)
    assert any("is done, by rules" in line for line in lines)
    assert not any(line.startswith(("commit", "index")) for line in lines)


@pytest.mark.spec("G13")
def test_the_json_of_a_dream_is_complete(home_with_notes: Home) -> None:
    ran = json.loads(inmind("dream", "run", "--rules", "--json", home=home_with_notes).stdout)
    assert (ran["status"], ran["by"], ran["trigger"], ran["resource"]) == ("done", "rules", "asked", "ada")
    assert {(line["section"], line["text"]) for line in ran["lines"]} >= {("The Bond", TABS)}
    assert len(ran["notes"]) == 2
    assert all(verdict["passed"] for verdict in ran["verdicts"])
    assert (ran["before"], f"+- {TABS}" in ran["diff"].splitlines()) == ("", True)
    assert json.loads(inmind("dream", "show", "ada", str(ran["id"]), "--json", home=home_with_notes).stdout) == ran
    (row,) = json.loads(inmind("dream", "list", "ada", "--json", home=home_with_notes).stdout)
    assert row == {key: value for key, value in ran.items() if key not in ("before", "after", "diff")}


@pytest.mark.spec("G13")
def test_dreams_are_listed_in_one_line_each_and_shown_with_their_guards(home_with_dream: Home) -> None:
    heading, row = inmind("dream", "list", "ada", home=home_with_dream).stdout.splitlines()
    assert heading.split()[:2] == ["dream", "began"]
    assert row.split()[3:8] == ["done", "rules", "asked", "2", "2"]
    output = inmind("dream", "show", "ada", home=home_with_dream).stdout
    assert f"+ The Bond: {TABS}\n" in output
    assert "Guards passed: " in output
    assert "Mood: calm (dopamine 0.15" in output


def test_a_resource_without_dreams_has_none_to_show(home_with_notes: Home) -> None:
    assert inmind("dream", "list", "ada", home=home_with_notes).stdout == "No dreams of ada yet.\n"
    for action in ("show", "diff"):
        assert "NOT_FOUND: no dream 'ada': no dreams of ada yet" in refusal(
            "dream", action, "ada", home=home_with_notes
        )


@pytest.mark.spec("G13")
def test_a_diff_is_plain_in_a_pipe_and_coloured_on_a_terminal(home_with_dream: Home) -> None:
    piped = inmind("dream", "diff", "ada", home=home_with_dream).stdout
    assert f"\n+- {TABS}\n" in piped
    assert "\x1b" not in piped
    (line,) = (
        line for line in run_on_terminal("dream", "diff", "ada", home=home_with_dream, terminal="xterm") if TABS in line
    )
    assert line == f"\x1b[32m+- {TABS}\x1b[0m"
    both = json.loads(inmind("dream", "diff", "ada", "--json", home=home_with_dream).stdout)
    assert (both["before"], both["after"]) == ("", state_of(home_with_dream))


@pytest.mark.spec("G13")
def test_the_last_dream_is_undone_and_its_notes_wait_again(home_with_dream: Home) -> None:
    output = inmind("dream", "undo", "ada", home=home_with_dream).stdout
    assert output.endswith(" of ada is undone: MEMORY.md is as before it, and its 2 notes wait again.\n")
    assert TABS in waiting_notes(home_with_dream)
    assert TABS not in state_of(home_with_dream)
    assert ", since undone: " in inmind("dream", "show", "ada", home=home_with_dream).stdout
    assert "NOT_FOUND: no dream to undo" in refusal("dream", "undo", "ada", home=home_with_dream)


@pytest.mark.spec("G7")
def test_a_running_dream_refuses_a_second_one(home_with_notes: Home) -> None:
    refused: list[str] = []

    def watch(phase: str, _: str) -> None:
        if phase == "propose":
            refused.append(refusal("dream", "run", "ada", home=home_with_notes))

    with Memory.open(home_with_notes) as memory:
        assert memory.dream("ada", watch=watch).status == "done"
    (line,) = refused
    assert line.startswith("inmind: DREAM_RUNNING: dream ")


def test_a_resource_need_not_be_named_if_there_is_only_one(home_with_notes: Home) -> None:
    with Memory.open(home_with_notes) as memory:
        memory.session("mine")  # an anonymous session belongs to no resource
    assert inmind("affect", home=home_with_notes).stdout.startswith("ada is calm.\n")
    with Memory.open(home_with_notes) as memory:
        memory.session("two", resource="bob").note("Bob is vegan.")
    for command_ in (["dream", "run"], ["affect"], ["show", "state"]):
        assert (
            refusal(*command_, home=home_with_notes)
            == "inmind: INVALID_INPUT: RESOURCE: expected the name of a resource: ada, bob\n"
        )


def test_a_home_with_only_anonymous_sessions_has_no_resource(home: Home) -> None:
    with Memory.open(home) as memory:
        memory.session("mine").note("x")
    assert "NOT_FOUND: no resource in '" in refusal("dream", "run", home=home)
    assert "NOT_FOUND: no resource 'default'" in refusal("show", "state", "mine", home=home)


@pytest.mark.spec("J3")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["dream", "run", "bob"], "NOT_FOUND: no resource 'bob'"),
        (["dream", "list", "bob"], "NOT_FOUND: no resource 'bob'"),
        (["dream", "show", "ada", "99"], "NOT_FOUND: no dream 99: `inmind dream list ada` lists"),
        (["dream", "undo", "ada", "99"], "NOT_FOUND: no dream 99"),
        (["show", "state", "bob"], "NOT_FOUND: no resource or session 'bob'"),
        (["affect", "bob"], "NOT_FOUND: no resource 'bob'"),
        (["affect", "ada", "--spike", "joy"], "INVALID_INPUT: --spike: expected one of reward, "),
        (["affect", "ada", "--why", "so"], "INVALID_INPUT: --why: expected --spike with it"),
        (["affect", "ada", "--hours", "nan"], "INVALID_INPUT: --hours: "),
        (["affect", "ada", "--hours", "0"], "INVALID_INPUT: --hours: "),
        (["affect", "ada", "--hours", "1e300"], "INVALID_INPUT: --hours: "),
        (["economics", "bob"], "NOT_FOUND: no resource 'bob'"),
        (["economics", "ada", "gift", "1"], "INVALID_INPUT: earning|spending|listing: expected one of earning, "),
        (["economics", "ada", "earning"], "INVALID_INPUT: AMOUNT: expected more than 0"),
        (["economics", "ada", "earning", "a lot"], "INVALID_INPUT: AMOUNT: "),
        (["economics", "ada", "earning", "1", "--seller", "ben"], "INVALID_INPUT: --seller: "),
        (["economics", "ada", "--skill", "tea"], "INVALID_INPUT: --skill: expected a kind of entry with it"),
        (["worker", "--every", "0"], "INVALID_INPUT: --every: expected more than 0 and at most"),
        (["worker", "--every", "nan"], "INVALID_INPUT: --every: expected more than 0 and at most"),
    ],
)
def test_invalid_arguments_are_refused_in_one_line(home_with_dream: Home, arguments: list[str], message: str) -> None:
    ran = run_in_process(*arguments, home=home_with_dream)
    assert (ran.exit_code, ran.stdout, ran.stderr.count("\n")) == (exit_code_for(ran.stderr), "", 1)
    assert message in ran.stderr


@pytest.mark.spec("J4")
def test_notes_reasons_and_skills_are_escaped(home: Home) -> None:
    text = "Call me [bold]Ada\x1b[2J[/bold]\u202e, never Miss L."
    with Memory.open(home) as memory:
        memory.session("s", resource="ada").note(text, kind="preference", importance=0.9)
        memory.resource("ada").economics.record("listing", skill="tea\x1b[2J")
        for _ in range(2):
            memory.resource("ada").affect.spike("achievement", "\x1b[2Jbold")
    for arguments in (
        ["dream", "run"],
        ["dream", "list", "ada"],
        ["dream", "show", "ada"],
        ["dream", "diff", "ada"],
        ["show", "state"],
        ["affect"],
        ["economics", "ada"],
    ):
        ran = inmind(*arguments, home=home)
        assert (ran.returncode, ran.stderr) == (0, "")
        assert all(line.isprintable() for line in ran.stdout.split("\n")), arguments
    assert "[bold]Ada⟨U+001B⟩[2J[/bold]" in inmind("dream", "diff", "ada", home=home).stdout


class Gate(Event):
    """An event that also records whether a thread waits for it."""

    def __init__(self) -> None:
        super().__init__()
        self.reached = Event()

    def wait(self, timeout: float | None = None) -> bool:
        self.reached.set()
        return super().wait(timeout)


@contextmanager
def hanging_model(home: Home) -> Generator[Event]:
    """Configure a model that does not answer during the block; the event is set when it is called."""
    gate = Gate()
    with model_server() as server:
        server.will(*[HttpReply("{}", gate=gate)] * 3)
        model = f'[model]\nname = "slow"\nurl = "{server.url}"\n'
        configure(home, f"{model}[dream]\nfirst_minutes = 0\nmin_crystals = 1\n")
        try:
            yield gate.reached
        finally:
            gate.set()


@contextmanager
def started(*arguments: str, home: Home) -> Generator[subprocess.Popen[str]]:
    line = command(*arguments, home=home)
    with subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def read_line_with_prefix(process: subprocess.Popen[str], words: str) -> str:
    """Read lines until one begins with these words."""
    assert process.stdout is not None
    return next(line for line in process.stdout if line.startswith(words))


@pytest.mark.spec("G7", "G12")
@pytest.mark.parametrize("signum", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.exhaustive)])
def test_a_signal_cancels_a_dream_without_changes(home_with_notes: Home, signum: signal.Signals) -> None:
    with hanging_model(home_with_notes) as called, started("dream", "run", "ada", home=home_with_notes) as process:
        assert called.wait(30)
        process.send_signal(signum)
        _, complaint = process.communicate(timeout=5)
    assert process.returncode == 130
    assert complaint.count("\n") == 1
    assert "was cancelled: nothing was changed" in complaint
    assert TABS in waiting_notes(home_with_notes)
    assert "failed" in inmind("dream", "list", "ada", home=home_with_notes).stdout
    assert inmind("dream", "run", "ada", "--rules", home=home_with_notes).returncode == 0


@pytest.mark.spec("G7", "G13", "K20")
@pytest.mark.parametrize("during_the_takeover", [True, pytest.param(False, marks=pytest.mark.exhaustive)])
def test_a_dream_taken_over_by_another_process_is_reported(home_with_notes: Home, during_the_takeover: bool) -> None:
    """By the clock of the other process, the lease of the slow dream has expired."""
    with hanging_model(home_with_notes) as called, started("dream", "run", "ada", home=home_with_notes) as process:
        assert called.wait(30)
        ended: list[tuple[str, str]] = []

        def end_at(phase: str, _: str = "") -> None:
            if phase == ("commit" if during_the_takeover else "over"):
                ended.append(process.communicate(timeout=30))

        with Memory.open(home_with_notes) as memory:
            running = memory.resource("ada").state.dreams.running
        assert running is not None
        with Memory.open(
            home_with_notes, clock=ManualClock(running.lease_until), settings={"model.name": ""}
        ) as memory:
            dream = memory.dream("ada", watch=end_at)
            assert (dream.id, dream.status, dream.by) == (running.dream, "done", "rules")
        end_at("over")
    ((output, complaint),) = ended
    if during_the_takeover:
        assert (process.returncode, complaint.count("\n")) == (4, 1)
        reason = f"another process took the dream over: Dream {dream.id} of ada has been running since "
        assert complaint.startswith(f"inmind: DREAM_OVERTAKEN: {reason}")
    else:
        assert (process.returncode, complaint) == (0, "")
        assert f"Dream {dream.id} of ada is done, by rules in " in output
    assert state_of(home_with_notes).count(TABS) == 1
    assert TABS not in waiting_notes(home_with_notes)


@pytest.mark.spec("G9")
def test_levels_are_shown_as_bars_with_mood_and_history(home_with_notes: Home) -> None:
    calm = run_on_terminal("affect", home=home_with_notes)
    assert calm[0] == "ada is calm."
    assert [line.split()[0] for line in calm[1:4]] == ["dopamine", "cortisol", "oxytocin"]
    assert all(len(line) <= 80 for line in calm[:4])
    raised = inmind("affect", "ada", "--spike", "achievement", "--why", "all tests pass", home=home_with_notes).stdout
    assert raised.startswith("ada is motivated")
    (dopamine,) = (line for line in raised.splitlines() if line.startswith("dopamine"))
    assert dopamine.split()[1] == "█" * 11 + "░" * 9
    report = json.loads(inmind("affect", "ada", "--hours", "2", "--json", home=home_with_notes).stdout)
    assert (report["enabled"], report["resource"]) == (True, "ada")
    assert report["levels"]["dopamine"] == pytest.approx(0.55, abs=0.05)
    assert [point["dopamine"] for point in report["history"][:2]] == [0.15, 0.15]


@pytest.mark.spec("G9")
def test_a_high_level_leaves_a_note_with_the_reason(home_with_notes: Home) -> None:
    for _ in range(2):
        inmind("affect", "ada", "--spike", "achievement", "--why", "all tests pass", home=home_with_notes)
    assert json.loads(inmind("show", "state", "--json", home=home_with_notes).stdout)["notes"] == 3
    assert "[AUTO] Dopamine is high (0.9" in waiting_notes(home_with_notes)
    assert "all tests pass" in waiting_notes(home_with_notes)


@pytest.mark.spec("G9")
def test_with_affect_disabled_a_spike_is_refused(home_with_notes: Home) -> None:
    configure(home_with_notes, "[affect]\nenabled = false\n")
    assert "--spike: expected affect to be enabled" in refusal(
        "affect", "ada", "--spike", "error", home=home_with_notes
    )
    assert inmind("affect", home=home_with_notes).stdout.startswith("Affect is disabled ")
    assert json.loads(inmind("affect", "--json", home=home_with_notes).stdout)["enabled"] is False


@pytest.mark.spec("G14")
def test_economic_entries_are_recorded_and_reported(home_with_notes: Home) -> None:
    assert inmind("economics", "ada", home=home_with_notes).stdout == "No entries for ada yet.\n"
    entered = inmind(
        "economics", "ada", "earning", "12.50", "--skill", "refactoring", "--buyer", "ben", home=home_with_notes
    )
    assert entered.stdout == "Recorded as resource/ada#3.\n"
    inmind("economics", "ada", "spending", "1.2", "--seller", "ccc", "--note", "a model", home=home_with_notes)
    assert json.loads(
        inmind("economics", "ada", "listing", "--skill", "review", "--json", home=home_with_notes).stdout
    )["id"]
    assert inmind("economics", "ada", home=home_with_notes).stdout.splitlines() == [
        "USD",
        "  earned   12.50 in 1 sale, 1 buyer",
        "  spent    1.20, 1 time",
        "  offered  review",
        "  best     refactoring 12.50",
        "  7 days   12.50 ▁▁▁▁▁▁█ after 0 in the 7 days before",
    ]
    (books,) = json.loads(inmind("economics", "ada", "--json", home=home_with_notes).stdout)
    assert (books["earned"], books["spent"], books["top"]) == ("12.50", "1.2", {"refactoring": "12.50"})


@pytest.mark.spec("G1", "G14")
def test_a_state_is_shown_with_waiting_notes_last_dream_and_earnings(home_with_dream: Home) -> None:
    with Memory.open(home_with_dream) as memory:
        memory.session("support-42").note("Ada moves to Berlin.")
        memory.resource("ada").economics.record("earning", amount="3", skill="tea")
    output = inmind("show", "state", "ada", home=home_with_dream).stdout
    assert output == inmind("show", "state", "support-42", home=home_with_dream).stdout
    assert output.startswith(state_of(home_with_dream))
    page, _, rest = output.rpartition("\n\n")
    assert page == state_of(home_with_dream).rstrip("\n")
    waiting, dream, earned = rest.splitlines()
    assert waiting.startswith("1 note waiting for a dream. Mood: ")
    assert dream.startswith("Dream ")
    assert earned.startswith("Earned 3 USD in 1 sale ")
    report = json.loads(inmind("show", "state", "--json", home=home_with_dream).stdout)
    assert (report["state"], report["notes"], report["dream"]["status"]) == (state_of(home_with_dream), 1, "done")


def test_an_empty_state_is_reported_as_empty(home_with_notes: Home) -> None:
    output = inmind("show", "state", home=home_with_notes).stdout
    assert output.startswith("MEMORY.md of ada is empty.\n\n2 notes waiting for a dream. Mood: calm.\nNo dreams yet.\n")


@pytest.mark.spec("G3")
def test_one_round_of_upkeep_runs_dreams_that_are_due(home_with_notes: Home) -> None:
    assert inmind("upkeep", home=home_with_notes).stdout == "Upkeep finished.\n"  # two notes are too few
    with Memory.open(home_with_notes) as memory:
        memory.session("support-42").add([user("Where do we deploy?"), assistant("To Vienna."), user("Do it at noon.")])
    dream, done = inmind("upkeep", home=home_with_notes).stdout.splitlines()
    assert dream.startswith("Dream ")
    assert done == "Upkeep finished."
    again = json.loads(inmind("upkeep", "--json", home=home_with_notes).stdout)
    assert (again["finished"], again["dreams"]) == (True, [])


@pytest.mark.spec("G3")
@pytest.mark.parametrize("signum", [pytest.param(signal.SIGINT, marks=pytest.mark.exhaustive), signal.SIGTERM])
def test_a_worker_prints_its_dreams_and_stops_on_a_signal(home_with_notes: Home, signum: signal.Signals) -> None:
    configure(home_with_notes, "[dream]\nfirst_minutes = 0\nmin_crystals = 1\n")
    with started("worker", "--every", "3600", home=home_with_notes) as process:
        assert "2 notes merged" in read_line_with_prefix(process, "Dream ")
        process.send_signal(signum)
        output, complaints = process.communicate(timeout=5)
    assert (process.returncode, output, complaints) == (0, "Stopped.\n", "")
    assert TABS in state_of(home_with_notes)


@pytest.mark.embedded
@pytest.mark.spec("G3", "G7")
def test_a_worker_stopped_during_a_dream_changes_nothing(home_with_notes: Home) -> None:
    with hanging_model(home_with_notes) as called, started("worker", "--json", home=home_with_notes) as process:
        assert called.wait(30)
        process.send_signal(signal.SIGTERM)
        output, _ = process.communicate(timeout=5)
    assert (process.returncode, output) == (0, "")
    (dream,) = json.loads(inmind("dream", "list", "ada", "--json", home=home_with_notes).stdout)
    assert (dream["status"], dream["reason"]) == ("failed", "the worker was stopped")
    assert TABS in waiting_notes(home_with_notes)


@pytest.mark.spec("G3")
def test_a_worker_prints_each_dream_as_a_line_of_json(home_with_notes: Home) -> None:
    configure(home_with_notes, "[dream]\nfirst_minutes = 0\nmin_crystals = 1\n")
    with started("worker", "--json", home=home_with_notes) as process:
        (dream,) = json.loads(read_line_with_prefix(process, "{"))["dreams"]
        assert dream["trigger"] == "schedule"
        process.send_signal(signal.SIGTERM)
        assert process.communicate(timeout=5) == ("", "")

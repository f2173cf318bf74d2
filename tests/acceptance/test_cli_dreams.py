"""Dreams, affect, the books and upkeep on the command line, as a person and as a script would use them."""

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
from model_server import Said, model_server
from rich.text import Text
from terminal import at_once, command, fitting, inmind, on_a_screen

from inmind import Memory
from inmind.apps.cli.dreams import color_diff, describe_dream
from inmind.dreams.state import LIMIT_REACHED
from inmind.testing import ManualClock

TABS = "Ada prefers tabs over spaces."
DEADLINE = "The deadline of the API migration is March 20."


@pytest.fixture
def noted(home: Home) -> Home:
    """A home with one resource, for which two notes wait."""
    with Memory.open(home) as memory:
        session = memory.session("support-42", resource="ada", cwd="/website")
        session.note(TABS, kind="preference", importance=0.8)
        session.note(DEADLINE, kind="fact")
    return home


@pytest.fixture
def dreamt(noted: Home) -> Home:
    with Memory.open(noted) as memory:
        memory.dream("ada")
    return noted


def state_of(home: Home) -> str:
    with Memory.open(home) as memory:
        return page_of(memory, "MEMORY.md")


def waiting_in(home: Home) -> str:
    with Memory.open(home) as memory:
        return page_of(memory, "memory/scratch.md")


def refusal(*arguments: str, home: Home) -> str:
    """The one line in which a command says why it does not do it."""
    ran = inmind(*arguments, home=home)
    assert (ran.returncode, ran.stderr.count("\n")) == (fitting(ran.stderr), 1), ran.stdout + ran.stderr
    return ran.stderr


@pytest.mark.spec("G3", "G13")
def test_a_dream_says_its_phases_and_what_it_took_in(noted: Home) -> None:
    ran = inmind("dream", "run", "ada", home=noted)
    assert (ran.returncode, ran.stderr) == (0, "")
    *phases, head, _, _ = ran.stdout.splitlines()
    assert [line.partition(":")[0] for line in phases] == ["gather", "propose", "check", "commit", "index"]
    assert "by rules in " in head
    assert head.endswith(" s: 2 notes merged, 2 lines added to MEMORY.md, 0 removed.")
    assert f"+ The Bond: {TABS}\n" in ran.stdout
    assert f"\n- {TABS}\n" in state_of(noted)
    assert TABS not in waiting_in(noted)


def test_a_dream_for_which_no_model_was_asked_says_so_once(noted: Home) -> None:
    with Memory.open(noted, embedder=None) as memory:
        dream = replace(memory.dream("ada"), reason=f"{LIMIT_REACHED}tokens_per_day has no room for one more answer")
    assert [line for line in describe_dream(dream) if line.startswith("By rules")] == [
        "By rules, without a model call: limit reached: tokens_per_day has no room for one more answer"
    ]


@pytest.mark.spec("G13")
def test_on_a_terminal_the_phases_pass_and_the_outcome_stays(noted: Home) -> None:
    lines = on_a_screen("dream", "run", home=noted)
    assert any("is done, by rules" in line for line in lines)
    assert not any(line.startswith(("commit", "index")) for line in lines)


@pytest.mark.spec("G13")
def test_a_dream_has_a_json_form_with_everything_that_it_did(noted: Home) -> None:
    ran = json.loads(inmind("dream", "run", "--rules", "--json", home=noted).stdout)
    assert (ran["status"], ran["by"], ran["trigger"], ran["resource"]) == ("done", "rules", "asked", "ada")
    assert {(line["section"], line["text"]) for line in ran["lines"]} >= {("The Bond", TABS)}
    assert len(ran["notes"]) == 2
    assert all(verdict["passed"] for verdict in ran["verdicts"])
    assert (ran["before"], f"+- {TABS}" in ran["diff"].splitlines()) == ("", True)
    assert json.loads(inmind("dream", "show", "ada", str(ran["id"]), "--json", home=noted).stdout) == ran
    (row,) = json.loads(inmind("dream", "list", "ada", "--json", home=noted).stdout)
    assert row == {key: value for key, value in ran.items() if key not in ("before", "after", "diff")}


@pytest.mark.spec("G13")
def test_dreams_are_listed_with_a_line_each_and_shown_with_their_guards(dreamt: Home) -> None:
    heading, row = inmind("dream", "list", "ada", home=dreamt).stdout.splitlines()
    assert heading.split()[:2] == ["dream", "began"]
    assert row.split()[3:8] == ["done", "rules", "asked", "2", "2"]
    shown = inmind("dream", "show", "ada", home=dreamt).stdout
    assert f"+ The Bond: {TABS}\n" in shown
    assert "Guards passed: " in shown
    assert "Mood: calm (dopamine 0.15" in shown


def test_a_resource_without_dreams_has_none_to_show(noted: Home) -> None:
    assert inmind("dream", "list", "ada", home=noted).stdout == "No dreams of ada yet.\n"
    for what in ("show", "diff"):
        assert "NOT_FOUND: no dream 'ada': no dreams of ada yet" in refusal("dream", what, "ada", home=noted)


@pytest.mark.spec("G13")
def test_a_diff_is_plain_in_a_pipe_and_coloured_on_a_terminal(dreamt: Home) -> None:
    piped = inmind("dream", "diff", "ada", home=dreamt).stdout
    assert f"\n+- {TABS}\n" in piped
    assert "\x1b" not in piped
    (line,) = (line for line in on_a_screen("dream", "diff", "ada", home=dreamt, terminal="xterm") if TABS in line)
    assert line == f"\x1b[32m+- {TABS}\x1b[0m"
    both = json.loads(inmind("dream", "diff", "ada", "--json", home=dreamt).stdout)
    assert (both["before"], both["after"]) == ("", state_of(dreamt))


def marked(line: Text) -> list[str]:
    return [line.plain[span.start : span.end] for span in line.spans if span.style == "reverse"]


def test_of_a_line_that_was_changed_the_words_are_marked() -> None:
    diff = "--- a\n+++ b\n@@ -1,2 +1,2 @@\n same\n-The deadline is March 20.\n+The deadline is April 2.\n+Else."
    lines = list(color_diff(diff))
    assert "\n".join(line.plain for line in lines) == diff
    assert {line.plain: marked(line) for line in lines if marked(line)} == {
        "-The deadline is March 20.": ["March", "20"],
        "+The deadline is April 2.": ["April", "2"],
    }
    assert list(color_diff("")) == []


@pytest.mark.spec("G13")
def test_the_last_dream_is_taken_back_and_its_notes_wait_again(dreamt: Home) -> None:
    said = inmind("dream", "undo", "ada", home=dreamt).stdout
    assert said.endswith(" of ada is undone: MEMORY.md is as before it, and its 2 notes wait again.\n")
    assert TABS in waiting_in(dreamt)
    assert TABS not in state_of(dreamt)
    assert ", since undone: " in inmind("dream", "show", "ada", home=dreamt).stdout
    assert "NOT_FOUND: no dream to undo" in refusal("dream", "undo", "ada", home=dreamt)


@pytest.mark.spec("G7")
def test_a_running_dream_refuses_a_second_one(noted: Home) -> None:
    refused: list[str] = []

    def watch(phase: str, _: str) -> None:
        if phase == "propose":
            refused.append(refusal("dream", "run", "ada", home=noted))

    with Memory.open(noted) as memory:
        assert memory.dream("ada", watch=watch).status == "done"
    (line,) = refused
    assert line.startswith("inmind: DREAM_RUNNING: dream ")


def test_a_resource_need_not_be_named_where_there_is_only_one(noted: Home) -> None:
    with Memory.open(noted) as memory:
        memory.session("mine")  # belongs to nobody in particular, and counts for nobody
    assert inmind("affect", home=noted).stdout.startswith("ada is calm.\n")
    with Memory.open(noted) as memory:
        memory.session("two", resource="bob").note("Bob is vegan.")
    for command_ in (["dream", "run"], ["affect"], ["show", "state"]):
        assert (
            refusal(*command_, home=noted)
            == "inmind: INVALID_INPUT: RESOURCE: expected the name of a resource: ada, bob\n"
        )


def test_a_home_whose_sessions_name_no_resource_has_none(home: Home) -> None:
    with Memory.open(home) as memory:
        memory.session("mine").note("x")
    assert "NOT_FOUND: no resource in '" in refusal("dream", "run", home=home)
    assert "NOT_FOUND: no resource 'default'" in refusal("show", "state", "mine", home=home)


@pytest.mark.spec("J3")
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["dream", "run", "bob"], "NOT_FOUND: no resource 'bob'"),
        (["dream", "list", "bob"], "NOT_FOUND: no resource 'bob'"),
        (["dream", "show", "ada", "99"], "NOT_FOUND: no dream 99: `inmind dream list ada` lists"),
        (["dream", "undo", "ada", "99"], "NOT_FOUND: no dream 99"),
        (["show", "state", "bob"], "NOT_FOUND: no resource or session 'bob'"),
        (["affect", "bob"], "NOT_FOUND: no resource 'bob'"),
        (["affect", "ada", "--raise", "joy"], "INVALID_INPUT: --raise: expected one of reward, "),
        (["affect", "ada", "--why", "so"], "INVALID_INPUT: --why: expected --raise with it"),
        (["affect", "ada", "--hours", "nan"], "INVALID_INPUT: --hours: "),
        (["affect", "ada", "--hours", "0"], "INVALID_INPUT: --hours: "),
        (["affect", "ada", "--hours", "1e300"], "INVALID_INPUT: --hours: "),
        (["ledger", "bob"], "NOT_FOUND: no resource 'bob'"),
        (["ledger", "ada", "gift", "1"], "INVALID_INPUT: earning|spending|listing: expected one of earning, "),
        (["ledger", "ada", "earning"], "INVALID_INPUT: AMOUNT: expected more than 0"),
        (["ledger", "ada", "earning", "a lot"], "INVALID_INPUT: AMOUNT: "),
        (["ledger", "ada", "earning", "1", "--seller", "ben"], "INVALID_INPUT: --seller: "),
        (["ledger", "ada", "--skill", "tea"], "INVALID_INPUT: --skill: expected a kind of entry with it"),
        (["worker", "--every", "0"], "INVALID_INPUT: --every: expected more than 0 and at most"),
        (["worker", "--every", "nan"], "INVALID_INPUT: --every: expected more than 0 and at most"),
    ],
)
def test_what_cannot_be_done_is_refused_in_one_line(dreamt: Home, arguments: list[str], said: str) -> None:
    ran = at_once(*arguments, home=dreamt)
    assert (ran.exit_code, ran.stdout, ran.stderr.count("\n")) == (fitting(ran.stderr), "", 1)
    assert said in ran.stderr


@pytest.mark.spec("J4")
def test_what_notes_reasons_and_skills_say_cannot_act_in_a_terminal(home: Home) -> None:
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
        ["ledger", "ada"],
    ):
        ran = inmind(*arguments, home=home)
        assert (ran.returncode, ran.stderr) == (0, "")
        assert all(line.isprintable() for line in ran.stdout.split("\n")), arguments
    assert "[bold]Ada⟨U+001B⟩[2J[/bold]" in inmind("dream", "diff", "ada", home=home).stdout


class Gate(Event):
    """Lets nothing through until it is opened, and knows that somebody has come."""

    def __init__(self) -> None:
        super().__init__()
        self.reached = Event()

    def wait(self, timeout: float | None = None) -> bool:
        self.reached.set()
        return super().wait(timeout)


@contextmanager
def thinking_forever(home: Home) -> Generator[Event]:
    """A model is configured that does not answer in the time of this test; the event says that it is asked."""
    gate = Gate()
    with model_server() as server:
        server.will(*[Said("{}", gate=gate)] * 3)
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


def line_that_begins(process: subprocess.Popen[str], words: str) -> str:
    """Waits for it."""
    assert process.stdout is not None
    return next(line for line in process.stdout if line.startswith(words))


@pytest.mark.spec("G7", "G12")
@pytest.mark.parametrize("which", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.exhaustive)])
def test_a_signal_calls_a_dream_off_and_nothing_has_changed(noted: Home, which: signal.Signals) -> None:
    with thinking_forever(noted) as asked, started("dream", "run", "ada", home=noted) as process:
        assert asked.wait(30)
        process.send_signal(which)
        _, complaint = process.communicate(timeout=5)
    assert process.returncode == 130
    assert complaint.count("\n") == 1
    assert "was cancelled: nothing was changed" in complaint
    assert TABS in waiting_in(noted)
    assert "failed" in inmind("dream", "list", "ada", home=noted).stdout
    assert inmind("dream", "run", "ada", "--rules", home=noted).returncode == 0


@pytest.mark.spec("G7", "G13", "K20")
@pytest.mark.parametrize("while_it_goes_on", [True, pytest.param(False, marks=pytest.mark.exhaustive)])
def test_a_dream_that_another_has_taken_over_meanwhile_says_so(noted: Home, while_it_goes_on: bool) -> None:
    """It is slow, and nobody has heard of it for as long as its lease: by the clock of the other, which says when."""
    with thinking_forever(noted) as asked, started("dream", "run", "ada", home=noted) as process:
        assert asked.wait(30)
        ended: list[tuple[str, str]] = []

        def end_at(phase: str, _: str = "") -> None:
            if phase == ("commit" if while_it_goes_on else "over"):
                ended.append(process.communicate(timeout=30))

        with Memory.open(noted) as memory:
            running = memory.resource("ada").state.dreams.running
        assert running is not None
        with Memory.open(noted, clock=ManualClock(running.lease_until), settings={"model.name": ""}) as memory:
            dream = memory.dream("ada", watch=end_at)
            assert (dream.id, dream.status, dream.by) == (running.dream, "done", "rules")
        end_at("over")
    ((said, complaint),) = ended
    if while_it_goes_on:
        assert (process.returncode, complaint.count("\n")) == (4, 1)
        reason = f"another process took the dream over: Dream {dream.id} of ada has been running since "
        assert complaint.startswith(f"inmind: DREAM_OVERTAKEN: {reason}")
    else:
        assert (process.returncode, complaint) == (0, "")
        assert f"Dream {dream.id} of ada is done, by rules in " in said
    assert state_of(noted).count(TABS) == 1
    assert TABS not in waiting_in(noted)


@pytest.mark.spec("G9")
def test_levels_are_shown_as_bars_with_their_mood_and_their_last_hours(noted: Home) -> None:
    calm = on_a_screen("affect", home=noted)
    assert calm[0] == "ada is calm."
    assert [line.split()[0] for line in calm[1:4]] == ["dopamine", "cortisol", "oxytocin"]
    assert all(len(line) <= 80 for line in calm[:4])
    raised = inmind("affect", "ada", "--raise", "achievement", "--why", "all tests pass", home=noted).stdout
    assert raised.startswith("ada is motivated")
    (dopamine,) = (line for line in raised.splitlines() if line.startswith("dopamine"))
    assert dopamine.split()[1] == "█" * 11 + "░" * 9
    shown = json.loads(inmind("affect", "ada", "--hours", "2", "--json", home=noted).stdout)
    assert (shown["enabled"], shown["resource"]) == (True, "ada")
    assert shown["levels"]["dopamine"] == pytest.approx(0.55, abs=0.05)
    assert [point["dopamine"] for point in shown["history"][:2]] == [0.15, 0.15]


@pytest.mark.spec("G9")
def test_a_high_level_leaves_a_note_with_the_reason(noted: Home) -> None:
    for _ in range(2):
        inmind("affect", "ada", "--raise", "achievement", "--why", "all tests pass", home=noted)
    assert json.loads(inmind("show", "state", "--json", home=noted).stdout)["notes"] == 3
    assert "[AUTO] Dopamine is high (0.9" in waiting_in(noted)
    assert "all tests pass" in waiting_in(noted)


@pytest.mark.spec("G9")
def test_where_affect_is_off_nothing_is_raised_and_that_is_said(noted: Home) -> None:
    configure(noted, "[affect]\nenabled = false\n")
    assert "--raise: expected affect to be enabled" in refusal("affect", "ada", "--raise", "error", home=noted)
    assert inmind("affect", home=noted).stdout.startswith("Affect is disabled ")
    assert json.loads(inmind("affect", "--json", home=noted).stdout)["enabled"] is False


@pytest.mark.spec("G14")
def test_the_books_are_kept_and_reported(noted: Home) -> None:
    assert inmind("ledger", "ada", home=noted).stdout == "No entries for ada yet.\n"
    entered = inmind("ledger", "ada", "earning", "12.50", "--skill", "refactoring", "--buyer", "ben", home=noted)
    assert entered.stdout == "Recorded as resource/ada#3.\n"
    inmind("ledger", "ada", "spending", "1.2", "--seller", "ccc", "--note", "a model", home=noted)
    assert json.loads(inmind("ledger", "ada", "listing", "--skill", "review", "--json", home=noted).stdout)["id"]
    assert inmind("ledger", "ada", home=noted).stdout.splitlines() == [
        "USD",
        "  earned   12.50 in 1 sale, 1 buyer",
        "  spent    1.20, 1 time",
        "  offered  review",
        "  best     refactoring 12.50",
        "  7 days   12.50 ▁▁▁▁▁▁█ after 0 in the 7 days before",
    ]
    (books,) = json.loads(inmind("ledger", "ada", "--json", home=noted).stdout)
    assert (books["earned"], books["spent"], books["top"]) == ("12.50", "1.2", {"refactoring": "12.50"})


@pytest.mark.spec("G1", "G14")
def test_a_state_is_shown_with_what_waits_what_was_dreamt_and_what_was_earned(dreamt: Home) -> None:
    with Memory.open(dreamt) as memory:
        memory.session("support-42").note("Ada moves to Berlin.")
        memory.resource("ada").economics.record("earning", amount="3", skill="tea")
    said = inmind("show", "state", "ada", home=dreamt).stdout
    assert said == inmind("show", "state", "support-42", home=dreamt).stdout
    assert said.startswith(state_of(dreamt))
    page, _, rest = said.rpartition("\n\n")
    assert page == state_of(dreamt).rstrip("\n")
    waiting, dream, earned = rest.splitlines()
    assert waiting.startswith("1 note waiting for a dream. Mood: ")
    assert dream.startswith("Dream ")
    assert earned.startswith("Earned 3 USD in 1 sale ")
    shown = json.loads(inmind("show", "state", "--json", home=dreamt).stdout)
    assert (shown["state"], shown["notes"], shown["dream"]["status"]) == (state_of(dreamt), 1, "done")


def test_an_empty_state_is_said_to_be_empty(noted: Home) -> None:
    said = inmind("show", "state", home=noted).stdout
    assert said.startswith("MEMORY.md of ada is empty.\n\n2 notes waiting for a dream. Mood: calm.\nNo dreams yet.\n")


@pytest.mark.spec("G3")
def test_one_round_of_upkeep_dreams_where_that_is_due_and_does_not_wait_for_it(noted: Home) -> None:
    assert inmind("upkeep", home=noted).stdout == "Upkeep finished.\n"  # two notes are too few
    with Memory.open(noted) as memory:
        memory.session("support-42").add([user("Where do we deploy?"), assistant("To Vienna."), user("Do it at noon.")])
    dream, done = inmind("upkeep", home=noted).stdout.splitlines()
    assert dream.startswith("Dream ")
    assert done == "Upkeep finished."
    again = json.loads(inmind("upkeep", "--json", home=noted).stdout)
    assert (again["finished"], again["dreams"]) == (True, [])


@pytest.mark.spec("G3")
@pytest.mark.parametrize("which", [pytest.param(signal.SIGINT, marks=pytest.mark.exhaustive), signal.SIGTERM])
def test_a_worker_says_what_it_did_and_stops_when_it_is_told(noted: Home, which: signal.Signals) -> None:
    configure(noted, "[dream]\nfirst_minutes = 0\nmin_crystals = 1\n")
    with started("worker", "--every", "3600", home=noted) as process:
        assert "2 notes merged" in line_that_begins(process, "Dream ")
        process.send_signal(which)
        said, complaints = process.communicate(timeout=5)
    assert (process.returncode, said, complaints) == (0, "Stopped.\n", "")
    assert TABS in state_of(noted)


@pytest.mark.embedded
@pytest.mark.spec("G3", "G7")
def test_a_worker_stops_in_the_middle_of_a_dream_which_then_has_changed_nothing(noted: Home) -> None:
    with thinking_forever(noted) as asked, started("worker", "--json", home=noted) as process:
        assert asked.wait(30)
        process.send_signal(signal.SIGTERM)
        said, _ = process.communicate(timeout=5)
    assert (process.returncode, said) == (0, "")
    (dream,) = json.loads(inmind("dream", "list", "ada", "--json", home=noted).stdout)
    assert (dream["status"], dream["reason"]) == ("failed", "the worker was stopped")
    assert TABS in waiting_in(noted)


@pytest.mark.spec("G3")
def test_a_worker_tells_of_each_dream_in_a_line_of_json(noted: Home) -> None:
    configure(noted, "[dream]\nfirst_minutes = 0\nmin_crystals = 1\n")
    with started("worker", "--json", home=noted) as process:
        (dream,) = json.loads(line_that_begins(process, "{"))["dreams"]
        assert dream["trigger"] == "schedule"
        process.send_signal(signal.SIGTERM)
        assert process.communicate(timeout=5) == ("", "")

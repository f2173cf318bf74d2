"""`inmind replay`: a recorded conversation in, a table or JSON out."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
import zstandard
from builders import a_call, a_result, assistant, user
from recorded_transcripts import AGENTDOJO, ANTHROPIC, CHAT, SWE_AGENT, TAU, TAU2, a_file, a_line, lines
from terminal import INMIND, exit_code_for, warm_inmind

from inmind import Memory

pytestmark = pytest.mark.spec("I8")

DATA = os.environ.get("INMIND_DATA")


def replay(*arguments: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    return warm_inmind().run(INMIND, "replay", *arguments, stdin=stdin)


def replay_json(*arguments: str, stdin: bytes = b"") -> dict[str, Any]:
    process = replay(*arguments, "--json", stdin=stdin)
    assert (process.returncode, process.stderr) == (0, b"")
    return json.loads(process.stdout)


def test_the_table_has_a_row_for_each_file_and_a_total_in_eighty_columns(tmp_path: Path) -> None:
    chat = a_file(tmp_path, [{"messages": CHAT}, {"messages": CHAT}], name="chats.json")
    packed = a_file(tmp_path, zstandard.compress(lines(CHAT)), name="one-chat-with-quite-a-long-name.jsonl.zst")
    process = replay(chat, packed)
    text = process.stdout.decode()
    rows = [line.split() for line in text.splitlines()]
    assert process.returncode == 0
    assert rows[0] == "recording prompts tokens cached price ids held lost/without ms".split()
    assert [row[:2] for row in rows[1:] if row and row[0] in ("chats", "total")] == [["chats", "8"], ["total", "12"]]
    assert max(map(len, text.splitlines())) <= 80
    assert "\x1b" not in text
    assert process.stderr == b""


def test_each_recording_can_have_its_own_row(tmp_path: Path) -> None:
    path = a_file(tmp_path, [{"messages": CHAT, "id": "a"}, {"messages": CHAT, "id": "b"}], name="chats.json")
    text = replay(path, "--each").stdout.decode()
    assert "chats #1 (a)" in text
    assert "chats #2 (b)" in text
    assert "chats #2" not in replay(path, "--each", "--limit", "1").stdout.decode()


def test_the_json_has_everything_for_each_recording_each_file_and_all(tmp_path: Path) -> None:
    path = a_file(tmp_path, [{"messages": CHAT}, {"messages": CHAT}])
    report = replay_json(path)
    (file,) = report["files"]
    assert [one["prompts"] for one in file["each"]] == [4, 4]
    assert file["prompts"] == report["total"]["prompts"] == 8
    assert set(report["total"]) == {
        "name",
        "recordings",
        "prompts",
        "why_nothing",
        "with_memory",
        "without_memory",
        "full_history",
        "price_ratio",
        "against_full_history",
        "compacting_only_when_full",
        "compactions",
        "prompts_over_window",
        "unpaired_calls",
        "must_survive",
        "missing_items",
        "ids",
        "lost_ids",
        "ids_from_nowhere",
        "names",
        "lost_names",
        "memory_tokens",
        "tool_tokens",
        "entity_tokens",
        "milliseconds_per_call",
        "left_out",
    }
    assert report["total"]["ids"]["used"] == 2


@pytest.mark.parametrize(
    ("content", "prompts"),
    [
        (CHAT, 4),
        ({"messages": CHAT}, 4),
        (lines(CHAT), 4),
        (ANTHROPIC, 2),
        (lines([a_line("user", "1", None, "Hi"), a_line("assistant", "2", "1", "Hello")]), 1),
        (TAU, 1),
        (TAU2, 2),
        (AGENTDOJO, 2),
        (SWE_AGENT, 2),
    ],
    ids="list object lines anthropic claude-code tau tau2 agentdojo swe-agent".split(),
)
def test_every_format_is_replayed(tmp_path: Path, content: object, prompts: int) -> None:
    assert replay_json(a_file(tmp_path, content))["total"]["prompts"] == prompts


def test_the_recordings_of_a_file_can_be_played_as_one_session(tmp_path: Path) -> None:
    path = a_file(tmp_path, [{"messages": CHAT}, {"messages": CHAT}], name="chats.json")
    apart, joined = replay_json(path)["total"], replay_json(path, "--joined")["total"]
    assert (apart["recordings"], joined["recordings"]) == (2, 1)
    assert apart["prompts"] == joined["prompts"] == 8
    assert joined["full_history"]["tokens"] > apart["full_history"]["tokens"]
    assert joined["unpaired_calls"] == 0
    assert replay_json(a_file(tmp_path, {"simulations": []}), "--joined")["total"]["recordings"] == 0


def test_standard_input_is_a_file_like_any_other() -> None:
    report = replay_json("-", stdin=lines(CHAT))
    assert (report["files"][0]["name"], report["total"]["prompts"]) == ("-", 4)


def test_prices_follow_the_given_rates(tmp_path: Path) -> None:
    path = a_file(tmp_path, CHAT)
    report = replay_json(path, "--input", "10", "--cached", "0", "--written", "0")
    bare, memory = report["total"]["without_memory"], report["total"]["with_memory"]
    assert bare["price"] == 0  # an agent that only appends sends nothing past the cache
    assert memory["price"] == pytest.approx(memory["uncached"] * 10 / 1e6)
    assert memory["uncached"] > 0


def test_a_small_window_reports_cut_messages(tmp_path: Path) -> None:
    talk = [message for n in range(20) for message in (user(f"{n} " + "word " * 200), assistant("yes " * 200))]
    path = a_file(tmp_path, talk)
    report = replay_json(path, "--window", "4000")
    total = report["total"]
    assert (report["window"], total["prompts_over_window"]) == (4000, 0)
    assert total["without_memory"]["cut_messages"] > 0
    assert total["without_memory"]["cut_tokens"] > 0
    assert total["with_memory"]["cut_messages"] == 0  # memory archives messages and drops none
    assert total["compactions"]["messages"] > 0
    output = " ".join(replay(path, "--window", "4000").stdout.decode().split())
    assert f"{total['compactions']['count']} compactions (" in output
    assert f"moved {total['compactions']['messages']} messages with" in output
    assert f"0 of {total['must_survive']['items']} retained items were missing." in output


@pytest.mark.spec("E4")
def test_the_cost_saving_option_prints_the_saving_of_early_compaction(tmp_path: Path) -> None:
    talk = [message for n in range(60) for message in (user(f"{n} " + "word " * 200), assistant("yes " * 200))]
    path = a_file(tmp_path, talk)
    assert replay_json(path)["total"]["compacting_only_when_full"] is None
    total = replay_json(path, "--cost-saving")["total"]
    saved = total["compacting_only_when_full"]
    assert saved["price_ratio"] == pytest.approx(total["with_memory"]["price"] / saved["price"])
    assert saved["price_ratio"] < 1
    output = " ".join(replay(path, "--cost-saving").stdout.decode().split())
    assert f"costs {saved['price_ratio']:.2f}x of compacting only a full window" in output


def test_the_prompts_of_a_replay_can_be_kept_in_a_home(tmp_path: Path) -> None:
    path, folder = a_file(tmp_path, CHAT), tmp_path / "kept"
    assert replay_json(path, "--keep", str(folder))["total"]["prompts"] == 4
    with Memory.open(folder) as memory:
        assert len(memory.session("recording-1").prompt(4).messages) > len(CHAT) / 2
    again = replay(path, "--keep", str(folder))
    assert again.returncode == exit_code_for(again.stderr)
    assert b"INVALID_INPUT: --keep: expected a new or empty folder" in again.stderr


def test_text_of_a_recording_is_escaped_in_the_terminal(tmp_path: Path) -> None:
    path = a_file(tmp_path, [{"messages": CHAT, "id": "\x1b[2J[red]evil"}, {"messages": CHAT}])
    text = replay(path, "--each").stdout.decode()
    assert "\x1b" not in text
    assert "[red]" in text.replace("\n", "")


@pytest.mark.parametrize("form", [["--json"], []])
def test_an_unreadable_file_prints_one_line_and_no_table(tmp_path: Path, form: list[str]) -> None:
    good = a_file(tmp_path, CHAT, name="good.json")
    bad = a_file(tmp_path, lines(CHAT) + b"{broken\n" + lines(CHAT), name="bad.jsonl")
    process = replay(good, bad, *form)
    assert (process.returncode, process.stdout) == (exit_code_for(process.stderr), b"")
    (line,) = process.stderr.decode().splitlines()
    assert line.startswith("inmind: INVALID_INPUT: ")
    assert f"bad.jsonl:{len(CHAT) + 1}: expected JSON" in line


def test_each_broken_file_is_named_on_a_separate_line(tmp_path: Path) -> None:
    good, missing = a_file(tmp_path, CHAT, name="good.json"), str(tmp_path / "gone.json")
    broken = [a_file(tmp_path, b"{", name=f"{n}.json") for n in range(2)]
    process = replay(broken[0], good, missing, broken[1])
    assert (process.returncode, process.stdout) == (exit_code_for(process.stderr), b"")
    first, second, third = process.stderr.decode().splitlines()
    assert first.startswith(f"inmind: INVALID_INPUT: {broken[0]}:1: expected JSON")
    assert second.startswith("inmind: NOT_FOUND: no file ")
    assert third.startswith(f"inmind: INVALID_INPUT: {broken[1]}:1: expected JSON")


def test_a_torn_last_line_is_skipped_and_reported(tmp_path: Path) -> None:
    path = a_file(tmp_path, lines(CHAT) + b'{"role": "user", "cont')
    assert replay_json(path)["total"]["left_out"] == {"torn last lines": 1}
    process = replay(path)
    assert (process.returncode, "Left out: 1 torn last lines." in process.stdout.decode()) == (0, True)


@pytest.mark.parametrize(
    "content",
    [[], [user("Hi"), user("Anybody?")], [user("Hi"), a_result("c1")], [assistant("Hi!")]],
    ids="empty users-only result-without-call greeting".split(),
)
def test_a_file_without_replayable_messages_is_reported(tmp_path: Path, content: object) -> None:
    path = a_file(tmp_path, content, name="quiet.json")
    process = replay(path)
    assert process.returncode == 0
    assert "Nothing was replayed in quiet: no message of an agent answers another one." in process.stdout.decode()
    assert " 0 ids" not in process.stdout.decode()
    assert replay_json(path)["total"]["why_nothing"] == "no message of an agent answers another one"


def test_recordings_without_replayable_messages_are_counted_by_file(tmp_path: Path) -> None:
    some = a_file(tmp_path, [CHAT, [], [user("Hi")]], name="some.json")
    none = a_file(tmp_path, b"[[], []]", name="none.json")
    text = " ".join(replay(some, none).stdout.decode().split())
    assert "Nothing was replayed in 2 of 3 recordings of some: no message of an agent" in text
    assert "Nothing was replayed in none: no message of an agent" in text


def test_the_columns_are_explained_and_short_recordings_are_marked(tmp_path: Path) -> None:
    text = replay(a_file(tmp_path, CHAT)).stdout.decode()
    for column in ("tokens, price:", "cached:", "held:", "lost/without:", "ms:"):
        assert column in text
    output = " ".join(text.split())
    adds = replay_json(a_file(tmp_path, CHAT))["total"]["memory_tokens"]["mean"]
    assert f"Memory adds {adds:.0f} tokens to a prompt on average" in output
    assert "the ratios say little about long conversations" in output
    long = " ".join(replay(a_file(tmp_path, [user("word " * 9_000), *CHAT[1:]])).stdout.decode().split())
    assert "Memory adds" in long
    assert "the ratios say little" not in long


def test_names_are_counted_separately_from_ids(tmp_path: Path) -> None:
    talk = [
        user("Who is in the channel general?"),
        a_call("c1", "get_users_in_channel", '{"channel": "general"}'),
        a_result("c1", '["Alice"]'),
        assistant("Alice."),
    ]
    text = " ".join(replay(a_file(tmp_path, talk)).stdout.decode().split())
    assert "The tool calls use no ids." in text
    assert "Of 1 name in tool calls 1 had appeared before (1 first from the user)" in text


def test_a_missing_file_is_reported(tmp_path: Path) -> None:
    process = replay(str(tmp_path / "nothing.json"))
    assert process.returncode == exit_code_for(process.stderr)
    assert process.stderr.startswith(b"inmind: NOT_FOUND: no file ")


@pytest.mark.skipif(not DATA, reason="INMIND_DATA names no folder with recorded runs")
def test_a_replay_of_real_tau_bench_runs_loses_no_ids() -> None:
    (path,) = Path(str(DATA)).glob("taubench/airline_gpt-4o.json.zst")
    total = replay_json(str(path), "--limit", "10")["total"]
    assert total["recordings"] == 10
    assert total["ids"]["lost"] == 0
    assert total["ids"]["held_share"] >= 0.9

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
from terminal import INMIND, fitting, warm_inmind

from inmind import Memory

pytestmark = pytest.mark.spec("I8")

DATA = os.environ.get("INMIND_DATA")


def replay(*arguments: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    return warm_inmind().run(INMIND, "replay", *arguments, stdin=stdin)


def shown(*arguments: str, stdin: bytes = b"") -> dict[str, Any]:
    ran = replay(*arguments, "--json", stdin=stdin)
    assert (ran.returncode, ran.stderr) == (0, b"")
    return json.loads(ran.stdout)


def test_the_table_has_a_row_for_each_file_and_a_total_in_eighty_columns(tmp_path: Path) -> None:
    chat = a_file(tmp_path, [{"messages": CHAT}, {"messages": CHAT}], name="chats.json")
    packed = a_file(tmp_path, zstandard.compress(lines(CHAT)), name="one-chat-with-quite-a-long-name.jsonl.zst")
    ran = replay(chat, packed)
    text = ran.stdout.decode()
    rows = [line.split() for line in text.splitlines()]
    assert ran.returncode == 0
    assert rows[0] == "recording prompts tokens cached price ids held lost/without ms".split()
    assert [row[:2] for row in rows[1:] if row and row[0] in ("chats", "total")] == [["chats", "8"], ["total", "12"]]
    assert max(map(len, text.splitlines())) <= 80
    assert "\x1b" not in text
    assert ran.stderr == b""


def test_each_recording_can_have_its_own_row(tmp_path: Path) -> None:
    path = a_file(tmp_path, [{"messages": CHAT, "id": "a"}, {"messages": CHAT, "id": "b"}], name="chats.json")
    text = replay(path, "--each").stdout.decode()
    assert "chats #1 (a)" in text
    assert "chats #2 (b)" in text
    assert "chats #2" not in replay(path, "--each", "--limit", "1").stdout.decode()


def test_the_json_has_everything_for_each_recording_each_file_and_all(tmp_path: Path) -> None:
    path = a_file(tmp_path, [{"messages": CHAT}, {"messages": CHAT}])
    report = shown(path)
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
def test_every_form_is_played(tmp_path: Path, content: object, prompts: int) -> None:
    assert shown(a_file(tmp_path, content))["total"]["prompts"] == prompts


def test_the_recordings_of_a_file_can_be_played_as_one_session(tmp_path: Path) -> None:
    path = a_file(tmp_path, [{"messages": CHAT}, {"messages": CHAT}], name="chats.json")
    apart, whole = shown(path)["total"], shown(path, "--joined")["total"]
    assert (apart["recordings"], whole["recordings"]) == (2, 1)
    assert apart["prompts"] == whole["prompts"] == 8
    assert whole["full_history"]["tokens"] > apart["full_history"]["tokens"]
    assert whole["unpaired_calls"] == 0
    assert shown(a_file(tmp_path, {"simulations": []}), "--joined")["total"]["recordings"] == 0


def test_standard_input_is_a_file_like_any_other() -> None:
    report = shown("-", stdin=lines(CHAT))
    assert (report["files"][0]["name"], report["total"]["prompts"]) == ("-", 4)


def test_prices_follow_the_given_rates(tmp_path: Path) -> None:
    path = a_file(tmp_path, CHAT)
    report = shown(path, "--input", "10", "--cached", "0", "--written", "0")
    bare, memory = report["total"]["without_memory"], report["total"]["with_memory"]
    assert bare["price"] == 0  # an agent that only appends sends nothing past the cache
    assert memory["price"] == pytest.approx(memory["uncached"] * 10 / 1e6)
    assert memory["uncached"] > 0


def test_a_small_window_shows_what_was_cut(tmp_path: Path) -> None:
    talk = [message for n in range(20) for message in (user(f"{n} " + "word " * 200), assistant("yes " * 200))]
    path = a_file(tmp_path, talk)
    report = shown(path, "--window", "4000")
    total = report["total"]
    assert (report["window"], total["prompts_over_window"]) == (4000, 0)
    assert total["without_memory"]["cut_messages"] > 0
    assert total["without_memory"]["cut_tokens"] > 0
    assert total["with_memory"]["cut_messages"] == 0  # it sets aside, and drops nothing
    assert total["compactions"]["messages"] > 0
    said = " ".join(replay(path, "--window", "4000").stdout.decode().split())
    assert f"{total['compactions']['count']} compactions (" in said
    assert f"moved {total['compactions']['messages']} messages with" in said
    assert f"0 of {total['must_survive']['items']} retained items were missing." in said


@pytest.mark.spec("E4")
def test_what_it_saves_to_compact_as_soon_as_it_pays_is_said_when_asked(tmp_path: Path) -> None:
    talk = [message for n in range(60) for message in (user(f"{n} " + "word " * 200), assistant("yes " * 200))]
    path = a_file(tmp_path, talk)
    assert shown(path)["total"]["compacting_only_when_full"] is None
    total = shown(path, "--thrifty")["total"]
    saved = total["compacting_only_when_full"]
    assert saved["price_ratio"] == pytest.approx(total["with_memory"]["price"] / saved["price"])
    assert saved["price_ratio"] < 1
    said = " ".join(replay(path, "--thrifty").stdout.decode().split())
    assert f"costs {saved['price_ratio']:.2f}x of compacting only a full window" in said


def test_what_the_model_would_have_seen_can_be_kept_and_looked_at(tmp_path: Path) -> None:
    path, kept = a_file(tmp_path, CHAT), tmp_path / "kept"
    assert shown(path, "--keep", str(kept))["total"]["prompts"] == 4
    with Memory.open(kept) as memory:
        assert len(memory.session("recording-1").prompt(4).messages) > len(CHAT) / 2
    again = replay(path, "--keep", str(kept))
    assert again.returncode == fitting(again.stderr)
    assert b"INVALID_INPUT: --keep: expected a new or empty folder" in again.stderr


def test_text_out_of_a_recording_cannot_act_in_a_terminal(tmp_path: Path) -> None:
    path = a_file(tmp_path, [{"messages": CHAT, "id": "\x1b[2J[red]evil"}, {"messages": CHAT}])
    text = replay(path, "--each").stdout.decode()
    assert "\x1b" not in text
    assert "[red]" in text.replace("\n", "")


@pytest.mark.parametrize("form", [["--json"], []])
def test_an_unreadable_file_is_one_line_and_nothing_is_half_done(tmp_path: Path, form: list[str]) -> None:
    good = a_file(tmp_path, CHAT, name="good.json")
    bad = a_file(tmp_path, lines(CHAT) + b"{broken\n" + lines(CHAT), name="bad.jsonl")
    ran = replay(good, bad, *form)
    assert (ran.returncode, ran.stdout) == (fitting(ran.stderr), b"")
    (line,) = ran.stderr.decode().splitlines()
    assert line.startswith("inmind: INVALID_INPUT: ")
    assert f"bad.jsonl:{len(CHAT) + 1}: expected JSON" in line


def test_of_several_broken_files_each_is_named_on_a_line_of_its_own(tmp_path: Path) -> None:
    good, gone = a_file(tmp_path, CHAT, name="good.json"), str(tmp_path / "gone.json")
    broken = [a_file(tmp_path, b"{", name=f"{n}.json") for n in range(2)]
    ran = replay(broken[0], good, gone, broken[1])
    assert (ran.returncode, ran.stdout) == (fitting(ran.stderr), b"")
    first, second, third = ran.stderr.decode().splitlines()
    assert first.startswith(f"inmind: INVALID_INPUT: {broken[0]}:1: expected JSON")
    assert second.startswith("inmind: NOT_FOUND: no file ")
    assert third.startswith(f"inmind: INVALID_INPUT: {broken[1]}:1: expected JSON")


def test_a_torn_last_line_is_left_out_and_said(tmp_path: Path) -> None:
    path = a_file(tmp_path, lines(CHAT) + b'{"role": "user", "cont')
    assert shown(path)["total"]["left_out"] == {"torn last lines": 1}
    ran = replay(path)
    assert (ran.returncode, "Left out: 1 torn last lines." in ran.stdout.decode()) == (0, True)


@pytest.mark.parametrize(
    "content",
    [[], [user("Hi"), user("Anybody?")], [user("Hi"), a_result("c1")], [assistant("Hi!")]],
    ids="empty users-only result-without-call greeting".split(),
)
def test_a_file_in_which_nothing_can_be_played_is_said_in_words(tmp_path: Path, content: object) -> None:
    path = a_file(tmp_path, content, name="quiet.json")
    ran = replay(path)
    assert ran.returncode == 0
    assert "Nothing was replayed in quiet: no message of an agent answers another one." in ran.stdout.decode()
    assert " 0 ids" not in ran.stdout.decode()
    assert shown(path)["total"]["why_nothing"] == "no message of an agent answers another one"


def test_recordings_in_which_nothing_can_be_played_are_counted_by_file(tmp_path: Path) -> None:
    some = a_file(tmp_path, [CHAT, [], [user("Hi")]], name="some.json")
    none = a_file(tmp_path, b"[[], []]", name="none.json")
    text = " ".join(replay(some, none).stdout.decode().split())
    assert "Nothing was replayed in 2 of 3 recordings of some: no message of an agent" in text
    assert "Nothing was replayed in none: no message of an agent" in text


def test_the_columns_are_explained_and_short_recordings_are_called_so(tmp_path: Path) -> None:
    text = replay(a_file(tmp_path, CHAT)).stdout.decode()
    for column in ("tokens, price:", "cached:", "held:", "lost/without:", "ms:"):
        assert column in text
    said = " ".join(text.split())
    adds = shown(a_file(tmp_path, CHAT))["total"]["memory_tokens"]["mean"]
    assert f"Memory adds {adds:.0f} tokens to a prompt on average" in said
    assert "the ratios say little about long conversations" in said
    long = " ".join(replay(a_file(tmp_path, [user("word " * 9_000), *CHAT[1:]])).stdout.decode().split())
    assert "Memory adds" in long
    assert "the ratios say little" not in long


def test_names_are_said_apart_from_ids(tmp_path: Path) -> None:
    talk = [
        user("Who is in the channel general?"),
        a_call("c1", "get_users_in_channel", '{"channel": "general"}'),
        a_result("c1", '["Alice"]'),
        assistant("Alice."),
    ]
    text = " ".join(replay(a_file(tmp_path, talk)).stdout.decode().split())
    assert "The tool calls use no ids." in text
    assert "Of 1 name in tool calls 1 had appeared before (1 first from the user)" in text


def test_a_file_that_is_not_there_is_said(tmp_path: Path) -> None:
    ran = replay(str(tmp_path / "nothing.json"))
    assert ran.returncode == fitting(ran.stderr)
    assert ran.stderr.startswith(b"inmind: NOT_FOUND: no file ")


@pytest.mark.skipif(not DATA, reason="INMIND_DATA names no folder with recorded runs")
def test_real_runs_of_tau_bench_are_played_and_nothing_that_was_said_is_lost() -> None:
    (path,) = Path(str(DATA)).glob("taubench/airline_gpt-4o.json.zst")
    total = shown(str(path), "--limit", "10")["total"]
    assert total["recordings"] == 10
    assert total["ids"]["lost"] == 0
    assert total["ids"]["held_share"] >= 0.9

"""A retry after a lost reply: one effect and always the same result.

The tables of faults call this K25. The process dies right after its commit, before it can return or publish anything.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from torture import writers
from torture.harness import ask, run

from inmind import Memory
from inmind.errors import InvalidInput


@pytest.mark.parametrize("call", writers.CALLS)
def test_a_retry_after_a_lost_reply_has_one_effect_and_one_result(tmp_path: Path, call: str) -> None:
    """K25, A6: after a restart, any number of times; with other arguments the key is refused."""
    home = str(tmp_path / "home")
    outcome = run(writers.lose_reply, home=home, call=call)
    assert outcome.killed, f"it was not killed: {outcome.code} {outcome.output}"
    assert outcome.all("calling") == [[call]]
    first = ask(writers.retry, home=home, call=call)
    assert first["before"] == first["after"], "the retry repeated the effect"
    assert first["first"] == first["again"]
    assert first["refused"] == ("KEY_REUSED" if call in writers.OTHERS else "")
    later = ask(writers.retry, home=home, call=call)
    assert (later["first"], later["again"]) == (first["first"], first["first"])
    assert later["after"] == first["after"]


@pytest.mark.spec("C8", "A6", "J1")
@pytest.mark.parametrize("call", ["record", "record_id", "merge_back"])
def test_a_change_of_resource_and_session_is_one_commit_and_done_once(tmp_path: Path, call: str) -> None:
    """K25: it dies after its first commit, which is complete."""
    home = str(tmp_path / "home")
    outcome = run(writers.lose_reply, home=home, call=call, scratchpad="resource")
    assert outcome.killed, f"it was not killed: {outcome.code} {outcome.output}"
    first = ask(writers.retry, home=home, call=call, scratchpad="resource")
    assert first["before"] == first["after"], "the retry repeated the effect, or found part of it"
    assert first["notes"] == "once"
    later = ask(writers.retry, home=home, call=call, scratchpad="resource")
    assert (later["after"], later["first"], later["notes"]) == (first["after"], first["again"], "once")


@pytest.mark.parametrize("call", writers.CALLS)
def test_a_key_is_unknown_in_another_home(tmp_path: Path, call: str) -> None:
    """K25: homes are independent."""
    run(writers.lose_reply, home=str(tmp_path / "one"), call=call)
    before, after = ask(writers.call_in, home=str(tmp_path / "other"), call=call)
    assert after > before


@pytest.mark.parametrize("key", ["", "k" * 201, "half a pair \ud800", 7])
def test_a_key_that_cannot_be_stored_is_refused_before_anything_is_stored(tmp_path: Path, key: Any) -> None:
    """K25, J3: a key that could not be recognised later is refused."""
    with Memory.open(tmp_path) as memory:
        session = memory.session("s", cwd="/w")
        before = len(session.events())
        with pytest.raises(InvalidInput) as caught:
            session.add([{"role": "user", "content": "hello"}], key=key)
        assert caught.value.field == "key"
        assert len(session.events()) == before

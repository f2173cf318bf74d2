"""When a signal stops something, and when it waits."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest

from inmind.apps.chat.sigint import Interruptions

pytestmark = pytest.mark.spec("C08")


@pytest.fixture
def interruptions() -> Iterator[Interruptions]:
    interruptions = Interruptions()
    with interruptions.heeded():
        yield interruptions


def test_a_signal_stops_what_is_waited_for_and_nothing_else(interruptions: Interruptions) -> None:
    signal.raise_signal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt), interruptions.may_stop():
        pytest.fail("what was noted is raised before anything is waited for")
    with pytest.raises(KeyboardInterrupt), interruptions.may_stop():
        signal.raise_signal(signal.SIGINT)
    with interruptions.may_stop():
        """Both have been heard."""


def test_whoever_is_told_to_end_does_not_forget_it_over_a_ctrl_c(interruptions: Interruptions) -> None:
    signal.raise_signal(signal.SIGTERM)
    signal.raise_signal(signal.SIGINT)
    interruptions.forget()
    with pytest.raises(SystemExit) as left, interruptions.may_stop():
        pytest.fail("it is to end")
    assert left.value.code == 128 + signal.SIGTERM


def test_what_can_be_called_off_is_asked_once_and_then_stopped(interruptions: Interruptions) -> None:
    with interruptions.called_off() as called_off:
        assert not called_off()
        signal.raise_signal(signal.SIGINT)
        assert called_off()
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    interruptions.forget()
    signal.raise_signal(signal.SIGINT)  # it is over: this one is for what comes next
    interruptions.forget()


@pytest.mark.parametrize("which", [signal.SIGTERM, signal.SIGHUP])
def test_whoever_ends_the_process_does_not_ask(interruptions: Interruptions, which: signal.Signals) -> None:
    with pytest.raises(SystemExit) as left, interruptions.called_off():
        signal.raise_signal(which)
    assert left.value.code == 128 + which

"""When a signal stops something, and when it waits."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest

from inmind.apps.signals import InterruptHandler

pytestmark = pytest.mark.spec("C08")


@pytest.fixture
def interruptions() -> Iterator[InterruptHandler]:
    interruptions = InterruptHandler()
    with interruptions.install():
        yield interruptions


def test_a_signal_stops_what_is_waited_for_and_nothing_else(interruptions: InterruptHandler) -> None:
    signal.raise_signal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt), interruptions.interruptible():
        pytest.fail("what was noted is raised before anything is waited for")
    with pytest.raises(KeyboardInterrupt), interruptions.interruptible():
        signal.raise_signal(signal.SIGINT)
    with interruptions.interruptible():
        """Both have been heard."""


def test_a_termination_signal_is_kept_during_ctrl_c(interruptions: InterruptHandler) -> None:
    signal.raise_signal(signal.SIGTERM)
    signal.raise_signal(signal.SIGINT)
    interruptions.discard()
    with pytest.raises(SystemExit) as left, interruptions.interruptible():
        pytest.fail("it is to end")
    assert left.value.code == 128 + signal.SIGTERM


def test_what_can_be_called_off_is_asked_once_and_then_stopped(interruptions: InterruptHandler) -> None:
    with interruptions.cancellable() as called_off:
        assert not called_off()
        signal.raise_signal(signal.SIGINT)
        assert called_off()
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    interruptions.discard()
    signal.raise_signal(signal.SIGINT)  # it is over: this one is for what comes next
    interruptions.discard()


@pytest.mark.parametrize("which", [signal.SIGTERM, signal.SIGHUP])
def test_a_termination_signal_does_not_ask(interruptions: InterruptHandler, which: signal.Signals) -> None:
    with pytest.raises(SystemExit) as left, interruptions.cancellable():
        signal.raise_signal(which)
    assert left.value.code == 128 + which

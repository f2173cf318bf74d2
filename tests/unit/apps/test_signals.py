"""Signals that interrupt at once and signals that wait."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest

from inmind.apps.signals import InterruptHandler

pytestmark = pytest.mark.spec("C08")


@pytest.fixture
def handler() -> Iterator[InterruptHandler]:
    handler = InterruptHandler()
    with handler.install():
        yield handler


def test_a_signal_interrupts_only_interruptible_blocks(handler: InterruptHandler) -> None:
    signal.raise_signal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt), handler.interruptible():
        pytest.fail("the pending signal must be raised before the block runs")
    with pytest.raises(KeyboardInterrupt), handler.interruptible():
        signal.raise_signal(signal.SIGINT)
    with handler.interruptible():
        """Both signals were delivered above."""


def test_a_termination_signal_is_kept_during_ctrl_c(handler: InterruptHandler) -> None:
    signal.raise_signal(signal.SIGTERM)
    signal.raise_signal(signal.SIGINT)
    handler.discard()
    with pytest.raises(SystemExit) as exit_info, handler.interruptible():
        pytest.fail("SIGTERM must end the process")
    assert exit_info.value.code == 128 + signal.SIGTERM


def test_a_cancellable_block_is_cancelled_by_the_first_signal_and_interrupted_by_the_second(
    handler: InterruptHandler,
) -> None:
    with handler.cancellable() as is_cancelled:
        assert not is_cancelled()
        signal.raise_signal(signal.SIGINT)
        assert is_cancelled()
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    handler.discard()
    signal.raise_signal(signal.SIGINT)  # outside the block, the signal is kept for the next wait
    handler.discard()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_termination_signal_ends_a_cancellable_block_at_once(
    handler: InterruptHandler, number: signal.Signals
) -> None:
    with pytest.raises(SystemExit) as exit_info, handler.cancellable():
        signal.raise_signal(number)
    assert exit_info.value.code == 128 + number

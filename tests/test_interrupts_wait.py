"""Ctrl-C inside a block that it must not cut short."""

import signal
from contextlib import AbstractContextManager, nullcontext

import pytest

from holdfast.process.interrupts import interrupts_wait


def interrupted_in(block: AbstractContextManager[None]) -> list[int]:
    """What is done of a block in which Ctrl-C comes."""
    done: list[int] = []

    def run() -> None:
        with block:
            signal.raise_signal(signal.SIGINT)
            done.append(1)

    with pytest.raises(KeyboardInterrupt):
        run()
    return done


def test_an_interrupt_waits_for_the_end_of_the_block() -> None:
    before = signal.getsignal(signal.SIGINT)
    assert interrupted_in(interrupts_wait()) == [1]
    assert signal.getsignal(signal.SIGINT) is before


def test_control_without_it_an_interrupt_cuts_the_block_short() -> None:
    assert interrupted_in(nullcontext()) == []


def test_an_error_of_the_block_is_raised() -> None:
    with pytest.raises(ZeroDivisionError), interrupts_wait():
        raise ZeroDivisionError

"""Asking where threads stand begins no collection of garbage, with which Python 3.11 could stop for ever."""

import gc
import sys
import threading

import pytest

from holdfast.process.frames import frames_of_threads


def test_every_thread_is_found() -> None:
    assert threading.get_ident() in frames_of_threads()


@pytest.mark.parametrize("is_enabled", [True, False])
def test_nothing_is_collected_meanwhile(monkeypatch: pytest.MonkeyPatch, *, is_enabled: bool) -> None:
    seen: list[bool] = []
    monkeypatch.setattr(sys, "_current_frames", lambda: seen.append(gc.isenabled()))
    if not is_enabled:
        gc.disable()
    try:
        frames_of_threads()
        assert (seen, gc.isenabled()) == ([False], is_enabled)
    finally:
        gc.enable()

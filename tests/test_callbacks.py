import threading
from collections.abc import Callable

import pytest

from holdfast.process.callbacks import call_each_once


def test_each_is_called_once() -> None:
    seen: list[str] = []
    callbacks: list[Callable[[], object]] = [lambda: seen.append("a"), lambda: seen.append("b")]
    call_each_once(callbacks, lambda: "nothing")
    call_each_once(callbacks, lambda: "nothing")
    assert sorted(seen) == ["a", "b"]


def test_threads_share_them() -> None:
    seen: list[int] = []
    callbacks = [lambda number=number: seen.append(number) for number in range(1_000)]
    threads = [threading.Thread(target=call_each_once, args=(callbacks, lambda: "nothing")) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(seen) == list(range(1_000))


def test_one_that_fails_is_logged_and_the_others_are_called(caplog: pytest.LogCaptureFixture) -> None:
    seen: list[str] = []
    call_each_once([lambda: seen.append("a"), lambda: 1 / 0, lambda: seen.append("b")], lambda: "the opening of a store")
    assert sorted(seen) == ["a", "b"]
    assert "a callback for the opening of a store failed" in caplog.text

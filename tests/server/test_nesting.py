"""How deep a body is nested is found in one pass, and a long one keeps nobody else waiting."""

import threading
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.server import bodies
from holdfast.server.asgi import BODY, Scope
from holdfast.server.budgets import Budget
from holdfast.server.callers import KEY
from holdfast.stores.http.problems import WireError
from tests.server.test_limits import SOMEBODY


def depth_of(body: str) -> int:
    """The most brackets that are open at once, letter by letter."""
    depth, most, is_in_text, is_escaped = 0, 0, False, False
    for letter in body:
        was_escaped, is_escaped = is_escaped, letter == "\\" and not is_escaped
        if was_escaped and letter == '"':
            continue
        if letter == '"':
            is_in_text = not is_in_text
        elif not is_in_text:
            depth += (letter in "[{") - (letter in "]}")
            most = max(most, depth)
    return most


@given(st.text('[]{}"\\a', max_size=60), st.integers(1, 8))
def test_the_depth_is_that_of_the_brackets_outside_texts_wherever_a_piece_ends(body: str, piece_bytes: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bodies, "PIECE_BYTES", piece_bytes)
        patch.setattr(bodies, "DEPTH", 3)
        assert bodies._is_deep(body.encode()) is (depth_of(body) > 3)


def cost_s(part: bytes) -> float:
    """What it takes to look through a megabyte of it."""
    body = b"[" + b",".join([part] * (2**20 // len(part))) + b"]"
    began = time.thread_time()
    bodies.check_json(body)
    return time.thread_time() - began


def test_a_deep_body_takes_no_longer_to_look_through_than_a_flat_one_of_its_length() -> None:
    assert min(cost_s(b"[" * 97 + b"]" * 97) for _ in range(3)) < 8 * min(cost_s(b"[][]") for _ in range(3))


def test_a_body_one_level_too_deep_is_refused_and_one_less_is_not() -> None:
    assert bodies.check_json(b"[" * 100 + b"]" * 100)
    with pytest.raises(WireError, match="100 levels"):
        bodies.check_json(b"[" * 101 + b"]" * 101)


@pytest.mark.anyio
@pytest.mark.parametrize("pieces", [1, 2])
async def test_a_large_body_is_looked_through_in_a_thread_and_a_small_one_is_not(monkeypatch: pytest.MonkeyPatch, pieces: int) -> None:
    threads: list[threading.Thread] = []

    def look(body: bytes) -> bytes:
        threads.append(threading.current_thread())
        return body

    async def receive() -> Any:
        parts.pop()
        return {"type": "http.request", "body": b" " * size, "more_body": bool(parts)}

    monkeypatch.setattr(bodies, "check_json", look)
    for size in (10, bodies.LARGE_BYTES + 1):
        parts = [None] * pieces
        scope: Scope = {"headers": [(b"content-type", b"application/json")], KEY: SOMEBODY}
        if pieces == 1:
            scope[BODY] = b" " * size
        assert len(await bodies.Bodies(Budget(bool)).decoded(scope, receive, bytes)) == size * pieces
    assert [thread is threading.current_thread() for thread in threads] == [True, False]

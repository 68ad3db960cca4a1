"""How deep a body is nested is found in one pass, and a long one keeps nobody else waiting."""

import threading
import time
from typing import Any

import pytest
import urllib3
from hypothesis import given
from hypothesis import strategies as st

from holdfast.server import request_bodies
from holdfast.server.asgi import BODY, Scope
from holdfast.server.auth.callers import KEY
from holdfast.server.load.body_budget import Budget
from holdfast.stores.http.problems import WireError
from holdfast.stores.memory import MemoryStore
from tests.server.serving import JSON, Served
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


def is_deep(body: bytes) -> bool:
    try:
        request_bodies._look_through(body, request_bodies.BATCH)
    except WireError as error:
        return error.problem.code == "too_deep"
    return False


@given(st.text('[]{}"\\a', max_size=60), st.integers(1, 8))
def test_the_depth_is_that_of_the_brackets_outside_texts_wherever_a_piece_ends(body: str, piece_bytes: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(request_bodies, "PIECE_BYTES", piece_bytes)
        patch.setattr(request_bodies, "DEPTH", 3)
        assert is_deep(body.encode()) is (depth_of(body) > 3)


def cost_s(part: bytes) -> float:
    """What it takes to look through a megabyte of it."""
    body = b"[" * 4 + b",".join([part] * (2**20 // len(part))) + b"]" * 4  # As deep as values are.
    began = time.thread_time()
    request_bodies.check_json(body)
    return time.thread_time() - began


def test_a_deep_body_takes_no_longer_to_look_through_than_a_flat_one_of_its_length() -> None:
    assert min(cost_s(b"[" * 90 + b"]" * 90) for _ in range(3)) < 8 * min(cost_s(b"[][]") for _ in range(3))


def test_a_body_one_level_too_deep_is_refused_and_one_less_is_not() -> None:
    assert request_bodies.check_json(b"[" * 100 + b"]" * 100)
    with pytest.raises(WireError, match="100 levels"):
        request_bodies.check_json(b"[" * 101 + b"]" * 101)


@pytest.mark.anyio
@pytest.mark.parametrize("pieces", [1, 2])
async def test_a_large_body_is_looked_through_in_a_thread_and_a_small_one_is_not(monkeypatch: pytest.MonkeyPatch, pieces: int) -> None:
    threads: list[threading.Thread] = []

    def look(body: bytes, shape: request_bodies.Shape = request_bodies.BATCH) -> bytes:
        threads.append(threading.current_thread())
        return body

    async def receive() -> Any:
        parts.pop()
        return {"type": "http.request", "body": b" " * size, "more_body": bool(parts)}

    monkeypatch.setattr(request_bodies, "check_json", look)
    for size in (10, request_bodies.LARGE_BYTES + 1):
        parts = [None] * pieces
        scope: Scope = {"headers": [(b"content-type", b"application/json")], KEY: SOMEBODY}
        if pieces == 1:
            scope[BODY] = b" " * size
        assert len(await request_bodies.Bodies(Budget(bool)).decoded(scope, receive, bytes)) == size * pieces
    assert [thread is threading.current_thread() for thread in threads] == [True, False]


def refusal(body: bytes, shape: request_bodies.Shape = request_bodies.BATCH) -> str | None:
    try:
        request_bodies.check_json(body, shape)
    except WireError as error:
        return error.problem.code
    return None


def listed(item: bytes, count: int) -> bytes:
    return b'{"queue":"q","items":[' + b",".join([item] * count) + b"]}"


@pytest.mark.parametrize(
    "item", [b'{"id":"some id of it","value":{"a":[1,2,{"b":3}]},"metadata":{"c":1}}', b'["q","some id",7]', b'"some key"']
)
def test_a_batch_of_the_most_items_is_let_through_and_many_more_are_not_decoded(item: bytes) -> None:
    assert refusal(listed(item, 10_000)) is None
    assert refusal(listed(item, 50_000)) == "too_large"


def test_a_step_of_the_most_commands_is_let_through_and_many_more_are_not_decoded() -> None:
    put = b'{"type":"Put","queue":"q","items":[' + b",".join([b'{"id":"some id of it","value":{"a":[1]}}'] * 10) + b"]}"
    assert refusal(listed(put, 1_000), request_bodies.STEP) is None
    assert refusal(listed(b'{"type":"Count","queue":"q"}', 10_000), request_bodies.STEP) == "too_large"
    many = b'{"type":"Put","queue":"q","items":[' + b",".join([b'{"id":"a","value":1}'] * 200_000) + b"]}"
    assert refusal(listed(many, 1), request_bodies.STEP) == "too_large"


def test_a_value_of_many_parts_is_let_through() -> None:
    value = b'{"id":"a","value":[' + b",".join([b"1"] * 500_000) + b"]}"
    assert refusal(listed(value, 10)) is None


def test_a_step_of_800_000_commands_is_refused_before_it_is_decoded() -> None:
    served = Served(MemoryStore())
    body = b'{"commands":[' + b",".join([b'{"type":"Count","queue":"q"}'] * 800_000) + b"]}"
    answered = urllib3.request("POST", f"{served.url}/v1/together", body=body, headers=JSON, retries=False)
    assert (answered.status, answered.json()["code"]) == (413, "too_large")
    served.close()

"""What a server of an earlier release does not know, and can do without, is left out for it."""

from collections.abc import Iterator

import pytest
from msgspec import json

from holdfast.commands import AnyCommand, Claim, Settle, Together
from holdfast.errors import StoreError
from holdfast.records import Receipt
from holdfast.stores.http import problems
from holdfast.stores.http.older_servers import DISPENSABLE
from holdfast.stores.http.replies import Reply
from holdfast.stores.http.store import HttpStore
from holdfast.stores.retrying import Lost

CLAIM = Claim("jobs", "ann", 60.0, by_policy=True)
SETTLE = Settle([Receipt("jobs", "a", 1)], unstarted=True, trace="Traceback")
decode = json.Decoder(AnyCommand).decode


@pytest.fixture
def store() -> Iterator[HttpStore]:
    store = HttpStore("http://127.0.0.1:9")
    yield store
    store.close()


def refusal(text: str, code: str = "not_json", status: int = 400) -> Reply:
    problem = problems.Problem(code, status, text)
    return Reply(status, {"content-type": problems.CONTENT_TYPE}, json.encode(problem))


def test_a_field_that_a_server_refuses_as_unknown_is_left_out_from_then_on(store: HttpStore) -> None:
    assert decode(store.request(CLAIM)[1]) == CLAIM
    with pytest.raises(Lost) as lost:
        store.answer(CLAIM, refusal("Object contains unknown field `by_policy`"))
    assert not lost.value.maybe_applied
    assert decode(store.request(CLAIM)[1]) == Claim("jobs", "ann", 60.0)
    assert decode(store.request(SETTLE)[1]) == SETTLE, "it takes this one"


def test_it_is_left_out_of_the_parts_of_a_step_too(store: HttpStore) -> None:
    for name in DISPENSABLE:
        with pytest.raises(Lost):
            store.answer(CLAIM, refusal(f"Object contains unknown field `{name}` - at `$.commands[0]`"))
    sent = decode(store.request(Together([SETTLE, CLAIM]))[1])
    assert sent == Together([Settle([Receipt("jobs", "a", 1)]), Claim("jobs", "ann", 60.0)])


def test_what_a_server_cannot_do_without_is_an_error(store: HttpStore) -> None:
    with pytest.raises(ValueError, match="unknown field `group`"):
        store.answer(CLAIM, refusal("Object contains unknown field `group`"))
    assert decode(store.request(CLAIM)[1]) == CLAIM


def test_a_command_that_a_server_does_not_know_is_named(store: HttpStore) -> None:
    with pytest.raises(StoreError, match=r"does not know the command Claim .*: upgrade a server of an earlier release"):
        store.answer(CLAIM, refusal("there is nothing here", "no_such_route", 404))
    with pytest.raises(StoreError, match="the disk"):
        store.answer(CLAIM, refusal("the disk is gone", "store_error", 500))

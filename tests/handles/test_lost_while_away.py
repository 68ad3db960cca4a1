"""Leaving a block whose claim or lease is lost, while the store does not respond: at once, and with the loss."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from holdfast import ClaimLost, ControlPlaneClient, Dict, Election, LeaseLost, Lock, Queue
from holdfast.stores.memory import MemoryStore
from tests.postgres import own_postgres_url
from tests.relays import Relay
from tests.sentinel_databases import until
from tests.server.serving import Served
from tests.servers import own_redis_url


def served(stack: ExitStack) -> str:
    plane = Served(MemoryStore())
    stack.callback(plane.close)
    return plane.url


URLS: dict[str, Callable[[ExitStack], str]] = {
    "postgresql": lambda _: own_postgres_url(),
    "redis": lambda _: own_redis_url(),
    "http": served,
}


@pytest.fixture(params=URLS)
def relay(request: pytest.FixtureRequest) -> Iterator[Relay]:
    with ExitStack() as stack, Relay(URLS[request.param](stack)) as made:
        yield made


@pytest.fixture
def client(relay: Relay) -> Iterator[ControlPlaneClient]:
    made = ControlPlaneClient(relay.url)
    yield made
    relay.recover()  # So that closing waits for nobody.
    made.close()


def contexts(client: ControlPlaneClient) -> list[tuple[Any, type[Exception]]]:
    jobs = Queue.create("jobs", client=client)
    jobs.put("x")
    return [
        (jobs.claimed(claimer="w", lease_s=1.0), ClaimLost),
        (Lock("l", lease_s=1.0, client=client), LeaseLost),
        (Election("e", lease_s=1.0, client=client), LeaseLost),
        (Dict.from_name("d", client=client).lease("k", holder="w", lease_s=1.0), LeaseLost),
    ]


def test_leaving_asks_a_store_that_is_away_nothing(client: ControlPlaneClient, relay: Relay) -> None:
    entered = contexts(client)
    for context, _ in entered:
        context.__enter__()
    holds = list(client.keepalive._holds.values())
    relay.fall_silent(new_too=True)
    until(lambda: all(hold.lost for hold in holds))
    for context, error in entered:
        # Asked, the store would make it wait for a minute, and raise `OutcomeUnknown`.
        with pytest.raises(error):
            context.__exit__(None, None, None)


def test_the_error_of_the_body_passes_with_a_note(client: ControlPlaneClient, relay: Relay) -> None:
    context = Lock("l", lease_s=1.0, client=client)
    held = context.__enter__()
    relay.fall_silent(new_too=True)
    until(lambda: held.lost)
    error = ZeroDivisionError("the body's own")
    context.__exit__(ZeroDivisionError, error, None)
    assert "lock 'l' is lost" in error.__notes__[0]

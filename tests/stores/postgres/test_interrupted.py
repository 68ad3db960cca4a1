"""Who is interrupted while a PostgreSQL store is asked leaves nothing held, and the store goes on."""

import random
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from traceback import extract_tb

import pytest

from holdfast.commands import Acquire, Claim, Look
from holdfast.stores.postgres.store import PostgresStore
from holdfast.testing.conformance.asking import JOBS, put, stats
from tests.postgres import own_postgres_url
from tests.sentinel_databases import until

LONG_S = 3_600.0
TIMES = 30


@pytest.fixture
def store() -> Iterator[PostgresStore]:
    store = PostgresStore(f"{own_postgres_url()}&pool=2")
    yield store
    store.close()


@contextmanager
def interrupts() -> Iterator[Callable[[float], None]]:
    """What sends this thread a signal that acts as a Ctrl-C does, after so many seconds."""
    before = signal.signal(signal.SIGUSR1, signal.default_int_handler)
    me, timers = threading.get_ident(), list[threading.Timer]()

    def interrupt(after_s: float) -> None:
        timers.append(threading.Timer(after_s, signal.pthread_kill, (me, signal.SIGUSR1)))
        timers[-1].start()

    try:
        yield interrupt
    finally:
        # A signal that is still to come must find a handler: without one it ends the process.
        signal.signal(signal.SIGUSR1, signal.SIG_IGN)
        for timer in timers:
            timer.join()
        signal.signal(signal.SIGUSR1, before)


def is_interrupted(ask: Callable[[], object], interrupt: Callable[[float], None], after_s: float) -> bool:
    """Ask until the interrupt comes; whether it came while the store was asked, and not to the test in between."""
    try:
        interrupt(after_s)
        while True:
            ask()
    except KeyboardInterrupt as error:
        return "execute" in [frame.name for frame in extract_tb(error.__traceback__)]


def test_a_claim_interrupted_at_any_moment_is_given_back(store: PostgresStore) -> None:
    rng, held, unheard = random.Random(7), [], 0
    put(store, *(f"job-{number}" for number in range(900)))
    with interrupts() as interrupt:
        for _ in range(TIMES):
            assert stats(store).ready, "a session lies ready from here on"
            claim = Claim(JOBS, "me", LONG_S)
            unheard += not is_interrupted(lambda claim=claim: held.extend(store.execute(claim).messages), interrupt, rng.uniform(0, 0.01))  # type: ignore[misc]
    until(lambda: stats(store).leased <= len(held) + unheard)


def test_a_lease_interrupted_at_any_moment_is_given_back(store: PostgresStore) -> None:
    rng = random.Random(8)
    with interrupts() as interrupt:
        for number in range(TIMES):
            names = iter(range(1_000_000))

            def acquire(number: int = number, names: Iterator[int] = names) -> None:
                store.execute(Acquire(None, f"{number}-{next(names)}", "me", "mine", LONG_S))

            if is_interrupted(acquire, interrupt, rng.uniform(0, 0.01)):
                last = f"{number}-{next(names) - 1}"
                until(lambda last=last: store.execute(Look(None, [last])).leases == [None])  # type: ignore[misc]

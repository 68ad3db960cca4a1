"""What looking after the log of a SQLite file, and watching it, costs: the same however long it is."""

from collections.abc import Callable
from pathlib import Path
from sqlite3 import Connection

import pytest

from holdfast.commands import Changes, Prune, Put
from holdfast.stores.sqlite.store import SqliteStore
from holdfast.testing import FakeClock
from holdfast.testing.conformance.asking import item

STEP = 10
"""How many instructions of SQLite's machine are one step here."""


def steps(connection: Connection, act: Callable[[], object]) -> int:
    """How far SQLite went for it."""
    count = 0

    def one_more() -> int:
        nonlocal count
        count += 1
        return 0

    connection.set_progress_handler(one_more, STEP)
    act()
    connection.set_progress_handler(None, 0)
    return count


def put_many(store: SqliteStore, first: int, count: int, queue: str = "busy") -> None:
    for number in range(first, first + count):
        store.execute(Put(queue, [item(str(number))], id=f"put {queue} {number}"))


def with_history(path: Path, length: int) -> tuple[SqliteStore, FakeClock]:
    """A file in which a little is old, and so much is not."""
    clock = FakeClock()
    store = SqliteStore(path, durability="process", clock=clock)
    put_many(store, 0, 20)
    clock.advance(300.0)
    put_many(store, 20, length)
    return store, clock


@pytest.mark.parametrize("prune", [Prune(limit=50), Prune(keep=10, limit=50)])
def test_pruning_walks_no_more_of_a_long_log_than_of_a_short_one(tmp_path: Path, prune: Prune) -> None:
    walked = []
    for length in (200, 2_000):
        store, _ = with_history(tmp_path / f"{length}.db", length)
        store.execute(prune)  # What is old goes, and all is counted.
        put_many(store, 20 + length, 5)
        walked.append(steps(store._writer.connection, lambda store=store: store.execute(prune)))  # type: ignore[misc]
        store.close()
    assert walked[1] < 1.5 * walked[0]


def test_pruning_looks_at_a_few_topics_at_a_time_and_at_all_in_the_end(tmp_path: Path) -> None:
    walked = []
    for count in (50, 500):
        store, clock = with_history(tmp_path / f"{count}.db", 0)
        for number in range(count):
            put_many(store, 0, 2, f"queue-{number:04}")
        clock.advance(300.0)
        put_many(store, 20, 1)
        store.execute(Prune(limit=20))
        walked.append(steps(store._writer.connection, lambda store=store: store.execute(Prune(keep=3, limit=20))))  # type: ignore[misc]
        for _ in range(2 + count // 20):
            store.execute(Prune(keep=1, limit=20))
        left = [len(store.execute(Changes(f"queue:queue-{number:04}")).events) for number in range(count)]
        assert set(left) == {1}
        store.close()
    assert walked[1] < 1.5 * walked[0]


def test_what_is_old_and_too_much_goes_and_what_is_young_stays(tmp_path: Path) -> None:
    store, clock = with_history(tmp_path / "store.db", 30)
    assert store.execute(Prune(keep=10)) == 20 + 20, "events and answers"
    assert len(store.execute(Changes("queue:busy")).events) == 30
    clock.advance(300.0)
    store.execute(Prune(keep=10))
    assert len(store.execute(Changes("queue:busy")).events) == 10
    store.close()


def test_whoever_watches_what_is_quiet_walks_no_long_log(tmp_path: Path) -> None:
    walked = []
    for length in (200, 2_000):
        store, _ = with_history(tmp_path / f"{length}.db", length)
        put_many(store, 0, 1, "seldom")
        put_many(store, 20 + length, 100)
        asked = [Changes("queue:never"), Changes("queue:seldom", after=store.execute(Changes("queue:seldom")).events[-1].index)]
        store.execute(Prune())
        walked += [steps(store._readers.connections[0], lambda store=store, one=one: store.execute(one)) for one in asked]  # type: ignore[misc]
        store.close()
    assert max(walked) < 1.5 * min(walked)


def test_an_event_after_a_long_silence_is_seen(tmp_path: Path) -> None:
    store, _ = with_history(tmp_path / "store.db", 200)
    upto = store.execute(Changes("queue:seldom")).upto
    put_many(store, 0, 1, "seldom")
    put_many(store, 220, 200)
    assert [event.event for event in store.execute(Changes("queue:seldom", after=upto)).events] == ["put"]
    store.close()

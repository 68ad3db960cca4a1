"""Many at once on the same groups: no deadlock, and nothing is left behind.

Whoever waits for a lane has only lanes before it in the order of queues and names. Two ways to break that are made by hand, too: load finds
them in half of its runs only.
"""

import random
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
import pytest

from holdfast.commands import Claim, Configure, Extend, Groups, Item, Move, Put, Settle, Together
from holdfast.commands.command import Command
from holdfast.ids import new_id
from holdfast.rates import Rate
from holdfast.records import Message
from holdfast.stores.postgres.store import PostgresStore
from holdfast.testing.conformance.asking import raw
from tests.postgres import own_postgres_url
from tests.stores.postgres.test_lane_locks import somebody_waits
from tests.testing.broken_sql import broken

QUEUES = ("one", "two")
GROUPS = 50
WORKERS = 6
STEPS = 40
DONE = 0.7
DEADLOCKS = "select deadlocks from pg_stat_database where datname = current_database()"


def work(url: str, seed: int) -> None:
    """Put batches over all groups, claim batches, and settle them together with a claim of the other queue."""
    chance, store = random.Random(seed), PostgresStore(url)
    for _ in range(STEPS):
        here, there = chance.sample(QUEUES, 2)
        groups = [f"g{chance.randrange(GROUPS)}" for _ in range(8)]
        store.execute(Put(here, [Item(new_id(), raw(1), group=group) for group in groups]))
        messages = store.execute(Claim(here, "me", 60.0, 10)).messages
        chance.shuffle(messages)
        receipts = [message.receipt for message in messages]
        if receipts and chance.random() < 0.5:
            moved = Item(new_id(), raw(1), group=groups[0])
            _, _, claimed = store.execute(Together([Settle(receipts), Put(there, [moved]), Claim(there, "me", 60.0, 5)]))
            receipts = [message.receipt for message in claimed.messages]
        if receipts:
            store.execute(Settle(receipts, "done" if chance.random() < DONE else "ready"))
    store.close()


def drained(store: PostgresStore) -> int:
    """How many messages are claimed until nothing is left."""
    count = 0
    for queue in QUEUES:
        while messages := store.execute(Claim(queue, "me", 60.0, 100)).messages:
            store.execute(Settle([message.receipt for message in messages]))
            count += len(messages)
    return count


@pytest.mark.parametrize("policy", [{"groups": "fair", "group_limit": 3}, {"groups": "strict"}], ids=["limited", "strict"])
def test_batches_over_many_groups_neither_deadlock_nor_leave_anything_behind(policy: dict[str, object]) -> None:
    url = own_postgres_url()
    store = PostgresStore(url)
    for queue in QUEUES:
        store.execute(Configure("queue", queue, **policy))  # type: ignore[arg-type] # the settings of a case
    before = deadlocks(store)
    with ThreadPoolExecutor(WORKERS) as pool:
        results: Sequence[None] = [done.result(300) for done in [pool.submit(work, url, seed) for seed in range(WORKERS)]]
    assert len(results) == WORKERS
    drained(store)
    assert [lane for queue in QUEUES for lane in store.execute(Groups(queue)).lanes] == []
    assert deadlocks(store) == before
    store.close()


def deadlocks(store: PostgresStore) -> int:
    with psycopg.connect(store.address.conninfo, autocommit=True) as connection:
        connection.execute("select pg_stat_clear_snapshot()")
        row = connection.execute(DEADLOCKS).fetchone()
    return int(row[0]) if row is not None else 0


Steps = Callable[[dict[str, Message]], tuple[Command[Any], Command[Any], Command[Any]]]
"""What one caller does first, what another does meanwhile, and what the first does then."""


def of_one_queue(claims: dict[str, Message], queue: str = "one") -> tuple[Command[Any], Command[Any], Command[Any]]:
    """Settlements of the same groups, one by one, and of both at once in the other order."""
    settles = [Settle([claims[f"{queue} {group}"].receipt]) for group in "ab"]
    return settles[0], Settle([claims[f"{queue} {group} 2"].receipt for group in "ba"]), settles[1]


def of_groups_with_a_rate(claims: dict[str, Message]) -> tuple[Command[Any], Command[Any], Command[Any]]:
    """The same where each group has a rate."""
    return of_one_queue(claims, "rated")


def of_two_queues(claims: dict[str, Message]) -> tuple[Command[Any], Command[Any], Command[Any]]:
    """A settlement in each queue, and a step that settles in the second and puts into a group of the first that waits for its rate."""
    step = Together([Settle([claims["two a 2"].receipt]), Put("one", [Item("new", raw(1), group="paced")])])
    return Settle([claims["one paced"].receipt], "ready"), step, Settle([claims["two a"].receipt])


def of_a_move(claims: dict[str, Message]) -> tuple[Command[Any], Command[Any], Command[Any]]:
    """A settlement in each queue, and a move from a group of the second to one of the first that waits for its rate."""
    move = Move("two", "ready", ids=["moved"], to_queue="one")
    return Settle([claims["one paced"].receipt], "ready"), move, Settle([claims["two paced"].receipt])


def of_a_move_that_finds(claims: dict[str, Message]) -> tuple[Command[Any], Command[Any], Command[Any]]:
    """The same, by state."""
    first, _, then = of_a_move(claims)
    return first, Move("two", "ready", state="ready", to_queue="one"), then


def of_a_key(claims: dict[str, Message]) -> tuple[Command[Any], Command[Any], Command[Any]]:
    """A settlement in each queue, and a step that settles in the second and claims a key of the first."""
    step = Together([Settle([claims["two a 2"].receipt]), Claim("one", "me", 60.0, key="k")])
    return Settle([claims["one a"].receipt]), step, Settle([claims["two a"].receipt])


def of_a_sweep(claims: dict[str, Message]) -> tuple[Command[Any], Command[Any], Command[Any]]:
    """A settlement in each queue, and a claim of the second whose sweep buries what ended in the first."""
    sweep = Together([Extend([claims["two a 2"].receipt], 0.0), Claim("two", "me", 60.0, max_attempts=1, dead_letter="one")])
    return Settle([claims["one a"].receipt]), sweep, Settle([claims["two a"].receipt])


def of_a_sweep_without_groups(claims: dict[str, Message]) -> tuple[Command[Any], Command[Any], Command[Any]]:
    """The same with a claim of a queue without groups, behind a settlement of the second."""
    sweep = Together([Settle([claims["two a 2"].receipt]), Claim("plain", "me", 60.0, max_attempts=1, dead_letter="one")])
    return Settle([claims["one a"].receipt]), sweep, Settle([claims["two a"].receipt])


def of_a_bounded_grave(claims: dict[str, Message]) -> tuple[Command[Any], Command[Any], Command[Any]]:
    """A put into a bounded queue, a claim whose sweep buries there, and a settlement that waits for a lane of the sweep."""
    _, _, then = of_a_sweep(claims)
    sweep = Together([Extend([claims["two a 2"].receipt], 0.0), Claim("two", "me", 60.0, max_attempts=1, dead_letter="bounded")])
    return Put("bounded", [Item(new_id(), raw(1))]), sweep, then


OF_KEYS = r"    union all\n    select p\.c ->> 'queue', p\.c ->> 'key', true from [^\n]*\n"
AS_IT_BURIES = r"  union\n  select g\.name, lane_of\(g, w\.extra\) from [^\n]*\n|  perform lock_graves\(array\([^;]*;\n"
BY_RECEIPTS = r"(group by u\.name order by u\.name)(\) as d\n)"
REFRESHED_BY_RECEIPTS = r"(    group by u\.name\n    order by u\.name)(\n  loop\n    woken := woken \+ refresh_lane)"
AS_THEY_COME = r"  if types && '\{Put,Settle,Move\}' or names_keys\(parts\) then\n    made := lock_lanes\(parts\);\n  end if;\n"


def is_crossed(url: str, steps: Steps) -> bool:
    """Whether the one who waits has what the other needs."""
    store = PostgresStore(url)
    claims = claims_of(store)
    first, meanwhile, then = steps(claims)
    with psycopg.connect(store.address.conninfo) as caller, psycopg.connect(store.address.conninfo, autocommit=True) as watch:
        caller.execute("set lock_timeout = '400ms'")
        caller.commit()
        store.within(caller).execute(first)
        with ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(store.execute, meanwhile)
            assert somebody_waits(watch, waiting.done)
            try:
                store.within(caller).execute(then)
            except Exception:  # noqa: BLE001 - whatever the caller is told of a lock that is not to be had
                caller.rollback()
                waiting.result(60)
                return True
            caller.commit()
            waiting.result(60)
    store.close()
    return False


def claims_of(store: PostgresStore) -> dict[str, Message]:
    """Two claims of each group of each queue, and one of a group that has another message."""
    queues = (*QUEUES, "rated")
    store.execute(Configure("queue", "rated", group_rate=Rate(10, per_s=1.0, burst=10)))
    for queue in queues:
        store.execute(Configure("queue", queue, groups="fair", group_limit=2))
        for group in ("a", "a", "b", "b"):
            store.execute(Put(queue, [Item(new_id(), raw(1), group=group)]))
    claims = {}
    for queue in queues:
        for message in store.execute(Claim(queue, "me", 60.0, 4)).messages:
            name = f"{queue} {message.group}"
            claims[f"{name} 2" if name in claims else name] = message
    store.execute(Configure("queue", "one", group="paced", rate=Rate(1, per_s=3600.0)))
    store.execute(Put("one", [Item(new_id(), raw(1), group="paced"), Item(new_id(), raw(1), group="paced")]))
    (claims["one paced"],) = store.execute(Claim("one", "me", 60.0, 1)).messages
    store.execute(Put("two", [Item("held", raw(1), group="paced"), Item("moved", raw(1), group="paced")]))
    (claims["two paced"],) = store.execute(Claim("two", "me", 60.0, 1)).messages
    store.execute(Put("one", [Item("keyed", raw(1), group="a", key="k")]))
    store.execute(Configure("queue", "bounded", maxsize=10))
    store.execute(Put("plain", [Item("ended", raw(1), group="a")]))
    (ended,) = store.execute(Claim("plain", "me", 60.0)).messages
    store.execute(Extend([ended.receipt], 0.0))
    return claims


SWEEPS = [of_a_sweep, of_a_sweep_without_groups, of_a_bounded_grave]


@pytest.mark.parametrize("steps", [of_one_queue, of_groups_with_a_rate, of_two_queues, of_a_move, of_a_move_that_finds, of_a_key, *SWEEPS])
def test_who_waits_for_a_group_has_none_that_others_need_first(steps: Steps) -> None:
    assert not is_crossed(own_postgres_url(), steps)


@pytest.mark.parametrize(("steps", "ordered"), [(of_one_queue, BY_RECEIPTS), (of_groups_with_a_rate, REFRESHED_BY_RECEIPTS)])
def test_control_groups_locked_in_the_order_of_receipts_would_deadlock(steps: Steps, ordered: str) -> None:
    url = own_postgres_url()
    with broken(url, ordered, r"\1 desc\2"):
        assert is_crossed(url, steps)


@pytest.mark.parametrize("steps", [of_two_queues, of_a_move, of_a_move_that_finds])
def test_control_groups_locked_as_a_step_comes_to_them_would_deadlock(steps: Steps) -> None:
    url = own_postgres_url()
    with broken(url, AS_THEY_COME, ""):
        assert is_crossed(url, steps)


def test_control_a_group_locked_as_its_key_is_claimed_would_deadlock() -> None:
    url = own_postgres_url()
    with broken(url, OF_KEYS, ""):
        assert is_crossed(url, of_a_key)


@pytest.mark.parametrize("steps", SWEEPS)
def test_control_groups_locked_as_a_sweep_buries_would_deadlock(steps: Steps) -> None:
    url = own_postgres_url()
    with broken(url, AS_IT_BURIES, ""):
        assert is_crossed(url, steps)


def behind_a_settlement(store: PostgresStore, claims: dict[str, Message]) -> Command[Any]:
    """A claim in a step that settles in another queue."""
    return Together([Settle([claims["one a 2"].receipt]), Claim("two", "me", 60.0)])


def behind_a_sweep(store: PostgresStore, claims: dict[str, Message]) -> Command[Any]:
    """A claim that finds an ended lease first, in a group that is paused."""
    store.execute(Configure("queue", "two", group="a", paused=True))
    store.execute(Extend([claims["two a 2"].receipt], 0.0))
    return Claim("two", "me", 60.0)


def waits_with_a_lane(url: str, claiming: Callable[[PostgresStore, dict[str, Message]], Command[Any]]) -> bool:
    """Whether a claim waits for the only open group, which is somebody else's, although it has another."""
    store = PostgresStore(url)
    claims = claims_of(store)
    command = claiming(store, claims)
    with psycopg.connect(store.address.conninfo) as caller, psycopg.connect(store.address.conninfo, autocommit=True) as watch:
        store.within(caller).execute(Settle([claims["two paced"].receipt]))
        with ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(store.execute, command)
            waits = somebody_waits(watch, waiting.done)
            answer = waiting.result(30)
        caller.rollback()
    claimed = answer[-1] if isinstance(answer, list) else answer
    assert (claimed.messages, claimed.due_in_s) == ([], pytest.approx(0.1))
    store.close()
    return waits


@pytest.mark.parametrize("claiming", [behind_a_settlement, behind_a_sweep])
def test_a_claim_that_has_a_lane_waits_for_no_other(claiming: Any) -> None:
    assert not waits_with_a_lane(own_postgres_url(), claiming)


@pytest.mark.parametrize("claiming", [behind_a_settlement, behind_a_sweep])
def test_control_a_claim_that_waits_with_a_lane_is_found_out(claiming: Any) -> None:
    url = own_postgres_url()
    with broken(url, r"pg_current_xact_id_if_assigned\(\) is null", "true"):
        assert waits_with_a_lane(url, claiming)

"""What the memory store is made of, beyond the meaning that the conformance suite proves."""

import asyncio
import os
import random
import threading
from collections import Counter
from collections.abc import Callable
from statistics import mean
from typing import Any, cast

import pytest
from msgspec import Raw, json

from holdfast.codec import Limits
from holdfast.commands import (
    Browse,
    Change,
    Changes,
    Claim,
    Clear,
    Command,
    Configure,
    Count,
    Extend,
    Item,
    Move,
    Prune,
    Put,
    Read,
    Settle,
    Write,
)
from holdfast.commands.moving import cursor
from holdfast.commands.topics import key_topic
from holdfast.errors import Closed, Compacted
from holdfast.records import Message, Receipt
from holdfast.stores.memory import AsyncMemoryStore, MemoryStore
from holdfast.stores.memory.log import Log
from holdfast.stores.memory.queue import EMPTY
from holdfast.stores.memory.schedule import SPARE, Schedule
from holdfast.testing import FakeClock

VALUE = Raw(b"1")


class Key:
    """Hashable, and nothing else."""


def put(store: MemoryStore, *ids: str, queue: str = "jobs", **options: Any) -> None:
    store.execute(Put(queue, [Item(message_id, VALUE, **options) for message_id in ids]))


def claim(store: MemoryStore, queue: str = "jobs", lease_s: float = 30.0, **options: Any) -> list[Message]:
    return store.execute(Claim(queue, "me", lease_s, **options)).messages


def anything(value: object) -> Any:
    return value


# The schedule


def test_a_schedule_gives_slots_in_order_however_they_came() -> None:
    schedule = Schedule(lambda _moment, _n: True)
    for moment, n in [(3, 1), (1, 2), (2, 3), (3, 4), (1, 5)]:
        schedule.add(moment, n)
    schedule.add(2, 6, ahead=True)
    assert schedule.upto(2, 10) == [2, 5, 3, 6]
    assert schedule.upto(9, 10) == [2, 5, 3, 6, 1, 4]
    assert schedule.upto(9, 2) == [2, 5]


def test_who_left_and_came_back_to_its_place_stands_there_once() -> None:
    schedule = Schedule(lambda _moment, _n: True)
    schedule.add(0, 9)
    schedule.add(1, 1)
    schedule.leave(1)
    schedule.add(1, 1)
    assert schedule.upto(1, 10) == [9, 1]


def test_stale_slots_are_bounded_whatever_leaves() -> None:
    there = dict.fromkeys(range(10_000))
    schedule = Schedule(lambda _moment, n: n in there)
    for n in there:
        schedule.add(n, n, ahead=n % 2 == 0)
    for n in range(9_999, 0, -1):
        del there[n]
        schedule.leave(n)
        assert len(schedule.line) + len(schedule.heap) <= 2 * schedule.count + SPARE
    assert schedule.upto(10_000, 10) == [0]


def test_the_next_moment_behind_another_is_found_without_losing_what_comes_before() -> None:
    schedule = Schedule(lambda _moment, _n: True)
    for moment in (1, 2, 5, 7):
        schedule.add(moment, moment, ahead=moment == 5)
    assert schedule.after(2) == 5
    assert schedule.after(7) is None
    assert schedule.upto(9, 9) == [1, 2, 5, 7]


# Bounded memory


def test_a_queue_keeps_nothing_of_what_passed_through_it() -> None:
    store = MemoryStore(clock=FakeClock())
    put(store, "held", priority=1)
    claim(store)
    for n in range(2_000):
        put(store, str(n), priority=n)
        store.execute(Settle([message.receipt for message in claim(store)]))
    queue = store._tables.queues["jobs"]
    assert len(queue.lines) <= 64
    assert len(queue.ends.line) + len(queue.ends.heap) <= 2 + SPARE
    assert len(queue.ids) == len(store._tables.messages) == 1


def test_updating_a_waiting_key_leaves_nothing_behind() -> None:
    store = MemoryStore(clock=FakeClock())
    for n in range(1_000):
        put(store, str(n), key="k")
    queue = store._tables.queues["jobs"]
    assert len(queue.lines[0].line) + len(queue.lines[0].heap) == 1


def test_a_renewed_lease_leaves_a_bounded_trace() -> None:
    clock = FakeClock()
    store = MemoryStore(clock=clock)
    put(store, "a", "b")
    held = [claim(store)[0], claim(store)[0]]
    for _ in range(1_000):
        clock.advance(1)
        store.execute(Extend([message.receipt for message in held], 30.0))
    ends = store._tables.queues["jobs"].ends
    assert len(ends.line) + len(ends.heap) <= 2 * 2 + SPARE


def test_events_beyond_what_is_retained_go_little_by_little(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.stores.memory.log.RETAINED", 300)
    log, now = Log(by_reference=False), 0
    for n in range(10_000):
        log.append("busy", "put", {"n": n}, now)
        log.append(f"quiet-{n}", "put", {}, now)
        now += 1_000_000
        if n % 50 == 0:
            log.prune(300, now - 1_000_000_000, now - 120_000_000, 200)
    assert len(log.topics["busy"]) <= 400
    assert len(log.topics) <= 1_300
    assert log.floor("busy") > 0


def test_nothing_younger_than_two_minutes_is_dropped_on_the_way() -> None:
    clock = FakeClock()
    store = MemoryStore(clock=clock)
    for n in range(2_000):
        put(store, str(n))
    assert len(store.execute(Changes("queue:jobs", limit=9_999)).events) == 2_000
    clock.advance(86_400 + 1)
    for n in range(2_000, 4_000):
        put(store, str(n))
    assert [json.decode(event.data)["ids"] for event in store.execute(Changes("queue:jobs", limit=9_999)).events] == [
        [str(n)] for n in range(2_000, 4_000)
    ]


def test_what_a_page_of_events_begins_with_is_found_in_a_long_log() -> None:
    log = Log(by_reference=False)
    for n in range(1, 1_001):
        log.append("t" if n % 2 else "other", "put", {"n": n}, 0)
    events, upto = log.read("t", 500, 3)
    assert ([event.index for event in events], upto) == ([501, 503, 505], 505)
    assert log.read("t", 999, 3) == ([], 1_000)


# Values


def test_a_value_is_copied_out_of_the_buffer_it_was_read_from() -> None:
    buffer = bytearray(b"[1]")
    store = MemoryStore()
    for message_id in ("one", "two"):
        store.execute(Put("jobs", [Item(message_id, Raw(buffer))]))
    store.execute(Write("d", [Change('"k"', value=Raw(buffer))]))
    buffer[1:2] = b"2"
    assert [bytes(message.value) for message in store.execute(Browse("jobs")).messages] == [b"[1]", b"[1]"]
    assert bytes(store.execute(Read("d")).entries[0].value) == b"[1]"


@pytest.mark.parametrize("count", [1, 2])
def test_values_over_the_limit_are_refused_however_many_come(count: int) -> None:
    store = MemoryStore(limits=Limits(value_bytes=10))
    put(store, "first")
    with pytest.raises(ValueError, match="the limit is 10"):
        store.execute(Put("jobs", [Item(str(n), Raw(b"12345678901")) for n in range(count)]))


# By reference


@pytest.fixture
def references() -> MemoryStore:
    return MemoryStore(by_reference=True, clock=FakeClock())


KEYS = [0, (), False, None, 1.5, Key(), frozenset({1}), 2**70, "text", b"\xff", ("a", 1)]


@pytest.mark.parametrize("key", KEYS, ids=lambda key: type(key).__name__)
def test_by_reference_any_hashable_is_a_key_and_any_object_a_value(references: MemoryStore, key: object) -> None:
    value = object()
    references.execute(Put("jobs", [Item("a", anything(value), anything(key))]))
    again = references.execute(Put("jobs", [Item("b", anything(value), anything(key))]))
    assert again.created == [key is None]
    first = claim(references)[0]
    assert first.value is value
    assert first.key is key
    references.execute(Put("jobs", [Item("c", anything(value), anything(key))]))
    references.execute(Settle([first.receipt]))
    assert claim(references)[0].key is key


@pytest.mark.parametrize("key", KEYS, ids=lambda key: type(key).__name__)
def test_by_reference_events_can_be_read_and_leave_out_what_may_be_anything(references: MemoryStore, key: object) -> None:
    references.execute(Put("jobs", [Item("a", anything(object()), anything(key))]))
    references.execute(Put("jobs", [Item("b", anything(object())), Item("c", anything(object()))]))
    references.execute(Write("d", [Change('"k"', value=anything(object()))]))
    facts = [json.decode(event.data) for event in references.execute(Changes("queue:jobs")).events]
    assert facts == [{"ids": ["a"]}, {"ids": ["b", "c"]}]
    assert [json.decode(event.data) for event in references.execute(Changes("dict:d")).events] == [{}]


def test_by_reference_an_odd_key_goes_through_copies_burial_and_browsing(references: MemoryStore) -> None:
    for key in (0, Key(), (1, "a")):
        for n in range(2):
            references.execute(Put("jobs", [Item(f"{key}-{n}", anything([]), anything(key), dead_letter="grave")]))
            claim(references, key=anything(key)) if n == 0 else None
    assert len(references.execute(Browse("jobs", state="buffered", limit=2)).messages) == 2
    held = references.execute(Browse("jobs", state="leased")).messages
    references.execute(Settle([message.receipt for message in held], to="dead"))
    assert references.execute(Count("grave")).ready == 3
    assert references.execute(Count("jobs")).ready == 3


def test_equal_keys_share_a_topic_whatever_their_text() -> None:
    assert key_topic("jobs", anything(1)) == key_topic("jobs", anything(True)) != key_topic("jobs", "1")


# Native answers


def native_and_generic(clock: FakeClock) -> tuple[MemoryStore, MemoryStore]:
    plain = MemoryStore(clock=clock)
    plain._native = {}
    return MemoryStore(clock=clock), plain


def state(store: MemoryStore) -> list[object]:
    states = [store.execute(Browse("jobs", state=cast("Any", state), limit=1_000)) for state in ("ready", "leased", "dead", "buffered")]
    return [*states, store.execute(Count("jobs")), store.execute(Changes("queue:jobs")), store.execute(Changes("queue:grave"))]


def random_command(draw: random.Random, receipts: list[Receipt]) -> Command[Any]:
    def options(**choices: list[object]) -> dict[str, Any]:
        return {name: draw.choice(some) for name, some in choices.items() if draw.random() < 0.3}

    match draw.randrange(8):
        case 0 | 1 | 2:
            more = options(
                key=["x", "y"],
                priority=[-1, 1],
                delay_s=[1.0, 5.0],
                start_within_s=[2.0],
                if_leased=["keep", "update", "buffer"],
                dead_letter=["grave"],
            )
            return Put("jobs", [Item(str(draw.randrange(60)), Raw(str(draw.random()).encode()), **more)])
        case 3 | 4:
            more = options(limit=[2, 5], key=["x"], take=[True], expired_to=["back", "front"], max_attempts=[2])
            return Claim("jobs", draw.choice("ab"), draw.choice([None, 1.0, 3.0]), **more)
        case 5 | 6:
            more = options(to=["ready", "dead"], return_to=["place", "front"], counts=[True], delay_s=[2.0])
            return Settle(draw.sample(receipts, min(len(receipts), draw.choice([1, 1, 2]))), **more)
        case _:
            return draw.choice([Extend(receipts[:1], 4.0), Move("jobs", "ready"), Move("jobs", "gone", state="ready", limit=1)])


@pytest.mark.parametrize("seed", range(40))
def test_native_answers_are_those_of_the_commands_own_rules(seed: int) -> None:
    draw, clock = random.Random(seed), FakeClock()
    native, plain = native_and_generic(clock)
    receipts: list[Receipt] = []
    for _ in range(300):
        command = random_command(draw, receipts)
        answer = native.execute(command)
        assert answer == plain.execute(command)
        if isinstance(command, Claim):
            receipts = [*receipts, *(message.receipt for message in answer.messages)][-10:]
        clock.advance(draw.choice([0, 0, 0.5, 1]))
    assert state(native) == state(plain)


# Counting and browsing


def random_history(seed: int, steps: int = 150) -> tuple[MemoryStore, random.Random]:
    """A store with what random commands made of a queue."""
    draw, clock = random.Random(seed), FakeClock()
    store, receipts = MemoryStore(clock=clock), list[Receipt]()
    for _ in range(steps):
        command = random_command(draw, receipts)
        answer = store.execute(command)
        if isinstance(command, Claim):
            receipts = [*receipts, *(message.receipt for message in answer.messages)][-10:]
        clock.advance(draw.choice([0, 0, 0.5, 1]))
    clock.advance(1.5)  # Some leases end, which no claim has seen yet.
    return store, draw


@pytest.mark.parametrize("seed", range(20))
def test_who_holds_what_is_counted_as_it_can_be_seen(seed: int) -> None:
    store, _ = random_history(seed)
    page = store.execute(Browse("jobs", state="leased", limit=1_000))
    held = [message for message in page.messages if message.held_at(page.now)]
    ages = [(page.now - message.since) / 1_000_000 for message in held]
    stats = store.execute(Count("jobs"))
    assert (stats.leased, stats.holders) == (len(held), dict(Counter(message.holder for message in held)))
    assert (stats.oldest_leased_s, stats.average_leased_s) == (
        pytest.approx(max(ages)) if ages else None,
        pytest.approx(mean(ages)) if ages else None,
    )


@pytest.mark.parametrize("state", ["ready", "leased", "dead", "buffered"])
@pytest.mark.parametrize("seed", range(5))
def test_pages_follow_one_another_though_the_queue_changes_in_between(seed: int, state: Any) -> None:
    store, draw = random_history(seed)
    after = None
    for _ in range(40):
        whole = store.execute(Browse("jobs", state=state, limit=1_000)).messages
        behind = [message for message in whole if after is None or cursor(message) > after]
        page = store.execute(Browse("jobs", state=state, after=after, limit=2))
        assert page.messages == behind[:2]
        after = page.after
        if draw.random() < 0.5:
            store.execute(random_command(draw, []))


class Watched(dict[int, Message]):
    """Messages by number that know how often somebody looked at one."""

    looks = 0

    def __getitem__(self, n: int) -> Message:
        self.looks += 1
        return super().__getitem__(n)


def watched(store: MemoryStore) -> Watched:
    queue = store._tables.queues["jobs"]
    queue.messages = Watched(queue.messages)
    return queue.messages


def test_counting_looks_at_nothing_that_is_leased() -> None:
    store = MemoryStore(clock=FakeClock())
    put(store, *map(str, range(500)))
    assert len(claim(store, limit=500)) == 500
    messages = watched(store)
    assert store.execute(Count("jobs")).leased == 500
    assert messages.looks == 0


def test_all_but_the_first_pages_look_only_at_what_they_show() -> None:
    store = MemoryStore(clock=FakeClock())
    put(store, *map(str, range(500)))
    first = store.execute(Browse("jobs", limit=10))
    second = store.execute(Browse("jobs", after=first.after, limit=10))
    messages = watched(store)
    third = store.execute(Browse("jobs", after=second.after, limit=10))
    assert [message.id for message in third.messages] == [str(number) for number in range(20, 30)]
    assert messages.looks == 10


def test_who_holds_nothing_any_more_is_forgotten() -> None:
    store = MemoryStore(clock=FakeClock())
    for number in range(500):
        put(store, str(number))
        (message,) = store.execute(Claim("jobs", f"holder-{number}")).messages
        store.execute(Settle([message.receipt]))
    assert len(store._tables.queues["jobs"].holders) <= 2 * EMPTY


# Threads, tasks, forks and the end


def in_threads(count: int, work: Callable[[int], None]) -> None:
    threads = [threading.Thread(target=work, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)


def test_eight_threads_take_each_message_once() -> None:
    store = MemoryStore()
    taken: list[str] = []

    def work(number: int) -> None:
        for n in range(200):
            put(store, f"{number}-{n}", key=f"{number}-{n}")
            for message in claim(store):
                assert store.execute(Settle([message.receipt])).held == [True]
                taken.append(message.id)

    in_threads(8, work)
    assert sorted(taken) == sorted(f"{number}-{n}" for number in range(8) for n in range(200))
    assert len(store.execute(Changes("queue:jobs", limit=10_000)).events) == 8 * 200 * 3
    assert store._tables.messages == {}


def test_a_put_wakes_a_thread_that_waits() -> None:
    store = MemoryStore()
    found: list[str] = []

    def work(number: int) -> None:
        with store.mark("queue:jobs") as mark:
            while not (messages := claim(store)):
                store.wait(mark, 30)
        found.append(messages[0].id)

    waiting = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in waiting:
        thread.start()
    put(store, "a", "b")
    put(store, "c")
    put(store, "d")
    for thread in waiting:
        thread.join(30)
    assert sorted(found) == ["a", "b", "c", "d"]


def test_tasks_are_answered_in_place_and_wait_without_a_thread() -> None:
    async def scenario() -> list[str]:
        store = AsyncMemoryStore(MemoryStore())
        mark = store.mark("queue:jobs")
        await store.execute(Claim("jobs"))
        waiting = asyncio.create_task(store.wait(mark, 30))
        await asyncio.sleep(0)
        await store.execute(Put("jobs", [Item("a", VALUE)]))
        await waiting
        assert threading.active_count() == threads
        return [message.id for message in (await store.execute(Claim("jobs"))).messages]

    threads = threading.active_count()
    assert asyncio.run(scenario()) == ["a"]


def test_a_closed_store_ends_waits_and_answers_nothing() -> None:
    store = MemoryStore()
    put(store, "a")
    mark = store.mark("queue:jobs")
    ended: list[type[BaseException]] = []

    def work(_number: int) -> None:
        try:
            store.wait(mark, 30)
        except Closed as error:
            ended.append(type(error))

    thread = threading.Thread(target=work, args=(0,))
    thread.start()
    store.close()
    store.close()
    thread.join(30)
    assert ended == [Closed]
    for command in (Claim("jobs"), Put("jobs", [Item("b", VALUE)]), Count("jobs"), Prune()):
        with pytest.raises(Closed):
            store.execute(anything(command))


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_goes_on_with_a_copy_of_its_own() -> None:
    store = MemoryStore()
    put(store, "a")
    with store._lock:
        child = os.fork()
        if child == 0:
            ids = [message.id for message in claim(store)]
            os._exit(0 if ids == ["a"] else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert [message.id for message in claim(store)] == ["a"]


# Shortcuts


def test_a_message_put_without_an_id_has_its_number_and_is_found_by_it(references: MemoryStore) -> None:
    references.execute(Configure("queue", "jobs"))
    shortcuts = references.shortcuts("jobs")
    assert shortcuts.put("x", 1)
    (message,) = references.execute(Browse("jobs", ids=["1"])).messages
    assert (message.id, message.n, message.key) == ("1", 1, "x")
    assert not references.execute(Put("jobs", [Item("1", anything(2))])).created[0], "the id is taken"
    references.execute(Put("jobs", [Item("2", anything(3))]))
    references.execute(Put("jobs", [Item("4", anything(3))]))
    assert shortcuts.put("y", 4) is None, "its number would be an id that somebody gave"
    assert references.execute(Clear("queue", "jobs")) == 3


def test_shortcuts_do_nothing_where_a_command_has_more_to_decide(references: MemoryStore) -> None:
    shortcuts = references.shortcuts("jobs")
    assert shortcuts.put("x", 1) is None, "nobody created the queue"
    references.execute(Configure("queue", "jobs", maxsize=1))
    assert shortcuts.put("x", 1) is None, "it is bounded"
    references.execute(Configure("queue", "jobs", maxsize=None))
    assert shortcuts.put("x", 1)
    assert shortcuts.put("x", 2) is None, "the key is taken"
    references.execute(Configure("queue", "jobs", paused=True))
    assert shortcuts.claim(None, "me", None, "front") is None, "it is paused"


def test_shortcuts_of_a_queue_that_is_gone_do_nothing(references: MemoryStore) -> None:
    references.execute(Configure("queue", "jobs"))
    shortcuts = references.shortcuts("jobs")
    assert shortcuts.put("x", 1)
    message = shortcuts.claim("x", "me", None, "front")
    assert message is not None
    references.execute(Clear("queue", "jobs"))
    assert shortcuts.ack(message) is None
    assert shortcuts.put("x", 1) is None
    anew = references.shortcuts("jobs")
    assert anew.put("x", 1), "after a clear the queue goes on under new ones"
    message = anew.claim("x", "me", None, "front")
    assert message is not None
    references.close()
    assert anew.ack(message) is None
    assert anew.release(message, "back") is None
    assert references.shortcuts("jobs").put("y", 1) is None
    with pytest.raises(Closed):
        references.execute(Count("jobs"))


def test_shortcuts_settle_no_message_that_changed_or_is_of_another_queue(references: MemoryStore) -> None:
    references.execute(Configure("queue", "jobs"))
    shortcuts, elsewhere = references.shortcuts("jobs"), references.shortcuts("elsewhere")
    assert shortcuts.put("x", 1)
    first = shortcuts.claim("x", "me", None, "front")
    assert first is not None
    assert elsewhere.ack(first) is None, "it is of another queue"
    assert elsewhere.release(first, "back") is None
    assert shortcuts.release(first, "back")
    (released,) = references.execute(Browse("jobs", keys=["x"])).messages
    assert shortcuts.ack(released) is None, "nobody holds it"
    assert shortcuts.release(released, "back") is None
    second = shortcuts.claim("x", "me", None, "front")
    assert second is not None
    assert shortcuts.ack(first) is None, "its lease is another"
    assert shortcuts.release(first, "back") is None
    assert shortcuts.ack(second)
    assert shortcuts.ack(second) is None, "it is gone"


def test_a_store_that_keeps_no_events_says_that_they_are_gone() -> None:
    store = MemoryStore(keeps_events=False)
    put(store, "a")
    claim(store)
    assert store.execute(Changes("queue:jobs")).events == []
    with pytest.raises(Compacted):
        store.execute(Changes("queue:jobs", 0))


def test_a_forked_child_goes_on_though_another_thread_held_the_lock(references: MemoryStore) -> None:
    references.execute(Configure("queue", "jobs"))
    shortcuts = references.shortcuts("jobs")
    with references._lock:
        references._begin_in_child()
        assert shortcuts.put("x", 1), "as in a child, where whoever has the lock is not"
        references._lock.acquire()

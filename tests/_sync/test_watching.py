# Generated from tests/_async/test_watching.py by tools/unasync.py; do not edit.
"""The watching flow: each event once and in order, from any index, with a snapshot or without, and an end when there is one."""

import math
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec import Raw

from holdfast._sync.flows.watching import watch
from holdfast.codec import JSON, encode_key, key_prefix
from holdfast.commands import Acquire, Change, Claim, Clear, Item, LeaseName, Prune, Put, Release, Settle, Write
from holdfast.commands.topics import dict_topic, queue_topic, watch_topic
from holdfast.connect import connect
from holdfast.errors import Closed, Compacted
from holdfast.results import WatchEvent
from holdfast.stores import Store
from holdfast.stores.memory import MemoryStore
from holdfast.testing import FakeClock
from holdfast.views.watch_subjects import PAGE, DictSubject, QueueSubject, Subject
from tests.runners import Runner, waiting_on

NEVER_POLLS_S = 3_600.0
JOBS = QueueSubject("jobs")
STATE = DictSubject("state")


@pytest.fixture(params=["memory", "sqlite", "lmdb"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    url = "memory://" if request.param == "memory" else f"{request.param}:///{tmp_path}/store"
    opened = connect(url)
    yield opened
    opened.close()


def put(store: Store, *ids: str) -> None:
    store.execute(Put("jobs", [Item(one, JSON.encode(one)) for one in ids]))


def write(store: Store, key: str, value: object) -> None:
    store.execute(Write("state", [Change(encode_key(key), value=JSON.encode(value))]))


def seen(store: Store, subject: Subject, **options: Any) -> list[WatchEvent]:
    events = []
    for event in watch(store, subject, timeout_s=0.0, **options):
        events += [event]
    return events


def follow(store: Store, subject: Subject, until: Callable[[WatchEvent], bool], last_index: int = -1) -> list[WatchEvent]:
    events = []
    following = watch(store, subject, last_index=last_index, poll_s=NEVER_POLLS_S)
    for event in following:
        events.append(event)
        if until(event):
            break
    following.close()
    return events


def test_a_timeout_of_zero_yields_what_is_there_and_stops(store: Store) -> None:
    assert seen(store, JOBS) == []
    put(store, "a", "b")
    claimed = store.execute(Claim("jobs", "w", 30.0))
    store.execute(Settle([message.receipt for message in claimed.messages]))
    token = claimed.messages[0].token
    assert [(event.event, event.data) for event in seen(store, JOBS)] == [
        ("put", {"ids": ["a", "b"]}),
        ("claimed", {"ids": ["a"], "holder": "w", "token": token}),
        ("settled", {"ids": ["a"], "to": "done"}),
    ]


def test_keys_and_values_are_shown_as_they_were_written(store: Store) -> None:
    store.execute(Put("jobs", [Item("a", Raw(b"1"), key=encode_key(("user", 7)))]))
    store.execute(Write("state", [Change(encode_key(7), value=JSON.encode((1, b"x")))]))
    (event,) = seen(store, JOBS)
    assert event.data == {"ids": ["a"], "keys": [("user", 7)]}
    (event,) = seen(store, STATE)
    assert event.data == {"key": 7, "value": (1, b"x"), "revision": event.index}


def test_a_watch_goes_on_behind_any_index(store: Store) -> None:
    for number in range(20):
        write(store, "n", number)
        put(store, str(number))
    events = seen(store, STATE)
    for skipped, event in enumerate(events, 1):
        assert [later.data["value"] for later in seen(store, STATE, last_index=event.index)] == list(range(skipped, 20))


def test_one_key_or_a_prefix_is_watched_alone(store: Store) -> None:
    for key in ("a", "a/1", "a/2", "b"):
        write(store, key, 1)
    one = DictSubject("state", key=encode_key("a"))
    some = DictSubject("state", prefix=key_prefix("a/"))
    assert [event.data["key"] for event in seen(store, one)] == ["a"]
    assert [event.data["key"] for event in seen(store, some)] == ["a/1", "a/2"]
    assert [event.data.get("key") for event in seen(store, one, snapshot=True)] == ["a", None]
    assert [event.data.get("key") for event in seen(store, some, snapshot=True)] == ["a/1", "a/2", None]


def test_a_clearing_by_prefix_is_seen_by_those_whose_keys_it_removed(store: Store) -> None:
    write(store, "a/1", 1)
    store.execute(Clear("dict", "state", prefix=key_prefix("a/")))
    told = {"count": 1, "dropped": False, "prefix": "a/"}
    of = (
        DictSubject("state"),
        DictSubject("state", key=encode_key("a/2")),
        DictSubject("state", prefix=key_prefix("a")),
        DictSubject("state", prefix=key_prefix("a/1")),
    )
    assert [[event.data for event in seen(store, one) if event.event == "cleared"] for one in of] == [[told]] * 4
    others = (
        DictSubject("state", key=encode_key("a")),
        DictSubject("state", prefix=key_prefix("b")),
        DictSubject("state", prefix=key_prefix(("a/", 1))),
    )
    assert [seen(store, one) for one in others] == [[]] * 3


def test_a_queue_is_watched_by_one_key_or_a_prefix_alone(store: Store) -> None:
    for number, key in enumerate(["a", "a/1", "a/2", 1, 10, None]):
        store.execute(Put("jobs", [Item(f"m{number}", JSON.encode(number), key=None if key is None else encode_key(key))]))
    claimed = store.execute(Claim("jobs", "w", 30.0, limit=2))
    store.execute(Settle([message.receipt for message in claimed.messages]))
    some = QueueSubject("jobs", prefix=key_prefix("a/"))
    token = claimed.messages[0].token
    assert [(event.event, event.data) for event in seen(store, some)] == [
        ("put", {"ids": ["m1"], "keys": ["a/1"]}),
        ("put", {"ids": ["m2"], "keys": ["a/2"]}),
        ("claimed", {"ids": ["m1"], "keys": ["a/1"], "holder": "w", "token": token}),
        ("settled", {"ids": ["m1"], "keys": ["a/1"], "to": "done"}),
    ]
    one = QueueSubject("jobs", key=encode_key(1))
    assert [event.data for event in seen(store, one)] == [{"ids": ["m3"], "keys": [1]}]
    assert [event.data.get("keys") for event in seen(store, some, snapshot=True)] == [["a/2"], None]
    assert [event.data.get("keys") for event in seen(store, one, snapshot=True)] == [[1], None]


def test_a_watch_of_a_key_sees_new_values_and_what_happens_to_the_whole_queue(store: Store) -> None:
    both = [Item(one, JSON.encode(one), key=encode_key(one)) for one in ("a", "b")]
    store.execute(Put("jobs", both))
    store.execute(Put("jobs", [Item(f"{item.id}2", item.value, key=item.key) for item in both]))
    store.execute(Clear("queue", "jobs"))
    assert [(event.event, event.data) for event in seen(store, QueueSubject("jobs", key=encode_key("b")))] == [
        ("put", {"ids": ["b"], "keys": ["b"]}),
        ("put", {"ids": [], "updated": ["b"], "updated_keys": ["b"]}),
        ("cleared", {"count": 2, "dropped": False}),
    ]


def test_leases_of_a_dict_are_seen_with_their_tokens(store: Store) -> None:
    granted = store.execute(Acquire("state", encode_key("k"), "h", "l1", 30.0))
    store.execute(Release([LeaseName("state", encode_key("k"), "l1")]))
    assert [(event.event, event.data) for event in seen(store, STATE)] == [
        ("acquired", {"key": "k", "holder": "h", "token": granted.lease.token}),
        ("released", {"key": "k", "holder": "h"}),
    ]


def test_a_snapshot_of_a_dict_comes_first_and_then_what_came_after_it(store: Store) -> None:
    write(store, "a", 1)
    write(store, "a", 2)
    events = []
    for event in watch(store, STATE, snapshot=True, last_index=10**9, timeout_s=0.0):
        events.append((event.event, event.data.get("value")))
        if event.event == "synced":
            write(store, "a", 3)
    assert events == [("snapshot", 2), ("synced", None), ("written", 3)]


def test_a_snapshot_of_a_queue_has_every_state(store: Store) -> None:
    key = encode_key("k")
    store.execute(Put("jobs", [Item("held", Raw(b"1"), key=key), Item("later", Raw(b"2"), delay_s=60.0)]))
    claimed = store.execute(Claim("jobs", "w", 30.0))
    store.execute(Put("jobs", [Item("behind", Raw(b"3"), key=key)]))
    events = seen(store, JOBS, snapshot=True)
    assert {event.data["ids"][0]: event.data["state"] for event in events[:-1]} == {
        "held": "leased",
        "later": "ready",
        "behind": "buffered",
    }
    assert [event.data for event in events if event.data.get("state") == "leased"] == [
        {"ids": ["held"], "keys": ["k"], "state": "leased", "value": 1, "holder": "w", "token": claimed.messages[0].token}
    ]
    assert events[-1].event == "synced"


class Busy:
    """A store in which something happens between a snapshot's questions."""

    def __init__(self, store: Store, steps: list[Callable[[], Any]]) -> None:
        self.store = store
        self.steps = steps

    def __getattr__(self, name: str) -> Any:
        return getattr(self.store, name)

    def execute(self, command: Any) -> Any:
        answer = self.store.execute(command)
        if self.steps:
            self.steps.pop(0)()
        return answer


def test_a_snapshot_of_many_pages_is_of_one_moment(store: Store) -> None:
    keys = [f"{number:05}" for number in range(PAGE + 10)]
    store.execute(Write("state", [Change(encode_key(key), value=Raw(b"0")) for key in keys]))
    busy = Busy(
        store,
        [
            lambda: write(store, keys[0], 1),  # On a page that was read.
            lambda: store.execute(Write("state", [Change(encode_key(keys[1]), "delete"), Change(encode_key("new"), value=Raw(b"1"))])),
            lambda: write(store, keys[0], 2),
        ],
    )
    state: dict[str, int] = {}
    for event in watch(busy, STATE, snapshot=True, timeout_s=0.0):
        if event.event == "deleted":
            del state[event.data["key"]]
        elif event.event != "synced":
            assert event.event == "written" or event.data["key"] not in state
            state[event.data["key"]] = event.data["value"]
    assert not busy.steps
    assert state == dict.fromkeys([keys[0], *keys[2:]], 0) | {keys[0]: 2, "new": 1}


def test_a_snapshot_begins_again_when_everything_is_cleared(store: Store) -> None:
    put(store, "a", "b")

    def clear() -> None:
        store.execute(Clear("queue", "jobs"))
        put(store, "c")

    busy = Busy(store, [clear, clear])
    ids = [event.data.get("ids") for event in watch(busy, JOBS, snapshot=True, timeout_s=0.0)]
    assert ids == [["c"], None]


def test_a_write_wakes_a_watch_that_waits_for_ever(store: Store) -> None:
    with Runner() as runner:
        following = [runner.start(follow, store, STATE, lambda event: event.data["value"] == 2) for _ in range(2)]
        runner.until(lambda: waiting_on(store, watch_topic(dict_topic("state"))) == 2)
        write(store, "a", 1)
        write(store, "a", 2)
        for one in following:
            assert [event.data["value"] for event in one.result()] == [1, 2]


def test_a_timeout_begins_again_with_each_event(store: Store) -> None:
    put(store, "a")
    events = []
    for event in watch(store, JOBS, timeout_s=0.05):
        events += event.data["ids"]
        if len(events) < 3:
            put(store, "abc"[len(events)])
    assert events == ["a", "b", "c"]


def test_closing_the_store_ends_a_watch(store: Store) -> None:
    with Runner() as runner:
        following = runner.start(follow, store, JOBS, lambda event: False)
        runner.until(lambda: waiting_on(store, watch_topic(queue_topic("jobs"))) == 1)
        store.close()
        with pytest.raises(Closed):
            following.result()


def test_a_watch_that_was_left_waits_no_longer(store: Store) -> None:
    put(store, "a")
    follow(store, JOBS, lambda event: True)
    assert waiting_on(store, watch_topic(queue_topic("jobs"))) == 0


def test_what_was_pruned_is_told_apart_from_silence() -> None:
    clock = FakeClock()
    store = MemoryStore(clock=clock)
    put(store, "a", "b")
    (first,) = seen(store, JOBS)
    put(store, "c")
    clock.advance(600)
    put(store, "d")
    store.execute(Prune(keep_s=300.0))
    with pytest.raises(Compacted) as caught:
        seen(store, JOBS, last_index=first.index)
    assert seen(store, JOBS, last_index=caught.value.oldest) == seen(store, JOBS)
    assert [event.data["ids"] for event in seen(store, JOBS)] == [["d"]]
    assert [event.event for event in seen(store, JOBS, snapshot=True)] == ["snapshot"] * 4 + ["synced"]
    store.close()


def test_an_index_of_another_store_is_refused(store: Store) -> None:
    put(store, "a")
    with pytest.raises(Compacted):
        seen(store, JOBS, last_index=1_000)


def test_bad_arguments_are_refused_before_anything_is_asked(store: Store) -> None:
    for options in ({"last_index": -2}, {"timeout_s": -1.0}, {"timeout_s": math.nan}, {"poll_s": 0.0}):
        with pytest.raises(ValueError, match=r"last_index|timeout_s|poll_interval_s"):
            watch(store, JOBS, **options)


@pytest.mark.parametrize("scheme", ["sqlite", "lmdb"])
def test_a_watch_resumed_anywhere_while_writers_run_and_across_restarts_has_no_gap_and_no_duplicate(scheme: str, tmp_path: Path) -> None:
    chance = random.Random(7)
    url = f"{scheme}:///{tmp_path}/store"
    writers, rounds, each = 3, 4, 25

    def add(store: Store, writer: int, start: int) -> None:
        for number in range(start, start + each):
            write(store, f"{writer}", number)
            put(store, f"{writer}-{number}")

    total: list[WatchEvent] = []
    for turn in range(rounds):
        store = connect(url)
        with Runner() as runner:
            started = [runner.start(add, store, writer, turn * each) for writer in range(writers)]
            while len(total) < (turn + 1) * writers * each:
                # Taken up a few events behind each time: what comes again must be the same.
                back = chance.randrange(min(5, len(total) + 1))
                known = total[len(total) - back :]
                total = total[: len(total) - back]
                wanted = len(known) + chance.randrange(1, 8)
                last_index = total[-1].index if total else -1
                for event in watch(store, STATE, last_index=last_index, timeout_s=10.0):
                    known, again = known[1:], known[:1]
                    assert [(one.index, one.data) for one in again] in ([], [(event.index, event.data)])
                    total.append(event)
                    wanted -= 1
                    if wanted <= 0 or len(total) == (turn + 1) * writers * each:
                        break
            for one in started:
                one.result()
        store.close()
    indexes = [event.index for event in total]
    assert indexes == sorted(set(indexes))
    for writer in range(writers):
        assert [event.data["value"] for event in total if event.data["key"] == f"{writer}"] == list(range(rounds * each))

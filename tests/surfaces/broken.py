"""The faults of the systems whose APIs the surfaces have, built in on purpose: what a careless surface might do."""

from collections.abc import Callable
from threading import Event
from typing import Any

from msgspec import Struct, structs

from holdfast import records
from holdfast._async.flows import claiming
from holdfast._async.flows.closing import AsyncClosable
from holdfast._async.handles.claimed import AsyncQueueClaimContext
from holdfast._sync.handles.claimed import QueueClaimContext
from holdfast._sync.handles.claims import QueueClaim
from holdfast.codec import JSON
from holdfast.commands import Browse, Item, Put, Settle
from holdfast.commands.endings import Endings
from holdfast.commands.topics import queue_topic
from holdfast.errors import QueueFull
from holdfast.holding import Hold
from holdfast.ids import new_id
from holdfast.records import Receipt
from holdfast.stores.sqlite.writer import Writer
from holdfast.stores.waiting import Waiters
from holdfast.surfaces import sentinel
from holdfast.surfaces.leasedkeyq import queue as leasedkeyq
from holdfast.surfaces.localqueue import placing, queues
from holdfast.surfaces.localqueue._sync import committing, working
from holdfast.surfaces.localqueue.unfinished import Unfinished
from holdfast.surfaces.sssn import Settled, WorkQueueChannel
from holdfast.testing.clock import FakeClock
from tests.surfaces import test_leasedkeyq, test_sssn
from tests.surfaces.localqueue import test_commits, test_deaths, test_faults, test_queue, test_workers
from tests.surfaces.sentinel import test_surface


class Fault(Struct, frozen=True):
    """What is broken, how, and the test that must notice."""

    name: str
    target: Any
    attribute: str
    breaks: Any
    """Made of what was there: takes its place."""
    noticed_by: Callable[..., Any]


def settled_by_id(queue: Any, message: Any, **how: Any) -> bool:
    """Whoever holds it."""
    (found,) = queue.client.store.execute(Browse(queue.name, ids=[message.id])).messages
    held: bool = queue.client.store.execute(Settle([Receipt(queue.name, message.id, found.token)], **how)).held[0]
    return held


def one_after_the_other(original: Any) -> Any:
    return lambda store, commands, *waiting: [original(store, [command], *waiting)[0] for command in commands]


def swallowed(original: Any) -> Any:
    def put(queue: Any, item: Any, *args: Any, dedupe_key: str | None = None, **options: Any) -> Any:
        known = [one for one in queue.dead_letters() if dedupe_key is not None and one.dedupe_key == dedupe_key]
        return known[0] if known else original(queue, item, *args, dedupe_key=dedupe_key, **options)

    return put


def unscoped(original: Any) -> Any:
    def init(commit: Any, queue: Any, claim: Any) -> None:
        original(commit, queue, claim)
        commit._key = f"dedupe:{claim.key}"

    return init


def strict_about_results(_: Any) -> Any:
    def keep_result(commit: Any, step: Any, result: Any) -> Any:
        return "inline", {"result": JSON.decode(JSON.encode(result))}

    return keep_result


def oldest_of_all(_: Any) -> Any:
    return lambda unfinished: next(mine for mine in unfinished._by_thread.values() if mine).popleft()


def blind_to_time(_: Any) -> Any:
    return lambda queue: len(queue.client.store.execute(Browse(queue.name, state="ready")).messages)


def with_option(name: str, value: object) -> Any:
    return lambda original: lambda made, *args, **options: original(made, *args, **{**options, name: value})


def sometimes_checked(original: Any) -> Any:
    """Looks away three times, lest the test never end."""
    looks = iter((True, True, True))

    def check(claim: Any) -> None:
        if not next(looks, False):
            original(claim)

    return check


def always_the_same_object(original: Any) -> Any:
    known: dict[str, Any] = {}

    def claimed(message: Any, offset: int) -> Any:
        told = original(message, offset)
        object.__setattr__(told, "value", known.setdefault(told.id, told.value))
        return told

    return claimed


def outside_of_the_step(_: Any) -> Any:
    return lambda *_: False


def without_a_key(original: Any) -> Any:
    async def put(queue: Any, key: Any, value: Any, if_in_flight: Any, timeout_s: Any) -> None:
        if if_in_flight != "buffer":
            await original(queue, key, value, if_in_flight, timeout_s)
            return
        # A second message of the same key: here that takes another key.
        await queue._store.execute(Put(queue.name, [Item(new_id(), queue._form.value_in(value), queue._form.key_in((key, 2)))]))

    return put


def remembering(original: Any) -> Any:
    async def ack(queue: Any, lease: Any) -> None:
        await original(queue, lease)
        vars(queue._store).setdefault("acknowledged", []).append(lease.token)

    return ack


class Anything:
    def __contains__(self, _: object) -> bool:
        return True


def acknowledged_by_anybody(original: Any) -> Any:
    async def settle(channel: Any, reader: str, ids: Any, what: str, **how: Any) -> Any:
        if what != "acknowledge":
            return await original(channel, reader, ids, what, **how)
        for one in ids:
            (found,) = (await channel.client.async_store.execute(Browse(channel.id, ids=[one]))).messages
            await channel.client.async_store.execute(Settle([found.receipt]))
        return Settled(len(list(ids)))

    return settle


def never_freed(original: Any) -> Any:
    async def settle(channel: Any, *args: Any, **how: Any) -> Any:
        held = dict(channel._held)
        settled = await original(channel, *args, **how)
        channel._held.update(held)
        return settled

    return settle


def failing_like_a_nack(_: Any) -> Any:
    return lambda channel, reader, ids, **_options: channel.nack(reader, ids)


def committing_all(original: Any) -> Any:
    def acquire(conn: Any, *args: Any, **options: Any) -> Any:
        answer = original(conn, *args, **options)
        conn.commit()
        return answer

    return acquire


def of_one_token(original: Any) -> Any:
    return lambda conn, *args, **options: structs.replace(original(conn, *args, **options), fencing_token=1)


def instead(value: Any) -> Any:
    return lambda _: value


def waking_all(original: Any) -> Any:
    return lambda waiters, topic, _: original(waiters, topic, 1_000_000)


def each_before_the_last(original: Any) -> Any:
    def position(endings: Any, tx: Any, message: Any, return_to: str, *rest: Any) -> int:
        place: int = original(endings, tx, message, return_to, *rest)
        if return_to == "front":
            endings.heads[message.priority] = place
        return place

    return position


def beginning_anew(_: Any) -> Any:
    async def claim(store: Any, command: Any, timeout_s: float) -> Any:
        while True:
            with store.mark(queue_topic(command.queue)) as mark:
                if found := (await store.execute(command)).messages:
                    mark.used()
                    return found
                began = vars(claiming)["time"].monotonic()
                await store.wait(mark, timeout_s)
                if vars(claiming)["time"].monotonic() - began >= timeout_s:
                    return []

    return claim


def deaf_to_others(original: Any) -> Any:
    """Waits for room that is made through the same object."""

    def put_together(store: Any, commands: Any, *_: Any) -> Any:
        try:
            return original(store, commands, None, 0.0)
        except QueueFull:
            Event().wait(5.0)
            raise

    return put_together


LOCALQUEUE = [
    Fault(
        "a stale worker settles what another holds",
        queues.PersistentQueue,
        "_settle",
        instead(settled_by_id),
        test_faults.test_a_stale_worker_changes_nothing_of_what_another_holds,
    ),
    Fault(
        "priority is taken and forgotten",
        placing.Placing,
        "item",
        lambda original: lambda place, value, key: original(structs.replace(place, priority=0), value, key),
        test_faults.test_priority_wins,
    ),
    Fault(
        "a put is not woken by others who make room",
        queues,
        "put_together",
        deaf_to_others,
        test_faults.test_a_bounded_put_is_woken_when_another_object_makes_room,
    ),
    Fault("fan-out is one put after the other", queues, "put_together", one_after_the_other, test_faults.test_a_fan_out_is_all_or_nothing),
    Fault(
        "a dead letter's key swallows new work",
        queues.PersistentQueue,
        "put",
        swallowed,
        test_faults.test_a_dead_letters_key_does_not_swallow_new_work,
    ),
    Fault("the ledger knows no queues", committing.Committing, "__init__", unscoped, test_faults.test_the_ledger_tells_queues_apart),
    Fault(
        "a result that is not JSON fails the job",
        committing.Committing,
        "_keep_result",
        strict_about_results,
        test_faults.test_a_result_that_cannot_be_kept_does_not_repeat_the_effect,
    ),
    Fault(
        "task_done takes the oldest of all threads",
        Unfinished,
        "pop",
        oldest_of_all,
        test_faults.test_task_done_acknowledges_the_message_of_its_own_thread,
    ),
    Fault("qsize counts rows", queues.PersistentQueue, "qsize", blind_to_time, test_faults.test_sizes_see_that_leases_have_ended),
    Fault(
        "Ctrl-C leaves a transaction open",
        Writer,
        "_roll_back",
        instead(lambda _: None),
        test_faults.test_an_interrupt_inside_a_transaction_leaves_nothing_behind,
    ),
    Fault(
        "who dies burns nothing",
        working.WorkerCalls,
        "_budget",
        instead(None),
        test_workers.TestTheLease.test_a_message_that_kills_its_workers_is_dead_at_its_budget,
    ),
    Fault(
        "leases are moments of the wall clock",
        FakeClock,
        "now_us",
        instead(FakeClock.wall_us),
        test_faults.test_a_step_of_the_wall_clock_neither_hides_nor_delivers_again,
    ),
    Fault(
        "nobody renews",
        QueueClaimContext,
        "__init__",
        with_option("auto_renew", value=False),
        test_faults.test_a_long_handler_is_not_joined_by_a_second_one,
    ),
    Fault("a history grows for ever", records, "HISTORY", instead(1_000), test_faults.test_a_history_does_not_grow_without_end),
    Fault(
        "attempts outlive a burial",
        working,
        "delete",
        instead(lambda *_: None),
        test_faults.test_a_requeued_dead_letter_is_handled,
    ),
    Fault(
        "retries go on in a lease that has ended",
        QueueClaim,
        "check",
        sometimes_checked,
        test_faults.test_a_worker_does_not_retry_in_a_lease_that_has_ended,
    ),
    Fault(
        "a cancelled worker keeps its lease",
        AsyncQueueClaimContext,
        "__init__",
        with_option("release_on_error", value=False),
        test_workers.TestFailures.test_a_cancelled_worker_gives_its_message_back,
    ),
    Fault(
        "the limit is nobody's",
        queues.PersistentQueue,
        "_bound",
        instead(lambda *_: None),
        test_faults.test_many_producers_never_exceed_the_limit,
    ),
    Fault(
        "memory hands out one object to all", queues, "claimed", always_the_same_object, test_faults.test_a_stored_value_is_nobodys_alias
    ),
    Fault(
        "values are changed in silence",
        placing,
        "make_item",
        lambda original: lambda value, codec, **options: original(repr(value), codec, **options),
        test_queue.TestPuttingAndGetting.test_a_value_that_would_not_is_refused,
    ),
    Fault(
        "ledger and result are saved before the acknowledgement",
        committing,
        "is_same_store",
        outside_of_the_step,
        test_deaths.test_a_worker_that_dies_at_any_step_has_committed_all_or_nothing_and_is_followed,
    ),
    Fault(
        "ledger and result survive what was not acknowledged",
        committing,
        "is_same_store",
        outside_of_the_step,
        test_commits.TestAtomicity.test_what_cannot_be_committed_leaves_nothing_behind,
    ),
]

LEASEDKEYQ = [
    Fault(
        "a buffered item is another item",
        leasedkeyq.LeasedKeyQueue,
        "_put",
        without_a_key,
        test_leasedkeyq.test_a_key_never_has_two_leases_and_settling_loses_nothing,
    ),
    Fault(
        "acknowledged tokens are kept",
        leasedkeyq.LeasedKeyQueue,
        "ack",
        remembering,
        test_leasedkeyq.test_nothing_is_kept_of_what_is_done,
    ),
    Fault(
        "a wake-up begins the time-out anew",
        leasedkeyq,
        "claim",
        beginning_anew,
        test_leasedkeyq.test_a_time_out_counts_from_the_call_and_not_from_the_last_wake_up,
    ),
    Fault(
        "leases that end together come back reversed",
        Endings,
        "position",
        each_before_the_last,
        test_leasedkeyq.test_leases_that_end_together_come_back_in_order,
    ),
    Fault("a put wakes all who wait", Waiters, "_wake", waking_all, test_leasedkeyq.test_a_put_wakes_one_of_many_who_wait),
    Fault("any policy will do", leasedkeyq, "POLICIES", instead(Anything()), test_leasedkeyq.test_a_misspelt_policy_is_refused),
    Fault(
        "closing leaves those who wait",
        AsyncClosable,
        "end",
        instead(lambda *_: None),
        test_leasedkeyq.test_a_get_that_waits_at_close_is_handed_nothing,
    ),
]

SSSN = [
    Fault(
        "anybody acknowledges",
        WorkQueueChannel,
        "_settle",
        acknowledged_by_anybody,
        test_sssn.test_an_acknowledge_by_someone_who_no_longer_holds_changes_nothing,
    ),
    Fault("what is done is remembered", WorkQueueChannel, "_settle", never_freed, test_sssn.test_nothing_is_kept_of_what_is_acknowledged),
    Fault(
        "a failure is given back like new",
        WorkQueueChannel,
        "fail",
        failing_like_a_nack,
        test_sssn.test_failing_burns_the_budget_and_giving_back_does_not,
    ),
]

SENTINEL = [
    Fault(
        "the caller's transaction is committed",
        sentinel,
        "acquire",
        committing_all,
        test_surface.test_an_open_transaction_is_never_committed,
    ),
    Fault("tokens do not grow", sentinel, "acquire", of_one_token, test_surface.test_tokens_grow_and_owners_differ_from_grant_to_grant),
    Fault(
        "a lease is valid until somebody says otherwise",
        Hold,
        "lost",
        instead(property(lambda _: False)),
        test_surface.test_without_a_heartbeat_it_turns_invalid_in_time,
    ),
]

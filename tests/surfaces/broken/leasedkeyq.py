"""What leasedkeyq does wrong, or a careless surface for it would."""

from typing import Any

from holdfast._async.flows import claiming
from holdfast._async.flows.closing import AsyncClosable
from holdfast.commands import Item, Put
from holdfast.commands.endings import Endings
from holdfast.commands.topics import queue_topic
from holdfast.ids import new_id
from holdfast.stores.waiting.waiters import Waiters
from holdfast.surfaces.leasedkeyq import queue as leasedkeyq
from tests.surfaces import test_leasedkeyq
from tests.surfaces.broken.fault import Fault, instead


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


def waking_all(original: Any) -> Any:
    return lambda waiters, topic, _: original(waiters, topic, 1_000_000)


def each_before_the_last(original: Any) -> Any:
    def position(endings: Any, tx: Any, message: Any, return_to: str, *rest: Any) -> int:
        place: int = original(endings, tx, message, return_to, *rest)
        if return_to == "front":
            # Further than the places that those that end later leave free.
            endings.heads[message.priority] = place - 1_000
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


FAULTS = [
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

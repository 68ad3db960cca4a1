"""The relay: delivers outbox envelopes, commits what was left prepared, and has failed sagas compensated."""

from collections.abc import Awaitable, Callable
from typing import Any

from holdfast._async.flows.relaying import Relayed, relay
from holdfast.surfaces.localqueue._async.committing import relay_queue
from holdfast.surfaces.localqueue.queues import PersistentQueue
from holdfast.surfaces.localqueue.results import ResultStore, URLResultStore

Hand = Callable[[dict[str, Any]], Awaitable[None]]

STORES = {"deliver": "outbox_store", "commit": "commit_store", "compensate": "saga_store"}
"""Where the envelopes of each kind are."""


async def relay_commits(queue: PersistentQueue[Any], *, deliver: Hand | None = None, compensate: Hand | None = None) -> Relayed:
    """Do what commits of this queue left to do and is due, and answer how much that was; call it again, from time to time.

    `deliver` gets the envelope of an outbox, `compensate` that of a failed saga, each at least once. What raises is tried again later,
    after a second at first and after five minutes at most. Several relays share the work.
    """
    policy = getattr(queue.delivery_policy, "commit_policy", None)

    async def hand_on(work: dict[str, Any]) -> None:
        store: ResultStore | None = getattr(policy, STORES[work["do"]], None)
        match work["do"]:
            case "commit":
                await _save(store, work["key"], work["envelope"])
            case "deliver":
                await _given(deliver, "deliver")(work["envelope"])
                await _forget(store, work["key"])
            case _:
                await _given(compensate, "compensate")(work["envelope"])

    return await relay(queue.client, relay_queue(queue), hand_on, lease_s=queue.lease_timeout)


def _given(hand: Hand | None, name: str) -> Hand:
    if hand is None:
        raise ValueError(f"there are envelopes to {name}: give relay_commits {name}=")
    return hand


async def _save(store: ResultStore | None, key: str, envelope: dict[str, Any]) -> None:
    if isinstance(store, URLResultStore):
        await store.async_records.save(key, envelope)
    elif store is not None:
        store.save(key, envelope)


async def _forget(store: ResultStore | None, key: str) -> None:
    if isinstance(store, URLResultStore):
        await store.async_records.delete(key)
    elif store is not None:
        store.delete(key)

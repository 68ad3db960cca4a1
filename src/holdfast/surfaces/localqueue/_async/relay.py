"""The relay: delivers outbox envelopes, commits what was left prepared, and has failed sagas compensated."""

from collections.abc import Awaitable, Callable
from typing import Any

from holdfast._async.flows.browsing import pages
from holdfast._async.flows.relaying import Relayed, relay
from holdfast._async.handles.together import AsyncTogether
from holdfast.records import Message
from holdfast.surfaces.localqueue._async.commit import keep, leave_to_relay, relay_queue
from holdfast.surfaces.localqueue._async.records import delete, load, save
from holdfast.surfaces.localqueue.messages import error_of
from holdfast.surfaces.localqueue.persistent_queue import PersistentQueue
from holdfast.surfaces.localqueue.results import ResultStore
from holdfast.views.messages import key_of

Hand = Callable[[dict[str, Any]], Awaitable[None]]

STORES = {"deliver": "outbox_store", "commit": "commit_store", "compensate": "saga_store"}
"""Where the envelopes of each kind are."""


async def relay_commits(queue: PersistentQueue[Any], *, deliver: Hand | None = None, compensate: Hand | None = None) -> Relayed:
    """Do what commits of this queue left to do and is due, and return how much that was; call it again, from time to time.

    `deliver` gets the envelope of an outbox, `compensate` that of a failed saga, each at least once. What raises is tried again later,
    after a second at first and after five minutes at most. Several relays share the work.
    """
    policy = getattr(queue.delivery_policy, "commit_policy", None)
    saga_store: ResultStore | None = getattr(policy, "saga_store", None)
    if saga_store is not None:
        await _note_deaths(queue, saga_store)

    async def hand_on(work: dict[str, Any]) -> None:
        store: ResultStore | None = getattr(policy, STORES[work["do"]], None)
        match work["do"]:
            case "commit":
                if store is not None:
                    await save(store, work["key"], work["envelope"])
            case "deliver":
                await _given(deliver, "deliver")(work["envelope"])
                if store is not None:
                    await delete(store, work["key"])
            case _:
                await _given(compensate, "compensate")(work["envelope"])

    return await relay(queue.client, relay_queue(queue), hand_on, lease_s=queue.lease_timeout)


async def _note_deaths(queue: PersistentQueue[Any], saga_store: ResultStore) -> None:
    """Have those compensated that the store buried: no worker survived to report that they failed."""
    async for page in pages(queue.client.async_store, queue.name, "dead"):
        for message in page.messages:
            if message.key is not None and message.history and message.history[-1].how == "expired":
                await _note_death(queue, saga_store, message)


async def _note_death(queue: PersistentQueue[Any], saga_store: ResultStore, message: Message) -> None:
    key = f"saga:compensate:dedupe:{queue.name}:{key_of(message)}"
    envelope = {
        "queue": queue.name,
        "message_id": message.id,
        "dedupe_key": key_of(message),
        "phase": "compensate",
        "error": error_of(message.last_error or "every worker that had it died"),
        # Tells this death from one before it was requeued.
        "attempts": message.attempts,
    }
    if await load(saga_store, key) != envelope:
        async with AsyncTogether(queue.client) as step:
            await keep(queue, step, saga_store, key, envelope)
            leave_to_relay(queue, step, "compensate", key, envelope)


def _given(hand: Hand | None, name: str) -> Hand:
    if hand is None:
        raise ValueError(f"there are envelopes to {name}: give relay_commits {name}=")
    return hand

"""The messages of a queue in a store of ours: leased under tokens, put together, counted by the store's clock."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from typing import Any, NamedTuple

from holdfast import Dict
from holdfast._sync.flows import browsing
from holdfast._sync.flows.claiming import claim_since
from holdfast._sync.flows.putting import Room, put_together, put_within
from holdfast.client import ControlPlaneClient
from holdfast.codec import encode_key
from holdfast.commands import Browse, Change, Claim, Filter, Move, Put, Puts, Settle, Stats, Together, Write
from holdfast.errors import ClaimLost
from holdfast.records import Receipt
from holdfast.surfaces.localqueue.messages import Error, QueueMessage, claimed, error_text, looked_at, wall_offset_us
from holdfast.surfaces.localqueue.policies.acting import UNBOUNDED, BackpressureStrategy
from holdfast.surfaces.localqueue.put_request import Destination, PutRequest, Stored, placed
from holdfast.surfaces.localqueue.store_location import StoreLocation

POLL_S = 1.0
"""How much a missed wake-up can cost a `get` or a `put`."""

WORKERS = "localqueue-workers"
"""The dict of what workers did and when they were seen, by queue."""

ROOM = "localqueue-room"
"""The dict in which bounded puts note that they happened, by queue."""


class Claimer(NamedTuple):
    """The worker on whose behalf a subclass's `get_message` claims."""

    worker_id: str | None = None
    max_attempts: int | None = None


claimer: ContextVar[Claimer] = ContextVar("claimer", default=Claimer())  # noqa: B039 - frozen


class EngineBackend:
    """The messages of one queue in a store of ours."""

    def __init__(self, location: StoreLocation, queue: str) -> None:
        self._location = location
        self._queue = queue
        self._joined: dict[Receipt, tuple[Any, Any]] = {}
        """Claims that a worker ends in a step of its own, and the step."""

    def put(
        self, value: Any, request: PutRequest, targets: Sequence[Destination], backpressure: BackpressureStrategy, timeout_s: float | None
    ) -> list[Stored]:
        """Add a message to each target, all or none.

        The limit is that of the queue object: no put of those who keep one goes beyond it, in whichever process they are.
        """
        commands = [Put(queue, [request.item(value, key)]) for queue, key in targets]
        store = self._location.client.store
        if backpressure == UNBOUNDED:
            puts = put_together(store, commands, timeout_s, POLL_S)
        else:
            room = Room(lambda stats: backpressure.is_full(qsize=ready(stats)), ROOM)
            puts = put_within(store, commands, room, timeout_s, POLL_S)
        return [self._stored(command, value, answer) for command, answer in zip(commands, puts, strict=True)]

    def claim(self, lease_timeout: float, leased_by: str | None, timeout_s: float | None, *, takes: bool) -> QueueMessage | None:
        """Lease the next message under a token, or with `takes` remove it in the same step."""
        store = self._location.client.store
        command = self.claim_command(lease_timeout, leased_by, takes=takes)
        messages, _ = claim_since(store, command, timeout_s, POLL_S)
        if not messages:
            return None
        if takes and command.holder:
            workers(self._location.client).increment((self._queue, "leases", command.holder))
        return claimed(messages[0], wall_offset_us(self._location.client))

    def claim_command(self, lease_timeout: float, leased_by: str | None, max_attempts: int | None = None, *, takes: bool) -> Claim:
        """What asks for the next message; one whose lease ends goes to the back."""
        by = claimer.get()
        return Claim(
            self._queue,
            leased_by or by.worker_id or "",
            float(lease_timeout),
            take=takes,
            expired_to="back",
            max_attempts=by.max_attempts if max_attempts is None else max_attempts,
        )

    @contextmanager
    def joined(self, message: QueueMessage, step: Any, claim: Any) -> Iterator[None]:
        """While this lasts, ending the message is a part of the step: a worker's commit, and a subclass that adds to it."""
        receipt = _receipt(self._queue, message)
        self._joined[receipt] = (step, claim)
        try:
            yield
        finally:
            del self._joined[receipt]

    def ack(self, message: QueueMessage) -> bool:
        """Remove a message while its claim holds, or without a token while it is not claimed."""
        if message.token is None:
            return self._move(Move(self._queue, "gone", [message.id]))
        return self._end(message, lambda step, claim: step.ack(claim))

    def release(self, message: QueueMessage, delay: float, error: Error) -> bool:
        """Give a message back, as `ack` says."""
        text = error_text(error)
        if message.token is None:
            if text is not None:
                # A redrive keeps no error, a burial does.
                self._move(Move(self._queue, "dead", [message.id], error=text))
            return self._move(Move(self._queue, "ready", [message.id], delay_s=delay))
        return self._end(message, lambda step, claim: step.fail(claim, error=text, delay_s=delay), to="ready", delay_s=delay, error=text)

    def dead_letter(self, message: QueueMessage, error: Error) -> bool:
        """Take a message out of delivery, as `ack` says."""
        text = error_text(error)
        if message.token is None:
            return self._move(Move(self._queue, "dead", [message.id], error=text))
        return self._end(message, lambda step, claim: step.bury(claim, error=text), to="dead", error=text, counts=True)

    def requeue_dead(self, message_id: str, delay: float) -> bool:
        """Give a dead letter another chance, unless newer work of its key waits or is being done."""
        found = look(self._location.client, self._queue, message_id)
        return found is not None and found.state == "dead" and self._move(Move(self._queue, "ready", [message_id], delay_s=delay))

    def prune_dead_letters(self, older_than: float) -> int:
        """Remove dead letters by age."""
        return len(browsing.move_all(self._location.client.store, Move(self._queue, "gone", None, "dead", _older(older_than))).ids)

    def count_dead_letters_older_than(self, older_than: float) -> int:
        """How many a prune would remove."""
        pages = browsing.pages(self._location.client.store, self._queue, "dead", _older(older_than))
        return sum(len(page.messages) for page in pages)

    def _stored(self, command: Put, value: Any, answer: Puts) -> Stored:
        """The message as `inspect` shows it; one that was taken at once is shown as it was put."""
        found, is_new = look(self._location.client, command.queue, answer.ids[0]), answer.created[0]
        if found is None:
            return Stored(placed(command, value), is_new)
        if is_new and found.attempts:
            found = replace(placed(command, value), created_at=found.created_at, available_at=found.created_at + command.items[0].delay_s)
        return Stored(found, is_new)

    def _move(self, command: Move) -> bool:
        return bool(self._location.client.store.execute(command).ids)

    def _end(self, message: QueueMessage, join: Callable[[Any, Any], object], **how: Any) -> bool:
        """End a lease, as a part of the worker's step if it has one; else that of a named worker is counted in the same step."""
        step, claim = self._joined.get(_receipt(self._queue, message), (None, None))
        if step is not None:
            join(step, claim)
            return True
        command = Settle([_receipt(self._queue, message)], **how)
        if not message.leased_by:
            return self._location.client.store.execute(command).held[0]
        lease_count = Change(encode_key((self._queue, "leases", message.leased_by)), do="increment", by=1)
        try:
            self._location.client.store.execute(Together([command, Write(WORKERS, [lease_count])]))
        except ClaimLost:
            return False
        return True


def look(client: ControlPlaneClient, queue: str, message_id: str) -> QueueMessage | None:
    """A message as it is now, None where there is none."""
    page = client.store.execute(Browse(queue, ids=[message_id]))
    return looked_at(page.messages[0], page.now, wall_offset_us(client)) if page.messages else None


def workers(client: ControlPlaneClient) -> Dict[Any]:
    """What workers did and when they were seen, by queue."""
    return Dict.from_name(WORKERS, client=client)


def _older(seconds: float) -> Filter:
    """Dead for so long or longer; 0 is every dead letter."""
    return Filter(seconds) if seconds > 0 else Filter()


def ready(stats: Stats) -> int:
    """How many messages `qsize` and a limit count."""
    return stats.ready + stats.buffered


def _receipt(queue: str, message: QueueMessage) -> Receipt:
    return Receipt(queue, message.id, message.token or 0)

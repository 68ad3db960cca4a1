# Generated from src/holdfast/_async/handles/work.py by tools/unasync.py; do not edit.
"""A work item: a claimed message with its retry budget."""

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, TypeVar

from holdfast._sync.flows.settling import settle
from holdfast._sync.handles.claims import HeldMessage, QueueClaim
from holdfast._sync.handles.together import Together
from holdfast.aio_attribute import Twin
from holdfast.arguments.claim_options import given_delay
from holdfast.results import MISSING, Missing, QueueResponse
from holdfast.stores.caller_transaction import Connection

T = TypeVar("T")

KEEP_RESULT_S = 86_400.0


class QueueWorkItem(HeldMessage[T]):
    """A claimed message with its retry budget: acknowledge it, fail it, or complete it together with what follows from it."""

    aio: ClassVar[Twin] = Twin()

    def __init__(self, claim: QueueClaim[T], max_attempts: int | None, dead_letter_queue: str | None) -> None:
        super().__init__(claim.record, claim._codec, claim._client, claim.hold)  # noqa: SLF001 - a work item is its claim with a budget
        self.claim = claim
        self._fallback = max_attempts
        self._dead_letter_queue = dead_letter_queue

    @property
    def payload(self) -> T:
        """What was put; ValueError if it does not fit the type of the queue."""
        return self.value

    @property
    def max_attempts(self) -> int | None:
        """How many failures it may have: its own budget, else the claimer's; None is no limit."""
        return self._fallback if self.claim.max_attempts is None else self.claim.max_attempts

    def fail(self, error: str | None = None, *, delay_s: float | None = None, connection: Connection | None = None) -> QueueResponse:
        """Give it back as failed: to the back of the line, or, with the budget spent, to the dead letters. A lost one is in `lost`.

        Without `delay_s` the queue's back-off, if it has one, says when it is tried again.
        """
        return settle(
            self._client,
            self,
            None,
            connection,
            to="ready",
            counts=True,
            error=error,
            delay_s=given_delay(delay_s),
            max_attempts=self._fallback,
            dead_letter=self._dead_letter_queue,
        )

    def complete(
        self,
        result: Any = MISSING,
        *,
        puts: Mapping[Any, Iterable[Any]] | None = None,
        writes: Mapping[Any, Mapping[Any, Any]] | None = None,
        results: str | None = None,
        keep_result_s: float | None = KEEP_RESULT_S,
        connection: Connection | None = None,
    ) -> None:
        """Acknowledge, and in the same atomic step store the result, put what comes next and write what changed.

        The result is stored under the message's id in the dict `results`, by default named after the queue with `-results` behind it, for
        `keep_result_s` (None: for ever). `puts` maps queues, handles or names, to values; `writes` maps dicts to their new entries. Raises
        `ClaimLost`, with nothing done, if the message is no longer held. With a connection of yours it is all part of its transaction.
        """
        with Together(self._client, connection) as step:
            step.ack(self)
            if not isinstance(result, Missing):
                step.write(results or f"{self.queue}-results", self.id, result, ttl_s=keep_result_s)
            for queue, values in (puts or {}).items():
                for value in values:
                    step.put(queue, value)
            for name, entries in (writes or {}).items():
                for key, value in entries.items():
                    step.write(name, key, value)

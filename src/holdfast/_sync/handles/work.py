# Generated from src/holdfast/_async/handles/work.py by tools/unasync.py; do not edit.
"""A work item: a claimed message with its retry budget."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, ClassVar, Generic, TypeVar

from holdfast._sync.flows.settling import renew, settle
from holdfast._sync.handles.claims import QueueClaim
from holdfast._sync.handles.together import Together
from holdfast.aio_attribute import WorkTwin
from holdfast.arguments.named_claims import raise_lost
from holdfast.holding.hold import Hold
from holdfast.holding.keepalive import Keepalive
from holdfast.records import ReturnTo
from holdfast.results import MISSING, Missing, QueueResponse
from holdfast.stores.caller_transaction import Connection

T = TypeVar("T")

KEEP_RESULT_S = 86_400.0


class QueueWorkItem(Generic[T]):
    """A claimed message with its retry budget: acknowledge it, fail it, or complete it together with what follows from it."""

    aio: ClassVar[WorkTwin] = WorkTwin()

    def __init__(self, claim: QueueClaim[T], max_attempts: int | None, dead_letter_queue: str | None) -> None:
        self.claim = claim
        self._client = claim._client  # noqa: SLF001 - a work item is its claim with a budget
        self._fallback = max_attempts
        self._dead_letter_queue = dead_letter_queue

    @property
    def payload(self) -> T:
        """What was put; ValueError if it does not fit the type of the queue."""
        return self.claim.value

    @property
    def id(self) -> str:
        """The id of the message."""
        return self.claim.id

    @property
    def claim_id(self) -> str:
        """The text that names the claim."""
        return self.claim.claim_id

    @property
    def token(self) -> int:
        """The fencing token."""
        return self.claim.token

    @property
    def attempts(self) -> int:
        """How often the message was handed out, this time included."""
        return self.claim.attempts

    @property
    def max_attempts(self) -> int | None:
        """How many failures it may have: its own budget, else the claimer's; None is no limit."""
        return self._fallback if self.claim.max_attempts is None else self.claim.max_attempts

    @property
    def metadata(self) -> dict[str, Any] | None:
        """What was put beside the payload."""
        return self.claim.metadata

    @property
    def key(self) -> Any:
        """The key it was put under, None without."""
        return self.claim.key

    @property
    def claimer(self) -> str:
        """Who claimed it."""
        return self.claim.claimer

    @property
    def expires_at(self) -> datetime | None:
        """When the lease ends, with time zone."""
        return self.claim.expires_at

    @property
    def hold(self) -> Hold:
        """What the holder knows of the claim without asking."""
        return self.claim.hold

    @property
    def keepalive(self) -> Keepalive | None:
        """What renews the claim, if anything does."""
        return self.claim.keepalive

    @property
    def lost(self) -> bool:
        """Whether the message may be somebody else's by now."""
        return self.claim.lost

    def check(self) -> None:
        """Raise `ClaimLost` if it is lost."""
        self.claim.check()

    def ack(self, *, connection: Connection | None = None) -> QueueResponse:
        """Remove the message: it is done. Raises `ClaimLost`."""
        return raise_lost(settle(self._client, self, None, connection))

    def release(self, *, return_to: ReturnTo = "back", delay_s: float = 0.0, connection: Connection | None = None) -> QueueResponse:
        """Give it back; burns no attempt. A lost one is counted in `lost`."""
        return settle(self._client, self, None, connection, to="ready", return_to=return_to, delay_s=delay_s)

    def renew(self, *, lease_s: float) -> QueueResponse:
        """Keep it from now on for `lease_s`. Raises `ClaimLost`."""
        return raise_lost(renew(self._client, self, None, lease_s))

    def fail(self, error: str | None = None, *, delay_s: float = 0.0, connection: Connection | None = None) -> QueueResponse:
        """Give it back as failed: to the back of the line, or, with the budget spent, to the dead letters. A lost one is in `lost`."""
        return settle(
            self._client,
            self,
            None,
            connection,
            to="ready",
            counts=True,
            error=error,
            delay_s=delay_s,
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
                step.write(results or f"{self.claim.queue}-results", self.id, result, ttl_s=keep_result_s)
            for queue, values in (puts or {}).items():
                for value in values:
                    step.put(queue, value)
            for name, entries in (writes or {}).items():
                for key, value in entries.items():
                    step.write(name, key, value)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.claim_id}{', lost' if self.lost else ''}>"

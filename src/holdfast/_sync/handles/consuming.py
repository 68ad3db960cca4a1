# Generated from src/holdfast/_async/handles/consuming.py by tools/unasync.py; do not edit.
"""Queue methods for workers: get, claim, settle."""

from collections.abc import Hashable
from typing import Any, Generic, TypeVar, Unpack

from holdfast._sync.flows.claiming import claim_since, give_back
from holdfast._sync.flows.settling import renew, settle
from holdfast._sync.handles.claimed import QueueClaimContext
from holdfast._sync.handles.claims import QueueClaim
from holdfast._sync.handles.naming import NamedQueue
from holdfast._sync.handles.work import QueueWorkItem
from holdfast.arguments.claim_options import LEASE_S, given_delay, held_s, make_claim
from holdfast.arguments.named_claims import Claims, raise_lost
from holdfast.arguments.options import show_options
from holdfast.arguments.where import Where
from holdfast.client import ControlPlaneClient
from holdfast.codec import encode_key
from holdfast.codec.call_fields import STRICT
from holdfast.commands import Claim
from holdfast.holding.hold import Hold
from holdfast.records import ReturnTo
from holdfast.results import QueueResponse
from holdfast.stores import Store
from holdfast.stores.caller_transaction import Connection

T = TypeVar("T")


@show_options
class QueueConsumer(NamedQueue, Generic[T]):
    """Takes messages out of a queue."""

    def get(self, *, default: Any = None, timeout_s: float | None = None, poll_interval_s: float = 1.0, **where: Unpack[Where]) -> T | Any:
        """Remove the first message and return its value, `default` when nothing came. At most once: a caller who dies with it loses it."""
        values = self._take(self._store(**where), 1, timeout_s, poll_interval_s)
        return values[0] if values else default

    def get_many(self, limit: int, *, timeout_s: float | None = None, poll_interval_s: float = 0.5, **where: Unpack[Where]) -> list[T]:
        """Remove up to `limit` messages and return their values, as soon as there is one; [] when nothing came."""
        return self._take(self._store(**where), limit, timeout_s, poll_interval_s)

    def claim(
        self,
        *,
        claimer: str | None = None,
        lease_s: float = LEASE_S,
        timeout_s: float | None = None,
        poll_interval_s: float = 0.5,
        expired_to: ReturnTo = "place",
        **where: Unpack[Where],
    ) -> QueueClaim[T] | None:
        """Claim the first message for `lease_s`, None when nothing came. Until then no one else gets it; settle it, or renew it in time.

        Without `lease_s` it is as long as the queue's settings say, else 60 seconds.

        If the lease ends first, the message goes back to its place, or where `expired_to` says.
        """
        command = make_claim(self.name, claimer, lease_s, expired_to=expired_to)
        claims = self._claim(self._reach(**where), command, timeout_s, poll_interval_s)
        return claims[0] if claims else None

    def claim_many(
        self,
        limit: int,
        *,
        claimer: str | None = None,
        lease_s: float = LEASE_S,
        timeout_s: float | None = None,
        poll_interval_s: float = 0.5,
        expired_to: ReturnTo = "place",
        **where: Unpack[Where],
    ) -> list[QueueClaim[T]]:
        """Claim up to `limit` messages in one step, as soon as there is one; [] when nothing came."""
        command = make_claim(self.name, claimer, lease_s, limit, expired_to=expired_to)
        return self._claim(self._reach(**where), command, timeout_s, poll_interval_s)

    def take(
        self,
        key: Hashable,
        *,
        claimer: str | None = None,
        lease_s: float = LEASE_S,
        timeout_s: float | None = None,
        poll_interval_s: float = 0.5,
        expired_to: ReturnTo = "place",
        **where: Unpack[Where],
    ) -> QueueClaim[T] | None:
        """Claim the message under this key, wherever it stands in the line; None when there is none to be had."""
        command = make_claim(self.name, claimer, lease_s, key=encode_key(key), expired_to=expired_to)
        claims = self._claim(self._reach(**where), command, timeout_s, poll_interval_s)
        return claims[0] if claims else None

    def claimed(
        self,
        *,
        claimer: str | None = None,
        lease_s: float = LEASE_S,
        timeout_s: float | None = None,
        poll_interval_s: float = 0.5,
        auto_renew: bool = True,
        renew_interval_s: float | None = None,
        ack_on_success: bool = True,
        release_on_error: bool = True,
        max_hold_s: float | None = None,
        expired_to: ReturnTo = "place",
        **where: Unpack[Where],
    ) -> QueueClaimContext[T]:
        """Claim a message for the body of a `with`, which gets its value, or None when nothing came.

        While the body runs the claim is renewed, by a thread of its own and for at most `max_hold_s`. A body that ends acknowledges the
        message; one that raises gives it back and counts as a failure of it; a cancelled or interrupted one gives it back and burns
        nothing. If the claim is lost meanwhile, an async body is cancelled, a sync one can look at `context.claim.lost`, and leaving raises
        `ClaimLost`.
        """
        return QueueClaimContext(
            self._reach(**where),
            make_claim(self.name, claimer, lease_s, expired_to=expired_to),
            self._codec,
            timeout_s=timeout_s,
            poll_s=poll_interval_s,
            auto_renew=auto_renew,
            renew_interval_s=renew_interval_s,
            max_hold_s=max_hold_s,
            ack_on_success=ack_on_success,
            release_on_error=release_on_error,
        )

    def claim_work(
        self,
        *,
        claimer: str | None = None,
        lease_s: float = LEASE_S,
        timeout_s: float | None = None,
        poll_interval_s: float = 0.5,
        dead_letter_queue: str | None = None,
        max_attempts: int | None = None,
        **where: Unpack[Where],
    ) -> QueueWorkItem[T] | None:
        """Claim a message as a work item, None when nothing came; `max_attempts` and `dead_letter_queue` are for messages without."""
        command = make_claim(self.name, claimer, lease_s, max_attempts=max_attempts, dead_letter=self._other(dead_letter_queue))
        claims = self._claim(self._reach(**where), command, timeout_s, poll_interval_s)
        return QueueWorkItem(claims[0], max_attempts, dead_letter_queue) if claims else None

    def ack(self, claims: Claims, *, strict: bool = True, connection: Connection | None = None, **where: Unpack[Where]) -> QueueResponse:
        """Remove claimed messages: they are done.

        Raises `ClaimLost` if any claim is no longer held, after settling the others; with `strict=False` the answer counts them instead.
        """
        STRICT.check(strict)
        response = settle(self._reach(**where), claims, self.name, connection)
        return raise_lost(response) if strict else response

    def release(
        self,
        claims: Claims,
        *,
        return_to: ReturnTo = "back",
        delay_s: float = 0.0,
        connection: Connection | None = None,
        **where: Unpack[Where],
    ) -> QueueResponse:
        """Give claimed messages back, to the back of the line or where `return_to` says, not before `delay_s`; burns no attempt.

        A claim that is no longer held raises nothing: it is in the answer's `lost`.
        """
        reached = self._reach(**where)
        return settle(reached, claims, self.name, connection, to="ready", return_to=return_to, delay_s=delay_s)

    def renew(self, claims: Claims, *, lease_s: float, strict: bool = True, **where: Unpack[Where]) -> QueueResponse:
        """Keep claims from now on for `lease_s`.

        Raises `ClaimLost` if any is no longer held, after renewing the others; with `strict=False` the answer counts them instead.
        """
        STRICT.check(strict)
        response = renew(self._reach(**where), claims, self.name, lease_s)
        return raise_lost(response) if strict else response

    def fail(
        self,
        claims: Claims,
        *,
        error: str | None = None,
        delay_s: float | None = None,
        max_attempts: int | None = None,
        dead_letter_queue: str | None = None,
        connection: Connection | None = None,
        **where: Unpack[Where],
    ) -> QueueResponse:
        """Give claimed messages back as failed: to the back of the line, or, where a budget is spent, to the dead letters.

        `max_attempts` and `dead_letter_queue` are for messages without. Without `delay_s` the queue's back-off, if it has one, says when
        they are tried again. A claim that is no longer held raises nothing: it is in the answer's `lost`.
        """
        return settle(
            self._reach(**where),
            claims,
            self.name,
            connection,
            to="ready",
            counts=True,
            error=error,
            delay_s=given_delay(delay_s),
            max_attempts=max_attempts,
            dead_letter=self._other(dead_letter_queue),
        )

    def bury(
        self, claims: Claims, *, error: str | None = None, connection: Connection | None = None, **where: Unpack[Where]
    ) -> QueueResponse:
        """Make claimed messages dead letters at once, whatever their budget. One no longer held is in the answer's `lost`."""
        reached = self._reach(**where)
        return settle(reached, claims, self.name, connection, to="dead", counts=True, error=error)

    def _take(self, store: Store, limit: int, timeout_s: float | None, poll_s: float) -> list[T]:
        command = Claim(self.name, limit=limit, take=True)
        messages, _ = claim_since(store, command, timeout_s, poll_s)
        try:
            return [self._codec.decode(message.value) for message in messages]
        except BaseException as error:
            # What does not fit the type must not be gone: it goes back, for whoever can read it.
            give_back(store, command, messages, error)
            raise

    def _claim(self, reached: ControlPlaneClient, command: Claim, timeout_s: float | None, poll_s: float) -> list[QueueClaim[T]]:
        now = reached.keepalive.now
        messages, started = claim_since(reached.store, command, timeout_s, poll_s, now)
        try:
            lease_s = held_s(command, messages[0]) if messages else None  # Of one claim all have the same.
            return [
                QueueClaim(message, self._codec, reached, Hold(message.receipt, lease_s, started, now, auto_renew=False))
                for message in messages
            ]
        except BaseException as error:
            give_back(reached.store, command, messages, error)
            raise

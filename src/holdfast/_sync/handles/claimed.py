# Generated from src/holdfast/_async/handles/claimed.py by tools/unasync.py; do not edit.
"""The context manager of `claimed()`: claims a message for the body, and settles it at the end."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Generic, TypeVar

from holdfast._sync.flows.claiming import claim_since, give_back
from holdfast._sync.flows.holding import Holding
from holdfast._sync.flows.settling import settle
from holdfast._sync.handles.claims import QueueClaim
from holdfast.arguments.claim_options import held_s
from holdfast.client import ControlPlaneClient
from holdfast.codec import Codec
from holdfast.codec.call_fields import ACK_ON_SUCCESS, AUTO_RENEW, MAX_HOLD_S, POLL_INTERVAL_S, RELEASE_ON_ERROR, TIMEOUT_S
from holdfast.commands import Claim
from holdfast.holding.hold import Hold, interval_of
from holdfast.records import Message
from holdfast.telemetry.tracing import is_traced, working_on
from holdfast.workers.handlers.outcomes import shown

T = TypeVar("T")


class QueueClaimContext(Generic[T]):
    """Claims a message on entering, renews it while the body runs, and settles it on leaving.

    Entering gives the value, None when nothing came; `claim` tells an empty queue from a stored None.
    """

    def __init__(
        self,
        client: ControlPlaneClient,
        command: Claim,
        codec: Codec,
        *,
        timeout_s: float | None,
        poll_s: float,
        auto_renew: bool,
        renew_interval_s: float | None,
        max_hold_s: float | None,
        ack_on_success: bool,
        release_on_error: bool,
    ) -> None:
        # Now: once a message is claimed it is too late to refuse.
        interval_of(command.lease_s, renew_interval_s)
        max_hold_s = MAX_HOLD_S.check(max_hold_s)
        timeout_s, poll_s = TIMEOUT_S.check(timeout_s), POLL_INTERVAL_S.check(poll_s)
        for flag, given in ((AUTO_RENEW, auto_renew), (ACK_ON_SUCCESS, ack_on_success), (RELEASE_ON_ERROR, release_on_error)):
            flag.check(given)
        self.claim: QueueClaim[T] | None = None
        self._client = client
        self._command = command
        self._codec = codec
        self._timeout_s = timeout_s
        self._poll_s = poll_s
        self._auto_renew = auto_renew
        self._renew_interval_s = renew_interval_s
        self._max_hold_s = max_hold_s
        self._ack_on_success = ack_on_success
        self._release_on_error = release_on_error
        self._holding: Holding | None = None
        self._traced: AbstractContextManager[Callable[[], None]] | None = None

    def __enter__(self) -> T | None:
        if self._holding is not None:
            raise RuntimeError("this context is already entered: make another for another message")
        if self._auto_renew:
            self._client.check_renewal()
        self.claim = None
        keepalive = self._client.keepalive
        messages, started = claim_since(self._client.store, self._command, self._timeout_s, self._poll_s, keepalive.now)
        if not messages:
            return None
        try:
            return self._begin(messages[0], started)
        except BaseException as error:
            self._end_unbegun(messages[0], error)
            raise

    def _begin(self, message: Message, started: float) -> T:
        hold = self._hold(message, started)
        self.claim = QueueClaim(message, self._codec, self._client, hold)
        value = self.claim.value
        self._holding = Holding(self._client.keepalive, hold)
        self.claim.keepalive = self._client.keepalive
        if is_traced():
            traced = working_on(message.queue, message.id, message.metadata)
            # Kept once it is entered: an interrupted one ends by itself.
            self._failed, self._traced = traced.__enter__(), traced
        return value

    def _end_unbegun(self, message: Message, error: BaseException) -> None:
        """Give back what never reaches the body: one that cannot be read must not come back for ever."""
        if self.claim is not None:
            self._client.keepalive.drop(self.claim.hold)
        self._holding = None
        self._end_trace(error)
        if self.claim is not None and isinstance(error, Exception):
            self._give_back(self.claim, error)
        else:
            give_back(self._client.store, self._command, [message], error)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        holding, self._holding = self._holding, None
        if holding is None:
            return

        def settle_claim() -> bool:
            return self._settle(error)

        try:
            self._end_trace(error)
            holding.leave(error, settle_claim)
        except (Exception, GeneratorExit):
            raise
        except BaseException:
            holding.abandon(settle_claim)
            raise

    def _end_trace(self, error: BaseException | None) -> None:
        if self._traced is not None:
            if isinstance(error, Exception):
                self._failed()
            self._traced.__exit__(None, None, None)
            self._traced = None

    def _hold(self, message: Message, started: float) -> Hold:
        return Hold(
            message.receipt,
            held_s(self._command, message),
            started,
            self._client.keepalive.now,
            auto_renew=self._auto_renew,
            renew_interval_s=self._renew_interval_s,
            max_hold_s=self._max_hold_s,
        )

    def _settle(self, error: BaseException | None) -> bool:
        """Settle what may still be held, and return whether it was."""
        claim = self.claim
        if claim is None:
            return True
        claim.keepalive = None
        if error is None:
            return not self._ack_on_success or (settle(self._client, claim, None)).count == 1
        return not self._release_on_error or self._give_back(claim, error)

    def _give_back(self, claim: QueueClaim[T], error: BaseException) -> bool:
        if isinstance(error, Exception):
            return (claim.fail(error=shown(error))).count == 1
        # Cancelled or interrupted, which says nothing about the message: nothing is burnt.
        return (claim.release()).count == 1

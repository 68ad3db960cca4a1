"""What a claim on a message is to its holder: a claim, a work item, or the body of a `with`."""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from types import TracebackType
from typing import Any, ClassVar, Generic, TypeVar

from holdfast._async.flows.claiming import claim_since
from holdfast._async.flows.holding import AsyncHolding
from holdfast._async.flows.settling import renew, settle
from holdfast._async.handles.together import AsyncTogether
from holdfast.client import ControlPlaneClient
from holdfast.codec import Codec, check_duration
from holdfast.commands import Claim
from holdfast.holding import Hold, interval_of
from holdfast.keepalive import Keepalive
from holdfast.receipts import raise_lost
from holdfast.records import Message, ReturnTo
from holdfast.results import MISSING, Missing, QueueResponse, wall_time
from holdfast.twins import ClaimTwin, WorkTwin
from holdfast.views import key_of, metadata_of

T = TypeVar("T")

KEEP_RESULT_S = 86_400.0


class AsyncQueueClaim(Generic[T]):
    """A message that is yours until `expires_at`, and the right to settle it.

    `token` is its fencing token: larger than that of every earlier claim, so whatever checks it can refuse a holder who lost the message
    and does not know it yet.
    """

    aio: ClassVar[ClaimTwin] = ClaimTwin()

    def __init__(self, message: Message, codec: Codec, client: ControlPlaneClient, hold: Hold) -> None:
        self._message = message
        self._codec = codec
        self._client = client
        self._value: T | Missing = MISSING
        self.hold = hold
        self.keepalive: Keepalive | None = None
        self._ends_at = hold.ends_at

    @property
    def claim_id(self) -> str:
        """The text that names this claim, and no earlier or later one on the same message."""
        return self._message.receipt.claim_id

    @property
    def value(self) -> T:
        """What was put; ValueError if it does not fit the type of the queue."""
        if isinstance(self._value, Missing):
            self._value = self._codec.decode(self._message.value)
        return self._value  # type: ignore[return-value] # what the codec gave

    @property
    def id(self) -> str:
        """The id of the message."""
        return self._message.id

    @property
    def queue(self) -> str:
        """The name of the queue."""
        return self._message.queue

    @property
    def token(self) -> int:
        """The fencing token."""
        return self._message.token

    @property
    def attempts(self) -> int:
        """How often the message was handed out, this time included."""
        return self._message.attempts

    @property
    def failures(self) -> int:
        """How often that ended in a failure or an expiry: what the budget counts."""
        return self._message.failures

    @property
    def max_attempts(self) -> int | None:
        """How many failures the message may have; None is no limit of its own."""
        return self._message.max_attempts

    @property
    def last_error(self) -> str | None:
        """With what its last failure was reported."""
        return self._message.last_error

    @property
    def claimer(self) -> str:
        """Who claimed it."""
        return self._message.holder

    @property
    def key(self) -> Any:
        """The key it was put under, None without."""
        return key_of(self._message)

    @property
    def metadata(self) -> dict[str, Any] | None:
        """What was put beside the value."""
        return metadata_of(self._message.metadata)

    @property
    def created_at(self) -> datetime | None:
        """When it was put, with time zone."""
        return wall_time(self._message.created_at, self._client.store.wall_offset_us())

    @property
    def expires_at(self) -> datetime | None:
        """When the lease ends, with time zone: as of the claim, or of the last renewal from here."""
        until = wall_time(self._message.until, self._client.store.wall_offset_us())
        return None if until is None else until + timedelta(seconds=self.hold.ends_at - self._ends_at)

    @property
    def lost(self) -> bool:
        """Whether the message may be somebody else's by now; costs no question to the store."""
        return self.hold.lost

    def check(self) -> None:
        """Raise `ClaimLost` if it is lost: what a long body does before anything that cannot be undone."""
        self.hold.check()

    async def ack(self) -> QueueResponse:
        """Remove the message: it is done. Raises `ClaimLost`."""
        return raise_lost(await settle(self._client, self, None))

    async def release(self, *, return_to: ReturnTo = "back", delay_s: float = 0.0) -> QueueResponse:
        """Give the message back, to the back of the line or where `return_to` says; burns no attempt. A lost one is counted in `lost`."""
        return await settle(self._client, self, None, to="ready", return_to=return_to, delay_s=delay_s)

    async def renew(self, *, lease_s: float) -> QueueResponse:
        """Keep it from now on for `lease_s`. Raises `ClaimLost`."""
        return raise_lost(await renew(self._client, self, None, lease_s))

    async def fail(self, *, error: str | None = None, delay_s: float = 0.0) -> QueueResponse:
        """Give it back as failed: its budget decides whether it is tried again. A lost one is counted in `lost`."""
        return await settle(self._client, self, None, to="ready", counts=True, error=error, delay_s=delay_s)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.claim_id} by {self.claimer!r}{', lost' if self.lost else ''}>"


class AsyncQueueWorkItem(Generic[T]):
    """A claimed message with its retry budget: acknowledge it, fail it, or complete it together with what follows from it."""

    aio: ClassVar[WorkTwin] = WorkTwin()

    def __init__(self, claim: AsyncQueueClaim[T], max_attempts: int | None, dead_letter_queue: str | None) -> None:
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

    async def ack(self) -> QueueResponse:
        """Remove the message: it is done. Raises `ClaimLost`."""
        return raise_lost(await settle(self._client, self, None))

    async def release(self, *, return_to: ReturnTo = "back", delay_s: float = 0.0) -> QueueResponse:
        """Give it back; burns no attempt. A lost one is counted in `lost`."""
        return await settle(self._client, self, None, to="ready", return_to=return_to, delay_s=delay_s)

    async def renew(self, *, lease_s: float) -> QueueResponse:
        """Keep it from now on for `lease_s`. Raises `ClaimLost`."""
        return raise_lost(await renew(self._client, self, None, lease_s))

    async def fail(self, error: str | None = None, *, delay_s: float = 0.0) -> QueueResponse:
        """Give it back as failed: to the back of the line, or, with the budget spent, to the dead letters. A lost one is in `lost`."""
        return await settle(
            self._client,
            self,
            None,
            to="ready",
            counts=True,
            error=error,
            delay_s=delay_s,
            max_attempts=self._fallback,
            dead_letter=self._dead_letter_queue,
        )

    async def complete(
        self,
        result: Any = MISSING,
        *,
        puts: Mapping[Any, Iterable[Any]] | None = None,
        writes: Mapping[Any, Mapping[Any, Any]] | None = None,
        results: str | None = None,
        keep_result_s: float | None = KEEP_RESULT_S,
    ) -> None:
        """Acknowledge, and in the same atomic step store the result, put what comes next and write what changed.

        The result is stored under the message's id in the dict `results`, by default named after the queue with `-results` behind it, for
        `keep_result_s` (None: for ever). `puts` maps queues, handles or names, to values; `writes` maps dicts to their new entries. Raises
        `ClaimLost`, with nothing done, if the message is no longer held.
        """
        async with AsyncTogether(self._client) as step:
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


class AsyncQueueClaimContext(Generic[T]):
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
        if max_hold_s is not None:
            check_duration(max_hold_s, "max_hold_s", zero=False)
        self.claim: AsyncQueueClaim[T] | None = None
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
        self._holding: AsyncHolding | None = None

    async def __aenter__(self) -> T | None:
        if self._holding is not None:
            raise RuntimeError("this context is entered already: make another for another message")
        if self._auto_renew:
            self._client.check_renewal()
        self.claim = None
        keepalive = self._client.keepalive
        messages, started = await claim_since(self._client.async_store, self._command, self._timeout_s, self._poll_s, keepalive.now)
        if not messages:
            return None
        hold = self._hold(messages[0], started)
        self.claim = AsyncQueueClaim(messages[0], self._codec, self._client, hold)
        try:
            value = self.claim.value
            self._holding = AsyncHolding(keepalive, hold)
        except BaseException as error:
            # It never reaches the body: one that cannot be read must not come back for ever.
            await self._give_back(self.claim, error)
            raise
        self.claim.keepalive = keepalive
        return value

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        holding, self._holding = self._holding, None
        if holding is None:
            return

        async def settle_claim() -> bool:
            return await self._settle(error)

        await holding.leave(error, settle_claim)

    def _hold(self, message: Message, started: float) -> Hold:
        return Hold(
            message.receipt,
            self._command.lease_s,
            started,
            self._client.keepalive.now,
            auto_renew=self._auto_renew,
            renew_interval_s=self._renew_interval_s,
            max_hold_s=self._max_hold_s,
        )

    async def _settle(self, error: BaseException | None) -> bool:
        """Settle what may still be held, and answer whether it was."""
        claim = self.claim
        if claim is None:
            return True
        claim.keepalive = None
        if error is None and claim.lost:
            # Whatever the store thinks, this holder cannot vouch for its work: somebody else is to do it.
            return (await claim.release()).count == 1
        if error is None:
            return not self._ack_on_success or (await settle(self._client, claim, None)).count == 1
        return not self._release_on_error or await self._give_back(claim, error)

    async def _give_back(self, claim: AsyncQueueClaim[T], error: BaseException) -> bool:
        if isinstance(error, Exception):
            return (await claim.fail(error=_shown(error))).count == 1
        # Cancelled or interrupted, which says nothing about the message: nothing is burnt.
        return (await claim.release()).count == 1


def _shown(error: BaseException) -> str:
    text = str(error)
    return f"{type(error).__name__}: {text}" if text else type(error).__name__

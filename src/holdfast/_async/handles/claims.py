"""A claim: a message held under a lease."""

from datetime import datetime, timedelta
from typing import Any, ClassVar, Generic, TypeVar

from holdfast._async.flows.settling import renew, settle
from holdfast.aio_attribute import ClaimTwin
from holdfast.arguments.named_claims import raise_lost
from holdfast.client import ControlPlaneClient
from holdfast.codec import Codec
from holdfast.holding.hold import Hold
from holdfast.holding.keepalive import Keepalive
from holdfast.presentation import key_of, metadata_of
from holdfast.records import Message, ReturnTo
from holdfast.results import MISSING, Missing, QueueResponse, wall_time
from holdfast.stores.caller_transaction import AsyncConnection

T = TypeVar("T")


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
    def record(self) -> Message:
        """The message as the store handed it out."""
        return self._message

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

    async def ack(self, *, connection: AsyncConnection | None = None) -> QueueResponse:
        """Remove the message: it is done. Raises `ClaimLost`."""
        return raise_lost(await settle(self._client, self, None, connection))

    async def release(
        self, *, return_to: ReturnTo = "back", delay_s: float = 0.0, connection: AsyncConnection | None = None
    ) -> QueueResponse:
        """Give the message back, to the back of the line or where `return_to` says; burns no attempt. A lost one is counted in `lost`."""
        return await settle(self._client, self, None, connection, to="ready", return_to=return_to, delay_s=delay_s)

    async def renew(self, *, lease_s: float) -> QueueResponse:
        """Keep it from now on for `lease_s`. Raises `ClaimLost`."""
        return raise_lost(await renew(self._client, self, None, lease_s))

    async def fail(self, *, error: str | None = None, delay_s: float = 0.0, connection: AsyncConnection | None = None) -> QueueResponse:
        """Give it back as failed: its budget decides whether it is tried again. A lost one is counted in `lost`."""
        return await settle(self._client, self, None, connection, to="ready", counts=True, error=error, delay_s=delay_s)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.claim_id} by {self.claimer!r}{', lost' if self.lost else ''}>"

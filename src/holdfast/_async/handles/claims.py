"""A claim: a message held under a lease."""

from datetime import datetime, timedelta
from typing import ClassVar, TypeVar

from holdfast._async.flows.settling import renew, settle
from holdfast.aio_attribute import Twin
from holdfast.arguments.claim_options import given_delay
from holdfast.arguments.named_claims import raise_lost
from holdfast.client import ControlPlaneClient
from holdfast.codec import Codec
from holdfast.holding.hold import Hold
from holdfast.holding.keepalive import Keepalive
from holdfast.records import Message, ReturnTo
from holdfast.results import QueueResponse, wall_time
from holdfast.stores.caller_transaction import AsyncConnection
from holdfast.views.messages import MessageView

T = TypeVar("T")


class AsyncHeldMessage(MessageView[T]):
    """What a claim and a work item have in common: a message under a lease, and the right to settle it."""

    def __init__(self, message: Message, codec: Codec, client: ControlPlaneClient, hold: Hold) -> None:
        self._message = message
        self._codec = codec
        self._client = client
        self.hold = hold
        self.keepalive: Keepalive | None = None
        self._ends_at = hold.ends_at

    @property
    def claim_id(self) -> str:
        """The text that names this claim, and no earlier or later one on the same message."""
        return self._message.receipt.claim_id

    @property
    def record(self) -> Message:
        """The message as the store handed it out."""
        return self._message

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
        """Whether another holder may have the message by now; does not ask the store."""
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

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.claim_id} by {self.claimer!r}{', lost' if self.lost else ''}>"


class AsyncQueueClaim(AsyncHeldMessage[T]):
    """A message that is yours until `expires_at`, and the right to settle it.

    `token` is its fencing token: larger than that of every earlier claim, so whatever checks it can refuse a holder who lost the message
    and does not know it yet.
    """

    aio: ClassVar[Twin] = Twin()

    async def fail(
        self, *, error: str | None = None, delay_s: float | None = None, connection: AsyncConnection | None = None
    ) -> QueueResponse:
        """Give it back as failed: its budget decides whether it is tried again, and without `delay_s` the queue's back-off when.

        A lost one is counted in `lost`.
        """
        return await settle(self._client, self, None, connection, to="ready", counts=True, error=error, delay_s=given_delay(delay_s))

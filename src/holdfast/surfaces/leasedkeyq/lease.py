"""The lease of an item, and the items in flight."""

from collections.abc import Hashable
from time import monotonic
from typing import Generic, Literal, Self, TypeVar

from msgspec import Struct

from holdfast.ids import new_id
from holdfast.records import Message

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Lease(Generic[K]):
    """The right to one item, until it is settled or its time is up. `token` names it, also to other processes on the same store."""

    __slots__ = ("_token", "attempts", "ended", "held", "key")

    key: K
    attempts: int
    """How often the item was handed out, this time included; 0 where only the token is known."""
    ended: Literal["", "acknowledged", "released"]
    """What its holder did with it."""
    held: Message | None
    """The message as it was claimed; None where only the token is known."""

    def __init__(self, token: str, key: K, held: Message | None = None) -> None:
        self._token = token
        self.key = key
        self.attempts = 0 if held is None else held.attempts
        self.ended = ""
        self.held = held

    @classmethod
    def create(cls, key: K) -> Self:
        """Make a lease that no queue gave out."""
        return cls(new_id(), key)

    @property
    def token(self) -> str:
        """The text that names it, made when it is first read."""
        if not self._token and self.held is not None:
            self._token = self.held.receipt.claim_id
        return self._token

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Lease) and (self.token, self.key) == (other.token, other.key)

    def __hash__(self) -> int:
        return hash((self.token, self.key))

    def __repr__(self) -> str:
        return f"Lease(token={self.token!r}, key={self.key!r})"


class LeaseRecord(Struct, Generic[K, V]):
    """An item in flight. `created_at` is a moment of `time.monotonic`; `timeout` is how many seconds the lease lasts, None for no end."""

    lease: Lease[K]
    key: K
    value: V
    acknowledged: bool = False
    created_at: float = 0.0
    timeout: float | None = None

    def __post_init__(self) -> None:
        if self.created_at == 0.0:
            self.created_at = monotonic()

    def is_expired(self, now: float) -> bool:
        """Whether its time is up at a moment of `time.monotonic`."""
        return self.timeout is not None and now - self.created_at >= self.timeout

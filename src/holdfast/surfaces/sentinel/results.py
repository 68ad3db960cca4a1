"""Return types of the calls, and the names of keys and owners in the store."""

from datetime import datetime
from typing import Any, Literal

from msgspec import Struct

from holdfast.codec import check_duration, check_name, encode_key
from holdfast.commands import Acquire, Acquired, LeaseName, Look
from holdfast.holding.hold import this_process
from holdfast.ids import new_id
from holdfast.records import Lease
from holdfast.results import wall_time

TTL_MS = 10_000


class AcquireResult(Struct, frozen=True):
    """Whether the lease was acquired, and if so under which names."""

    acquired: bool
    owner_id: str | None = None
    """Names this very grant: no other, earlier or later, has the same."""
    expires_at: datetime | None = None
    fencing_token: int | None = None
    """Larger than that of every earlier grant."""
    held_by: str | None = None
    """Who is in the way, where it was not acquired."""
    free_in_ms: float | None = None
    """When time alone will end that."""


class HeartbeatResult(Struct, frozen=True):
    """Whether the lease was extended; `success` is the same."""

    extended: bool
    expires_at: datetime | None = None

    @property
    def success(self) -> bool:
        return self.extended


class ReleaseResult(Struct, frozen=True):
    """Whether the lease was released; `success` is the same."""

    released: bool

    @property
    def success(self) -> bool:
        return self.released


class OnceResult(Struct, frozen=True):
    """What became of something that is to happen once."""

    success: bool
    """Whether it has happened, now or before."""
    status: Literal["completed", "failed", "executing", "uncertain"]
    response: Any = None
    cached: bool = False
    """Whether it had happened before, and the response is the stored one."""
    exception: Exception | None = None
    execution_alive: bool = False
    """Whether it is being executed at this moment."""
    uncertain: bool = False
    """Whether the process that executed it died, so that the outcome is unknown: look, then reconcile it."""


def key_text(key: str) -> str:
    """The name of the lease in the store, apart from locks and elections."""
    return encode_key(("sentinel", key))


def seconds(ttl_ms: float | None) -> float:
    """How long a lease lasts."""
    return check_duration((TTL_MS if ttl_ms is None else ttl_ms) / 1000, "ttl_ms / 1000", zero=False)


def wait_s_of(wait_ms: float | None) -> float | None:
    """How long to wait for a lease, None not to wait."""
    return None if wait_ms is None else check_duration(wait_ms / 1000, "wait_ms / 1000", allow_inf=True)


def question(key: str, owner_id: str | None, ttl_ms: float | None) -> Acquire:
    """What asks for a lease, under a name that only this grant has."""
    holder = this_process() if owner_id is None else check_name(owner_id, "owner_id")
    return Acquire(None, key_text(key), holder, f"{holder}:{new_id()}", seconds(ttl_ms))


def answer(command: Acquire, acquired: Acquired, wall_offset_us: int) -> AcquireResult:
    """What became of the question."""
    lease = acquired.lease
    if lease.lease_id != command.lease_id:
        free_in_ms = None if acquired.ends_in_s is None else acquired.ends_in_s * 1000
        return AcquireResult(acquired=False, held_by=lease.holder, free_in_ms=free_in_ms)
    return AcquireResult(
        acquired=True, owner_id=lease.lease_id, expires_at=wall_time(lease.until, wall_offset_us), fencing_token=lease.token
    )


def who_holds(key: str) -> Look:
    """What asks which grant is in force."""
    return Look(None, [key_text(key)])


def grant_of(key: str, owner_id: str, fencing_token: int | None, current: Lease | None) -> LeaseName:
    """The grant that an owner means: by the id that `acquire` returned, or by a name of its own and the fencing token."""
    if current is not None and current.holder == owner_id and current.token == fencing_token:
        return LeaseName(None, key_text(key), current.lease_id)
    return LeaseName(None, key_text(key), check_name(owner_id, "owner_id"))

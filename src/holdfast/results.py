"""Return types of calls, the same for threads and for tasks."""

from datetime import UTC, datetime
from typing import Any, Final, Literal, Self, final

from msgspec import Struct

from holdfast.codec.texts import MessageId
from holdfast.commands.stats import Stats
from holdfast.rates import Rate
from holdfast.records import NEVER, Ending, State

__all__ = [
    "MISSING",
    "CopyProgress",
    "CopyResult",
    "DictCompareAndSetResult",
    "DictEntry",
    "DictResponse",
    "Explanation",
    "GroupInfo",
    "LeaseGrant",
    "LeaseHolder",
    "LeaseInfo",
    "MessageId",
    "Missing",
    "QueueMessage",
    "QueueResponse",
    "Stats",
    "WatchEvent",
    "wall_time",
]

QueueReason = Literal["ready", "delayed", "claimed", "behind_key", "paused", "throttled", "limit", "rate", "dead", "late", "absent", "done"]
GroupReason = Literal["group_paused", "group_behind", "group_busy", "group_rate", "turn"]
Reason = QueueReason | GroupReason


@final
class Missing:
    """The type of `MISSING`."""

    def __repr__(self) -> str:
        return "MISSING"

    def __bool__(self) -> bool:
        return False

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: object) -> Self:
        return self

    def __reduce__(self) -> str:
        return "MISSING"


MISSING: Final = Missing()
"""Stands for a key that is absent, where None would be a stored None."""


class QueueResponse(Struct, frozen=True):
    """How many messages or claims were acted on, and how many claims were lost before that."""

    count: int
    lost: int = 0
    lost_claims: tuple[str, ...] = ()
    """The `claim_id` of each lost one."""
    kept: dict[str, Literal["key", "id"]] = {}
    """Messages that a redrive left where they are, by id, each with what is taken where it would go: its `key` or its `id`."""


class DictResponse(Struct, frozen=True):
    """How many entries or leases were acted on, and how many leases were lost before that."""

    count: int
    lost: int = 0


class DictCompareAndSetResult(Struct, frozen=True):
    """Whether the value was set, and what the key holds now; `current_value` is None and `revision` 0 where it is absent."""

    updated: bool
    current_value: Any
    revision: int


class DictEntry(Struct, frozen=True):
    """A key of a dict with its value; `revision` grows with every write, also over deletion."""

    key: Any
    value: Any
    revision: int
    fence: int = 0
    """The highest token that wrote it under a fence."""
    expires_at: datetime | None = None


class LeaseHolder(Struct, frozen=True):
    """Who holds a lease, or leads, under which fencing token, and since when."""

    holder: str
    token: int
    since: datetime | None


class LeaseGrant(LeaseHolder, frozen=True):
    """The same, and until when if it is not renewed; None is for ever."""

    until: datetime | None


class LeaseInfo(Struct, frozen=True):
    """One lock, election, semaphore or key of a dict that is held, and by whom."""

    name: Any
    """Of a lease on a key of a dict, the key."""
    kind: str | None
    """`lock`, `election`, `semaphore` or `rwlock`; None for a key of a dict."""
    holders: tuple[LeaseGrant, ...]
    """By when their leases end. Of those with capacity at most 100 for all that are listed, and at least one for each."""
    capacity: int | None = None
    """Of a semaphore, a read-write lock or a fair lock; None for others, as are the rest: no store knows who waits for a plain lock."""
    used: int | None = None
    waiting: int | None = None
    """How many stand in line; those who gave up are counted until the next one asks."""


class WatchEvent(Struct, frozen=True):
    """One thing that happened to a queue, a dict or a lease; `index` is where a later watch can go on."""

    index: int
    event: str
    data: Any
    at: datetime


class QueueMessage(Struct, frozen=True):
    """A message as someone sees it who looks and does not touch; moments are of the wall clock."""

    id: str
    value: Any
    state: State
    key: Any = None
    priority: int = 0
    attempts: int = 0
    """How often it was handed out."""
    failures: int = 0
    """How often that ended in a failure or an expiry: what the budget counts."""
    max_attempts: int | None = None
    dead_letter_queue: str | None = None
    created_at: datetime | None = None
    due_at: datetime | None = None
    """When it became, or becomes, claimable."""
    claimer: str | None = None
    expires_at: datetime | None = None
    dead_at: datetime | None = None
    last_error: str | None = None
    metadata: dict[str, Any] | None = None
    labels: tuple[str, ...] = ()
    group: str | None = None
    done_at: datetime | None = None
    """When it was done, where the queue keeps that."""
    trace: str | None = None
    """The end of the traceback of its last failure, where a worker kept it."""
    history: tuple[Ending, ...] = ()
    """How its last claims ended, those that were not acknowledged."""
    cursor: tuple[int | str, ...] = ()
    """Where it stands: `browse(after=message)` goes on behind it."""


class Explanation(Struct, frozen=True):
    """Why a message is not running.

    `reason` is one word. Of the message: `ready` (not claimed), `delayed`, `claimed`, `behind_key`, `dead`, `done`, `late` (it had to be
    started before now and will be dropped, or be dead) or `absent`. Of the queue: `paused`, `throttled`, `limit` or `rate`. Of its group:
    `group_paused`, `group_behind` (another one of a strict group comes first), `group_busy` (as many as allowed are claimed), `group_rate`,
    or `turn` (it is ready, and other groups may be served first).
    """

    reason: Reason
    sentence: str
    until: datetime | None = None
    """When time alone will change this."""
    claimer: str | None = None

    def __str__(self) -> str:
        return self.sentence


class GroupInfo(Struct, frozen=True):
    """What is known of one group of a queue at one moment."""

    name: str
    """"" are the messages that were put without a group."""
    ready: bool
    """Whether a claim could take a message of it now."""
    live: int
    """How many of its messages are claimed, counted while it has a limit."""
    limit: int | None
    """How many may be: its own limit, else the queue's; 1 in a strict queue."""
    rate: Rate | None
    """Its own rate, else the queue's."""
    weight: int
    paused: bool
    held_by: str | None
    """The id of the dead message for which the group is paused."""
    wakes_at: datetime | None
    """When time alone makes it ready: its rate, its throttle, or a message that is not due yet."""
    throttled_until: datetime | None


JobState = Literal["waiting", "delayed", "running", "sleeping", "retrying", "done", "dead", "cancelled", "gone"]


class JobError(Struct, frozen=True, omit_defaults=True):
    """A failure of a job, as its worker kept it."""

    at: datetime
    attempt: int
    """Which execution it was."""
    worker: str
    type: str
    """The name of the exception's class; empty if nothing was raised."""
    message: str
    traceback: str | None = None
    """Where it was raised, without the values of variables; at most 16 KiB."""


class JobStatus(Struct, frozen=True):
    """How a job is at one moment.

    `state` is `waiting`, `delayed`, `running`, `sleeping` (a durable job that waits for time, a signal or another job), `retrying` (it
    failed and is delayed), `done`, `dead`, `cancelled` or `gone`: it has ended and its worker kept no result, the result has expired,
    or it never was. Of a job that has ended only the state and the error are known, unless it is a dead letter of its queue, or the queue
    keeps what is done (`keep_done_s` of its policy).
    """

    state: JobState
    queue: str
    id: str
    task: str | None = None
    """The task that it names."""
    attempts: int = 0
    """How often it was handed out."""
    failures: int = 0
    enqueued_at: datetime | None = None
    started_at: datetime | None = None
    """When it was last handed out."""
    finished_at: datetime | None = None
    """When it became a dead letter, or was done."""
    due_at: datetime | None = None
    worker: str | None = None
    """Who runs it, or has done it."""
    progress: Any = None
    """What its handler reported last; of `job.progress` a dict with `done`, `total`, `note` and `data`."""
    error: str | None = None
    """With what it failed last, or was given back."""
    waiting_for: str | None = None
    """What a durable job that sleeps waits for."""
    errors: tuple[JobError, ...] = ()
    """Its last failures, at most three, the oldest first; also of a job that ended, as long as its result would be kept."""

    @property
    def has_ended(self) -> bool:
        """Whether nothing more becomes of it, unless someone redrives it."""
        return self.state in ("done", "dead", "cancelled", "gone")


StepState = Literal["done", "begun", "failed", "retry", "timer", "called", "timeout", "cancelled"]


class JobStep(Struct, frozen=True):
    """A step of a durable job as it is recorded.

    `state` is `done`, `begun` (one that must happen once and has no result yet), `failed`, `retry` (it failed and is tried again),
    `timer` (a wait that has begun), `called` (a child that was put), `timeout` or `cancelled`.
    """

    name: str
    state: StepState
    branch: str = ""
    number: int = 0
    """Which it is of equal ones."""
    result: Any = None
    """As plain data."""
    failures: int = 0
    error: str | None = None
    at: datetime | None = None
    child: str | None = None
    """The id of the job that it has called."""


def wall_time(moment: int | None, wall_offset_us: int) -> datetime | None:
    """Give a moment of the store's clock as people know it; None for none, and for the end of a lease without end."""
    return None if moment is None or moment >= NEVER else datetime.fromtimestamp((moment + wall_offset_us) / 1_000_000, UTC)


class CopyProgress(Struct, frozen=True):
    """How far a copy has come, in messages and entries."""

    done: int
    total: int
    what: str
    """The queue or dict that is being copied."""


class CopyResult(Struct, frozen=True):
    """What was moved from one store to another."""

    source: str
    target: str
    """Both without passwords."""
    queues: int
    dicts: int
    messages: int
    entries: int
    checksum: str
    """Of every message and entry, as it is in the target."""
    resumed: bool = False
    """Whether an earlier copy was interrupted, and this one went on from there."""


class CopyUndone(Struct, frozen=True):
    """What became of a copy that was undone."""

    source: str
    """Whose seal is off: it can be used again."""
    target: str
    """Both without passwords."""
    target_sealed: bool
    """Whether the copy was sealed in turn; it is not where it was used since, or could not be reached, and the undoing was forced."""

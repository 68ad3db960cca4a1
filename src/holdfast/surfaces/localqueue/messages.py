"""A message and the sizes of a queue, in localqueue's words."""

from dataclasses import asdict, dataclass, field
from itertools import pairwise
from typing import Any
from weakref import WeakKeyDictionary

from msgspec import DecodeError, json

from holdfast.client import ControlPlaneClient
from holdfast.codec import JSON
from holdfast.commands import Stats
from holdfast.records import ERROR_CHARACTERS, NEVER, Ending, Message
from holdfast.views.messages import key_of

Error = BaseException | str | dict[str, Any] | None
"""An error, its text, or what is known of it already."""

STATES = {"ready": "ready", "buffered": "ready", "leased": "inflight", "dead": "dead", "done": "acked"}
SET_US = 10_000
"""By how much the wall clock must jump for moments to be converted again."""

# Each change to it is one step of the interpreter.
_offsets_us: WeakKeyDictionary[ControlPlaneClient, int] = WeakKeyDictionary()

ENDINGS = {"released": "released", "failed": "released", "expired": "lease_expired", "buried": "dead_lettered"}


@dataclass(frozen=True, slots=True)
class QueueMessage:
    """A message as it was when it was put, leased or looked at; moments are Unix timestamps.

    `token` names the claim of a leased one: `ack`, `release` and `dead_letter` act only while that claim holds. Without a token they act
    as an administrator would, only while the message is not claimed.
    """

    id: str
    value: Any
    queue: str
    state: str = "ready"
    attempts: int = 0
    created_at: float = 0.0
    available_at: float = 0.0
    leased_until: float | None = None
    leased_by: str | None = None
    last_error: dict[str, Any] | None = None
    failed_at: float | None = None
    attempt_history: list[dict[str, Any]] = field(default_factory=list)
    dedupe_key: str | None = None
    priority: int = 0
    token: int | None = None


@dataclass(frozen=True, slots=True)
class QueueStats:
    """How many messages are where, who holds them, and how old they are."""

    ready: int = 0
    delayed: int = 0
    inflight: int = 0
    dead: int = 0
    total: int = 0
    by_worker_id: dict[str, int] = field(default_factory=dict)
    leases_by_worker_id: dict[str, int] = field(default_factory=dict)
    last_seen_by_worker_id: dict[str, float] = field(default_factory=dict)
    oldest_ready_age_seconds: float | None = None
    oldest_inflight_age_seconds: float | None = None
    average_inflight_age_seconds: float | None = None

    def as_dict(self) -> dict[str, Any]:
        """The same as plain data."""
        return asdict(self)


def claimed(message: Message, offset_us: int) -> QueueMessage:
    """A message that was leased just now, with the token of its claim."""
    return _told(message, offset_us, held=True, token=message.token)


def looked_at(message: Message, now: int, offset_us: int) -> QueueMessage:
    """A message as it is shown; one whose lease has ended is ready again."""
    return _told(message, offset_us, held=message.held_at(now), token=None)


def _told(message: Message, offset_us: int, *, held: bool, token: int | None) -> QueueMessage:
    return QueueMessage(
        id=message.id,
        value=JSON.decode(message.value),
        queue=message.queue,
        state="ready" if message.state == "leased" and not held else STATES[message.state],
        attempts=message.attempts,
        created_at=timestamp(message.created_at, offset_us),
        available_at=timestamp(message.position, offset_us),
        leased_until=timestamp(message.until, offset_us) if held and message.until < NEVER else None,
        leased_by=(message.holder or None) if held else None,
        last_error=None if message.last_error is None else error_of(message.last_error),
        failed_at=_failed_at(message, offset_us),
        attempt_history=_history(message, offset_us, held=held),
        dedupe_key=key_of(message),
        priority=message.priority,
        token=token,
    )


def wall_offset_us(client: ControlPlaneClient) -> int:
    """What to add to a moment of the store: the same number until the wall clock is set, so that a message is shown the same twice."""
    offset_us = client.store.wall_offset_us()
    # It is the difference of two clocks that are read one after the other.
    known_us = _offsets_us.get(client, offset_us)
    _offsets_us[client] = known_us if abs(offset_us - known_us) < SET_US else offset_us
    return _offsets_us[client]


def timestamp(moment: int, offset_us: int) -> float:
    """A moment of the store as a Unix timestamp."""
    return (moment + offset_us) / 1_000_000


def counted(stats: Stats, leases: dict[str, int], seen: dict[str, float]) -> QueueStats:
    """The sizes of a queue; `leases` are those that ended, and the running ones come on top."""
    held = {holder: count for holder, count in stats.holders.items() if holder}
    return QueueStats(
        ready=stats.ready + stats.buffered,
        delayed=stats.delayed,
        inflight=stats.leased,
        dead=stats.dead,
        total=stats.total,
        by_worker_id=held,
        leases_by_worker_id={worker: leases.get(worker, 0) + held.get(worker, 0) for worker in {**leases, **held}},
        last_seen_by_worker_id=seen,
        oldest_ready_age_seconds=stats.oldest_ready_s,
        oldest_inflight_age_seconds=stats.oldest_leased_s,
        average_inflight_age_seconds=stats.average_leased_s,
    )


def error_as_dict(error: Error) -> dict[str, Any] | None:
    """An error as localqueue shows it."""
    if error is None or isinstance(error, dict):
        return error
    told: dict[str, Any] = {"type": None, "module": None, "message": str(error)}
    if isinstance(error, BaseException):
        told |= {"type": type(error).__name__, "module": type(error).__module__}
        told |= {name: value for name in ("command", "exit_code", "stdout", "stderr") if (value := getattr(error, name, None)) is not None}
    return told


def error_text(error: Error) -> str | None:
    """An error as the text that the store keeps, cut to what it keeps."""
    told = error_as_dict(error)
    if told is None:
        return None
    text = json.encode(told, enc_hook=str).decode(errors="replace")
    room = ERROR_CHARACTERS
    while len(text) > ERROR_CHARACTERS:
        # Whatever is long is made shorter, until quotes and escapes fit, too.
        room //= 2
        shorter = {name: value[:room] if isinstance(value, str) else value for name, value in told.items()}
        text = json.encode(shorter if room else {"type": None, "module": None, "message": ""}, enc_hook=str).decode(errors="replace")
    return text


def error_of(text: str) -> dict[str, Any]:
    """The error that a text describes; one that others wrote is its message."""
    try:
        told = json.decode(text)
    except DecodeError:
        told = None
    return told if isinstance(told, dict) and "message" in told else {"type": None, "module": None, "message": text}


def _failed_at(message: Message, offset_us: int) -> float | None:
    failed = [ending.until for ending in message.history if ending.error is not None]
    return timestamp(failed[-1], offset_us) if failed else None


def _history(message: Message, offset_us: int, *, held: bool) -> list[dict[str, Any]]:
    """What is kept of the ended leases, and the running one."""
    # An administrator ends no lease: the token is that of the one before.
    tokens = [0, *(ending.token for ending in message.history)]
    leased = [after != before for before, after in pairwise(tokens)]
    attempt = message.attempts - sum(leased) - held
    told: list[dict[str, Any]] = []
    for ending, is_lease in zip(message.history, leased, strict=True):
        attempt += is_lease
        if is_lease:
            told.append(_leased(ending.holder, ending.since, attempt, offset_us))
        told.append(_ended(ending, attempt, offset_us))
    if held:
        told.append(_leased(message.holder, message.since, message.attempts, offset_us))
    return told


def _ended(ending: Ending, attempt: int, offset_us: int) -> dict[str, Any]:
    told: dict[str, Any] = {"type": ENDINGS[ending.how], "at": timestamp(ending.until, offset_us), "attempt": attempt}
    return told if ending.error is None else {**told, "last_error": error_of(ending.error)}


def _leased(holder: str, since: int, attempt: int, offset_us: int) -> dict[str, Any]:
    told: dict[str, Any] = {"type": "leased", "at": timestamp(since, offset_us), "attempt": attempt}
    return {**told, "leased_by": holder} if holder else told

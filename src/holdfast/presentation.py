"""Messages as shown to users, and why one is not running."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final, Generic, TypeVar

from msgspec import Raw

from holdfast.codec import JSON, Codec, decode_key
from holdfast.codec.metadata import read_metadata
from holdfast.commands import Browsed
from holdfast.commands.moving import cursor
from holdfast.policy_records import Settings
from holdfast.records import Message
from holdfast.results import MISSING, Explanation, Missing, QueueMessage, wall_time
from holdfast.wording import counted

T = TypeVar("T")


SAME_NAMES: Final = set(QueueMessage.__struct_fields__) & set(Message.__struct_fields__)


class MessageView(Generic[T]):
    """What those who hold a message can see of it: its claim, its work item, its job."""

    _message: Message
    _codec: Codec
    _value: Any = MISSING

    @property
    def value(self) -> T:
        """What was put; ValueError if it does not fit the type of the queue."""
        if isinstance(self._value, Missing):
            self._value = self._codec.decode(self._message.value)
        return self._value  # type: ignore[no-any-return] # what the codec gave

    @property
    def id(self) -> str:
        """The id of the message."""
        return self._message.id

    @property
    def queue(self) -> str:
        """The name of the queue."""
        return self._message.queue

    @property
    def key(self) -> Any:
        """The key it was put under, None without."""
        return key_of(self._message)

    @property
    def metadata(self) -> dict[str, Any] | None:
        """What was put beside the value."""
        return metadata_of(self._message.metadata)

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels it was put with."""
        return self._message.labels

    @property
    def token(self) -> int:
        """The fencing token: larger than that of every earlier claim on the message."""
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


def seen(message: Message, codec: Codec, now: int, offset_us: int) -> QueueMessage:
    """A message with its moments on the wall clock; one whose lease has ended shows as ready, which it is for the next claim."""
    held = message.held_at(now)
    fields: dict[str, Any] = {name: getattr(message, name) for name in SAME_NAMES}
    fields.update(
        value=value_of(message, codec),
        state="ready" if message.state == "leased" and not held else message.state,
        key=key_of(message),
        dead_letter_queue=message.dead_letter,
        created_at=wall_time(message.created_at, offset_us),
        due_at=wall_time(message.position, offset_us),
        claimer=message.holder if held else None,
        expires_at=wall_time(message.until, offset_us) if held else None,
        dead_at=wall_time(message.dead_at, offset_us),
        metadata=metadata_of(message.metadata),
        cursor=cursor(message),
    )
    return QueueMessage(**fields)


def value_of(message: Message, codec: Codec) -> Any:
    """What was put; as plain data where it does not fit the type, because a caller who looks wants to see just that."""
    try:
        return codec.decode(message.value)
    except ValueError:
        return JSON.decode(message.value)


def key_of(message: Message) -> Any:
    """The key as its owner wrote it. By reference it is that already."""
    return decode_key(message.key) if type(message.key) is str else message.key


def metadata_of(metadata: Raw | None) -> dict[str, Any] | None:
    """What was put beside the value."""
    return None if metadata is None else read_metadata(metadata)


AHEAD_MOST = 100
"""How many messages ahead of one are counted."""


def explain(
    found: Browsed, first: Sequence[Message], line: Sequence[Message], settings: Settings | None, *, id: str, offset_us: int
) -> Explanation:
    """Why the message with this id is not running; `first` are claimed ones that might hold its key, `line` is handed out next."""
    if not found.messages:
        return Explanation("absent", f"No message {id} is in the queue: it was acknowledged, taken, cancelled or dropped, or never put.")
    message, now = found.messages[0], found.now
    until = wall_time(message.until, offset_us)
    due = wall_time(message.position, offset_us)
    if message.state == "dead":
        return _dead(message, wall_time(message.dead_at, offset_us))
    if message.state == "buffered":
        return _behind(message, [one for one in first if one.key == message.key and one.held_at(now)], offset_us)
    if message.held_at(now):
        sentence = f"{message.holder!r} has claimed it {_until(until)}; this is its {_ordinal(message.attempts)} attempt."
        return Explanation("claimed", sentence, until, message.holder)
    if settings is not None and settings.paused:
        return Explanation("paused", "The queue is paused: nothing is handed out until it is resumed.")
    if message.is_late(now):
        start_by = wall_time(message.start_by, offset_us)
        return Explanation("late", f"It had to be started by {_shown(start_by)} and nobody did: the next claim drops it.", start_by)
    if message.state == "ready" and message.position > now:
        return Explanation("delayed", f"It is delayed until {_shown(due)}.", due)
    since = f"since {_shown(due)}" if message.state == "ready" else f"again since a claim of {message.holder!r} ended at {_shown(until)}"
    return Explanation("ready", f"It has been ready {since}{_ahead(message, line, now)}.")


def _ahead(message: Message, line: Sequence[Message], now: int) -> str:
    due = [one.id for one in line if one.position <= now and not one.is_late(now)]
    ahead = due.index(message.id) if message.id in due else len(due) if message.state == "ready" else 0
    if not ahead:
        return ", and nobody has asked for it yet"
    count = f"more than {AHEAD_MOST} messages" if ahead > AHEAD_MOST else counted(ahead, "message")
    return f"; {count} {'is' if ahead == 1 else 'are'} ahead of it"


def _dead(message: Message, at: datetime | None) -> Explanation:
    because = f"; the last error was: {message.last_error}" if message.last_error else ""
    budget = "" if message.max_attempts is None else f" of the {message.max_attempts} it may have"
    sentence = f"It is dead since {_shown(at)}, after {counted(message.failures, 'failure')}{budget}{because}. Redrive it to try again."
    return Explanation("dead", sentence)


def _behind(message: Message, first: Sequence[Message], offset_us: int) -> Explanation:
    if not first:
        return Explanation("behind_key", f"It waits behind another message under its key {key_of(message)!r}.")
    until = wall_time(first[0].until, offset_us)
    sentence = (
        f"It waits behind message {first[0].id} under its key {key_of(message)!r}, which {first[0].holder!r} has claimed {_until(until)}."
    )
    return Explanation("behind_key", sentence, until, first[0].holder)


def _until(until: datetime | None) -> str:
    return "without end" if until is None else f"until {_shown(until)}"


def _shown(moment: datetime | None) -> str:
    return "an unknown moment" if moment is None else moment.isoformat(timespec="seconds")


def _ordinal(number: int) -> str:
    ending = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"

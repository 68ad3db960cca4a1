"""Messages as shown to users."""

from typing import Any, Final, Generic, TypeVar

from msgspec import Raw

from holdfast.codec import JSON, Codec, decode_key
from holdfast.codec.metadata import read_metadata
from holdfast.commands.filtered import cursor
from holdfast.records import Message
from holdfast.results import MISSING, Missing, QueueMessage, wall_time

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
    def group(self) -> str | None:
        """The group it was put in, None without."""
        return self._message.group

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
        claimer=message.holder if held or message.state == "done" else None,
        expires_at=wall_time(message.until, offset_us) if held else None,
        dead_at=wall_time(message.dead_at, offset_us),
        done_at=wall_time(message.ended_at, offset_us),
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

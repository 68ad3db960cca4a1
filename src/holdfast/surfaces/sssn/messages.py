"""The messages of a channel, and its description."""

from enum import StrEnum
from typing import Any

from msgspec import Raw, Struct, convert, field, to_builtins
from msgspec.structs import replace

from holdfast.codec import JSON
from holdfast.records import Message
from holdfast.views.messages import metadata_of


class Visibility(StrEnum):
    """Who may see a channel."""

    PRIVATE = "private"
    PUBLIC = "public"


class MessageContent(Struct, kw_only=True):
    """What a message is about; subclass it for fields of your own."""


class GenericContent(MessageContent, kw_only=True):
    """Any data."""

    data: Any = None


class ChannelMessage(Struct, frozen=True, kw_only=True):
    """One message, as its sender wrote it."""

    id: str
    timestamp: float
    """Seconds since 1970."""
    sender_id: str
    content: Any
    """A `MessageContent`."""
    metadata: dict[str, Any] = field(default_factory=dict)
    correlation_id: str | None = None
    reply_to: str | None = None
    recipient_id: str | None = None

    def model_dump(self) -> dict[str, Any]:
        """All of it as plain data."""
        return {**to_builtins(self), "content": to_builtins(self.content)}


class ChannelInfo(Struct, frozen=True):
    """What a channel is called and who may see it."""

    id: str
    name: str
    description: str
    visibility: Visibility
    period: float

    def model_dump(self) -> dict[str, Any]:
        """All of it as plain data."""
        fields: dict[str, Any] = to_builtins(self)
        return fields


class ByReference:
    """Messages are the sender's own objects."""

    def encode(self, message: ChannelMessage) -> Any:
        return message

    def decode(self, message: Message) -> ChannelMessage:
        written: ChannelMessage = message.value  # type: ignore[assignment] # by reference it is what was put
        return with_report(written, message)


class Encoded:
    """Messages are text; their content is read as one type."""

    def __init__(self, content_type: type[MessageContent]) -> None:
        self.content_type = content_type

    def encode(self, message: ChannelMessage) -> Raw:
        if type(message.content) is not self.content_type:
            kind = type(message.content).__name__
            raise TypeError(f"this channel's messages hold {self.content_type.__name__}, not {kind}: give it content_type={kind}")
        return JSON.encode(_fields_of(message) | {"content": _fields_of(message.content)})

    def decode(self, message: Message) -> ChannelMessage:
        fields = JSON.decode(message.value)
        fields["content"] = convert(fields["content"], self.content_type)
        return with_report(ChannelMessage(**fields), message)


def with_report(written: ChannelMessage, message: Message) -> ChannelMessage:
    """The message, with what the store noted beside it when it became a dead letter."""
    noted = metadata_of(message.metadata)
    return replace(written, metadata=written.metadata | noted) if noted else written


def _fields_of(struct: Struct) -> dict[str, Any]:
    return {name: getattr(struct, name) for name in struct.__struct_fields__}

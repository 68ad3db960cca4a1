"""Messages and descriptions of channels, under the path that programs import them from."""

from holdfast.surfaces.sssn.messages import ChannelInfo, ChannelMessage, GenericContent, MessageContent, Visibility

__all__ = ["ChannelInfo", "ChannelMessage", "GenericContent", "MessageContent", "Visibility"]

"""sssn's WorkQueueChannel: workers claim messages, and acknowledge them or give them back.

In memory by default, with contents by reference; `store=` gives the same on any store, where contents are encoded.
"""

from holdfast.surfaces.sssn.channel import Settled, WorkQueueChannel
from holdfast.surfaces.sssn.messages import ChannelInfo, ChannelMessage, GenericContent, MessageContent, Visibility

__all__ = [
    "ChannelInfo",
    "ChannelMessage",
    "GenericContent",
    "MessageContent",
    "Settled",
    "Visibility",
    "WorkQueueChannel",
]

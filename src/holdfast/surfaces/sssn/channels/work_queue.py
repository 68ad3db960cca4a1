"""The work-queue channel, under the path that programs import it from."""

from holdfast.surfaces.sssn.channel import WorkQueueChannel

__all__ = ["WorkQueueChannel"]

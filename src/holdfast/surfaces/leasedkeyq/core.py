"""The queue, under the path that programs import it from."""

from holdfast.surfaces.leasedkeyq.queue import LeasedKeyQueue

__all__ = ["LeasedKeyQueue"]

"""The queue's types, under the path that programs import them from."""

from holdfast.surfaces.leasedkeyq.queue import InFlightPolicy

__all__ = ["InFlightPolicy"]

"""Holdfast: queues, dicts, locks and elections with leases and fencing tokens."""

__version__ = "0.1.0"

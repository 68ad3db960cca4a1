"""Throw-away real servers for tests: started in about a second on a free port of this machine, and gone with the test."""

from holdfast.testing.servers.postgres import postgres

__all__ = ["postgres"]

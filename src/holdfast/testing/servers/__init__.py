"""Throw-away real servers for tests: started in about a second on a free port of this machine, and gone with the test."""

from holdfast.testing.servers.holdfast import HoldfastServer, holdfast
from holdfast.testing.servers.postgres import postgres
from holdfast.testing.servers.redis import redis

__all__ = ["HoldfastServer", "holdfast", "postgres", "redis"]

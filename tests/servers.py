"""Servers that all tests of one process share: each is started by the first test that needs it."""

import atexit
from contextlib import ExitStack
from functools import cache

from holdfast.ids import new_id
from holdfast.testing.servers import redis


@cache
def shared_redis() -> str:
    """The URL of a Redis for the tests of this process."""
    stack = ExitStack()
    atexit.register(stack.close)
    return stack.enter_context(redis())


def own_redis_url() -> str:
    """The URL of a store of one test alone: a prefix of its own in the Redis that the tests share."""
    return f"{shared_redis()}?prefix=test-{new_id()}"

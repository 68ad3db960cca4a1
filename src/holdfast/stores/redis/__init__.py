"""The Redis store: one Lua script a command."""

from holdfast.stores.redis.store import RedisStore

__all__ = ["RedisStore"]

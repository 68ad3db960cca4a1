"""The Redis store: one Lua script per command."""

from holdfast.stores.redis.store import RedisStore

__all__ = ["RedisStore"]

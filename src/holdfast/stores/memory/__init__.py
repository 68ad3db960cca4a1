"""The store in memory."""

from holdfast.stores.memory.store import AsyncMemoryStore, MemoryStore

__all__ = ["AsyncMemoryStore", "MemoryStore"]

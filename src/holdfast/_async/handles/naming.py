"""A queue by name, and its client."""

from typing import Unpack

from holdfast.arguments.options import show_options
from holdfast.arguments.where import StoreHandle, Where
from holdfast.client import ControlPlaneClient
from holdfast.codec import JSON, Codec, check_name
from holdfast.stores import AsyncStore


@show_options
class AsyncNamedQueue(StoreHandle):
    """What every part of a queue's handle stands on."""

    name: str

    def __init__(self, name: str, *, codec: Codec = JSON, **where: Unpack[Where]) -> None:
        self.name = check_name(name, "queue")
        super().__init__(codec, **where)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"

    def _store(self, client: ControlPlaneClient | None = None, base_url: str | None = None) -> AsyncStore:
        return self._reach(client, base_url).async_store

    def _other(self, queue: str | None) -> str | None:
        if queue == self.name:
            raise ValueError(f"queue {self.name!r} cannot be its own dead-letter queue: name another")
        return queue

# Generated from src/holdfast/_async/handles/naming.py by tools/unasync.py; do not edit.
"""A queue by name, and how its store is reached."""

from holdfast.client import ControlPlaneClient
from holdfast.codec import JSON, Codec, check_name
from holdfast.reaching import reach, refuse_pickle
from holdfast.stores import Store


class NamedQueue:
    """What every part of a queue's handle stands on."""

    name: str

    def __init__(self, name: str, *, codec: Codec = JSON, client: ControlPlaneClient | None = None, base_url: str | None = None) -> None:
        self.name = check_name(name, "queue")
        self._codec = codec
        self._client = client
        self._base_url = base_url

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"

    def _reach(self, client: ControlPlaneClient | None, base_url: str | None) -> ControlPlaneClient:
        return refuse_pickle(reach(client, base_url, self._client, self._base_url), self._codec)

    def _store(self, client: ControlPlaneClient | None, base_url: str | None) -> Store:
        return self._reach(client, base_url).store

    def _other(self, queue: str | None) -> str | None:
        if queue == self.name:
            raise ValueError(f"queue {self.name!r} cannot be its own dead-letter queue: name another")
        return queue

"""The connection to any store, by URL.

Importing this must cost next to nothing: a store is imported when the first call needs it.
"""

import os
import re
import threading
import weakref
from typing import TYPE_CHECKING, Self

from holdfast.codec.limits import Limits
from holdfast.connect import connect, connect_shared
from holdfast.errors import Closed, StoreError
from holdfast.twins import load

if TYPE_CHECKING:
    from holdfast._async.handles.together import AsyncTogether
    from holdfast._sync.handles.together import Together
    from holdfast.keepalive import Keepalive
    from holdfast.stores import AsyncExecutor, AsyncStore, Executor, Store
    from holdfast.stores.lending import AsyncConnection, Connection

_PASSWORD = re.compile(r"(?<=//)[^/@]*@")

# Guards _clients.
_lock = threading.Lock()
_clients: "dict[tuple[str | None, str | None], ControlPlaneClient]" = {}
_all: "weakref.WeakSet[ControlPlaneClient]" = weakref.WeakSet()


class ControlPlaneClient:
    """A connection to the store that a URL names, for threads and tasks alike.

    It opens at the first call. Without a URL it is that of `HOLDFAST_URL`, else a SQLite file in the user's data folder, as for `connect`;
    `token` is for a store that asks who you are. Close it, or use it as a context manager: every wait on it ends with `Closed`.
    """

    def __init__(self, url: str | None = None, *, token: str | None = None, limits: Limits = Limits()) -> None:
        self._url = url
        self.token = token
        self._limits = limits
        self._is_shared = False
        # Guards what is opened at the first use: the three below, and _is_closed.
        self._lock = threading.RLock()
        self._store: Store | None = None
        self._async_store: AsyncStore | None = None
        self._keepalive: Keepalive | None = None
        self._is_closed = False
        _all.add(self)

    @classmethod
    def on(cls, store: "Store") -> Self:
        """Make a client of a store that is open: one of a test, or one on a connection of your own. Closing it closes the store."""
        client = cls(store.url)
        client._store = store
        return client

    @classmethod
    def shared(cls, base_url: str | None = None, *, token: str | None = None) -> "ControlPlaneClient":
        """Give the client that all handles with this `base_url` share in this process; without one, that of handles that name none.

        For closing it early. Handles that are used after that get a new one.
        """
        return client_for(base_url, token=token)

    @property
    def url(self) -> str:
        """Where the store is."""
        return self.store.url if self._url is None else self._url

    @property
    def is_closed(self) -> bool:
        """Whether `close` was called."""
        return self._is_closed

    @property
    def store(self) -> "Store":
        """The store, for threads; opened once."""
        if self._store is not None and not self._is_closed:
            return self._store
        with self._lock:
            self._refuse_if_closed()
            if self._store is None:
                opened_by = connect_shared if self._is_shared else connect
                self._store = opened_by(self._url, token=self.token, limits=self._limits)
            return self._store

    @property
    def async_store(self) -> "AsyncStore":
        """The same store, for tasks."""
        if self._async_store is not None and not self._is_closed:
            return self._async_store
        with self._lock:
            store = self.store
            if self._async_store is None:
                self._async_store = store.for_tasks()
            return self._async_store

    def store_on(self, connection: "Connection | None") -> "Executor":
        """Give what executes commands in the open transaction of a connection of yours to the same database; without one, the store.

        What is executed there commits or vanishes with your work. A connection that commits every statement by itself does so here, too.
        """
        if connection is None:
            return self.store
        from holdfast.stores.lending import within  # noqa: PLC0415 - see the top

        return within(self.store, connection)

    def async_store_on(self, connection: "AsyncConnection | None") -> "AsyncExecutor":
        """Give the same for tasks."""
        if connection is None:
            return self.async_store
        from holdfast.stores.lending import within_async  # noqa: PLC0415 - see the top

        return within_async(self.store, self.async_store, connection)

    @property
    def keepalive(self) -> "Keepalive":
        """What renews the claims and leases that are held through this client."""
        if self._keepalive is not None and not self._is_closed:
            return self._keepalive
        from holdfast.keepalive import Keepalive  # noqa: PLC0415 - see the top

        with self._lock:
            store = self.store
            if self._keepalive is None:
                self._keepalive = Keepalive(store)
            return self._keepalive

    def check_renewal(self) -> None:
        """Raise `StoreError` if nothing can be renewed in the background: a connection of your own belongs to its thread."""
        if hasattr(self.store, "connection"):
            raise StoreError("a sqlite3 connection belongs to its thread, so nothing can renew in the background: give auto_renew=False")

    def together(self, *, connection: "Connection | None" = None) -> "Together":
        """Collect steps, and commit them all or none, with a connection of yours together with your own transaction: see `Together`."""
        together: Together = load("holdfast._sync.handles.together", "Together")(self, connection)
        return together

    @property
    def aio(self) -> "ClientForTasks":
        """What this client offers to tasks."""
        return ClientForTasks(self)

    def close(self) -> None:
        """End every wait with `Closed` and every renewal, and give back what the store holds. Again does nothing."""
        with self._lock:
            if self._is_closed:
                return
            self._is_closed = True
            store, keepalive = self._store, self._keepalive
        if keepalive is not None:
            keepalive.close()
        if store is not None:
            store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aio.close()

    def __repr__(self) -> str:
        return f"ControlPlaneClient({None if self._url is None else _PASSWORD.sub('', self._url)!r})"

    def _refuse_if_closed(self) -> None:
        if self._is_closed:
            raise Closed("The client was closed: make a new one.")


class ClientForTasks:
    """A client's face for tasks."""

    def __init__(self, client: ControlPlaneClient) -> None:
        self._client = client

    def together(self, *, connection: "AsyncConnection | None" = None) -> "AsyncTogether":
        """Collect steps, and commit them all or none, with a connection of yours together with your own transaction: see `Together`."""
        together: AsyncTogether = load("holdfast._async.handles.together", "AsyncTogether")(self._client, connection)
        return together

    async def close(self) -> None:
        """Close the client, without blocking the event loop."""
        import asyncio  # noqa: PLC0415 - see the top

        await asyncio.to_thread(self._client.close)
        face = self._client._async_store  # noqa: SLF001 - its own face for tasks
        if face is not None:
            # Connections of tasks belong to their loop, and are closed in it.
            await face.aclose()


def client_for(base_url: str | None = None, *, token: str | None = None) -> ControlPlaneClient:
    """Give the client that this process has for the URL; without one, for that of `HOLDFAST_URL` or else the default file.

    `memory://` is one store a process here. A client that was closed is replaced.
    """
    url = os.environ.get("HOLDFAST_URL") if base_url is None else base_url
    with _lock:
        client = _clients.get((url, token))
        if client is None or client.is_closed:
            client = _clients[url, token] = ControlPlaneClient(url, token=token)
            client._is_shared = True  # noqa: SLF001 - made here
        return client


def _begin_in_child() -> None:
    """Go on after a fork: whoever held a lock stayed in the parent. The stores look after themselves."""
    global _lock  # noqa: PLW0603 - as above
    _lock = threading.Lock()
    for client in list(_all):
        client._lock = threading.RLock()  # noqa: SLF001 - of this module


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_in_child)

"""The connection to any store, by URL.

Importing this must cost next to nothing: a store is imported when the first call needs it.
"""

import os
import threading
import weakref
from functools import partial
from typing import TYPE_CHECKING, Self

from holdfast.aio_attribute import load
from holdfast.codec.limits import Limits
from holdfast.connect import before_opening, connect, connect_shared, is_server
from holdfast.errors import Closed, StoreError
from holdfast.passwords import without_password
from holdfast.process.forks import call_in_child
from holdfast.process.open_once import CLOSED, LateRenewals, Opener, Parts

if TYPE_CHECKING:
    from collections.abc import Callable

    from holdfast._async.handles.together import AsyncTogether
    from holdfast._sync.handles.together import Together
    from holdfast.holding.keepalive import Keepalive
    from holdfast.stores import AsyncExecutor, AsyncStore, Executor, Store
    from holdfast.stores.caller_transaction import AsyncConnection, Connection

# Guards _clients.
_lock = threading.Lock()
_clients: "dict[tuple[str | None, str | None], ControlPlaneClient]" = {}
_all: "weakref.WeakSet[ControlPlaneClient]" = weakref.WeakSet()
_sent: "weakref.WeakValueDictionary[str, ControlPlaneClient]" = weakref.WeakValueDictionary()
"""Clients that were sent to other processes or come from one, by the name under which they travel."""


class ControlPlaneClient:
    """A connection to the store that a URL names, for threads and tasks alike.

    It opens at the first call. Without a URL it is that of `HOLDFAST_URL`, else a SQLite file in the user's data folder, as for `connect`;
    `token` is for a store that asks who you are. Close it, or use it as a context manager: every wait on it ends with `Closed`. One that
    no one has any more is closed in the background.
    """

    def __init__(self, url: str | None = None, *, token: str | None = None, limits: Limits = Limits()) -> None:
        if url is not None and not isinstance(url, str):
            raise TypeError(f"the URL of a store must be a str, such as 'sqlite:///jobs.db', not {type(url).__name__}")
        self._url = url
        self.token = token
        self._limits = limits
        self._opener = Opener(partial(connect, url, token=token, limits=limits))
        # Guards the fields below.
        self._lock = threading.RLock()
        self._async_store: AsyncStore | None = None
        self._keepalive: Keepalive | None = None
        self._is_closed = False
        self._sent_as = ""
        # A memory store is nobody's own: it lasts as long as anybody has it.
        self._parts = Parts(self._opener, keeps_store=self._opens_at_once())
        weakref.finalize(self, self._parts.close_in_background).atexit = False
        _all.add(self)

    @classmethod
    def on(cls, store: "Store") -> Self:
        """Make a client of a store that is open: one of a test, or one on a connection of your own. Closing it closes the store."""
        client = cls(store.url)
        client._opener.store = store
        client._parts.keeps_store = True
        return client

    @classmethod
    def shared(cls, base_url: str | None = None, *, token: str | None = None) -> "ControlPlaneClient":
        """Give the client that all handles with this `base_url` share in this process; without one, that of handles that name none.

        For closing it early. Handles that are used after that get a new one.
        """
        return client_for(base_url, token=token)

    @property
    def url(self) -> str:
        """Where the store is, without the password."""
        return self.store.url if self._url is None else without_password(self._url)

    @property
    def is_behind_server(self) -> bool:
        """Whether the store is reached through a server; opens nothing."""
        return is_server(os.environ.get("HOLDFAST_URL", "") if self._url is None else self._url)

    @property
    def is_closed(self) -> bool:
        """Whether `close` was called."""
        return self._is_closed

    @property
    def store(self) -> "Store":
        """The store, for threads; opened once. Tasks that need it open it with `async_store`, which does not block their event loop."""
        store = self._opener.store
        if store is not None and not self._is_closed:
            return store
        self._refuse_if_closed()
        return self._opener.get()

    @property
    def opened(self) -> "Store | None":
        """The store if it is open by now. One in memory is at once."""
        return self.store if self._opens_at_once() else self._opener.store

    @property
    def async_store(self) -> "AsyncStore":
        """The same store, for tasks: the first command opens it, in a thread."""
        if self._async_store is not None and not self._is_closed:
            return self._async_store
        self._refuse_if_closed()
        if self.opened is not None:
            self._async_store = self._opener.get_face()
            return self._async_store
        from holdfast.stores.opened_late import LateStore  # noqa: PLC0415 - see the top

        return LateStore(self._opener, without_password(self._url or ""), self._limits)

    def store_on(self, connection: "Connection | None") -> "Executor":
        """Give what executes commands in the open transaction of a connection of yours to the same database; without one, the store.

        What is executed there commits or vanishes with your work. A connection that commits every statement by itself does so here, too.
        """
        if connection is None:
            return self.store
        from holdfast.stores.driver_connections import driver_connection  # noqa: PLC0415 - see the top

        self._refuse_if_closed()
        driver = driver_connection(connection)
        early = None if self.opened is not None else before_opening(self._url, driver, self._limits)
        return self.store.within(driver) if early is None else early

    def async_store_on(self, connection: "AsyncConnection | None") -> "AsyncExecutor":
        """Give the same for tasks."""
        if connection is None:
            return self.async_store
        from holdfast.stores.opened_late import LateTransaction  # noqa: PLC0415 - see the top

        return LateTransaction(self._opener, connection, lambda driver: before_opening(self._url, driver, self._limits))

    @property
    def keepalive(self) -> "Keepalive":
        """What renews the claims and leases that are held through this client."""
        if self._keepalive is not None and not self._is_closed:
            return self._keepalive
        from holdfast.holding.keepalive import Keepalive  # noqa: PLC0415 - see the top

        with self._lock:
            self._refuse_if_closed()
            if self._keepalive is None:
                store = self.opened
                late = LateRenewals(self._opener, self._limits)
                self._keepalive = self._parts.keepalive = Keepalive(late) if store is None else Keepalive(store, store.waiters.clock)
            return self._keepalive

    def check_renewal(self) -> None:
        """Raise `StoreError` if nothing can be renewed in the background: a connection of your own belongs to its thread."""
        store = self._opener.store
        if store is not None and store.is_on_connection:
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
        """End every wait with `Closed` and every renewal, and give back what the store holds. Idempotent."""
        with self._lock:
            if self._is_closed:
                return
            self._is_closed = True
        self._parts.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aio.close()

    def __reduce__(self) -> "tuple[Callable[..., ControlPlaneClient], tuple[object, ...]]":
        """Let another process open the same store: one client there for this one, however often it is sent.

        What is sent has the URL and the token, with any password. A store that only this process can reach is refused with `TypeError`.
        """
        if self._is_closed:
            raise TypeError(f"{self!r} was closed, so it cannot be sent to another process: make a new client there")
        if self._parts.keeps_store:
            raise TypeError(
                f"{self!r} cannot be sent to another process, because its store is in this one: keep the data in a file or on a server, "
                "and give the handles that you send its URL as base_url="
            )
        if _clients.get((self._url, self.token)) is self:
            return _shared_again, (self._url, self.token)
        from holdfast.ids import new_id  # noqa: PLC0415 - see the top

        self._sent_as = self._sent_as or new_id()
        _sent[self._sent_as] = self
        return _received, (self._sent_as, self._url, self.token, self._limits)

    def __repr__(self) -> str:
        return f"ControlPlaneClient({None if self._url is None else without_password(self._url)!r})"

    def _opens_at_once(self) -> bool:
        url = os.environ.get("HOLDFAST_URL", "") if self._url is None else self._url
        return url.startswith("memory:")

    def _refuse_if_closed(self) -> None:
        if self._is_closed:
            raise Closed(CLOSED)


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
        face = self._client._opener.face  # noqa: SLF001 - of this module
        if face is not None:
            # Connections of tasks belong to their loop, and are closed in it.
            await face.aclose()


def client_for(base_url: str | None = None, *, token: str | None = None) -> ControlPlaneClient:
    """Give the client that this process has for the URL; without one, for that of `HOLDFAST_URL` or else the default file.

    `memory://` is one store per process here. A client that was closed is replaced.
    """
    url = os.environ.get("HOLDFAST_URL") if base_url is None else base_url
    client = _clients.get((url, token))
    if client is not None and not client.is_closed:
        return client  # Nearly always, and every call of a handle asks.
    with _lock:
        client = _clients.get((url, token))
        if client is None or client.is_closed:
            client = _clients[url, token] = ControlPlaneClient(url, token=token)
            client._opener.open_store = partial(connect_shared, url, token=token)  # noqa: SLF001 - made here
        return client


def _shared_again(url: str | None, token: str | None) -> ControlPlaneClient:
    return client_for(url, token=token)


def _received(name: str, url: str | None, token: str | None, limits: Limits) -> ControlPlaneClient:
    """The client of this process that stands for one that was sent."""
    with _lock:
        client = _sent.get(name)
        if client is None or client.is_closed:
            client = _sent[name] = ControlPlaneClient(url, token=token, limits=limits)
            client._sent_as = name  # noqa: SLF001 - made here
        return client


def _begin_in_child() -> None:
    """Go on after a fork: the thread that held a lock stayed in the parent. The stores look after themselves."""
    global _lock  # noqa: PLW0603 - as above
    _lock = threading.Lock()
    for client in list(_all):
        client._lock = threading.RLock()  # noqa: SLF001 - of this module
        client._opener.begin_in_child()  # noqa: SLF001 - as above


call_in_child(_begin_in_child)

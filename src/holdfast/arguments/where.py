"""Which client a handle, or one call of it, goes through."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from inspect import signature
from typing import Never, TypedDict

from holdfast.arguments.options import refuse_unknown
from holdfast.client import ControlPlaneClient, client_for
from holdfast.codec import PICKLE, Codec
from holdfast.passwords import without_password

_workers_on: list[ControlPlaneClient] = []
"""The client of all workers while a test redirects them, the innermost last."""


class Where(TypedDict, total=False):
    """Where the store is, by its client or its URL."""

    client: ControlPlaneClient | None
    """The client to use; it comes before `base_url`."""
    base_url: str | None
    """The URL of the store, whose client all handles of this process share."""


class StoreHandle:
    """A handle of something in a store: where that is, and how its values are encoded."""

    _codec: Codec
    _client: ControlPlaneClient | None
    _base_url: str | None

    def __init__(self, codec: Codec, client: ControlPlaneClient | None = None, base_url: str | None = None, **unknown: Never) -> None:
        if unknown:
            refuse_unknown(type(self).__name__.removeprefix("Async"), unknown, {*signature(type(self)).parameters})
        self._codec = codec
        if client is not None:
            check_client(client)
        self._client = client
        self._base_url = base_url

    def _reach(self, client: ControlPlaneClient | None = None, base_url: str | None = None) -> ControlPlaneClient:
        """Give the client of the call, else the handle's own."""
        if client is not None:
            check_client(client)
        elif base_url is None:
            client, base_url = self._client, self._base_url
        found = client_for(base_url) if client is None else client
        return refuse_pickle(found, self._codec) if self._codec.name == PICKLE.name else found


def reach(client: ControlPlaneClient | None = None, base_url: str | None = None) -> ControlPlaneClient:
    """Give the client, else that of the URL, else the default one."""
    if client is None:
        return client_for(base_url)
    check_client(client)
    return client


def check_client(client: object) -> None:
    """Refuse a URL in the place of a client."""
    if isinstance(client, str):
        raise TypeError(f"client must be a ControlPlaneClient, not {without_password(client)!r} (str); a URL is given as base_url=")


def refuse_pickle(client: ControlPlaneClient, *codecs: Codec) -> ControlPlaneClient:
    """Return the client, if no value from a server would be unpickled: anyone who may write there could run code here."""
    for codec in codecs:
        if codec.name == PICKLE.name and client.is_behind_server:
            raise ValueError(
                "codec=PICKLE is refused on a store behind a server, whose other clients could run code here: use MSGPACK or JSON"
            )
    return client


def reach_of_worker(own_client: ControlPlaneClient | None, own_url: str | None) -> ControlPlaneClient:
    """Give the client of a worker: its own, else of its URL or the default one; while a test redirects workers, the test's."""
    return _workers_on[-1] if _workers_on else reach(own_client, own_url)


class JobHandle:
    """A handle of what puts or runs jobs: a worker, a consumer, a task."""

    _client: ControlPlaneClient | None
    _base_url: str | None

    @property
    def client(self) -> ControlPlaneClient:
        """Its connection: its own, that of its `base_url`, or the default one; in a test with `drain` or `assert_put`, the test's."""
        return refuse_pickle(reach_of_worker(self._client, self._base_url), *self._codecs())

    def _codecs(self) -> Iterable[Codec]:
        """How its values are encoded."""
        return ()


@contextmanager
def redirect_workers(client: ControlPlaneClient) -> Iterator[None]:
    """While the block runs, every worker of this process uses this client, whatever client or URL it was given: for tests."""
    _workers_on.append(client)
    try:
        yield
    finally:
        _workers_on.remove(client)

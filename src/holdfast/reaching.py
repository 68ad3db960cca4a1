"""Which client a call of a handle goes through."""

from collections.abc import Iterator
from contextlib import contextmanager

from holdfast.client import ControlPlaneClient, client_for
from holdfast.codec import PICKLE, Codec

_workers_on: list[ControlPlaneClient] = []
"""The client of all workers while a test redirects them, the innermost last."""


def reach(
    client: ControlPlaneClient | None, base_url: str | None, own_client: ControlPlaneClient | None = None, own_url: str | None = None
) -> ControlPlaneClient:
    """Give the client of the call, else of its URL, else the handle's, else of the handle's URL or the default one."""
    if client is not None:
        return client
    if base_url is not None:
        return client_for(base_url)
    return own_client if own_client is not None else client_for(own_url)


def refuse_pickle(client: ControlPlaneClient, *codecs: Codec) -> ControlPlaneClient:
    """Give the client back, if no value that comes from a server would be unpickled: whoever may write there could run code here."""
    if any(codec.name == PICKLE.name for codec in codecs) and client.is_behind_server:
        raise ValueError(
            "codec=PICKLE is refused on a store behind a server, for whoever may write there could run code here: use MSGPACK or JSON"
        )
    return client


def reach_of_worker(own_client: ControlPlaneClient | None, own_url: str | None) -> ControlPlaneClient:
    """Give the client of a worker: its own, else of its URL or the default one; while a test redirects workers, the test's."""
    return _workers_on[-1] if _workers_on else reach(None, None, own_client, own_url)


@contextmanager
def redirect_workers(client: ControlPlaneClient) -> Iterator[None]:
    """While the block runs, every worker of this process uses this client, whatever client or URL it was given: for tests."""
    _workers_on.append(client)
    try:
        yield
    finally:
        _workers_on.remove(client)

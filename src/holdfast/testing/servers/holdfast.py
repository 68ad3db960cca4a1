"""A throw-away Holdfast server."""

from collections.abc import Iterator
from contextlib import contextmanager

from holdfast.connect import connect
from holdfast.errors import MissingExtra
from holdfast.server.app import ControlPlane, Options
from holdfast.server.audit import Actor
from holdfast.server.auth.scope_presets import durable_grants, worker_grants
from holdfast.server.auth.tokens import create_token
from holdfast.server.process.network_policy import Exposure
from holdfast.stores import Store


class HoldfastServer:
    """A server in a thread of this process, on a free port of this machine."""

    def __init__(self, url: str, store: Store) -> None:
        self.url = url
        self.store = store

    def token(self, *scopes: str, for_worker: str | None = None) -> str:
        """Make a token with these scopes, or with those that a worker of a queue needs. With the first one the server begins to ask."""
        granted = [] if for_worker is None else [grant.scope for grant in [*worker_grants(for_worker), *durable_grants(for_worker)]]
        return create_token(self.store, "test", [*scopes, *granted], by=Actor("a test", "this process"))[1]


@contextmanager
def holdfast(store_url: str = "memory://", *, allow_copy: bool = False) -> Iterator[HoldfastServer]:
    """Yield a server for tests, on an empty store in memory unless a URL is given; gone when the block ends. Needs the extra `server`.

    With `allow_copy` the store is copied through it, as with `holdfast serve --allow-copy`.
    """
    try:
        from holdfast.server.process.uvicorn_server import Server, serving  # noqa: PLC0415 - the other servers need no such extra
    except ModuleNotFoundError as error:
        raise MissingExtra(f"a server needs the package {error.name!r}: pip install 'holdfast[server]'") from error
    store = connect(store_url)
    with serving(Server(ControlPlane(store, Options(allows_copy=allow_copy)), Exposure(port=0))) as url:
        yield HoldfastServer(url, store)

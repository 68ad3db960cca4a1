"""The store of a surface: the given one, or one of its own in memory."""

from typing import TYPE_CHECKING, Final

from holdfast.client import ControlPlaneClient, client_for

if TYPE_CHECKING:
    from holdfast.stores import Store

OWN_STORE: Final = "memory://?values=reference&events=none"


def client_of(store: "str | ControlPlaneClient | Store | None") -> ControlPlaneClient:
    """The client of whatever names a store: a URL, a client or an open store; with none, of a new store in memory."""
    if store is None:
        return ControlPlaneClient(OWN_STORE)
    if isinstance(store, str):
        return client_for(store)
    return store if isinstance(store, ControlPlaneClient) else ControlPlaneClient.on(store)


def is_by_reference(client: ControlPlaneClient) -> bool:
    """Whether its store keeps keys and values as the caller's own objects."""
    store = client.opened
    return store is not None and store.by_reference

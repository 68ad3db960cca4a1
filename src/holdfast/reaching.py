"""Which client a call of a handle goes through."""

from holdfast.client import ControlPlaneClient, client_for


def reach(
    client: ControlPlaneClient | None, base_url: str | None, own_client: ControlPlaneClient | None = None, own_url: str | None = None
) -> ControlPlaneClient:
    """Give the client of the call, else of its URL, else the handle's, else of the handle's URL or the default one."""
    if client is not None:
        return client
    if base_url is not None:
        return client_for(base_url)
    return own_client if own_client is not None else client_for(own_url)

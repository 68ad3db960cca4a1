"""From the options of `holdfast serve` to a server that runs."""

import logging

from msgspec.structs import replace

from holdfast.connect import connect_shared
from holdfast.server.app import DEFAULT_OPTIONS, ControlPlane, Options
from holdfast.server.exposure import Exposure
from holdfast.server.serving import Server
from holdfast.server.tokens import ever_made, has_tokens

__all__ = ["Exposure", "Options", "run"]

_log = logging.getLogger("holdfast.server")


def run(store_url: str | None, exposure: Exposure, options: Options = DEFAULT_OPTIONS) -> None:
    """Serve the store until a signal comes; ValueError if it would be exposed without protection."""
    store = connect_shared(store_url)
    exposure.check(asks_for_tokens=has_tokens(store))
    server = Server(ControlPlane(store, replace(options, hosts=exposure.known_hosts)), exposure)
    # The engine, not the URL: that may hold a password.
    _log.info("serving %s at %s, %s", store.guarantees.engine, server.url, "by token" if ever_made(store) else "to anyone who reaches it")
    server.serve_forever()
    _log.info("ended: every request was answered")

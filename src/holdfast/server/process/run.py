"""Runs a server from the options of `holdfast serve`."""

import logging
import sys
import time
from collections.abc import Callable
from typing import Final

from msgspec.structs import replace

from holdfast.backoff import Backoff
from holdfast.connect import connect_shared
from holdfast.errors import StoreUnavailable
from holdfast.passwords import without_password
from holdfast.server.app import DEFAULT_OPTIONS, ControlPlane, Options
from holdfast.server.auth.tokens import ever_made, has_tokens
from holdfast.server.process.garbage import Garbage
from holdfast.server.process.network_policy import Exposure
from holdfast.server.process.uvicorn_server import Server
from holdfast.stores import Store

__all__ = ["Exposure", "Options", "run"]

BACKOFF: Final = Backoff(first_s=0.5, most_s=5.0)

SWITCH_S: Final = 0.0005
"""How long a thread that reads much keeps the event loop waiting; Python's own 5 ms would be most of the time of a small request."""

_log = logging.getLogger("holdfast.server")


def run(store_url: str | None, exposure: Exposure, options: Options = DEFAULT_OPTIONS) -> None:
    """Serve the store until a signal comes; ValueError if it would be exposed without protection."""
    sys.setswitchinterval(SWITCH_S)
    store = connect_patiently(store_url)
    exposure.check(asks_for_tokens=has_tokens(store))
    garbage = Garbage()
    server = Server(ControlPlane(store, replace(options, hosts=exposure.known_hosts)), exposure, when_started=garbage.watch)
    allowed = "by token" if ever_made(store) else "to every client that can reach it"
    _log.info("serving %s (%s) at %s, %s", without_password(store.url), store.guarantees.engine, server.url, allowed)
    garbage.begin()
    server.serve_forever()
    _log.info("stopped: every request was finished")


def connect_patiently(url: str | None, sleep: Callable[[float], object] = time.sleep) -> Store:
    """Open the store, as soon as it can be reached; an error that waiting cannot fix, such as a wrong password, is raised immediately."""
    tries = 0
    while True:
        try:
            return connect_shared(url)
        except StoreUnavailable as error:
            tries += 1
            if tries == 1:
                _log.warning("the server cannot reach its store, and continues once it can: %s", error)
            sleep(BACKOFF.delay_s(tries))

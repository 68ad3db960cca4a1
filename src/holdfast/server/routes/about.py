"""The routes about the server: what it serves, whether it is alive, and its API."""

import sys
from collections.abc import Callable
from functools import cache
from itertools import chain, islice, zip_longest
from typing import Final

from msgspec import json
from msgspec.structs import replace

from holdfast import __version__
from holdfast.commands import Count, Names
from holdfast.errors import HoldfastError
from holdfast.server.asgi import JSON_TYPE, Receive, Scope, Send, answer
from holdfast.server.auth.callers import caller_of, check
from holdfast.server.auth.permissions import METRICS
from holdfast.server.long_requests import Lasting
from holdfast.server.metrics import QUEUES, Metrics
from holdfast.server.namespaces.commands import inside
from holdfast.server.namespaces.names import DEFAULT, RESERVED, TOKENS, Namespace
from holdfast.server.routes.openapi import openapi
from holdfast.server.topic_waits import Topics
from holdfast.stores import AsyncStore
from holdfast.stores.http.problems import WireError
from holdfast.stores.http.protocol import VERSION, About
from holdfast.telemetry.meters import CONTENT_TYPE

LAST: Final = chr(sys.maxunicode)
"""Sorts behind every other character of a name."""

_encode: Callable[[object], bytes] = json.Encoder().encode


@cache
def _document() -> bytes:
    """The same for every server of a process: making it takes longer than all else that a server begins with."""
    return _encode(openapi())


class AboutRoute:
    """The server's version, and what the store behind it promises."""

    def __init__(self, store: AsyncStore) -> None:
        self._store = store

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        del receive
        caller = caller_of(scope)
        limits = replace(self._store.limits, name_bytes=caller.namespace.name_bytes)
        scopes = tuple(each.text for each in caller.scopes)
        about = About(__version__, VERSION, self._store.guarantees, limits, self._store.wall_offset_us(), scopes)
        await answer(scope, send, 200, _encode(about), JSON_TYPE)


class OpenApiRoute:
    """The OpenAPI document."""

    def __init__(self) -> None:
        self._document = _document()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        del receive
        await answer(scope, send, 200, self._document, JSON_TYPE)


class MetricsRoute:
    """What the server counts, and how its queues are, for Prometheus."""

    def __init__(self, store: AsyncStore, metrics: Metrics, lasting: Lasting, topics: Topics) -> None:
        self._store = store
        self._metrics = metrics
        self._lasting = lasting
        self._topics = topics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        del receive
        caller = caller_of(scope)
        check(caller, METRICS)
        namespace = None if caller.sees_all else caller.namespace
        gauges = {"holdfast_waiting_requests": len(self._lasting), "holdfast_topics": len(self._topics)}
        names = await (self._all_names() if namespace is None else self._names(namespace))
        queues = [(name if namespace is None else namespace.outside(name), await self._store.execute(Count(name))) for name in names]
        await answer(scope, send, 200, self._metrics.text(gauges, queues, namespace), (b"content-type", CONTENT_TYPE))

    async def _all_names(self) -> list[str]:
        """Queues of all namespaces in turn: one with many does not leave others out."""
        each = [await self._names(namespace) for namespace in (DEFAULT, *await self._namespaces(QUEUES - 1))]
        in_turn = chain.from_iterable(zip_longest(*each))
        return list(islice((name for name in in_turn if name is not None), QUEUES))

    async def _names(self, namespace: Namespace) -> list[str]:
        listed = await self._store.execute(inside(Names("queue", limit=QUEUES), namespace))
        return [settings.name for settings in listed.settings]

    async def _namespaces(self, limit: int) -> list[Namespace]:
        """The first namespaces that have a queue, beside the default one."""
        found, after = list[Namespace](), RESERVED
        while len(found) < limit:
            settings = (await self._store.execute(Names("queue", RESERVED, after, limit=1))).settings
            if not settings:
                break
            prefix = settings[0].name.partition("/")[0]
            found += [Namespace.named(prefix.removeprefix(RESERVED))]
            after = f"{prefix}/{LAST}"
        return found


class HealthRoute:
    """Says that the server lives, and with a store that it answers; nothing else.

    It asks for the server's own, so that no data of a tenant's decides.
    """

    def __init__(self, store: AsyncStore | None = None) -> None:
        self._store = store

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        del receive
        if self._store is not None:
            try:
                await self._store.execute(Names("dict", TOKENS, limit=1, exact=True))
            except HoldfastError as error:
                raise WireError("store_unavailable", 503, "the store does not respond") from error
        await answer(scope, send, 200, b'{"ok":true}', JSON_TYPE)

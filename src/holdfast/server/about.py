"""What a server says of itself: what it serves, whether it lives, and how to talk to it."""

from collections.abc import Callable

from msgspec import json
from msgspec.structs import replace

from holdfast import __version__
from holdfast.commands import Count, Names
from holdfast.errors import HoldfastError
from holdfast.server.asgi import JSON_TYPE, Receive, Scope, Send, answer
from holdfast.server.callers import caller_of, check
from holdfast.server.inside import inside
from holdfast.server.lasting import Lasting
from holdfast.server.metrics import CONTENT_TYPE, QUEUES, Metrics
from holdfast.server.namespaces import TOKENS
from holdfast.server.needs import METRICS
from holdfast.server.openapi import openapi
from holdfast.server.topics import Topics
from holdfast.stores import AsyncStore
from holdfast.stores.http.problems import WireError
from holdfast.stores.http.protocol import VERSION, About

_encode: Callable[[object], bytes] = json.Encoder().encode


class AboutRoute:
    """The server's version, and what the store behind it promises."""

    def __init__(self, store: AsyncStore) -> None:
        self._store = store

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        del receive
        limits = replace(self._store.limits, name_bytes=caller_of(scope).namespace.name_bytes)
        about = About(__version__, VERSION, self._store.guarantees, limits, self._store.wall_offset_us())
        await answer(scope, send, 200, _encode(about), JSON_TYPE)


class OpenApiRoute:
    """The OpenAPI document."""

    def __init__(self) -> None:
        self._document = _encode(openapi())

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
        names = Names("queue", limit=QUEUES)
        settings = (await self._store.execute(names if namespace is None else inside(names, namespace))).settings
        queues = [
            (each.name if namespace is None else namespace.outside(each.name), await self._store.execute(Count(each.name)))
            for each in settings
        ]
        await answer(scope, send, 200, self._metrics.text(gauges, queues, namespace), (b"content-type", CONTENT_TYPE))


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
                raise WireError("store_unavailable", 503, "the store does not answer") from error
        await answer(scope, send, 200, b'{"ok":true}', JSON_TYPE)

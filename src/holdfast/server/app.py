"""The server as an ASGI app: its layers, routes and lifespan."""

import time
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence

from msgspec import Struct

from holdfast.server.asgi import FORM, App, Receive, Scope, Send
from holdfast.server.auth.login_throttle import FAILED_LOGINS, WINDOW_S, Failures
from holdfast.server.auth.revocation import CHECK_S, Dismissals
from holdfast.server.auth.token_cache import KnownTokens
from holdfast.server.auth.token_uses import TokenUses
from holdfast.server.layers.dashboard import Dashboard, read_files
from holdfast.server.layers.fair import Fair
from holdfast.server.layers.hosts import LOOPBACK, Hosts
from holdfast.server.layers.limits import IN_FLIGHT, IN_FLIGHT_EACH, InFlight, each_token
from holdfast.server.layers.problems import Problems
from holdfast.server.layers.signin import COMMAND_S, SignIn
from holdfast.server.layers.telemetry import Telemetry
from holdfast.server.layers.tracing import traced
from holdfast.server.load.answer_memory import MOST_BYTES as ANSWERS
from holdfast.server.load.answer_memory import MOST_BYTES_EACH as ANSWERS_EACH
from holdfast.server.load.answer_memory import Memory
from holdfast.server.load.body_budget import MOST_BYTES, MOST_BYTES_EACH, Budget
from holdfast.server.load.fair_store import Active, FairStore
from holdfast.server.load.rate_limit import Rates
from holdfast.server.load.standstill import Stalls, uptime_s
from holdfast.server.long_requests import MOST, MOST_EACH, Lasting
from holdfast.server.metrics import Metrics
from holdfast.server.namespaces.admission import Tenants
from holdfast.server.namespaces.quotas import KnownQuotas
from holdfast.server.process.descriptors import Descriptors
from holdfast.server.request_bodies import BODY_BYTES, Bodies
from holdfast.server.routes.about import AboutRoute, HealthRoute, MetricsRoute, OpenApiRoute
from holdfast.server.routes.audit import AuditRoute
from holdfast.server.routes.command import CommandRoute
from holdfast.server.routes.flows import FLOWS, FlowRoute
from holdfast.server.routes.signal import SIGNAL_PATH, SignalRoute
from holdfast.server.routes.templates import KEY, Template, sent_path
from holdfast.server.routes.tokens import TokensRoute
from holdfast.server.routes.wait import WaitRoute
from holdfast.server.routes.watch import HEARTBEAT_S, WatchRoute
from holdfast.server.topic_waits import MOST as TOPICS
from holdfast.server.topic_waits import MOST_EACH as TOPICS_EACH
from holdfast.server.topic_waits import Topics
from holdfast.stores import AsyncStore, Store
from holdfast.stores.http.problems import WireError
from holdfast.stores.http.protocol import (
    ABOUT_PATH,
    AUDIT_PATH,
    HEALTH_PATH,
    METRICS_PATH,
    OPENAPI_PATH,
    READY_PATH,
    ROUTES,
    TOKENS_PATH,
    WAIT_PATH,
    WATCH_PATH,
)


class Options(Struct, frozen=True):
    """How a server is run."""

    hosts: Collection[str] = LOOPBACK
    """The names in a Host header that it answers to; `*` is any."""
    body_bytes: int = BODY_BYTES
    reading_bytes: int = MOST_BYTES
    """How much of long bodies may be in memory, in all and of each token."""
    reading_bytes_each: int = MOST_BYTES_EACH
    answers_bytes: int = ANSWERS
    """How many bytes answers may take, from when their commands are executed until they are sent, in all and of each token."""
    answers_bytes_each: int = ANSWERS_EACH
    in_flight: int = IN_FLIGHT
    """How many requests may be under way at once, beside those that wait, in all and of each token."""
    in_flight_each: int = IN_FLIGHT_EACH
    waiting: int = MOST
    """How many may wait or watch, in all and for each token."""
    waiting_each: int = MOST_EACH
    topics: int = TOPICS
    """How many topics may be waited on, in all and by each token."""
    topics_each: int = TOPICS_EACH
    heartbeat_s: float = HEARTBEAT_S
    """How often a watch shows that it lives."""
    check_waiting_s: float = CHECK_S
    """How often those who wait are checked, beside when the store hints that a token changed."""
    failed_logins: int = FAILED_LOGINS
    """How many wrong tokens an address may try in `failed_logins_s`."""
    failed_logins_s: float = WINDOW_S
    requests_each_per_s: float | None = None
    """How many requests a second each token may make, None for any number."""
    command_s: float | None = COMMAND_S
    """How long one command may take at the store, None for any time."""
    allows_copy: bool = False
    """Whether anyone may copy the store, while it has no tokens."""
    now: Callable[[], float] = time.monotonic
    """The clock by which what is known of tokens grows old, and failed logins are forgotten."""
    uptime: Callable[[], float] = uptime_s
    """The clock by which the server notices that it stood still."""


DEFAULT_OPTIONS = Options()


class ControlPlane:
    """Serves one store, on one event loop.

    It begins when the ASGI server tells it that it lives. Before the requests there are are drained, end the waits; closing, at the end
    of its life, closes the store.
    """

    def __init__(self, store: Store, options: Options = DEFAULT_OPTIONS) -> None:
        self._store = store
        self._options = options
        self._lasting = Lasting(options.waiting, options.waiting_each)
        self._memory = Memory(options.answers_bytes, options.answers_bytes_each)
        self._served: _Served | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        elif scope["type"] == "http" and self._served is not None:
            await self._served.app(scope, receive, send)

    def begin(self) -> None:
        """Make the routes, on the running event loop."""
        options, metrics = self._options, Metrics()
        tasks = self._store.for_tasks()
        active = Active(options.now)
        budget = Budget(lambda: active.count > 1, options.reading_bytes, options.reading_bytes_each)
        store = FairStore(tasks, active, budget, options.now)
        topics = Topics(self._store, budget, options.topics, options.topics_each)
        stalls = Stalls(options.uptime)
        stalls.watch()
        descriptors = Descriptors()
        descriptors.watch()
        quotas = KnownQuotas(self._store, tasks, options.now)
        tenants = Tenants(tasks, quotas, options.now)
        bodies = Bodies(budget, options.body_bytes)
        posts: dict[str, App] = {
            route.path: CommandRoute(
                route.command, store, self._lasting, metrics, stalls=stalls, tenants=tenants, bodies=bodies, memory=self._memory
            )
            for route in ROUTES
        }
        posts[WAIT_PATH] = WaitRoute(topics, self._lasting, tenants, bodies, budget)
        gets = _gets(store, topics, self._lasting, metrics, options, tenants=tenants, memory=self._memory)
        tokens = KnownTokens(self._store, tasks, options.now)
        failures = Failures(options.failed_logins, options.failed_logins_s, options.now)
        uses = TokenUses(tasks, options.now)
        routes = Routes(gets, posts, _templates(store, tenants, bodies, self._memory))
        signed_in = SignIn(
            InFlight(Fair(routes, active), options.in_flight_each, 429, each_token),
            tokens,
            failures,
            Rates(options.requests_each_per_s, options.now),
            uses,
            command_s=options.command_s,
            allows_copy=options.allows_copy,
        )
        answered = Problems(Hosts(InFlight(Dashboard(signed_in, read_files()), options.in_flight), options.hosts))
        paths = frozenset({*gets, *posts})
        dismissals = Dismissals(tokens, self._lasting, options.check_waiting_s)
        app = traced(Telemetry(answered, metrics, paths), paths)
        self._served = _Served(store, topics, tokens, uses, quotas, tenants, stalls, descriptors, dismissals, app)

    def end_waits(self) -> None:
        """Let every request that waits answer now, and no other wait any more."""
        self._lasting.end()

    async def close(self) -> None:
        """Give back what it holds, and the store."""
        self.end_waits()
        if self._served is not None:
            self._served.topics.close()
            self._served.dismissals.close()
            self._served.tokens.close()
            self._served.quotas.close()
            self._served.tenants.close()
            self._served.stalls.close()
            self._served.descriptors.close()
            await self._served.uses.aclose()
            await self._served.store.aclose()

    async def _live(self, receive: Receive, send: Send) -> None:
        await receive()
        self.begin()
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await self.close()
        await send({"type": "lifespan.shutdown.complete"})


class _Served(Struct):
    store: AsyncStore
    topics: Topics
    tokens: KnownTokens
    uses: TokenUses
    quotas: KnownQuotas
    tenants: Tenants
    stalls: Stalls
    descriptors: Descriptors
    dismissals: Dismissals
    app: App


class Routes:
    """Finds the route by its whole path, and those with names in their path by its form."""

    def __init__(self, gets: Mapping[str, App], posts: Mapping[str, App], templates: Sequence[Template]) -> None:
        self._methods = {"POST": posts, "GET": gets}
        self._templates = templates

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        route = self._methods.get(scope["method"], {}).get(scope["path"]) or self._by_form(scope)
        return route(scope, receive, send)

    def _by_form(self, scope: Scope) -> App:
        path, sent, methods = scope["path"], sent_path(scope), set[str]()
        for template in self._templates:
            if (names := template.names_in(sent)) is not None:
                if template.method == scope["method"]:
                    scope[KEY], scope[FORM] = names, template.path
                    return template.app
                methods.add(template.method)
        methods |= {method for method, routes in self._methods.items() if path in routes}
        if not methods:
            raise WireError("no_such_route", 404, "unknown path: see /openapi.json")
        allowed = ", ".join(sorted(methods))
        raise WireError("wrong_method", 405, f"this path takes {allowed}", ((b"allow", allowed.encode()),))


def _gets(
    store: AsyncStore, topics: Topics, lasting: Lasting, metrics: Metrics, options: Options, *, tenants: Tenants, memory: Memory
) -> dict[str, App]:
    return {
        WATCH_PATH: WatchRoute(store, lasting, tenants, memory, options.heartbeat_s),
        ABOUT_PATH: AboutRoute(store),
        AUDIT_PATH: AuditRoute(store),
        TOKENS_PATH: TokensRoute(store),
        OPENAPI_PATH: OpenApiRoute(),
        HEALTH_PATH: HealthRoute(),
        READY_PATH: HealthRoute(store),
        METRICS_PATH: MetricsRoute(store, metrics, lasting, topics),
    }


def _templates(store: AsyncStore, tenants: Tenants, bodies: Bodies, memory: Memory) -> list[Template]:
    flows = [Template(spec.method, spec.path, FlowRoute(spec, store, tenants, bodies, memory)) for spec in FLOWS]
    return [Template("POST", SIGNAL_PATH, SignalRoute(store, tenants, bodies, memory)), *flows]

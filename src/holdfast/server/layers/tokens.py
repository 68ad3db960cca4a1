"""Who asks is known by their token, and by nothing else; whoever guesses is slowed down."""

import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from holdfast.commands.topics import dict_topic, watch_topic
from holdfast.server.asgi import App, Receive, Scope, Send, header
from holdfast.server.callers import KEY
from holdfast.server.reserved import TOKENS
from holdfast.server.tokens import Token, find, split, token_of
from holdfast.stores import AsyncStore
from holdfast.stores.http.problems import WireError
from holdfast.stores.http.protocol import HEALTH_PATH, READY_PATH

OPEN: Final = frozenset({HEALTH_PATH, READY_PATH})
"""What asks for no token, and says nothing."""

KNOWN_S: Final = 1.0
"""How long a token is known without asking the store again, should a change of it not be heard of."""

KNOWN_MAX: Final = 10_000
UNKNOWN: Final = (0.0, None)
FAILURES: Final = 10
FAILURE_EVERY_S: Final = 6.0
_CHALLENGE = ((b"www-authenticate", b'Bearer realm="holdfast"'),)


class SignIn:
    """Lets in who shows a token that the store keeps."""

    def __init__(self, app: App, store: AsyncStore, now: Callable[[], float] = time.time) -> None:
        self._app = app
        self._store = store
        self._now = now
        self._known: OrderedDict[str, tuple[float, Token | None]] = OrderedDict()
        self._failures = Failures(now)
        self.stop = store.waiters.listen(watch_topic(dict_topic(TOKENS)), lambda _: self._known.clear())
        store.mark(watch_topic(dict_topic(TOKENS)))  # The store may have to begin to listen itself.

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"] not in OPEN:
            scope[KEY] = await self._caller(scope)
        await self._app(scope, receive, send)

    async def _caller(self, scope: Scope) -> Token:
        address = scope["client"][0] if scope.get("client") else ""
        shown = header(scope, b"authorization")
        if shown is None:
            raise WireError("not_signed_in", 401, "this server asks for a token: send it as Authorization: Bearer", _CHALLENGE)
        kind, _, text = shown.decode("latin-1").partition(" ")
        parts = split(text.strip()) if kind.lower() == "bearer" else None
        if parts is None or self._known.get(parts[0], UNKNOWN)[1] is None:
            # Whoever came before is let in all the same: behind a proxy everybody has one address.
            self._failures.check(address)
        token = await self._find(parts[0]) if parts is not None else None
        if parts is None or token is None or not token.is_shown_by(parts[1], self._now()):
            self._failures.add(address)
            raise WireError("not_signed_in", 401, "the token is not known here, was revoked, or its time has passed", _CHALLENGE)
        return token

    async def _find(self, token_id: str) -> Token | None:
        now, known = self._now(), self._known.get(token_id)
        if known is not None and 0 <= now - known[0] < KNOWN_S:
            return known[1]
        entries = (await self._store.execute(find(token_id[:100]))).entries
        token = token_of(entries[0]) if entries else None
        self._known[token_id] = (now, token)
        while len(self._known) > KNOWN_MAX:
            self._known.popitem(last=False)
        return token


class Failures:
    """Counts failed tries by address: so many at once, and then one every few seconds."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        # When an address will have no failures left, the latest last.
        self._clear_at: OrderedDict[str, float] = OrderedDict()

    def check(self, address: str) -> None:
        """Refuse to look at another try of an address that failed too often."""
        wait_s = self._clear_at.get(address, 0.0) - self._now() - (FAILURES - 1) * FAILURE_EVERY_S
        if wait_s > 0:
            seconds = str(int(wait_s) + 1)
            raise WireError(
                "too_many_requests", 429, f"too many tokens failed: try again in {seconds} s", ((b"retry-after", seconds.encode()),)
            )

    def add(self, address: str) -> None:
        now = self._now()
        self._clear_at[address] = max(now, self._clear_at.pop(address, now)) + FAILURE_EVERY_S
        while len(self._clear_at) > KNOWN_MAX:
            self._clear_at.popitem(last=False)

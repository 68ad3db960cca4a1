"""Identifies the caller by its token, or as anonymous on a server without tokens."""

import logging
from typing import Final

from holdfast.commands.request import Request, current
from holdfast.errors import NotAllowed
from holdfast.server.asgi import App, Receive, Scope, Send, header
from holdfast.server.auth.browsers import refuse_other_origins
from holdfast.server.auth.callers import KEY, Caller, anyone, who_asks
from holdfast.server.auth.login_throttle import Failures
from holdfast.server.auth.scopes import ANY, matches
from holdfast.server.auth.token_cache import KnownTokens
from holdfast.server.auth.token_uses import TokenUses
from holdfast.server.auth.tokens import Token, id_of
from holdfast.server.load.rate_limit import Rates
from holdfast.server.namespaces.names import DEFAULT, Namespace
from holdfast.stores.http.problems import WireError
from holdfast.stores.http.protocol import HEALTH_PATH, NAMESPACE_PREFIX, READY_PATH

OPEN: Final = frozenset({HEALTH_PATH, READY_PATH})
"""What says nothing but that the server lives, to anyone."""

CHALLENGE: Final = ((b"www-authenticate", b"Bearer"),)

COMMAND_S: Final = 10.0
"""How long one command may take at the store."""

_log = logging.getLogger("holdfast.server.security")


class SignIn:
    """Puts the caller into the scope, in the namespace that the path names, before a byte of the body is read."""

    def __init__(
        self,
        app: App,
        tokens: KnownTokens,
        failures: Failures,
        rates: Rates,
        uses: TokenUses,
        *,
        command_s: float | None = COMMAND_S,
        allows_copy: bool = False,
    ) -> None:
        self._app = app
        self._tokens = tokens
        self._failures = failures
        self._rates = rates
        self._uses = uses
        self._command_s = command_s
        self._allows_copy = allows_copy

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"] not in OPEN:
            name, scope["path"] = split_path(scope["path"])
            asked = None if name is None else Namespace.named(name)
            where = (scope.get("client") or ("unknown",))[0]
            is_open = self._tokens.are_known_not_needed()
            caller = scope[KEY] = self._anyone(scope, where, asked) if is_open else await self._caller(scope, where, asked)
            # Where nobody is known by a token, the address is who they are.
            whose = who_asks(caller)
            self._rates.check(whose)
            current.set(Request(whose, self._command_s))
        await self._app(scope, receive, send)

    async def _caller(self, scope: Scope, where: str, asked: Namespace | None) -> Caller:
        if not await self._tokens.asks():
            return self._anyone(scope, where, asked)
        text = _bearer(header(scope, b"authorization"))
        token = await self._sign_in(text, where)
        return self._signed_in(token, text, where, asked)

    def _anyone(self, scope: Scope, where: str, asked: Namespace | None) -> Caller:
        refuse_other_origins(scope)
        return anyone(where, asked or DEFAULT, self._stay_anyone, self._tokens.are_known_not_needed, may_copy=self._allows_copy)

    async def _stay_anyone(self) -> None:
        if await self._tokens.asks():
            raise _no_token()

    async def _sign_in(self, text: str, where: str) -> Token:
        token_id = id_of(text)
        token = None if token_id is None else self._tokens.known(token_id) or await self._tokens.find(token_id)
        if token is None or not token.fits(text):
            # Only now: a good token is let in whatever others sent from the same address.
            self._failures.check(where)
            self._failures.add(where)
            _log.warning("a login from %s failed, with %s", where, f"token {token_id}" if token_id else "an invalid token")
            raise _unwelcome()
        self._uses.note(token.id)
        return token

    def _signed_in(self, token: Token, text: str, where: str, asked: Namespace | None) -> Caller:
        async def stay() -> None:
            known = await self._tokens.find(token.id)
            if known is None or not known.fits(text):
                raise _unwelcome()

        def is_known() -> bool:
            return self._tokens.known(token.id) is token

        namespace, sees_all = _namespace(token, asked), ANY in token.namespaces
        return Caller(f"token {token.id}", where, namespace, token.grants, stay, is_known, f"{token.id}/", sees_all=sees_all)


def split_path(path: str) -> tuple[str | None, str]:
    """The namespace that a path begins with, if any, and the rest of the path."""
    if not path.startswith(NAMESPACE_PREFIX):
        return None, path
    name, _, rest = path.removeprefix(NAMESPACE_PREFIX).partition("/")
    return name, f"/{rest}"


def _namespace(token: Token, asked: Namespace | None) -> Namespace:
    """The namespace that is meant: the one asked for, else the default one or the only one that the token is for."""
    if asked is None:
        names = token.namespaces
        asked = Namespace.named(names[0]) if len(names) == 1 and ANY not in names[0] else DEFAULT
    if not any(matches(pattern, asked.name) for pattern in token.namespaces):
        of = ", ".join(token.namespaces)
        raise NotAllowed(
            f"token {token.id} is of {of}, not of namespace {asked.name}: name one of its own, as in URL{NAMESPACE_PREFIX}NAME"
        )
    return asked


def _bearer(authorization: bytes | None) -> str:
    if authorization is None:
        raise _no_token()
    scheme, _, text = authorization.decode("latin-1").partition(" ")
    return text.strip() if scheme.lower() == "bearer" else ""


def _no_token() -> WireError:
    return WireError("not_signed_in", 401, "this server requires a token: give token=, or set HOLDFAST_TOKEN", CHALLENGE)


def _unwelcome() -> WireError:
    detail = "unknown token: it was revoked, it has expired, or it belongs to another server; ask for a new one"
    return WireError("not_signed_in", 401, detail, CHALLENGE)

"""The caller of a request; the sign-in layer puts it into the request's scope."""

from collections.abc import Awaitable, Callable
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from holdfast.commands.names import Verb
from holdfast.errors import NotAllowed
from holdfast.server.asgi import Scope as AsgiScope
from holdfast.server.audit import Actor
from holdfast.server.auth.permissions import COPY, Kind, Need
from holdfast.server.auth.scopes import ADMIN, Scope
from holdfast.server.namespaces.names import Namespace, is_reserved, refuse_reserved

KNOWERS: Final[tuple[Verb, ...]] = ("read", "claim", "put", "hold", "write")
"""A caller with any of these rights on something may know that it is there, and when it is worth asking."""

KEY: Final = "holdfast.caller"
"""Where the caller is in the scope."""


class Caller(Struct, frozen=True):
    """The caller of a request."""

    name: str
    """What logs and the audit call them; never a secret."""
    where: str
    """The address they ask from."""
    namespace: Namespace
    scopes: tuple[Scope, ...]
    stay: Callable[[], Awaitable[None]]
    """Raises once they are welcome no more; asked before each command of a request, however long that lasts."""
    is_known: Callable[[], bool]
    """Whether it is known without asking the store that they are welcome; then `stay` need not be asked."""
    commands: str = ""
    """Prefix of the ids of their commands in the store, before the namespace: no caller gets the answer of another."""
    may_copy: bool = True
    """Whether their scopes are enough to copy a whole store."""
    sees_all: bool = True
    """Whether what they may read of the server is about all namespaces, or about theirs alone."""

    @property
    def actor(self) -> Actor:
        """Who the audit says it was."""
        return Actor(self.name, self.where, self.namespace.name)

    def may(self, need: Need) -> bool:
        """Whether they may do that."""
        for scope in self.scopes:  # noqa: SIM110 - asked for every command, and a generator would double what it costs
            if scope.allows(need):
                return True
        return False

    def may_somewhere(self, kind: Kind, verb: Verb) -> bool:
        """Whether they may do that with anything of the kind."""
        return any(scope.allows_somewhere(kind, verb) for scope in self.scopes)

    def may_anywhere(self, verb: Verb) -> bool:
        """Whether they may do that with anything of any kind."""
        return any(scope.kind == ADMIN or verb in scope.verbs for scope in self.scopes)


def who_asks(caller: Caller) -> str:
    """By what callers are told apart: their token, or their address where tokens are not used."""
    return caller.commands or caller.where


def may_know(caller: Caller, need: Need) -> bool:
    """Whether they may do anything with what is named."""
    return not is_reserved(need.name) and any(caller.may(replace(need, verb=verb)) for verb in KNOWERS)


def may_know_one_of(caller: Caller, kind: Kind, text: str) -> bool:
    """Whether they may do anything with something of the kind whose name, and then a colon, the text begins with."""
    return not is_reserved(text) and any(scope.allows_beginning(kind, KNOWERS, text) for scope in caller.scopes)


_EVERYTHING: Final = Scope.parse(ADMIN)


def anyone(
    where: str, namespace: Namespace, stay: Callable[[], Awaitable[None]], is_known: Callable[[], bool], *, may_copy: bool
) -> Caller:
    """The caller of a server that asks for no token: may do everything, but copy the store only where the server was started for it."""
    return Caller("anyone", where, namespace, (_EVERYTHING,), stay, is_known, may_copy=may_copy)


def caller_of(scope: AsgiScope) -> Caller:
    """Who asks; a layer before has found out."""
    caller: Caller = scope[KEY]
    return caller


def check(caller: Caller, need: Need) -> None:
    """Refuse what the caller may not do, and names that no caller may use."""
    refuse_reserved(need.name)
    if need == COPY and not caller.may_copy:
        raise NotAllowed(
            f"{caller.name} may not copy a store through its server: copy the store itself, or start the server with --allow-copy"
        )
    if not caller.may(need):
        raise NotAllowed(f"{caller.name} may not {need.verb} {need.kind} {need.name!r}: ask for a token with the scope {need.scope}")

"""Who asks; the layer that knows them puts one into the request's scope."""

from collections.abc import Iterable
from typing import Protocol

from holdfast.errors import NotAllowed
from holdfast.server.asgi import Scope
from holdfast.server.needs import Need
from holdfast.server.reserved import instead_of

KEY = "holdfast.caller"
"""Where the caller is in the scope."""


class Caller(Protocol):
    """Somebody who asks."""

    @property
    def name(self) -> str:
        """What logs call them; never a secret."""
        ...

    def may(self, need: Need) -> bool:
        """Whether they may do that."""
        ...


class Anyone:
    """The caller of a server that asks for no token: may do everything."""

    name = "anyone"

    def may(self, need: Need) -> bool:
        del need
        return True


ANYONE = Anyone()


def caller_of(scope: Scope) -> Caller:
    """Who asks; a layer before has found out."""
    caller: Caller = scope[KEY]
    return caller


def check(caller: Caller, needs: Iterable[Need]) -> None:
    """Refuse what the caller may not do: all of it is needed."""
    for need in needs:
        if not is_allowed(caller, need):
            raise NotAllowed(f"{caller.name} may not {need.verb} {need.kind} {need.name!r}: it takes a token with the scope {need.scope}")


def is_allowed(caller: Caller, need: Need) -> bool:
    """Whether the caller may do that."""
    real = instead_of(need)
    return real is not None and caller.may(real)

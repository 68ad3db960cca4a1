"""Who asks; the layer that knows them puts one into the request's scope."""

from typing import Protocol

from holdfast.errors import NotAllowed
from holdfast.server.asgi import Scope
from holdfast.server.needs import Need

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


def check(caller: Caller, need: Need) -> None:
    """Refuse what the caller may not do."""
    if not caller.may(need):
        raise NotAllowed(f"{caller.name} may not {need.verb} {need.kind} {need.name!r}: ask for a token with the scope {need.scope}")

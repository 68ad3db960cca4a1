"""Translates names in commands into the caller's namespace."""

from typing import Any, Final, TypeVar

from msgspec import Struct

from holdfast.commands import Command, Counts, Leases, Names, Together
from holdfast.commands.names import Listable, Verb, Whole
from holdfast.errors import NotAllowed
from holdfast.records.policies import Kind
from holdfast.server.namespaces.names import LAST_RESERVED, Namespace

C = TypeVar("C", bound=Command[Any])

LISTING: Final = (Names, Leases, Counts, Together)
"""What lists names, or may."""


def inside(command: C, namespace: Namespace) -> C:
    """The same command in the namespace. In the default one names stand as they are, but that no list shows the others'."""
    if not namespace.prefix and not isinstance(command, LISTING):
        return command
    return command.named(_Inside(namespace))


class _Inside(Struct, frozen=True):
    """Puts names into a namespace."""

    namespace: Namespace

    def object(self, kind: Kind, name: str, verb: Verb) -> str:
        del kind, verb
        return self.namespace.inside(name)

    def later(self, queue: str) -> str:
        return self.namespace.inside(queue)

    def lease(self, name: str | None, key: str, verb: Verb) -> tuple[str | None, str]:
        del verb
        return (None, self.namespace.inside_key(key)) if name is None else (self.namespace.inside(name), key)

    def listed(self, kind: Listable, prefix: str, after: str | None, verb: Verb, *, exact: bool) -> tuple[str, str | None]:
        del kind, verb, exact
        if not self.namespace.prefix:
            return prefix, max(after or "", LAST_RESERVED)
        return self.namespace.prefix + prefix, None if after is None else self.namespace.prefix + after

    def topic(self, topic: str, verb: Verb) -> str:
        del verb
        return self.namespace.topic_inside(topic)

    def whole(self, what: Whole) -> None:
        if what == "copy" and self.namespace.prefix:
            raise NotAllowed(f"a copy is of the whole store, and {self.namespace.name} is a part of it: copy the store itself")

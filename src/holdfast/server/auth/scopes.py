"""Scopes of a token: verbs on objects whose names match a pattern."""

from collections.abc import Iterable
from typing import Final, Self, get_args

from msgspec import Struct

from holdfast.codec import check_name
from holdfast.commands.names import Verb
from holdfast.server.auth.permissions import Kind, Need

ANY: Final = "*"
ADMIN: Final = "admin"
VERBS: Final[dict[str, frozenset[str]]] = {
    "queue": frozenset({"read", "put", "claim", "signal", "manage"}),
    "dict": frozenset({"read", "write", "hold", "manage"}),
    "lease": frozenset({"read", "hold", "manage"}),
    "server": frozenset({"read"}),
    ANY: frozenset(get_args(Verb)) - {ADMIN},
}
"""What can be done with each kind of thing; any kind is a queue, a dict or a lease, and never the server."""


class Scope(Struct, frozen=True):
    """Verbs on the things of one kind, or of any, whose names match; what no scope allows is refused."""

    kind: str
    pattern: str
    verbs: frozenset[str]

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read `queue:orders-*:put,claim`, `dict:settings:read`, `lease:*:*`, `*` (all but the server itself) or `admin` (that too)."""
        if text == ADMIN:
            return cls(ADMIN, ANY, frozenset())
        if text == ANY:
            return cls(ANY, ANY, VERBS[ANY])
        kind, _, rest = text.partition(":")
        pattern, _, verbs = rest.rpartition(":")
        if kind not in VERBS or not pattern:
            raise ValueError(f"{text!r} is not a scope: write KIND:PATTERN:VERBS as in queue:orders-*:put,claim, or * or admin")
        check_name(pattern, "scope")
        return cls(kind, pattern, _verbs(kind, verbs))

    @property
    def text(self) -> str:
        """The scope as it is written."""
        if self.kind == ADMIN:
            return ADMIN
        return f"{self.kind}:{self.pattern}:{','.join(sorted(self.verbs))}"

    def allows(self, need: Need) -> bool:
        """Whether this is enough for what is needed."""
        if self.kind == ADMIN:
            return True
        return need.verb in self.verbs and self._covers(need.kind) and matches(self.pattern, need.name)

    def allows_somewhere(self, kind: Kind, verb: Verb) -> bool:
        """Whether the verb is allowed on anything of the kind."""
        return self.kind == ADMIN or (verb in self.verbs and self._covers(kind))

    def allows_beginning(self, kind: Kind, verbs: Iterable[Verb], text: str) -> bool:
        """Whether any of the verbs is allowed on a thing whose name, and then a colon, the text begins with.

        Such a text may begin with many names; all of them are looked at in one pass.
        """
        if self.kind == ADMIN:
            return True
        return self._covers(kind) and not self.verbs.isdisjoint(verbs) and matches(f"{self.pattern}:*", text)

    def _covers(self, kind: Kind) -> bool:
        return self.kind == kind or (self.kind == ANY and kind != "server")


def matches(pattern: str, name: str) -> bool:
    """Whether the name fits the pattern, in which a star stands for anything, nothing too, and all else for itself."""
    first, *rest = pattern.split(ANY)
    if not rest:
        return name == pattern
    *middle, last = rest
    if len(name) < len(first) + len(last) or not name.startswith(first) or not name.endswith(last):
        return False
    begin, end = len(first), len(name) - len(last)
    for part in middle:
        found = name.find(part, begin, end)
        if found < 0:
            return False
        begin = found + len(part)
    return True


def _verbs(kind: str, text: str) -> frozenset[str]:
    verbs = VERBS[kind] if text == ANY else frozenset(text.split(","))
    if not verbs <= VERBS[kind]:
        unknown = ", ".join(sorted(map(repr, verbs - VERBS[kind])))
        raise ValueError(f"{kind} has no verb {unknown}: use one of {', '.join(sorted(VERBS[kind]))}, or * for all")
    return verbs

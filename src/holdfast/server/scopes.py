"""What a token allows: verbs on things whose names match a pattern, `queue:jobs-*:put,claim`, or `admin` for everything."""

import re
from typing import Final, Self, get_args

from msgspec import Struct

from holdfast.server.needs import Kind, Need
from holdfast.stores.http.protocol import Verb

ADMIN: Final = "admin"
KINDS: Final = get_args(Kind)
VERBS: Final = tuple(verb for verb in get_args(Verb) if verb != ADMIN)


class Scope(Struct, frozen=True):
    """One scope, taken apart."""

    kind: str
    pattern: str
    verbs: frozenset[str]

    @classmethod
    def parse(cls, text: str) -> Self:
        """Take a scope apart; ValueError for what is none. The pattern is all between the first colon and the last: names have colons."""
        if text == ADMIN:
            return cls("*", "*", frozenset({ADMIN}))
        kind, _, rest = text.partition(":")
        pattern, _, verbs = rest.rpartition(":")
        allowed = frozenset(VERBS if verbs == "*" else verbs.split(","))
        if kind not in (*KINDS, "*") or not pattern or not allowed <= set(VERBS):
            raise ValueError(f"{text!r} is no scope: write kind:pattern:verbs with a kind of {KINDS} and verbs of {VERBS}, or admin")
        return cls(kind, pattern, allowed)

    def allows(self, need: Need) -> bool:
        if ADMIN in self.verbs:
            return True
        return need.verb in self.verbs and self.kind in ("*", need.kind) and matches(self.pattern, need.name)


def matches(pattern: str, name: str) -> bool:
    """Whether the name is like the pattern, in which only a star means anything: as much of the name as you like."""
    return re.fullmatch(".*".join(map(re.escape, pattern.split("*"))), name, re.DOTALL) is not None

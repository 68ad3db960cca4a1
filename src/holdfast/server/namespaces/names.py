"""The form of namespaced names in the store.

In the store a name of the namespace `acme` begins with ` acme/`; those of the default namespace stand as they are. No caller may say a name
that begins with a space, so no caller can name what is another's, or the server's own, which begins with ` /`.
"""

import re
from collections.abc import Callable
from typing import Final, Self

from msgspec import Struct

from holdfast.codec.limits import DEFAULT_LIMITS
from holdfast.errors import NotAllowed

RESERVED: Final = " "
"""What only the server's own names in the store begin with; it sorts before every other character a name can have."""

LAST_RESERVED: Final = f"{RESERVED}~"
"""Sorts behind every reserved name, and before every other."""

TOKENS: Final = f"{RESERVED}/tokens"
TOKEN_USES: Final = f"{RESERVED}/token-uses"
AUDIT: Final = f"{RESERVED}/audit"
QUOTAS: Final = f"{RESERVED}/quotas"
USAGE: Final = f"{RESERVED}/usage"
"""The dicts that the server keeps for itself."""

_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,31}")


class Namespace(Struct, frozen=True):
    """The names that one tenant sees."""

    name: str
    prefix: str

    @classmethod
    def named(cls, name: str) -> Self:
        """The namespace of that name; it needs no creation."""
        check_namespace(name)
        return cls(name, "" if name == DEFAULT_NAME else f"{RESERVED}{name}/")

    @property
    def name_bytes(self) -> int:
        """How long a name may be here."""
        return DEFAULT_LIMITS.name_bytes - len(self.prefix)

    def inside(self, name: str) -> str:
        """The name under which the store keeps it."""
        return self._prefixed(name, DEFAULT_LIMITS.name_bytes)

    def inside_key(self, key: str) -> str:
        """The key under which the store keeps a lease that is of no dict."""
        return self._prefixed(key, DEFAULT_LIMITS.key_bytes)

    def outside(self, name: str) -> str:
        """The name by which the caller knows it."""
        return name.removeprefix(self.prefix)

    def has(self, name: str) -> bool:
        """Whether a name in the store is one of this namespace."""
        return name.startswith(self.prefix) if self.prefix else not is_reserved(name)

    def topic_inside(self, topic: str) -> str:
        """The topic in the store."""
        return topic if not self.prefix else _rename(topic, lambda name: self.prefix + name)

    def topic_outside(self, topic: str) -> str:
        """The topic as the caller knows it."""
        return _rename(topic, self.outside)

    def text_outside(self, text: str) -> str:
        """A sentence, with the names in it as the caller knows them; in the id of a claim they are quoted."""
        return text.replace(self.prefix, "").replace(f"%20{self.name}%2F", "") if self.prefix else text

    def _prefixed(self, name: str, limit_bytes: int) -> str:
        if not self.prefix:
            return name
        inside = self.prefix + name
        if len(inside.encode()) > limit_bytes:
            size_bytes, room_bytes = len(name.encode()), limit_bytes - len(self.prefix)
            raise ValueError(f"{name[:30]!a}… is {size_bytes:,} bytes long, more than the limit of {room_bytes:,} in namespace {self.name}")
        return inside


DEFAULT_NAME: Final = "default"
DEFAULT: Final = Namespace(DEFAULT_NAME, "")


def check_namespace(name: str) -> str:
    """Refuse what cannot be the name of a namespace."""
    if not _NAME.fullmatch(name):
        raise ValueError("this is not a valid namespace: it must have 1 to 32 of a-z, 0-9, '.', '_' and '-', a letter or digit first")
    return name


def is_reserved(name: str) -> bool:
    """Whether only the server may say the name."""
    return name.startswith(RESERVED)


def refuse_reserved(name: str) -> None:
    """Refuse a name that only the server may say."""
    if is_reserved(name):
        raise NotAllowed(f"{name[:30]!a} begins with a space; such names are reserved for the server: use another")


def _rename(topic: str, turn: Callable[[str], str]) -> str:
    kind, _, rest = topic.partition(":")
    if kind == "watch":
        return f"watch:{_rename(rest, turn)}"
    if kind == "lease" and rest.startswith(":"):
        return f"lease::{turn(rest[1:])}"
    if kind == "line":
        lease_id, _, key = rest.partition(":")
        return f"line:{lease_id}:{turn(key)}"
    return f"{kind}:{turn(rest)}"

"""Tokens: 256 bits of which the store keeps only a hash, with scopes, namespaces and an end."""

import hashlib
import hmac
import secrets
from collections.abc import Sequence
from functools import lru_cache
from typing import Final, Self

from msgspec import Raw, Struct, json

from holdfast.commands import Change, Read, Write
from holdfast.records import Entry
from holdfast.server.needs import Need
from holdfast.server.reserved import TOKENS
from holdfast.server.scopes import Scope, matches

PREFIX: Final = "hf"
NAMESPACE: Final = "/"
"""What stands between a namespace and the name in it."""


class Token(Struct, frozen=True, omit_defaults=True):
    """What is known of one token; the secret itself is not."""

    id: str
    name: str
    """What people call it; logs do, too."""
    hash: str
    scopes: tuple[str, ...]
    namespaces: tuple[str, ...] = ()
    """Those it may be used in; none is all."""
    created_at: float = 0.0
    expires_at: float | None = None

    @classmethod
    def make(
        cls, name: str, scopes: Sequence[str], *, namespaces: Sequence[str] = (), now: float, expires_in_s: float | None = None
    ) -> tuple[Self, str]:
        """Make a token; answer what to keep, and the text to hand out, which is shown this once."""
        if not name or not name.isprintable():
            raise ValueError("a token needs a name of printable characters, for logs and for whoever revokes it")
        for scope in scopes:
            Scope.parse(scope)
        token_id, secret = secrets.token_hex(8), secrets.token_urlsafe(32)
        expires_at = None if expires_in_s is None else now + expires_in_s
        token = cls(token_id, name, hash_of(secret), tuple(scopes), tuple(namespaces), now, expires_at)
        return token, f"{PREFIX}_{token_id}_{secret}"

    def is_shown_by(self, secret: str, now: float) -> bool:
        """Whether the secret is this token's, and its time has not passed."""
        return hmac.compare_digest(self.hash, hash_of(secret)) and (self.expires_at is None or now < self.expires_at)

    def may(self, need: Need) -> bool:
        """Whether one of its scopes allows that, in one of its namespaces."""
        if not any(scope.allows(need) for scope in parsed(self.scopes)):
            return False
        if not self.namespaces:
            return True
        return need.kind != "server" and any(matches(f"{namespace}{NAMESPACE}*", need.name) for namespace in self.namespaces)


def hash_of(secret: str) -> str:
    """What is kept of a secret. It has 256 random bits, so no slow hash is needed."""
    return hashlib.sha256(secret.encode()).hexdigest()


def split(text: str) -> tuple[str, str] | None:
    """The id and the secret of a token's text; None for what is no token."""
    prefix, _, rest = text.partition("_")
    token_id, _, secret = rest.partition("_")
    return (token_id, secret) if prefix == PREFIX and token_id and secret and text.isascii() else None


@lru_cache(1_000)
def parsed(scopes: tuple[str, ...]) -> tuple[Scope, ...]:
    """The scopes, taken apart."""
    return tuple(map(Scope.parse, scopes))


def keep(token: Token) -> Write:
    """What keeps a token in the store."""
    return Write(TOKENS, [Change(token.id, value=Raw(json.encode(token)), expect="absent")], all_or_none=True)


def revoke(token_id: str) -> Write:
    """What forgets a token; refused if there is none."""
    return Write(TOKENS, [Change(token_id, do="delete", expect="present")], all_or_none=True)


def find(token_id: str | None = None) -> Read:
    """What looks for one token, or for all."""
    return Read(TOKENS, None if token_id is None else [token_id])


def token_of(entry: Entry) -> Token:
    """The token that is kept in the entry."""
    return json.decode(entry.value, type=Token)

"""Tokens: creating, recognising and storing them.

A token is `hf_`, its id, `_`, 256 random bits and a checksum, so that a scanner for secrets finds one wherever it was left, and a slip of
the hand is noticed before anything is asked. Only its SHA-256 is kept: of 256 random bits nothing slower is needed.
"""

import hashlib
import hmac
import re
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from secrets import token_hex, token_urlsafe
from typing import Final

from msgspec import Raw, Struct, json

from holdfast.codec import check_duration, check_name
from holdfast.commands import Change, Length, Names, Read, Together, Write
from holdfast.records import Entry
from holdfast.server.audit import Act, Actor, recorded
from holdfast.server.auth.scopes import ADMIN, ANY, Scope
from holdfast.server.namespaces.names import DEFAULT_NAME, TOKEN_USES, TOKENS, check_namespace
from holdfast.stores import Store

KNOWN_S: Final = 1.0
"""How old what a server knows of a token may be. A revocation waits so long, and then no server takes it any more."""

TOKEN: Final = re.compile(r"hf_([0-9a-f]{12})_[A-Za-z0-9_-]{43}([0-9a-f]{8})")
"""What every token looks like, for scanners too."""

NAMESPACES_MAX: Final = 100
SCOPES_MAX: Final = 100
PAGE: Final = 1_000


class Token(Struct, frozen=True):
    """What is kept of a token; it cannot be used to sign in."""

    id: str
    name: str
    digest: str
    namespaces: tuple[str, ...]
    """Names, or patterns of names, of the namespaces it is for."""
    scopes: tuple[str, ...]
    created_at: float
    expires_at: float | None = None

    @property
    def grants(self) -> tuple[Scope, ...]:
        """Its scopes, taken apart. An `admin` of some namespaces only is so there, and not of the server."""
        return _grants(self.scopes, ANY in self.namespaces)

    def fits(self, text: str) -> bool:
        """Whether this is the token, in a time that tells nothing of how nearly it is."""
        return hmac.compare_digest(self.digest, digest(text))


class ListedToken(Struct, frozen=True):
    """What is shown of a token: all but what it is told apart by."""

    id: str
    name: str
    namespaces: tuple[str, ...]
    scopes: tuple[str, ...]
    created_at: float
    """Seconds of the wall clock, since 1970."""
    expires_at: float | None
    last_used_at: float | None
    """To ten minutes."""


class TokenPage(Struct, frozen=True):
    """Tokens that are good now, by id."""

    tokens: list[ListedToken]
    more: bool = False


def listed(token: Token, used_at: float | None) -> ListedToken:
    """A token as it is shown."""
    return ListedToken(token.id, token.name, token.namespaces, token.scopes, token.created_at, token.expires_at, used_at)


def new_token() -> tuple[str, str]:
    """Make a token: its id, and its text."""
    token_id = token_hex(6)
    text = f"hf_{token_id}_{token_urlsafe(32)}"
    return token_id, text + _checksum(text)


def id_of(text: str) -> str | None:
    """The id in the text of a token; None if it is none."""
    found = TOKEN.fullmatch(text)
    return found[1] if found is not None and _checksum(text[:-8]) == found[2] else None


def digest(text: str) -> str:
    """What is kept of the text."""
    return hashlib.sha256(text.encode()).hexdigest()


def create_token(
    store: Store,
    name: str,
    scopes: Sequence[str],
    namespaces: Sequence[str] = (DEFAULT_NAME,),
    expires_s: float | None = None,
    *,
    by: Actor,
) -> tuple[Token, str]:
    """Make a token and keep it, for good or for `expires_s` by the store's clock; return it, and its text, which is kept nowhere."""
    check_name(name, "token")
    _check_grants(scopes, namespaces)
    if expires_s is not None:
        check_duration(expires_s, "expires_s", zero=False)
    token_id, text = new_token()
    now = time.time()
    until = None if expires_s is None else now + expires_s
    token = Token(token_id, name, digest(text), tuple(namespaces), tuple(scopes), now, until)
    write = Write(TOKENS, [Change(token_id, value=Raw(json.encode(token)), expect="absent", ttl_s=expires_s)])
    facts = {"name": name, "scopes": token.scopes, "namespaces": token.namespaces, "expires_at": until}
    store.execute(Together([write, recorded(by, Act("create token", token_id, facts))]))
    return token, text


def list_tokens(store: Store) -> list[Token]:
    """The tokens that are good now, the oldest first."""
    return sorted((json.decode(entry.value, type=Token) for entry in _entries(store, TOKENS)), key=lambda token: token.created_at)


def last_uses(store: Store) -> dict[str, float]:
    """When each token was last used, by its id, in seconds since 1970; servers write it down every ten minutes at most."""
    return {entry.key: json.decode(entry.value, type=float) for entry in _entries(store, TOKEN_USES)}


def _entries(store: Store, name: str) -> Iterator[Entry]:
    after: str | None = None
    while True:
        page = store.execute(Read(name, after=after, limit=PAGE))
        yield from page.entries
        if not page.more:
            return
        after = page.entries[-1].key


def revoke_token(store: Store, token_id: str, *, by: Actor, rest: Callable[[float], None] = time.sleep) -> bool:
    """Take a token back, and return when no server takes it any more; False if there is none with this id.

    A server hears of it as soon as the store's hint reaches it; one that no hint reaches asks the store again after a second at the latest,
    which is what is waited for here.
    """
    if not store.execute(Read(TOKENS, [token_id])).entries:
        return False
    write = Write(TOKENS, [Change(token_id, do="delete")])
    forget = Write(TOKEN_USES, [Change(token_id, do="delete")])
    store.execute(Together([write, forget, recorded(by, Act("revoke token", token_id))]))
    rest(KNOWN_S)
    return True


def has_tokens(store: Store) -> bool:
    """Whether there is a token that is good now."""
    return store.execute(Length(TOKENS)) > 0


def ever_made(store: Store) -> bool:
    """Whether a server of the store asks for tokens."""
    return bool(store.execute(EVER_MADE).settings)


EVER_MADE: Final = Names("dict", prefix=TOKENS, limit=1)
"""Finds something once a token was ever made. From then on a server asks for one: the last to expire must not open the door."""


@lru_cache(1_000)
def _grants(scopes: tuple[str, ...], is_of_all: bool) -> tuple[Scope, ...]:  # noqa: FBT001 - a key of the cache
    return tuple(Scope.parse(scope if is_of_all or scope != ADMIN else ANY) for scope in scopes)


def _check_grants(scopes: Sequence[str], namespaces: Sequence[str]) -> None:
    if not 1 <= len(scopes) <= SCOPES_MAX or not 1 <= len(namespaces) <= NAMESPACES_MAX:
        raise ValueError(f"a token needs 1 to {SCOPES_MAX} scopes and 1 to {NAMESPACES_MAX} namespaces: give --scope or --for-worker")
    for scope in scopes:
        Scope.parse(scope)
    for namespace in namespaces:
        if namespace != ANY:
            check_namespace(namespace.replace(ANY, "x"))


def _checksum(text: str) -> str:
    return f"{zlib.crc32(text.encode()):08x}"

"""`GET /v1/tokens`: the tokens that are good now, without what they are told apart by."""

from collections.abc import Callable
from typing import Final

from msgspec import json

from holdfast.commands import Read
from holdfast.server.asgi import JSON_TYPE, Receive, Scope, Send, answer
from holdfast.server.auth.callers import caller_of, check
from holdfast.server.auth.permissions import SERVER
from holdfast.server.auth.tokens import Token, TokenPage, listed
from holdfast.server.namespaces.names import TOKEN_USES, TOKENS
from holdfast.stores import AsyncStore

MOST: Final = 200

_encode: Callable[[object], bytes] = json.Encoder().encode


class TokensRoute:
    """Lists tokens for an administrator of the whole server."""

    def __init__(self, store: AsyncStore) -> None:
        self._store = store

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        del receive
        check(caller_of(scope), SERVER)
        # Not through the caller's reach: these have names that no caller may say.
        kept = await self._store.execute(Read(TOKENS, limit=MOST))
        tokens = [json.decode(entry.value, type=Token) for entry in kept.entries]
        uses = dict[str, float]()
        if tokens:
            used = await self._store.execute(Read(TOKEN_USES, [token.id for token in tokens]))
            uses = {entry.key: json.decode(entry.value, type=float) for entry in used.entries}
        await answer(scope, send, 200, _encode(TokenPage([listed(token, uses.get(token.id)) for token in tokens], kept.more)), JSON_TYPE)

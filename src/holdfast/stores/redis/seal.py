"""The seal of a store in a Redis or Valkey server."""

from typing import Any

from holdfast.errors import StoreError
from holdfast.stores.redis.address import read_url
from holdfast.stores.redis.connections import Connections
from holdfast.stores.redis.requests import Words
from holdfast.stores.redis.server_info import refuse_if_missing
from holdfast.stores.redis.store import OPENING
from holdfast.stores.retrying import Tries, retry
from holdfast.stores.seals import Sealed, sealed


class RedisSeal:
    """The seal of one prefix."""

    def __init__(self, url: str) -> None:
        self._address = read_url(url)
        self.url: str = self._address.shown
        prefix = self._address.prefix
        self._format, self._names = f"{prefix}:format", (f"{prefix}:moved", f"{prefix}:target_at")

    def read(self) -> Sealed | None:
        found, *texts = self._ask(("MGET", self._format, *self._names))
        refuse_if_missing(found, self.url)
        return sealed(*(None if text is None else text.decode() for text in texts))

    def remove(self) -> None:
        self._ask(("DEL", *self._names))

    def _ask(self, words: Words) -> Any:
        connections = Connections(self._address, None)
        try:
            (reply,) = retry(lambda: connections.ask(words), Tries(OPENING))
        finally:
            connections.close()
        if isinstance(reply, Exception):
            raise StoreError(f"{self.url}: the server returned an error ({reply})")
        return reply

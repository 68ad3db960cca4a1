"""The HTTP store for threads."""

from typing import TYPE_CHECKING, Any, TypeVar

from msgspec import json
from msgspec.structs import replace

from holdfast.clock import Clock
from holdfast.codec import Limits
from holdfast.commands import Command
from holdfast.errors import StoreError
from holdfast.process import forks
from holdfast.stores import Guarantees
from holdfast.stores._sync.networked import execute
from holdfast.stores.http._sync.waiting import wait
from holdfast.stores.http.address import Address
from holdfast.stores.http.connections import Connections
from holdfast.stores.http.listening import Listener
from holdfast.stores.http.older_servers import LeftOut, refuse_unknown
from holdfast.stores.http.protocol import ABOUT_PATH, PATHS, VERSION, WALL_OFFSET, About, decode_answer, encode_command
from holdfast.stores.http.replies import Reply, body_of
from holdfast.stores.networked import ConnectedRenewer, NetworkedStore
from holdfast.stores.retrying import Patience, Tries, retry
from holdfast.stores.undo_cancelled import finish_taking_back
from holdfast.stores.waiting.waiters import Mark, seldom

if TYPE_CHECKING:
    from holdfast.stores.http.tasks import AsyncHttpStore

R = TypeVar("R")

DEFAULT_LIMITS = Limits()
DEFAULT_PATIENCE = Patience()
FIRST_S = 5.0
"""How long a server is tried that never answered: more likely the URL is wrong than that it restarts just then."""


class HttpStore(NetworkedStore):
    """The store that a server at this URL serves.

    Nothing is sent before the first command. A command is tried again under its own id while the server is away, for as long as
    `patience` says, and for five seconds at most while no server has answered yet. `clock` is for a test that owns the server's clock too.
    """

    def __init__(
        self,
        url: str,
        *,
        token: str | None = None,
        limits: Limits = DEFAULT_LIMITS,
        patience: Patience = DEFAULT_PATIENCE,
        clock: Clock | None = None,
    ) -> None:
        self.address: Address = Address.parse(url, token)
        super().__init__(self.address.url, limits, clock)
        self._patience = patience
        self._about: About | None = None
        self._wall_offset_us: int | None = None
        self._tasks: AsyncHttpStore | None = None
        self._left_out = LeftOut()
        self._begin()
        forks.look_after(self)

    def _begin(self) -> None:
        """Start without a connection, in a forked child again: those there are belong to the parent."""
        self._connections = Connections(self.address)
        self.listener: Listener = Listener(self.address, self.waiters.hint)

    @property
    def patience(self) -> Patience:
        """How long a command is tried from now on."""
        if self._wall_offset_us is not None:
            return self._patience
        return replace(self._patience, most_s=min(FIRST_S, self._patience.most_s))

    @property
    def about(self) -> About:
        """What the server reports about itself; asked for once."""
        if self._about is None:
            self.refuse_if_closed()
            self._about = self.greeted(retry(lambda: self._connections.send(ABOUT_PATH), Tries(self.patience)))
        return self._about

    @property
    def guarantees(self) -> Guarantees:
        """Those of the store behind the server."""
        return self.about.guarantees

    def execute(self, command: Command[R]) -> R:
        return execute(self, self._connections.send, command)

    def request(self, command: Command[Any]) -> tuple[str, bytes]:
        return PATHS[type(command)], encode_command(self._left_out.without(command))

    def answer(self, command: Command[R], reply: Reply) -> R:
        try:
            body = body_of(reply)
        except ValueError as error:
            self._left_out.learn(error)
            raise
        except StoreError as error:
            refuse_unknown(command, error, reply.status, self.url)
            raise
        if (offset := reply.headers.get(WALL_OFFSET)) is not None:
            self._wall_offset_us = int(offset)
        answer: R = decode_answer(command, body)
        return answer

    def greeted(self, reply: Reply) -> About:
        """What the server's greeting says; raises if it speaks another protocol."""
        about = json.decode(body_of(reply), type=About)
        if about.protocol != VERSION:
            raise StoreError(f"{self.url} uses protocol {about.protocol}, but this client uses {VERSION}: install the same version on both")
        return about

    def wait(self, mark: Mark, timeout_s: float, due_in_s: float | None = None, poll_s: float | None = None) -> None:
        wait(self, mark, timeout_s, due_in_s, poll_s)

    def poll_s(self, topic: str, poll_s: float | None) -> float | None:
        """How often to ask in vain: seldom, while the server tells when there is something."""
        return seldom(poll_s) if self.listener.hears_of(topic) else poll_s

    def wall_offset_us(self) -> int:
        return self.about.wall_offset_us if self._wall_offset_us is None else self._wall_offset_us

    def for_tasks(self) -> "AsyncHttpStore":
        from holdfast.stores.http.tasks import AsyncHttpStore  # noqa: PLC0415 - threads need no aiohttp

        if self._tasks is None:
            self._tasks = AsyncHttpStore(self)
        return self._tasks

    def for_renewals(self) -> ConnectedRenewer:
        return ConnectedRenewer(self, Connections(self.address))

    def close(self) -> None:
        """End every wait with `Closed`, and hang up. What the server keeps stays."""
        finish_taking_back(self)
        self.closing.set()
        self.waiters.close()
        self.listener.close()
        self._connections.close()
        if self._tasks is not None:
            self._tasks.connections.close()

    def begin_in_child(self) -> None:
        """See `forks`."""
        self.waiters.reset()
        self._begin()

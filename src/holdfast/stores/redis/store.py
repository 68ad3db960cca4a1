"""The store in a Redis or Valkey server, for threads."""

from typing import Any, TypeVar

from holdfast.clock import Clock
from holdfast.codec import Limits
from holdfast.commands import Command, refusal_errors
from holdfast.process import forks
from holdfast.stores import Guarantees
from holdfast.stores._sync.networked import execute
from holdfast.stores.networked import ConnectedRenewer, NetworkedStore
from holdfast.stores.redis.address import read_url
from holdfast.stores.redis.connections import Connections
from holdfast.stores.redis.listening import Listener
from holdfast.stores.redis.replies import read_reply
from holdfast.stores.redis.requests import request_for
from holdfast.stores.redis.server_info import FORMAT, check, check_format, read_server, refuse_if_missing, reply_or
from holdfast.stores.redis.tasks import RedisTasks
from holdfast.stores.retrying import Patience, Tries, retry
from holdfast.stores.undo_cancelled import finish_taking_back
from holdfast.stores.waiting.waiters import Mark

R = TypeVar("R")

OPENING = Patience(most_s=5.0)
"""How long to try to reach a server that was never reached before."""


class RedisStore(NetworkedStore):
    """A store in a Redis or Valkey server.

    Every command is one script, so it is atomic, and one round trip. A connection that fails is replaced, and the command sent again
    under its id, for at most a minute.
    """

    def __init__(
        self,
        url: str,
        *,
        limits: Limits = Limits(),
        clock: Clock | None = None,
        patience: Patience = Patience(),  # noqa: B008 - frozen
        create: bool = True,
    ) -> None:
        self._address = read_url(url)
        super().__init__(self._address.shown, limits, clock)
        self.patience = patience
        self.connections: Connections = Connections(self._address, clock)
        self.guarantees: Guarantees = self._check_server()
        self._check_data(create=create)
        self.listener: Listener = Listener(self._address, self.waiters)
        self._tasks: RedisTasks | None = None
        forks.look_after(self)

    def _check_server(self) -> Guarantees:
        asked = retry(
            lambda: self.connections.ask(("INFO",), ("CONFIG", "GET", "appendfsync"), ("CONFIG", "GET", "maxmemory-policy")),
            Tries(OPENING),
        )
        info, *config = [reply_or(reply, []) for reply in asked]
        server = read_server(info or b"", [part for reply in config for part in reply])
        check(server, self.url, allows_eviction=self._address.allows_eviction)
        return server.guarantees()

    def _check_data(self, *, create: bool) -> None:
        """Refuse data that was moved away or has another form; data that is yet to come bears the number of ours."""
        prefix = self._address.prefix
        asked = ("MGET", f"{prefix}:moved", f"{prefix}:format", f"{prefix}:counter")
        moved, found, first = reply_or(retry(lambda: self.connections.ask(asked), Tries(OPENING))[0], (None, None, None))
        if moved is not None:
            raise refusal_errors.moved(self.url, moved.decode())
        check_format(found, first, self.url)
        if not create:
            refuse_if_missing(found, self.url)
        if found is None:
            retry(lambda: self.connections.ask(("SET", f"{prefix}:format", str(FORMAT), "NX")), Tries(OPENING))

    def execute(self, command: Command[R]) -> R:
        return execute(self, self.connections.send, command)

    def request(self, command: Command[Any]) -> tuple[str, list[str | bytes]]:
        """The script of a command, and what it is called with; tests that own the clock also say what it shows."""
        request = request_for(command, self._address.prefix)
        arguments: list[str | bytes] = [str(len(request.keys)), *request.keys, request.argument, command.id]
        if self.clock is not None:
            arguments += [str(self.clock.now_us()), str(self.clock.wall_offset_us())]
        return request.name, arguments

    def answer(self, command: Command[R], reply: Any) -> R:
        return read_reply(command, reply)

    def mark(self, topic: str) -> Mark:
        self.listener.want(topic)
        return self.waiters.mark(topic)

    def wait(self, mark: Mark, timeout_s: float, due_in_s: float | None = None, poll_s: float | None = None) -> None:
        self.waiters.wait(mark, timeout_s, due_in_s, poll_s)

    def for_tasks(self) -> RedisTasks:
        if self._tasks is None:
            self._tasks = RedisTasks(self, self._address)
        return self._tasks

    def for_renewals(self) -> ConnectedRenewer:
        return ConnectedRenewer(self, Connections(self._address, self.clock))

    def close(self) -> None:
        if self.closing.is_set():
            return
        finish_taking_back(self)
        self.closing.set()
        self.waiters.close()
        self.listener.close()
        self.connections.close()
        if self._tasks is not None:
            self._tasks.pipes.close()

    def begin_in_child(self) -> None:
        """Go on after a fork: connections, the listening thread and waiters stayed in the parent."""
        self.connections.begin_in_child()
        self.listener.begin()
        self.waiters.reset()

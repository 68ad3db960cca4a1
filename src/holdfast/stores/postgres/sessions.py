"""Sessions with a server: sending statements, deadlines, and prepared statements on direct connections."""

import _thread
import asyncio
import itertools
import logging
import time
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from typing import Any, Self, TypeVar

import psycopg
from psycopg import errors
from psycopg.abc import PQGen
from psycopg.generators import execute
from psycopg.pq import ExecStatus, TransactionStatus
from psycopg.pq.abc import PGcancel, PGresult

from holdfast.commands.request import current
from holdfast.stores.postgres.address import Address
from holdfast.stores.postgres.placeholders import SESSION_SETTINGS
from holdfast.stores.postgres.schema import begin_here
from holdfast.stores.postgres.sockets import NoAnswer, run, run_async
from holdfast.stores.postgres.statements import Call, as_sent, numbered

R = TypeVar("R")

ANSWER_S = 15.0
"""How long a server may be silent that was asked something, before the connection is given up."""

LIFETIME_S = 3600.0
IDLE_S = 600.0
"""A session is not used again when it is older, or lay idle for longer: what is between may have forgotten it without a word."""

# Autocommit: one statement is one transaction, and one round trip. psycopg prepares nothing: see below.
SESSION: dict[str, Any] = {"autocommit": True, "prepare_threshold": None}

PROCESS = b"select pg_backend_pid()"

numbered_once: Callable[[bytes], bytes] = cache(numbered)


logger: logging.Logger = logging.getLogger(__name__)


def log_warning(diagnostic: errors.Diagnostic) -> None:
    """Pass on what the server warns of; its other notices are about its own work."""
    if diagnostic.severity_nonlocalized == "WARNING":
        logger.warning("PostgreSQL warns: %s", diagnostic.message_primary)


class Session(psycopg.Connection[Any]):
    """A connection on which nothing waits longer than `answer_s` for the server; threads and tasks use it one after the other."""

    answer_s: float = ANSWER_S
    generation: int = 0
    """Which of the pool's generations it was made in."""

    def __init__(self, *given: Any, **more: Any) -> None:
        super().__init__(*given, **more)
        self._made_at = self._used_at = time.monotonic()
        self._is_ended = False
        # The names of what is prepared, where the session is ours.
        self.prepared: dict[bytes, bytes] | None = None
        # Never used twice: an interrupt may leave a statement that the server prepared and nobody noted.
        self._numbers = itertools.count()
        self.add_notice_handler(log_warning)

    def __del__(self, *_: Any) -> None:
        """End without psycopg's warning: a session that an interrupt lost is closed like this, and a program may end without closing."""

    @classmethod
    def open(cls, address: Address, answer_s: float = ANSWER_S) -> Self:
        """Connect, within the time that the URL says."""
        session = cls.connect(address.conninfo, **SESSION)
        session.answer_s = answer_s
        return session

    @classmethod
    def open_for_calls(cls, address: Address) -> Self:
        """Connect, and keep our settings and what is prepared in the session where that is safe."""
        session = cls.open(address)
        try:
            begin_here(session, address.schema)
            if has_session(session, session.execute(PROCESS).fetchone()):
                session.execute(SESSION_SETTINGS, (address.schema,))
                session.prepared = {}
        except BaseException:
            session.close()
            raise
        return session

    def ask(self, call: Call, timeout_s: float = ANSWER_S) -> str:
        """Make the call in a thread."""
        try:
            return run(self._making(call), self.pgconn.socket, timeout_s)
        except NoAnswer:
            self.close()
            raise

    async def ask_async(self, call: Call, timeout_s: float = ANSWER_S) -> str:
        """Make the call in a task; the server is asked to end it when its request's time is over, or its caller no longer waits."""
        most_s = current.get().most_s
        if most_s is None:
            return await self._ask_async(call, timeout_s)
        timer = asyncio.get_running_loop().call_later(most_s, self.end_call)
        try:
            return await self._ask_async(call, max(timeout_s, most_s + ANSWER_S))
        except asyncio.CancelledError:
            self.end_call()
            raise
        finally:
            timer.cancel()

    async def _ask_async(self, call: Call, timeout_s: float) -> str:
        try:
            return await run_async(self._making(call), self.pgconn.socket, timeout_s)
        except NoAnswer:
            self.close()
            raise

    def end_call(self) -> None:
        """Have the server end what it does for this session, which is not used again: the word may come late, and end the next."""
        self._is_ended = True
        try:
            cancel = self.pgconn.get_cancel()
        except psycopg.Error:
            return  # The connection was lost, and with it what the server did.
        # Not a `Thread`: its `start` waits until it runs, and an event loop may be what waits.
        _thread.start_new_thread(_send, (cancel,))

    def wait(self, gen: PQGen[R], interval: float = 0.0, timeout: float | None = None) -> R:  # noqa: ARG002 - as psycopg calls it
        """What cursors and transactions wait with: as psycopg, but not for ever, and without a word to a server when interrupted."""
        try:
            return run(gen, self.pgconn.socket, self.answer_s)
        except NoAnswer:
            self.close()
            raise

    def hear(self) -> None:
        """Take in what the server sent unasked, and pass it to the handlers of notifications; raises if the connection is gone."""
        self.pgconn.consume_input()
        while (notice := self.pgconn.notifies()) is not None:
            if self.pgconn.notify_handler is not None:
                self.pgconn.notify_handler(notice)

    def is_usable(self, now: float) -> bool:
        """Whether it may be given to the next: at rest, and neither too old nor too long unused."""
        is_at_rest = self.pgconn.transaction_status == TransactionStatus.IDLE
        return is_at_rest and not self._is_ended and now < self._made_at + LIFETIME_S and now < self._used_at + IDLE_S

    def rest(self, now: float) -> None:
        """Begin to lie idle."""
        self._used_at = now

    def _making(self, call: Call) -> PQGen[str]:
        """Send and hear without a cursor: that costs a client twice as much as all it has to do."""
        parameters = [as_sent(parameter) for parameter in call.parameters]
        if self.prepared is None:
            self.pgconn.send_query_params(numbered_once(call.statement), parameters)
        else:
            name = yield from self._name_of(call.leaner or call.statement, self.prepared)
            self.pgconn.send_query_prepared(name, parameters)
        result = checked((yield from execute(self.pgconn)), ExecStatus.TUPLES_OK)
        return (result.get_value(0, 0) or b"").decode()

    def _name_of(self, statement: bytes, prepared: dict[bytes, bytes]) -> PQGen[bytes]:
        name = prepared.get(statement)
        if name is None:
            name = b"holdfast_%d" % next(self._numbers)
            self.pgconn.send_prepare(name, numbered_once(statement))
            checked((yield from execute(self.pgconn)), ExecStatus.COMMAND_OK)
            prepared[statement] = name
        return name


def _send(cancel: PGcancel) -> None:
    with suppress(psycopg.Error):  # The server is away, and so is what it did.
        cancel.cancel()


def checked(results: list[PGresult], wanted: ExecStatus) -> PGresult:
    """The last result; raises the error where it is one."""
    result = results[-1]
    if result.status != wanted:
        raise errors.error_from_result(result, "utf-8")
    return result


def has_session(connection: psycopg.BaseConnection[Any], row: tuple[Any, ...] | None) -> bool:
    """Whether the connection has a session of its own, of which this is the process.

    A pooler that lends sessions for a transaction each does not know whose process it will be, and told of another: there the next
    statement may meet a session in which nothing, or something else, was prepared under its name.
    """
    return row is not None and row[0] == connection.info.backend_pid

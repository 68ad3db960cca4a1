"""Making one call on a session of a pool, in a thread or a task; every error of the driver becomes one of ours."""

import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial

import psycopg

from holdfast.commands.request import current
from holdfast.errors import HoldfastError, StoreUnavailable
from holdfast.stores.postgres.address import Address
from holdfast.stores.postgres.calls import Calls
from holdfast.stores.postgres.failures import UNDEFINED, not_connected, raised, refuse_if_moved
from holdfast.stores.postgres.pool import NoSession, Pool
from holdfast.stores.postgres.sessions import ANSWER_S, Session
from holdfast.stores.postgres.statements import Call
from holdfast.stores.retrying import Lost

CONNECT_S = 5.0
"""How long one try waits for a session of the pool."""


class Caller:
    """Makes calls, on at most so many sessions. One that is not answered in time is `Lost`, and the next is made on a new connection."""

    def __init__(self, address: Address, calls: Calls, most: int) -> None:
        self._where = address.where
        self._calls = calls
        self.answer_s: float = ANSWER_S
        self.pool: Pool = Pool(partial(Session.open_for_calls, address), most)

    def ask(self, make_call: Callable[[], Call], timeout_s: float | None = None) -> str:
        """Make the call in a thread; it is made up once there is a session to send it on."""
        end = None if timeout_s is None else time.monotonic() + timeout_s
        try:
            session = self.pool.take(CONNECT_S if timeout_s is None else min(timeout_s, CONNECT_S))
        except (NoSession, psycopg.Error) as error:
            raise self._without_session(error) from None
        try:
            return session.ask(make_call(), self.answer_s if end is None else max(0.0, end - time.monotonic()))
        except psycopg.Error as error:
            if isinstance(error, UNDEFINED):
                with suppress(psycopg.Error):
                    refuse_if_moved((session.ask(self._calls.moved) or None,), self._where)
            raise self._failed(session, error) from error
        finally:
            self.pool.give_back(session)

    async def ask_async(self, make_call: Callable[[], Call]) -> str:
        """Make the call in a task; a cancelled one is heard at once, and its session closed."""
        try:
            session = await self.pool.take_async(CONNECT_S)
        except (NoSession, psycopg.Error) as error:
            raise self._without_session(error) from None
        try:
            return await session.ask_async(make_call(), self.answer_s, current.get().most_s)
        except psycopg.Error as error:
            if isinstance(error, UNDEFINED):
                with suppress(psycopg.Error):
                    refuse_if_moved((await session.ask_async(self._calls.moved) or None,), self._where)
            raise self._failed(session, error) from error
        finally:
            self.pool.give_back(session)

    def _without_session(self, error: NoSession | psycopg.Error) -> HoldfastError | Lost | ValueError:
        if isinstance(error, NoSession):
            return Lost(f"{self._where}: {error}", maybe_applied=False)
        # The server says why it refuses a statement; without a state there was no connection to say it on.
        told = raised(error, self._where) if error.sqlstate else not_connected(error, self._where)
        return Lost(str(told), maybe_applied=False) if isinstance(told, Lost | StoreUnavailable) else told

    def _failed(self, session: Session, error: psycopg.Error) -> HoldfastError | Lost | ValueError:
        if session.closed:
            # The others are as old, and were probably cut as well.
            self.pool.drain()
        return raised(error, self._where)

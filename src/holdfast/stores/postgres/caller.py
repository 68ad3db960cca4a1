"""What calls are made through: a pool of sessions, and what its errors mean."""

from functools import partial

import psycopg

from holdfast.errors import HoldfastError, StoreUnavailable
from holdfast.stores.postgres.address import Address
from holdfast.stores.postgres.calls import Calls
from holdfast.stores.postgres.failures import not_connected, raised
from holdfast.stores.postgres.pool import NoSession, Pool
from holdfast.stores.postgres.sessions import ANSWER_S, Session
from holdfast.stores.retrying import Lost


class Caller:
    """At most so many sessions for calls; `_async.asking` makes them."""

    def __init__(self, address: Address, calls: Calls, most: int) -> None:
        self.where: str = address.where
        self.calls = calls
        self.answer_s: float = ANSWER_S
        self.pool: Pool = Pool(partial(Session.open_for_calls, address), most)

    def without_session(self, error: NoSession | psycopg.Error) -> HoldfastError | Lost | ValueError:
        """What to raise where no session was to be had."""
        if isinstance(error, NoSession):
            return Lost(f"{self.where}: {error}", maybe_applied=False)
        # The server says why it refuses a statement; without a state there was no connection to say it on.
        told = raised(error, self.where) if error.sqlstate else not_connected(error, self.where)
        return Lost(str(told), maybe_applied=False) if isinstance(told, Lost | StoreUnavailable) else told

    def failed(self, session: Session, error: psycopg.Error) -> HoldfastError | Lost | ValueError:
        """What to raise for an error on a session."""
        if session.closed:
            # The others are as old, and were probably cut as well.
            self.pool.drain()
        return raised(error, self.where)

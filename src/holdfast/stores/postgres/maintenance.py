"""A session for what is done to a store as a whole: opening, migrating, pruning and unsealing it."""

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg

from holdfast.stores.postgres.address import Address
from holdfast.stores.postgres.failures import not_connected, raised
from holdfast.stores.postgres.sessions import Session
from holdfast.stores.retrying import Lost

MIGRATE_S = 600.0
"""How long one statement of a migration may take, and how long to wait for another process that migrates."""


@contextmanager
def administering(address: Address) -> Iterator[Session]:
    """A session while the block runs; its errors tell the caller why something cannot be done."""
    try:
        session = Session.open(address)
    except psycopg.Error as error:
        raise not_connected(error, address.where) from None
    try:
        yield session
    except psycopg.Error as error:
        told = raised(error, address.where)
        raise (not_connected(error, address.where) if isinstance(told, Lost) else told) from error
    finally:
        session.close()

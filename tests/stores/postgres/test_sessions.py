"""Sessions of a store: what is sent arrives as it was, settings stay where they are ours, and nobody waits for one that lies at hand."""

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest
from msgspec import json
from psycopg import DataError
from psycopg.errors import UndefinedFunction

from holdfast.errors import Closed
from holdfast.stores.postgres.pool import Pool
from holdfast.stores.postgres.sessions import LIFETIME_S, Session
from holdfast.stores.postgres.statements import Call, numbered
from holdfast.stores.postgres.store import PostgresStore
from holdfast.testing.conformance.asking import put
from tests.postgres import own_postgres_url, shared_postgres
from tests.sentinel_databases import until
from tests.stores.postgres.pooling import Rotation, through

ODD = ["", " ", "NULL", '"', "\\", '\\"', "{}", ",", "é\u2028", "\n", "%s"]


@pytest.fixture
def store() -> Iterator[PostgresStore]:
    store = PostgresStore(f"{own_postgres_url()}&pool=1")
    yield store
    store.close()


@pytest.fixture
def session(store: PostgresStore) -> Iterator[Session]:
    session = store.caller.pool.take(60)
    yield session
    store.caller.pool.give_back(session)


def test_parameters_arrive_as_they_were_given(session: Session) -> None:
    call = Call(
        b"select json_build_array(%s::text, %s::boolean, %s::boolean, %s::bigint, %s::float8, %s::text[], %s::text[])::text",
        (None, True, False, 2**62, 1e-05, [], ODD),
    )
    assert json.decode(session.ask(call)) == [None, True, False, 2**62, 1e-05, [], ODD]


def test_a_text_with_a_character_that_would_end_it_is_refused(session: Session) -> None:
    with pytest.raises(DataError, match="NUL"):
        session.ask(Call(b"select %s::text", ("a\0b",)))
    assert session.ask(Call(b"select %s::text", ("a",))) == "a"


def test_an_error_leaves_the_session_whole(session: Session) -> None:
    for _ in range(2):
        with pytest.raises(UndefinedFunction):
            session.ask(Call(b"select no_such_function(%s)", ("a",)))
    assert session.ask(Call(b"select 'a'::text", ())) == "a"


def test_an_interrupt_right_after_a_statement_was_prepared_leaves_the_session_whole(session: Session) -> None:
    class Interrupted(dict[bytes, bytes]):
        def __setitem__(self, *_: bytes) -> None:
            raise KeyboardInterrupt

    assert session.prepared is not None
    session.prepared = Interrupted(session.prepared)
    with pytest.raises(KeyboardInterrupt):
        session.ask(Call(b"select 'a'::text", ()))
    session.prepared = dict(session.prepared)
    assert session.ask(Call(b"select 'a'::text", ())) == "a"


def test_a_call_on_a_connection_that_is_gone_need_not_be_ended(session: Session) -> None:
    session.close()
    session.end_call()
    assert not session.is_usable(0.0)


def test_a_schema_may_be_named_like_a_parameter() -> None:
    assert numbered(b'select "%%s%%%%".f(%s, %s)') == b'select "%s%%".f($1, $2)'


def settings_of(store: PostgresStore) -> Any:
    session = store.caller.pool.take(60)
    row = session.execute("select current_setting('enable_seqscan'), current_setting('plan_cache_mode')").fetchone()
    store.caller.pool.give_back(session)
    return row


def test_a_session_has_our_settings_only_where_it_is_ours(store: PostgresStore) -> None:
    assert settings_of(store) == ("off", "force_generic_plan")
    with Rotation(shared_postgres()) as pooler:
        lent = PostgresStore(through(pooler.port, own_postgres_url()))
        put(lent, "a")
        assert settings_of(lent) == ("on", "auto")
        lent.close()


def waiting_for(pool: Pool, threads: ThreadPoolExecutor) -> "Future[Session]":
    """Somebody who waits for a session, since there is none."""
    waiting = threads.submit(pool.take, 60)
    until(lambda: len(pool._line) == 1)
    return waiting


def test_a_session_that_is_given_back_goes_to_whoever_waits_for_one(store: PostgresStore) -> None:
    pool = store.caller.pool
    with ThreadPoolExecutor(1) as threads:
        session = pool.take(60)
        waiting = waiting_for(pool, threads)
        pool.give_back(session)
        assert waiting.result(60) is session
        pool.give_back(session)


def test_who_waits_gets_a_new_session_instead_of_one_that_is_of_no_use(store: PostgresStore) -> None:
    pool = store.caller.pool
    with ThreadPoolExecutor(1) as threads:
        session = pool.take(60)
        waiting = waiting_for(pool, threads)
        session.close()
        pool.give_back(session)
        assert waiting.result(60) is not session
        pool.give_back(waiting.result())


def test_a_session_that_its_caller_forgot_makes_room_for_another(store: PostgresStore) -> None:
    pool = store.caller.pool
    assert store.address.pool == 1
    for _ in range(3):
        pool.take(60)


def test_a_session_is_not_used_again_once_it_is_old_or_lay_idle_for_long(store: PostgresStore) -> None:
    pool = store.caller.pool
    for age in ("_made_at", "_used_at"):
        session = pool.take(60)
        pool.give_back(session)
        setattr(session, age, getattr(session, age) - LIFETIME_S)
        another = pool.take(60)
        assert another is not session
        assert session.closed
        pool.give_back(another)


def test_a_session_in_use_while_the_store_is_closed_is_closed_afterwards(store: PostgresStore) -> None:
    put(store, "a")
    session = store.caller.pool.take(60)
    store.close()
    store.caller.pool.give_back(session)
    assert session.closed
    with pytest.raises(Closed):
        put(store, "b")

"""Large batches on a PostgreSQL that has no statistics yet: nothing is read again for every message."""

import re
from typing import Any

import psycopg
import pytest

from holdfast.commands import Claim, Command, Move
from holdfast.stores.postgres.calls import Calls
from holdfast.stores.postgres.store import PostgresStore
from holdfast.testing.conformance.asking import JOBS, drain, put

BATCH = 300
REMOVED = re.compile(r"Rows Removed by Join Filter: (\d+)")
EXPLAIN = "load 'auto_explain'; set auto_explain.log_min_duration = 0; set auto_explain.log_nested_statements = on; "
EXPLAIN += "set auto_explain.log_analyze = on; set client_min_messages = log"


@pytest.fixture
def store(postgres_url: str) -> PostgresStore:
    store = PostgresStore(postgres_url)
    put(store, "before")
    drain(store)
    put(store, *map(str, range(BATCH)))
    return store


# auto_explain is part of no package of PyPI: this needs a PostgreSQL of the machine's own.
@pytest.mark.verify
def test_a_large_batch_is_found_by_an_index_message_for_message(store: PostgresStore) -> None:
    claiming = Claim(JOBS, "a", 60.0, limit=BATCH, id="claim")
    commands: list[Command[Any]] = [Move(JOBS, "dead", state="ready"), Move(JOBS, "ready"), claiming, claiming]
    with psycopg.connect(store.address.conninfo, autocommit=True) as connection:
        plans: list[str] = []
        connection.add_notice_handler(lambda notice: plans.append(notice.message_primary or ""))
        connection.execute(EXPLAIN)
        for command in commands:
            call = Calls(store.address.schema).call(command, command.id, again=True)
            connection.execute(call.statement, call.parameters)
    store.close()
    assert any("messages_pkey" in plan for plan in plans)
    assert [plan for plan in plans if any(int(rows) > BATCH for rows in REMOVED.findall(plan))] == []

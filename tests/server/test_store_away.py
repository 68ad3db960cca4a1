"""What callers are told while the server's store fails: what to do, and never where the store is."""

from collections.abc import Iterator
from typing import Any

import pytest
import urllib3

from holdfast import errors
from holdfast.commands import Put
from holdfast.stores.memory import MemoryStore
from holdfast.testing.conformance.asking import item
from tests.server.serving import JSON, Served

SECRET = "PostgreSQL database 'app' at db.internal:5432, /var/lib/holdfast/x.sqlite3"  # noqa: S105 - a place, which must not be shown


@pytest.fixture
def served() -> Iterator[Served]:
    served = Served(MemoryStore())
    yield served
    served.close()


@pytest.mark.parametrize(
    ("error", "answer", "words"),
    [
        (errors.StoreUnavailable, (503, "store_unavailable"), "nothing was written: try again"),
        (errors.OutcomeUnknown, (504, "outcome_unknown"), "same id"),
        (errors.StoreFull, (507, "store_full"), "make room"),
        (errors.StoreError, (500, "store_error"), "incident"),
        (errors.StoreCorrupted, (500, "store_corrupted"), "incident"),
        (errors.StoreMissing, (500, "store_missing"), "incident"),
        (errors.SchemaTooNew, (500, "schema_too_new"), "incident"),
    ],
)
def test_a_caller_is_not_told_where_the_store_is_and_the_log_is(
    served: Served, caplog: pytest.LogCaptureFixture, error: type[Exception], answer: tuple[int, str], words: str
) -> None:
    async def fail(*_: object) -> Any:
        raise error(f"{SECRET} cannot be reached")

    assert served.plane._served is not None
    served.plane._served.store.execute = fail  # type: ignore[method-assign, assignment]
    reply = urllib3.request("POST", f"{served.url}/v1/count", body=b'{"queue":"jobs"}', headers=JSON, retries=False)
    problem = reply.json()
    assert (reply.status, problem["code"]) == answer
    assert not any(part in reply.data.decode() for part in ("PostgreSQL", "db.internal", "5432", "/var/lib"))
    assert words in problem["detail"]
    incident = problem["detail"].rpartition("incident ")[2]
    assert incident in caplog.text
    assert "db.internal:5432" in caplog.text


@pytest.mark.parametrize("error", [errors.StoreUnavailable, errors.TookTooLong])
def test_a_watch_ends_when_its_store_fails_and_the_log_has_no_traceback(caplog: pytest.LogCaptureFixture, error: type[Exception]) -> None:
    async def fail(*_: object) -> Any:
        raise error("it failed")

    store = MemoryStore()
    served = Served(store)
    assert served.plane._served is not None
    with urllib3.PoolManager() as pool:
        watch = pool.request("GET", f"{served.url}/v1/watch?topic=queue:jobs", preload_content=False, retries=False)
        assert watch.read(10) == b": watching"
        served.plane._served.store.execute = fail  # type: ignore[method-assign, assignment]
        store.execute(Put("jobs", [item("a")]))
        with pytest.raises(urllib3.exceptions.ProtocolError):
            watch.read()
    served.close()
    assert [record.getMessage() for record in caplog.records if record.levelname == "ERROR" or record.exc_info] == []

"""Signals over HTTP: for callers that may send a signal to the jobs of a queue and do nothing else."""

from collections.abc import Iterator
from typing import Any

import pytest

from holdfast import ControlPlaneClient, JobContext, Tasks
from holdfast.commands import Read
from holdfast.server.audit import audit_page, read_audit
from holdfast.stores.memory import MemoryStore
from tests.server.serving import Served, ask
from tests.server.test_tokens import make


@pytest.fixture
def inner() -> MemoryStore:
    return MemoryStore()


@pytest.fixture
def served(inner: MemoryStore) -> Iterator[Served]:
    served = Served(inner)
    make(inner, "admin")
    yield served
    served.close()


def test_a_token_for_signals_sends_them_and_does_nothing_else(served: Served, inner: MemoryStore) -> None:
    app = Tasks("signals", client=ControlPlaneClient.on(inner))

    @app.task(name="order")
    def order(job: JobContext) -> list[Any]:
        return [job.wait("approved"), job.wait("approved")]

    job = order.put()
    token = make(inner, "queue:default:signal")
    path = f"/v1/queues/default/jobs/{job.id}/signals/approved"
    assert ask(served, path, {"by": "ann"}, token, "one") == (200, {"sent": True})
    assert ask(served, path, {"by": "ann"}, token, "one") == (200, {"sent": False})
    assert ask(served, path, {"by": "bob"}, token) == (200, {"sent": True})
    app.run(until_empty=True, signals=False, schedules=False)
    assert job.result(timeout_s=0) == [{"by": "ann"}, {"by": "bob"}]
    status, problem = ask(served, path, None, token)
    assert (status, problem["code"]) == (404, "job_gone")
    status, problem = ask(served, f"/v1/queues/other/jobs/{job.id}/signals/approved", None, token)
    assert (status, problem["code"]) == (403, "not_allowed")
    for command in ("put", "move", "read"):
        status, _ = ask(served, f"/v1/{command}", {"queue": "default", "items": [], "to": "gone", "dict": "default-signals"}, token)
        assert status in (403, 422)
    status, problem = ask(served, path, None, make(inner, "queue:default:put,claim,read,manage"))
    assert (status, problem["code"]) == (403, "not_allowed")
    acts = [(record.act, record.what) for record in audit_page(inner.execute(read_audit())).records]
    assert acts.count(("signal", "queue:default")) == 2
    assert inner.execute(Read("default-signals")).entries == []

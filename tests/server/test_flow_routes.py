"""Jobs and schedules over HTTP, as clients in other languages and the dashboard see and steer them."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast import ControlPlaneClient, JobContext, Queue, Schedule, Tasks
from holdfast._sync.flows.working.registering import Registration
from holdfast._sync.handles.worker import STOPPED
from holdfast.stores.memory import MemoryStore
from holdfast.stores.sqlite.store import SqliteStore
from holdfast.views.task_work import TaskWork
from holdfast.workers.orders import make_orders
from tests.server.serving import Served, ask
from tests.server.test_tokens import make


@pytest.fixture
def inner() -> MemoryStore:
    return MemoryStore()


@pytest.fixture
def served(inner: MemoryStore) -> Iterator[Served]:
    served = Served(inner)
    yield served
    served.close()


def test_a_durable_job_is_shown_with_its_steps_and_cancelled(served: Served, inner: MemoryStore) -> None:
    app = Tasks("shop", client=ControlPlaneClient.on(inner))

    @app.task(name="order")
    def order(job: JobContext) -> Any:
        job.step("charge", lambda: {"cents": 5})
        return job.wait("approved")

    job = order.put()
    app.run(until_empty=True, signals=False, schedules=False)
    path = f"/v1/queues/default/jobs/{job.id}"
    status, view = ask(served, path)
    assert status == 200
    assert (view["status"]["state"], view["status"]["task"]) == ("sleeping", "order")
    assert [(step["name"], step["state"], step["result"]) for step in view["steps"][:1]] == [("charge", "done", {"cents": 5})]
    assert "approved" in view["explanation"]["sentence"]
    assert ask(served, f"{path}/cancel", {"force": True}) == (200, {"became": "cancelled"})
    assert ask(served, f"{path}/cancel", {}) == (200, {"became": "absent"})
    assert ask(served, path)[1]["status"]["state"] == "cancelled"


def test_a_dead_job_gets_another_chance(served: Served, inner: MemoryStore) -> None:
    app = Tasks("shop", client=ControlPlaneClient.on(inner))

    @app.task(name="fails", max_attempts=1)
    def fails() -> None:
        raise ValueError("planted")

    job = fails.put()
    app.run(until_empty=True, signals=False, schedules=False)
    path = f"/v1/queues/default/jobs/{job.id}"
    assert ask(served, path)[1]["status"]["state"] == "dead"
    assert ask(served, f"{path}/retry", {}) == (200, {"retried": True})
    assert ask(served, f"{path}/retry", {}) == (200, {"retried": False})


@pytest.mark.parametrize("prefix", ["", "/ns/default"])
def test_a_name_may_have_a_slash_that_is_escaped(served: Served, inner: MemoryStore, prefix: str) -> None:
    Queue.create("a/b", client=ControlPlaneClient.on(inner)).put(1, id="c/%2F d")
    status, view = ask(served, f"{prefix}/v1/queues/a%2Fb/jobs/c%2F%252F%20d")
    assert (status, view["status"]["id"], view["status"]["state"]) == (200, "c/%2F d", "waiting")
    assert ask(served, f"{prefix}/v1/queues/a/b/jobs/c")[0] == 404


def test_schedules_are_listed_paused_resumed_and_run_now(served: Served, inner: MemoryStore) -> None:
    client = ControlPlaneClient.on(inner)
    Schedule("nightly", "0 3 * * *", ("reports", {"kind": "daily"}), client=client).save()
    (listed,) = ask(served, "/v1/schedules?prefix=night")[1]
    assert (listed["name"], listed["queue"], listed["paused"]) == ("nightly", "reports", None)
    assert listed["next_run"].endswith("T03:00:00Z")
    assert ask(served, "/v1/schedules?prefix=other") == (200, [])
    assert ask(served, "/v1/schedules/nightly/pause", {"reason": "holidays"}) == (200, {})
    assert ask(served, "/v1/schedules")[1][0]["paused"] == "holidays"
    assert ask(served, "/v1/schedules/nightly/resume", {}) == (200, {})
    status, run = ask(served, "/v1/schedules/nightly/run", {})
    assert (status, run["queue"]) == (200, "reports")
    assert ask(served, f"/v1/queues/reports/jobs/{run['id']}")[1]["status"]["state"] == "waiting"
    assert ask(served, "/v1/schedules/none/run", {})[1]["code"] == "schedule_missing"


def test_schedules_are_listed_page_by_page(served: Served, inner: MemoryStore) -> None:
    for name in ("a", "b1", "b2", "b3", "c"):
        Schedule(name, "0 3 * * *", ("reports", {}), client=ControlPlaneClient.on(inner)).save()

    def names(query: str) -> list[str]:
        return [status["name"] for status in ask(served, f"/v1/schedules?{query}")[1]]

    assert names("prefix=b&limit=2") == ["b1", "b2"]
    assert names("prefix=b&limit=2&after=b2") == ["b3"]
    assert names("after=b3&limit=1000") == ["c"]
    assert [ask(served, f"/v1/schedules?limit={limit}")[0] for limit in ("0", "1001", "x")] == [422, 422, 422]


def test_the_activity_of_queues_is_the_sum_of_their_steps(served: Served, inner: MemoryStore) -> None:
    client = ControlPlaneClient.on(inner)
    for name, done in (("mail", 3), ("orders", 1)):
        queue = Queue.create(name, client=client)
        queue.put_many(range(5))
        for claim in queue.claim_many(done + 1)[:done]:
            queue.ack(claim)
        last = queue.claim()
        assert last is not None
        queue.fail(last, error="planted")
    registration = Registration(inner, make_orders(print, "mail", name="w", heartbeat_s=10.0), "1")
    for done in (0, 3):
        registration.beat(STOPPED, {"mail": {"send": TaskWork(done=done)}})
    status, found = ask(served, "/v1/activity", {"queues": ["mail", "orders"], "since_s": 600})
    assert (status, found["tasks"]) == (200, {})
    told = ask(served, "/v1/activity", {"queues": ["mail", "orders"], "since_s": 600, "tasks": True})[1]["tasks"]
    assert {name: {task: one["done"] for task, one in tasks.items()} for name, tasks in told.items()} == {"mail": {"send": 3}, "orders": {}}
    assert (sum(found["put"]), sum(found["done"]), sum(found["failed"])) == (10, 4, 2)
    assert (len(found["done"]), found["window_s"], found["step_s"]) == (60, 60, 1), "before it nothing happened"
    assert {name: rates["done"] for name, rates in found["queues"].items()} == {"mail": 3, "orders": 1}
    assert ask(served, "/v1/activity", {"queues": []})[0] == 422
    assert ask(served, "/v1/activity", {"queues": ["mail"] * 21})[0] == 422


def test_errors_that_a_flow_goes_on_behind_take_no_memory_of_the_server(tmp_path: Path) -> None:
    # Where numbers begin with a large one, the flow asks for some that were skipped, and more often than there is memory for at once.
    store = SqliteStore(tmp_path / "store.db", durability="process")
    served = Served(store)
    names = [f"q{number}" for number in range(6)]
    for name in names:
        Queue.create(name, client=ControlPlaneClient.on(store)).put(1)
    status, found = ask(served, "/v1/activity", {"queues": names})
    served.close()
    assert (status, sum(found["put"])) == (200, 6)


def test_a_path_of_another_form_or_method_or_with_other_parameters_is_refused(served: Served) -> None:
    assert ask(served, "/v1/queues/q/jobs")[0] == 404
    assert ask(served, "/v1/queues/q/jobs/a", {})[0] == 405
    assert ask(served, "/v1/schedules?page=3")[0] == 422
    assert ask(served, "/v1/queues/q/jobs/a/cancel", {"forced": True})[0] == 422


def test_a_reader_sees_a_job_and_cannot_cancel_it(served: Served, inner: MemoryStore) -> None:
    make(inner, "admin")
    reader = make(inner, "queue:*:read", "dict:*:read")
    app = Tasks("shop", client=ControlPlaneClient.on(inner))

    @app.task(name="order")
    def order() -> None: ...

    path = f"/v1/queues/default/jobs/{order.put().id}"
    assert ask(served, path, token=reader)[1]["status"]["state"] == "waiting"
    assert ask(served, f"{path}/cancel", {}, token=reader)[0] == 403
    assert ask(served, path, token=reader)[1]["status"]["state"] == "waiting"
    assert ask(served, "/v1/about", token=reader)[1]["scopes"] == ["queue:*:read", "dict:*:read"]

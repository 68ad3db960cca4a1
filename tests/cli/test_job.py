"""`holdfast job` and `holdfast worker ls`: on a file, and through a server."""

from collections.abc import Iterator
from typing import Any

import pytest
from msgspec import json

from holdfast import ControlPlaneClient, JobContext, Queue, Tasks
from holdfast._sync.flows.working.registering import Registration
from holdfast._sync.handles.worker import STOPPED
from holdfast.testing.servers import holdfast as holdfast_server
from tests.cli.running import holdfast


@pytest.fixture(scope="module", params=["sqlite", "http"])
def url(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    if request.param == "http":
        with holdfast_server() as server:
            yield server.url
    else:
        yield f"sqlite:///{tmp_path_factory.mktemp('job')}/s.db?durability=process"


def decoded(url: str, *arguments: str, code: int = 0) -> Any:
    ran = holdfast(*arguments, f"--url={url}", "--json")
    assert (ran.exit_code, ran.exception if code == 0 else None) == (code, None), ran.stderr
    return json.decode(ran.stdout) if ran.stdout else ran.stderr


@pytest.fixture
def job(url: str) -> Iterator[str]:
    """A job that waits."""
    with ControlPlaneClient(url) as client:
        mail = Queue[int].create("mail", client=client)
        yield str(mail.put(1, max_attempts=1))
        mail.clear()


def test_a_job_that_waits_is_cancelled_and_then_it_is_told_so(url: str, job: str) -> None:
    assert decoded(url, "job", job, "--queue=mail")["state"] == "waiting"
    assert decoded(url, "job", "--queue=mail", job)["id"] == job, "options may stand before the id"
    assert decoded(url, "job", "cancel", job, "--queue=mail") == {"queue": "mail", "id": job, "outcome": "cancelled"}
    assert decoded(url, "job", "show", job, "--queue=mail")["state"] == "cancelled"
    assert "there is no job" in decoded(url, "job", "cancel", job, "--queue=mail", code=3)


def test_a_job_that_runs_is_asked_to_end(url: str, job: str) -> None:
    with ControlPlaneClient(url) as client:
        assert Queue.from_name("mail", client=client).claim(lease_s=600) is not None
        assert decoded(url, "job", "cancel", job, "--queue=mail")["outcome"] == "requested"


def test_a_dead_job_gets_another_chance_and_one_that_waits_does_not(url: str, job: str) -> None:
    assert "is waiting, and not a dead letter" in decoded(url, "job", "retry", job, "--queue=mail", code=3)
    with ControlPlaneClient(url) as client:
        claim = Queue.from_name("mail", client=client).claim()
        assert claim is not None
        claim.fail(error="no route")
    assert decoded(url, "job", "show", job, "--queue=mail")["state"] == "dead"
    assert decoded(url, "job", "retry", job, "--queue=mail") == {"queue": "mail", "id": job, "retried": True}
    assert decoded(url, "job", "show", job, "--queue=mail")["state"] == "waiting"


def test_a_signal_reaches_a_durable_job_once(url: str) -> None:
    with ControlPlaneClient(url) as client:
        app = Tasks("shop", client=client)

        @app.task(name="order")
        def order(job: JobContext) -> str:
            return f"approved by {job.wait('approved', str)}"

        put = order.put()
        app.run(until_empty=True)
        send = ("job", "send", put.id, "approved", '"ann"', "--id=1")
        assert [decoded(url, *send)["sent"] for _ in range(2)] == [True, False]
        app.run(until_empty=True)
        assert put.result(timeout_s=0) == "approved by ann"
        assert "there is no job" in decoded(url, *send, code=3)
    assert "a text needs quotes" in decoded(url, *send[:4], "ann", code=2)


def test_a_slip_in_the_name_of_a_queue_is_told_from_a_job_that_is_gone(url: str, job: str) -> None:
    for command in ("show", "cancel", "retry", "send"):
        arguments = [command, job, *(["approved"] if command == "send" else [])]
        said = decoded(url, "job", *arguments, "--queue=mial", code=3)
        assert "there is no queue 'mial'" in said
        assert "did you mean 'mail'?" in said


def test_living_workers_are_listed_with_what_they_serve(url: str) -> None:
    with ControlPlaneClient(url) as client:
        app = Tasks("shop", client=client, queue="orders")
        app.task(name="ship")(lambda: None)
        worker = app.worker(name="host-1")
        Registration(client.store, worker.orders, "1").beat(STOPPED)
        (found,) = decoded(url, "worker", "ls", "host-", "--queue=orders")
        assert (found["name"], found["queues"], found["tasks"], found["health"]["state"]) == ("host-1", ["orders"], ["ship"], "stopped")
        text = holdfast("worker", "ls", f"--url={url}").stdout
        assert all(word in text for word in ("host-1", "orders", "ship", "stopped"))
        assert decoded(url, "worker", "ls", "--queue=other") == decoded(url, "worker", "ls", "host-2") == []
        assert holdfast("worker", "ls", "host-2", f"--url={url}").stdout == f"No living workers in {url}.\n"

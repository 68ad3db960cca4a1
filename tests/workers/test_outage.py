"""A worker whose store goes away and comes back goes on by itself, and says so."""

from collections.abc import Iterator
from typing import Any

import pytest

from holdfast import ControlPlaneClient, Queue, Worker
from holdfast.testing.servers.redis import RedisServer
from tests.runners import Runner


@pytest.fixture
def server() -> Iterator[RedisServer]:
    with RedisServer(settings={"appendonly": "yes", "appendfsync": "always"}) as running:
        yield running


@pytest.mark.verify  # A client tries for a minute before it calls its store unavailable.
def test_a_worker_survives_the_restart_of_its_server(server: RedisServer) -> None:
    done: list[Any] = []
    with ControlPlaneClient(server.url) as client, Runner() as runner:
        worker = Worker(done.append, "jobs", client=client, heartbeat_s=0.2)
        worker.put(1)
        worker.start()
        runner.until(lambda: worker.health.done == 1)
        server.stop()
        runner.until(lambda: worker.health.state == "away")
        assert worker.health.error is not None
        server.start()
        worker.put(2)
        runner.until(lambda: worker.health.done == 2)
        runner.until(lambda: worker.health.state == "working")
        assert worker.health.outages >= 1
        worker.stop()
        assert Queue[int]("jobs", client=client).stats().total == 0
    assert done == [1, 2]

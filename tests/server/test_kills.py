"""The server is killed and started again in the middle of a run: nothing is lost or applied twice, and no watch has a gap."""

import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import urllib3

from holdfast import ControlPlaneClient, Queue
from holdfast.commands import Change, Claim, Count, Put, Settle, Write
from holdfast.records import Receipt
from holdfast.stores.http.store import HttpStore
from holdfast.testing.conformance.asking import item, read
from holdfast.testing.conformance.threads import Doing
from holdfast.testing.conformance.waiting import waiting_claim
from tests.server.processes import PATIENCE_S, Process

KILLS = 3
ROUNDS = 40


@pytest.fixture
def process(tmp_path: Path) -> Iterator[Process]:
    with Process(tmp_path / "served.db") as process:
        yield process


def test_killing_the_server_loses_nothing_acknowledged_and_applies_nothing_twice(process: Process) -> None:
    stores = [HttpStore(process.url) for _ in range(3)]
    acked = threading.Semaphore(0)
    producers = [Doing(lambda store=store, name=str(number): produce(store, name, acked)) for number, store in enumerate(stores)]  # type: ignore[misc]
    watching = ControlPlaneClient(process.url)
    watcher = Doing(lambda: put_ids(watching, 3 * ROUNDS))
    for _ in range(KILLS):
        for _ in range(20):
            acked.acquire()
        process.kill()
        process.start()
    for producer in producers:
        producer.result("a producer through the kills")
    store = stores[0]
    assert read(store, dict="d") == {str(number): ROUNDS for number in range(3)}, "an increment was lost or applied twice"
    assert store.execute(Count("jobs")).total == 0, "a message that was acknowledged is there again"
    seen = watcher.result("a watcher through the kills")
    assert sorted(seen) == sorted(f"{number}-{turn}" for number in range(3) for turn in range(ROUNDS)), "a watch had a gap, or told twice"
    watching.close()
    for each in stores:
        each.close()


def produce(store: HttpStore, name: str, acked: threading.Semaphore) -> None:
    """Put a message, count it, claim one and acknowledge it, again and again."""
    for turn in range(ROUNDS):
        assert store.execute(Put("jobs", [item(f"{name}-{turn}")])).created == [True]
        store.execute(Write("d", [Change(name, do="increment", by=1)]))
        (message,) = store.execute(Claim("jobs", name, 600.0)).messages
        assert store.execute(Settle([Receipt("jobs", message.id, message.token)])).held == [True]
        acked.release()


def put_ids(client: ControlPlaneClient, count: int) -> list[str]:
    """Watch the queue until so many messages were put."""
    seen: list[str] = []
    for event in Queue.from_name("jobs", client=client).watch():
        seen += event.data["ids"] if event.event == "put" else []
        if len(seen) >= count:
            break
    return seen


def test_a_wait_goes_on_when_the_server_was_killed_and_started_again(process: Process) -> None:
    waiting, putting = HttpStore(process.url), HttpStore(process.url)
    waiter = waiting_claim(waiting)
    process.kill()
    process.start()
    putting.execute(Put("jobs", [item("a")]))
    assert [message.id for message in waiter.result("a claim that waited through a kill")] == ["a"]
    waiting.close()
    putting.close()


def test_a_server_that_is_told_to_end_answers_who_waits_and_drains(process: Process) -> None:
    waiter = socket.create_connection(("127.0.0.1", process.port), PATIENCE_S)
    body = b'{"queue":"jobs"}'
    waiter.sendall(
        b"POST /v1/claim?wait_s=300 HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%s"
        % (len(body), body)
    )
    watcher = urllib3.request("GET", f"{process.url}/v1/watch?topic=queue:jobs", retries=False, preload_content=False)
    assert watcher.read(4) == b": wa"  # It came after the claim, so that waits by now, too.
    assert process.stop() == 0
    assert waiter.recv(1000).endswith(b'{"messages":[]}')
    assert watcher.read() == b"tching\n\n"
    waiter.close()
    assert any("stopped: every request was finished" in line for line in process.log)

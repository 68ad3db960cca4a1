"""What the server tells of itself: counts and logs, and in neither what was entrusted to it."""

import logging
import re
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
import urllib3
from msgspec import json

from holdfast import ControlPlaneClient, Queue, Worker, connect
from holdfast.commands import Change, Claim, Move, Put, Puts, Settle, Write
from holdfast.server.log_lines import JsonLines
from holdfast.server.metrics import COMMANDS, NAMESPACES, QUEUES, QUEUES_IN_ALL, Metrics
from holdfast.server.process.logs import TextLines
from holdfast.stores.http.store import HttpStore
from holdfast.stores.memory import MemoryStore
from holdfast.telemetry.meters import OTHER
from holdfast.testing.conformance.asking import item, put, raw
from tests.server.processes import Process
from tests.server.serving import JSON, Served
from tests.server.test_tokens import make

SECRET = "pl4nted-s3cret"  # noqa: S105 - what must not be found


@pytest.fixture
def served() -> Iterator[Served]:
    served = Served(MemoryStore())
    yield served
    served.close()


def metrics(url: str, **headers: str) -> str:
    return urllib3.request("GET", f"{url}/metrics", headers=headers, retries=False).data.decode()


def test_messages_requests_and_queues_are_counted(served: Served) -> None:
    store = HttpStore(served.url)
    put(store, "a", "b")
    (message,) = store.execute(Claim("jobs", "me", 60.0)).messages
    store.execute(Settle([message.receipt]))
    store.execute(Write("d", [Change("a", value=raw(1), fence=message.token)]))
    store.execute(Write("d", [Change("a", value=raw(1), fence=message.token - 1)]))
    urllib3.request("POST", f"{served.url}/v1/put", body=b"{", headers=JSON, retries=False)
    store.close()
    told = metrics(served.url).splitlines()
    for line in (
        'holdfast_messages_total{queue="jobs",op="put"} 2',
        'holdfast_messages_total{queue="jobs",op="claimed"} 1',
        'holdfast_messages_total{queue="jobs",op="done"} 1',
        "holdfast_fenced_rejections_total 1",
        'holdfast_requests_total{route="/v1/put",status="200"} 1',
        'holdfast_requests_total{route="/v1/put",status="400"} 1',
        'holdfast_problems_total{code="not_json"} 1',
        'holdfast_request_duration_seconds_count{route="/v1/write"} 2',
        'holdfast_queue_messages{queue="jobs",state="ready"} 1',
        "holdfast_waiting_requests 0",
    ):
        assert line in told


@pytest.mark.parametrize("prefix", ["", "/ns/team"])
def test_what_a_worker_does_is_counted_message_by_message(served: Served, prefix: str) -> None:
    with ControlPlaneClient(served.url + prefix) as client:

        def handle(value: int) -> None:
            if value == 7:
                raise ValueError("no luck today")

        worker = Worker(handle, "m", client=client, max_attempts=1, results=True)
        Queue[int]("m", client=client).put_many(range(10))
        worker.run(until_empty=True)
    told = metrics(served.url).splitlines()
    name = " team/m" if prefix else "m"
    counted = {line for line in told if line.startswith(f'holdfast_messages_total{{queue="{name}"')}
    expected = {"put": 10, "claimed": 10, "done": 9, "dead": 1}
    assert counted == {f'holdfast_messages_total{{queue="{name}",op="{op}"}} {count}' for op, count in expected.items()}


def test_a_failure_counts_as_dead_only_when_it_is_the_last(served: Served) -> None:
    store = HttpStore(served.url)
    store.execute(Put("jobs", [item("a"), item("b", max_attempts=1)]))
    claimed = store.execute(Claim("jobs", "me", 60.0, limit=2)).messages
    for _ in range(2):
        store.execute(Settle([message.receipt for message in claimed], "ready", counts=True, max_attempts=2))
        claimed = store.execute(Claim("jobs", "me", 60.0, limit=2)).messages
    store.execute(Move("jobs", "ready", ["b"]))
    store.close()
    told = metrics(served.url).splitlines()
    for op, count in {"put": 2, "claimed": 3, "ready": 2, "dead": 2}.items():
        assert f'holdfast_messages_total{{queue="jobs",op="{op}"}} {count}' in told


def test_a_command_that_comes_again_because_its_answer_was_lost_is_counted_once(served: Served) -> None:
    store = HttpStore(served.url)
    for _ in range(2):
        store.execute(Put("jobs", [item("a")], id="once"))
    store.close()
    assert 'holdfast_messages_total{queue="jobs",op="put"} 1' in metrics(served.url).splitlines()


def test_what_is_remembered_of_commands_does_not_fill_the_memory() -> None:
    counting, store = Metrics(), MemoryStore()
    for number in range(COMMANDS + 10):
        command = Put("jobs", [item("a")], id=str(number))
        counting.executed(command, store.execute(command))
    assert len(counting._commands) == COMMANDS


def test_a_client_that_leaves_in_the_middle_of_its_request_is_no_problem(served: Served) -> None:
    host, _, rest = served.url.removeprefix("http://").partition(":")
    port, _, name = rest.partition("/")
    with socket.create_connection((host, int(port))) as client:
        client.sendall(
            f"POST /{name}/v1/wait HTTP/1.1\r\nhost: {host}\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{{".encode()
        )
    while 'route="/v1/wait",status="499"} 1' not in (told := metrics(served.url)):
        assert "not_json" not in told
    assert "holdfast_problems_total{" not in told


def test_a_request_is_logged_with_its_time_and_who_asked(served: Served, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "holdfast.server.requests"):
        store = HttpStore(served.url)
        put(store, "a")
        store.close()
        while not any(re.fullmatch(r"/v1/put 200 ok in \d+\.\d ms for anyone", record.getMessage()) for record in caplog.records):
            assert len(caplog.records) < 10


def test_names_that_clients_make_up_do_not_fill_the_memory() -> None:
    counting = Metrics()
    store = MemoryStore()
    for number in range(QUEUES + 50):
        command = Put(f"q{number}", [item("a")])
        counting.executed(command, store.execute(command))
    counted = counting.text({}, []).decode()
    assert counted.count('op="put"') == QUEUES + 1
    assert f'holdfast_messages_total{{queue="{OTHER}",op="put"}} 50' in counted


def test_namespaces_that_come_late_have_their_share_of_the_metrics() -> None:
    counting = Metrics()
    done = Puts(["a"], [True])
    for namespace in range(30):
        for number in range(QUEUES):
            counting.executed(Put(f"q{number}", [item("a")]), done, f" n{namespace}/")
    counted = counting.text({}, []).decode()
    assert QUEUES_IN_ALL <= counted.count('op="put"') <= QUEUES_IN_ALL + 30 * (QUEUES_IN_ALL // NAMESPACES + 1)
    assert 'queue=" n29/q0"' in counted
    assert f'queue=" n29/{OTHER}"' in counted


def test_a_name_cannot_break_out_of_its_label() -> None:
    counting, store = Metrics(), MemoryStore()
    command = Put('a"} 1\\', [item("a")])
    counting.executed(command, store.execute(command))
    assert 'queue="a\\"} 1\\\\",op="put"} 1\n' in counting.text({}, []).decode()


def test_metrics_are_for_those_who_may_read_them() -> None:
    store = MemoryStore()
    served = Served(store)
    for scope, status in (("queue:*:*", 403), ("server:metrics:read", 200), ("admin", 200)):
        text = make(store, scope, namespaces=("*",) if scope == "admin" else ("default",))
        assert urllib3.request("GET", f"{served.url}/metrics", headers={"authorization": f"Bearer {text}"}, retries=False).status == status
    served.close()


def test_a_log_line_is_one_line_whatever_is_in_it() -> None:
    record = logging.LogRecord("holdfast", logging.INFO, "", 0, "one\ntwo %s", ("\r\nthree",), None)
    record.fields = {"route": "/v1/put", "ms": 1.5}
    told = json.decode(JsonLines().format(record))
    assert (told["message"], told["route"], told["ms"]) == ("one\ntwo \r\nthree", "/v1/put", 1.5)
    assert "\n" not in JsonLines().format(record)
    assert "\n" not in TextLines().format(record)


def test_a_secret_planted_anywhere_is_in_no_log_no_error_and_no_metric(tmp_path: Path) -> None:
    store = connect(f"sqlite:///{tmp_path}/served.db")
    text = make(store, "admin", namespaces=("*",))
    store.close()
    with Process(tmp_path / "served.db", "--log-json", "--log-requests") as process:
        answers = [answer for planted in plantings(text) if " 200 " not in (answer := plant(process, *planted))[:20]]
        told = metrics(process.url, authorization=f"Bearer {text}")
        assert process.stop() == 0
    secrets = (SECRET, text, text.split("_", 2)[2])
    for place in (*answers, told, *process.log):
        assert not any(secret in place for secret in secrets), place
    assert sum(f'"caller":"token {token_id(text)}"' in line for line in process.log) >= 5, "the requests must have been logged"
    assert "holdfast_requests_total" in told
    assert len(answers) >= 10, "the errors must have been there"


def plantings(text: str) -> Iterator[tuple[str, bytes, bytes]]:
    """A path, more headers and a body, each with a secret somewhere."""
    good = f"authorization: Bearer {text}\r\n".encode()
    yield "/v1/put", good, b'{"queue":"q","items":[{"id":"a","value":"%s","metadata":{"k":"%s"}}]}' % (SECRET.encode(), SECRET.encode())
    yield "/v1/put", good, b'{"queue":"q","items":[{"id":"a","value":"%s"' % SECRET.encode()
    yield "/v1/put", good, b'{"queue":"q","items":"%s"}' % SECRET.encode()
    yield "/v1/write", good, b'{"dict":"d","changes":[{"key":"k","value":"%s","expect":"present"}],"all_or_none":true}' % SECRET.encode()
    yield "/v1/write", good, b'{"dict":"d","changes":[{"key":"k","value":"%s"}]}' % SECRET.encode()
    yield "/v1/write", good, b'{"dict":"d","changes":[{"key":"k","do":"increment","by":1}]}'
    yield f"/{SECRET}", good, b""
    yield f"/v1/claim?{SECRET}=1", good, b'{"queue":"q"}'
    yield f"/v1/claim?wait_s={SECRET}", good, b'{"queue":"q"}'
    yield "/v1/put", f"authorization: Bearer hf_{token_id(text)}_{SECRET}\r\n".encode(), b"{}"
    yield "/v1/put", f"authorization: Bearer {text[:-1]}\r\n".encode(), b"{}"
    yield "/v1/put", f"authorization: Basic {text}\r\n".encode(), b"{}"
    yield f"/ns/{SECRET}%20/v1/put", good, b"{}"
    yield "/v1/put", f"authorization: {SECRET}\r\n".encode(), b"{}"
    yield "/v1/put", good + f"host: {SECRET}\r\n".encode(), b"{}"
    yield "/v1/put", good + f"content-encoding: {SECRET}\r\n".encode(), b"{}"
    yield "/v1/put", good + f"cookie: {SECRET}\r\n x: y\r\n".encode(), b"{}"


def token_id(text: str) -> str:
    return text.split("_")[1]


def plant(process: Process, path: str, headers: bytes, body: bytes) -> str:
    """Send the request, and give what came back."""
    host = b"" if b"host:" in headers else b"host: localhost\r\n"
    with socket.create_connection(("127.0.0.1", process.port), 30) as connection:
        connection.sendall(
            b"POST %s HTTP/1.1\r\n%s%scontent-type: application/json\r\nconnection: close\r\ncontent-length: %d\r\n\r\n%s"
            % (path.encode(), host, headers, len(body), body)
        )
        answered = b""
        while part := connection.recv(65536):
            answered += part
    return answered.decode()

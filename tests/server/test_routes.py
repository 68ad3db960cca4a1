"""The server's routes, asked as a program in any language would."""

import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
import urllib3
from msgspec import json

from holdfast.commands.objects import Named, Names
from holdfast.commands.together import AnyCommand
from holdfast.server.app import ControlPlane, Options
from holdfast.server.process.network_policy import Exposure
from holdfast.server.process.uvicorn_server import Server, serving
from holdfast.stores.http.protocol import ROUTES
from holdfast.stores.memory import MemoryStore
from holdfast.testing.clock import FakeClock
from holdfast.testing.conformance.threads import PATIENCE_S, Doing, all_asleep
from tests.server.serving import JSON, Served

PUT = {"queue": "jobs", "items": [{"id": "a", "value": {"n": 1}}]}


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def served(clock: FakeClock) -> Iterator[Served]:
    served = Served(MemoryStore(clock=clock), Options(heartbeat_s=0.05, body_bytes=100_000))
    yield served
    served.close()


def ask(served: Served, path: str, body: Any = None, method: str = "POST", **headers: str) -> tuple[int, Any]:
    data = body if isinstance(body, bytes) else json.encode(body)
    reply = urllib3.request(method, served.url + path, body=data, headers=JSON | headers, retries=False, timeout=PATIENCE_S)
    return reply.status, json.decode(reply.data)


def test_every_command_has_a_route() -> None:
    assert {route.command for route in ROUTES} == set(AnyCommand.__args__)


def test_put_claim_and_settle_by_plain_json(served: Served) -> None:
    assert ask(served, "/v1/put", PUT) == (200, {"ids": ["a"], "created": [True]})
    _, claimed = ask(served, "/v1/claim", {"queue": "jobs", "holder": "me", "lease_s": 30})
    token = claimed["messages"][0]["token"]
    assert claimed["messages"][0]["value"] == {"n": 1}
    assert ask(served, "/v1/settle", {"receipts": [["jobs", "a", token]]}) == (200, {"held": [True]})


@pytest.mark.parametrize("topic", ["queue:" + "x" * 700, "key:q" + ":" * 700, "watch:" * 200])
def test_a_topic_longer_than_any_can_be_is_refused_wherever_it_is_named(served: Served, topic: str) -> None:
    changes = ask(served, "/v1/changes", {"topic": topic})
    watch = ask(served, f"/v1/watch?topic={topic}", method="GET")
    wait = ask(served, "/v1/wait", {"topics": [["queue:q"], [topic]], "timeout_s": 0})
    for status, problem in (changes, watch, wait):
        assert (status, "topic" in problem["detail"]) == (422, True)


def test_white_space_around_a_value_is_no_part_of_it(served: Served) -> None:
    ask(served, "/v1/write", b'{"dict": "d", "changes": [{"key": "a", "value": {"x" : [1,\n 2]}}]}')
    change = b'{"key":"a","value":2,"expect":"value","expected":{"x":[1,2]}}'
    status, written = ask(served, "/v1/write", b'{"dict":"d","changes":[' + change + b"]}")
    assert (status, written[0]["entry"]["value"]) == (200, 2)


def test_a_claim_waits_on_the_server_until_something_is_there(served: Served) -> None:
    waiter = Doing(lambda: ask(served, "/v1/claim?wait_s=300", {"queue": "jobs"}))
    all_asleep(waiter)
    ask(served, "/v1/put", PUT)
    _, claimed = waiter.result("a claim that waits on the server")
    assert [message["id"] for message in claimed["messages"]] == ["a"]


def test_a_claim_whose_client_hung_up_takes_nothing(served: Served) -> None:
    gone = connection(served)
    body = b'{"queue":"jobs"}'
    gone.sendall(
        b"POST %s/v1/claim?wait_s=300 HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%s"
        % (path(served), len(body), body)
    )
    until(lambda: len(served.plane._lasting) == 1)
    gone.close()
    until(lambda: len(served.plane._lasting) == 0)
    ask(served, "/v1/put", PUT)
    assert ask(served, "/v1/count", {"queue": "jobs"})[1]["ready"] == 1


@pytest.mark.parametrize("query", ["wait_s=-1", "wait_s=301", "wait_s=nan", "wait_s=x", "wait=1", "wait_s=1&x=2"])
def test_a_bad_time_to_wait_is_refused(served: Served, query: str) -> None:
    assert ask(served, f"/v1/claim?{query}", {"queue": "jobs"})[1]["code"] == "bad_value"


def test_a_claim_that_waits_takes_no_id(served: Served) -> None:
    assert ask(served, "/v1/claim?wait_s=1", {"queue": "jobs", "id": "c1"})[1]["code"] == "bad_value"


def test_a_wait_answers_at_once_without_a_mark_and_later_from_the_mark_it_gave(served: Served) -> None:
    _, first = ask(served, "/v1/wait", {"topics": [["queue:jobs"]]})
    ((topic, mark, count),) = first["topics"]
    assert (topic, count) == ("queue:jobs", None)
    waiter = Doing(lambda: ask(served, "/v1/wait", {"topics": [["queue:jobs", mark]], "timeout_s": 300}))
    all_asleep(waiter)
    ask(served, "/v1/put", {"queue": "jobs", "items": [{"id": name, "value": 1} for name in "abc"]})
    _, second = waiter.result("a wait for a put of three")
    assert [(topic, count) for topic, _, count in second["topics"]] == [("queue:jobs", 3)]
    _, again = ask(served, "/v1/wait", {"topics": [["queue:jobs", mark]], "timeout_s": 300})
    assert again == second, "what came after a mark is told to everyone who comes with that mark"


def test_a_wait_ends_at_its_time_out_with_nothing(served: Served) -> None:
    _, first = ask(served, "/v1/wait", {"topics": [["queue:jobs"]]})
    mark = first["topics"][0][1]
    assert ask(served, "/v1/wait", {"topics": [["queue:jobs", mark]], "timeout_s": 0.01}) == (200, {"topics": []})


@pytest.mark.parametrize("mark", ["", "x", ":", "1:2", "9" * 5000, "a.1:-1"])
def test_a_mark_of_no_listening_is_stale(served: Served, mark: str) -> None:
    _, answer = ask(served, "/v1/wait", {"topics": [["queue:jobs", mark]], "timeout_s": 300})
    assert [topic for topic, _, _ in answer["topics"]] == ["queue:jobs"]


@pytest.mark.parametrize(
    "asked", [{"topics": []}, {"topics": [["x" * 701]]}, {"topics": [["a"]] * 10_001}, {"topics": [["a"]], "timeout_s": 301}]
)
def test_a_wait_on_nothing_or_too_much_is_refused(served: Served, asked: Any) -> None:
    assert ask(served, "/v1/wait", asked)[1]["code"] == "bad_value"


def test_a_watch_tells_events_with_their_index_and_goes_on_after_it(served: Served) -> None:
    ask(served, "/v1/put", PUT)
    stream = Stream(served, "topic=queue:jobs")
    first = stream.next_event()
    assert (first["id"], first["event"], first["data"]["data"]) == ("1", "put", {"ids": ["a"]})
    ask(served, "/v1/claim", {"queue": "jobs"})
    assert stream.next_event()["event"] == "claimed"
    stream.close()
    ask(served, "/v1/put", {"queue": "jobs", "items": [{"id": "b", "value": 1}]})
    again = Stream(served, "topic=queue:jobs", **{"Last-Event-ID": "2"})
    assert again.next_event()["data"]["data"] == {"ids": ["b"]}
    again.close()
    after = Stream(served, "topic=queue:jobs&after=1")
    assert after.next_event()["event"] == "claimed"
    after.close()


def test_a_watch_without_events_shows_that_it_lives(served: Served) -> None:
    stream = Stream(served, "topic=queue:jobs")
    while stream.next_line() != ": still here":
        pass
    stream.close()


def test_a_watch_from_events_that_are_gone_is_told_so(served: Served) -> None:
    status, problem = ask(served, "/v1/watch?topic=queue:jobs&after=99", method="GET")
    assert (status, problem["code"], problem["fields"]) == (410, "compacted", {"oldest": 0})


@pytest.mark.parametrize("query", ["", "after=1", "topic=queue:a&after=x", "topic=queue:a&after=" + "9" * 40, "topic=a&more=1"])
def test_a_watch_of_nothing_is_refused(served: Served, query: str) -> None:
    assert ask(served, f"/v1/watch?{query}", method="GET")[0] == 422


def test_health_says_nothing_but_that_it_lives(served: Served) -> None:
    assert ask(served, "/healthz", method="GET") == (200, {"ok": True})
    assert ask(served, "/readyz", method="GET") == (200, {"ok": True})
    served.plane._store.close()
    assert ask(served, "/readyz", method="GET")[0] == 503
    assert ask(served, "/healthz", method="GET") == (200, {"ok": True})


def test_no_tenants_data_decides_whether_the_server_is_ready(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    def read(_: Names, __: Any, found: Named) -> Named:
        if found.settings:
            raise ValueError("a queue that cannot be read")
        return found

    monkeypatch.setattr(Names, "write", read)
    ask(served, "/v1/put", PUT)
    assert ask(served, "/v1/names", {"kind": "queue"})[0] == 422
    assert ask(served, "/readyz", method="GET") == (200, {"ok": True})


def test_what_is_not_there_and_what_is_asked_wrongly_is_said(served: Served) -> None:
    assert ask(served, "/v1/nothing", {})[1]["code"] == "no_such_route"
    assert ask(served, "/v1/put", method="GET")[1]["code"] == "wrong_method"
    assert ask(served, "/healthz")[1]["code"] == "wrong_method"


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        (b"", 400, "not_json"),
        (b"{", 400, "not_json"),
        (b"\xff", 400, "not_json"),
        (b'{"queue":"q","items":[{"id":"a","value":"\xff"}]}', 400, "not_json"),
        (b'{"queue":"q"}', 422, "bad_value"),
        (b'{"queue":"q","items":[],"more":1}', 422, "bad_value"),
        (b'{"type":"Claim","queue":"q","items":[]}', 422, "bad_value"),
        (b'{"queue":"q","items":[{"id":"a","value":' + b"[" * 200 + b"]" * 200 + b"}]}", 422, "too_deep"),
        (b'{"queue":"q","items":[{"id":"a","value":' + b"[" * 40_000 + b"}]}", 422, "too_deep"),
        (b'{"queue":"q","items":[{"id":"a","value":"' + b"x" * 100_000 + b'"}]}', 413, "too_large"),
    ],
)
def test_a_bad_body_is_refused(served: Served, body: bytes, status: int, code: str) -> None:
    answered, problem = ask(served, "/v1/put", body)
    assert (answered, problem["code"]) == (status, code)


def test_brackets_in_texts_and_many_flat_ones_are_not_deep(served: Served) -> None:
    items = [{"id": str(number), "value": {"text": '[{"\\' * 50}} for number in range(200)]
    assert ask(served, "/v1/put", {"queue": "jobs", "items": items})[0] == 200


def test_an_endless_body_is_refused_while_it_comes(served: Served) -> None:
    endless = connection(served)
    endless.sendall(
        b"POST %s/v1/put HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n" % path(served)
    )
    for _ in range(20):
        endless.sendall(b"2710\r\n" + b"x" * 10_000 + b"\r\n")
        endless.setblocking(False)
        try:
            answered = endless.recv(1000)
        except BlockingIOError:
            endless.setblocking(True)
            continue
        assert b"413" in answered
        break
    else:
        endless.setblocking(True)
        assert b"413" in endless.recv(1000)
    endless.close()


def test_a_compressed_body_is_refused(served: Served) -> None:
    assert ask(served, "/v1/put", b"\x1f\x8b", **{"Content-Encoding": "gzip"})[0] == 415


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "", "localhost.evil", "127.0.0.1.evil:7077"])
def test_a_request_for_another_host_is_refused(served: Served, host: str) -> None:
    assert ask(served, "/healthz", method="GET", Host=host)[1]["code"] == "wrong_host"


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:1234", "127.0.0.1:80", "[::1]:7077", "[::1]"])
def test_a_request_for_this_host_is_answered(served: Served, host: str) -> None:
    assert ask(served, "/healthz", method="GET", Host=host)[0] == 200


def test_what_nobody_foresaw_is_told_without_its_insides(served: Served, caplog: pytest.LogCaptureFixture) -> None:
    async def fail(*_: object) -> None:
        raise ZeroDivisionError("secret")

    assert served.plane._served is not None
    served.plane._served.store.execute = fail  # type: ignore[method-assign, assignment]
    status, problem = ask(served, "/v1/put", PUT)
    assert (status, problem["code"]) == (500, "internal")
    assert "secret" not in problem["detail"]
    incident = problem["detail"].rpartition(" ")[2]
    assert f"incident {incident}" in caplog.text


def test_closing_the_server_ends_waits_and_watches() -> None:
    server = Server(ControlPlane(MemoryStore()), Exposure(port=0))
    with serving(server) as url:
        waiter = Doing(lambda: urllib3.request("POST", f"{url}/v1/claim?wait_s=300", body=b'{"queue":"jobs"}', headers=JSON, retries=False))
        until(lambda: len(server._plane._lasting) == 1)
    assert waiter.result("a claim that waited").data == b'{"messages":[]}'


class Stream:
    """A watch, read line by line."""

    def __init__(self, served: Served, query: str, **headers: str) -> None:
        url = f"{served.url}/v1/watch?{query}"
        self._reply = urllib3.request("GET", url, headers=headers, preload_content=False, retries=False, timeout=PATIENCE_S)
        assert self._reply.headers["content-type"] == "text/event-stream"
        self._lines = self._read()

    def _read(self) -> Iterator[str]:
        left = b""
        for chunk in self._reply.stream(4096):
            *lines, left = (left + chunk).split(b"\n")
            for line in lines:
                yield line.decode()

    def next_line(self) -> str:
        return next(self._lines)

    def next_event(self) -> dict[str, Any]:
        """The fields of the next event, its data decoded."""
        fields: dict[str, Any] = {}
        for line in self._lines:
            if not line and fields:
                break
            if line and not line.startswith(":"):
                name, _, value = line.partition(": ")
                fields[name] = json.decode(value) if name == "data" else value
        return fields

    def close(self) -> None:
        self._reply.close()


def connection(served: Served) -> socket.socket:
    host, port = served.url.removeprefix("http://").partition("/")[0].split(":")
    return socket.create_connection((host, int(port)), PATIENCE_S)


def path(served: Served) -> bytes:
    return b"/" + served.url.removeprefix("http://").partition("/")[2].encode()


def until(condition: Any) -> None:
    """Look again and again, until it is so."""
    pause, deadline = threading.Event(), time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline
        pause.wait(0.001)

"""What an attacker did with one small scope, through a server on each store: it is refused, and everybody else goes on.

`docs/design/security.md` has the list of all that was found, and the test of each.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import urllib3
from msgspec import json

from holdfast.testing.clock import FakeClock
from tests.server.serving import JSON, Served
from tests.stores_by_name import factory_of

STORES = ["sqlite", "lmdb", "postgres", "redis"]
HUGE = 2**63 - 1
METADATA = [b"[1]", b'"x"', b"5", b'{"a":1e400}', b'{"a":' + b"9" * 5_000 + b"}"]


class Attacked:
    """A server on a store, and the clock of the store."""

    def __init__(self, kind: str, folder: Path) -> None:
        self.clock = FakeClock()
        self._served = Served(factory_of(kind, folder).make(self.clock))
        self._pool = urllib3.PoolManager(timeout=30.0, retries=False)

    def post(self, what: str, body: dict[str, Any] | bytes) -> tuple[int, Any]:
        sent = body if isinstance(body, bytes) else json.encode(body)
        reply = self._pool.request("POST", f"{self._served.url}/v1/{what}", body=sent, headers=JSON)
        return reply.status, json.decode(reply.data)

    def refused(self, what: str, body: dict[str, Any] | bytes, field: str) -> None:
        """The caller is told which field is wrong."""
        status, answer = self.post(what, body)
        assert (status, field in answer["detail"]) == (422, True), answer

    def ok(self, what: str, body: dict[str, Any]) -> Any:
        status, answer = self.post(what, body)
        assert status == 200, answer
        return answer

    def get(self, path: str) -> int:
        return self._pool.request("GET", f"{self._served.url}/{path}").status

    def claim(self, lease_s: float = 30.0, **more: Any) -> list[str]:
        claimed = self.ok("claim", {"queue": "jobs", "holder": "w", "lease_s": lease_s, "limit": 10, **more})
        return [message["id"] for message in claimed["messages"]]

    def close(self) -> None:
        self._pool.clear()
        self._served.close()


@pytest.fixture(params=STORES)
def attacked(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Attacked]:
    attacked = Attacked(request.param, tmp_path)
    yield attacked
    attacked.close()


def test_metadata_that_no_sweep_can_read_is_refused_and_claims_go_on(attacked: Attacked) -> None:
    for number, metadata in enumerate(METADATA):
        body = b'{"queue":"jobs","items":[{"id":"p%d","value":1,"metadata":%b}]}' % (number, metadata)
        attacked.refused("put", body, "metadata")
    attacked.claim(1.0, max_attempts=1, dead_letter="grave")
    attacked.clock.advance(2)
    attacked.ok("put", {"queue": "jobs", "items": [{"id": "good", "value": 1}]})
    assert attacked.claim(max_attempts=1, dead_letter="grave") == ["good"]
    assert attacked.ok("browse", {"queue": "grave"})["messages"] == []


def test_a_number_that_no_store_keeps_exactly_is_refused_and_its_neighbours_are_delivered(attacked: Attacked) -> None:
    attacked.ok("put", {"queue": "jobs", "items": [{"id": "one", "value": 1}, {"id": "two", "value": 2}]})
    attacked.refused("put", {"queue": "jobs", "items": [{"id": "p", "value": 1, "max_attempts": HUGE}]}, "max_attempts")
    assert attacked.claim() == ["one", "two"]
    attacked.ok("write", {"dict": "cfg", "changes": [{"key": '"a"', "value": 1}]})
    attacked.refused("write", {"dict": "cfg", "changes": [{"key": '"b"', "value": 1, "fence": HUGE}]}, "fence")
    assert len(attacked.ok("read", {"dict": "cfg"})["entries"]) == 1
    for maxsize in (HUGE, 2**64 - 1):
        attacked.refused("configure", {"kind": "queue", "name": "aaa", "maxsize": maxsize}, "maxsize")
    attacked.ok("names", {"kind": "queue"})
    assert [attacked.get(path) for path in ("readyz", "metrics")] == [200, 200]


@pytest.mark.parametrize("fence", [2**52, 2**53 - 1])
def test_a_fence_above_every_token_is_refused_and_later_holders_write(attacked: Attacked, fence: int) -> None:
    for act in ({"value": 1}, {"do": "delete"}):
        status, answer = attacked.post("write", {"dict": "cfg", "changes": [{"key": '"a"', "fence": fence, **act}]})
        assert (status, answer["code"]) == (409, "refused"), answer
        assert f"fence {fence} is above" in answer["detail"]
    assert attacked.ok("names", {"kind": "dict"})["settings"] == []
    lease = attacked.ok("acquire", {"dict": "cfg", "key": '"a"', "holder": "me", "lease_id": "e", "lease_s": 9})["lease"]
    (written,) = attacked.ok("write", {"dict": "cfg", "changes": [{"key": '"a"', "value": 1, "fence": lease["token"]}]})
    assert "because" not in written


def test_a_holder_too_long_for_a_record_is_refused_and_the_dict_stays_readable(attacked: Attacked) -> None:
    attacked.ok("write", {"dict": "cfg", "changes": [{"key": '"a"', "value": 1}]})
    for name in ("cfg", None):
        lease = {"dict": name, "key": '"a"', "holder": "x" * 65_540, "lease_id": "e", "lease_s": 1_000}
        attacked.refused("acquire", lease, "holder")
        assert attacked.ok("look", {"dict": name, "keys": ['"a"']})["leases"] == [None]
        assert attacked.ok("acquire", lease | {"holder": "me"})["lease"]["holder"] == "me"
    attacked.ok("changes", {"topic": "dict:cfg"})
    attacked.ok("clear", {"kind": "dict", "name": "cfg", "drop": True})


def test_what_stands_beside_a_value_has_the_size_of_a_value_or_less(attacked: Attacked) -> None:
    large, long = "x" * 2**21, "x" * 500
    attacked.refused("put", {"queue": "jobs", "items": [{"id": "a", "value": 1, "metadata": {"a": large}}]}, "metadata")
    attacked.refused("acquire", {"dict": "cfg", "key": '"a"', "holder": "h", "lease_id": "e", "lease_s": 9, "default": large}, "default")
    attacked.refused("claim", {"queue": "jobs", "holder": large, "lease_s": 9}, "holder")
    attacked.refused("write", {"dict": "cfg", "changes": [{"key": '"a"', "value": 1, "expect": "value", "expected": large}]}, "expected")
    attacked.refused("write", {"dict": "cfg", "changes": [{"key": '"a"', "value": 1, "lease": long}]}, "lease")
    attacked.refused("read", {"dict": "cfg", "keys": [long]}, "keys")
    attacked.refused("browse", {"queue": "jobs", "ids": [long]}, "ids")
    assert [attacked.ok("names", {"kind": kind})["settings"] for kind in ("queue", "dict")] == [[], []]


def test_numbers_and_cursors_out_of_range_are_refused_without_a_trace_in_the_log(
    attacked: Attacked, caplog: pytest.LogCaptureFixture
) -> None:
    asked: list[tuple[str, dict[str, Any], str]] = [
        ("browse", {"queue": "jobs", "after": [1]}, "after"),
        ("browse", {"queue": "jobs", "after": [0, 1, 2**70]}, "after"),
        ("browse", {"queue": "jobs", "limit": 2**70}, "limit"),
        ("changes", {"topic": "queue:jobs", "after": 2**70}, "after"),
        ("claim", {"queue": "jobs", "limit": -(2**70)}, "limit"),
        ("put", {"queue": "jobs", "items": [{"id": "a", "value": 1, "priority": 2**70}]}, "priority"),
        ("prune", {"keep": 2**70}, "keep"),
        ("settle", {"receipts": [["jobs", "a", 2**70]]}, "token"),
    ]
    for what, body, field in asked:
        attacked.refused(what, body, field)
    assert [record.getMessage() for record in caplog.records if record.levelname in ("ERROR", "CRITICAL")] == []

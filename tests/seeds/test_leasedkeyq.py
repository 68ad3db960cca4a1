"""Each block of leasedkeyq's document runs as it is documented, on every store; only the import differs.

On a store that is shared a queue is told its store; what a block mentions and does not make (a queue, a key that waits) it gets.
"""

import functools
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from holdfast.client import client_for
from holdfast.surfaces.leasedkeyq import KeyAlreadyInFlightError, LeasedKeyQueue
from tests.stores_by_name import url_of

pytestmark = pytest.mark.anyio


@pytest.fixture(params=["own", "memory", "sqlite", "lmdb", "redis", "postgres"])
async def make(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Any]:
    """The class, as a program imports it; on shared stores with `store=` given."""
    if request.param == "own":
        yield LeasedKeyQueue
        return
    url = url_of(request.param, tmp_path)
    yield functools.partial(LeasedKeyQueue, store=url)
    await client_for(url).aio.close()


@pytest.mark.parametrize("fails", [False, True])
async def test_the_quick_start(make: Any, capsys: pytest.CaptureFixture[str], fails: bool) -> None:  # noqa: FBT001 - by name
    async def process(value: object) -> None:
        if fails:
            raise RuntimeError("out of paint")

    async with make(default_lease_timeout=30.0) as queue:
        await queue.put("task-1", {"action": "process", "data": 123})
        await queue.put("task-2", {"action": "send", "data": 456})

        key, value, lease = await queue.get()
        print(f"Processing {key}: {value}")  # noqa: T201 - as documented

        try:
            await process(value)
            await queue.ack(lease)
        except Exception:  # noqa: BLE001 - as documented
            await queue.release(lease, requeue_front=True)

        key, value, lease = await queue.take("task-2")
        print(f"Specifically got {key}: {value}")  # noqa: T201 - as documented
        await queue.ack(lease)
        assert await queue.available_keys() == ({"task-1"} if fails else set())
    assert capsys.readouterr().out == (
        "Processing task-1: {'action': 'process', 'data': 123}\nSpecifically got task-2: {'action': 'send', 'data': 456}\n"
    )


async def test_the_api_in_overview(make: Any) -> None:
    queue, key = make(), "first"

    await queue.put(key, 1, if_in_flight="update")
    await queue.put("specific-key", 2)
    key, value, lease = await queue.get(timeout=10.0, lease_timeout=30.0)
    assert (key, value) == ("first", 1)
    key, value, second = await queue.take("specific-key", timeout=10.0)
    assert (key, value) == ("specific-key", 2)

    await queue.ack(lease)
    await queue.release(second, requeue_front=True)

    await queue.put("key", 3)
    value = await queue.peek("key")
    has_key = await queue.contains("key")
    keys = await queue.available_keys()
    inflight = await queue.inflight_keys()
    size = await queue.qsize()
    assert (value, has_key, keys, inflight, size) == (3, True, {"key", "specific-key"}, set(), 2)


async def test_the_policies_in_flight(make: Any) -> None:
    queue, new_value = make(), "new"
    await queue.put("key", "old")
    _, _, lease = await queue.get()

    await queue.put("key", new_value, if_in_flight="update")
    with pytest.raises(KeyAlreadyInFlightError):
        await queue.put("key", new_value, if_in_flight="reject")
    await queue.put("key", new_value, if_in_flight="buffer")
    await queue.ack(lease)
    assert await queue.peek("key") == new_value


async def test_lease_time_outs(make: Any) -> None:
    queue = make(default_lease_timeout=30.0)
    await queue.start()
    await queue.put("key", 1)

    _key, _value, lease = await queue.get(lease_timeout=60.0)
    (record,) = await queue.inflight()
    assert (record.lease, record.timeout) == (lease, 60.0)


def test_the_generic_form_names_its_types() -> None:
    assert LeasedKeyQueue[str, dict[str, Any]](default_lease_timeout=30.0).name.startswith("leasedkeyq")

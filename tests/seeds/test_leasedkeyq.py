"""Each block of leasedkeyq's document runs as it is documented, on every store; only the import differs.

On a store that is shared a queue is told its store; what a block mentions and does not make (a queue, a key that waits) it gets.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any, Generic, TypeVar

import pytest

from holdfast.client import client_for
from holdfast.surfaces import leasedkeyq
from holdfast.surfaces.leasedkeyq import KeyAlreadyInFlightError, LeasedKeyQueue
from tests.seeds.blocks import code_of, run, run_inside
from tests.stores_by_name import url_of

K = TypeVar("K")
V = TypeVar("V")

STORES = ["own", "memory", "sqlite", "lmdb", "redis", "postgres"]


@pytest.fixture(params=STORES)
def url(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str | None]:
    """Where queues are that are told no store; None is where they are by themselves."""
    if request.param == "own":
        yield None
        return
    url = url_of(request.param, tmp_path)

    class There(LeasedKeyQueue[K, V], Generic[K, V]):
        def __init__(self, **options: Any) -> None:
            super().__init__(store=url, **options)

    monkeypatch.setattr(leasedkeyq, "LeasedKeyQueue", There)
    yield url
    client_for(url).close()


@pytest.fixture
async def queue(url: str | None) -> AsyncIterator[LeasedKeyQueue[Any, Any]]:
    yield leasedkeyq.LeasedKeyQueue()
    if url is not None:
        # Connections of tasks belong to their loop, and are closed in it.
        await client_for(url).aio.close()


@pytest.mark.parametrize("fails", [False, True])
def test_the_quick_start(
    url: str | None,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    fails: bool,  # noqa: FBT001 - by name
) -> None:
    async def process(value: object) -> None:
        if fails:
            raise RuntimeError("out of paint")

    async def whole(main: Any) -> None:
        await main
        if url is not None:
            left = await LeasedKeyQueue[str, Any](store=url).available_keys()
            assert left == ({"task-1"} if fails else set())
            await client_for(url).aio.close()

    start = asyncio.run
    monkeypatch.setattr(asyncio, "run", lambda main: start(whole(main)))
    run("leasedkeyq", "Quick start", process=process)
    assert capsys.readouterr().out == (
        "Processing task-1: {'action': 'process', 'data': 123}\nSpecifically got task-2: {'action': 'send', 'data': 456}\n"
    )


@pytest.mark.anyio
async def test_producer_and_consumer(queue: LeasedKeyQueue[Any, Any]) -> None:
    await run_inside("leasedkeyq", "Producer", queue=queue, key="first", value=1)
    await queue.put("specific-key", 2)
    names = await run_inside("leasedkeyq", "Consumer", queue=queue)
    assert (names["key"], names["value"]) == ("specific-key", 2)
    assert await queue.inflight_keys() == {"first", "specific-key"}


@pytest.mark.anyio
async def test_lease_control(queue: LeasedKeyQueue[Any, Any]) -> None:
    """A lease is acknowledged or released, so each line of the block has one of its own."""
    for key in ("a", "b", "c"):
        await queue.put(key, 0)
    for line in code_of("leasedkeyq", "Lease control").splitlines():
        _, _, lease = await queue.get()
        names: dict[str, Any] = {"queue": queue, "lease": lease}
        # The code is in the folder of the blocks.
        exec(f"async def block(queue, lease):\n    {line}", names)  # noqa: S102 - see above
        await names["block"](queue, lease)
    assert [(await queue.get())[0] for _ in range(2)] == ["b", "c"]


@pytest.mark.anyio
async def test_introspection(queue: LeasedKeyQueue[Any, Any]) -> None:
    await queue.put("leased", 1)
    await queue.get()
    await queue.put("key", 3)
    names = await run_inside("leasedkeyq", "Introspection", queue=queue)
    assert [names[name] for name in ("value", "has_key", "keys", "inflight", "size")] == [3, True, {"key"}, {"leased"}, 1]


@pytest.mark.anyio
async def test_the_policies_in_flight(queue: LeasedKeyQueue[Any, Any]) -> None:
    await queue.put("key", "old")
    _, _, lease = await queue.get()

    await run_inside("leasedkeyq", "In flight", queue=queue, new_value="new")
    with pytest.raises(KeyAlreadyInFlightError):
        await queue.put("key", "new", if_in_flight="reject")
    await queue.release(lease)
    assert await queue.peek("key") == "new"


@pytest.mark.anyio
async def test_lease_time_outs(queue: LeasedKeyQueue[Any, Any], url: str | None) -> None:
    class Filled(leasedkeyq.LeasedKeyQueue[K, V], Generic[K, V]):
        async def start(self) -> None:
            await super().start()
            await self.put("key", 1)  # type: ignore[arg-type] # of this test

    names = await run_inside("leasedkeyq", "Lease time-outs", LeasedKeyQueue=Filled)
    (record,) = await names["queue"].inflight()
    assert (record.lease, record.timeout) == (names["lease"], 60.0)

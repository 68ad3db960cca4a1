"""Each step of sssn's tutorial on work queues runs as it is documented, on every store; only the import differs.

On a store that is shared a channel is told its store; what a block mentions and does not make (a queue, a job) it gets.
"""

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast.client import client_for
from holdfast.surfaces import sssn
from holdfast.surfaces.sssn import ChannelMessage, GenericContent, WorkQueueChannel
from tests.seeds.blocks import run, run_inside
from tests.stores_by_name import url_of


@pytest.fixture(params=["own", "memory", "sqlite", "lmdb", "redis", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str | None]:
    """Where channels are that are told no store; None is where they are by themselves."""
    if request.param == "own":
        yield None
        return
    url = url_of(request.param, tmp_path)

    class There(WorkQueueChannel):
        def __init__(self, **options: Any) -> None:
            super().__init__(store=url, **options)

    monkeypatch.setattr(sssn, "WorkQueueChannel", There)
    yield url
    client_for(url).close()


@pytest.fixture
def start(url: str | None, monkeypatch: pytest.MonkeyPatch) -> Any:
    """`asyncio.run`, which closes the connections that belong to the loop."""

    async def whole(main: Any) -> None:
        await main
        if url is not None:
            await client_for(url).aio.close()

    original = asyncio.run
    monkeypatch.setattr(asyncio, "run", lambda main: original(whole(main)))
    return asyncio.run


async def started(name: str, **options: Any) -> WorkQueueChannel:
    channel = sssn.WorkQueueChannel(id=name, name=name, **options)
    await channel.start()
    return channel


def test_steps_one_to_three(start: Any, capsys: pytest.CaptureFixture[str]) -> None:
    names = run("sssn", "Step 1", "Step 2", "Step 3")
    start(names["main"]())
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "Queued 4 jobs"
    assert sorted(line.split(": ")[1] for line in lines if "done" in line) == [f"photo-{number}.jpg" for number in range(1, 5)]


def test_step_four_a_claim_that_is_dated_back_is_reclaimed(start: Any) -> None:
    async def main() -> None:
        queue = await started("resize-jobs", claim_timeout=60.0)
        message_id = await queue.write("scheduler", {"file": "photo-1.jpg"})
        names = await run_inside("sssn", "Step 4", queue=queue, time=time)
        assert [msg.id for msg in names["available"]] == [message_id]
        assert queue._store.claims[message_id][0] == "rescue-worker"

    start(main())


async def do_work(msg: ChannelMessage) -> None:
    raise RuntimeError("out of paint")


def test_step_five_the_recipe(start: Any) -> None:
    async def main() -> None:
        queue, dead_letter_queue = await started("work"), await started("dead")
        await queue.write("producer", "job")
        names = run("sssn", "Step 5", WorkQueueChannel=WorkQueueChannel, do_work=do_work, dead_letter_queue=dead_letter_queue)
        await names["process_with_retry"](queue, "worker")
        assert [msg.metadata.get("retries", 0) for msg in await queue.read("anyone")] == [0, 1], "the recipe multiplies messages"
        await names["process_with_retry"](queue, "worker", max_retries=0)
        assert len(await dead_letter_queue.read("anyone")) == 1

    start(main())


def test_failing_with_a_budget_does_what_the_recipe_meant(start: Any) -> None:
    async def process_with_a_budget(queue: WorkQueueChannel, worker_id: str) -> None:
        for msg in await queue.read(worker_id, limit=1, exclusive=True):
            try:
                await do_work(msg)
                await queue.acknowledge(worker_id, [msg.id])
            except Exception as e:  # noqa: BLE001 - as in the recipe
                await queue.fail(worker_id, [msg.id], error=str(e))

    async def main() -> None:
        queue = await started("budgeted", max_attempts=3, dead_letter="dead-work")
        await queue.write("producer", "job")
        for _ in range(5):
            await process_with_a_budget(queue, "worker")
        assert await queue.read("worker") == []
        dead_letters = WorkQueueChannel(id="dead-work", name="Dead", store=queue.client)
        (dead,) = await dead_letters.read("undertaker", exclusive=True)
        assert dead.content == GenericContent(data="job")
        assert (dead.metadata["dead_letter"]["failures"], dead.metadata["dead_letter"]["error"]) == (3, "out of paint")

    start(main())


@pytest.mark.usefixtures("start")
def test_the_complete_program(capsys: pytest.CaptureFixture[str]) -> None:
    run("sssn", "Complete program")
    assert capsys.readouterr().out == "Processed 10 tasks\n"

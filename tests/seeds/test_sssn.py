"""Each step of sssn's tutorial on work queues runs as it is documented, on every store; only the import differs.

On a store that is shared a channel is told its store; what a block mentions and does not make (a queue, a job) it gets.
"""

import asyncio
import functools
import random
import time
import uuid
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from holdfast.client import client_for
from holdfast.surfaces.sssn import ChannelMessage, GenericContent, WorkQueueChannel
from tests.stores_by_name import url_of

pytestmark = pytest.mark.anyio


@pytest.fixture(params=["own", "memory", "sqlite", "lmdb", "redis", "postgres"])
async def make(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Any]:
    """The class, as a program imports it; on shared stores with `store=` given."""
    if request.param == "own":
        yield WorkQueueChannel
        return
    url = url_of(request.param, tmp_path)
    yield functools.partial(WorkQueueChannel, store=url)
    await client_for(url).aio.close()


async def test_steps_one_to_three(make: Any, capsys: pytest.CaptureFixture[str]) -> None:
    queue = make(
        id="resize-jobs",
        name="Image Resize Jobs",
        claim_timeout=60.0,
    )
    await queue.start()

    jobs = [
        {"file": "photo-1.jpg", "size": 1024},
        {"file": "photo-2.jpg", "size": 800},
        {"file": "photo-3.jpg", "size": 2048},
        {"file": "photo-4.jpg", "size": 512},
    ]
    for job in jobs:
        await queue.write("scheduler", job)

    async def worker(worker_id: str) -> None:
        while True:
            msgs = await queue.read(worker_id, limit=2, exclusive=True)
            if not msgs:
                break
            for msg in msgs:
                try:
                    await do_resize(msg.content.data)
                    await queue.acknowledge(worker_id, [msg.id])
                    print(f"[{worker_id}] done: {msg.content.data['file']}")  # noqa: T201 - as documented
                except Exception:  # noqa: BLE001 - as documented
                    await queue.nack(worker_id, [msg.id])

    async def do_resize(job: dict[str, Any]) -> None:
        await asyncio.sleep(0.01)
        assert job in jobs

    await asyncio.gather(
        worker("worker-1"),
        worker("worker-2"),
    )
    done = sorted(line.split(": ")[1] for line in capsys.readouterr().out.splitlines())
    assert done == ["photo-1.jpg", "photo-2.jpg", "photo-3.jpg", "photo-4.jpg"]
    assert await queue.read("worker-1", exclusive=True) == []


async def test_step_four_a_claim_that_is_dated_back_is_reclaimed(make: Any) -> None:
    queue = make(id="resize-jobs", name="Image Resize Jobs", claim_timeout=60.0)
    await queue.start()
    await queue.write("scheduler", {"file": "photo-1.jpg"})

    msgs = await queue.read("stuck-worker", limit=1, exclusive=True)
    queue._store.claims[msgs[0].id] = ("stuck-worker", time.time() - 9999)

    available = await queue.read("rescue-worker", limit=10, exclusive=True)
    assert [msg.id for msg in available] == [msgs[0].id]
    assert queue._store.claims[msgs[0].id][0] == "rescue-worker"


async def do_work(msg: ChannelMessage) -> None:
    raise RuntimeError("out of paint")


async def test_step_five_the_recipe(make: Any) -> None:
    queue = make(id="work", name="Work")
    dead_letter_queue = make(id="dead", name="Dead")
    for channel in (queue, dead_letter_queue):
        await channel.start()
    await queue.write("producer", "job")

    async def process_with_retry(queue: WorkQueueChannel, worker_id: str, max_retries: int = 3) -> None:
        msgs = await queue.read(worker_id, limit=1, exclusive=True)
        if not msgs:
            return
        msg = msgs[0]
        retries = msg.metadata.get("retries", 0)
        try:
            await do_work(msg)
            await queue.acknowledge(worker_id, [msg.id])
        except Exception as e:  # noqa: BLE001 - as documented
            await queue.nack(worker_id, [msg.id])
            if retries < max_retries:
                retry_msg = ChannelMessage(
                    id=str(uuid.uuid4()),
                    timestamp=time.time(),
                    sender_id=worker_id,
                    content=msg.content,
                    metadata={"retries": retries + 1, "last_error": str(e)},
                )
                await queue.write(worker_id, retry_msg, direct=True)
            else:
                await dead_letter_queue.write(worker_id, msg, direct=True)

    await process_with_retry(queue, "worker")
    assert [msg.metadata.get("retries", 0) for msg in await queue.read("anyone")] == [0, 1], "the recipe multiplies messages"


async def test_failing_with_a_budget_does_what_the_recipe_meant(make: Any) -> None:
    async def process_with_a_budget(queue: WorkQueueChannel, worker_id: str) -> None:
        for msg in await queue.read(worker_id, limit=1, exclusive=True):
            try:
                await do_work(msg)
                await queue.acknowledge(worker_id, [msg.id])
            except Exception as e:  # noqa: BLE001 - as above
                await queue.fail(worker_id, [msg.id], error=str(e))

    queue = make(id="budgeted", name="Work", max_attempts=3, dead_letter="dead-work")
    await queue.start()
    await queue.write("producer", "job")
    for _ in range(5):
        await process_with_a_budget(queue, "worker")
    assert await queue.read("worker") == []
    dead_letters = WorkQueueChannel(id="dead-work", name="Dead", store=queue.client)
    (dead,) = await dead_letters.read("undertaker", exclusive=True)
    assert dead.content == GenericContent(data="job")
    assert (dead.metadata["dead_letter"]["failures"], dead.metadata["dead_letter"]["error"]) == (3, "out of paint")


async def test_the_complete_program(make: Any) -> None:
    queue = make(id="tasks", name="Task Queue", claim_timeout=30.0)
    await queue.start()

    for i in range(10):
        await queue.write("producer", {"task_id": i, "payload": f"data-{i}"})

    results: list[str] = []

    async def worker(wid: str) -> None:
        while True:
            msgs = await queue.read(wid, limit=3, exclusive=True)
            if not msgs:
                return
            for msg in msgs:
                if random.random() < 0.2:
                    await queue.nack(wid, [msg.id])
                    continue
                results.append(f"{wid}:{msg.content.data['task_id']}")
                await queue.acknowledge(wid, [msg.id])

    await asyncio.gather(
        worker("worker-a"),
        worker("worker-b"),
        worker("worker-c"),
    )
    assert sorted(int(result.split(":")[1]) for result in results) == list(range(10))

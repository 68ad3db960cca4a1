"""A factory that is async, for a function that is not; and resources of a worker in threads whose functions are async."""

from collections.abc import AsyncIterator, Iterator

import pytest

from holdfast import ControlPlaneClient, Tasks, Use
from holdfast.stores.memory import MemoryStore


@pytest.fixture
def client() -> Iterator[ControlPlaneClient]:
    with ControlPlaneClient.on(MemoryStore()) as made:
        yield made


def test_a_sync_function_with_an_async_factory_fails_with_the_reason(client: ControlPlaneClient) -> None:
    app = Tasks(client=client, max_attempts=1)

    async def connect() -> str:
        return "never"

    @app.task(name="take")
    def take(db: str = Use(connect)) -> None: ...

    job = take.put()
    app.run(until_empty=True, signals=False, heartbeat_s=None)
    assert "is async, and a function that runs in a thread or process cannot wait for it" in (job.status().error or "")


def test_what_tasks_have_used_is_cleaned_up_in_their_event_loop(client: ControlPlaneClient) -> None:
    app = Tasks(client=client)
    log: list[str] = []

    async def pool() -> AsyncIterator[str]:
        log.append("begun")
        yield "pool"
        log.append("ended")

    @app.task(name="take")
    async def take(db: str = Use(pool)) -> str:
        return db

    jobs = take.put_many([take.args(), take.args()])
    app.run(until_empty=True, signals=False, heartbeat_s=None)
    assert [job.result(timeout_s=0) for job in jobs] == ["pool", "pool"]
    assert log[0] == "begun"
    assert log.count("begun") == 1

"""Programs whose event loops end, on every store: nothing stays open, and nobody is told of it."""

import asyncio
import gc
import subprocess
import sys
import weakref
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from holdfast import ControlPlaneClient, Queue
from holdfast.stores.memory import MemoryStore
from tests.server.serving import Served
from tests.server.test_routes import until
from tests.stores_by_name import url_of

PROGRAM = Path(__file__).with_name("loop_ends.py")


@pytest.fixture
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param != "http":
        yield url_of(request.param, tmp_path)
        return
    served = Served(MemoryStore())
    yield served.url
    served.close()


def open_sockets() -> int:
    files = Path("/proc/self/fd").iterdir()
    return sum(file.is_symlink() and str(file.readlink()).startswith("socket") for file in list(files))


@pytest.mark.parametrize("url", ["memory", "sqlite", "lmdb", "redis", "postgres"], indirect=True)
def test_loops_that_ended_leave_neither_sockets_nor_themselves(url: str) -> None:
    loops = []
    with ControlPlaneClient(url) as client:
        jobs = Queue.create("jobs", client=client).aio

        async def put_and_get() -> None:
            loops.append(weakref.ref(asyncio.get_running_loop()))
            await jobs.put(1)
            await jobs.get()

        asyncio.run(put_and_get())
        before = open_sockets()
        for _ in range(30):
            asyncio.run(put_and_get())
        assert open_sockets() <= before
        until(lambda: gc.collect() >= 0 and not any(loop() for loop in loops))


@pytest.mark.parametrize("url", ["http", "redis", pytest.param("postgres", marks=pytest.mark.verify)], indirect=True)
@pytest.mark.parametrize("kind", ["asyncio", pytest.param("uvloop", marks=pytest.mark.verify)])
def test_programs_end_quietly_however_they_close_what_they_used(url: str, kind: str) -> None:
    done = subprocess.run([sys.executable, "-W", "default", PROGRAM, url, kind], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "nothing is left\n", "")


@pytest.mark.parametrize("url", ["memory", "sqlite", "lmdb", "redis", "postgres", "http"], indirect=True)
def test_what_a_generator_holds_when_its_loop_ends_is_given_back(url: str) -> None:
    kept = []
    with ControlPlaneClient(url) as client:
        jobs = Queue.create("jobs", client=client)
        jobs.put(1)

        async def claims() -> AsyncIterator[object]:
            async with jobs.aio.claimed(claimer="w", lease_s=600) as claim:
                yield claim

        async def main() -> None:
            kept.append(claims())
            await anext(kept[0])

        asyncio.run(main())
        assert jobs.stats().ready == 1

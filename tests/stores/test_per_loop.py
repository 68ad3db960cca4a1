"""What belongs to an event loop ends with it."""

import asyncio
import gc
import subprocess
import sys
import threading
import weakref
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import uvloop

from holdfast.stores.per_loop import PerLoop


class Resource:
    """Knows its loop, as a connection does, and how it ended."""

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.ends: list[str] = []
        self.has_ended = asyncio.Event()

    async def close(self) -> None:
        assert asyncio.get_running_loop() is self.loop
        self.ends.append("closed")
        self.has_ended.set()

    def abandon(self) -> None:
        self.ends.append("abandoned")


def resources() -> PerLoop[Resource]:
    return PerLoop(Resource, Resource.close, Resource.abandon)


async def get(per_loop: PerLoop[Resource]) -> Resource:
    return per_loop.get()


def run_on_uvloop(main: Any) -> Any:
    return uvloop.run(main)


@pytest.mark.parametrize("run", [asyncio.run, run_on_uvloop])
def test_a_resource_is_closed_in_its_loop_when_the_loop_ends(run: Any) -> None:
    per_loop = resources()
    assert run(get(per_loop)).ends == ["closed"]


def test_tasks_of_one_loop_share_a_resource_and_loops_do_not() -> None:
    per_loop = resources()

    async def twice() -> tuple[Resource, Resource]:
        return per_loop.get(), per_loop.get()

    first, again = asyncio.run(twice())
    other, _ = asyncio.run(twice())
    assert first is again
    assert first is not other


@pytest.mark.parametrize("run", [asyncio.run, run_on_uvloop])
def test_no_loop_is_kept_alive(run: Any) -> None:
    per_loop = resources()

    async def loop() -> "weakref.ref[asyncio.AbstractEventLoop]":
        per_loop.get()
        return weakref.ref(asyncio.get_running_loop())

    loops = [run(loop()) for _ in range(3)]
    gc.collect()
    assert [each() for each in loops] == [None, None, None]
    assert len(per_loop) == 0


@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_not_even_a_loop_that_nobody_closed_is_kept_alive() -> None:
    per_loop = resources()
    loop = asyncio.new_event_loop()
    loop.run_until_complete(get(per_loop))
    known = weakref.ref(loop)
    del loop
    gc.collect()
    assert known() is None


def test_a_loop_that_was_closed_without_its_generators_is_found_by_the_next() -> None:
    per_loop = resources()
    loop = asyncio.new_event_loop()
    left = loop.run_until_complete(get(per_loop))
    loop.close()
    assert left.ends == []
    asyncio.run(get(per_loop))
    assert left.ends == ["abandoned"]


def test_closing_frees_what_a_closed_loop_left() -> None:
    per_loop = resources()
    loop = asyncio.new_event_loop()
    left = loop.run_until_complete(get(per_loop))
    loop.close()
    per_loop.close()
    assert left.ends == ["abandoned"]
    assert len(per_loop) == 0


def test_closing_in_a_task_waits_for_nothing_and_the_loop_closes_it() -> None:
    per_loop = resources()

    async def main() -> Resource:
        resource = per_loop.get()
        per_loop.close()
        assert resource.ends == []
        return resource

    assert asyncio.run(main()).ends == ["closed"]


def test_closing_from_a_thread_lets_the_loop_close_its_own() -> None:
    per_loop = resources()

    async def main() -> list[str]:
        resource = per_loop.get()
        await asyncio.to_thread(per_loop.close)
        await resource.has_ended.wait()
        return resource.ends

    assert asyncio.run(main()) == ["closed"]


def test_a_task_can_wait_until_its_loops_own_is_closed() -> None:
    per_loop = resources()

    async def main() -> list[str]:
        resource = per_loop.get()
        await per_loop.aclose()
        return resource.ends

    assert asyncio.run(main()) == ["closed"]


def test_an_owner_that_is_dropped_takes_its_resource_with_it() -> None:
    async def main() -> list[str]:
        per_loop = resources()
        resource = per_loop.get()
        del per_loop
        await resource.has_ended.wait()
        return resource.ends

    assert asyncio.run(main()) == ["closed"]


def test_what_is_asked_for_while_the_loop_ends_is_made_anew() -> None:
    per_loop = resources()
    seen: list[Resource] = []

    async def until_the_end() -> AsyncIterator[None]:
        try:
            yield
        finally:
            await seen[0].has_ended.wait()
            seen.append(per_loop.get())

    async def main() -> None:
        seen.append(per_loop.get())
        generator = until_the_end()
        seen_by_loop.append(generator)
        await anext(generator)

    seen_by_loop: list[object] = []
    asyncio.run(main())
    assert len(seen) == 2
    assert seen[0].ends == ["closed"]
    per_loop.close()
    assert seen[1].ends == ["abandoned"]


def test_loops_of_several_threads_each_close_their_own() -> None:
    per_loop = resources()
    found: list[Resource] = []
    threads = [threading.Thread(target=lambda: found.append(asyncio.run(get(per_loop)))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [each.ends for each in found] == [["closed"]] * 8


def test_a_program_ends_without_a_warning_however_its_loop_ended() -> None:
    program = """
import asyncio
from test_per_loop import get, resources
per_loop = resources()
asyncio.run(get(per_loop))
left = asyncio.new_event_loop(); left.run_until_complete(get(per_loop)); left.close()
async def drop(): resources().get()
asyncio.run(drop())
async def close(): per_loop.get(); per_loop.close()
asyncio.run(close())
"""
    done = subprocess.run(
        [sys.executable, "-X", "dev", "-c", program], cwd=Path(__file__).parent, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("turns", range(6))
def test_closing_while_the_loop_ends_closes_once(turns: int) -> None:
    per_loop = resources()

    async def main() -> list[str]:
        resource = per_loop.get()
        ending = asyncio.create_task(asyncio.get_running_loop().shutdown_asyncgens())
        for _ in range(turns):
            await asyncio.sleep(0)
        await per_loop.aclose()
        await ending
        return resource.ends

    assert asyncio.run(main()) == ["closed"]

"""A watch in one process, while others write and are killed: no gap, no duplicate."""

import random
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from holdfast import ControlPlaneClient, Dict, WatchEvent

WRITER = """
import sys
from holdfast import ControlPlaneClient, Dict

url, key = sys.argv[1:]
shared = Dict.from_name("state", client=ControlPlaneClient(url))
while True:
    shared.put(key, shared.get(key, default=-1) + 1)
"""
WRITERS = ["a", "b"]


@contextmanager
def writer(url: str, key: str) -> Iterator[None]:
    """Write under a key, one number after the other, in another process, which is killed in the middle of it."""
    process = subprocess.Popen([sys.executable, "-c", WRITER, url, key])
    try:
        yield
    finally:
        process.kill()
        process.wait()


def follow(url: str, seen: list[WatchEvent], count: int, chance: random.Random) -> None:
    """See `count` events more of each writer, taking the watch up again and again, in clients of their own."""
    wanted = {key: written(seen, key) + count for key in WRITERS}
    while any(written(seen, key) < wanted[key] for key in WRITERS):
        pause = len(seen) + chance.randrange(1, 30)
        with ControlPlaneClient(url) as client:
            for event in Dict.from_name("state", client=client).watch(last_index=seen[-1].index if seen else -1, timeout_s=60.0):
                seen.append(event)
                if len(seen) >= pause:
                    break


def written(seen: list[WatchEvent], key: str) -> int:
    return sum(event.data["key"] == key for event in seen)


@pytest.mark.parametrize("scheme", ["sqlite", "lmdb"])
def test_a_watch_resumed_anywhere_misses_nothing_of_writers_that_are_killed(scheme: str, tmp_path: Path) -> None:
    url = f"{scheme}:///{tmp_path}/store?durability=process"
    chance = random.Random(11)
    seen: list[WatchEvent] = []
    for _ in range(3):
        with ExitStack() as running:
            for key in WRITERS:
                running.enter_context(writer(url, key))
            follow(url, seen, 20, chance)
    with ControlPlaneClient(url) as client:
        shared = Dict.from_name("state", client=client)
        seen += shared.watch(last_index=seen[-1].index, timeout_s=0.0)
        newest = shared.get_many(WRITERS)
    assert [event.index for event in seen] == sorted({event.index for event in seen})
    for key in WRITERS:
        assert [event.data["value"] for event in seen if event.data["key"] == key] == list(range(newest[key] + 1))

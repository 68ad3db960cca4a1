"""Full collections of garbage: none is begun by Python itself, and they take a small part of the time."""

import gc
import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest
import urllib3

from holdfast.server.process.garbage import LONGEST_S, SHARE, SHORTEST_S, Garbage
from holdfast.stores.memory import MemoryStore
from tests.server.serving import JSON, Served


class Collector:
    """A clock, and a collection that takes its time."""

    def __init__(self, takes_s: float) -> None:
        self.now_s = 100.0
        self.takes_s = takes_s
        self.times: list[float] = []

    def collect(self) -> None:
        self.times.append(self.now_s)
        self.now_s += self.takes_s
        gc.collect()

    def run(self, garbage: Garbage, seconds: int) -> int:
        """Let so much time pass, in which something survives young collections; return how many full ones there were."""
        before = len(self.times)
        for _ in range(seconds):
            self.now_s += 1.0
            gc.collect(1)
            garbage.look()
        return len(self.times) - before


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    thresholds = gc.get_threshold()
    yield
    gc.set_threshold(*thresholds)
    gc.unfreeze()
    gc.freeze()


def garbage_of(collector: Collector) -> Garbage:
    return Garbage(lambda: collector.now_s, collector.collect)


def test_full_collections_take_a_small_part_of_the_time_however_long_each_takes() -> None:
    collector = Collector(takes_s=0.08)
    assert collector.run(garbage_of(collector), 400) == 400 // (SHARE * 0.08)


def test_short_ones_come_every_few_seconds() -> None:
    collector = Collector(takes_s=0.0)
    assert collector.run(garbage_of(collector), 100) == 100 // SHORTEST_S


def test_long_ones_come_all_the_same() -> None:
    collector = Collector(takes_s=1.0)
    assert collector.run(garbage_of(collector), 300) == 300 // LONGEST_S


def left_by(requests: Callable[[], object]) -> set[str]:
    """The kinds of objects of the server that only the collector frees after the requests."""
    gc.collect()
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        requests()
        gc.collect()
        return {type(each).__name__ for each in gc.garbage} & {"RequestResponseCycle", "Connection", "Caller", "WireError"}
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()


@pytest.mark.parametrize("body", [b'{"queue":"jobs"}', b'{"queue":1}', b'{"queue":"jobs","which":{"label":"a"}}'])
def test_a_request_leaves_nothing_for_the_collector(body: bytes) -> None:
    served = Served(MemoryStore())

    def ask() -> None:
        with urllib3.PoolManager() as pool:
            for _ in range(3):
                pool.request("POST", f"{served.url}/v1/count", body=body, headers=JSON, retries=False)

    ask()
    # What these requests leave, they leave each time; once it may be what an earlier test's connection left that ended meanwhile.
    assert set.intersection(*(left_by(ask) for _ in range(3))) == set()
    served.close()


def test_nothing_is_collected_while_nothing_happens() -> None:
    collector = Collector(takes_s=0.0)
    garbage = garbage_of(collector)
    garbage.begin()
    begun = len(collector.times)
    collector.now_s += 1_000.0
    garbage.look()
    assert len(collector.times) == begun


FULL_COLLECTIONS = """
import gc
from holdfast.server.process.garbage import Garbage
full = []
{before}
gc.callbacks.append(lambda phase, info: full.append(phase) if phase == "start" and info["generation"] == 2 else None)
kept = [[number] for number in range(2_000_000)]
print(len(full))
"""


def full_collections(before: str) -> int:
    """Count the full collections that Python begins while much is kept, in a process that no other test has touched."""
    program = FULL_COLLECTIONS.format(before=before)
    return int(subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout)


def test_python_itself_begins_none() -> None:
    assert full_collections(before="Garbage().begin()") == 0


def test_control_python_would_begin_some() -> None:
    assert full_collections(before="") > 0

"""What is interrupted at every point, and what must hold afterwards."""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from holdfast import ControlPlaneClient, Dict, Election, Lock, Queue
from holdfast.stores.undo_cancelled import finish_taking_back
from tests import stores_by_name
from tests.interrupts import BEGINS, interrupt_at

Call = Callable[[], None]

State = tuple[int, int, Any]
"""How many messages are leased and how many there are, and what is written."""


class Scene:
    """One store with everything on it, and a call that is to be interrupted."""

    def __init__(self, url: str) -> None:
        self.client = ControlPlaneClient(url)
        self.lock = Lock("l", client=self.client)
        self.election = Election("e", client=self.client)
        self.jobs: Queue[Any] = Queue.create("q", client=self.client)
        self.shared: Dict[Any] = Dict.from_name("d", client=self.client)
        self.jobs.put("x")
        with self.lock:
            """The keepalive's thread is started, and every module imported."""

    def state(self) -> State:
        stats = self.jobs.stats()
        return stats.leased, stats.total, self.shared.get("n")

    def check_nothing_is_held(self) -> None:
        assert self.lock.holding() is None
        assert self.election.leader() is None
        assert self.shared.lease_holder("k") is None
        assert len(self.client.keepalive) == 0
        thread = threading.Thread(target=self.client.keepalive.look_again, daemon=True)
        thread.start()
        thread.join(60)
        assert not thread.is_alive(), "the keepalive's lock was left taken"

    def check_the_queue_works(self) -> None:
        expected = self.jobs.length() + 1
        self.jobs.put("after")
        values = self.jobs.get_many(10)
        assert len(values) == expected
        assert values[-1] == "after"
        assert self.jobs.length() == 0


def lock(scene: Scene) -> Call:
    def call() -> None:
        with scene.lock:
            pass

    return call


def election(scene: Scene) -> Call:
    def call() -> None:
        with scene.election:
            pass

    return call


def lease(scene: Scene) -> Call:
    def call() -> None:
        with scene.shared.lease("k", holder="h"):
            pass

    return call


def claimed(scene: Scene) -> Call:
    def call() -> None:
        with scene.jobs.claimed(claimer="w", timeout_s=1.0):
            pass

    return call


def get(scene: Scene) -> Call:
    def call() -> None:
        scene.jobs.get(timeout_s=1.0)

    return call


def claim(scene: Scene) -> Call:
    def call() -> None:
        scene.jobs.claim(claimer="w")

    return call


def put(scene: Scene) -> Call:
    def call() -> None:
        scene.jobs.put("y", key="k")

    return call


def fail(scene: Scene) -> Call:
    held = scene.jobs.claim(claimer="w")
    assert held is not None

    def call() -> None:
        held.fail(error="no")

    return call


def together(scene: Scene) -> Call:
    held = scene.jobs.claim(claimer="w")
    assert held is not None

    def call() -> None:
        with scene.client.together() as step:
            step.ack(held)
            step.put(scene.jobs, "next")
            step.write(scene.shared, "n", 1)

    return call


CALLS: dict[Callable[[Scene], Call], set[State]] = {
    lock: {(0, 1, None)},
    election: {(0, 1, None)},
    lease: {(0, 1, None)},
    claimed: {(0, 1, None), (0, 0, None)},
    get: {(0, 1, None)},
    claim: {(0, 1, None)},
    put: {(0, 1, None), (0, 2, None)},
    fail: {(1, 1, None), (0, 1, None)},
    together: {(1, 1, None), (0, 1, 1)},
}
"""Each call, and the states that an interrupt may leave."""


def interrupt_everywhere(make: Callable[[Scene], Call], url: Callable[[], str], *, first: int, step: int) -> int:
    """Interrupt the call at every `step`-th point; answer at how many."""
    warm = Scene(url())
    make(warm)()  # What is made once, as the text of a script, is no part of the call.
    warm.client.close()
    count, n = 0, first
    while True:
        scene = Scene(url())
        where = interrupt_at(n, make(scene))
        if where is None:
            return count
        # Python cannot guard the instant between the end of a body and the first instruction of `__exit__`.
        if not where.endswith(f"__exit__{BEGINS}"):
            # Stores across a wire give back in the background.
            finish_taking_back(scene.client.store)
            assert scene.state() in CALLS[make], where
            scene.check_nothing_is_held()
            if scene.state()[0] == 0:
                scene.check_the_queue_works()
        scene.client.close()
        count, n = count + 1, n + step


def url_of(store: str, folder: Path) -> Callable[[], str]:
    """A new store each time."""
    if store in ("redis", "postgres"):
        return stores_by_name.ELSEWHERE[store]
    names = iter(range(1_000_000))
    return lambda: "memory://" if store == "memory" else f"{store}:///{folder}/{next(names)}?durability=process"

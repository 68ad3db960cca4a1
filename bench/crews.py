"""Several processes that do the same at once on a server, so that no interpreter is the limit of one side alone."""

import logging
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Literal, Protocol, Self

from bench.measure import FRESH, PATIENCE_S

What = Literal["put", "cycle"]

DRAINED_AT_A_TIME = 1_000


class Contender(Protocol):
    """A queue as one side has it; each verb says how many messages it was done with."""

    def put(self, size: int, /) -> int: ...
    def cycle(self, size: int, /) -> int: ...
    def close(self) -> None: ...


class Crew:
    """Processes with a connection of their own each, which wait for orders."""

    def __init__(self, make: Callable[[str], Contender], url: str, number: int, drain: Callable[[], object] | None = None) -> None:
        self.url = url
        self._drain = drain
        self._pipes: list[Connection] = []
        self._processes = []
        for _ in range(number):
            mine, theirs = FRESH.Pipe()
            process = FRESH.Process(target=follow, args=(theirs, make, url), daemon=True)
            process.start()
            # Only the child has it now, so that its death is seen.
            theirs.close()
            self._pipes.append(mine)
            self._processes.append(process)
        for pipe in self._pipes:
            answer_of(pipe)

    def rate(self, number: int, what: What, size: int, seconds: float) -> float:
        """Messages a second of so many of them that do it for so long, or until a queue is empty."""
        crew = self._pipes[:number]
        for pipe in crew:
            pipe.send((what, size, seconds))
        answers = [answer_of(pipe) for pipe in crew]
        return sum(done for done, _, _ in answers) / (max(end for _, _, end in answers) - min(begun for _, begun, _ in answers))

    def drain(self) -> None:
        """Have what is left done away with, by working it off where nothing else was given."""
        if self._drain:
            self._drain()
            return
        self.rate(len(self._pipes), "cycle", DRAINED_AT_A_TIME, PATIENCE_S)

    def close(self) -> None:
        for pipe in self._pipes:
            pipe.close()
        for process in self._processes:
            process.join(3.0)
            if process.is_alive():
                process.kill()
                process.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def answer_of(pipe: Connection) -> tuple[int, float, float]:
    if not pipe.poll(PATIENCE_S):
        message = f"a process said nothing for {PATIENCE_S:g} s"
        raise TimeoutError(message)
    answer: tuple[int, float, float] = pipe.recv()
    return answer


def follow(orders: Connection, make: Callable[[str], Contender], url: str) -> None:
    """Do as told until the other end is closed; say how many, from when and until when."""
    logging.disable(logging.CRITICAL)
    contender = make(url)
    try:
        # The first of everything connects, prepares and caches.
        contender.put(1)
        contender.cycle(1)
        orders.send((0, 0.0, 0.0))
        while True:
            what, size, seconds = orders.recv()
            orders.send(do_for(contender.put if what == "put" else contender.cycle, size, seconds))
    except EOFError:
        pass
    finally:
        contender.close()


def do_for(verb: Callable[[int], int], size: int, seconds: float) -> tuple[int, float, float]:
    begun = now = time.monotonic()
    done = 0
    while now - begun < seconds:
        count = verb(size)
        done, now = done + count, time.monotonic()
        if not count:
            break
    return done, begun, now

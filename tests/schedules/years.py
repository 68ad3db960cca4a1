"""A year of nightly schedules in four zones, put by eight processes that are killed by SIGKILL.

    python -m tests.schedules.years URL DAYS SEED [careless]

All read the schedules of a night before any of them puts a run. Four then try at once and four one after the other, and what was put is
consumed in between, so its id is free again. Some are killed meanwhile, and others take their places. The ids that were consumed are
printed, in their order. With `careless` a run is put whatever anybody else wrote.
"""

import multiprocessing
import random
import signal
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from multiprocessing.connection import Connection
from typing import Any
from zoneinfo import ZoneInfo

from cronsim import CronSim

from holdfast._sync.flows.schedule_book import schedules_of
from holdfast._sync.flows.ticking import Ticker
from holdfast._sync.handles.queue import Queue
from holdfast._sync.handles.schedule import Schedule
from holdfast.client import ControlPlaneClient
from holdfast.commands import Change, Together, Write
from holdfast.schedules.entries import SCHEDULES
from holdfast.schedules.rules import SECOND
from holdfast.stores import Store
from holdfast.stores.lmdb import LmdbStore
from holdfast.stores.redis import RedisStore
from holdfast.stores.sqlite.store import SqliteStore
from holdfast.testing.clock import START_US, FakeClock
from holdfast.testing.postgres import PinnedPostgresStore
from tests.workers.detours import Detour

ZONES = ["Europe/Vienna", "Australia/Lord_Howe", "Asia/Kathmandu", "UTC"]
NIGHTLY = "30 2 * * *"
TICKERS = 8
TOGETHER = 4
KILLED = 0.2
DAY_US = 86_400 * SECOND

FORK = multiprocessing.get_context("fork")


def runs_of_cronsim(rule: str, zone: str, days: int) -> list[int]:
    """The runs of so many days, as cronsim itself lists them."""
    found: list[int] = []
    for run in CronSim(rule, datetime.fromtimestamp(START_US // SECOND, UTC).astimezone(ZoneInfo(zone))):
        moment = round(run.timestamp()) * SECOND
        if moment > START_US + days * DAY_US:
            break
        found.append(moment)
    return found


def without_compare(command: Any) -> Any:
    """The same tick, written whatever anybody else wrote."""
    if isinstance(command, Together) and isinstance(command.commands[0], Write):
        changes = [Change(change.key, value=change.value) for change in command.commands[0].changes]
        return Together([Write(SCHEDULES, changes), *command.commands[1:]])
    return command


def opened(url: str, clock: FakeClock) -> Store:
    kind, _, path = url.partition(":///")
    if kind == "sqlite":
        return SqliteStore(f"/{path}", clock=clock, durability="process")
    if kind == "lmdb":
        return LmdbStore(f"/{path}", clock=clock, durability="process")
    return RedisStore(url, clock=clock) if url.startswith("redis") else PinnedPostgresStore(url, clock)


class Process:
    """A process with a store and a clock of its own. Told a moment, it does a thing and answers."""

    def __init__(self, url: str, moment: int, work: Callable[[Store, FakeClock], Iterator[Any]]) -> None:
        self._pipe, theirs = FORK.Pipe()
        self._process = FORK.Process(target=_serve, args=(theirs, url, moment, work), daemon=True)
        self._process.start()
        theirs.close()
        self.answer()

    def tell(self, moment: int) -> None:
        self._pipe.send(moment)

    def answer(self) -> Any:
        return self._pipe.recv()

    def ask(self, moment: int) -> Any:
        self.tell(moment)
        return self.answer()

    def kill(self) -> None:
        self._process.kill()
        self._process.join()
        if self._process.exitcode != -signal.SIGKILL:
            sys.exit("a process ended by itself")
        self._pipe.close()


def _serve(pipe: Connection, url: str, moment: int, work: Callable[[Store, FakeClock], Iterator[Any]]) -> None:
    clock = FakeClock(moment)
    working = work(opened(url, clock), clock)
    pipe.send("ready")
    while True:
        moment = pipe.recv()
        if moment > clock.now_us():
            clock.advance((moment - clock.now_us()) / SECOND)
        pipe.send(next(working))


def ticking(store: Store, clock: FakeClock) -> Iterator[str]:
    """Read the schedules, and then put what is due by what was read."""
    ticker = Ticker(store, "ticker")
    while True:
        read = list(schedules_of(store))
        yield "read"
        for stored in read:
            ticker._look(stored, clock.now_us())
        yield "put"


def ticking_without_compare(store: Store, clock: FakeClock) -> Iterator[str]:
    return ticking(Detour(store, lambda command: store.execute(without_compare(command))), clock)


def consuming(store: Store, clock: FakeClock) -> Iterator[list[str]]:
    """Save the schedules, and then take what was put, one by one."""
    client = ControlPlaneClient.on(store)
    for zone in ZONES:
        Schedule(zone, NIGHTLY, ("jobs", 1), tz=zone, catch_up="all", overlap="allow", client=client).save()
    jobs = Queue[int]("jobs", client=client)
    while True:
        found: list[str] = []
        while (claim := jobs.claim()) is not None:
            found.append(claim.id)
            jobs.ack(claim)
        yield found


class Year:
    """The processes of a year, night by night; this one opens no store."""

    def __init__(self, url: str, seed: str, work: Callable[[Store, FakeClock], Iterator[Any]]) -> None:
        self._url = url
        self._work = work
        self._chance = random.Random(seed)
        self._consumer = Process(url, START_US, consuming)
        self.put: list[str] = self._consumer.ask(START_US)
        self.kills = 0
        self._tickers = [Process(url, START_US, work) for _ in range(TICKERS)]

    def night(self, moment: int) -> None:
        """Let all try to put what is due at the moment, and kill some of them meanwhile."""
        self._consume(moment)
        for ticker in self._tickers:
            ticker.tell(moment)
        for ticker in self._tickers:
            ticker.answer()
        tickers = self._chance.sample(self._tickers, TICKERS)
        dead = self._rush(tickers[:TOGETHER], moment)
        for ticker in tickers[TOGETHER:]:
            dead |= self._rush([ticker], moment)
        self._tickers = [Process(self._url, moment, self._work) if one in dead else one for one in self._tickers]
        self.kills += len(dead)

    def last(self, moment: int) -> None:
        """Put what the dead of the last night may have left."""
        for _ in ("read", "put"):
            self._tickers[0].ask(moment)
        self._consume(moment)

    def _rush(self, tickers: list[Process], moment: int) -> set[Process]:
        """Let these put at once; those that are killed are returned."""
        dead = {ticker for ticker in tickers if self._chance.random() < KILLED}
        for ticker in tickers:
            ticker.tell(moment)
        for ticker in dead:
            for _ in range(self._chance.randrange(3)):  # A kill comes sooner or later in its work.
                self._consume(moment)
            ticker.kill()
        for ticker in tickers:
            if ticker not in dead:
                ticker.answer()
        self._consume(moment)
        return dead

    def _consume(self, moment: int) -> None:
        self.put += self._consumer.ask(moment)


def main(url: str, days: str, seed: str, how: str = "") -> None:
    year = Year(url, seed, ticking_without_compare if how == "careless" else ticking)
    moments = sorted({run for zone in ZONES for run in runs_of_cronsim(NIGHTLY, zone, int(days))})
    for moment in moments:
        year.night(moment)
    year.last(moments[-1])
    sys.stderr.write(f"{year.kills} of the processes were killed in {len(moments)} nights\n")
    sys.stdout.write("\n".join(year.put))


if __name__ == "__main__":
    main(*sys.argv[1:])

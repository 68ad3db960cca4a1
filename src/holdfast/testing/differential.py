"""The same random history on two stores, of which the memory store is always right: every answer and all that is kept must be equal.

    run(factory, seed=7, steps=1_000)

Numbers that a store gives out (tokens, revisions, event numbers) need not be equal, but must be in the same order.
"""

from bisect import bisect_left
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any, Protocol

from msgspec import Struct, json
from msgspec.structs import replace

from holdfast.clock import Clock
from holdfast.commands import (
    AnyCommand,
    Break,
    Changes,
    Claim,
    Command,
    Extend,
    Prune,
    Put,
    Settle,
    Together,
    Write,
)
from holdfast.commands.topics import queue_topic
from holdfast.errors import HoldfastError
from holdfast.records import Receipt
from holdfast.stores import Store
from holdfast.stores.files.store import SharedFileStore
from holdfast.stores.group_commit import Job
from holdfast.stores.memory import MemoryStore
from holdfast.testing.clock import START_US, FakeClock
from holdfast.testing.everything import everything, miscounts, plain
from holdfast.testing.heard import Heard
from holdfast.testing.random_callers import at_once
from holdfast.testing.random_policies import RULED_MAKERS, TENANTS
from holdfast.testing.randomness import BEYOND, BUSY, GRAVE, MAKERS, PLAIN, QUEUES, World, named

NUMBERS = frozenset({"token", "revision", "index"})
"""Fields that hold a number which the store gave out."""
OWN = frozenset({"n", "upto", "latest", "after", "fence", "turn", "last"})
"""Fields that are a store's own affair; a fence shows in what it refuses, and a turn in the order of claims."""

HINTED = tuple(queue_topic(queue) for queue in (*QUEUES, GRAVE, BUSY, TENANTS))
"""Topics on which claimers wait."""

BEGIN_US = START_US + 1
"""When a history begins: Redis tidies up at numbers that are multiples of a hundred, as every moment would be."""


def draws_policies(seed: int) -> bool:
    """Whether the history of this seed uses groups and policies of queues: a third, since most queues are plain."""
    return seed % 3 == 2


LOOK_EVERY = 20
REPEAT_WITHIN_US = 60_000_000


class Advance(Struct, frozen=True, tag=True):
    """Time passes."""

    seconds: float


class Reopen(Struct, frozen=True, tag=True):
    """The store under test is closed and opened again, if it is one that is kept."""


class AtOnce(Struct, frozen=True, tag=True):
    """Several callers each send a command at the same moment; a store may carry them out together, but as if in this order."""

    commands: list[AnyCommand]


Step = AnyCommand | Advance | Reopen | AtOnce
_decode = json.Decoder(Step).decode


def dump(history: Iterable[Step], path: Path) -> None:
    """Write a history down, a JSON line a step."""
    path.write_bytes(b"".join(json.encode(step) + b"\n" for step in history))


def load(path: Path) -> list[Step]:
    """Read a history that was dumped."""
    return [_decode(line) for line in path.read_bytes().splitlines()]


class Diverged(AssertionError):  # noqa: N818 - what two stores did
    """Two stores answered one history differently."""


class Opens(Protocol):
    """How to open the store under test; again, if it is one that is kept."""

    def make(self, clock: Clock) -> Store: ...


class Twins:
    """The memory store and the store under test, on one clock."""

    def __init__(self, factory: Opens) -> None:
        self.clock: FakeClock = FakeClock(BEGIN_US)
        self._factory = factory
        self._oracle = MemoryStore(clock=self.clock)
        self._store = factory.make(self.clock)
        self._is_kept = self._store.guarantees.survives != "nothing"
        self._woken = Heard(self._store, HINTED)
        self._expected_woken = Heard(self._oracle, HINTED)
        self._numbers: dict[int, int] = {0: 0, BEYOND: BEYOND}
        """From the oracle's numbers to those of the store under test."""
        self.history: list[Step] = []

    def do(self, step: Step) -> object:
        """Take a step on both; the oracle's answer, or the error it raised."""
        self.history.append(step)
        if isinstance(step, Advance):
            self.clock.advance(step.seconds)
            return None
        if isinstance(step, Reopen):
            self._reopen()
            return None
        commands = step.commands if isinstance(step, AtOnce) else [step]
        translated = [self._translated(command) for command in commands]
        expected, actual = [_ask(self._oracle, command) for command in commands], _ask_at_once(self._store, translated)
        if not isinstance(step, Prune):
            self._compare(plain(expected), plain(actual), "the answer")
        self._compare_woken(is_plain=all(isinstance(command, Put | Settle) for command in commands))
        return expected if isinstance(step, AtOnce) else expected[0]

    def _compare_woken(self, *, is_plain: bool) -> None:
        """Demand that nobody sleeps who would be woken in memory.

        Servers tell less where a command looks at many messages of which few were not claimable before.
        """
        expected = self._expected_woken.take()
        if (is_plain or not self._woken.is_later) and (asleep := self._woken.missing(expected)):
            raise Diverged(self._told(f"nobody who waits on {', '.join(sorted(asleep))} was woken"))

    def look(self) -> None:
        """Compare all that is kept."""
        expected, actual = (everything(store) for store in (self._oracle, self._store))
        for what, kept in expected.items():
            other = actual[what]
            if what.startswith("events of "):
                # When entries past their time are told of is the store's own affair, and so how many events a pruning leaves.
                common = min(len(kept), len(other))
                kept, other = kept[len(kept) - common :], other[len(other) - common :]  # noqa: PLW2901 - their common end
            self._compare(kept, other, what)
        known = sorted(self._numbers.items())
        for (_, one), (_, other) in pairwise(known):
            if other <= one:
                raise Diverged(self._told(f"numbers are not in the order in which the memory store gave them out: {one}, then {other}"))
        wrong = miscounts(self._oracle, QUEUES)
        if wrong:
            raise Diverged(self._told(f"the memory store, with which counts are compared, miscounts: {wrong[0]}"))

    def close(self) -> None:
        self._oracle.close()
        self._store.close()

    def _reopen(self) -> None:
        if self._is_kept:
            self._store.close()
            self._store = self._factory.make(self.clock)
            self._woken = Heard(self._store, HINTED)

    def _translated(self, command: Any) -> Any:
        """The command as a client of the store under test would send it."""
        match command:
            case Settle() | Extend():
                return replace(command, receipts=[Receipt(r.queue, r.id, self._number(r.token)) for r in command.receipts])
            case Write():
                return replace(command, changes=[self._translated_change(change) for change in command.changes])
            case Break():
                return replace(command, token=None if command.token is None else self._number(command.token))
            case Changes():
                return replace(command, after=self._number(command.after) if command.after > 0 else command.after)
            case Together():
                return replace(command, commands=[self._translated(part) for part in command.commands])
        return command

    def _translated_change(self, change: Any) -> Any:
        fence = None if change.fence is None else self._number(change.fence)
        return replace(change, fence=fence, revision=self._number(change.revision))

    def _number(self, number: int) -> int:
        """The number that the other store gave out for the same thing, or one of the same place among those known."""
        if number not in self._numbers:
            self.look()  # It may stand in a log that no answer has told of yet.
        if number in self._numbers:
            return self._numbers[number]
        known = sorted(self._numbers)
        before = known[bisect_left(known, number) - 1]
        return self._numbers[before] + number - before

    def _compare(self, expected: Any, actual: Any, where: str) -> None:
        if isinstance(expected, dict) and isinstance(actual, dict):
            for key in sorted({*expected, *actual} - OWN, key=str):
                if key == "due_in_s" and _asks_soon_enough(expected.get(key), actual.get(key)):
                    continue
                if key == "lease_id" and str(actual.get(key)).startswith("hidden-"):
                    continue  # A server does not tell others by which id a lease is renewed.
                if key in NUMBERS:
                    self._compare_numbers(expected.get(key, 0), actual.get(key, 0), f"{where}.{key}")
                else:
                    self._compare(expected.get(key), actual.get(key), f"{where}.{key}")
        elif isinstance(expected, list) and isinstance(actual, list) and len(expected) == len(actual):
            for place, (one, other) in enumerate(zip(expected, actual, strict=True)):
                self._compare(one, other, f"{where}[{place}]")
        elif expected != actual:
            raise Diverged(self._told(f"{where} is {actual!r}, and the memory store's {expected!r}"))

    def _compare_numbers(self, expected: Any, actual: Any, where: str) -> None:
        if not (isinstance(expected, int) and isinstance(actual, int)):
            self._compare(expected, actual, where)
        elif self._numbers.setdefault(expected, actual) != actual:
            told = f"{where} is {actual}, where it was {self._numbers[expected]} before, and the memory store's {expected}"
            raise Diverged(self._told(told))

    def _told(self, what: str) -> str:
        steps = "\n".join(f"  {json.encode(step).decode()}" for step in self.history[-4:])
        return f"step {len(self.history)}: {what}\nthe last steps:\n{steps}"


def _asks_soon_enough(expected: float | None, actual: float | None) -> bool:
    """A store may say that asking again is worth it before it is, never after."""
    return actual is not None and (expected is None or actual <= expected)


def run(factory: Opens, seed: int, steps: int, dump_to: Path | None = None) -> None:
    """Take random steps on both stores; the same seed takes the same steps. A history that fails can be kept in a file."""
    chance = Random(seed)
    twins = Twins(factory)
    player = Player(twins, chance, PLAIN[seed % len(PLAIN)], policies=draws_policies(seed))
    try:
        for number in range(steps):
            player.step(player.pick() if number else player.first)
            if number % LOOK_EVERY == 0:
                twins.look()
        twins.look()
    except BaseException as error:
        error.add_note(f"seed {seed}, step {len(twins.history)} of {steps}")
        if dump_to is not None:
            dump(twins.history, dump_to)
        raise
    finally:
        twins.close()


def replay(factory: Opens, history: Iterable[Step]) -> None:
    """Take the steps of a history on both stores."""
    twins = Twins(factory)
    try:
        for step in history:
            twins.do(step)
            twins.look()
    finally:
        twins.close()


class Takes(Protocol):
    """What takes the steps of a player."""

    clock: FakeClock

    def do(self, step: Step) -> object: ...


class Player:
    """Makes random steps from what the answers so far gave to work with."""

    kinds: tuple[str, ...] = (*MAKERS, "advance", "repeat", "at_once", "reopen", *RULED_MAKERS)

    def __init__(self, twins: Takes, chance: Random, plain: float | None = None, *, policies: bool = True) -> None:
        self.twins: Takes = twins
        self.world: World = World(chance, twins.clock.wall_us, plain)
        self.first: str = "policies" if policies else "put"
        """What a history begins with: commands on a queue that is not there find nothing."""
        ruled = [weight if policies else 0 for _, weight in RULED_MAKERS.values()]
        self._weights = [weight for _, weight in MAKERS.values()] + [20, 4, 16, 1] + ruled
        self._named: list[tuple[int, AnyCommand]] = []

    def pick(self) -> str:
        return self.world.chance.choices(self.kinds, self._weights)[0]

    def step(self, kind: str) -> None:
        """Take one random step of this kind."""
        chance = self.world.chance
        if kind == "advance":
            self.twins.do(Advance(chance.choice((0.000001, 0.5, 1, 2, 5, 31))))
        elif kind == "reopen":
            self.twins.do(Reopen())
        elif kind == "repeat":
            self._repeat()
        elif kind == "at_once":
            commands = at_once(self.world, chance.choice((BUSY, BUSY, BUSY, BUSY, BUSY, *QUEUES, TENANTS)))
            self.world.learn(self.twins.do(AtOnce([self._perhaps_named(command) for command in commands])))
        else:
            self.world.learn(self.twins.do(self._perhaps_named((MAKERS.get(kind) or RULED_MAKERS[kind])[0](self.world))))

    def _perhaps_named(self, command: AnyCommand) -> AnyCommand:
        """The command, some with an id, so that they can be repeated; less often where there are many of its kind."""
        often = 0.07 if isinstance(command, Put | Claim | Settle) else 0.2
        if self.world.chance.random() >= often or command.reads_only:
            return command
        command = named(command, self.world)
        self._named.append((self.twins.clock.now_us(), command))
        return command

    def _repeat(self) -> None:
        now = self.twins.clock.now_us()
        recent = [command for at, command in self._named[-10:] if now - at < REPEAT_WITHIN_US]
        if recent:
            self.world.learn(self.twins.do(self.world.chance.choice(recent)))


def _ask_at_once(store: Store, commands: list[Command[Any]]) -> list[object]:
    """The answers to callers who share a commit, where the store has such."""
    if not isinstance(store, SharedFileStore) or len(commands) < 2:
        return [_ask(store, command) for command in commands]
    jobs = [Job(command) for command in commands]
    store.run(jobs)
    return [job.answer if job.error is None else job.error for job in jobs]


def _ask(store: Store, command: Command[Any]) -> object:
    try:
        return store.execute(command)
    except HoldfastError as error:
        return error

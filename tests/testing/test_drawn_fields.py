"""The random histories draw every command, and every field of each, more than one way."""

import inspect
from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from random import Random
from typing import Any, get_args

import pytest
from msgspec import Struct

from holdfast import commands
from holdfast.commands import Command
from holdfast.commands.together import Step
from holdfast.errors import HoldfastError
from holdfast.stores.memory import MemoryStore
from holdfast.testing.clock import FakeClock
from holdfast.testing.differential import Advance, AtOnce, Player, Reopen

HISTORIES = 30
STEPS = 250

NOT_DRAWN = {
    "BeginImport": "a copy shuts every other writer out until it has ended; the conformance suite draws copies of random histories",
    "Import": "a part of a copy",
    "EndImport": "a part of a copy",
    "Seal": "a sealed store takes no more commands",
    "Survey": "a part of a copy, and its answer has the numbers of the store",
    "Fences": "a part of a copy, and its answer has the numbers of the store",
    "Backoff.factor": "the backoff of a queue doubles: another factor is refused before there is a command",
}
"""What no random history can hold, and why."""

Drawn = dict[str, dict[str, set[str]]]


class Recorder:
    """Plays on one store in memory, and keeps what was drawn."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.history: list[Any] = []
        self._store = MemoryStore(clock=self.clock)

    def do(self, step: Any) -> object:
        self.history.append(step)
        if isinstance(step, Advance):
            self.clock.advance(step.seconds)
        elif isinstance(step, AtOnce):
            return [self._answer(command) for command in step.commands]
        elif not isinstance(step, Reopen):
            return self._answer(step)
        return None

    def _answer(self, command: Any) -> object:
        with suppress(HoldfastError):
            return self._store.execute(command)
        return None


@pytest.fixture(scope="module")
def drawn() -> Drawn:
    """By struct and field, which values random histories gave it."""
    found: Drawn = defaultdict(lambda: defaultdict(set))
    for seed in range(HISTORIES):
        recorder = Recorder()
        player = Player(recorder, Random(seed))
        for _ in range(STEPS):
            player.step(player.pick())
        for command in recorder.history:
            for struct in structs_in(command):
                for name in struct.__struct_fields__:
                    found[type(struct).__name__][name].add(repr(getattr(struct, name)))
    return found


def structs_in(given: object) -> Iterator[Struct]:
    """Every struct that a command is made of, itself first."""
    if isinstance(given, Struct):
        yield given
        for name in given.__struct_fields__:
            yield from structs_in(getattr(given, name))
    elif isinstance(given, list | tuple):
        for one in given:
            yield from structs_in(one)


def known() -> set[str]:
    kinds: list[Any] = [kind for _, kind in inspect.getmembers(commands, inspect.isclass)]
    return {kind.__name__ for kind in kinds if issubclass(kind, Command) and kind is not Command}


def test_every_command_is_drawn(drawn: Drawn) -> None:
    assert known() - {*drawn} == known() & {*NOT_DRAWN}


def test_every_field_of_what_is_drawn_has_more_than_one_value(drawn: Drawn) -> None:
    always = {f"{struct}.{name}" for struct, fields in drawn.items() for name, values in fields.items() if len(values) == 1}
    reads = {kind.__name__ for kind in get_args(Step) if kind.reads_only}
    ids = {f"{name}.id" for name in reads}  # Only what writes is known by its id.
    assert always - ids == {name for name in NOT_DRAWN if "." in name}

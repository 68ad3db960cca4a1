"""The differential test itself: it can be kept and repeated, and it finds what is wrong."""

from pathlib import Path
from random import Random
from typing import Any

import pytest
from msgspec.structs import replace

from holdfast.clock import Clock
from holdfast.commands import Claim, decode_command, encode_command
from holdfast.stores import Store
from holdfast.testing.differential import Diverged, Reopen, dump, load, replay, run
from holdfast.testing.randomness import MAKERS, World
from tests.conformance.factories import MemoryFactory
from tests.testing.controls import PlainFactory, PlainStore


class WrongStore(PlainStore):
    """Returns every expired message to the back."""

    def execute(self, command: Any) -> Any:
        return super().execute(replace(command, expired_to="back") if isinstance(command, Claim) else command)


class WrongFactory:
    def make(self, clock: Clock) -> Store:
        return WrongStore(clock=clock)


def test_a_store_agrees_with_itself() -> None:
    run(MemoryFactory(), seed=1, steps=200)


def test_the_memory_store_without_shortcuts_answers_as_with_them() -> None:
    for seed in range(3):
        run(PlainFactory(), seed, steps=200)


def test_every_command_survives_its_way_over_a_wire() -> None:
    world = World(Random(3))
    for make, _ in MAKERS.values():
        for _ in range(50):
            command = make(world)
            assert decode_command(encode_command(command)) == command


def test_a_history_that_fails_is_kept_and_fails_again(tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    with pytest.raises(Diverged) as caught:
        run(WrongFactory(), seed=5, steps=500, dump_to=path)
    assert "seed 5" in caught.value.__notes__[0]
    with pytest.raises(Diverged):
        replay(WrongFactory(), load(path))
    replay(PlainFactory(), load(path))


def test_what_is_loaded_is_what_was_dumped(tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    history = [make(World(Random(1))) for make, _ in MAKERS.values()]
    dump([*history, Reopen()], path)
    assert load(path) == [*history, Reopen()]

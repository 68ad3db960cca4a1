"""The differential test itself: it can be kept and repeated, and it finds what is wrong."""

from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

import pytest
from msgspec import ValidationError, json
from msgspec.structs import replace

from holdfast.clock import Clock
from holdfast.codec.fields import Field, Flag, Number, Seconds, Whole
from holdfast.commands import Browse, Changes, Claim, Moved, Survey, Write, decode_command, encode_command
from holdfast.stores import Store
from holdfast.testing.differential import Diverged, Player, Reopen, Twins, dump, load, replay, run
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


class CredulousStore(PlainStore):
    """Takes every fence for a token of its own."""

    def execute(self, command: Any) -> Any:
        if not isinstance(command, Write):
            return super().execute(command)
        newest = super().execute(Survey()).latest
        changes = [change if change.fence is None else replace(change, fence=min(change.fence, newest)) for change in command.changes]
        return super().execute(replace(command, changes=changes))


class CredulousFactory:
    def make(self, clock: Clock) -> Store:
        return CredulousStore(clock=clock)


def test_random_histories_find_a_store_that_takes_fences_above_every_token() -> None:
    found = 0
    for seed in range(10):
        with suppress(Diverged):
            run(CredulousFactory(), seed, steps=300)
            continue
        found += 1
    assert found >= 3, "random histories hardly ever name a fence that is too high"


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


def is_number_or_flag(field: Field) -> bool:
    return isinstance(field, Whole | Number | Seconds | Flag)


def test_what_a_field_cannot_hold_is_refused_on_the_wire_too() -> None:
    world = World(Random(3))
    for _ in range(5):  # So that there are receipts and leases to name.
        for make, _ in MAKERS.values():
            command = make(world)
            message = json.decode(encode_command(command))
            for field in filter(is_number_or_flag, getattr(command, "checked", ())):
                for bad in (10**30, "x", [1], -0.5):
                    with pytest.raises(ValidationError):
                        decode_command(json.encode(message | {field.name: bad}))


class Recording(Twins):
    """Remembers which keys kept a dead letter from being redriven, and since when."""

    def __init__(self) -> None:
        super().__init__(MemoryFactory())
        self.taken: list[tuple[str, str, int]] = []

    def do(self, step: Any) -> object:
        answer = super().do(step)
        if isinstance(answer, Moved):
            kept = self._oracle.execute(Browse(step.queue, ids=[name for name, what in answer.kept.items() if what == "key"]))
            self.taken += [(step.to_queue or step.queue, message.key or "", kept.index) for message in kept.messages]
        return answer

    def comes_back(self, queue: str, key: str, since: int) -> bool:
        events = self._oracle.execute(Changes(f"queue:{queue}", limit=10_000)).events
        back = [json.decode(event.data) for event in events if event.index > since and event.event in ("settled", "expired")]
        return any(key in facts.get("keys", ()) and facts.get("to", "ready") == "ready" for facts in back)


def test_random_histories_redrive_dead_letters_whose_key_is_taken_by_what_comes_back_later() -> None:
    found = 0
    for seed in range(60):
        twins = Recording()
        player = Player(twins, Random(seed), policies=False)
        for _ in range(300):
            player.step(player.pick())
        found += sum(twins.comes_back(*taken) for taken in twins.taken)
        twins.close()
    assert found >= 3, "random histories hardly meet what a redrive must not do"


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

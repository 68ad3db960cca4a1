"""The differential test as a Hypothesis state machine, which shortens a history that fails to its core."""

import tempfile
from collections.abc import Callable
from pathlib import Path
from random import Random

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from holdfast.testing.differential import Opens, Player, Twins
from holdfast.testing.randomness import PLAIN

OFTEN = {"put": 5, "claim": 5, "settle": 5}
"""How many rules the steps have that most others need, and that stores have fast paths for; every rule is drawn as often as any other."""


def machine_for(factory_in: Callable[[Path], Opens]) -> type[RuleBasedStateMachine]:
    """The machine for stores that are opened by the factory which `factory_in` makes for an empty folder.

    Its `TestCase` is a test; give it settings of your own as its `settings`.
    """

    class Differential(RuleBasedStateMachine):
        """Every rule takes one random step on the memory store and the store under test."""

        @initialize(chance=st.randoms(use_true_random=True), plain=st.sampled_from(PLAIN[::-1]), policies=st.booleans())
        def begin(self, chance: Random, plain: float | None, policies: bool) -> None:
            self._folder = tempfile.TemporaryDirectory()
            self._twins = Twins(factory_in(Path(self._folder.name)))
            self._player = Player(self._twins, chance, plain, policies=policies)
            self._player.step(self._player.first)

        @rule()
        def look(self) -> None:
            self._twins.look()

        def teardown(self) -> None:
            if not hasattr(self, "_player"):
                return
            try:
                self._twins.look()
            finally:
                self._twins.close()
                self._folder.cleanup()

    for kind in Player.kinds:
        for number in range(OFTEN.get(kind, 1)):
            setattr(Differential, f"{kind}_{number}", rule()(_stepper(kind)))
    return Differential


def _stepper(kind: str) -> Callable[..., None]:
    def step(machine: object) -> None:
        machine._player.step(kind)  # type: ignore[attr-defined]  # noqa: SLF001 - the body of a method

    step.__name__ = kind
    return step

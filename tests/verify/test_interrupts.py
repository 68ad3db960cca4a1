"""A Ctrl-C at every point at which one can strike."""

from pathlib import Path
from typing import Any

import pytest

from tests.handles.interrupted import CALLS, interrupt_everywhere, url_of

pytestmark = pytest.mark.verify


@pytest.mark.parametrize(("store", "step"), [("memory", 1), ("sqlite", 1), ("lmdb", 1), ("redis", 1), ("postgres", 5)])
@pytest.mark.parametrize("call", CALLS, ids=lambda call: call.__name__)
def test_an_interrupt_at_every_point_leaves_a_whole_step_and_nothing_held(call: Any, store: str, step: int, tmp_path: Path) -> None:
    points = interrupt_everywhere(call, url_of(store, tmp_path), first=1, step=step)
    print(f"{store}, {call.__name__}: {points} points")  # noqa: T201 - the figure, for whoever measures
    assert points > 50 / step

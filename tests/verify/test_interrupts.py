"""A Ctrl-C at every point at which one can strike."""

from pathlib import Path
from typing import Any

import pytest

from tests.handles.interrupted import CALLS, interrupt_everywhere, url_of

pytestmark = pytest.mark.verify


@pytest.mark.parametrize("store", ["memory", "sqlite"])
@pytest.mark.parametrize("call", CALLS, ids=lambda call: call.__name__)
def test_an_interrupt_at_every_point_leaves_a_whole_step_and_nothing_held(call: Any, store: str, tmp_path: Path) -> None:
    assert interrupt_everywhere(call, url_of(store, tmp_path), first=1, step=1) > 50

"""A Ctrl-C leaves whole steps and nothing that is held or renewed for nobody; every point in turn is in `tests/verify`."""

from pathlib import Path
from typing import Any

import pytest

from tests.handles.interrupted import CALLS, interrupt_everywhere, url_of


@pytest.mark.parametrize(("store", "step"), [("memory", 7), ("sqlite", 97), ("lmdb", 97), ("redis", 97)])
@pytest.mark.parametrize("call", CALLS, ids=lambda call: call.__name__)
def test_an_interrupt_leaves_a_whole_step_and_nothing_held(call: Any, store: str, step: int, tmp_path: Path) -> None:
    assert interrupt_everywhere(call, url_of(store, tmp_path), first=5, step=step) > 2

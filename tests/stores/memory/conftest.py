"""A memory store that keeps what it is given."""

import pytest

from holdfast.stores.memory import MemoryStore
from holdfast.testing import FakeClock


@pytest.fixture
def references() -> MemoryStore:
    return MemoryStore(by_reference=True, clock=FakeClock())

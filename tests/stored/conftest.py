"""What is read of a stored form: the fixture `stored` of a test gives its URL and the facts about it."""

from collections.abc import Iterator
from typing import Any

import pytest

from holdfast import connect
from holdfast.stores import Store


@pytest.fixture
def store(stored: tuple[str, Any]) -> Iterator[Store]:
    store = connect(stored[0])
    yield store
    store.close()


@pytest.fixture
def known(stored: tuple[str, dict[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = stored[1]["known"]
    return found


@pytest.fixture
def newest(stored: tuple[str, dict[str, Any]]) -> int:
    """The largest number that was given out."""
    number: int = stored[1]["snapshot"]["latest"]
    return number

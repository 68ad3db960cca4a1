"""Thousands of cancellations, on every store."""

from pathlib import Path

import pytest

from holdfast.testing.clock import FakeClock
from holdfast.testing.conformance import cancelling
from tests.stores_by_name import factory_of

pytestmark = [pytest.mark.verify, pytest.mark.timeout(600)]


@pytest.mark.parametrize("kind", ["memory", "sqlite", "lmdb", "postgres", "redis", "http"])
def test_thousands_of_cancellations_are_heard_and_leave_nothing_held(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cancelling, "ROUNDS", 150)
    monkeypatch.setattr(cancelling, "ENDINGS", 100)
    suite = cancelling.CancellationConformance()
    for test in (
        suite.test_whoever_is_cancelled_at_any_moment_hears_it_and_leaves_nothing_held,
        suite.test_an_event_loop_ends_whatever_is_under_way,
    ):
        folder = tmp_path / test.__name__
        folder.mkdir()
        test(factory_of(kind, folder).make(FakeClock()))

"""Web processes and workers are killed in the middle of their work: there are as many jobs as orders, and all orders are packed."""

from pathlib import Path

import pytest

from tests.integrations.django.kills import Site, order_under_kills


def test_orders_and_jobs_are_equal_after_kills(tmp_path: Path) -> None:
    site = Site(tmp_path / "site.sqlite3")
    answered = order_under_kills(site, requests=60, rounds=3, seed=1)
    orders, packed, done, left = site.counts()
    assert orders >= answered
    assert (packed, done, left) == (orders, orders, 0)


@pytest.mark.verify
def test_ten_thousand_orders_and_jobs_are_equal_after_kills(tmp_path: Path) -> None:
    site = Site(tmp_path / "site.sqlite3")
    answered = order_under_kills(site, requests=10_000, rounds=100, seed=2)
    orders, packed, done, left = site.counts()
    assert orders >= answered
    assert (packed, done, left) == (orders, orders, 0)

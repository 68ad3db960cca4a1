"""Web processes and workers are killed in the middle of their work: there are as many jobs as orders, and all orders are packed."""

from pathlib import Path

import pytest
from django.db import connections

from tests.integrations.django.kills import Site, order_under_kills

WAITS = {"transaction_mode": "IMMEDIATE"}
"""As the how-to page says for SQLite."""


def orders_and_jobs_are_equal(site: Site, *, requests: int, rounds: int, seed: int) -> None:
    answered = order_under_kills(site, requests=requests, rounds=rounds, seed=seed)
    orders, packed, done, left = site.counts()
    assert orders >= answered
    assert (packed, done, left) == (orders, orders, 0)


def test_orders_and_jobs_are_equal_after_kills(tmp_path: Path) -> None:
    site = Site({"ENGINE": "django.db.backends.sqlite3", "NAME": str(tmp_path / "site.sqlite3"), "OPTIONS": WAITS})
    orders_and_jobs_are_equal(site, requests=60, rounds=3, seed=1)


@pytest.mark.verify
@pytest.mark.timeout(3_600)
@pytest.mark.usefixtures("database")
def test_ten_thousand_orders_and_jobs_are_equal_after_kills() -> None:
    settings = connections.settings["default"]
    given = {name: settings[name] for name in ("ENGINE", "NAME", "USER", "PASSWORD", "HOST", "PORT")}
    site = Site(given | ({"OPTIONS": WAITS} if "sqlite" in given["ENGINE"] else {}))
    orders_and_jobs_are_equal(site, requests=10_000, rounds=100, seed=2)

"""Deploys in both orders, with workers killed by SIGKILL, on every store that processes share: six minutes in all on two cores."""

import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from holdfast.stores.sqlite.store import SqliteStore
from tests.server.serving import Served
from tests.stores_by_name import url_of
from tests.workers.deploys import Deployed, deployed

pytestmark = [pytest.mark.verify, pytest.mark.timeout(900)]

ROUNDS = 60


@pytest.fixture(params=["sqlite", "lmdb", "postgres", "redis", "http"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param != "http":
        yield url_of(request.param, tmp_path)
        return
    with closing(SqliteStore(tmp_path / "served.db")) as store, closing(Served(store)) as served:
        yield served.url


@pytest.mark.parametrize("first", ["old", "new"])
def test_a_deploy_of_sixty_kills_loses_and_burns_no_job(url: str, first: str, tmp_path: Path) -> None:
    found = deployed(url, tmp_path, ROUNDS, first, timeout_s=800.0)
    sys.stdout.write(f"{found}\n")
    assert found == Deployed(put=ROUNDS * 64 + 1)

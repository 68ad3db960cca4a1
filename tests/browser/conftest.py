"""One browser for all tests of this folder, with a page of its own for each."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast import ControlPlaneClient
from tests.browser.chromium import Chromium, Page
from tests.browser.shop import HOSTILE, open_shop
from tests.server.processes import Process


@pytest.fixture(scope="session")
def chromium() -> Iterator[Chromium]:
    browser = Chromium()
    yield browser
    browser.close()


@pytest.fixture
def page(chromium: Chromium) -> Iterator[Page]:
    with chromium.page() as page:
        yield page


@pytest.fixture
def client(tmp_path: Path) -> Iterator[ControlPlaneClient]:
    with open_shop(f"sqlite:///{tmp_path}/s.db", HOSTILE) as client:
        yield client


@pytest.fixture
def process(client: ControlPlaneClient, tmp_path: Path) -> Iterator[Process]:
    server = Process(tmp_path / "s.db")
    server.start()
    yield server
    server.kill()

"""One browser for all tests of this folder, with a page of its own for each."""

from collections.abc import Iterator

import pytest

from tests.browser.chromium import Chromium, Page


@pytest.fixture(scope="session")
def chromium() -> Iterator[Chromium]:
    browser = Chromium()
    yield browser
    browser.close()


@pytest.fixture
def page(chromium: Chromium) -> Iterator[Page]:
    with chromium.page() as page:
        yield page

"""The dashboard with a million messages in 200 queues, beside the same queues with a thousand."""

import logging
from collections.abc import Iterator
from pathlib import Path
from statistics import median

import pytest

from holdfast import ControlPlaneClient, Queue
from holdfast.commands import Move
from tests.browser.chromium import Chromium, Page
from tests.browser.rows import PAGE, count_rows, rows_asked_for
from tests.sentinel_databases import until
from tests.server.processes import Process

pytestmark = [pytest.mark.verify, pytest.mark.xdist_group("browser")]

QUEUES = 200
ROUNDS = 5
TIMES = 3.0
"""So many times as long may a screen take with a thousand times as many messages."""

SCREENS = {
    "overview": "q-000",
    "queues": "q-049",
    "queues/q-000": "m-7",
    "queues/q-000/dead": "ValueError",
    "queues/q-000/activity": "From the event log",
    "message/q-000/m-7": "Lease timeline",
    "dead": "ValueError",
    "workers": "No worker is alive",
    "runs": "No durable job",
    "schedules": "No schedules",
    "dicts": "No dicts",
    "locks": "Nothing is held",
    "events/queue:q-000": "The newest",
    "tokens": "asks for no tokens",
    "health": "Limits",
}
_log = logging.getLogger(__name__)


@pytest.fixture
def page() -> Iterator[Page]:
    browser = Chromium()
    with browser.page() as page:
        yield page
    browser.close()


def fill(store: Path, each: int) -> None:
    """So many messages in each queue, a tenth of them dead."""
    with ControlPlaneClient(f"sqlite:///{store}?durability=process") as client:
        for number in range(QUEUES):
            queue = Queue.create(f"q-{number:03}", client=client)
            queue.put_many([{"n": place} for place in range(each - 1)])
            client.store.execute(Move(queue.name, "dead", state="ready", limit=max(each // 10, 1), error="ValueError: planted"))
            queue.put({"n": 7}, id="m-7", priority=9)


def seconds(page: Page, screen: str, shown: str) -> float:
    """How long it takes until the screen shows what it has, from the moment its address is gone to."""
    page.run("location.hash = '#/audit'")
    until(lambda: "Every administrative act" in page.run("document.querySelector('main')?.innerText ?? ''"))
    took = page.run(
        f"""new Promise((done) => {{
          const begin = performance.now();
          location.hash = '#/{screen}';
          const look = () => document.querySelector('main').innerText.includes('{shown}')
            ? done(performance.now() - begin)
            : requestAnimationFrame(look);
          requestAnimationFrame(look);
        }})"""
    )
    return float(took) / 1_000


def measure(page: Page, store: Path) -> dict[str, float]:
    """The median of some visits to each screen; none of them reads more than a page."""
    took = {}
    with Process(store) as server:
        page.open(server.url)
        until(lambda: "Overview" in page.run("document.querySelector('main')?.innerText ?? ''"))
        count_rows(page)
        for screen, shown in SCREENS.items():
            took[screen] = median(seconds(page, screen, shown) for _ in range(ROUNDS))
            most, total = rows_asked_for(page)
            assert most <= PAGE, screen
            assert total <= PAGE, screen
    return took


@pytest.mark.timeout(1_500)
def test_a_million_messages_are_looked_at_like_a_thousand(page: Page, tmp_path: Path) -> None:
    fill(tmp_path / "small.db", 5)
    fill(tmp_path / "large.db", 5_000)
    small, large = measure(page, tmp_path / "small.db"), measure(page, tmp_path / "large.db")
    for screen in SCREENS:
        _log.warning("%s: %.2f s with a thousand messages, %.2f s with a million", screen, small[screen], large[screen])
    assert {screen: took for screen, took in large.items() if took > TIMES * small[screen] + 0.1} == {}

"""How long each screen of the dashboard takes until it shows what it has, with a million messages in 200 queues and with a thousand."""

import sys
import tempfile
from pathlib import Path

from msgspec import Struct

sys.path.insert(0, str(Path(__file__).parents[1]))

from bench.measure import Figure, at_most, compare
from bench.report import print_table
from holdfast import ControlPlaneClient, Queue
from holdfast.commands import Move
from tests.browser.chromium import Chromium, Page
from tests.browser.rows import count_rows, rows_asked_for
from tests.sentinel_databases import until
from tests.server.processes import Process

QUEUES = 200
ROUNDS = 5
FEW, MANY = 5, 5_000
"""Messages in each queue."""

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


class Visits(Struct, frozen=True):
    """Some visits to one screen: how long each took, the most rows of one request, and those of all that read messages or entries."""

    took_s: list[float]
    most: int
    total: int


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


def measure(browser: Chromium, store: Path) -> dict[str, Visits]:
    """Visit each screen some times."""
    found = {}
    with Process(store) as server, browser.page() as page:
        page.open(server.url)
        until(lambda: "Overview" in page.run("document.querySelector('main')?.innerText ?? ''"))
        count_rows(page)
        for screen, shown in SCREENS.items():
            took_s = [seconds(page, screen, shown) for _ in range(ROUNDS)]
            found[screen] = Visits(took_s, *rows_asked_for(page))
    return found


def compared(folder: Path) -> tuple[dict[str, Visits], dict[str, Visits]]:
    """The visits with few messages, and those with many."""
    browser = Chromium()
    try:
        for name, each in (("few", FEW), ("many", MANY)):
            fill(folder / name, each)
        return measure(browser, folder / "few"), measure(browser, folder / "many")
    finally:
        browser.close()


def figures(few: dict[str, Visits], many: dict[str, Visits]) -> list[Figure]:
    """A line for each screen."""
    ms = {
        size: {screen: [1e3 * took for took in each.took_s] for screen, each in visits.items()}
        for size, visits in (("few", few), ("many", many))
    }
    beside = f"{FEW * QUEUES:,} messages"
    return [compare(screen, ms["many"][screen], ms["few"][screen], unit="ms", beside=beside, wanted=at_most(TIMES)) for screen in SCREENS]


def main() -> None:
    """Print the figures."""
    with tempfile.TemporaryDirectory() as folder:
        few, many = compared(Path(folder))
    print_table({"dashboard": figures(few, many)}, [f"Ours: {MANY * QUEUES:,} messages in {QUEUES} queues."], is_judged=True)


if __name__ == "__main__":
    main()

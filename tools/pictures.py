"""Take the pictures of the dashboard in docs/pictures, of a real server with something of everything going on, in a real browser."""

import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.browser.chromium import Chromium, Page
from tests.browser.shop import open_shop
from tests.sentinel_databases import until
from tests.server.processes import Process

FOLDER = Path(__file__).parents[1] / "docs" / "pictures"
SCREENS = {
    "overview": ("overview", "Busiest queues"),
    "dead-letters": ("queues/mail/dead", "By error"),
    "message": ("message/mail/leased-1", "Lease timeline"),
    "durable-job": ("message/orders/order-17", "Send signal"),
}
"""The name of each picture, with its screen and what that shows once it has read everything."""


def main() -> None:
    """Take them all."""
    FOLDER.mkdir(exist_ok=True)
    browser = Chromium()
    try:
        with tempfile.TemporaryDirectory() as folder:
            take_all(browser, Path(folder) / "shop.db")
    finally:
        browser.close()


def take_all(browser: Chromium, store: Path) -> None:
    """Take them of a server on a new store."""
    with open_shop(f"sqlite:///{store}"), Process(store) as server, browser.page() as page:
        page.size(1200, 720)
        page.prefer("light")
        page.open(server.url)
        for name, (screen, shown) in SCREENS.items():
            (FOLDER / f"dashboard-{name}.png").write_bytes(picture(page, screen, shown))


def picture(page: Page, screen: str, shown: str) -> bytes:
    """One screen, once it shows all of itself."""
    page.run(f"location.hash = '#/{screen}'")
    until(lambda: shown in page.run("document.querySelector('main')?.innerText ?? ''"))
    return page.picture()


if __name__ == "__main__":
    main()

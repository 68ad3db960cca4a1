"""Take the pictures in docs/pictures: of the dashboard of real servers in a real browser, and of what a demo printed."""

import io
import re
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from urllib.parse import unquote

sys.path.insert(0, str(Path(__file__).parents[1]))

from rich.console import Console

from holdfast.cli.demo.output import LiveOutput
from holdfast.cli.demo.progress import Progress
from holdfast.cli.demo.protocol import QUEUE
from holdfast.cli.demo.run import run_demo
from holdfast.commands import Browse
from holdfast.connect import connect
from tests.browser.chromium import Chromium, Page
from tests.browser.shop import open_shop
from tests.sentinel_databases import until
from tests.server.processes import Process

FOLDER = Path(__file__).parents[1] / "docs" / "pictures"
COLUMNS = 120
SCREENS = {
    "overview": ("overview", "Throughput of all queues"),
    "dead-letters": ("queues/mail/dead", "By error"),
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
        output = Recorded()
        run_demo(output, messages=120, workers=4, seed=1, then=partial(take_redelivered, browser))
        (FOLDER / "demo.svg").write_text(output.picture())
    finally:
        browser.close()


class Recorded(LiveOutput):
    """What a terminal shows of a demo when it is over."""

    def __init__(self) -> None:
        self._console = Console(
            record=True, file=io.StringIO(), force_terminal=True, color_system="truecolor", width=COLUMNS, highlight=False
        )

    @contextmanager
    def showing(self, progress: Progress) -> Iterator[None]:
        """Without the bars, which are gone in the end."""
        del progress
        yield

    def picture(self) -> str:
        """It as SVG, with the fonts of the reader: nothing is fetched."""
        return re.sub(r"\s*@font-face \{.*?\}\n", "\n", self._console.export_svg(title="make demo"), flags=re.DOTALL)


def take_all(browser: Chromium, store: Path) -> None:
    """Take them of a server on a new store."""
    with open_shop(f"sqlite:///{store}"), Process(store) as server, browser.page() as page:
        page.size(1200, 860)
        page.prefer("light")
        page.open(server.url)
        for name, (screen, shown) in SCREENS.items():
            (FOLDER / f"dashboard-{name}.png").write_bytes(picture(page, screen, shown))


def take_redelivered(browser: Chromium, url: str) -> None:
    """Take one of a message whose first worker was killed, of a demo that is over."""
    with closing(connect(url)) as store:
        done = store.execute(Browse(QUEUE, state="done", limit=500)).messages
    message = next(message for message in done if message.history)
    with Process(Path(unquote(url.removeprefix("sqlite:///")))) as server, browser.page() as page:
        page.size(1200, 620)
        page.prefer("light")
        page.open(server.url)
        (FOLDER / "dashboard-message.png").write_bytes(picture(page, f"message/{QUEUE}/{message.id}", "acknowledged"))


def picture(page: Page, screen: str, shown: str) -> bytes:
    """One screen, once it shows all of itself."""
    page.run(f"location.hash = '#/{screen}'")
    until(lambda: shown in page.run("document.querySelector('main')?.innerText ?? ''"))
    return page.picture()


if __name__ == "__main__":
    main()

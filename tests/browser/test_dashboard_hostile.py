"""Whatever is stored, the dashboard shows it as text: in every field, on every screen."""

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from holdfast import ControlPlaneClient
from tests.browser.acting import go, shows
from tests.browser.chromium import Page
from tests.browser.hostile import PAYLOADS, SCREENS, Named, name_everything
from tests.sentinel_databases import until
from tests.server.processes import Process

pytestmark = pytest.mark.xdist_group("browser")

BAD = """(() => {
  const shown = document.querySelector("main").innerText;
  const unseen = /[^\\n\\t\\P{C}]|[\\u2028\\u2029]/gu;
  return [
    ...[...document.querySelectorAll("#app img, #app script, #app svg[onload]")].map((one) => one.outerHTML),
    ...new Set([...shown.matchAll(unseen)].map(([one]) => one.codePointAt(0).toString(16))),
    ...(document.documentElement.scrollWidth > innerWidth ? ["wider than the window"] : []),
    ...(window.hacked === undefined ? [] : ["hacked"]),
  ];
})()"""
"""What is wrong with the screen that is shown."""


@pytest.fixture(scope="module")
def everything(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, dict[str, Named]]]:
    """The address of a server, and what is in its store by the payload."""
    store = tmp_path_factory.mktemp("hostile") / "s.db"
    with ControlPlaneClient(f"sqlite:///{store}") as client, ExitStack() as held:
        named = {kind: held.enter_context(name_everything(client, payload)) for kind, payload in PAYLOADS.items()}
        with Process(store) as server:
            yield server.url, named


@pytest.mark.parametrize("kind", PAYLOADS)
def test_what_is_stored_is_shown_as_text_in_every_field(page: Page, everything: tuple[str, dict[str, Named]], kind: str) -> None:
    url, named = everything[0], everything[1][kind]
    page.open(url)
    shows(page, "Overview")
    for screen, fields in SCREENS.items():
        go(page, screen.format(**named.names))
        for field in fields:
            shows(page, named.shown[field])
        for width in (1280, 390):
            page.size(width, 800)
            assert page.run(BAD) == [], (screen, width)
    assert page.complaints() == []
    assert set(named.shown) - set().union(*SCREENS.values()) == {"leased", "done"}, "lists cut long ids in the middle"


PLANTS = {
    "<img ": "document.createTextNode = (text) => Object.assign(document.createElement('span'), {innerHTML: text})",
    "202e": "document.querySelector('main').append('\\u202e')",
    "1b": "document.querySelector('main').append('\\x1b')",
    "wider than the window": "document.body.style.minWidth = '9999px'",
    "hacked": "window.hacked = 1",
}


@pytest.mark.parametrize("noticed", PLANTS)
def test_control_a_page_that_shows_more_than_text_is_noticed(page: Page, everything: tuple[str, dict[str, Named]], noticed: str) -> None:
    page.open(everything[0])
    shows(page, "Overview")
    page.run(f"{PLANTS[noticed]}; true")
    go(page, "queues")
    until(lambda: any(noticed in each for each in page.run(BAD)))

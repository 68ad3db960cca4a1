"""The dashboard in a real browser: every screen loads, actions do what they say in the store, and hostile values run nothing."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec import json

from holdfast import ControlPlaneClient, Dict, Queue, Schedule
from holdfast.connect import connect
from holdfast.server.audit import Actor
from holdfast.server.auth.tokens import create_token
from tests.browser.chromium import Page
from tests.sentinel_databases import until
from tests.server.processes import Process

pytestmark = pytest.mark.xdist_group("browser")

HOSTILE = '<img src=x onerror="window.hacked=1"><script>window.hacked=1</script>\'"&'
SCREENS = (
    "overview",
    "queues",
    "queues/mail",
    "queues/mail/dead",
    "dicts",
    "dicts/settings",
    "locks",
    "schedules",
    "workers",
    "events",
    "health",
)


@pytest.fixture
def process(tmp_path: Path) -> Iterator[Process]:
    with ControlPlaneClient(f"sqlite:///{tmp_path}/s.db") as client:
        mail = Queue.create("mail", client=client)
        mail.put({"to": HOSTILE}, key=HOSTILE[:40], labels=[HOSTILE[:20]], id="first")
        mail.put(1, id="second", priority=9, max_attempts=1)
        claim = mail.claim()
        assert claim is not None
        mail.fail(claim, error=f"ValueError: {HOSTILE}")
        Dict.create("settings", client=client).put(HOSTILE, {"mode": HOSTILE})
        Schedule("nightly", "0 3 * * *", ("mail", 1), client=client).save()
    server = Process(tmp_path / "s.db")
    server.start()
    yield server
    server.kill()


def shows(page: Page, text: str) -> None:
    """Wait until the page shows a text."""
    until(lambda: text in page.run("document.body.innerText"))


def press(page: Page, label: str) -> None:
    """Press the button with this label, and agree if it asks."""
    page.run("window.confirm = () => true")
    page.run(f"[...document.querySelectorAll('button')].find(one => one.textContent === {json.encode(label).decode()}).click()")


def go(page: Page, url: str, screen: str) -> None:
    page.run(f"location.hash = '#/{screen}'")
    until(lambda: page.run("document.querySelector('h1')?.textContent.length > 0 && !document.querySelector('[aria-busy]')"))


def test_every_screen_loads_without_an_error_and_runs_nothing_that_is_stored(page: Page, process: Process, tmp_path: Path) -> None:
    page.open(process.url)
    page.run("window.failures = []; addEventListener('error', e => failures.push(String(e.message)))")
    shows(page, "Overview")
    for screen in SCREENS:
        go(page, process.url, screen)
        (tmp_path / f"{screen.replace('/', '-')}.png").write_bytes(page.picture())
        assert page.run("document.querySelectorAll('[role=alert]').length") == 0, screen
    go(page, process.url, "message/mail/first")
    shows(page, "Lease timeline")
    assert "<img src=x onerror=" in page.run("document.body.innerText")
    assert page.run("[window.hacked ?? null, window.failures]") == [None, []]


def test_actions_do_what_they_say_in_the_store(page: Page, process: Process, tmp_path: Path) -> None:
    page.open(f"{process.url}/#/queues/mail/dead")
    with ControlPlaneClient(f"sqlite:///{tmp_path}/s.db") as client:
        mail = Queue.from_name("mail", client=client)
        shows(page, "Redrive 1 dead letters")
        press(page, "Redrive 1 dead letters")
        until(lambda: mail.stats().dead == 0)
        press(page, "Pause")
        shows(page, "Resume")
        assert mail.claim() is None
        press(page, "Resume")
        shows(page, "Pause")
        press(page, "Purge")
        until(lambda: mail.stats().total == 0)


def test_a_screen_follows_what_happens_without_being_asked(page: Page, process: Process, tmp_path: Path) -> None:
    page.open(f"{process.url}/#/queues/mail")
    shows(page, "first")
    with ControlPlaneClient(f"sqlite:///{tmp_path}/s.db") as client:
        Queue.from_name("mail", client=client).put(1, id="put-meanwhile")
    shows(page, "put-meanwhile")


def test_an_entry_is_edited_under_compare_and_set(page: Page, process: Process, tmp_path: Path) -> None:
    page.open(f"{process.url}/#/dicts/settings")
    shows(page, "Edit")
    press(page, "Edit")
    shows(page, "Value as JSON")
    with ControlPlaneClient(f"sqlite:///{tmp_path}/s.db") as client:
        settings = Dict.from_name("settings", client=client)
        settings.put(HOSTILE, "changed meanwhile")
        press(page, "Save")
        shows(page, "has changed it meanwhile")
        assert settings.get(HOSTILE) == "changed meanwhile"


def test_a_server_with_tokens_asks_for_one_and_a_reader_can_change_nothing(page: Page, process: Process, tmp_path: Path) -> None:
    store = connect(f"sqlite:///{tmp_path}/s.db")
    _, text = create_token(store, "reader", ["queue:*:read", "dict:*:read"], by=Actor("test", "here"))
    page.open(process.url)
    shows(page, "Sign in")
    page.run(f"document.querySelector('[name=token]').value = {json.encode(text).decode()}")
    press(page, "Sign in")
    shows(page, "Overview")
    go(page, process.url, "queues/mail")
    shows(page, "first")
    press(page, "Purge")
    shows(page, "queue:mail:manage")
    with ControlPlaneClient(f"sqlite:///{tmp_path}/s.db") as client:
        assert Queue.from_name("mail", client=client).stats().total == 2
    store.close()
    assert text not in page.run("location.href + document.cookie + JSON.stringify(localStorage) + JSON.stringify(sessionStorage)")

"""Lists of the dashboard in a real browser: page by page, narrowed by a search, and kept up to date."""

import pytest
from msgspec import Raw, json

from holdfast import ControlPlaneClient, Queue
from holdfast.codec import encode_key
from holdfast.commands import Change, Read, Write
from holdfast.schedules.entries import SCHEDULES
from holdfast.server.audit import Act, Actor, recorded
from tests.browser.acting import go, lacks, press, shows
from tests.browser.chromium import Page
from tests.sentinel_databases import until
from tests.server.processes import Process

pytestmark = pytest.mark.xdist_group("browser")

TEXT = "document.querySelector('main').innerText"


def fill_in(page: Page, **fields: str) -> None:
    """Fill in fields of the search, and search."""
    for name, value in fields.items():
        page.run(f"document.querySelector('main form [name={name}]').value = {json.encode(value).decode()}")
    press(page, "Search")


def plant(client: ControlPlaneClient) -> None:
    """More than a page of everything."""
    (nightly,) = client.store.execute(Read(SCHEDULES)).entries
    client.store.execute(Write(SCHEDULES, [Change(encode_key(f"s-{n:02}"), value=nightly.value) for n in range(60)]))
    client.store.execute(Write("orders-steps", [Change(encode_key((f"job-{n:03}",)), value=Raw(b"{}")) for n in range(250)]))
    client.store.execute(Write("many", [Change(encode_key(f"k-{n:02}"), value=Raw(b"1")) for n in range(60)]))
    tenants = Queue.from_name("tenants", client=client)
    for n in range(60):
        tenants.group(f"g-{n:02}").configure(weight=2)
    for n in range(60):
        client.store.execute(recorded(Actor("ann", "here"), Act("clear", f"queue:a-{n:02}")))


def test_long_lists_are_shown_page_by_page(page: Page, process: Process, client: ControlPlaneClient) -> None:
    plant(client)
    page.open(process.url)
    shows(page, "Overview")
    ends = {
        "schedules": ("s-00", "s-59"),
        "audit": ("a-59", "a-00"),
        "runs/orders": ("job-000", "job-249"),
        "dicts/many": ("k-00", "k-59"),
        "queues/tenants/groups": ("acme", "g-59"),
    }
    for screen, (first, last) in ends.items():
        go(page, screen)
        shows(page, first)
        assert last not in page.run(TEXT), screen
        press(page, "Next page")
        shows(page, last)
        press(page, "First page")
        shows(page, first)
        lacks(page, last)


def test_what_is_written_into_the_audit_stands_first_at_once(page: Page, process: Process, client: ControlPlaneClient) -> None:
    page.open(f"{process.url}/#/audit")
    shows(page, "the newest first")
    for what in ("queue:first", "queue:second"):
        client.store.execute(recorded(Actor("ann", "here"), Act("clear", what)))
        shows(page, what)
    assert page.run("[...document.querySelectorAll('tbody tr')].map(row => row.innerText.match(/queue:\\w+/)[0])")[:2] == [
        "queue:second",
        "queue:first",
    ]


def test_a_search_takes_ages_and_the_class_of_an_error(page: Page, process: Process) -> None:
    page.open(f"{process.url}/#/queues/mail/dead")
    shows(page, "dead-1")
    fill_in(page, **{"class": "ConnectionError", "newer": "60"})
    lacks(page, "dead-1")
    shows(page, "dead-0")
    fill_in(page, older="60", newer="0")
    shows(page, "No dead messages that match.")
    fill_in(page, older="0", error="timed out")
    shows(page, "dead-2")
    lacks(page, "dead-0")


def test_the_messages_of_a_group_are_shown_by_state(page: Page, process: Process, client: ControlPlaneClient) -> None:
    tenants = Queue.from_name("tenants", client=client)
    tenants.put(1, id="without")
    tenants.claim(claimer="worker-2")
    page.open(f"{process.url}/#/queues/tenants/groups")
    shows(page, "acme")
    groups = "[...new Set([...document.querySelectorAll('td[data-head=group]')].map(cell => cell.innerText))].join()"
    page.run("[...document.querySelectorAll('main a')].find(link => link.textContent === 'bolt').click()")
    shows(page, "Of group bolt alone")
    until(lambda: page.run(groups) == "bolt")
    fill_in(page, value="3")
    until(lambda: page.run("document.querySelectorAll('tbody tr').length") == 1)
    go(page, "queues/tenants/ready/group")
    shows(page, "without")
    lacks(page, "bolt")
    page.run("[...document.querySelectorAll('main a')].find(link => link.textContent === 'Show all groups').click()")
    shows(page, "bolt")


def test_a_text_that_is_being_typed_stays_while_the_screen_follows(page: Page, process: Process, client: ControlPlaneClient) -> None:
    page.open(f"{process.url}/#/events/queue:tenants")
    shows(page, "The newest")
    page.run("document.querySelector('[name=topic]').value = 'queue:ma'")
    Queue.from_name("tenants", client=client).put(1, id="put-meanwhile", group="aardvark")
    shows(page, "put-meanwhile")
    assert page.run("document.querySelector('[name=topic]').value") == "queue:ma"

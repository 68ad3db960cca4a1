"""The dashboard in a real browser: every screen loads, actions do what they say in the store, and hostile values run nothing."""

import re
from pathlib import Path
from typing import Any

import pytest
from msgspec import json

from holdfast import ControlPlaneClient, Dict, Queue, Schedule
from holdfast.commands import Leases, Move
from holdfast.connect import connect
from holdfast.server.audit import Actor
from holdfast.server.auth.tokens import create_token
from tests.browser.acting import agree, go, press, shows, type_key
from tests.browser.chromium import Page
from tests.browser.rows import PAGE, count_rows, rows_asked_for
from tests.browser.shop import HOSTILE
from tests.sentinel_databases import until
from tests.server.processes import Process

pytestmark = pytest.mark.xdist_group("browser")

ROOT = Path(__file__).parents[2]
PICTURES = ROOT / "build" / "dashboard"
"""What each screen looks like, for the eyes of a developer."""
AXE = ROOT / "web" / "dashboard" / "node_modules" / "axe-core" / "axe.min.js"

SCREENS = {
    "overview": "Throughput of all queues",
    "queues": "tenants",
    "queues/mail": "first",
    "queues/mail/leased": "leased-1",
    "queues/mail/dead": "By error",
    "queues/mail/done": "done-1",
    "queues/mail/activity": "From the event log",
    "queues/mail/settings": "keep done",
    "queues/tenants/groups": "acme",
    "message/mail/first": "Lease timeline",
    "message/mail/dead-0": "ConnectionError",
    "message/orders/order-17": "Send signal",
    "dead": "ValueError",
    "workers": "host.example",
    "workers/worker-1": "leased-1",
    "runs": "order-17",
    "schedules": "nightly",
    "dicts": "settings",
    "dicts/settings": "New entry",
    "locks": "report",
    "events": "tenants",
    "events/queue:mail": "buried",
    "tokens": "whoever reaches it may do everything",
    "audit": "Audit",
    "health": "survives",
}
"""The screens, each with what it shows once it has read everything."""


def faults(page: Page, *rules: str) -> list[Any]:
    """The serious faults that axe-core finds, by these rules or by all."""
    options = {"resultTypes": ["violations"]} | ({"runOnly": rules} if rules else {})
    found = page.run(f"axe.run(document, {json.encode(options).decode()}).then(found => found.violations)")
    return [(each["id"], [node["html"] for node in each["nodes"]][:3]) for each in found if each["impact"] in ("serious", "critical")]


def test_every_screen_loads_in_both_themes_and_runs_nothing_that_is_stored(page: Page, process: Process) -> None:
    PICTURES.mkdir(parents=True, exist_ok=True)
    page.size(1280, 800)
    page.open(process.url)
    page.run(AXE.read_text() + "; true")
    for screen, shown in SCREENS.items():
        go(page, screen)
        shows(page, shown)
        for theme, rules in {"light": (), "dark": ("color-contrast",)}.items():
            page.prefer(theme)
            (PICTURES / f"{screen.replace('/', '-').replace(':', '-')}-{theme}.png").write_bytes(page.picture())
            assert faults(page, *rules) == [], (screen, theme)
        assert page.run("document.querySelectorAll('[role=alert]').length") == 0, screen
        assert not re.search(r"\d-\d\dT\d\d:", page.run("document.querySelector('main').innerText")), "dates are written in one way"
    assert page.run("window.hacked ?? null") is None
    assert page.complaints() == []


def test_control_a_button_without_a_name_and_an_error_are_noticed(page: Page, process: Process) -> None:
    page.open(process.url)
    shows(page, "Overview")
    page.run(AXE.read_text() + "; true")
    page.run("document.querySelector('main').append(document.createElement('button'))")
    page.run("setTimeout(() => { throw new Error('planted') }); true")
    assert [fault for fault, _ in faults(page)] == ["button-name"]
    until(lambda: any("planted" in each for each in page.complaints()) or page.run("null"))


def test_on_a_phone_every_screen_is_accessible_and_none_is_wider(page: Page, process: Process) -> None:
    page.size(390, 800)
    page.open(process.url)
    page.run(AXE.read_text() + "; true")
    for screen, shown in SCREENS.items():
        go(page, screen)
        shows(page, shown)
        assert page.run("document.documentElement.scrollWidth <= 390"), screen
        assert page.run("document.querySelector('nav [aria-current]').getBoundingClientRect().right <= 390"), "the navigation shows it"
        assert faults(page) == [], screen


@pytest.mark.parametrize("width", [1280, 390])
def test_an_open_dialog_is_accessible_in_both_themes(page: Page, process: Process, width: int) -> None:
    page.size(width, 800)
    page.open(f"{process.url}/#/locks")
    shows(page, "report")
    page.run(AXE.read_text() + "; true")
    for opened in (
        "document.querySelector('main .danger').click()",
        "document.body.dispatchEvent(new KeyboardEvent('keydown', {key: '?', bubbles: true}))",
    ):
        page.run("document.querySelector('dialog')?.close()")
        until(lambda: page.run("document.querySelector('dialog') === null"))
        page.run(opened)
        until(lambda: page.run("document.querySelector('dialog')?.open ?? false"))
        for theme in ("light", "dark"):
            page.prefer(theme)
            assert faults(page) == [], (opened, theme)


def test_actions_on_a_queue_do_what_they_say_in_the_store(page: Page, process: Process, client: ControlPlaneClient) -> None:
    mail = Queue.from_name("mail", client=client)
    page.open(f"{process.url}/#/queues/mail/dead")
    shows(page, "By error")
    agree(page, "Redrive all")
    until(lambda: mail.stats().dead == 0)
    press(page, "Pause")
    until(lambda: page.run("document.querySelector('h1').innerText.includes('paused')"))
    assert mail.claim() is None
    press(page, "Resume")
    until(lambda: mail.claim() is not None)
    agree(page, "Purge")
    until(lambda: mail.stats().total == 0)


def test_a_dialog_that_is_left_changes_nothing(page: Page, process: Process, client: ControlPlaneClient) -> None:
    page.open(f"{process.url}/#/queues/mail")
    shows(page, "first")
    press(page, "Purge")
    press(page, "Keep it")
    until(lambda: page.run("document.querySelector('dialog') === null"))
    assert Queue.from_name("mail", client=client).stats().total > 100


def test_all_that_match_a_search_are_removed_and_no_other(page: Page, process: Process, client: ControlPlaneClient) -> None:
    page.open(f"{process.url}/#/queues/mail/dead")
    shows(page, "By error")
    press(page, "ValueError")
    agree(page, "Remove all that match")
    mail = Queue.from_name("mail", client=client)
    until(lambda: mail.stats().dead == 2)
    assert {message.id for message in mail.dead_letters()} == {"dead-0", "dead-2"}


def test_a_group_a_schedule_and_a_durable_job_are_steered(page: Page, process: Process, client: ControlPlaneClient) -> None:
    page.open(f"{process.url}/#/queues/tenants/groups")
    shows(page, "acme")
    press(page, "Pause")
    tenants = Queue.from_name("tenants", client=client)
    until(lambda: any(group.paused for group in tenants.groups()))
    go(page, "schedules")
    shows(page, "nightly")
    agree(page, "Pause", "holidays")
    nightly = Schedule.from_name("nightly", client=client)
    until(lambda: nightly.status().paused == "holidays")
    press(page, "Run now")
    until(lambda: Queue.from_name("reports", client=client).length() == 1)
    go(page, "message/orders/order-17")
    shows(page, "Send signal")
    press(page, "Send signal")
    until(lambda: Queue.from_name("orders", client=client).stats().ready == 1)


def test_no_screen_asks_for_more_than_a_page_of_rows(page: Page, process: Process, client: ControlPlaneClient) -> None:
    for name in ("mail", "tenants"):
        Queue.from_name(name, client=client).put_many([{"n": number} for number in range(600)])
    client.store.execute(Move("tenants", "dead", state="ready", limit=500, error="ValueError: planted"))
    settings = Dict.from_name("settings", client=client)
    settings.update({f"key {number}": number for number in range(500)})
    page.open(process.url)
    shows(page, "Throughput of all queues")
    count_rows(page)
    many = {"queues/mail": "Next page", "queues/tenants/dead": "Next page", "dead": "of the first", "dicts/settings": "Next page"}
    for screen, shown in {**many, "queues": "tenants", "workers": "host.example", "runs": "order-17", "locks": "report"}.items():
        go(page, screen)
        shows(page, shown)
        most, total = rows_asked_for(page)
        assert max(most, total) <= PAGE, screen
    asked = json.encode({"queue": "mail", "limit": 500}).decode()
    page.run(f"fetch('/v1/browse', {{method: 'POST', body: '{asked}', headers: {{'content-type': 'application/json'}}}}).then(() => true)")
    assert rows_asked_for(page) == (500, 500), "control: a larger one is noticed"


def test_one_message_is_redriven_and_removed(page: Page, process: Process, client: ControlPlaneClient) -> None:
    mail = Queue.from_name("mail", client=client)
    page.open(f"{process.url}/#/queues/mail/dead")
    shows(page, "dead-2")
    press(page, "Redrive")
    until(lambda: [message.id for message in mail.dead_letters()] == ["dead-0", "dead-1"])
    until(lambda: "dead-2" not in page.run("document.querySelector('main').innerText"))
    agree(page, "Remove")
    until(lambda: [message.id for message in mail.dead_letters()] == ["dead-0"])
    go(page, "message/mail/dead-0")
    shows(page, "Lease timeline")
    press(page, "Redrive")
    until(lambda: mail.stats().dead == 0)
    go(page, "message/mail/first")
    shows(page, "Message first")
    agree(page, "Cancel")
    until(lambda: not list(mail.browse(state="ready", label=HOSTILE[:20])))


def test_dead_letters_go_by_their_error(page: Page, process: Process, client: ControlPlaneClient) -> None:
    mail = Queue.from_name("mail", client=client)
    page.open(f"{process.url}/#/dead")
    shows(page, "ValueError")
    agree(page, "Remove")
    until(lambda: {message.id for message in mail.dead_letters()} == {"dead-0", "dead-2"})
    until(lambda: "ValueError" not in page.run("document.querySelector('main').innerText"))
    agree(page, "Redrive")
    until(lambda: mail.stats().dead == 0)


def test_what_is_paused_is_resumed_from_the_overview(page: Page, process: Process, client: ControlPlaneClient) -> None:
    mail = Queue.from_name("mail", client=client)
    mail.pause()
    Schedule.from_name("nightly", client=client).pause("holidays")
    page.open(process.url)
    shows(page, "Paused; 121 wait")
    assert "reports" not in page.run("document.querySelector('main .troubles').innerText"), "control: its schedule is paused"
    press(page, "Resume")
    until(lambda: mail.claim() is not None)
    go(page, "schedules")
    press(page, "Resume")
    until(lambda: Schedule.from_name("nightly", client=client).status().paused is None)
    go(page, "overview")
    shows(page, "No living worker serves its queue reports")


def test_a_lease_is_taken_from_its_holder_with_a_reason(page: Page, process: Process, client: ControlPlaneClient) -> None:
    page.open(f"{process.url}/#/locks")
    shows(page, "gpu")
    agree(page, "Break", "stuck since noon")

    def held() -> list[str]:
        return [holding.key for holding in client.store.execute(Leases()).held if holding.leases]

    until(lambda: held() == ['["lock","report"]'])
    go(page, "audit")
    shows(page, "stuck since noon")


def test_a_screen_follows_what_happens_without_being_asked(page: Page, process: Process, client: ControlPlaneClient) -> None:
    page.open(f"{process.url}/#/queues/tenants")
    shows(page, "acme")
    Queue.from_name("tenants", client=client).put(1, id="put-meanwhile", group="aardvark", priority=9)
    shows(page, "put-meanwhile")
    asked = "performance.getEntriesByType('resource').filter(one => !one.name.endsWith('/v1/wait')).length"
    standing = "document.querySelector('.standing').innerText"
    age = page.run(standing)
    until(lambda: page.run(f"new Promise(done => {{ const before = {asked}; setTimeout(() => done({asked} === before), 2000) }})"))
    assert page.run(standing) != age, "what waits grows older all the same"


def test_with_a_queue_that_is_not_there_nothing_can_be_done(page: Page, process: Process, client: ControlPlaneClient) -> None:
    page.open(f"{process.url}/#/queues/mial")
    shows(page, "There is no queue of this name")
    assert page.run("document.querySelectorAll('main button').length") == 0
    go(page, "dicts/setings")
    shows(page, "There is no dict of this name")
    go(page, "queues")
    shows(page, "tenants")
    assert page.run("document.querySelectorAll('td.number[data-head=dead]').length") == 3, (
        "figures stand on the right, also those that lead on"
    )
    assert [queue.name for queue in Queue.list(client=client)] == ["mail", "orders", "tenants"]


def test_an_entry_is_edited_under_compare_and_set(page: Page, process: Process, client: ControlPlaneClient) -> None:
    page.open(f"{process.url}/#/dicts/settings")
    press(page, "Edit")
    shows(page, "Value as JSON")
    settings = Dict.from_name("settings", client=client)
    settings.put(HOSTILE, "changed meanwhile")
    press(page, "Save")
    shows(page, "has changed it meanwhile")
    assert settings.get(HOSTILE) == "changed meanwhile"


def test_an_entry_is_made_changed_and_deleted(page: Page, process: Process, client: ControlPlaneClient) -> None:
    settings = Dict.from_name("settings", client=client)
    settings.delete(HOSTILE)
    page.open(f"{process.url}/#/dicts/settings")
    press(page, "New entry")
    press(page, "Save")
    until(lambda: settings.length() == 1)
    press(page, "Edit")
    shows(page, "Value as JSON")
    written = (
        "const area = document.querySelector('textarea'); area.value = '[1, 2]'; area.dispatchEvent(new Event('input', {bubbles: true}))"
    )
    page.run(written)
    press(page, "Save")
    until(lambda: settings.get("new") == [1, 2])
    agree(page, "Delete")
    until(lambda: settings.length() == 0)


def test_no_digit_of_a_number_is_lost_by_an_edit(page: Page, process: Process, client: ControlPlaneClient) -> None:
    settings = Dict.from_name("settings", client=client)
    settings.put(HOSTILE, {"id": 2**63 + 1})
    page.open(f"{process.url}/#/dicts/settings")
    shows(page, "revision")
    edits = "[...document.querySelectorAll('button')].filter(one => one.textContent === 'Edit').map(one => one.disabled)"
    until(lambda: page.run(edits) == [True])


def test_the_keyboard_leads_to_screens_and_to_the_search(page: Page, process: Process) -> None:
    page.open(process.url)
    shows(page, "Overview")
    for key in "gq":
        type_key(page, key)
    shows(page, "Name begins with")
    type_key(page, "/")
    assert page.run("document.activeElement.name") == "prefix"
    page.run("document.activeElement.blur()")
    type_key(page, "?")
    until(lambda: "Dead letters" in page.run("document.querySelector('dialog')?.innerText ?? ''"))
    press(page, "Close")
    until(lambda: page.run("document.querySelector('dialog') === null"))


def test_a_server_with_tokens_asks_for_one_and_a_reader_sees_no_action(page: Page, process: Process, tmp_path: Path) -> None:
    store = connect(f"sqlite:///{tmp_path}/s.db")
    _, text = create_token(store, "reader", ["queue:*:read", "dict:*:read", "lease:*:read"], by=Actor("test", "here"))
    store.close()
    page.open(process.url)
    shows(page, "Sign in")
    page.run(f"document.querySelector('[name=token]').value = {json.encode(text).decode()}")
    press(page, "Sign in")
    shows(page, "Overview")
    allowed = {"Search", "Next page", "Refresh", "Follow", "Show", "ConnectionError", "ValueError"}
    for screen, shown in SCREENS.items():
        if screen not in ("audit", "tokens"):
            go(page, screen)
            shows(page, {"message/orders/order-17": "Steps", "dicts/settings": "revision"}.get(screen, shown))
            assert set(page.run("[...document.querySelectorAll('main button')].map(one => one.textContent)")) <= allowed, screen
    assert page.run("[...document.querySelectorAll('header nav a')].map(one => one.textContent)").count("Tokens") == 0
    assert text not in page.run("location.href + document.cookie + JSON.stringify(localStorage) + JSON.stringify(sessionStorage)")
    press(page, "Sign out")
    page.loaded()
    shows(page, "Sign in")


def test_an_administrator_sees_who_may_do_what(page: Page, process: Process, tmp_path: Path) -> None:
    store = connect(f"sqlite:///{tmp_path}/s.db")
    _, text = create_token(store, HOSTILE, ["admin"], ["*"], by=Actor("test", "here"))
    store.close()
    page.open(process.url)
    shows(page, "Sign in")
    page.run(f"document.querySelector('[name=token]').value = {json.encode(text).decode()}")
    press(page, "Sign in")
    shows(page, "Overview")
    go(page, "tokens")
    shows(page, HOSTILE)
    assert page.run("window.hacked ?? null") is None
    assert page.run("document.querySelectorAll('main button').length") == 0, "tokens are made and revoked where the store is"

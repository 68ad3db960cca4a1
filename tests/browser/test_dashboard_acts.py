"""Actions of the dashboard in a real browser: on many messages, on what runs, and those that the token does not allow."""

from pathlib import Path
from typing import Any

import pytest
from msgspec import json

from holdfast import ControlPlaneClient, Queue, Schedule
from holdfast.codec import encode_key
from holdfast.commands import Browse, Leases, Move, Names, Read
from holdfast.connect import connect
from holdfast.server.audit import Actor
from holdfast.server.auth.tokens import create_token
from holdfast.workers.steps.rows import CANCELS
from tests.browser.acting import agree, go, lacks, press, shows
from tests.browser.chromium import Page
from tests.sentinel_databases import until
from tests.server.processes import Process

pytestmark = pytest.mark.xdist_group("browser")


def test_a_bulk_action_that_is_stopped_leaves_the_rest(page: Page, process: Process, client: ControlPlaneClient) -> None:
    many = Queue.create("many", client=client)
    many.put_many(range(500))
    page.open(f"{process.url}/#/queues/many")
    shows(page, "Next page")
    # The second page of the action is looked for only once the reader has pressed.
    page.run("""(() => {
      const send = window.fetch;
      let isMoved = false;
      window.fetch = async (input, init) => {
        const stop = () => [...document.querySelectorAll('button')].find(one => one.textContent === 'Stop');
        if (isMoved && String(input).endsWith('/v1/browse') && JSON.parse(init.body).limit === 200) {
          while (!stop()) await new Promise(done => setTimeout(done));
          stop().click();
          window.stopped = true;
        }
        isMoved ||= String(input).endsWith('/v1/move');
        return send(input, init);
      };
      return true;
    })()""")
    agree(page, "Remove all")
    until(lambda: page.run("window.stopped ?? false") and "Stop" not in page.run("document.querySelector('main').innerText"))
    assert many.length() == 300


def test_a_bulk_action_goes_on_behind_a_page_on_which_nothing_matches(page: Page, process: Process, client: ControlPlaneClient) -> None:
    many = Queue.create("many", client=client)
    many.put_many(range(300))
    page.open(f"{process.url}/#/queues/many")
    shows(page, "Next page")
    page.run("""(() => {
      const send = window.fetch;
      let isFirst = true;
      window.fetch = async (input, init) => {
        const response = await send(input, init);
        if (!isFirst || !String(input).endsWith('/v1/browse') || JSON.parse(init.body).limit !== 200) return response;
        isFirst = false;
        return new Response(JSON.stringify({...await response.json(), messages: []}));
      };
      return true;
    })()""")
    agree(page, "Remove all")
    until(lambda: many.length() == 200)


def test_all_that_match_a_filter_are_redriven_and_no_other(page: Page, process: Process, client: ControlPlaneClient) -> None:
    page.open(f"{process.url}/#/queues/mail/dead")
    shows(page, "By error")
    press(page, "ConnectionError")
    agree(page, "Redrive all that match")
    mail = Queue.from_name("mail", client=client)
    until(lambda: [message.id for message in mail.dead_letters()] == ["dead-1"])


def test_a_paused_group_is_resumed(page: Page, process: Process, client: ControlPlaneClient) -> None:
    tenants = Queue.from_name("tenants", client=client)
    tenants.group("cask").pause()
    page.open(f"{process.url}/#/queues/tenants/groups")
    shows(page, "paused")
    press(page, "Resume")
    until(lambda: not any(group.paused for group in tenants.groups()))


def test_the_worker_of_a_running_job_is_asked_to_end_it(page: Page, process: Process, client: ControlPlaneClient) -> None:
    page.open(f"{process.url}/#/message/mail/leased-1")
    shows(page, "Lease timeline")
    agree(page, "Cancel")
    shows(page, "Its worker is asked to end it.")
    assert [entry.key for entry in client.store.execute(Read(CANCELS)).entries] == [encode_key(("mail", "leased-1"))]


def test_what_a_dialog_asks_is_what_is_done_while_rows_come_and_go(page: Page, process: Process, client: ControlPlaneClient) -> None:
    page.open(f"{process.url}/#/queues/mail/dead")
    shows(page, "dead-1")
    page.run("[...document.querySelectorAll('tr')].find(row => row.innerText.includes('dead-1')).querySelector('.danger').click()")
    client.store.execute(Move("mail", "gone", ids=["dead-0"], state="dead"))
    lacks(page, "dead-0")
    assert "Remove message dead-1?" in page.run("document.querySelector('dialog').innerText")
    page.run("document.querySelector('dialog [type=submit]').click()")
    mail = Queue.from_name("mail", client=client)
    until(lambda: [message.id for message in mail.dead_letters()] == ["dead-2"])


OFFER = """(() => {
  const send = window.fetch;
  window.refused = [];
  window.fetch = async (input, init) => {
    const response = await send(input, init);
    const path = new URL(input, location).pathname;
    if (path === '/v1/about') return new Response(JSON.stringify({...await response.json(), scopes: ['admin']}));
    if (!response.ok && !path.includes('tokens')) window.refused.push(`${response.status} ${path}`);
    return response;
  };
  return true;
})()"""
"""Makes a page believe that the token allows everything, and remembers what the server refuses."""

TRY = """(async () => {
  const acts = [...document.querySelectorAll('main .act > button')];
  for (const act of acts) {
    act.click();
    await new Promise(done => setTimeout(done));
    const dialog = document.querySelector('dialog');
    dialog?.querySelectorAll('input').forEach(input => input.value = 'because');
    dialog?.querySelector('[type=submit]').click();
    await new Promise(done => setTimeout(done));
  }
  return acts.length;
})()"""
"""Presses every button that acts, and agrees."""

JOBS = "/v1/queues/orders/jobs/order-17"
ACTS = {
    "queues/mail": (["first", "Purge"], {"/v1/configure", "/v1/clear", "/v1/move"}),
    "queues/mail/dead": (["By error", "Purge"], {"/v1/configure", "/v1/clear", "/v1/move"}),
    "queues/tenants/groups": (["acme", "Purge"], {"/v1/configure", "/v1/clear"}),
    "message/mail/dead-0": (["Lease timeline"], {"/v1/move", "/v1/queues/mail/jobs/dead-0/cancel"}),
    "message/orders/order-17": (["Send signal"], {f"{JOBS}/cancel", f"{JOBS}/signals/approved"}),
    "dead": (["ValueError"], {"/v1/move"}),
    "schedules": (["nightly"], {"/v1/schedules/nightly/pause", "/v1/schedules/nightly/run"}),
    "dicts/settings": (["New entry"], {"/v1/write"}),
    "locks": (["report"], {"/v1/break"}),
}
"""The screens with actions, what their parts show once they have read everything, and what their actions ask of the server."""


def state_of(client: ControlPlaneClient) -> list[Any]:
    """What the actions would change."""
    mail, tenants = (Queue.from_name(name, client=client) for name in ("mail", "tenants"))
    return [
        (mail.stats().ready, mail.stats().dead, mail.stats().total),
        client.store.execute(Names("queue")).settings,
        [(group.name, group.paused) for group in tenants.groups()],
        Schedule.from_name("nightly", client=client).status().paused,
        Queue.from_name("reports", client=client).length(),
        client.store.execute(Leases()).held,
        client.store.execute(Read("settings")).entries,
        client.store.execute(Browse("orders", ids=["order-17"])).messages,
    ]


def test_a_reader_to_whom_every_action_is_offered_is_refused_by_the_server(
    page: Page, process: Process, client: ControlPlaneClient, tmp_path: Path
) -> None:
    store = connect(f"sqlite:///{tmp_path}/s.db")
    _, text = create_token(store, "reader", ["queue:*:read", "dict:*:read", "lease:*:read"], by=Actor("test", "here"))
    store.close()
    before = state_of(client)
    page.open(process.url)
    shows(page, "Sign in")
    page.run(OFFER)
    page.run(f"document.querySelector('[name=token]').value = {json.encode(text).decode()}")
    press(page, "Sign in")
    shows(page, "Overview")
    for screen, (parts, asked) in ACTS.items():
        go(page, screen)
        for shown in parts:
            shows(page, shown)
        page.run("window.refused.length = 0")
        for label in {"dicts/settings": ["Edit"], "message/orders/order-17": ["Send signal"]}.get(screen, []):
            press(page, label)
        tried = page.run(TRY)
        until(lambda tried=tried: page.run("document.querySelectorAll('main .act > [role=alert]').length") == tried)  # type: ignore[misc]
        assert tried > 0, screen
        until(lambda asked=asked: set(page.run("window.refused")) == {f"403 {path}" for path in asked})  # type: ignore[misc]
    assert state_of(client) == before

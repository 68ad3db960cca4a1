"""A page of another site, in a real browser, tries all it can against a server without tokens: nothing happens, and it learns nothing."""

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from msgspec import json

from holdfast.commands import Count, Names, Survey
from holdfast.connect import connect
from holdfast.errors import StoreMoved
from holdfast.stores import Store
from holdfast.testing.conformance.asking import put, read
from tests.browser.chromium import Page
from tests.server.processes import Process

pytestmark = pytest.mark.xdist_group("browser")

SCRIPT = (Path(__file__).parent / "attacks.js").read_text()
PAGE = f"<!doctype html><title>a page of another site</title><body><script>{SCRIPT}</script>"
LOGGED = ("--log-requests", "--log-json")

UNPROTECTED = """
import holdfast.server.request_bodies, holdfast.server.layers.signin
holdfast.server.request_bodies.is_json = lambda content_type: True
holdfast.server.layers.signin.refuse_other_origins = lambda scope: None
"""
"""A server as it was before it knew of browsers."""

NEVER_WORK = {"fetch cors as JSON", "beacon as JSON", "form as fields", "form as parts"}
"""Not even against that server: the browser asks first, or its body is no JSON."""

POSTS = {
    "fetch no-cors",
    "fetch no-cors without a type",
    "fetch cors",
    "fetch keepalive",
    "fetch with credentials",
    "form as text",
    "XMLHttpRequest",
    "beacon",
    *NEVER_WORK,
}
VERBS = ("put", "take", "drop", "write")


class Attacked:
    """A store with something to put into, take from and drop for each attack, and the server in front of it."""

    def __init__(self, folder: Path, *options: str, broken: str = "") -> None:
        self.file = folder / "attacked.db"
        self.process = Process(self.file, *LOGGED, *options, broken=broken)
        with self.store() as store:
            for how in POSTS:
                put(store, "a", queue=f"take={how}")
                put(store, "a", queue=f"drop={how}")
            self.before = store.execute(Survey())

    def store(self) -> "closing[Store]":
        """The store itself, past the server."""
        return closing(connect(f"sqlite:///{self.file}"))

    def effects(self) -> set[tuple[str, str]]:
        """Which attack of which kind did what it was to do."""
        try:
            with self.store() as store:
                return set(_effects(store))
        except StoreMoved:
            return {("seal", "")}

    def is_untouched(self) -> bool:
        """Whether nothing at all was written."""
        with self.store() as store:
            now = store.execute(Survey())
        return (now.latest, now.next_n) == (self.before.latest, self.before.next_n)

    def requests(self, count: int) -> "Counter[tuple[str, int]]":
        """The route and the status of each request, once there are so many."""
        return Counter(_requests(self.process.wait_for_log(lambda log: len(_requests(log)) >= count)))


def _effects(store: Store) -> Iterator[tuple[str, str]]:
    names = {settings.name for settings in store.execute(Names("queue")).settings}
    for how in POSTS:
        if store.execute(Count(f"put={how}")).ready:
            yield "put", how
        if not store.execute(Count(f"take={how}")).ready:
            yield "take", how
        if f"drop={how}" not in names:
            yield "drop", how
        if read(store, f"write={how}"):
            yield "write", how


def _requests(log: list[str]) -> list[tuple[str, int]]:
    lines = [json.decode(line) for line in log]
    return [(line["route"], line["status"]) for line in lines if "route" in line]


def commands(how: str) -> dict[str, tuple[str, Any]]:
    """The command for each thing that is tried; each has a "=" in it, without which a form could not send it."""
    return {
        "put": ("/v1/put", {"queue": f"put={how}", "items": [{"id": "evil", "value": 1}]}),
        "take": ("/v1/claim", {"queue": f"take={how}", "take": True}),
        "drop": ("/v1/clear", {"kind": "queue", "name": f"drop={how}", "drop": True}),
        "write": ("/v1/write", {"dict": "settings", "changes": [{"key": f"write={how}", "value": 1}]}),
    }


@pytest.fixture
def foreign() -> Iterator[int]:
    """The port of a server of pages on this host, which every name leads to."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _ForeignPage)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server.server_port
    server.shutdown()
    thread.join()
    server.server_close()


class _ForeignPage(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(PAGE.encode())

    def log_message(self, format: str, *args: Any) -> None:
        """Quiet."""


def attack(page: Page, table: str, how: str, url: str, body: object = None) -> Any:
    """Let the page try it; what it learned."""
    arguments = ", ".join(json.encode(argument).decode() for argument in (url, json.encode(body).decode()))
    return page.run(f"{table}[{json.encode(how).decode()}]({arguments})")


def try_posts(page: Page, url: str) -> list[Any]:
    tried = [(how, path, body) for how in sorted(POSTS) for path, body in commands(how).values()]
    return [attack(page, "POSTS", how, url + path, body) for how, path, body in tried]


def try_seals(page: Page, url: str, latest: int) -> list[Any]:
    return [attack(page, "POSTS", how, f"{url}/v1/seal", {"to": "https://evil.example/?a=b", "at": latest}) for how in sorted(POSTS)]


def try_reads(page: Page, url: str) -> list[Any]:
    learned = [attack(page, "GETS", how, url + path) for how in page.run("Object.keys(GETS)") for path in ("/v1/about", "/metrics")]
    watched = f"{url}/v1/watch?topic=queue:take%3Dbeacon"
    return learned + [attack(page, "WATCHES", how, watched) for how in page.run("Object.keys(WATCHES)")]


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1"], ids=["another site", "another port of this host"])
def test_a_page_of_another_origin_changes_nothing_and_learns_nothing(page: Page, foreign: int, host: str, tmp_path: Path) -> None:
    attacked = Attacked(tmp_path)
    with attacked.process as process:
        page.open(f"http://{host}:{foreign}/")
        learned = [*try_posts(page, process.url), *try_seals(page, process.url, attacked.before.latest), *try_reads(page, process.url)]
        requests = attacked.requests(len(learned))
    assert set(learned) == {None}
    assert {status for _, status in requests} == {403}
    assert attacked.effects() == set()
    assert attacked.is_untouched()


def test_control_without_the_checks_the_same_page_puts_takes_drops_writes_and_watches(page: Page, foreign: int, tmp_path: Path) -> None:
    attacked = Attacked(tmp_path, broken=UNPROTECTED)
    with attacked.process as process:
        page.open(f"http://evil.example:{foreign}/")
        learned = [*try_posts(page, process.url), *try_reads(page, process.url)]
        # The browser reads on from the event source for five seconds, which the page is not shown.
        requests = attacked.requests(len(learned) - 1)
    assert attacked.effects() == {(verb, how) for verb in VERBS for how in POSTS - NEVER_WORK}
    assert requests["/v1/watch", 200] > 0


def test_control_without_the_checks_and_started_for_copies_the_same_page_seals_the_store(page: Page, foreign: int, tmp_path: Path) -> None:
    attacked = Attacked(tmp_path, "--allow-copy", broken=UNPROTECTED)
    with attacked.process as process:
        page.open(f"http://evil.example:{foreign}/")
        attacked.requests(len(try_seals(page, process.url, attacked.before.latest)))
    assert attacked.effects() == {("seal", "")}


def test_a_page_whose_name_leads_to_this_host_is_refused_by_that_name(page: Page, tmp_path: Path) -> None:
    attacked = Attacked(tmp_path)
    with attacked.process as process:
        answers, event = try_rebound(page, process.port)
        requests = attacked.requests(len(answers) + 1)
    assert {answer[:4] for answer in answers} == {"400:"}
    assert event is None
    assert {status for _, status in requests} == {400}
    assert attacked.is_untouched()


def test_a_server_that_takes_any_name_is_used_by_that_page(page: Page, tmp_path: Path) -> None:
    attacked = Attacked(tmp_path, "--allow-host=*")
    with attacked.process as process:
        answers, event = try_rebound(page, process.port)
    assert {answer[:4] for answer in answers} == {"200:"}
    assert '"event":"put"' in event
    assert attacked.effects() == {(verb, REBOUND) for verb in VERBS}


REBOUND = "fetch cors as JSON"


def try_rebound(page: Page, port: int) -> tuple[list[str], Any]:
    """Be a page of the very origin that is asked, by a name that was another host's before; the answers, and the event watched for."""
    url = f"http://rebound.example:{port}"
    page.open_as(f"{url}/", PAGE)
    answers = [attack(page, "POSTS", REBOUND, url + path, body) for path, body in commands(REBOUND).values()]
    return answers, attack(page, "WATCHES", "event source", f"{url}/v1/watch?topic=queue:put%3D{REBOUND.replace(' ', '%20')}")

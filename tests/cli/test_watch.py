"""`holdfast watch`: a real process that is told of an event and interrupted; queues that are made later; a store that goes away."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from msgspec import json

from holdfast import ControlPlaneClient, Dict, Queue
from holdfast.cli import watch
from holdfast.errors import StoreUnavailable
from holdfast.testing.servers import holdfast as holdfast_server
from tests.cli.running import holdfast

COMMAND = [sys.executable, "-c", "from holdfast.cli import main; main()", "watch", "queue:mail", "dict:*"]


@pytest.fixture(params=["sqlite", "http"])
def url(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    if request.param == "http":
        with holdfast_server() as server:
            yield server.url
    else:
        yield f"sqlite:///{tmp_path_factory.mktemp('watch')}/s.db?durability=process"


def test_an_event_arrives_and_an_interrupt_ends_it_with_the_documented_code(url: str) -> None:
    as_json = url.startswith("http")
    with ControlPlaneClient(url) as client:
        settings = Dict[int].create("settings", client=client)
        mail = Queue[int].create("mail", client=client)
        mail.put(1)
        environment = {**os.environ, "HOLDFAST_URL": url, "PYTHONUNBUFFERED": "1"}
        arguments = [*COMMAND, *(["--json"] if as_json else [])]
        with subprocess.Popen(arguments, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            assert process.stderr is not None
            assert process.stderr.readline() == "Watching 2 queues and dicts from now on; Ctrl-C ends it.\n"
            put = mail.put(2)
            told = [process.stdout.readline()]
            settings.put("mode", 3)
            told.append(process.stdout.readline())
            process.send_signal(signal.SIGINT)
            output, errors = process.communicate(timeout=60)
    assert (process.returncode, output, errors) == (130, "", "holdfast watch: interrupted\n")
    if as_json:
        found: list[dict[str, Any]] = [json.decode(row) for row in told]
        assert [(one["kind"], one["name"], one["event"]) for one in found] == [("queue", "mail", "put"), ("dict", "settings", "written")]
        assert str(put) in told[0]
    else:
        assert "  queue mail  put  " in told[0]
        assert "  dict settings  written  " in told[1]


def test_a_queue_that_is_made_later_is_followed_from_its_first_event_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "LOOK_S", 0.01)

    async def first() -> watch.Happened:
        events: asyncio.Queue[watch.Happened] = asyncio.Queue()
        async with asyncio.timeout(60):
            finding = asyncio.create_task(watch._find(client, [("queue", "orders-*")], 0, events))
            await Queue.aio("other", client=client).put(1)
            await Queue.aio("orders-1", client=client).put(2)
            found = await events.get()
            finding.cancel()
            return found

    with ControlPlaneClient("memory://") as client:
        one = asyncio.run(first())
    assert (one.kind, one.name) == ("queue", "orders-1")


def test_a_store_that_goes_away_ends_it_with_one_sentence(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def gone(*_: object) -> None:
        raise StoreUnavailable("the store cannot be reached")

    with ControlPlaneClient(url) as client:
        Queue.create("mail", client=client)
    monkeypatch.setattr(watch, "_follow", gone)
    for arguments in ((), ("--timeout-s=60",)):
        ran = holdfast("watch", *arguments, f"--url={url}")
        assert (ran.exit_code, ran.stderr.splitlines()[-1]) == (1, "holdfast watch: the store cannot be reached")
        assert isinstance(ran.exception, SystemExit)


def test_it_ends_when_nothing_came_for_as_long_as_was_said(url: str) -> None:
    with ControlPlaneClient(url) as client:
        Queue.create("mail", client=client).put(1)
    ran = holdfast("watch", "--timeout-s=0.01", f"--url={url}")
    assert (ran.exit_code, ran.stdout) == (0, "")


@pytest.mark.parametrize("pattern", ["mail", "lock:mail", "queue:"])
def test_what_cannot_be_watched_is_refused(pattern: str) -> None:
    ran = holdfast("watch", pattern, "--url=memory://")
    assert (ran.exit_code, "write queue:NAME or dict:NAME" in ran.stderr) == (2, True)

"""`holdfast top`: what it shows of queues, and how often it reads events."""

from collections.abc import Iterator
from io import StringIO
from typing import Any

import pytest
from msgspec import json
from rich.console import Console

from holdfast import ControlPlaneClient, Queue
from holdfast.cli.top import picture
from holdfast.cli.top.command import as_table
from holdfast.cli.top.picture import Rates, take_picture
from holdfast.commands import Changes
from holdfast.stores.memory import MemoryStore
from holdfast.testing.servers import holdfast as holdfast_server
from tests.cli.running import holdfast


@pytest.fixture(params=["sqlite", "http"])
def url(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    if request.param == "http":
        with holdfast_server() as server:
            yield server.url
    else:
        yield f"sqlite:///{tmp_path_factory.mktemp('top')}/s.db?durability=process"


def test_each_queue_is_shown_with_its_rates(url: str) -> None:
    with ControlPlaneClient(url) as client:
        Queue.create("idle", client=client)
        mail = Queue[int].create("mail", client=client)
        mail.put_many([1, 2, 3])
        claims = mail.claim_many(2)
        mail.ack(claims[:1])
        mail.fail(claims[1:], error="no route")
    found = {row["name"]: row for row in json.decode(holdfast("top", "--once", "--json", f"--url={url}").stdout)["queues"]}
    rates = [found["mail"][name] for name in ("put_per_s", "done_per_s", "failed_share")]
    assert rates == [pytest.approx(3 / 60), pytest.approx(1 / 60), 0.5]
    assert [found["idle"][name] for name in ("put_per_s", "done_per_s", "failed_share")] == [0.0, 0.0, None]
    text = holdfast("top", "--once", f"--url={url}").stdout
    assert "put/s  done/s  failed" in text
    assert "50.0%" in text


class Recorder(MemoryStore):
    """A store that counts how often its events were read."""

    looks = 0

    def execute(self, command: Any) -> Any:
        self.looks += isinstance(command, Changes)
        return super().execute(command)


def test_events_are_read_only_now_and_then_and_only_of_the_first_queues(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(picture, "RATED", 2)
    store = Recorder()
    client = ControlPlaneClient.on(store)
    for name in ("a", "b", "c"):
        Queue.create(name, client=client).put(1)
    now_s = 0.0
    rates = Rates(client, lambda: now_s)
    assert [row.put_per_s is None for row in take_picture(client, "", rates).queues] == [False, False, True]
    looks = store.looks
    assert looks > 0
    Queue.from_name("a", client=client).put(2)
    now_s = 4.9
    take_picture(client, "", rates)
    assert store.looks == looks
    now_s = 5.0
    take_picture(client, "", rates)
    assert store.looks > looks


@pytest.mark.parametrize(("width", "is_wide"), [(80, False), (120, True)])
def test_a_terminal_is_shown_what_it_has_room_for(width: int, is_wide: bool) -> None:  # noqa: FBT001 - a parameter of the test
    client = ControlPlaneClient.on(MemoryStore())
    Queue.create("orders-of-today", client=client).put_many(range(1_234))
    console = Console(file=StringIO(), width=width, height=24)
    console.print(as_table(take_picture(client), console.size))
    text = console.file.getvalue()  # type: ignore[attr-defined]  # it is a StringIO
    assert ("orders-of-today" in text, "1,234" in text, "done/s" in text, "…" in text) == (True, True, True, False), text
    assert ("buffered" in text, "put/s" in text) == (is_wide, is_wide)

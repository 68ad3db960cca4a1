"""The connection to any store, by URL."""

import os
import threading
from pathlib import Path
from typing import Any

import pytest

from holdfast import Closed, ControlPlaneClient, MessageId, Queue, connect
from holdfast.client import client_for
from holdfast.results import MISSING, Missing
from tests.servers import own_redis_url


def test_a_client_opens_its_store_at_the_first_use(tmp_path: Path) -> None:
    client = ControlPlaneClient(f"sqlite:///{tmp_path}/store")
    assert not (tmp_path / "store").exists()
    assert client.url == f"sqlite:///{tmp_path}/store"
    assert client.store is client.store
    assert (tmp_path / "store").exists()
    client.close()


def test_a_closed_client_says_so_and_closing_again_does_nothing() -> None:
    client = ControlPlaneClient("memory://")
    jobs = Queue.create("jobs", client=client)
    client.close()
    client.close()
    assert client.is_closed
    with pytest.raises(Closed, match="client was closed"):
        jobs.put(1)
    with pytest.raises(Closed):
        _ = client.async_store
    with pytest.raises(Closed):
        _ = client.keepalive


def test_each_client_of_memory_is_a_store_of_its_own() -> None:
    with ControlPlaneClient("memory://") as first, ControlPlaneClient("memory://") as second:
        Queue.from_name("jobs", client=first).put(1)
        assert Queue.from_name("jobs", client=second).length() == 0


def test_memory_as_a_base_url_is_one_store_a_process(monkeypatch: pytest.MonkeyPatch) -> None:
    Queue.from_name("jobs", base_url="memory://").put(1)
    monkeypatch.setenv("HOLDFAST_URL", "memory://")
    assert Queue.from_name("jobs").length() == 1
    assert connect() is client_for("memory://").store
    client_for("memory://").close()


def test_a_closed_client_is_replaced_at_the_next_use() -> None:
    jobs = Queue.from_name("jobs", base_url="memory://replaced")
    jobs.put(1)
    before = client_for("memory://replaced")
    before.close()
    assert client_for("memory://replaced") is not before
    assert jobs.length() == 0
    client_for("memory://replaced").close()


def test_clients_are_kept_by_url_and_token() -> None:
    one = client_for("memory://kept")
    assert client_for("memory://kept") is one
    assert client_for("memory://kept", token="t") is not one  # noqa: S106 - no secret
    one.close()


def test_the_default_is_the_variable_or_a_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOLDFAST_URL", f"sqlite:///{tmp_path}/by-variable")
    Queue.create("jobs")
    assert (tmp_path / "by-variable").exists()
    client_for().close()
    monkeypatch.delenv("HOLDFAST_URL")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    Queue.create("jobs")
    assert client_for().url.endswith("/holdfast/holdfast.sqlite3?durability=power")
    client_for().close()


def test_a_store_that_this_version_lacks_is_refused_clearly() -> None:
    with pytest.raises(ValueError, match="unknown store URL scheme 'gopher://'; supported: memory://"):
        Queue.create("jobs", base_url="gopher://localhost:9")


def test_no_password_is_shown() -> None:
    assert repr(ControlPlaneClient("postgres://me:secret@host/db")) == "ControlPlaneClient('postgres://host/db')"


def test_threads_open_one_store(tmp_path: Path) -> None:
    client = ControlPlaneClient(f"sqlite:///{tmp_path}/store")
    found = []
    threads = [threading.Thread(target=lambda: found.append(client.store)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({id(store) for store in found}) == 1
    client.close()


def test_a_forked_child_goes_on(tmp_path: Path) -> None:
    client = ControlPlaneClient(f"sqlite:///{tmp_path}/store?durability=process")
    jobs = Queue.create("jobs", client=client)
    child = os.fork()
    if child == 0:
        jobs.put("from the child")
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert jobs.get() == "from the child"
    client.close()


@pytest.mark.anyio
async def test_a_client_closes_for_tasks(tmp_path: Path) -> None:
    async with ControlPlaneClient(f"sqlite:///{tmp_path}/store?durability=process") as client:
        await Queue.aio.create("jobs", client=client)
    assert client.is_closed


def test_results_are_what_they_look_like() -> None:
    kept = MessageId("a", created=False)
    assert (kept, kept.created, kept == "a") == ("a", False, True)
    assert (repr(MISSING), bool(MISSING), isinstance(MISSING, Missing)) == ("MISSING", False, True)


@pytest.mark.anyio
async def test_closing_for_tasks_closes_the_connections_that_their_loop_has() -> None:
    client = ControlPlaneClient(own_redis_url())
    await Queue.from_name("jobs", client=client).aio.put(1)
    face: Any = client.async_store
    assert len(face.pipes) == 1
    await client.aio.close()
    assert len(face.pipes) == 0

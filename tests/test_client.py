"""The connection to any store, by URL."""

import copy
import gc
import os
import pickle
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from holdfast import Closed, ControlPlaneClient, Dict, Election, Lock, MessageId, Once, Queue, Worker, connect
from holdfast.client import client_for
from holdfast.results import MISSING, Missing
from tests.server.test_routes import until
from tests.servers import own_redis_url
from tests.stores_by_name import url_of


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
    assert repr(ControlPlaneClient("postgres://me:secret@host/db")) == "ControlPlaneClient('postgres://me@host/db')"


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


def test_a_shared_client_is_the_one_that_handles_use() -> None:
    Queue.from_name("jobs", base_url="memory://to-close").put(1)
    ControlPlaneClient.shared("memory://to-close").close()
    assert Queue.from_name("jobs", base_url="memory://to-close").length() == 0
    ControlPlaneClient.shared("memory://to-close").close()


def work(value: object) -> object:
    return value


def test_handles_with_a_client_are_sent_to_another_process(tmp_path: Path) -> None:
    with ControlPlaneClient(f"sqlite:///{tmp_path}/store?durability=process") as client:
        jobs = Queue.create("jobs", client=client)
        program = "import pickle, sys; jobs, again = pickle.load(sys.stdin.buffer); jobs.put('hello'); print(jobs._client is again._client)"
        sent = pickle.dumps((jobs, Queue.from_name("again", client=client)))
        done = subprocess.run([sys.executable, "-c", program], input=sent, capture_output=True, check=True, timeout=60)
        assert done.stdout == b"True\n", "one client there stands for one client here"
        assert jobs.get() == "hello"


@pytest.mark.parametrize("kind", [Queue, Dict, Lock, Election, Once, lambda name, client: Worker(work, name, client=client)])
def test_every_handle_with_a_client_can_be_pickled(kind: Any, tmp_path: Path) -> None:
    with ControlPlaneClient(f"sqlite:///{tmp_path}/store", token="a secret") as client:  # noqa: S106 - no secret
        handle = kind("name", client=client)
        assert pickle.loads(pickle.dumps(handle))._client is client  # noqa: S301 - our own
        assert copy.deepcopy(handle)._client is client
        assert "a secret" not in f"{handle!r} {client!r}"


@pytest.mark.parametrize("make", [lambda: ControlPlaneClient("memory://"), lambda: ControlPlaneClient.on(connect("memory://"))])
def test_a_client_whose_store_is_in_this_process_says_what_to_send_instead(make: Any) -> None:
    with make() as client, pytest.raises(TypeError, match=r"cannot be sent to another process.* base_url="):
        pickle.dumps(Queue.create("jobs", client=client))


def test_a_closed_client_is_not_sent(tmp_path: Path) -> None:
    client = ControlPlaneClient(f"sqlite:///{tmp_path}/store")
    client.close()
    with pytest.raises(TypeError, match="was closed"):
        pickle.dumps(client)


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


@pytest.mark.parametrize("kind", ["memory", "sqlite", "lmdb", "redis", "postgres"])
def test_a_client_that_is_dropped_leaves_no_thread_and_no_file(kind: str, tmp_path: Path) -> None:
    def use(client: ControlPlaneClient) -> None:
        with Lock("name", client=client, lease_s=30):
            Queue.create("jobs", client=client).put(1)

    url = url_of(kind, tmp_path)
    with ControlPlaneClient(url) as client:
        use(client)
    threads, files = set(threading.enumerate()), open_files()
    use(ControlPlaneClient(url))
    until(lambda: gc.collect() >= 0 and set(threading.enumerate()) <= threads and open_files() <= files)


def test_a_store_that_a_dropped_client_was_on_stays_open() -> None:
    store = connect("memory://")
    Queue.create("jobs", client=ControlPlaneClient.on(store)).put(1)
    gc.collect()
    assert Queue.from_name("jobs", client=ControlPlaneClient.on(store)).length() == 1


def test_a_named_store_in_memory_outlives_its_clients() -> None:
    Queue.create("jobs", client=ControlPlaneClient("memory://outlives")).put(1)
    gc.collect()
    with ControlPlaneClient("memory://outlives") as client:
        assert Queue.from_name("jobs", client=client).length() == 1


@pytest.mark.parametrize(("scheme", "meant"), [("sqlit", "sqlite"), ("postgre", "postgres"), ("redsi", "redis"), ("htp", "http")])
def test_a_scheme_with_a_slip_is_answered_with_the_one_that_was_meant(scheme: str, meant: str) -> None:
    with pytest.raises(ValueError, match=rf"unknown store URL scheme '{scheme}://'; did you mean {meant}://\?"):
        connect(f"{scheme}://x")

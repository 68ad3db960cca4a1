"""Through a server nothing is unpickled: whoever may write there would run code in whoever reads."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from holdfast import Dict, Job, Queue, Worker
from holdfast.aio import Queue as AsyncQueue
from holdfast.client import ControlPlaneClient
from holdfast.codec import MSGPACK, PICKLE
from holdfast.stores.memory import MemoryStore
from tests.server.serving import Served


@pytest.fixture
def client() -> Iterator[ControlPlaneClient]:
    served = Served(MemoryStore())
    with ControlPlaneClient(served.url) as client:
        yield client
    served.close()


def put_together(client: ControlPlaneClient) -> None:
    with client.together() as step:
        step.put(Queue.from_name("q", codec=PICKLE, client=client), 1)


USES: dict[str, Callable[[ControlPlaneClient], Any]] = {
    "put": lambda client: Queue.from_name("q", codec=PICKLE, client=client).put(1),
    "take": lambda client: Queue.from_name("q", codec=PICKLE, client=client).get(timeout_s=0),
    "put of a call's own client": lambda client: Queue.from_name("q", codec=PICKLE).put(1, client=client),
    "by URL": lambda client: Queue.from_name("q", codec=PICKLE, base_url=client.url).put(1),
    "dict": lambda client: Dict.from_name("d", codec=PICKLE, client=client).get("k"),
    "worker": lambda client: Worker(print, "q", codec=PICKLE, client=client).run(until_empty=True),
    "worker's put": lambda client: Worker(print, "q", codec=PICKLE, client=client).put(1),
    "worker's results": lambda client: Worker(print, "q", result_codec=PICKLE, results=True, client=client).run(until_empty=True),
    "job": lambda client: Job("q", "a", codec=PICKLE, client=client).result(timeout_s=0),
    "step": put_together,
}


@pytest.mark.parametrize("use", USES)
def test_pickle_is_refused_behind_a_server(client: ControlPlaneClient, use: str) -> None:
    with pytest.raises(ValueError, match=r"codec=PICKLE .* server.*MSGPACK"):
        USES[use](client)


def test_pickle_is_refused_where_the_environment_names_a_server(client: ControlPlaneClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOLDFAST_URL", client.url)
    with pytest.raises(ValueError, match="codec=PICKLE"):
        Queue.from_name("q", codec=PICKLE).put(1)


@pytest.mark.anyio
async def test_pickle_is_refused_to_tasks(client: ControlPlaneClient) -> None:
    with pytest.raises(ValueError, match="codec=PICKLE"):
        await AsyncQueue.from_name("q", codec=PICKLE, client=client).put(1)


def test_other_codecs_go_through_a_server_and_pickle_to_a_store_of_ones_own(client: ControlPlaneClient) -> None:
    for codec, reached in ((MSGPACK, client), (PICKLE, ControlPlaneClient.on(MemoryStore()))):
        queue = Queue.from_name("q", codec=codec, client=reached)
        queue.put({"n": 1})
        with queue.claimed(lease_s=30) as value:
            assert value == {"n": 1}

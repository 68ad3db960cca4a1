"""A throw-away server for tests."""

import pytest

from holdfast import ControlPlaneClient, NotAllowed, Queue
from holdfast.testing import servers


def test_it_serves_a_store_in_memory_and_is_gone_afterwards() -> None:
    with servers.holdfast() as server, ControlPlaneClient(server.url) as client:
        Queue.create("jobs", client=client).put(1)
        assert Queue.from_name("jobs", client=ControlPlaneClient.on(server.store)).length() == 1


def test_with_its_first_token_it_begins_to_ask() -> None:
    with servers.holdfast() as server:
        token = server.token("queue:jobs:put", for_worker="jobs")
        with ControlPlaneClient(server.url, token=token) as client:
            Queue[int]("jobs", client=client).put(1)
        with ControlPlaneClient(server.url) as stranger, pytest.raises(NotAllowed):
            Queue[int]("jobs", client=stranger).put(1)

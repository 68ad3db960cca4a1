"""A token crosses no network in the clear, unless its user says that it may."""

import pytest

from holdfast.client import ControlPlaneClient
from holdfast.commands import Count
from holdfast.stores.http.address import Address
from holdfast.stores.http.store import HttpStore
from holdfast.stores.memory import MemoryStore
from tests.server.serving import Served
from tests.server.test_tokens import make

COUNT = Count("jobs")


@pytest.mark.parametrize(
    "host", ["queues.example.com", "192.168.1.5:7077", "10.0.0.1", "[2001:db8::1]:7077", "localhost.example.com", "172.17.0.2"]
)
def test_a_token_is_not_sent_in_the_clear_to_another_host(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match=r"unencrypted.*https://.*\?insecure=allow") as caught:
        Address.parse(f"http://{host}", "hf_secret")
    assert "hf_secret" not in str(caught.value)
    monkeypatch.setenv("HOLDFAST_TOKEN", "hf_secret")
    with pytest.raises(ValueError, match="unencrypted"):
        HttpStore(f"http://{host}/ns/acme")


@pytest.mark.parametrize(
    "url", ["http://localhost:7077", "http://127.0.0.1", "http://127.9.9.9:1", "http://[::1]:7077", "https://queues.example.com"]
)
def test_a_token_is_sent_to_this_host_and_over_tls(url: str) -> None:
    assert Address.parse(url, "hf_secret").headers()["authorization"] == "Bearer hf_secret"


def test_without_a_token_plain_http_goes_anywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HOLDFAST_TOKEN", raising=False)
    assert Address.parse("http://queues.example.com").token is None


def test_a_user_may_allow_it_and_the_url_goes_on_saying_so() -> None:
    address = Address.parse("http://queues.example.com:7077/ns/acme/?insecure=allow", "hf_secret")
    assert (address.base, address.url) == (
        "http://queues.example.com:7077/ns/acme",
        "http://queues.example.com:7077/ns/acme?insecure=allow",
    )
    assert Address.parse(address.url, "hf_secret") == address


@pytest.mark.parametrize("query", ["insecure=yes", "insecure", "insecure=allow&x=1", "x=1"])
def test_another_option_is_refused(query: str) -> None:
    with pytest.raises(ValueError, match="has no host"):
        Address.parse(f"http://localhost?{query}")


@pytest.mark.anyio
async def test_threads_and_tasks_ask_a_server_whose_url_has_the_option() -> None:
    store = MemoryStore()
    served = Served(store)
    with ControlPlaneClient(f"{served.url}?insecure=allow", token=make(store, "admin")) as client:
        assert client.store.url == f"{served.url}?insecure=allow"
        assert client.store.guarantees.engine
        assert (await client.store.for_tasks().execute(COUNT)).ready == client.store.execute(COUNT).ready == 0
    served.close()

"""Nobody finds themselves open to the world by accident."""

import socket
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest
import trustme
import urllib3

from holdfast.commands import Put
from holdfast.errors import StoreUnavailable
from holdfast.server.app import ControlPlane, Options
from holdfast.server.audit import Actor
from holdfast.server.auth.tokens import create_token
from holdfast.server.process import uvicorn_server as server_serving
from holdfast.server.process.network_policy import Exposure
from holdfast.server.process.uvicorn_server import Server, serving
from holdfast.stores.http.store import HttpStore
from holdfast.stores.memory import MemoryStore
from holdfast.stores.retrying import Patience
from holdfast.testing.conformance.asking import item
from tests.cli.test_app import holdfast

WORLD = "0.0.0.0"  # noqa: S104 - what is refused
CERTIFICATE = {"certificate": Path("c.pem"), "key": Path("k.pem")}


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "::1", "127.9.9.9"])
def test_on_this_host_nothing_is_asked_for(host: str) -> None:
    Exposure(host=host).check(asks_for_tokens=False)


@pytest.mark.parametrize("host", [WORLD, "::", "192.168.1.5", "example.com"])
def test_beyond_this_host_it_takes_tokens_and_tls_or_a_word(host: str) -> None:
    with pytest.raises(ValueError, match="no token was made"):
        Exposure(host=host, **CERTIFICATE).check(asks_for_tokens=False)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="unencrypted"):
        Exposure(host=host).check(asks_for_tokens=True)
    Exposure(host=host, **CERTIFICATE).check(asks_for_tokens=True)  # type: ignore[arg-type]
    Exposure(host=host, is_tls_terminated=True).check(asks_for_tokens=True)
    Exposure(host=host, is_insecure=True).check(asks_for_tokens=False)


def test_a_certificate_without_its_key_is_refused() -> None:
    with pytest.raises(ValueError, match="needs its key"):
        Exposure(certificate=Path("c.pem")).check(asks_for_tokens=True)


def test_the_command_refuses_to_be_open_to_the_world(tmp_path: Path) -> None:
    answer = holdfast("serve", f"--host={WORLD}", f"--store=sqlite:///{tmp_path}/s.db", "--port=0")
    assert answer.returncode == 2
    assert "--insecure" in answer.stderr


def test_a_port_that_is_taken_is_said(tmp_path: Path) -> None:
    with serving(Server(ControlPlane(MemoryStore()), Exposure(port=0))) as url:
        answer = holdfast("serve", f"--store=sqlite:///{tmp_path}/s.db", f"--port={url.rpartition(':')[2]}")
    assert answer.returncode == 1
    assert "in use" in answer.stderr


@pytest.fixture
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def secured(authority: trustme.CA, tmp_path: Path) -> Iterator[str]:
    issued = authority.issue_cert("localhost")
    certificate, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    issued.cert_chain_pems[0].write_to_path(certificate)
    issued.private_key_pem.write_to_path(key)
    exposure = Exposure(host="localhost", port=0, certificate=certificate, key=key)
    with serving(Server(ControlPlane(MemoryStore()), exposure)) as url:
        yield url


def test_whoever_is_silent_instead_of_shaking_hands_is_hung_up_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_serving, "HANDSHAKE_S", 0.1)
    pair = tmp_path / "cert.pem", tmp_path / "key.pem"
    issued = trustme.CA().issue_cert("localhost")
    issued.cert_chain_pems[0].write_to_path(pair[0])
    issued.private_key_pem.write_to_path(pair[1])
    with (
        serving(Server(ControlPlane(MemoryStore()), Exposure(port=0, certificate=pair[0], key=pair[1]))) as url,
        socket.create_connection(("127.0.0.1", int(url.rpartition(":")[2])), timeout=30) as silent,
    ):
        assert silent.recv(1) == b""


def test_a_client_talks_tls_to_a_server_it_can_verify(
    secured: str, authority: trustme.CA, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
    assert secured.startswith("https://localhost:")
    store = HttpStore(secured)
    assert store.execute(Put("jobs", [item("a")])).created == [True]
    store.close()


@pytest.mark.anyio
async def test_a_task_talks_tls_to_a_server_it_can_verify(
    secured: str, authority: trustme.CA, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
    face = HttpStore(secured).for_tasks()
    assert (await face.execute(Put("jobs", [item("a")]))).created == [True]
    await face.aclose()


def test_a_client_sends_nothing_to_a_server_it_cannot_verify(secured: str) -> None:
    store = HttpStore(secured, patience=Patience(most_s=0.01))
    with pytest.raises(StoreUnavailable, match="certificate"):
        store.execute(Put("jobs", [item("a")]))
    store.close()
    assert ssl.create_default_context().verify_mode is ssl.CERT_REQUIRED


def guesses(url: str, *sources: str) -> list[int]:
    """The statuses of guesses at a token, each said to come from another address."""
    asked = [{"authorization": "Bearer guess", "x-forwarded-for": source} for source in sources]
    return [urllib3.request("POST", f"{url}/v1/count", body=b"{}", headers=headers, retries=False).status for headers in asked]


@pytest.mark.parametrize(("proxies", "last"), [(("127.0.0.1",), 401), ((), 429), (("192.0.2.1",), 429)])
def test_only_a_proxy_that_was_named_says_whom_a_request_is_from(proxies: tuple[str, ...], last: int) -> None:
    store = MemoryStore()
    create_token(store, "any", ["*"], ["default"], by=Actor("test", "here"))
    plane = ControlPlane(store, Options(failed_logins=2))
    with serving(Server(plane, Exposure(port=0, proxies=proxies))) as url:
        assert guesses(url, "203.0.113.7", "203.0.113.7", "203.0.113.7") == [401, 401, 429]
        assert guesses(url, "203.0.113.8") == [last]

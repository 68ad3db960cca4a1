"""Client certificates over real TLS: a server that asks for one lets nobody else in, and clients trust no server but the one they named."""

import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest
import trustme

from holdfast import connect
from holdfast.commands import Command, Count, Put, Puts
from holdfast.errors import StoreUnavailable
from holdfast.server.app import ControlPlane
from holdfast.server.process.network_policy import Exposure
from holdfast.server.process.uvicorn_server import Server, serving
from holdfast.stores.http.address import Address
from holdfast.stores.http.store import HttpStore
from holdfast.stores.memory import MemoryStore
from holdfast.stores.retrying import Patience
from holdfast.testing.conformance.asking import item
from holdfast.testing.conformance.threads import Doing, all_asleep
from tests.cli.running import holdfast
from tests.server.processes import Process

AT_ONCE = Patience(most_s=0.01)
PUT = Put("jobs", [item("a")])


class Files:
    """Certificates in files: of the server, of its clients and of a stranger."""

    def __init__(self, folder: Path) -> None:
        self.authority, stranger = trustme.CA(), trustme.CA()
        self.ca = folder / "ca.pem"
        self.authority.cert_pem.write_to_path(self.ca)
        self.server = self._issued(folder / "server", self.authority, "localhost")
        self.client = self._issued(folder / "client", self.authority, "worker")
        self.stranger = self._issued(folder / "stranger", stranger, "worker")

    @staticmethod
    def _issued(base: Path, authority: trustme.CA, name: str) -> tuple[Path, Path]:
        issued, certificate, key = authority.issue_cert(name), base.with_suffix(".pem"), base.with_suffix(".key")
        issued.cert_chain_pems[0].write_to_path(certificate)
        issued.private_key_pem.write_to_path(key)
        return certificate, key


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Files:
    files = Files(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(files.ca))
    return files


@pytest.fixture
def inner() -> MemoryStore:
    return MemoryStore()


@pytest.fixture
def url(files: Files, inner: MemoryStore) -> Iterator[str]:
    certificate, key = files.server
    exposure = Exposure(host="127.0.0.1", port=0, certificate=certificate, key=key, client_ca=files.ca)
    with serving(Server(ControlPlane(inner), exposure)) as url:
        yield url.replace("127.0.0.1", "localhost")


def shown(url: str, pair: tuple[Path, Path]) -> str:
    return f"{url}?tls_cert={pair[0]}&tls_key={pair[1]}"


def by_threads(url: str, command: Command[Puts]) -> Puts:
    store = HttpStore(url, patience=AT_ONCE)
    try:
        return store.execute(command)
    finally:
        store.close()


async def by_tasks(url: str, command: Command[Puts]) -> Puts:
    store = HttpStore(url, patience=AT_ONCE).for_tasks()
    try:
        return await store.execute(command)
    finally:
        await store.aclose()


@pytest.mark.anyio
async def test_threads_and_tasks_show_the_certificate_that_their_url_names(url: str, files: Files) -> None:
    assert by_threads(shown(url, files.client), PUT).created == [True]
    assert (await by_tasks(shown(url, files.client), PUT)).created == [False]


@pytest.mark.anyio
async def test_threads_and_tasks_show_the_certificate_of_the_environment(url: str, files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOLDFAST_TLS_CERT", str(files.client[0]))
    monkeypatch.setenv("HOLDFAST_TLS_KEY", str(files.client[1]))
    assert by_threads(url, PUT).created == [True]
    assert (await by_tasks(url, PUT)).created == [False]


@pytest.mark.anyio
@pytest.mark.parametrize("whose", ["nobody", "stranger"])
async def test_whoever_shows_none_or_one_of_another_authority_is_not_let_in(url: str, files: Files, inner: MemoryStore, whose: str) -> None:
    theirs = url if whose == "nobody" else shown(url, files.stranger)
    words = "does the server require a certificate" if whose == "nobody" else "closed the connection"
    with pytest.raises(StoreUnavailable, match=words):
        by_threads(theirs, PUT)
    with pytest.raises(StoreUnavailable, match=words):
        await by_tasks(theirs, PUT)
    assert inner.execute(Count("jobs")).total == 0


@pytest.mark.anyio
async def test_a_client_sends_nothing_to_a_server_of_another_name(url: str, files: Files, inner: MemoryStore) -> None:
    wrong = shown(url.replace("localhost", "127.0.0.1"), files.client)
    with pytest.raises(StoreUnavailable, match=r"(?i)certificate.*(mismatch|valid for)"):
        by_threads(wrong, PUT)
    with pytest.raises(StoreUnavailable, match=r"(?i)certificate.*(mismatch|valid for)"):
        await by_tasks(wrong, PUT)
    assert inner.execute(Count("jobs")).total == 0


@pytest.mark.anyio
async def test_a_client_sends_nothing_to_a_server_of_another_authority(
    url: str, files: Files, inner: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SSL_CERT_FILE")
    with pytest.raises(StoreUnavailable, match=r"(?i)certificate verify failed"):
        by_threads(shown(url, files.client), PUT)
    with pytest.raises(StoreUnavailable, match=r"(?i)certificate verify failed"):
        await by_tasks(shown(url, files.client), PUT)
    assert inner.execute(Count("jobs")).total == 0


def test_a_wait_shows_the_certificate_too(url: str, files: Files) -> None:
    store = connect(shown(url, files.client))
    with store.mark("queue:jobs") as mark:
        store.wait(mark, 0.01)
        waiting = Doing(lambda: store.wait(mark, 60.0))
        all_asleep(waiting)
        by_threads(shown(url, files.client), PUT)
        waiting.result("a wait over TLS with a certificate")
    store.close()


def test_the_command_line_asks_for_certificates_and_shows_one(files: Files, tmp_path: Path) -> None:
    tls = [f"--tls-cert={files.server[0]}", f"--tls-key={files.server[1]}", f"--client-ca={files.ca}"]
    with Process(tmp_path / "s.db", *tls) as process:
        url = f"https://localhost:{process.port}"
        assert by_threads(shown(url, files.client), PUT).created == [True]
        with pytest.raises(StoreUnavailable):
            by_threads(url, PUT)
    assert holdfast("serve", f"--client-ca={files.ca}", f"--url=sqlite:///{tmp_path}/s.db").exit_code == 2


@pytest.mark.parametrize("query", ["tls_cert=c.pem", "tls_key=k.pem"])
def test_a_certificate_without_its_key_is_refused(query: str) -> None:
    with pytest.raises(ValueError, match="needs its key"):
        Address.parse(f"https://localhost?{query}")


def test_a_certificate_is_refused_where_it_could_not_be_shown() -> None:
    with pytest.raises(ValueError, match="apply only to https://"):
        Address.parse("http://localhost?tls_cert=c.pem&tls_key=k.pem")


def test_a_certificate_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"missing\.pem .* cannot be used"):
        HttpStore(f"https://localhost?tls_cert={tmp_path}/missing.pem&tls_key={tmp_path}/missing.key")


def test_the_url_goes_on_naming_the_certificate() -> None:
    address = Address.parse("https://localhost:7077/ns/acme?tls_cert=/etc/c.pem&tls_key=/etc/k.pem")
    assert address.url == "https://localhost:7077/ns/acme?tls_cert=/etc/c.pem&tls_key=/etc/k.pem"
    assert Address.parse(address.url) == address


def test_a_server_asks_for_client_certificates_only_over_tls(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="--tls-cert and --tls-key with --client-ca"):
        Exposure(client_ca=tmp_path / "ca.pem").check(asks_for_tokens=True)
    assert ssl.create_default_context().check_hostname

"""Tokens: made once, kept as a hash, good until they expire or are taken back."""

import asyncio
import hmac
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import urllib3
from msgspec import json

from holdfast import ControlPlaneClient, Lock, NotAllowed, Queue, connect
from holdfast.commands import Read
from holdfast.server.app import Options
from holdfast.server.audit import Actor
from holdfast.server.auth.token_cache import KnownTokens
from holdfast.server.auth.tokens import KNOWN_S, TOKEN, create_token, digest, has_tokens, id_of, list_tokens, new_token, revoke_token
from holdfast.server.namespaces.names import TOKENS
from holdfast.stores import Store
from holdfast.stores.memory import MemoryStore
from holdfast.testing.clock import FakeClock
from holdfast.testing.conformance.threads import PATIENCE_S, Doing, all_asleep, together
from tests.cli.test_app import holdfast
from tests.server.processes import Process
from tests.server.serving import JSON, Served

ME = Actor("me", "here")


def at_once(seconds: float) -> None:
    """Does not wait: these tests own what the waiting is for."""


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def store(clock: FakeClock) -> Store:
    return MemoryStore(clock=clock)


@pytest.fixture
def served(store: Store, clock: FakeClock) -> Iterator[Served]:
    # What is known of tokens grows old by the clock that the test owns.
    served = Served(store, Options(heartbeat_s=0.05, failed_logins=3, now=lambda: clock.now_us() / 1e6))
    yield served
    served.close()


def make(store: Store, *scopes: str, expires_s: float | None = None, namespaces: tuple[str, ...] = ("default",)) -> str:
    return create_token(store, "test", scopes or ("*",), namespaces, expires_s, by=ME)[1]


def ask(served: Served, path: str, body: Any = None, token: str | None = None, method: str = "POST") -> tuple[int, Any]:
    headers = JSON if token is None else JSON | {"Authorization": f"Bearer {token}"}
    reply = urllib3.request(method, served.url + path, body=json.encode(body), headers=headers, retries=False, timeout=PATIENCE_S)
    return reply.status, json.decode(reply.data)


def count(served: Served, token: str | None = None) -> int:
    return ask(served, "/v1/count", {"queue": "jobs"}, token)[0]


def test_a_token_is_found_by_its_form_and_its_checksum() -> None:
    token_id, text = new_token()
    assert TOKEN.fullmatch(text)
    assert id_of(text) == token_id
    slip = text[:20] + ("a" if text[20] != "a" else "b") + text[21:]
    assert id_of(slip) is None
    assert new_token()[1] != text


def test_only_the_hash_of_a_token_is_kept(store: Store) -> None:
    text = make(store)
    (entry,) = store.execute(Read(TOKENS)).entries
    assert text not in str(entry)
    assert text.split("_", 2)[2] not in str(entry)
    (token,) = list_tokens(store)
    assert token.digest == digest(text)
    assert token.fits(text)


def test_tokens_are_compared_in_constant_time(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[int] = []

    def compare(left: str, right: str) -> bool:
        compared.append(len(left))
        return left == right

    monkeypatch.setattr(hmac, "compare_digest", compare)
    make(store)
    assert not list_tokens(store)[0].fits(new_token()[1])
    assert compared == [64]


def test_a_server_without_tokens_asks_nobody_and_one_with_a_token_asks_everybody(served: Served, store: Store) -> None:
    assert count(served) == 200
    token = make(store)
    assert count(served) == 401
    assert count(served, token) == 200


def test_the_last_token_to_go_does_not_open_the_door(served: Served, store: Store, clock: FakeClock) -> None:
    token = make(store, expires_s=60)
    assert count(served, token) == 200
    clock.advance(61)
    assert not has_tokens(store)
    assert count(served) == 401


def test_a_token_that_has_expired_by_the_stores_clock_is_refused(served: Served, store: Store, clock: FakeClock) -> None:
    token = make(store, expires_s=3_600)
    assert count(served, token) == 200
    clock.advance(3_599)
    assert count(served, token) == 200
    clock.advance(1.1)
    status, problem = ask(served, "/v1/count", {"queue": "jobs"}, token)
    assert (status, problem["code"]) == (401, "not_signed_in")
    assert list_tokens(store) == []


def test_a_revoked_token_is_refused_at_the_next_request(served: Served, store: Store) -> None:
    token, other = make(store), make(store)
    assert count(served, token) == 200
    assert revoke_token(store, id_of(token) or "", by=ME, rest=at_once)
    assert count(served, token) == 401
    assert count(served, other) == 200
    assert not revoke_token(store, id_of(token) or "", by=ME, rest=at_once)


def test_a_server_that_no_hint_reaches_forgets_a_revoked_token_by_the_time_that_revoking_waits(
    served: Served, store: Store, clock: FakeClock
) -> None:
    token = make(store)
    assert count(served, token) == 200
    assert served.plane._served is not None
    served.plane._served.tokens.close()  # From here on it hears nothing.
    assert count(served, token) == 200
    revoke_token(store, id_of(token) or "", by=ME, rest=clock.advance)
    assert count(served, token) == 401


def test_control_without_the_wait_and_the_hint_a_revoked_token_would_still_be_taken(served: Served, store: Store) -> None:
    token = make(store)
    assert served.plane._served is not None
    served.plane._served.tokens.close()
    assert count(served, token) == 200
    revoke_token(store, id_of(token) or "", by=ME, rest=at_once)
    assert count(served, token) == 200


@pytest.mark.anyio
async def test_what_changed_while_it_was_asked_for_is_asked_for_again(store: Store) -> None:
    token = make(store)
    token_id = id_of(token) or ""
    tasks = store.for_tasks()
    known = KnownTokens(store, tasks)
    execute = tasks.execute

    async def slow(command: Any) -> Any:
        answer = await execute(command)
        revoke_token(store, token_id, by=ME, rest=at_once)  # After the store has answered, before the answer is here.
        return answer

    tasks.execute = slow  # type: ignore[method-assign]
    assert await known.find(token_id) is not None
    tasks.execute = execute  # type: ignore[method-assign]
    assert await known.find(token_id) is None


@pytest.mark.anyio
@pytest.mark.parametrize("tokens", [1, 3], ids=["of one token", "control: of three"])
async def test_all_who_bring_a_token_at_once_ask_the_store_once(store: Store, tokens: int) -> None:
    ids = [id_of(make(store)) or "" for _ in range(tokens)]
    tasks = store.for_tasks()
    known = KnownTokens(store, tasks)
    execute, asked, may_answer = tasks.execute, list[Any](), asyncio.Event()

    async def slow(command: Any) -> Any:
        asked.append(command)
        await may_answer.wait()
        return await execute(command)

    tasks.execute = slow  # type: ignore[method-assign]
    finding = [asyncio.create_task(known.find(token_id)) for token_id in ids for _ in range(20)]
    for _ in range(5):
        await asyncio.sleep(0)
    finding[0].cancel()  # Whoever began the question leaves; the others are answered all the same.
    await asyncio.sleep(0)
    may_answer.set()
    found = await asyncio.gather(*finding[1:])
    assert None not in found
    assert len(asked) == tokens


def test_revoking_ends_a_watch_and_a_claim_that_waits(served: Served, store: Store) -> None:
    token = make(store)
    headers = {"Authorization": f"Bearer {token}"}
    url = f"{served.url}/v1/watch?topic=queue:jobs"
    watch: Doing[Any] = Doing(lambda: urllib3.request("GET", url, headers=headers, retries=False, timeout=PATIENCE_S))
    claim: Doing[Any] = Doing(lambda: ask(served, "/v1/claim?wait_s=300", {"queue": "jobs"}, token))
    all_asleep(watch, claim)
    revoke_token(store, id_of(token) or "", by=ME, rest=at_once)
    Queue.create("jobs", client=ControlPlaneClient.on(store)).put(1)
    assert claim.result("a claim whose token was revoked")[0] == 401
    assert b"event: put" not in watch.result("a watch whose token was revoked").data
    assert Queue.from_name("jobs", client=ControlPlaneClient.on(store)).length() == 1


def test_the_first_token_ends_a_watch_and_a_claim_that_waited_without_one(served: Served, store: Store) -> None:
    url = f"{served.url}/v1/watch?topic=queue:jobs"
    watch: Doing[Any] = Doing(lambda: urllib3.request("GET", url, retries=False, timeout=PATIENCE_S))
    claim: Doing[Any] = Doing(lambda: ask(served, "/v1/claim?wait_s=300", {"queue": "jobs"}))
    all_asleep(watch, claim)
    make(store)
    Queue.create("jobs", client=ControlPlaneClient.on(store)).put(1)
    assert claim.result("a claim that brought no token")[0] == 401
    assert b"event: put" not in watch.result("a watch that brought no token").data
    assert Queue.from_name("jobs", client=ControlPlaneClient.on(store)).length() == 1


def test_revoking_works_across_the_server_processes_of_one_file(tmp_path: Path) -> None:
    file = tmp_path / "served.db"
    made = holdfast("token", "create", "test", "--scope=*", f"--store=sqlite:///{file}", "--create-store")
    token = made.stdout.strip()

    def status(process: Process) -> int:
        headers = JSON | {"Authorization": f"Bearer {token}"}
        return urllib3.request("POST", f"{process.url}/v1/count", body=b'{"queue":"jobs"}', headers=headers, retries=False).status

    with Process(file) as first, Process(file) as second:
        assert [status(first), status(second)] == [200, 200]
        assert holdfast("token", "revoke", id_of(token) or "", f"--store=sqlite:///{file}").returncode == 0
        assert [status(first), status(second)] == [401, 401]


def test_wrong_tokens_are_slowed_down_and_no_good_one_is_locked_out_by_them(served: Served, store: Store, clock: FakeClock) -> None:
    token, late = make(store), make(store)
    assert count(served, token) == 200
    assert [count(served, new_token()[1]) for _ in range(3)] == [401, 401, 401]
    reply = urllib3.request("POST", f"{served.url}/v1/count", headers={"Authorization": "Bearer guess"}, retries=False)
    assert (reply.status, reply.headers["Retry-After"]) == (429, "60")
    assert count(served, new_token()[1]) == 429
    assert count(served, token) == 200
    assert count(served, late) == 200, "nobody behind the same address has to wait for a neighbour who guesses"
    clock.advance(61)
    assert count(served, new_token()[1]) == 401


def test_of_many_wrong_tokens_at_once_no_more_are_answered_than_one_after_the_other(served: Served, store: Store) -> None:
    token = make(store)
    statuses = together(*[lambda: count(served, new_token()[1])] * 20, lambda: count(served, token))
    assert (statuses.count(401), statuses.count(429)) == (3, 17)
    assert statuses[-1] == 200


@pytest.mark.parametrize("authorization", ["", "Bearer", "Bearer ", "Basic eDp5", "bearer hf_x", "Bearer \xff", "Bearer hf_" + "0" * 5_000])
def test_what_is_no_token_is_refused(served: Served, store: Store, authorization: str) -> None:
    make(store)
    reply = urllib3.request("POST", f"{served.url}/v1/count", headers={"Authorization": authorization}, retries=False)
    assert reply.status == 401
    assert reply.headers["WWW-Authenticate"] == "Bearer"


def test_a_token_is_asked_for_before_the_body_is_read(served: Served, store: Store) -> None:
    make(store)
    reply = urllib3.request("POST", f"{served.url}/v1/put", body=b"{ no json", retries=False)
    assert reply.status == 401


def test_a_client_with_a_token_uses_every_handle(served: Served, store: Store) -> None:
    token = make(store, "queue:jobs:*", "lease:reports:hold")
    with ControlPlaneClient(served.url, token=token) as client:
        jobs = Queue.create("jobs", client=client)
        jobs.put({"n": 1})
        with jobs.claimed(claimer="me", lease_s=30) as job:
            assert job == {"n": 1}
        with Lock("reports", client=client):
            pass
        with pytest.raises(NotAllowed, match=r"lease:payments:hold"), Lock("payments", client=client):
            pass
        assert token not in repr(client)


def test_explaining_a_message_needs_the_right_to_read_its_queue_alone(served: Served, store: Store) -> None:
    jobs = Queue.from_name("jobs", client=ControlPlaneClient(served.url, token=make(store, "queue:jobs:put,read")))
    message_id = jobs.put(1)
    assert jobs.explain(message_id).reason == "ready"


def test_the_token_may_come_from_the_environment(served: Served, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOLDFAST_TOKEN", make(store))
    client = connect(served.url)
    assert client.execute(Read("d")).entries == []
    client.close()


def test_without_a_token_or_with_a_wrong_one_the_client_says_so(served: Served, store: Store) -> None:
    make(store)
    for token, words in ((None, "HOLDFAST_TOKEN"), (new_token()[1], "revoked")):
        client = connect(served.url, token=token)
        with pytest.raises(NotAllowed, match=words) as refused:
            client.execute(Read("d"))
        assert token is None or token not in str(refused.value)
        client.close()


def test_an_administrator_of_a_namespace_is_none_of_the_server(served: Served, store: Store) -> None:
    for namespaces, status in ((("default",), 403), (("*",), 200)):
        token = make(store, "admin", namespaces=namespaces)
        assert ask(served, "/v1/prune", {}, token)[0] == status
        assert ask(served, "/v1/audit", None, token, "GET")[0] == status
        assert ask(served, "/v1/clear", {"kind": "queue", "name": "jobs"}, token)[0] == 200


def test_tokens_are_listed_for_an_administrator_without_what_they_are_told_apart_by(served: Served, store: Store) -> None:
    admin, reader = make(store, "admin", namespaces=("*",)), make(store, "server:*:read", namespaces=("*",))
    assert ask(served, "/v1/tokens", None, reader, "GET")[0] == 403
    status, page = ask(served, "/v1/tokens", None, admin, "GET")
    assert (status, page["more"]) == (200, False)
    assert sorted(each["scopes"] for each in page["tokens"]) == [["admin"], ["server:*:read"]]
    assert {*page["tokens"][0]} == {"id", "name", "namespaces", "scopes", "created_at", "expires_at", "last_used_at"}


def test_a_refusal_names_the_scope_that_is_missing(served: Served, store: Store) -> None:
    client = connect(served.url, token=make(store, "dict:other:read"))
    with pytest.raises(NotAllowed, match=r"may not read dict 'd': ask for a token with the scope dict:d:read"):
        client.execute(Read("d"))
    client.close()


def test_one_caller_is_never_answered_what_another_was(served: Served, store: Store) -> None:
    mine, theirs = make(store, "queue:mine:*"), make(store, "queue:theirs:*")
    ask(served, "/v1/put", {"queue": "mine", "items": [{"id": "a", "value": "secret"}]}, mine)
    take = {"id": "the-same", "take": True}
    assert ask(served, "/v1/claim", {"queue": "mine", **take}, mine)[1]["messages"][0]["value"] == "secret"
    assert ask(served, "/v1/claim", {"queue": "mine", **take}, mine)[1]["messages"][0]["value"] == "secret"
    assert ask(served, "/v1/claim", {"queue": "theirs", **take}, theirs)[1]["messages"] == []


@pytest.mark.parametrize("scopes", [(), ("fly",)])
@pytest.mark.parametrize("namespaces", [(), ("A",), ("",), ("a/b",), (" ",)])
def test_a_token_for_nothing_is_refused(store: Store, scopes: tuple[str, ...], namespaces: tuple[str, ...]) -> None:
    for asked in ((scopes, ("default",)), (("*",), namespaces)):
        with pytest.raises(ValueError, match=r"scope|namespace"):
            create_token(store, "test", *asked, by=ME)
    with pytest.raises(ValueError, match="expires_s"):
        create_token(store, "test", ("*",), expires_s=0, by=ME)


def test_what_is_known_of_a_token_is_never_older_than_revoking_waits() -> None:
    assert KNOWN_S <= 1.0

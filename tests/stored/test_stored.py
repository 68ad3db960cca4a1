"""What earlier releases wrote is read as written and goes on, on every store; tools/stored_forms.py wrote it."""

from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest
from msgspec import convert, json

from holdfast import ControlPlaneClient, Job, Once
from holdfast.commands import Acquire, Claim, Put, Renew, Settle, Together, decode_command
from holdfast.commands.leases import LeaseName
from holdfast.connect import connect
from holdfast.records import Lease, Receipt
from holdfast.server.auth.tokens import list_tokens
from holdfast.stores import Store
from holdfast.stores.postgres.store import prune_functions_at
from holdfast.surfaces.localqueue import PersistentQueue
from holdfast.surfaces.localqueue.idempotency import URLIdempotencyStore
from holdfast.surfaces.localqueue.results import URLResultStore
from holdfast.testing.conformance.asking import claim_one, item, put, settle, write
from tests.postgres import shared_postgres
from tests.stored.loading import KINDS, RELEASES, facts_of, load, load_postgres
from tools.stored_forms import LARGE, LEASES, LONG_S, snapshot

DUE = {"urgent", "second", "fourth", "fifth", "budgeted", "soon", "large", "keyed", "low"}


@pytest.fixture(params=[(release, kind) for release in RELEASES for kind in KINDS], ids="-".join)
def stored(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, dict[str, Any]]:
    """The URL of a store, and what was written there."""
    release, kind = request.param
    return load(release, kind, tmp_path), facts_of(release)[kind]


def test_everything_is_read_as_it_was_written(store: Store, stored: tuple[str, dict[str, Any]], newest: int) -> None:
    url, facts = stored
    expected, found = {**facts["snapshot"]}, snapshot(store)
    assert found.pop("latest") >= newest
    if url.startswith("postgresql:"):
        # The cluster is another than the one it was written in: the log begins anew there.
        assert not any(found.pop("events").values())
        del expected["events"]
    expected.pop("latest", None)
    assert common(found, expected) == expected


def common(found: Any, expected: Any) -> Any:
    """What was found, without what a snapshot of that release did not have."""
    if isinstance(found, dict) and isinstance(expected, dict):
        return {name: common(part, expected[name]) for name, part in found.items() if name in expected}
    if isinstance(found, list) and isinstance(expected, list) and len(found) == len(expected):
        return [common(*pair) for pair in zip(found, expected, strict=True)]
    return found


def test_what_is_due_is_handed_out_under_tokens_above_all_before(store: Store, newest: int) -> None:
    messages = store.execute(Claim("jobs", "worker-9", 30.0, 100)).messages
    assert {message.id for message in messages} == DUE
    assert (messages[0].id, messages[-1].id) == ("urgent", "low")
    assert all(message.token > newest for message in messages)
    by_id = {message.id: message for message in messages}
    assert json.decode(by_id["large"].value) == LARGE
    assert (by_id["second"].failures, by_id["second"].last_error) == (1, "ValueError: no")
    assert settle(store, messages) == [True] * len(messages)


def test_claims_are_still_held_and_a_key_gives_way_to_its_buffered_copy(store: Store, known: dict[str, Any]) -> None:
    held, living, lapsed = (convert(known[name], Receipt) for name in ("held", "living", "lapsed"))
    assert store.execute(Settle([held, living, lapsed])).held == [True, True, False]
    (copy,) = store.execute(Claim("keyed", "worker-9", 30.0)).messages
    assert (copy.id, copy.key) == ("copy", '["order",1]')


def test_leases_are_still_held_and_renewed_by_their_ids(store: Store, known: dict[str, Any], newest: int) -> None:
    leases = [convert(lease, Lease) for lease in known["leases"]]
    for (of_dict, key), lease in zip(LEASES, leases, strict=True):
        assert store.execute(Acquire(of_dict, key, "another", "another", 30.0)).lease.holder == lease.holder
        assert store.execute(Renew([LeaseName(of_dict, key, lease.lease_id)], LONG_S)).leases[0] is not None
    assert store.execute(Acquire(None, "given up", "another", "another", 30.0)).lease.token > newest


def test_fences_still_refuse_the_stale_and_revisions_go_on(store: Store, known: dict[str, Any], newest: int) -> None:
    for key in ("fenced", "gone"):
        assert write(store, key, 1, fence=known["fence"] - 1).because == "fence"
        written = write(store, key, 1, fence=known["fence"])
        assert written.entry is not None
        assert written.entry.revision > newest
    with pytest.raises(Exception, match="full"):
        store.execute(Put("bounded", [item("two"), item("three")]))


def test_handles_server_and_surfaces_find_what_they_kept(stored: tuple[str, Any], store: Store, known: dict[str, Any]) -> None:
    url = stored[0]
    with ControlPlaneClient(url) as client:
        assert Once("payments", client=client).run(("order", 1), lambda: "again") == known["receipt"]
        assert Job("adds", known["job"], client=client).result(timeout_s=60.0) == 6
    (token,) = list_tokens(store)
    assert (token.id, token.fits(known["token"])) == (known["token_id"], True)
    local: PersistentQueue[Any] = PersistentQueue("local", store=url)
    assert local.get_message(block=False).value == {"image": 1}
    record = URLIdempotencyStore(url).load("done-1")
    assert record is not None
    assert (record.status, record.result_key) == ("succeeded", "r-1")
    assert URLResultStore(url).load("r-1") == {"made": "thumbnail"}


def test_a_process_of_0_1_0_goes_on_calling_its_own_functions() -> None:
    """They have no digest in their names; those of later releases stand beside them."""
    url = load_postgres("0.1.0")
    with closing(connect(url)) as store, psycopg.connect(shared_postgres(), autocommit=True) as connection:
        connection.execute("select stored_0_1_0.put('', false, 'side', '{theirs}', null, '{1}')")
        put(store, "ours", queue="side")
        claimed = "select stored_0_1_0.claim('', false, 'side', 'them', 30, 1, false, 'place', null, null)::json #> '{messages,0}'"
        row = connection.execute(claimed).fetchone()
        assert row is not None
        assert row[0]["id"] == "theirs"
        ours = claim_one(store, queue="side")
        assert (ours.id, ours.token > row[0]["token"]) == ("ours", True)
        held = "select stored_0_1_0.settle('', false, 'side', '{theirs,ours}', array[%s, %s]::bigint[])"
        assert connection.execute(held, (row[0]["token"], ours.token)).fetchone() == ('{"held":[true,true]}',)
        version = "select value from stored_0_1_0.meta where name = 'version'"
        assert connection.execute(version).fetchone() == ("1",), "0.1.0 may still open it"
        assert prune_functions_at(url) > 100
        assert connection.execute(version).fetchone() == ("3",), "and from now on it refuses"
        left = (
            "select array_agg(proname) from pg_proc where pronamespace = 'stored_0_1_0'::regnamespace and proname !~ '_[0-9a-f]{12}$' "
            "and prorettype <> 'trigger'::regtype"
        )
        assert connection.execute(left).fetchone() == (None,), "none of its functions is left; triggers are part of the tables"
        put(store, "after", queue="side")


@pytest.mark.parametrize("release", RELEASES)
def test_requests_and_answers_of_the_wire_are_still_understood(release: str) -> None:
    for body, answer in facts_of(release)["sqlite"]["wire"]:
        command = decode_command(body)
        assert type(command).__name__ == json.decode(body)["type"]
        parts, answers = (command.commands, answer) if isinstance(command, Together) else ([command], [answer])
        for part, told in zip(parts, answers, strict=True):
            json.decode(json.encode(told), type=part.answer_type)

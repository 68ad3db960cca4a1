"""`holdfast restore`."""

from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from msgspec import json

from holdfast.commands import Changes
from holdfast.connect import connect
from holdfast.errors import Compacted
from holdfast.testing.conformance.asking import JOBS, claim, claim_one, ids, put
from tests.cli.running import holdfast
from tests.postgres import own_postgres_url
from tests.servers import own_redis_url

QUEUE = f"queue:{JOBS}"
FAR = 2**52


@pytest.fixture(params=["sqlite", "lmdb", "postgres", "redis"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    made: dict[str, Callable[[], str]] = {"postgres": own_postgres_url, "redis": own_redis_url}
    return made[request.param]() if request.param in made else f"{request.param}:///{tmp_path}/jobs"


def test_tokens_go_on_above_what_is_named_and_every_watch_begins_anew(url: str) -> None:
    with closing(connect(url)) as store:
        put(store, "a", "b")
        held = claim_one(store)
        index = store.execute(Changes(QUEUE)).latest
    done = holdfast("restore", url, "--above", str(FAR), "--json")
    assert (done.exit_code, done.stderr) == (0, "")
    told = json.decode(done.stdout)
    assert told["before"] == index
    assert told["after"] == FAR
    with closing(connect(url)) as store:
        for topic in (QUEUE, "dict:never written"):
            with pytest.raises(Compacted):
                store.execute(Changes(topic, index))
        assert ids(claim(store, 9)) == ["b"], "claims are as they were"
        assert held.token < FAR < claim_one_after_put(store)


def claim_one_after_put(store: object) -> int:
    put(store, "c")  # type: ignore[arg-type]
    return claim_one(store).token  # type: ignore[arg-type]


def test_it_says_what_it_did_and_may_be_repeated(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/jobs.db"
    with closing(connect(url)) as store:
        put(store, "a")
    for _ in range(2):
        done = holdfast("restore", url)
        assert (done.exit_code, done.stderr) == (0, "")
        assert "continue above" in done.stdout


@pytest.mark.parametrize("place", ["sqlite:///{}/no.db", "lmdb:///{}/no", "memory://"])
def test_it_creates_no_store(tmp_path: Path, place: str) -> None:
    done = holdfast("restore", place.format(tmp_path))
    assert done.exit_code == 1
    assert done.stdout == ""
    assert list(tmp_path.iterdir()) == []


def test_a_server_is_named_as_the_wrong_place() -> None:
    done = holdfast("restore", "http://127.0.0.1:9")
    assert done.exit_code in (1, 2)

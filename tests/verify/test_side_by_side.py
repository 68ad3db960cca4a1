"""A process of an earlier release and one of this code work on one store of each kind, and the sums are right.

The earlier release comes from this repository's history: in a tree without it these tests fail, and say so.
"""

import os
import re
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from msgspec import json

from holdfast.commands import Claim, Configure
from holdfast.connect import connect
from holdfast.testing.conformance.asking import put, read, stats
from tests.postgres import shared_postgres
from tests.servers import own_redis_url
from tests.stored.loading import KINDS, load
from tests.verify import side

pytestmark = pytest.mark.verify

ROOT = Path(__file__).parents[2]
OLD = "f114688"
"""The release before; a tag once there is one."""

ROUNDS = int(os.environ.get("HOLDFAST_TEST_ROUNDS", "750"))
MISSING = ("psycopg_pool",)
"""What the old release needs and this one does not."""


@pytest.fixture(scope="module")
def old(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The PYTHONPATH of the earlier release; what else it needs is that of this code."""
    folder = tmp_path_factory.mktemp("old")
    archive = subprocess.run([shutil.which("git") or "git", "archive", OLD, "src"], cwd=ROOT, capture_output=True, check=False)
    assert archive.returncode == 0, f"the history of this repository has to have {OLD}: clone it whole"
    with tarfile.open(fileobj=BytesIO(archive.stdout)) as files:
        files.extractall(folder, filter="data")
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(folder / "packages"), *MISSING]
    subprocess.run(pip, check=True)
    return os.pathsep.join((str(folder / "src"), str(folder / "packages")))


@contextmanager
def started(path: str, *command: str) -> Iterator[subprocess.Popen[str]]:
    """A Python process with the code on the path, until the block ends."""
    environment = os.environ | {"PYTHONPATH": path}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    process = subprocess.Popen([sys.executable, *command], env=environment, **pipes, text=True)  # type: ignore[call-overload]
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def both(url: str, old: str, first: str = "old") -> dict[str, dict[str, Any]]:
    """What the two sides did, begun together; the first makes the store, where nothing is there yet."""
    told: dict[str, dict[str, Any]] = {}
    paths = {"old": old, "new": str(ROOT / "src")}
    with ExitStack() as stack:
        sides = {}
        for name in sorted(paths, key=lambda name: name != first):
            sides[name] = stack.enter_context(started(paths[name], side.__file__, url, name, str(ROUNDS)))
            said = sides[name].stdout.readline()  # type: ignore[union-attr]
            assert said == "ready\n", f"the {name} side failed: {sides[name].stderr.read()}"  # type: ignore[union-attr]
        for process in sides.values():
            process.stdin.write("go\n")  # type: ignore[union-attr]
            process.stdin.flush()  # type: ignore[union-attr]
        for name, process in sides.items():
            said = process.stdout.readline()  # type: ignore[union-attr]
            assert said, f"the {name} side failed: {process.stderr.read()}"  # type: ignore[union-attr]
            told[name] = json.decode(said)
    return told


def check_sums(url: str, told: dict[str, dict[str, Any]]) -> None:
    """Nothing was lost, nothing done twice, no number given out twice."""
    ours, theirs = told["new"], told["old"]
    assert ours["commands"] + theirs["commands"] >= 14 * ROUNDS
    tokens, revisions = ours["tokens"] + theirs["tokens"], ours["revisions"] + theirs["revisions"]
    assert len(set(tokens)) == len(tokens)
    assert len(set(revisions)) == len(revisions)
    with closing(connect(url)) as store:
        left = stats(store, "shared")
        assert (left.ready, left.leased, left.dead) == (0, 0, 0)
        assert ours["put"] + theirs["put"] == ours["done"] + theirs["done"] == 2 * ROUNDS * (ROUNDS + 1)
        assert read(store, "count", dict="sums") == {"count": ours["counted"] + theirs["counted"]}
        put(store, "after", queue="shared")


@contextmanager
def served(path: str, url: str) -> Iterator[str]:
    """The URL of a server with the code on the path."""
    program = "from holdfast.cli import main; main()"
    with started(path, "-c", program, "serve", "--store", url, "--port", "0") as process:
        for line in process.stderr:  # type: ignore[union-attr]
            if found := re.search(r"http://[\w.:]+", line):
                yield found[0]
                return
        raise AssertionError("the server did not start")


@pytest.mark.parametrize("first", ["old", "new"])
@pytest.mark.parametrize("kind", ["sqlite", "lmdb", "redis"])
def test_old_and_new_work_side_by_side_on_a_store_that_either_made(kind: str, first: str, old: str, tmp_path: Path) -> None:
    url = own_redis_url() if kind == "redis" else f"{kind}:///{tmp_path}/jobs"
    check_sums(url, both(url, old, first))


def test_old_and_new_work_side_by_side_in_postgresql(old: str) -> None:
    url = f"{shared_postgres()}?schema=side_by_side"
    check_sums(url, both(url, old))


def test_a_schema_that_0_1_0_could_not_use_is_refused_by_it(old: str) -> None:
    with pytest.raises(AssertionError, match=r"the old side failed(.|\n)*SchemaTooNew: .*upgrade Holdfast"):
        both(f"{shared_postgres()}?schema=made_by_new", old, "new")


@pytest.mark.parametrize("server", ["old", "new"])
def test_old_and_new_clients_are_served_by_an_old_and_a_new_server(server: str, old: str, tmp_path: Path) -> None:
    behind = f"sqlite:///{tmp_path}/jobs.db"
    with served({"old": old, "new": str(ROOT / "src")}[server], behind) as url:
        check_sums(url, both(url, old))


CLAIMING = """
import sys
from holdfast.commands import Claim
from holdfast.connect import connect
print([message.id for message in connect(sys.argv[1]).execute(Claim(sys.argv[2], "old", 60.0, 10)).messages])
"""


@pytest.mark.parametrize("kind", KINDS)
def test_an_old_process_claims_nothing_from_a_queue_with_policies(kind: str, old: str, tmp_path: Path) -> None:
    url = load("0.1.0", kind, tmp_path)
    with closing(connect(url)) as store:
        put(store, "m1", "m2", queue="plain")
        store.execute(Configure("queue", "ordered", groups="strict"))
        put(store, "m3", "m4", queue="ordered", group="a")
    for queue, claimed in {"ordered": "[]", "plain": "['m1', 'm2']"}.items():
        with started(old, "-c", CLAIMING, url, queue) as process:
            assert process.communicate()[0] == f"{claimed}\n"
    with closing(connect(url)) as store:
        assert [message.id for message in store.execute(Claim("ordered", "new", 60.0)).messages] == ["m3"]

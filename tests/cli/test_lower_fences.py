"""`holdfast lower-fences`."""

from contextlib import closing
from pathlib import Path

import pytest
from msgspec import json

from holdfast import Dict
from holdfast.commands import BeginImport, EndImport, Fenced, Import, Survey
from holdfast.connect import connect
from holdfast.server.audit import audit_page, read_audit
from holdfast.testing.conformance.asking import token, write
from holdfast.testing.randomness import BEYOND
from tests.cli.running import holdfast


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/jobs.db"


def import_fences(url: str, name: str, count: int) -> None:
    with closing(connect(url)) as store:
        store.execute(BeginImport("old", store.execute(Survey()), merge=True))
        store.execute(Import("old", "", "fences", "", fences=[Fenced(name, f'"{number}"', BEYOND) for number in range(count)]))
        store.execute(EndImport())


def test_holders_can_write_again_and_the_audit_says_who_saw_to_it(url: str) -> None:
    import_fences(url, "state", 1_001)
    done = holdfast("lower-fences", "state", "--url", url, "--json")
    assert (done.exit_code, done.stderr) == (0, "")
    assert json.decode(done.stdout) == {"dict": "state", "lowered": 1_001}
    with closing(connect(url)) as store:
        assert write(store, '"0"', 1, dict="state", fence=token(store)).written
        (record,) = audit_page(store.execute(read_audit())).records
    assert (record.act, record.what, record.namespace) == ("lower fences", "dict:state", "default")
    assert record.who.endswith("at the command line")


def test_it_says_what_it_did_and_may_be_repeated(url: str) -> None:
    import_fences(url, " acme/state", 1)
    said = [holdfast("lower-fences", "state", "--namespace", "acme", "--url", url).stdout for _ in range(2)]
    assert said[0].startswith("Lowered 1 fence of dict 'state' to the newest token.")
    assert said[1] == "No fence of dict 'state' stands above the newest token; nothing was changed.\n"


def test_a_program_can_do_the_same(url: str) -> None:
    import_fences(url, "state", 1_001)
    shared: Dict[int] = Dict.create("state", base_url=url)
    assert [shared.lower_fences().count for _ in range(2)] == [1_001, 0]

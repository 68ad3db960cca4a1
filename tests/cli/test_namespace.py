"""`holdfast namespace`: quotas are set, shown and taken back on the store itself."""

from pathlib import Path

import pytest
from msgspec import Raw, json

from holdfast import connect
from holdfast.commands import Configure, Item, Put
from holdfast.server.namespaces.quotas import Quota, list_quotas
from holdfast.server.namespaces.usage import RECORD_BYTES
from tests.cli.running import holdfast


@pytest.fixture
def url(tmp_path: Path) -> str:
    store = connect(f"sqlite:///{tmp_path}/s.db")
    for name in ("orders", " acme/jobs", " acme/more"):
        store.execute(Configure("queue", name))
    store.execute(Configure("dict", " beta/d"))
    store.close()
    return f"sqlite:///{tmp_path}/s.db"


def test_a_quota_is_set_bit_by_bit_shown_and_taken_back(url: str) -> None:
    assert holdfast("namespace", "quota", "acme", "--queues=100", "--bytes=1GiB", f"--url={url}").exit_code == 0
    told = json.decode(holdfast("namespace", "quota", "acme", "--waits=500", "--json", f"--url={url}").stdout)
    assert told == {"namespace": "acme", "queues": 100, "dicts": None, "bytes": 2**30, "waits": 500}
    assert "1,073,741,824" in holdfast("namespace", "quota", "acme", f"--url={url}").stdout
    store = connect(url)
    assert list_quotas(store) == {"acme": Quota(queues=100, bytes=2**30, waits=500)}
    holdfast("namespace", "quota", "acme", "--queues=none", "--bytes=none", "--waits=none", f"--url={url}")
    assert list_quotas(store) == {}
    store.close()
    acts = [record["act"] for record in json.decode(holdfast("audit", "--json", f"--url={url}").stdout)]
    assert acts == ["set quota"] * 3


def test_namespaces_are_listed_with_what_they_have_and_may_have(url: str) -> None:
    holdfast("namespace", "quota", "*", "--dicts=7", f"--url={url}")
    holdfast("namespace", "quota", "acme", "--queues=100", f"--url={url}")
    listed = {each["namespace"]: each for each in json.decode(holdfast("namespace", "list", "--json", f"--url={url}").stdout)}
    assert {name: each["used"] for name, each in listed.items()} == {
        "*": {"queues": 0, "dicts": 0},
        "acme": {"queues": 2, "dicts": 0},
        "beta": {"queues": 0, "dicts": 1},
        "default": {"queues": 1, "dicts": 0},
    }
    assert (listed["acme"]["quota"]["dicts"], listed["beta"]["quota"]["dicts"]) == (None, 7)
    assert "acme" in holdfast("namespace", "list", f"--url={url}").stdout


def test_bytes_are_counted_if_asked_for(url: str) -> None:
    store = connect(url)
    store.execute(Put(" acme/jobs", [Item("a", Raw(b'"xyz"'))]))
    store.close()
    listed = {
        each["namespace"]: each for each in json.decode(holdfast("namespace", "list", "--count-bytes", "--json", f"--url={url}").stdout)
    }
    assert {name: each["used"]["bytes"] for name, each in listed.items()} == {"acme": RECORD_BYTES + 6, "beta": 0, "default": 0}


@pytest.mark.parametrize("wrong", ["--queues=many", "--queues=1GiB", "--bytes=1GB", "--waits=-1"])
def test_what_is_no_amount_is_refused_by_its_name(url: str, wrong: str) -> None:
    refused = holdfast("namespace", "quota", "acme", wrong, f"--url={url}")
    assert refused.exit_code == 2
    assert f"{wrong.partition('=')[0]} must be a number" in refused.stderr


def test_what_is_no_namespace_is_refused(url: str) -> None:
    assert holdfast("namespace", "quota", "Acme Ltd", "--queues=1", f"--url={url}").exit_code == 2

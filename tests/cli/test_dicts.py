"""`holdfast dict`: entries by key, compare-and-set, and exit codes that a script can trust."""

from pathlib import Path

import pytest
from msgspec import json

from holdfast.stores.sqlite.store import SqliteStore
from tests.cli.running import holdfast


@pytest.fixture
def url(tmp_path: Path) -> str:
    SqliteStore(tmp_path / "s.db").close()
    return f"--url=sqlite:///{tmp_path}/s.db"


def test_an_entry_is_put_read_listed_changed_and_deleted(url: str) -> None:
    assert holdfast("dict", "put", "settings", "mode", '"dark"', url).stdout == "Set mode.\n"
    assert holdfast("dict", "get", "settings", "mode", url).stdout == '"dark"\n'
    entry = json.decode(holdfast("dict", "get", "settings", "mode", "--json", url).stdout)
    assert (entry["value"], entry["revision"] > 0) == ("dark", True)
    assert json.decode(holdfast("dict", "ls", "--json", url).stdout) == [{"name": "settings", "entries": 1}]
    assert json.decode(holdfast("dict", "ls", "settings", "mo", "--json", url).stdout) == [{"key": "mode", "value": "dark"}]
    assert holdfast("dict", "delete", "settings", "mode", url).exit_code == 0
    assert holdfast("dict", "delete", "settings", "mode", url).exit_code == 3
    assert holdfast("dict", "get", "settings", "mode", url).exit_code == 3


def test_compare_and_set_exits_with_four_when_the_entry_is_another(url: str) -> None:
    holdfast("dict", "put", "counts", "a", "1", url)
    assert holdfast("dict", "cas", "counts", "a", "2", "--expected=1", url).exit_code == 0
    met = holdfast("dict", "cas", "counts", "a", "3", "--expected=1", "--json", url)
    assert (met.exit_code, json.decode(met.stdout)["current_value"]) == (4, 2)
    revision = json.decode(holdfast("dict", "get", "counts", "a", "--json", url).stdout)["revision"]
    assert holdfast("dict", "cas", "counts", "a", "3", f"--revision={revision}", url).exit_code == 0
    assert holdfast("dict", "put", "counts", "a", "9", "--if-absent", url).exit_code == 4


def test_a_key_can_be_any_key_as_json(url: str) -> None:
    assert holdfast("dict", "put", "d", '["user", 7]', "1", "--json-key", url).exit_code == 0
    assert holdfast("dict", "get", "d", '["user", 7]', "--json-key", url).stdout == "1\n"
    assert holdfast("dict", "get", "d", '["user", 7]', url).exit_code == 3


def test_changes_are_one_object_per_line(url: str) -> None:
    holdfast("dict", "put", "d", "a", "1", url)
    rows = holdfast("dict", "watch", "d", "--timeout-s=0", url).stdout.splitlines()
    assert [json.decode(row)["event"] for row in rows] == ["written"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [(("put", "d", "a", "dark"), "a text needs quotes"), (("cas", "d", "a", "1"), "give either --expected")],
)
def test_what_makes_no_sense_is_refused(url: str, arguments: tuple[str, ...], says: str) -> None:
    refused = holdfast("dict", *arguments, url)
    assert (refused.exit_code, says in refused.stderr) == (2, True), refused.stderr

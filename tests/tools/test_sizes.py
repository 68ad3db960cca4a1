"""The sizes of files and functions, in every language of the project, and what a change costs."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tools import sizes

ROOT = Path(__file__).parents[2]
LONG = "\n".join(["  pass"] * 60)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("src/long.py", f"def long():\n{LONG}\n"),
        ("src/long.sql", f"create or replace function long() returns void\nlanguage plpgsql as $$\n{LONG}\n$$;\n"),
        ("src/long.lua", f"local function long(a)\n{LONG}\nend\n"),
    ],
)
def test_a_long_function_is_refused_in_every_language(name: str, text: str) -> None:
    assert [fault.split(":")[0] for fault in sizes.faults({Path(name): text}) if "take it out" not in fault] == [f"{name} long"]


def test_what_is_listed_may_not_grow(monkeypatch: pytest.MonkeyPatch) -> None:
    written = {Path("src/long.py"): f"def long():\n{LONG}\n"}
    monkeypatch.setattr(sizes, "LONG", {"src/long.py long": 61})
    assert not list(sizes.faults(written))
    monkeypatch.setattr(sizes, "LONG", {"src/long.py long": 60})
    assert len(list(sizes.faults(written))) == 1


def test_what_is_listed_in_vain_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sizes, "LONG", {"src/gone.py": 400})
    assert list(sizes.faults({})) == ["src/gone.py: no longer too long; take it out of the list"]


def test_what_a_change_costs_is_counted() -> None:
    # In a process of its own: where threads of other tests are, Python 3.11 may fail to parse ("recursion depth mismatch").
    printed = subprocess.run([sys.executable, "tools/costs.py"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    counts = [int(found[0]) for line in printed if (found := re.findall(r" (\d+)(?: (?:files|places|implementations).*)?$", line))]
    assert len(counts) == len(printed) > 0
    assert all(counts)

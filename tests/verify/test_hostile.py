"""One token that tries everything it can for two minutes: ten honest clients go on, and the server stays small.

It takes a machine on which nothing else runs. Slices with and without the attack take turns, so other work disturbs both alike; a failure
shows for how much of the time the server waited for a core.
"""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from msgspec import json

from bench.hostile_attacks import ATTACKS

pytestmark = [pytest.mark.verify, pytest.mark.timeout(1_200)]

PROGRAM = Path(__file__).parents[2] / "bench" / "hostile.py"
TIMES = 3.0
RSS_MIB = 500.0


def measured(store: str, folder: Path, *options: str) -> dict[str, Any]:
    output = folder / "figures.json"
    finished = subprocess.run(
        [sys.executable, str(PROGRAM), "--store", store, "--json", str(output), *options], capture_output=True, text=True, check=False
    )
    assert finished.returncode == 0, finished.stdout + finished.stderr
    report: dict[str, Any] = json.decode(output.read_bytes())
    return report


def figure(report: dict[str, Any], begin: str) -> dict[str, Any]:
    (found,) = [each for each in report["figures"] if each["what"].partition(": ")[2].startswith(begin)]
    return dict(found)


def tried(report: dict[str, Any]) -> set[str]:
    """The attacks that were answered or left at least once: one that had no core was none."""
    return set(re.findall(r'"(\w+ \w+): ', " ".join(report["notes"])))


@pytest.mark.parametrize("store", ["sqlite", "postgres", "redis"])
def test_one_hostile_token_neither_stops_ten_honest_clients_nor_fills_the_memory(store: str, tmp_path: Path) -> None:
    report = measured(store, tmp_path)
    assert tried(report) >= {f"{name} {each.attempt.__name__}" for name, attacks in ATTACKS.items() for each in attacks}
    assert figure(report, "failed honest requests")["ours"] == 0
    assert figure(report, "tracebacks in its log")["ours"] == 0
    assert figure(report, "memory of the server")["ours"] <= RSS_MIB
    assert figure(report, "all, p99 (")["ratio"] <= TIMES, report["notes"]


def test_control_an_attack_that_was_not_tried_is_noticed(tmp_path: Path) -> None:
    report = measured("sqlite", tmp_path, "--quick", "--attack", "h7")
    assert tried(report) == {"h7 colons", "h7 colons_in_the_head"}

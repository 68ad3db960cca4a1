import subprocess
import sys
from pathlib import Path

import pytest
from msgspec import json

PROGRAM = Path(__file__).parents[2] / "bench" / "embedded.py"


def run(folder: Path, *options: str) -> tuple[dict[str, object], list[dict[str, object]]]:
    """What a quick run reports, and the figures in it."""
    output = folder / "figures.json"
    command = [sys.executable, str(PROGRAM), "--quick", "--json", str(output), "--dir", str(folder), *options]
    finished = subprocess.run(command, capture_output=True, text=True, check=False, timeout=110)
    assert finished.returncode == 0, finished.stdout + finished.stderr
    report = json.decode(output.read_bytes())
    return report, report["figures"]


def test_every_group_measures_something(tmp_path: Path) -> None:
    _, figures = run(tmp_path)
    # The peers may be missing: only `make bench` installs them.
    groups = {"sqlite", "power", "processes", "memory", "keyed", "flatness", "wakeup", "imports", "dict"}
    assert {figure["group"] for figure in figures} - {"peers"} == groups
    for figure in figures:
        assert list(figure) == ["group", "what", "ours", "unit", "beside", "other", "ratio", "best", "wanted", "met"]


def test_a_quick_run_judges_nothing(tmp_path: Path) -> None:
    report, figures = run(tmp_path, "--only", "flatness")
    assert report["judged"] is False
    assert {figure["met"] for figure in figures} == {None}


def test_the_files_that_were_measured_on_are_removed(tmp_path: Path) -> None:
    run(tmp_path, "--only", "dict")
    assert [path.name for path in tmp_path.iterdir()] == ["figures.json"]


def run_quick(program: str, output: Path, *options: str) -> list[dict[str, object]]:
    """The figures of a quick run of another program."""
    command = [sys.executable, str(PROGRAM.with_name(program)), "--quick", "--json", str(output), *options]
    finished = subprocess.run(command, capture_output=True, text=True, check=False, timeout=110)
    assert finished.returncode == 0, finished.stdout + finished.stderr
    figures: list[dict[str, object]] = json.decode(output.read_bytes())["figures"]
    return figures


@pytest.mark.parametrize("program", ["redis.py", "postgres.py"])
def test_a_store_across_a_wire_is_measured_beside_the_least_its_server_can_do(tmp_path: Path, program: str) -> None:
    groups = ["cells", "leases", "wakeup"]
    figures = run_quick(program, tmp_path / "figures.json", *(word for group in groups for word in ("--only", group)))
    assert {figure["group"] for figure in figures} == set(groups)
    cells = [figure["what"] for figure in figures if figure["group"] == "cells"]
    assert [cell for cell in cells if str(cell).endswith(", 2 workers")] == [
        f"{what}, {size} at a time, 2 workers" for size in (1, 10, 100) for what in ("put", "claim+ack")
    ]


def test_the_calls_of_sentinel_are_measured_each_by_itself(tmp_path: Path) -> None:
    figures = run_quick("sentinel.py", tmp_path / "figures.json")
    assert [figure["what"] for figure in figures] == ["acquire", "heartbeat", "release"]


def test_the_hostile_client_is_measured_beside_honest_ones(tmp_path: Path) -> None:
    figures = run_quick("hostile.py", tmp_path / "figures.json", "--store", "sqlite", "--attack", "h7")
    assert len({str(figure["what"]).partition(",")[0] for figure in figures}) == len(figures) == 14


def test_two_source_trees_are_compared_call_by_call(tmp_path: Path) -> None:
    tree, output = PROGRAM.parents[1], tmp_path / "figures.json"
    figures = run_quick("before_after.py", output, "--store", "memory", str(tree), str(tree))
    compared = [figure["what"] for figure in figures if figure["beside"] == "before"]
    assert {"memory: put with max_attempts, client", "memory: write, client", "memory: lock + unlock, client"} <= set(compared)
    assert len(compared) == len(set(compared)) == 12


def test_what_groups_cost_is_judged_by_time_in_memory_and_beside_a_plain_queue_elsewhere(tmp_path: Path) -> None:
    figures = run_quick("groups.py", tmp_path / "figures.json", "--store", "memory", "--store", "sqlite", "--groups", "10")
    wanted = {str(figure["what"]): (figure["unit"], figure["wanted"]) for figure in figures}
    assert wanted["memory: claim + ack, strict, 10 groups"] == ("µs", "≤ 120")
    assert wanted["sqlite: put, fair, 10 groups"] == ("µs", "≤ 1.5")
    assert wanted["sqlite: batch of 10, limited, 10 groups"] == ("µs", "≤ 2.3")


def test_the_size_of_groups_is_measured_on_sqlite(tmp_path: Path) -> None:
    figures = run_quick("groups.py", tmp_path / "figures.json", "--store", "sqlite", "--flat", "--many", "2000", "--full", "100")
    (a_group, a_million) = [figure for figure in figures if "bytes of lanes" in str(figure["what"])]
    assert (a_group["unit"], a_million["unit"], a_million["wanted"]) == ("bytes", "MB", "≤ 100")
    assert 20 < float(str(a_group["ours"])) < 200

"""Nights of schedules in four zones, with processes that are killed by SIGKILL: each run that cronsim lists is put once."""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from holdfast.schedules.entries import shown
from tests.postgres import empty_postgres_url
from tests.schedules.years import NIGHTLY, ZONES, runs_of_cronsim
from tests.stores_by_name import url_of

ROOT = Path(__file__).parents[2]
PROCESSES = ["sqlite", "lmdb", "redis", "postgres"]
"""The stores that processes share."""


def put_in(url: str, days: int, *how: str) -> dict[str, list[str]]:
    """What was put for each schedule in so many days, in its order."""
    program: Sequence[str] = [sys.executable, "-m", "tests.schedules.years", url, str(days), "1", *how]
    ids = subprocess.run(program, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout.split()
    return {zone: [one for one in ids if one.startswith(f"{zone}@")] for zone in ZONES}


def listed_by_cronsim(days: int) -> dict[str, list[str]]:
    return {zone: [f"{zone}@{shown(run)}" for run in runs_of_cronsim(NIGHTLY, zone, days)] for zone in ZONES}


def test_four_nights_under_kills_have_each_run_once(tmp_path: Path) -> None:
    assert put_in(url_of("sqlite", tmp_path), 4) == listed_by_cronsim(4)


def test_control_without_the_comparison_runs_are_put_twice_under_kills(tmp_path: Path) -> None:
    put = put_in(url_of("sqlite", tmp_path), 2, "careless")
    assert all(len(ids) > len(set(ids)) for ids in put.values())


@pytest.mark.verify
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("kind", PROCESSES)
def test_a_year_under_kills_has_each_run_once(kind: str, tmp_path: Path) -> None:
    # The clock of the processes becomes that of the schema.
    url = empty_postgres_url() if kind == "postgres" else url_of(kind, tmp_path)
    assert put_in(url, 366) == listed_by_cronsim(366)

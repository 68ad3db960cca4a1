"""Two hundred workers in four processes and five hundred schedules, for a minute: each run is put once, with about one write.

How late the runs are put is printed, not judged: it says as much about the machine.
"""

import subprocess
import sys
from pathlib import Path

import pytest
from msgspec import json

from holdfast import ControlPlaneClient, Every, Schedule
from tests.schedules.minute import Measured
from tests.stores_by_name import url_of

pytestmark = [pytest.mark.verify, pytest.mark.timeout(300)]

ROOT = Path(__file__).parents[2]
SCHEDULES = 500
PROCESSES = 4
WARM_S = 60.0
"""Until each worker has heard of all others."""
MINUTE_S = 60.0


def measured(url: str, *how: str, measured_s: float = MINUTE_S) -> Measured:
    with ControlPlaneClient(url) as client:
        for number in range(SCHEDULES):
            rule = Every(seconds=MINUTE_S, offset_s=number * MINUTE_S / SCHEDULES)
            Schedule(f"s{number}", rule, ("jobs", number), overlap="allow", client=client).save()
    program = [sys.executable, "-m", "tests.schedules.minute", url, str(WARM_S), str(measured_s), *how]
    running = [subprocess.Popen(program, cwd=ROOT, stdout=subprocess.PIPE) for _ in range(PROCESSES)]
    found = [json.decode(one.communicate()[0], type=Measured) for one in running]
    return Measured(sorted(late for one in found for late in one.late_s), sum(one.tries for one in found))


@pytest.mark.parametrize("kind", ["sqlite", "postgres", "redis"])
def test_five_hundred_schedules_of_two_hundred_workers_run_once_each(kind: str, tmp_path: Path) -> None:
    found = measured(url_of(kind, tmp_path))
    late_s = found.late_s
    median_s, p99_s = late_s[len(late_s) // 2], late_s[len(late_s) * 99 // 100]
    tries = f"{found.tries / len(late_s):.3f} tries each"
    sys.stdout.write(f"{kind}: {len(late_s)} runs, {tries}, late by {median_s:.3f} s (median), {p99_s:.3f} s (p99)\n")
    assert SCHEDULES - 2 <= len(late_s) <= SCHEDULES + 2
    assert found.tries <= 1.2 * len(late_s)


def test_control_workers_that_do_not_know_of_each_other_try_more_often(tmp_path: Path) -> None:
    found = measured(url_of("sqlite", tmp_path), "alone", measured_s=10.0)
    assert found.tries > 1.2 * len(found.late_s)

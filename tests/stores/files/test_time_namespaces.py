"""Processes of one machine in different time namespaces, as containers may be, share one time. Needs a kernel that lets us make one."""

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.verify

ACQUIRE = """
import sys
from holdfast.connect import connect
from holdfast.testing.conformance.asking import acquire
print(acquire(connect(sys.argv[1]), lease_id=sys.argv[2], lease_s=600.0).lease.lease_id)
"""


def acquired(url: str, lease_id: str, offset_s: int) -> str:
    """Who holds the lock after a process in a namespace of its own has tried to take it."""
    place = ["unshare", "--user", "--map-root-user", "--time", "--fork", "--boottime", str(offset_s)] if offset_s else []
    done = subprocess.run([*place, sys.executable, "-c", ACQUIRE, url, lease_id], check=True, capture_output=True, text=True)
    return done.stdout.strip()


@pytest.mark.parametrize("scheme", ["sqlite", "lmdb"])
@pytest.mark.parametrize(("first", "second"), [(0, 3600), (3600, 0), (86_400, 3600)])
def test_a_lock_has_one_holder_in_all_time_namespaces(tmp_path: Path, scheme: str, first: int, second: int) -> None:
    url = f"{scheme}:///{tmp_path}/store"
    assert acquired(url, "first", first) == "first"
    assert acquired(url, "second", second) == "first"

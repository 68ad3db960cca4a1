"""A disk that is really full: nothing lost, room that is there used, and no restart needed once there is more.

Mounts a small file system in a namespace of its own, which takes Linux and a kernel that lets users do so.
"""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.stores.sqlite.stores import OPENED

pytestmark = [pytest.mark.verify, pytest.mark.timeout(300)]

ON_A_SMALL_DISK = """
import pathlib
LARGE = Raw(b'"' + b"x" * 3000 + b'"')
acknowledged = []

def put_large(name):
    try:
        store.execute(Put("jobs", [Item(name, LARGE)]))
    except Exception as error:
        return type(error).__name__
    acknowledged.append(name)
    return "kept"

def fill_the_disk():
    with open(os.path.join(os.path.dirname(path), "filler"), "wb", buffering=0) as filler:
        try:
            while True:
                filler.write(b"x" * 1024)
        except OSError:
            pass

def make_room():
    os.remove(os.path.join(os.path.dirname(path), "filler"))

def is_whole():
    connection = sqlite3.connect(path)
    return connection.execute("pragma integrity_check").fetchone() == ("ok",)
"""

FULL_BY_ITSELF = """
outcomes = [put_large(f"m{n:04}") for n in range(1000)]
assert set(outcomes) == {"kept", "StoreFull"}, set(outcomes)
assert outcomes.index("StoreFull") == len(acknowledged), "one after the first failed was kept, or the other way round"
assert waiting() == acknowledged
assert is_whole()
"""

FULL_BY_OTHERS = """
assert {put_large(f"m{n:04}") for n in range(100)} == {"kept"}
for _ in range(50):
    claim_one()
    assert ack()
store.close()
store = connect(f"sqlite:///{path}")
assert {put_large(f"n{n:04}") for n in range(10)} == {"kept"}
held = store.execute(Claim("jobs", lease_s=60.0, limit=30)).messages
fill_the_disk()
assert store.execute(Settle([message.receipt for message in held])).held == [True] * 30
assert put_large("into freed room") == "kept"
outcomes = [put_large(f"o{n:04}") for n in range(200)]
assert set(outcomes) == {"kept", "StoreFull"}, set(outcomes)
make_room()
assert put_large("after") == "kept"
assert is_whole()
settled = {message.id for message in held}
assert set(waiting()) == set(acknowledged[50:]) - settled
"""


@pytest.mark.parametrize(("script", "size"), [(FULL_BY_ITSELF, "1m"), (FULL_BY_OTHERS, "4m")], ids=["by itself", "by others"])
def test_a_full_disk_loses_nothing_and_needs_no_restart(tmp_path: Path, script: str, size: str) -> None:
    program = tmp_path / "program.py"
    disk = tmp_path / "disk"
    disk.mkdir()
    program.write_text(f"path = {str(disk / 'jobs.db')!r}\n{OPENED}\n{ON_A_SMALL_DISK}\n{script}")
    mounted = f'mount -t tmpfs -o size={size} tmpfs "$1" && exec "$2" "$3"'
    command = ["unshare", "--map-root-user", "--mount", "sh", "-c", mounted, "sh", str(disk), sys.executable, str(program)]
    finished = subprocess.run(command, check=False, capture_output=True, text=True)
    assert finished.returncode == 0, finished.stderr

import os
import subprocess
import sys
from pathlib import Path

PROGRAM = Path(__file__).parents[2] / "bench" / "worker.py"


def test_a_quick_run_measures_our_workers(tmp_path: Path) -> None:
    command = [sys.executable, str(PROGRAM), "--quick", "--only", "sqlite"]
    settings = {**os.environ, "TMPDIR": str(tmp_path)}
    finished = subprocess.run(command, env=settings, capture_output=True, text=True, check=False, timeout=110)
    assert finished.returncode == 0, finished.stdout + finished.stderr
    # The peers may be missing: only `make bench` installs them.
    assert finished.stdout.count("ours, ") >= 4
    assert [*tmp_path.iterdir()] == []

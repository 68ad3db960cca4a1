"""Run the tests of the networked stores on every PostgreSQL, Redis and Valkey that is found here, and say which those were.

What follows on the command line goes to pytest.
"""

import os
import subprocess
import sys
from pathlib import Path

from holdfast.testing.servers.postgres import found_binaries as found_postgres
from holdfast.testing.servers.redis import found_binaries as found_redis

POSTGRES = (
    "tests/conformance/test_postgres.py",
    "tests/conformance/test_differential.py",
    "tests/stores/postgres",
    "tests/stored",
    "tests/testing/test_sql_lua_controls.py",
    "tests/surfaces/sentinel",
)
REDIS = (
    "tests/conformance/test_redis.py",
    "tests/conformance/test_differential.py",
    "tests/stores/redis",
    "tests/stored",
    "tests/testing/test_sql_lua_controls.py",
)


def version_of(binary: Path) -> str:
    """What the program calls itself."""
    said = subprocess.run([binary, "--version"], capture_output=True, text=True, check=True)
    return said.stdout.strip()


def run(folder: Path, tests: tuple[str, ...], named: str) -> bool:
    """Run the tests with the servers of a folder before all others; whether they passed."""
    environment = {name: value for name, value in os.environ.items() if name not in ("HOLDFAST_TEST_PG_URL", "HOLDFAST_TEST_REDIS_URL")}
    environment["PATH"] = f"{folder}{os.pathsep}{environment.get('PATH', os.defpath)}"
    command = [sys.executable, "-m", "pytest", "-q", "-n", "2", "-k", named, *tests, *sys.argv[1:]]
    return subprocess.run(command, env=environment, check=False).returncode == 0


def main() -> int:
    """Run them all; 1 where one failed."""
    servers: list[tuple[Path, tuple[str, ...], str]] = [(folder / "postgres", POSTGRES, "postgres") for folder in found_postgres()]
    servers += [(binary, REDIS, "redis") for binary in found_redis()]
    results = {version_of(binary): run(binary.parent, tests, named) for binary, tests, named in servers}
    for version, has_passed in results.items():
        print(f"{'passed' if has_passed else 'FAILED'}  {version}")
    return 0 if all(results.values()) else 1


if __name__ == "__main__":
    sys.exit(main())

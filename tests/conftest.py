"""What holds for every test: a skipped test fails the run, and async tests run on asyncio."""

import gc
import os
import shutil
import signal
from collections.abc import Generator
from pathlib import Path

import hypothesis
import pytest

from tests.postgres import postgres_server, postgres_url  # noqa: F401 - fixtures for every test

# A shell that runs the tests in the background lets them ignore Ctrl-C, and so every program that a test starts and interrupts.
signal.signal(signal.SIGINT, signal.default_int_handler)

# The files of tests lie in memory where there is room for them: waiting for a disk took a third of a run.
MEMORY = Path("/dev/shm")  # noqa: S108 - pytest makes a folder of its own there, for this user only
ENOUGH = 4 * 2**30
if os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free > ENOUGH:
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY))

# No deadline per example: on a busy machine it would fail tests that are right.
hypothesis.settings.register_profile("holdfast", deadline=None)
hypothesis.settings.load_profile("holdfast")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """One more than there are processors: much of a test is waiting for servers, other processes and the browser."""
    return (os.cpu_count() or 1) + 1


def pytest_collection() -> None:
    """Begin no collection of garbage while the tests are found: nothing of it is garbage."""
    gc.disable()


def pytest_collection_finish() -> None:
    """Leave the tests themselves out of every collection of garbage: going through so many took longer than most tests."""
    gc.collect()
    gc.freeze()
    gc.enable()


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.skipped and not hasattr(report, "wasxfail"):
        fail_instead(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    if report.skipped:
        fail_instead(report)
    return report


def fail_instead(report: pytest.TestReport | pytest.CollectReport) -> None:
    """Turn a skip into a failure: a test that silently stopped running would look like one that passes."""
    report.outcome = "failed"
    report.longrepr = f"A skipped test fails the run. {report.longreprtext}"

"""What a release is made of: an audit that says what it did not ask for, the dashboard, and the same bytes for the same commit."""

import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import pytest

from holdfast.server.layers.dashboard import read_files
from holdfast.version import __version__
from tools.audit import FOUND, NOT_AUDITED, verdict

ROOT = Path(__file__).parents[2]
SDIST_MOST = 6_000_000
"""Twice what it is now; the packages of the dashboard alone are 86 MB."""
GOOD: dict[str, Any] = {"name": "good", "version": "1", "vulns": []}
BAD: dict[str, Any] = {"name": "bad", "version": "2", "vulns": [{"id": "CVE-2026-1"}]}
UNKNOWN: dict[str, Any] = {"name": "unknown", "skip_reason": "Dependency not found on PyPI and could not be audited"}


@pytest.mark.parametrize(
    ("packages", "code", "words"),
    [
        ([GOOD], 0, "no published vulnerability of 1 packages"),
        ([GOOD, BAD, UNKNOWN], FOUND, "bad 2: CVE-2026-1"),
        ([GOOD, UNKNOWN], NOT_AUDITED, "NOT AUDITED, 1 of 2 packages"),
        ([], NOT_AUDITED, "NOT AUDITED"),
    ],
)
def test_an_audit_passes_only_if_every_package_was_asked_about(packages: list[dict[str, Any]], code: int, words: str) -> None:
    found, said = verdict("dev.txt", {"dependencies": packages})
    assert found == code
    assert words in said


def test_an_audit_that_reached_nobody_says_so() -> None:
    assert verdict("dev.txt", None) == (NOT_AUDITED, "dev.txt: NOT AUDITED, the service that knows of vulnerabilities could not be asked")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An sdist, a wheel of the checkout, and in `again` a wheel of what the sdist holds."""
    folder = tmp_path_factory.mktemp("built")
    build(ROOT, folder)
    with tarfile.open(next(folder.glob("*.tar.gz"))) as sdist:
        sdist.extractall(folder / "unpacked", filter="data")
    (unpacked,) = (folder / "unpacked").iterdir()
    build(unpacked, folder / "again", "--target", "wheel")
    return folder


def build(source: Path, folder: Path, *options: str) -> None:
    command = [sys.executable, "-m", "hatchling", "build", "--directory", str(folder), *options]
    subprocess.run(command, cwd=source, env={**os.environ, "SOURCE_DATE_EPOCH": "1700000000"}, check=True, capture_output=True)


def contents(built: Path) -> tuple[list[str], list[str]]:
    """The paths in the sdist and in the wheel."""
    with tarfile.open(next(built.glob("*.tar.gz"))) as sdist, zipfile.ZipFile(next(built.glob("*.whl"))) as wheel:
        return sdist.getnames(), wheel.namelist()


def test_sdist_and_wheel_contain_the_dashboard_that_is_served(built: Path) -> None:
    served = {f"holdfast/server/dashboard/{Path(path).name or 'index.html'}" for path in read_files()}
    assert {Path(path).name for path in served} == {"app.css", "app.js", "index.html", "uplot.css"}, "not built: run `make dashboard`"
    sdist, wheel = contents(built)
    assert served <= set(wheel)
    assert {f"holdfast-{__version__}/src/{path}" for path in served} <= set(sdist)


def test_sdist_and_wheel_contain_nothing_that_was_fetched(built: Path) -> None:
    assert (ROOT / "web/dashboard/node_modules").exists(), "not built: run `make dashboard`"
    assert [path for part in contents(built) for path in part if "node_modules" in path or "/client/dist/" in path] == []
    assert next(built.glob("*.tar.gz")).stat().st_size < SDIST_MOST


def test_a_wheel_of_the_sdist_is_that_of_the_checkout_to_the_byte(built: Path) -> None:
    (first,), (second,) = (list(folder.glob("*.whl")) for folder in (built, built / "again"))
    assert first.read_bytes() == second.read_bytes()


def test_make_dist_builds_the_dashboard_first() -> None:
    (rule,) = (line for line in (ROOT / "Makefile").read_text().splitlines() if line.startswith("dist:"))
    assert "dashboard" in rule.partition("##")[0].split()

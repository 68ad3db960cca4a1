"""What a release is made of: an audit that says what it did not ask for, and the same bytes for the same commit."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tools.audit import FOUND, NOT_AUDITED, verdict

ROOT = Path(__file__).parents[2]
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


def test_a_wheel_built_twice_is_the_same_to_the_byte(tmp_path: Path) -> None:
    environment = {**os.environ, "SOURCE_DATE_EPOCH": "1700000000"}
    for name in ("first", "second"):
        command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(tmp_path / name)]
        subprocess.run(command, cwd=ROOT, env=environment, check=True, capture_output=True)
    (first,), (second,) = (list((tmp_path / name).iterdir()) for name in ("first", "second"))
    assert first.read_bytes() == second.read_bytes()

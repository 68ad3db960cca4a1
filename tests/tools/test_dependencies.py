"""No extra can be installed with a release whose vulnerability is published."""

import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

PROJECT = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
EXTRAS = ("postgres", "redis", "lmdb", "http", "server", "retry", "starlette", "cli")

VULNERABLE = {
    "urllib3": "2.6.3",  # CVE-2026-44431, CVE-2026-44432
    "aiohttp": "3.14.2",  # CVE-2026-69244
    "starlette": "1.0.0",  # CVE-2026-48710
    "uvicorn": "0.11.6",  # CVE-2020-7695
}
"""The last release of each with a vulnerability that we know of."""


@pytest.mark.parametrize("package", VULNERABLE)
def test_a_release_with_a_published_vulnerability_is_excluded(package: str) -> None:
    named = [*PROJECT["dependencies"], *(name for extra in EXTRAS for name in PROJECT["optional-dependencies"][extra])]
    found = [requirement for requirement in map(Requirement, named) if requirement.name == package]
    assert found
    assert not any(requirement.specifier.contains(VULNERABLE[package]) for requirement in found)

"""What `make test` installs is pinned with hashes, and fits what pyproject.toml asks for."""

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
EXTRAS = PYPROJECT["project"]["optional-dependencies"]
LOCKS = ("dev", "release")


def lines_of(lock: str) -> list[str]:
    """One line for each pinned package, with its hashes."""
    text = (ROOT / f"requirements/{lock}.txt").read_text().replace("\\\n", " ")
    return [line for line in text.splitlines() if line and not line.lstrip().startswith("#")]


def pins_of(lock: str) -> dict[str, set[str]]:
    """The versions of each package; there may be one for each version of Python."""
    pins: dict[str, set[str]] = {}
    for line in lines_of(lock):
        pin = Requirement(line.partition("--hash")[0].strip())
        pins.setdefault(canonicalize_name(pin.name), set()).add(str(pin.specifier).removeprefix("=="))
    return pins


def wanted(extra: str) -> list[Requirement]:
    """What an extra asks for, with that of the extras it names."""
    found = []
    for requirement in map(Requirement, EXTRAS[extra]):
        found += [one for inner in requirement.extras for one in wanted(inner)] if requirement.name == "holdfast" else [requirement]
    return found


WANTED = {
    "dev": [*map(Requirement, PYPROJECT["project"]["dependencies"]), *wanted("dev")],
    "release": list(map(Requirement, PYPROJECT["dependency-groups"]["release"])),
}


@pytest.mark.parametrize("lock", LOCKS)
def test_everything_asked_for_is_pinned_within_its_bounds(lock: str) -> None:
    pins = pins_of(lock)
    wrong = [
        f"{requirement} is pinned to {sorted(pins.get(canonicalize_name(requirement.name), ())) or 'nothing'}"
        for requirement in WANTED[lock]
        if not all(map(requirement.specifier.contains, pins.get(canonicalize_name(requirement.name), {""})))
    ]
    assert wrong == [], "run `make lock`"


@pytest.mark.parametrize("lock", LOCKS)
def test_every_pin_has_a_hash_and_none_names_where_to_fetch_it(lock: str) -> None:
    for line in lines_of(lock):
        assert re.fullmatch(r"[\w.-]+==[\w.]+( ; [^:]+?)?( +--hash=sha256:[0-9a-f]{64})+", line), line

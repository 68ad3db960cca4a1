"""Every example of the README and of the docs runs, each page in a process and a folder of its own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.examples import examples

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
WITH_EXAMPLES = [page for page in PAGES if any(examples(page.read_text()))]


@pytest.mark.parametrize("page", WITH_EXAMPLES, ids=[page.relative_to(ROOT).as_posix() for page in WITH_EXAMPLES])
def test_the_examples_of_a_page_run(page: Path, tmp_path: Path) -> None:
    settings = {**os.environ, "HOLDFAST_URL": "sqlite:///holdfast.db", "XDG_DATA_HOME": str(tmp_path / "data")}
    command = [sys.executable, "-W", "error", str(Path(__file__).with_name("examples.py")), str(page)]
    answer = subprocess.run(command, cwd=tmp_path, env=settings, capture_output=True, text=True, check=False, timeout=100)
    assert (answer.returncode, answer.stdout + answer.stderr if answer.returncode else "") == (0, "")


def test_every_how_to_page_has_an_example() -> None:
    howto = set((ROOT / "docs/howto").glob("*.md")) - {ROOT / "docs/howto/index.md"}
    assert howto <= set(WITH_EXAMPLES)

"""Forks and interrupts by the thousand, while other threads write."""

from pathlib import Path

import pytest

from tests.stores.sqlite.programs import Program
from tests.stores.sqlite.test_forks import WRITING_MEANWHILE
from tests.stores.sqlite.test_group_commit import INTERRUPTED

pytestmark = [pytest.mark.verify, pytest.mark.timeout(600)]


@pytest.mark.parametrize("seed", range(3))
def test_thousands_of_interrupts_lose_no_commit_and_stop_nobody(tmp_path: Path, seed: int) -> None:
    with Program(INTERRUPTED, tmp_path / "jobs.db") as program:
        assert program.ask(f"storm(5_000, seed={seed})") == "(True, True)"


def test_hundreds_of_children_forked_while_threads_write_all_write_too(tmp_path: Path) -> None:
    with Program(WRITING_MEANWHILE, tmp_path / "jobs.db") as program:
        assert program.ask("children_that_write(500)") == "{'[True]'}"

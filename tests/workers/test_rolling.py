"""In the middle of a deploy, with workers killed by SIGKILL, no job is lost, and none is burnt by a worker that does not know it."""

from pathlib import Path

from tests.stores_by_name import url_of
from tests.workers.deploys import Deployed, deployed


def test_a_deploy_loses_and_burns_no_job(tmp_path: Path) -> None:
    found = deployed(url_of("sqlite", tmp_path), tmp_path, 3, "old")
    assert found == Deployed(put=3 * 64 + 1)


def test_control_jobs_are_burnt_where_not_being_known_counts_as_a_failure(tmp_path: Path) -> None:
    found = deployed(url_of("sqlite", tmp_path), tmp_path, 3, "old", "burning")
    assert found.burnt

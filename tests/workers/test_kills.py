"""Workers are killed with SIGKILL at every step, and nothing is lost, done twice or counted wrong."""

from pathlib import Path

import pytest

from holdfast import ControlPlaneClient, Queue
from tests.stores_by_name import url_of
from tests.workers.crowd import KILLERS, VALUES
from tests.workers.kills import effects_are_once, effects_of_killed_workers, survivors


def test_whatever_the_step_at_which_workers_are_killed_each_effect_happens_once(tmp_path: Path) -> None:
    effects_are_once(tmp_path, 30)
    with ControlPlaneClient(f"sqlite:///{tmp_path}/jobs.db") as client:
        assert Queue[str]("jobs", client=client).stats().total == 0


def test_control_without_the_ledger_effects_happen_twice(tmp_path: Path) -> None:
    effects = effects_of_killed_workers(tmp_path, 20, "plain")
    assert max(effects.values()) > 1


def test_a_message_that_kills_its_worker_is_dead_at_its_budget(tmp_path: Path) -> None:
    effects = effects_of_killed_workers(tmp_path, 3, "poison")
    assert effects == {"poison": 3}
    with ControlPlaneClient(f"sqlite:///{tmp_path}/jobs.db") as client:
        queue = Queue[str]("jobs", client=client)
        # The claim that would have handed it out a fourth time buries it, once its last lease has ended.
        while not queue.stats().dead:
            assert queue.claim(claimer="undertaker", timeout_s=0.1) is None
        (letter,) = queue.dead_letters()
        assert (letter.failures, letter.attempts) == (3, 3)


@pytest.mark.parametrize("kind", ["sqlite", *(pytest.param(kind, marks=pytest.mark.verify) for kind in ("redis", "postgres"))])
def test_what_waits_beside_jobs_that_kill_their_workers_is_run_and_never_dies_of_it(kind: str, tmp_path: Path) -> None:
    url = url_of(kind, tmp_path)
    ran = survivors(url, tmp_path / "ran")
    with ControlPlaneClient(url) as client:
        letters = Queue[int]("jobs", client=client).dead_letters()
    assert {letter.value for letter in letters} == set(KILLERS)
    assert set(ran) == set(VALUES)
    assert max(ran.values()) <= 3


@pytest.mark.verify
@pytest.mark.parametrize("kind", ["redis", "postgres"])
def test_effects_happen_once_on_servers_whatever_the_step_at_which_workers_are_killed(kind: str, tmp_path: Path) -> None:
    effects_are_once(tmp_path, 200, timeout_s=1_200.0, url=url_of(kind, tmp_path))


@pytest.mark.verify
def test_a_thousand_kills(tmp_path: Path) -> None:
    effects_are_once(tmp_path, 1_000, timeout_s=1_500.0)

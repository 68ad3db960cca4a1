"""The pytest plugin, as users' projects see it."""

import subprocess
import sys

import pytest

pytest_plugins = ["pytester"]

# Loading every plugin that is installed takes ten times as long as the run.
OURS_ALONE = ("-p", "no:cacheprovider", "-p", "holdfast.testing.plugin")


@pytest.fixture
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    return pytester


USERS_TEST = """
from msgspec import Raw
from holdfast.commands import Claim, Item, Put

def test_a_job_comes_back_when_its_worker_dies(holdfast_store, holdfast_clock):
    holdfast_store.execute(Put("jobs", [Item("a", Raw(b"1"))]))
    assert len(holdfast_store.execute(Claim("jobs", lease_s=60.0)).messages) == 1
    assert holdfast_store.execute(Claim("jobs", lease_s=60.0)).messages == []
    holdfast_clock.advance(60)
    assert len(holdfast_store.execute(Claim("jobs", lease_s=60.0)).messages) == 1

def test_the_next_test_has_an_empty_store(holdfast_store):
    assert holdfast_store.execute(Claim("jobs")).messages == []
"""


def test_a_users_test_gets_a_store_on_a_clock_it_can_move(project: pytest.Pytester) -> None:
    project.makepyfile(USERS_TEST)
    project.runpytest_subprocess(*OURS_ALONE).assert_outcomes(passed=2)


def test_a_users_code_needs_no_client_to_be_given(project: pytest.Pytester) -> None:
    project.makepyfile(
        """
        import pytest
        from holdfast import Queue, connect
        from holdfast.commands import Count

        @pytest.mark.parametrize("turn", [1, 2])
        def test_a_job_comes_back_when_its_worker_dies(turn, holdfast_client, holdfast_store, holdfast_clock):
            jobs = Queue.create("jobs")
            jobs.put("paint")
            assert jobs.claim(claimer="dies", lease_s=60.0) is not None
            assert Queue.from_name("jobs", client=holdfast_client).claim(claimer="next") is None
            holdfast_clock.advance(60)
            assert jobs.claim(claimer="next").value == "paint"
            assert holdfast_store.execute(Count("jobs")) == connect().execute(Count("jobs"))
        """
    )
    project.runpytest_subprocess(*OURS_ALONE).assert_outcomes(passed=2)


def test_the_store_is_closed_after_the_test(project: pytest.Pytester) -> None:
    project.makepyfile(
        """
        import pytest
        from holdfast.commands import Claim
        from holdfast.errors import Closed

        kept = []

        def test_first(holdfast_store):
            kept.append(holdfast_store)

        def test_second():
            with pytest.raises(Closed):
                kept[0].execute(Claim("jobs"))
        """
    )
    project.runpytest_subprocess(*OURS_ALONE).assert_outcomes(passed=2)


def test_the_plugin_is_found_by_its_entry_point(pytester: pytest.Pytester) -> None:
    result = pytester.runpytest_subprocess("--fixtures")
    result.stdout.fnmatch_lines(["holdfast_clock*", "holdfast_store*", "holdfast_client*"])


def test_a_project_that_does_not_use_it_imports_no_store_and_no_suite() -> None:
    heavy = ("hypothesis", "holdfast.stores.memory", "holdfast.stores.sqlite", "holdfast.testing.conformance")
    program = f"import sys, holdfast.testing.plugin; sys.exit(str([name for name in {heavy} if name in sys.modules] or ''))"
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert found.stderr.strip() == ""

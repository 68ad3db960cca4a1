from pathlib import Path

import pytest

pytest_plugins = ["pytester"]

CONFTEST = Path(__file__).parents[1] / "conftest.py"


@pytest.fixture
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    monkeypatch.setenv("PYTHONPATH", str(CONFTEST.parents[1]))
    # Loading every plugin that is installed takes ten times as long as the run.
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    pytester.makeconftest(CONFTEST.read_text())
    return pytester


def test_a_skipped_test_fails_the_run(project: pytest.Pytester) -> None:
    project.makepyfile("import pytest\n\n@pytest.mark.skip\ndef test_nothing(): ...\n")
    project.runpytest_subprocess().assert_outcomes(errors=1)


def test_a_test_that_skips_itself_fails_the_run(project: pytest.Pytester) -> None:
    project.makepyfile("import pytest\n\ndef test_nothing(): pytest.skip('no server')\n")
    project.runpytest_subprocess().assert_outcomes(failed=1)


def test_a_skipped_module_fails_the_run(project: pytest.Pytester) -> None:
    project.makepyfile("import pytest\n\npytest.importorskip('no_such_module')\n")
    project.runpytest_subprocess().assert_outcomes(errors=1)


def test_the_rule_holds_in_xdist_workers(project: pytest.Pytester) -> None:
    project.makepyfile("import pytest\n\ndef test_nothing(): pytest.skip('no server')\n")
    project.runpytest_subprocess("-p", "xdist", "-n1").assert_outcomes(failed=1)


def test_a_passing_run_stays_green(project: pytest.Pytester) -> None:
    project.makepyfile("def test_something(): assert True\n")
    project.runpytest_subprocess().assert_outcomes(passed=1)

"""Which store a command uses, and why: `--url`, HOLDFAST_URL, `[tool.holdfast]`, `holdfast config show`; completion."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from msgspec import json

from tests.cli.running import holdfast

PROJECT = '[tool.holdfast]\nurl = "sqlite:///jobs.db"\n'


@pytest.fixture(autouse=True)
def below(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "below").mkdir()
    monkeypatch.chdir(tmp_path / "below")
    return tmp_path


def url_setting(*arguments: str, **settings: str) -> Any:
    ran = holdfast("config", "show", "--json", *arguments, **settings)
    assert ran.exit_code == 0, ran.stderr
    (found,) = [one for one in json.decode(ran.stdout) if one["name"] == "url"]
    return found


def test_the_store_of_a_project_is_beside_its_pyproject_wherever_the_command_is_called(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(PROJECT)
    assert holdfast("queue", "put", "mail", "1", "--create-store").exit_code == 0
    assert (tmp_path / "jobs.db").exists()
    assert url_setting() == {
        "name": "url",
        "value": f"sqlite:////{str(tmp_path)[1:]}/jobs.db",
        "origin": f"[tool.holdfast] of {tmp_path}/pyproject.toml",
    }


def test_the_option_comes_before_the_environment_and_that_before_the_project(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(PROJECT)
    assert url_setting(HOLDFAST_URL="sqlite:///other.db")["origin"] == "the environment variable HOLDFAST_URL"
    assert url_setting("--url=redis://u:secret@host/0", HOLDFAST_URL="sqlite:///other.db")["value"] == "redis://u@host/0"
    (tmp_path / "pyproject.toml").unlink()
    assert url_setting()["origin"].startswith("the default")
    shown = holdfast("config", "show", "--origin", HOLDFAST_TOKEN="hf_secret")  # noqa: S106 - not one
    assert "hf_secret" not in shown.stdout
    assert "the environment variable HOLDFAST_TOKEN" in shown.stdout


@pytest.mark.parametrize(
    ("text", "words"),
    [("[tool.holdfast]\nurll = 1\n", "unknown setting 'urll'"), ("[tool.holdfast]\nurl = 1\n", "must be a text"), ("[tool", "is not TOML")],
)
def test_a_mistake_in_the_project_is_said_in_one_sentence(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "pyproject.toml").write_text(text)
    ran = holdfast("queue", "ls")
    assert (ran.exit_code, words in ran.stderr, ran.stderr.count("\n")) == (2, True, 1)
    assert holdfast("queue", "ls", "--url=sqlite:///absent.db").exit_code == 1, "a URL that is given does not ask the project"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish", "powershell"])
def test_the_script_of_each_shell_is_printed(shell: str) -> None:
    ran = holdfast("completion", shell)
    assert (ran.exit_code, "_HOLDFAST_COMPLETE" in ran.stdout) == (0, True)


def test_commands_of_a_group_are_completed() -> None:
    settings = {"_HOLDFAST_COMPLETE": "complete_bash", "COMP_WORDS": "holdfast queue re", "COMP_CWORD": "2"}
    ran = subprocess.run(
        [sys.executable, "-c", "from holdfast.cli import main; main()"],
        env={"PATH": "/usr/bin", "PYTHONPATH": ":".join(sys.path), **settings},
        capture_output=True,
        text=True,
        check=False,
    )
    assert set(ran.stdout.split()) == {"release", "resume", "redrive"}, ran.stderr

"""`holdfast --help` begins quickly. CPU time, the least of several: what else the machine does is no part of it."""

import subprocess
import sys
from resource import RUSAGE_CHILDREN, getrusage

import pytest

pytestmark = [pytest.mark.verify, pytest.mark.timeout(600)]

ROUNDS = 5
MOST_S = 0.15
"""Above what Python itself takes."""

NOTHING = "pass"
HELP = "import sys; sys.argv[1:] = ['--help']; from holdfast.cli import main; main()"
ALL = "from holdfast.cli.app import COMMANDS, load; [load(name) for name in COMMANDS]"
"""The control: a list of commands that had to import each."""


def cost_s(code: str) -> float:
    """What a process that runs this takes, once it has been compiled."""
    found = []
    for _ in range(ROUNDS):
        before = getrusage(RUSAGE_CHILDREN)
        subprocess.run([sys.executable, "-c", code], stdout=subprocess.DEVNULL, check=True)
        after = getrusage(RUSAGE_CHILDREN)
        found.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(found)


def test_the_list_of_commands_is_there_soon_after_python_itself() -> None:
    assert cost_s(HELP) - cost_s(NOTHING) <= MOST_S


def test_control_importing_every_command_would_take_longer() -> None:
    assert cost_s(ALL) - cost_s(NOTHING) > MOST_S

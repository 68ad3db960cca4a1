"""The design page shows the layers, the commands and the paths as they are."""

import re
import subprocess
import sys
import tomllib

from holdfast import commands
from holdfast.commands import Command
from tests.docs.naming import ROOT
from tools import paths

PAGE = (ROOT / "docs/design/index.md").read_text("utf-8")


def rows_below(header: str) -> list[list[str]]:
    table = PAGE.split(header, 1)[1].split("\n\n", 1)[0]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines() if line.startswith("|")][1:]


def contracted() -> list[list[str]]:
    """The layers of the import contract, from the top."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]["contracts"]
    (layers,) = (contract["layers"] for contract in contracts if contract["id"] == "layers")
    return [re.findall(r"[\w.]+", layer) for layer in layers]


def test_the_layers_are_those_of_the_import_contract() -> None:
    rows = rows_below("| layer, from the top | modules | contents |\n")
    assert [int(row[0]) for row in rows] == list(range(1, len(rows) + 1))
    assert [re.findall(r"`([\w.]+)`", row[1]) for row in rows] == contracted()


def test_the_table_of_commands_has_every_command_once() -> None:
    listed = [name for row in rows_below("| command | what it does |\n") for name in re.findall(r"`(\w+)`", row[0])]
    named = [name for name in commands.__all__ if isinstance(one := getattr(commands, name), type) and issubclass(one, Command)]
    assert sorted(listed) == sorted(set(named) - {"Command"})


def test_the_paths_are_those_of_real_calls() -> None:
    checked = subprocess.run([sys.executable, ROOT / "tools/paths.py", "--check"], capture_output=True, text=True, timeout=100, check=False)
    assert (checked.returncode, checked.stdout) == (0, ""), checked.stderr


def test_control_a_path_that_changed_would_be_noticed() -> None:
    old = PAGE.replace("`stores/memory/store.py` execute", "`stores/memory/store.py` executed", 1)
    made = PAGE.split(paths.BEGIN, 1)[1].split(paths.END, 1)[0].strip("\n") + "\n"
    assert paths.page(PAGE, made) == PAGE
    assert paths.page(old, made) != old

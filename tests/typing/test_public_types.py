"""The public API is fully typed, and type checkers find no fault in a file that uses all of it."""

import json
import os
import re
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast import aio

ROOT = Path(__file__).parents[2]
USES = [Path(__file__).with_name(name) for name in ("every_call.py", "every_task_call.py", "every_group_call.py")]
MISUSES = Path(__file__).with_name("misused_tasks.py")
# So that the checkers find this interpreter and what is installed for it.
SETTINGS = {**os.environ, "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]), "PYTHONPATH": str(ROOT / "src")}

HANDLES = [
    "ControlPlaneClient",
    "Dict",
    "DictLease",
    "Consumer",
    "Election",
    "Job",
    "Lock",
    "Once",
    "Queue",
    "QueueClaim",
    "QueueGroup",
    "QueueWorkItem",
    "Together",
    "Task",
    "Tasks",
    "Worker",
]
UNTYPED = ("holdfast.integrations.django.", "holdfast.testing.django.")
"""Django has no types, so what derives from its classes, or returns them, has none to declare."""
HELD = {"hold", "keepalive"}
"""Public between the handles and what renews their claims."""


def run(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=ROOT, env=SETTINGS, capture_output=True, text=True, check=False, timeout=110)


def test_mypy_finds_no_fault_and_without_the_types_of_a_task_would_let_every_wrong_call_pass(tmp_path: Path) -> None:
    untyped = tmp_path / "untyped_tasks.py"
    untyped.write_text(
        re.sub(r"Task\[\[\w+\], \w+, \w+\]", "Task[..., Any, Any]", MISUSES.read_text().split("\nsend.put(")[0]).replace(
            "from holdfast", "from typing import Any\n\nfrom holdfast", 1
        )
    )
    # Together, because reading the library takes long unless it was checked just before.
    answer = run(sys.executable, "-m", "mypy", "--strict", *map(str, [*USES, MISUSES, untyped]))
    *faults, _ = answer.stdout.splitlines()
    assert (len(faults), answer.stderr) == (5, ""), answer.stdout
    assert all("untyped_tasks.py" in fault and 'Unused "type: ignore"' in fault for fault in faults), answer.stdout


def test_pyright_finds_no_fault(tmp_path: Path) -> None:
    settings = tmp_path / "pyrightconfig.json"
    settings.write_text(
        json.dumps(
            {
                "typeCheckingMode": "strict",
                "reportUnnecessaryTypeIgnoreComment": "error",
                "include": [str(one) for one in [*USES, MISUSES]],
                "extraPaths": [str(ROOT / "src")],
            }
        )
    )
    answer = run(sys.executable, "-m", "basedpyright", "--project", str(settings))
    assert (answer.returncode, answer.stdout) == (0, "0 errors, 0 warnings, 0 notes\n")


@pytest.mark.parametrize("name", HANDLES)
def test_the_file_uses_every_public_name_of_a_handle(name: str) -> None:
    used = {name for page in USES for name in re.findall(r"\.(\w+)", page.read_text())}
    public = {member for member in dir(getattr(holdfast, name)) if not member.startswith("_")}
    assert public - used - HELD == set()


def test_every_handle_has_a_twin_with_the_same_public_names() -> None:
    def public(module: Any, name: str) -> set[str]:
        return {member for member in dir(getattr(module, name)) if not member.startswith("_")}

    twins = [name for name in aio.__all__ if name[0].isupper()]
    assert {name: public(aio, name) for name in twins} == {name: public(holdfast, name) for name in twins}


@cache
def completeness() -> list[dict[str, Any]]:
    answer = run(sys.executable, "-m", "basedpyright", "--ignoreexternal", "--outputjson", "--verifytypes", "holdfast")
    symbols: list[dict[str, Any]] = json.loads(answer.stdout)["typeCompleteness"]["symbols"]
    return symbols


def test_every_public_name_has_a_declared_type() -> None:
    faults = [
        f"{symbol['name']}: {fault['message'].splitlines()[0]}"
        for symbol in completeness()
        for fault in symbol["diagnostics"]
        if "docstring" not in fault["message"] and not symbol["name"].startswith(UNTYPED)
    ]
    assert len(completeness()) > 1_000
    assert faults == []

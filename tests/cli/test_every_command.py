"""Every command: its `--json` can be read, its line of help fits, and each documented exit code is one that a command ends with."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
import typer.main
from msgspec import json

from holdfast import ControlPlaneClient, Lock, Queue, Schedule
from holdfast.cli.app import COMMANDS, load
from tests.cli.running import holdfast
from tests.postgres import own_postgres_url

PAGE = Path(__file__).parents[2] / "docs/reference/cli.md"
COMMAND = [sys.executable, "-c", "from holdfast.cli import main; main()"]

ARGUMENTS = {
    "queue put": "mail 1",
    "queue claim": "mail",
    "queue ack": "{claim}",
    "queue release": "{claim}",
    "queue peek": "mail",
    "queue browse": "mail",
    "queue dead": "mail",
    "queue explain": "mail {id}",
    "queue stats": "mail",
    "queue rates": "mail",
    "queue watch": "mail --timeout-s=0.1",
    "queue pause": "mail",
    "queue configure": "mail --limit=5",
    "queue throttle": "mail 0s",
    "queue groups": "mail",
    "queue group": "mail a --weight=2",
    "queue resume": "mail",
    "queue redrive": "mail",
    "queue cancel": "mail {id}",
    "queue purge": "mail --yes",
    "dict ls": "",
    "dict get": "settings mode",
    "dict put": "settings mode 1",
    "dict cas": "settings mode 2 --expected=1",
    "dict delete": "settings mode",
    "dict watch": "settings --timeout-s=0.1",
    "lock show": "report",
    "lock ls": "",
    "lock break": "report --reason=test --yes",
    "leader show": "nobody",
    "schedule show": "nightly",
    "schedule add": "daily every_60_s --queue=mail",
    "schedule delete": "nightly",
    "schedule pause": "nightly",
    "schedule resume": "nightly",
    "schedule run-now": "nightly",
    "schedule next": "every_60_s",
    "schedule sync": "every_command_app:app",
    "tasks": "every_command_app",
    "completion": "bash",
    "localqueue queue add": "old --value=1",
    "localqueue queue pop": "mail",
    "localqueue queue inspect": "mail {id}",
    "localqueue queue release": "mail {claimed} --token={held}",
    "localqueue queue ack": "mail {claimed} --token={held}",
    "localqueue queue dead-letter": "mail {claimed} --token={held}",
    "localqueue queue size": "mail",
    "localqueue queue stats": "mail",
    "localqueue queue health": "mail",
    "localqueue queue dead": "mail",
    "localqueue retry prune": "--older-than=60",
    "localqueue queue purge": "mail",
    "localqueue queue process": "mail builtins:print",
    "localqueue queue exec": "mail true",
    "localqueue config set": "store_path {folder}/l.db",
    "job show": "{id} --queue=mail",
    "job cancel": "{id} --queue=mail",
    "job send": "{id} approved --queue=mail",
    "watch": "--timeout-s=0.1",
    "top": "--once",
    "backup": "{folder}/backup.db",
    "restore": "{url}",
    "export": "{folder}/export.ndjson",
    "import file": "{folder}/exported.ndjson",
    "import localqueue": "{folder}/legacy.db",
    "copy": "{url} sqlite:///{folder}/other.db",
    "token create": "ann --scope=*",
    "token revoke": "{token}",
    "namespace quota": "team --queues=5",
    "lower-fences": "settings",
    "prune-functions": "{postgres}",
    "demo": "--messages=4 --workers=3",
}
NOT_HERE = {
    "import localqueue": "needs a file of localqueue: tests/surfaces/localqueue/test_legacy_import.py",
    "demo": "tests/cli/test_demo.py",
    "job retry": "needs a dead letter: tests/cli/test_job.py",
    "localqueue queue requeue-dead": "needs a dead letter: tests/cli/test_localqueue.py",
    **dict.fromkeys(
        ("queue exec", "lock run", "leader run", "schedule run", "worker run", "serve", "mcp"), "tests/cli/test_interrupted_commands.py"
    ),
}
BY_ARGUMENT = ("restore", "copy", "prune-functions", "schedule next", "tasks", "import file", "completion")


def leaves(command: Any, path: str) -> Iterator[tuple[str, Any]]:
    if hasattr(command, "commands"):
        for name, part in command.commands.items():
            yield from leaves(part, f"{path} {name}")
    else:
        yield path, command


ALL = {path: command for name in COMMANDS for path, command in leaves(load(name), name)}


def has_json(command: Any) -> bool:
    return any("--json" in param.opts for param in command.params)


def test_every_command_has_json() -> None:
    assert {path for path, command in ALL.items() if not has_json(command)} == set()


def test_control_a_command_without_json_would_be_found() -> None:
    bare = typer.Typer()
    bare.command("bare")(lambda: None)
    bare.command("other")(lambda: None)
    assert [path for path, command in leaves(typer.main.get_command(bare), "x") if not has_json(command)] == ["x bare", "x other"]


def test_no_line_of_the_list_of_commands_is_cut() -> None:
    assert "..." not in holdfast("--help", COLUMNS="80").stdout.partition("Commands:")[2]


@pytest.fixture
def facts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """A store with something of everything, and what commands are to name in it."""
    url = f"sqlite:///{tmp_path}/s.db"
    with ControlPlaneClient(url) as client:
        mail = Queue[int].create("mail", client=client)
        mail.put(1)
        claim = mail.claim(lease_s=600)
        message = mail.put(2)
        Schedule("nightly", "every 60 s", ("mail", 1), client=client).save()
        Lock("report", client=client, lease_s=600).acquire()
    assert claim is not None
    holdfast("dict", "put", "settings", "mode", "1", f"--url={url}")
    token = json.decode(holdfast("token", "create", "bob", "--scope=*", f"--url={url}", "--json").stdout)["id"]
    holdfast("export", f"{tmp_path}/exported.ndjson", f"--url={url}")
    (tmp_path / "every_command_app.py").write_text("from holdfast import Tasks\napp = Tasks('app')\n@app.task\ndef send(): ...\n")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    named = {"claim": claim.claim_id, "claimed": claim.id, "held": str(claim.token), "id": str(message), "token": token}
    return {"url": url, "folder": str(tmp_path), "postgres": "", **named}


@pytest.mark.parametrize("path", sorted(path for path, command in ALL.items() if has_json(command) and path not in NOT_HERE))
def test_what_json_prints_can_be_read(path: str, facts: dict[str, str]) -> None:
    if path == "prune-functions":
        facts["postgres"] = own_postgres_url()
        with ControlPlaneClient(facts["postgres"]) as client:
            Queue.create("mail", client=client)
    if path == "copy":
        for command in ("lock break report --reason=x --yes", f"queue release {facts['claim']}"):
            holdfast(*command.split(), f"--url={facts['url']}")
    arguments = [part.format(**facts).replace("_60_s", " 60 s") for part in ARGUMENTS.get(path, "").split()]
    where = [] if path in BY_ARGUMENT or " config " in path or " retry " in path else [f"--url={facts['url']}"]
    if path == "import file":
        where = [f"--url=sqlite:///{facts['folder']}/new.db"]
    if path == "schedule sync":
        where = [f"--url={facts['url']}"]
    ran = holdfast(*path.split(), *arguments, *where, "--json")
    assert ran.exit_code in (0, 1 if path == "doctor" else 0, 3 if path == "leader show" else 0), ran.stderr
    for line in ran.stdout.splitlines():
        json.decode(line)
    assert ran.stdout or path in ("queue watch", "dict watch", "watch", "localqueue config init", "localqueue config set")


def run(*arguments: str) -> int:
    return subprocess.run([*COMMAND, *arguments], capture_output=True, check=False).returncode


def signalled(url: str, number: int) -> int:
    """The exit code of a command that waits, as a shell tells it."""
    arguments = [*COMMAND, "queue", "watch", "mail", "--snapshot", f"--url={url}"]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.send_signal(number)
        code = process.wait(60)
    return code if code >= 0 else 128 - code


def test_each_documented_exit_code_is_one_that_a_command_ends_with(facts: dict[str, str]) -> None:
    url = f"--url={facts['url']}"
    codes = {
        0: holdfast("queue", "ls", url).exit_code,
        1: holdfast("queue", "ls", "--url=sqlite:///absent.db").exit_code,
        2: holdfast("queue", "ls", "--url=nope://x").exit_code,
        3: holdfast("dict", "get", "settings", "absent", url).exit_code,
        4: holdfast("dict", "cas", "settings", "mode", "2", "--expected=7", url).exit_code,
        130: signalled(facts["url"], signal.SIGINT),
        143: signalled(facts["url"], signal.SIGTERM),
        127: run("lock", "run", "free", url, "--", "no-such-program"),
        137: run("lock", "run", "free", url, "--", "sh", "-c", "kill -9 $$"),
        7: run("lock", "run", "free", url, "--", "sh", "-c", "exit 7"),
    }
    assert {code: found for code, found in codes.items() if code != found} == {}
    section = PAGE.read_text().partition("## Exit codes")[2].partition("## ")[0]
    documented = {int(code) for code in re.findall(r"^\| (\d+) \|", section, re.MULTILINE)}
    assert documented <= set(codes)


ENDINGS = {
    ("queue claim", 3): "queue claim empty",
    ("queue peek", 3): "queue peek empty",
    ("queue explain", 3): "queue explain mail absent",
    ("queue group", 3): "queue group mail absent",
    ("queue redrive", 3): "queue redrive mail absent",
    ("queue cancel", 3): "queue cancel mail absent",
    ("queue ack", 4): "queue ack {lost}",
    ("queue release", 4): "queue release {lost}",
    ("dict ls", 3): "dict ls absent",
    ("dict get", 3): "dict get settings absent",
    ("dict cas", 4): "dict cas settings mode 2 --expected=7",
    ("dict delete", 3): "dict delete settings absent",
    ("job show", 3): "job show absent --queue=mail",
    ("job cancel", 3): "job cancel absent --queue=mail",
    ("job retry", 3): "job retry {id} --queue=mail",
    ("job send", 3): "job send absent approved --queue=mail",
    ("lock show", 3): "lock show free",
    ("lock break", 3): "lock break free --reason=x --yes",
    ("lock run", 3): "lock run report --wait-s=0 true",
    ("leader show", 3): "leader show nobody",
    ("doctor", 1): "doctor",
}
"""What ends with a code that the help of the command names."""
ELSEWHERE = {
    ("lock run", 4): "test_a_break_of_the_lock_is_exit_code_four_and_json_says_that_it_was_lost in tests/cli/test_leases.py",
    ("check", 1): "tests/cli/test_backup.py",
    ("localqueue queue process", 0): "it is the code of success",
    ("localqueue queue exec", 0): "it is the code of success",
}


def test_each_exit_code_that_a_help_names_is_tested() -> None:
    named = {
        (path, int(code))
        for path, command in ALL.items()
        for code in re.findall(r"[Ee]xits? with[^.:;]*?(\d+)", f"{command.help} {command.callback.__doc__}")
    }
    assert named | {("lock run", 4)} == set(ENDINGS) | set(ELSEWHERE)


@pytest.mark.parametrize("ending", sorted(ENDINGS), ids=str)
def test_a_command_ends_with_the_code_that_its_help_names(ending: tuple[str, int], facts: dict[str, str]) -> None:
    holdfast("queue", "ack", facts["claim"], f"--url={facts['url']}")
    arguments = ENDINGS[ending].format(lost=facts["claim"], **facts).split()
    words = ending[0].count(" ") + 1
    assert holdfast(*arguments[:words], f"--url={facts['url']}", *arguments[words:]).exit_code == ending[1]


def test_a_command_whose_output_no_program_reads_any_more_ends_without_a_word(facts: dict[str, str]) -> None:
    read_from, write_to = os.pipe()
    os.close(read_from)
    arguments = [*COMMAND, "queue", "ls", f"--url={facts['url']}"]
    ran = subprocess.run(arguments, check=False, stdout=write_to, stderr=subprocess.PIPE, text=True)
    os.close(write_to)
    assert (ran.returncode, ran.stderr) == (1, "")


def test_a_claim_that_cannot_be_printed_is_given_back(facts: dict[str, str]) -> None:
    arguments = " ".join([*(f"'{part}'" for part in COMMAND), "queue", "claim", "mail", "-n1", f"--url={facts['url']}"])
    ended = subprocess.run(["bash", "-c", f"{arguments} > /dev/full"], check=False, capture_output=True).returncode  # noqa: S607 - bash
    assert ended != 0
    with ControlPlaneClient(facts["url"]) as client:
        assert Queue.from_name("mail", client=client).stats().ready == 1

"""The throw-away PostgreSQL."""

import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import psycopg
import pytest

from holdfast.testing.servers import postgres
from holdfast.testing.servers.postgres import PostgresServer

ORPHANED = """
import os, signal
from holdfast.testing.servers.postgres import PostgresServer
server = PostgresServer()
print(server._program.log.parent, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_new_server_answers_at_its_url_and_is_gone_with_the_block(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HOLDFAST_TEST_PG_URL", raising=False)
    with postgres({"work_mem": "5MB"}) as url, psycopg.connect(url) as connection:
        assert connection.execute("show work_mem").fetchone() == ("5MB",)
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(url)


def test_a_restarted_server_keeps_its_place_and_its_data() -> None:
    with PostgresServer() as server:
        with psycopg.connect(server.url) as connection:
            connection.execute("create table kept ()")
        server.restart()
        with psycopg.connect(server.url) as connection:
            assert connection.execute("select count(*) from kept").fetchone() == (0,)


def test_a_url_of_the_environment_is_used_instead(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOLDFAST_TEST_PG_URL", "postgresql://mine/tests")
    with postgres() as url:
        assert url == "postgresql://mine/tests"


def test_a_server_ends_with_the_process_that_started_it_even_if_that_is_killed() -> None:
    killed = subprocess.run([sys.executable, "-c", ORPHANED], capture_output=True, text=True, check=False)
    folder = Path(killed.stdout.strip())
    assert (killed.returncode, folder.name[:9]) == (-signal.SIGKILL, "holdfast-")
    # It removes this file as the last thing it does.
    while (folder / "server" / "data" / "postmaster.pid").exists():
        time.sleep(0.01)
    shutil.rmtree(folder)

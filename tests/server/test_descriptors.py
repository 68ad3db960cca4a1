"""A server process without file descriptors says so, and goes on once it has some again."""

import resource
import socket
from pathlib import Path

import urllib3

from tests.server.processes import PATIENCE_S, Process
from tests.server.test_routes import until


def is_logged(process: Process, words: str) -> bool:
    return any(words in line for line in process.log)


def lives(process: Process) -> bool:
    return urllib3.request("GET", f"{process.url}/healthz", retries=False, timeout=PATIENCE_S).status == 200


def test_running_out_of_descriptors_is_logged_and_ends_with_the_connections(tmp_path: Path) -> None:
    with Process(tmp_path / "s.db") as process:
        assert lives(process)
        used = len(list(Path(f"/proc/{process.pid}/fd").iterdir()))
        resource.prlimit(process.pid, resource.RLIMIT_NOFILE, (used + 10, used + 10))
        connections = [socket.create_connection(("127.0.0.1", process.port), PATIENCE_S) for _ in range(20)]
        until(lambda: is_logged(process, "no file descriptor is left"))
        for connection in connections:
            connection.close()
        until(lambda: is_logged(process, "there are file descriptors again"))
        assert lives(process)

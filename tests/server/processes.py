"""`holdfast serve` in a process of its own, that a test may kill and start again on the same port and file."""

import os
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Self

PATIENCE_S = 60.0


class Process:
    """One server process after another. What is `broken` is a statement that each runs before it serves, for a negative control."""

    def __init__(self, store: Path | str, *options: str, port: int | None = None, broken: str = "") -> None:
        self.port = port or free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._command = [sys.executable, "-c", f"{broken}\nfrom holdfast.cli import main; main()", "serve"]
        self._command.append(f"--url={store}" if isinstance(store, str) else f"--url=sqlite:///{store}")
        self._command += [f"--port={self.port}", *options]
        self.log: list[str] = []
        self._logged = threading.Condition()
        self._process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        """Start it, and return when it listens."""
        self._process = subprocess.Popen(self._command, stderr=subprocess.PIPE, text=True)
        listens = threading.Event()
        threading.Thread(target=self._read, args=(self._process, listens), daemon=True).start()
        if not listens.wait(PATIENCE_S):
            self.kill()
            raise AssertionError(f"the server did not start: {self.log}")

    def _read(self, process: "subprocess.Popen[str]", listens: threading.Event) -> None:
        assert process.stderr is not None
        for line in process.stderr:
            with self._logged:
                self.log.append(line)
                self._logged.notify_all()
            if re.search(r"\bserving .* at ", line):
                listens.set()
        process.stderr.close()

    def wait_for_log(self, condition: Callable[[list[str]], bool]) -> list[str]:
        """The log, as soon as the condition holds for it."""
        with self._logged:
            assert self._logged.wait_for(lambda: condition(self.log), PATIENCE_S), self.log
            return self.log.copy()

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def kill(self) -> None:
        """Kill it where it stands."""
        self._end(signal.SIGKILL)

    def stop(self) -> int:
        """Ask it to end; answer its exit code."""
        return self._end(signal.SIGTERM)

    def _end(self, number: signal.Signals) -> int:
        assert self._process is not None
        os.kill(self.pid, number)
        return self._process.wait(PATIENCE_S)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is not None and self._process.poll() is None:
            self.kill()


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port

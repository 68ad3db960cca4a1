"""Another user of this machine, who owns a store's folder and puts there what is not the store's; and the command line, run by us.

Where we are root the other user is `nobody`. Elsewhere it is ourselves: then only what no user may do is tried.
"""

import ctypes
import hashlib
import os
import pwd
import signal
import socket
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import holdfast

IS_ROOT = os.geteuid() == 0
USER = pwd.getpwnam("nobody") if IS_ROOT else pwd.getpwuid(os.geteuid())
SOURCE = Path(holdfast.__file__).parents[1]

SIDE_FILES = {"sqlite": ["store-turns", "store-wake"], "lmdb": ["store/data.mdb-turns", "store/data.mdb-wake"]}
ENGINE_FILES = {
    "sqlite": ["store", "store-wal", "store-shm", "store-journal"],
    "lmdb": ["store", "store/data.mdb", "store/lock.mdb"],
}
NAMES = {scheme: SIDE_FILES[scheme] + (ENGINE_FILES[scheme] if IS_ROOT else []) for scheme in SIDE_FILES}
"""What is opened by name beside a store; who is not root may lead an engine's own names where they like."""

TARGETS = ("shadow", "empty", "database", "folder", "nothing")
LINGER = 5_000
"""How many looks long a link stays where a file was made."""

RENAME_EXCHANGE = 2
AT_FDCWD = -100

Snapshot = dict[str, tuple[object, ...]]


@contextmanager
def grounds() -> Iterator["Grounds"]:
    """Where it happens; not below pytest's folder, which is closed to other users."""
    with TemporaryDirectory(prefix="holdfast-intruder-") as folder:
        yield Grounds(Path(folder))


class Grounds:
    """A folder of the other user's for a store, and precious files of ours in a folder that is closed to others."""

    def __init__(self, folder: Path) -> None:
        folder.chmod(0o755)
        self.box = folder / "box"
        self.box.mkdir()
        os.chown(self.box, USER.pw_uid, USER.pw_gid)
        self.precious = folder / "precious"
        _fill(self.precious)
        self.precious.chmod(0o700)

    def url(self, scheme: str) -> str:
        return f"{scheme}:///{self.box}/store"

    def go_deeper(self) -> None:
        """Have the store in a folder whose own folder is the other user's."""
        self.box /= "inner"
        self.box.mkdir()
        os.chown(self.box, USER.pw_uid, USER.pw_gid)

    def snapshot(self) -> Snapshot:
        """All of what is precious, and its folder."""
        return {str(path): _seen(path) for path in [self.precious, *sorted(self.precious.rglob("*"))]}


def _fill(precious: Path) -> None:
    (precious / "folder").mkdir(parents=True)
    for path in (precious / "shadow", precious / "folder" / "file", precious / "folder" / "1-0123456789ab"):
        path.write_text("root:secret\n")
        path.chmod(0o600)
    (precious / "empty").touch(mode=0o600)
    with sqlite3.connect(precious / "database") as database:
        database.execute("create table theirs (a)")
    database.close()
    here = Path.cwd()
    os.chdir(precious / "folder")  # A socket's address is short.
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as gone:
        gone.bind("2-0123456789ab")
    os.chdir(here)


def _seen(path: Path) -> tuple[object, ...]:
    status = path.lstat()
    content = hashlib.sha256(path.read_bytes()).hexdigest() if stat.S_ISREG(status.st_mode) else ""
    return status.st_ino, status.st_mode, status.st_uid, status.st_gid, status.st_size, content


def place_link(path: Path, target: Path) -> None:
    """Let a name lead elsewhere, as a link of the other user's."""
    path.parent.mkdir(exist_ok=True)
    os.chown(path.parent, USER.pw_uid, USER.pw_gid)
    path.symlink_to(target)
    os.chown(path, USER.pw_uid, USER.pw_gid, follow_symlinks=False)


def place_hard_link(path: Path, target: Path) -> None:
    """Another name for a file of ours: as on a kernel that lets everyone make them."""
    path.parent.mkdir(exist_ok=True)
    os.chown(path.parent, USER.pw_uid, USER.pw_gid)
    path.hardlink_to(target)


@cache
def python_for_all() -> str:
    """An interpreter that the other user can run too, where there is one: else root's commands are refused."""
    for python in (sys.executable, f"/usr/bin/python3.{sys.version_info.minor}"):
        probe = ["/bin/sh", "-c", 'exec "$0" -c "import sqlite3, lmdb, typer, holdfast"', python]
        if not subprocess.run(probe, env=_environment(), user=USER.pw_uid, cwd="/", capture_output=True, check=False).returncode:
            return python
    return sys.executable


def command_line(*arguments: str) -> list[str]:
    """How the command line is called."""
    return [python_for_all(), "-c", "from holdfast.cli import main; main()", *arguments]


def holdfast_as_us(*arguments: str) -> "subprocess.CompletedProcess[str]":
    """Run the command line as root, or as whoever we are."""
    return subprocess.run(command_line(*arguments), env=_environment(), capture_output=True, text=True, timeout=60, check=False)


def serve_for_a_moment(url: str) -> None:
    """Start a server, and end it once it serves or has failed."""
    command = command_line("serve", "--port=0", f"--url={url}")
    with subprocess.Popen(command, env=_environment(), stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr is not None
        for line in server.stderr:
            if "Application startup complete" in line or "cannot reach its store" in line:
                break
        server.send_signal(signal.SIGTERM)
        server.stderr.read()


def _environment() -> dict[str, str]:
    packages = [path for path in sys.path if path.endswith("-packages")]
    return {"PATH": os.environ["PATH"], "PYTHONPATH": os.pathsep.join([str(SOURCE), *packages]), "HOME": "/nonexistent", "USER": "root"}


@contextmanager
def racing(action: Callable[[], None]) -> Iterator[None]:
    """Let the other user do something over and over, in a process of their own, while the block runs."""
    child = os.fork()
    if not child:
        _race(action)
    try:
        yield
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def _race(action: Callable[[], None]) -> None:
    if IS_ROOT:
        os.setgroups([])
        os.setgid(USER.pw_gid)
        os.setuid(USER.pw_uid)
    while True:
        try:
            action()
        except OSError:
            continue
        except BaseException:  # noqa: BLE001 - a forked test must never go on as one
            os._exit(1)


def swap(path: Path, target: Path) -> Callable[[], None]:
    """Exchange what is at a path for a link, and back, each in one step."""
    aside = path.with_name(f"{path.name}-aside")

    def action() -> None:
        if not os.path.islink(aside):  # noqa: PTH114 - this is a race
            os.symlink(target, aside)  # noqa: PTH211 - as above
        _exchange(bytes(aside), bytes(path))
        _exchange(bytes(aside), bytes(path))

    return action


def swap_when_made(path: Path, target: Path) -> Callable[[], None]:
    """Remove a name, and put a link in its place as soon as somebody made it again."""
    aside = path.with_name(f"{path.name}-aside")

    def action() -> None:
        if not os.path.islink(aside):  # noqa: PTH114 - this is a race
            os.symlink(target, aside)  # noqa: PTH211 - as above
        if os.path.islink(path):  # noqa: PTH114 - as above
            os.unlink(path)  # noqa: PTH108 - as above
        elif os.path.lexists(path):
            os.rename(aside, path)  # noqa: PTH104 - as above
            for _ in range(LINGER):
                os.path.lexists(path)

    return action


def _exchange(one: bytes, other: bytes) -> None:
    if _libc.renameat2(AT_FDCWD, one, AT_FDCWD, other, RENAME_EXCHANGE):
        raise OSError(ctypes.get_errno(), "renameat2")


_libc = ctypes.CDLL(None, use_errno=True)

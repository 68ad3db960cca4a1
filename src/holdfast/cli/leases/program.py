"""Runs a program for as long as a lease is held."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from holdfast.cli.leases import guardian

if TYPE_CHECKING:
    from holdfast._sync.handles.leases import HeldLease

PASSED_ON: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
RENEWALS_SHOWN: Final = 20
"""How often per lease the guardian is told how long it can be trusted."""


def run_under(
    held: "HeldLease[Any]", lease_s: float, command: Sequence[str], environment: Mapping[str, str], *, prints_to: int
) -> int | None:
    """Run a program until it ends or the lease is lost; return its exit code, None if it had to be killed because of the lease.

    What it prints goes to the descriptor `prints_to`.
    """
    with _guardian(held, command, environment, prints_to) as process:
        ended = threading.Event()
        teller = threading.Thread(
            target=_tell, args=(process, held, lease_s / RENEWALS_SHOWN, ended), name="holdfast-guardian", daemon=True
        )
        teller.start()
        try:
            with _passing_on(process):
                said = process.stdout.read() if process.stdout else b""
                code = process.wait()
        finally:
            ended.set()
            teller.join()
    return None if b"lost" in said or (code < 0 and held.lost) else guardian.code_of(code)


@contextlib.contextmanager
def _guardian(
    held: "HeldLease[Any]", command: Sequence[str], environment: Mapping[str, str], prints_to: int
) -> Iterator["subprocess.Popen[bytes]"]:
    """The process that runs the program and kills it in time; it dies, and the program with it, when its input is closed."""
    inherited = [os.dup(sys.__stdin__.fileno() if sys.__stdin__ else 0), os.dup(prints_to)]
    until = str(guardian.now_s() + held.trusted_for_s)
    arguments = [sys.executable, "-I", "-S", str(Path(guardian.__file__)), until, *map(str, inherited), *command]
    process = subprocess.Popen(  # noqa: S603 - the caller's
        arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, pass_fds=inherited, env={**os.environ, **environment}
    )
    for descriptor in inherited:
        os.close(descriptor)
    try:
        yield process
    finally:
        if process.stdin:
            with contextlib.suppress(OSError):
                process.stdin.close()
        process.wait()
        if process.stdout:
            process.stdout.close()


def _tell(process: "subprocess.Popen[bytes]", held: "HeldLease[Any]", every_s: float, ended: threading.Event) -> None:
    """Tell the guardian again and again how long the lease can be trusted, which the renewals prolong."""
    while not ended.wait(every_s):
        if held.lost:
            _say(process, f"until {guardian.now_s()}")
            return
        _say(process, f"until {guardian.now_s() + held.trusted_for_s}")


def _say(process: "subprocess.Popen[bytes]", line: str) -> None:
    with contextlib.suppress(OSError, ValueError):  # The program has ended.
        os.write(process.stdin.fileno(), f"{line}\n".encode())  # type: ignore[union-attr]  # it is a pipe


@contextlib.contextmanager
def _passing_on(process: "subprocess.Popen[bytes]") -> Iterator[None]:
    """Pass signals on to the program; it decides what follows from them."""
    before = {number: signal.signal(number, lambda number, _: _say(process, f"signal {int(number)}")) for number in PASSED_ON}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)

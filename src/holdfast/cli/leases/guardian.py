"""A process that runs a program for as long as a lease can be trusted; it needs the standard library only.

Its standard input tells it `until S`, the moment of the machine's clock up to which the lease is trusted, and `signal N`, a signal to pass
on. If no later moment comes in time, or the input ends because the process that renews the lease is gone, the program is killed. So a
program ends even if the process that holds its lease is stopped or killed.
"""

import contextlib
import ctypes
import os
import select
import signal
import subprocess
import sys
import time
from typing import Any

DEATH_SIGNAL = 1
"""PR_SET_PDEATHSIG of prctl(2)."""

LOST = 76
"""Its exit code when the program had to be killed; a program may use it too, so `lost` is also printed."""

NOT_FOUND = 127
NOT_EXECUTABLE = 126
"""What a shell exits with where there is no such program, or none that can be executed."""


def now_s() -> float:
    """The clock of the machine, which goes on while it sleeps."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


def die_with_parent() -> None:
    """Have the program killed if this process is: nothing would watch it."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(DEATH_SIGNAL, signal.SIGKILL)


def watch(program: "subprocess.Popen[Any]", until: float) -> int:
    """Wait until the program ends, or kill it when its time is up; return the exit code."""
    told, rest = sys.stdin.fileno(), b""
    ended = os.pidfd_open(program.pid) if sys.platform == "linux" else None
    while True:
        waits_s = max(0.0, until - now_s())
        readable, _, _ = select.select([told] + ([] if ended is None else [ended]), [], [], min(waits_s, 0.2 if ended is None else 3_600.0))
        if program.poll() is not None:
            return code_of(program.returncode)
        if now_s() >= until:
            return killed(program)
        if told not in readable:
            continue
        given = os.read(told, 65_536)
        if not given:
            return killed(program)
        *lines, rest = (rest + given).split(b"\n")
        for line in lines:
            word, _, number = line.partition(b" ")
            if word == b"until":
                until = float(number)
            else:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(program.pid, int(number))


def killed(program: "subprocess.Popen[Any]") -> int:
    """Kill the program and all that is in its process group."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(program.pid, signal.SIGKILL)
    program.wait()
    os.write(sys.stdout.fileno(), b"lost\n")
    return LOST


def code_of(returned: int) -> int:
    """The exit code as a shell has it: 128 and the number of the signal that ended it."""
    return 128 - returned if returned < 0 else returned


def main() -> int:
    """Run the program that the arguments name: the moment, the descriptors of its input and output, then the command."""
    until, read_from, write_to, *command = sys.argv[1:]
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        # The process that holds the lease gets them too, and passes on what the program is to know.
        signal.signal(number, signal.SIG_IGN)
    try:
        program = subprocess.Popen(  # noqa: S603 - the caller's
            command,
            stdin=int(read_from),
            stdout=int(write_to),
            process_group=0,
            preexec_fn=begin,  # noqa: PLW1509 - this process has one thread
        )
    except OSError as error:
        sys.stderr.write(f"{command[0]}: {error.strerror}\n")
        return NOT_FOUND if isinstance(error, FileNotFoundError) else NOT_EXECUTABLE
    os.close(int(read_from))
    os.close(int(write_to))
    return watch(program, float(until))


def begin() -> None:
    """What the new process does before it becomes the program."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    die_with_parent()


if __name__ == "__main__":
    sys.exit(main())

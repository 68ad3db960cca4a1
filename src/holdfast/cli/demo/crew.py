"""The processes of the demo: started, signalled, listened to and, whatever happens, reaped."""

import queue
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from typing import IO, Literal, Self

from msgspec import Struct, json

from holdfast.cli.demo.parts import ProducerPart, Report, WorkerPart

FAREWELL_S = 5.0
"""How long processes may take to end by themselves before they are killed."""


class Member:
    """One process of the crew, and the thread that reads its reports."""

    def __init__(self, name: str, process: subprocess.Popen[bytes], inbox: "queue.SimpleQueue[Heard]") -> None:
        self.name = name
        self.process = process
        self._inbox = inbox
        self.reader: threading.Thread = threading.Thread(target=self._read, name=f"reports of {name}", daemon=True)
        self.reader.start()

    def _read(self) -> None:
        for line in output_of(self.process):
            self._inbox.put(Heard(self, json.decode(line, type=Report)))
        self._inbox.put(Heard(self, None))

    def send(self, line: bytes) -> None:
        """Give the process a line to read; one that is gone reads nothing."""
        with suppress(BrokenPipeError):
            input_of(self.process).write(line + b"\n")

    def dismiss(self) -> None:
        """End its input, at which it ends by itself."""
        input_of(self.process).close()


class Heard(Struct, frozen=True):
    """A report and who made it; None when its process has ended."""

    member: Member
    report: Report | None


class Crew:
    """All processes of one demo; leaving it kills and reaps those still there."""

    def __init__(self) -> None:
        self._members: list[Member] = []
        self._inbox: queue.SimpleQueue[Heard] = queue.SimpleQueue()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for member in self._members:
            # Reaches a paused one too.
            member.process.kill()
        for member in self._members:
            member.process.wait()
            member.reader.join()
            input_of(member.process).close()
            output_of(member.process).close()

    def start(self, name: str, module: Literal["producer", "worker"], part: ProducerPart | WorkerPart) -> Member:
        """Start a process; its part is the first line it reads."""
        process = subprocess.Popen(  # noqa: S603 - our own module, by the interpreter that runs us
            [sys.executable, "-P", "-m", f"holdfast.cli.demo.{module}"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
            # A group of its own: Ctrl-C reaches us alone, and if we are killed, the kernel ends one that is paused (SIGHUP, SIGCONT).
            process_group=0,
        )
        member = Member(name, process, self._inbox)
        self._members.append(member)
        member.send(json.encode(part))
        return member

    def listen(self, timeout_s: float) -> Heard | None:
        """The next report, or None if there is none in time."""
        try:
            return self._inbox.get(timeout=timeout_s)
        except queue.Empty:
            return None

    def kill(self, member: Member) -> None:
        """End the process where it stands."""
        member.process.send_signal(signal.SIGKILL)

    def pause(self, member: Member) -> None:
        """Stop the process where it stands."""
        member.process.send_signal(signal.SIGSTOP)

    def wake(self, member: Member) -> None:
        """Continue a paused process."""
        member.process.send_signal(signal.SIGCONT)
        member.send(b"go on")

    def dismiss(self) -> None:
        """Let everyone end by themselves, for a while."""
        for member in self._members:
            member.dismiss()
        deadline = time.monotonic() + FAREWELL_S
        for member in self._members:
            with suppress(subprocess.TimeoutExpired):
                member.process.wait(max(0.0, deadline - time.monotonic()))


def input_of(process: subprocess.Popen[bytes]) -> IO[bytes]:
    """Where the process reads its orders."""
    if process.stdin is None:
        raise ValueError("the process was started without a pipe to write to")
    return process.stdin


def output_of(process: subprocess.Popen[bytes]) -> IO[bytes]:
    """Where the process writes its reports."""
    if process.stdout is None:
        raise ValueError("the process was started without a pipe to read from")
    return process.stdout

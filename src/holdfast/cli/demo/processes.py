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

from holdfast.cli.demo.protocol import ProducerTask, Report, WorkerTask

EXIT_WAIT_S = 5.0
"""How long processes may take to end by themselves before they are killed."""


class Child:
    """One process of the processes, and the thread that reads its reports."""

    def __init__(self, name: str, process: subprocess.Popen[bytes], inbox: "queue.SimpleQueue[Received]") -> None:
        self.name = name
        self.process = process
        self._inbox = inbox
        self.reader: threading.Thread = threading.Thread(target=self._read, name=f"reports of {name}", daemon=True)
        self.reader.start()

    def _read(self) -> None:
        for line in output_of(self.process):
            self._inbox.put(Received(self, json.decode(line, type=Report)))
        self._inbox.put(Received(self, None))

    def send(self, line: bytes) -> None:
        """Give the process a line to read; one that is gone reads nothing."""
        with suppress(BrokenPipeError):
            input_of(self.process).write(line + b"\n")

    def dismiss(self) -> None:
        """End its input, at which it ends by itself."""
        input_of(self.process).close()


class Received(Struct, frozen=True):
    """A report and who made it; None when its process has ended."""

    child: Child
    report: Report | None


class Processes:
    """All processes of one demo; leaving it kills and reaps those still there."""

    def __init__(self) -> None:
        self._children: list[Child] = []
        self._inbox: queue.SimpleQueue[Received] = queue.SimpleQueue()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for child in self._children:
            # Reaches a paused one too.
            child.process.kill()
        for child in self._children:
            child.process.wait()
            child.reader.join()
            input_of(child.process).close()
            output_of(child.process).close()

    def start(self, name: str, module: Literal["producer", "worker"], task: ProducerTask | WorkerTask) -> Child:
        """Start a process; its task is the first line it reads."""
        process = subprocess.Popen(  # noqa: S603 - our own module, by the interpreter that runs us
            [sys.executable, "-P", "-m", f"holdfast.cli.demo.{module}"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
            # A group of its own: Ctrl-C reaches us alone, and if we are killed, the kernel ends one that is paused (SIGHUP, SIGCONT).
            process_group=0,
        )
        child = Child(name, process, self._inbox)
        self._children.append(child)
        child.send(json.encode(task))
        return child

    def listen(self, timeout_s: float) -> Received | None:
        """The next report, or None if there is none in time."""
        try:
            return self._inbox.get(timeout=timeout_s)
        except queue.Empty:
            return None

    def kill(self, child: Child) -> None:
        """End the process where it stands."""
        child.process.send_signal(signal.SIGKILL)

    def pause(self, child: Child) -> None:
        """Stop the process where it stands."""
        child.process.send_signal(signal.SIGSTOP)

    def wake(self, child: Child) -> None:
        """Continue a paused process."""
        child.process.send_signal(signal.SIGCONT)
        child.send(b"go on")

    def dismiss(self) -> None:
        """Let everyone end by themselves, for a while."""
        for child in self._children:
            child.dismiss()
        deadline = time.monotonic() + EXIT_WAIT_S
        for child in self._children:
            with suppress(subprocess.TimeoutExpired):
                child.process.wait(max(0.0, deadline - time.monotonic()))


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

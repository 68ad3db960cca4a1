"""Other processes that a test talks to, line by line."""

import signal
import subprocess
import sys
from pathlib import Path
from typing import Self

_FORKING = """
import os, signal

def in_a_child(action):
    reader, writer = os.pipe()
    if not os.fork():
        try:
            answer = action()
        except BaseException as error:
            answer = type(error).__name__
        os.write(writer, str(answer).encode())
        os._exit(0)
    os.close(writer)
    os.wait()
    return os.read(reader, 100).decode()

def fork_a_child_that_stays():
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        os.write(writer, b"!")
        signal.pause()
    os.read(reader, 1)
    return child
"""

_ANSWER_LINES = """
import sys
for line in sys.stdin:
    try:
        answer = eval(line)
    except (Exception, KeyboardInterrupt) as error:
        answer = type(error).__name__ + ": " + str(error)
    print(answer, flush=True)
"""


class Program:
    """A Python process that runs `setup`, with `path` and the forks above to hand, and then answers the expressions it is sent."""

    def __init__(self, setup: str, path: Path) -> None:
        source = f"path = {str(path)!r}\n{_FORKING}\n{setup}\n{_ANSWER_LINES}"
        self._process = subprocess.Popen([sys.executable, "-c", source], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.pid = self._process.pid

    def __enter__(self) -> Self:
        assert self.ask("'ready'") == "ready"
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def say(self, expression: str) -> None:
        assert self._process.stdin
        print(expression, file=self._process.stdin, flush=True)

    def hear(self) -> str:
        assert self._process.stdout
        return self._process.stdout.readline().rstrip("\n")

    def ask(self, expression: str) -> str:
        self.say(expression)
        return self.hear()

    def ask_until(self, answer: str, expression: str) -> None:
        while self.ask(expression) != answer:
            pass

    def send(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe and not pipe.closed:
                pipe.close()

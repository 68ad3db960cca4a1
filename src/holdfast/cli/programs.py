"""Programs that a command runs for a message: the value on their standard input, a failure with what they said."""

import os
import subprocess
from collections.abc import Mapping, Sequence
from shlex import join
from typing import Any, Final

from msgspec import json

CUT: Final = 500
"""How much of what a program said is kept with its failure."""

NOT_FOUND: Final = 127
"""The exit code of a shell for a program that there is not."""


class CommandFailed(RuntimeError):  # noqa: N818 - what happened
    """A program that ended with another status than 0; what it said is kept with the message."""

    def __init__(self, command: Sequence[str], exit_code: int, stdout: str, stderr: str) -> None:
        self.command = command
        self.exit_code = exit_code
        self.stdout: str = stdout.strip()[:CUT]
        self.stderr: str = stderr.strip()[:CUT]
        super().__init__(f"{join(command)} ended with status {exit_code}{f': {self.stderr}' if self.stderr else ''}")


def run_program(command: Sequence[str], value: Any, environment: Mapping[str, str] | None = None) -> str:
    """Run a program with a value on its standard input, as a line of JSON; return what it printed, or raise `CommandFailed`."""
    given = f"{json.encode(value, enc_hook=str).decode()}\n"
    try:
        ran = subprocess.run(  # noqa: S603 - the caller's
            command, input=given, env={**os.environ, **(environment or {})}, capture_output=True, text=True, errors="replace", check=False
        )
    except FileNotFoundError as error:
        raise CommandFailed(command, NOT_FOUND, "", "command not found") from error
    if ran.returncode:
        raise CommandFailed(command, ran.returncode, ran.stdout, ran.stderr)
    return ran.stdout

"""Runs the Python examples of one page, in order and in one namespace, in the folder where it is started.

    python examples.py page.md

A block of text that follows an example is what the example prints. A block with a title is a file: it is written, and a test file is run
with pytest. The command of a block for the second terminal runs beside those that follow, and is told to stop after the last.
"""

import contextlib
import io
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple

FENCE = re.compile(r"^```(?P<language>\w*)(?P<options>[^\n]*)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)
TITLE = re.compile(r'title="([^"]+)"')


SECOND_TERMINAL = "second terminal"


class Example(NamedTuple):
    """One block of Python, and what it prints where the page says so; or the command of a second terminal."""

    line: int
    code: str
    title: str | None
    output: str | None


def examples(page: str) -> Iterator[Example]:
    """The blocks of Python of a page."""
    fences = list(FENCE.finditer(page))
    for fence, following in zip_longest(fences, fences[1:]):
        title = TITLE.search(fence["options"]) if fence is not None else None
        if fence is None or (fence["language"] != "python" and (title is None or title[1] != SECOND_TERMINAL)):
            continue
        output = following["body"] if following is not None and following["language"] == "text" else None
        yield Example(page.count("\n", 0, fence.start("body")), fence["body"], title[1] if title else None, output)


@contextlib.contextmanager
def second_terminal(command: str) -> Iterator[None]:
    """Run a command of this environment; it has to end by itself when it is told to stop."""
    settings = {**os.environ, "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])}
    with subprocess.Popen(shlex.split(command), env=settings) as running:
        try:
            yield
        finally:
            running.terminate()
        if running.wait(60) != 0:
            raise SystemExit(f"{command.strip()} ended with {running.returncode}")


def run(path: Path) -> None:
    """Run every example of a page, and stop at the first that fails or prints something else."""
    sys.path.insert(0, "")  # Examples import the files of their page.
    with contextlib.ExitStack() as beside:
        run_examples(path, beside)


def run_examples(path: Path, beside: contextlib.ExitStack) -> None:
    """Run every example in one namespace; what runs beside them ends later."""
    namespace: dict[str, Any] = {"__name__": "__main__"}
    for example in examples(path.read_text()):
        if example.title == SECOND_TERMINAL:
            beside.enter_context(second_terminal(example.code))
        elif example.title is not None:
            Path(example.title).write_text(example.code)
            if example.title.startswith("test_"):
                # Loading every plugin that is installed takes ten times as long as the run.
                settings = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
                plugins = ["-p", "holdfast.testing.plugin", "-p", "anyio"]
                subprocess.run([sys.executable, "-m", "pytest", "-q", "-W", "error", *plugins, example.title], env=settings, check=True)
        else:
            run_example(path, example, namespace)


def run_example(path: Path, example: Example, namespace: dict[str, Any]) -> None:
    """Run one, and compare what it prints."""
    printed = io.StringIO()
    # At its own line, so that a traceback points into the page.
    code = compile("\n" * example.line + example.code, str(path), "exec")
    with contextlib.redirect_stdout(printed):
        exec(code, namespace)  # noqa: S102 - our own page
    if example.output is not None and printed.getvalue() != example.output:
        message = f"{path.name}, line {example.line}: the example printed\n{printed.getvalue()}and the page says\n{example.output}"
        raise SystemExit(message)


if __name__ == "__main__":
    run(Path(sys.argv[1]))

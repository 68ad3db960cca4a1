"""Runs the Python examples of one page, in order and in one namespace, in the folder where it is started.

    python examples.py page.md

A block of text that follows an example is what the example prints. A block with a title is a file: it is written, and a test file is run
with pytest.
"""

import contextlib
import io
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple

FENCE = re.compile(r"^```(?P<language>\w*)(?P<options>[^\n]*)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)
TITLE = re.compile(r'title="([^"]+)"')


class Example(NamedTuple):
    """One block of Python, and what it prints where the page says so."""

    line: int
    code: str
    title: str | None
    output: str | None


def examples(page: str) -> Iterator[Example]:
    """The blocks of Python of a page."""
    fences = list(FENCE.finditer(page))
    for fence, following in zip_longest(fences, fences[1:]):
        if fence is None or fence["language"] != "python":
            continue
        output = following["body"] if following is not None and following["language"] == "text" else None
        title = TITLE.search(fence["options"])
        yield Example(page.count("\n", 0, fence.start("body")), fence["body"], title[1] if title else None, output)


def run(path: Path) -> None:
    """Run every example of a page, and stop at the first that fails or prints something else."""
    sys.path.insert(0, "")  # Examples import the files of their page.
    namespace: dict[str, Any] = {"__name__": "__main__"}
    for example in examples(path.read_text()):
        if example.title is not None:
            Path(example.title).write_text(example.code)
            if example.title.startswith("test_"):
                # Loading every plugin that is installed takes ten times as long as the run.
                settings = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
                plugins = ["-p", "holdfast.testing.plugin", "-p", "anyio"]
                subprocess.run([sys.executable, "-m", "pytest", "-q", "-W", "error", *plugins, example.title], env=settings, check=True)
            continue
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

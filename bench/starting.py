"""What importing costs a program that starts, after it was compiled once."""

import os
import subprocess
import sys
from collections.abc import Iterator

from bench.measure import Figure, Run, compare, timed

PROGRAMS = {
    "import holdfast": "import holdfast",
    "import holdfast.connect": "import holdfast.connect",
    "open a SQLite store": "from holdfast.connect import connect; connect('sqlite:///start.db').close()",
}


def imports(run: Run) -> Iterator[Figure]:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    times: dict[str, list[float]] = {name: [] for name in ("python", *PROGRAMS)}
    for _ in run.rounds("imports", run.sizes.starts):
        for name, program in {"python": "pass", **PROGRAMS}.items():
            with timed() as timer:
                subprocess.run([sys.executable, "-c", program], check=True, cwd=run.folder, env=environment)
            times[name].append(1e3 * timer.elapsed_s)
    for name in PROGRAMS:
        yield compare(name, times[name], times["python"], unit="ms", beside="bare python")

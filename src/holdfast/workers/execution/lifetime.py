"""How long a child process of a worker lives: for so many jobs, or until it has so much memory."""

import subprocess
from pathlib import Path

from msgspec import Struct

MIB = 1024 * 1024

NEARLY = 0.9
"""From this part of its memory on a child has its successor ready."""


class Lifetime(Struct, frozen=True):
    """When a child is replaced; None is never."""

    max_jobs: int | None = None
    max_rss_mb: int | None = None

    @property
    def is_limited(self) -> bool:
        """Whether children are replaced at all."""
        return self.max_jobs is not None or self.max_rss_mb is not None

    def is_over(self, jobs: int, pid: int) -> bool:
        """Whether a child that has run so many jobs is to be replaced."""
        if self.max_jobs is not None and jobs >= self.max_jobs:
            return True
        return self.max_rss_mb is not None and resident_mb(pid) > self.max_rss_mb

    def is_nearly_over(self, jobs: int, pid: int) -> bool:
        """Whether a child will soon be replaced that is running its job of this number."""
        if self.max_jobs is not None and jobs >= self.max_jobs:
            return True
        return self.max_rss_mb is not None and resident_mb(pid) > NEARLY * self.max_rss_mb


def resident_mb(pid: int) -> float:
    """How much memory a process has now, in MiB; 0 if that is not known."""
    statm = Path(f"/proc/{pid}/statm")
    try:
        if statm.exists():
            return int(statm.read_text().split()[1]) * _page_bytes() / MIB
        command = ["ps", "-o", "rss=", "-p", str(pid)]  # Where there is no /proc, as on macOS.
        return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout) / 1024  # noqa: S603 - a number
    except (OSError, ValueError, IndexError, subprocess.SubprocessError):
        return 0.0


def _page_bytes() -> int:
    import resource  # noqa: PLC0415 - not on every system

    return resource.getpagesize()

"""What there is to see of a running demo."""

import time
from typing import Literal

from msgspec import Struct, field

Tone = Literal["plain", "good", "bad", "odd"]


class WorkerView(Struct):
    """One worker as it looks from outside."""

    name: str
    doing: str = "starts"
    tone: Tone = "plain"
    done: int = 0
    outcome: str = "worked to the end"
    """How it went for it, reported at the end."""
    lease_ends_at: float | None = None
    """When, by `time.monotonic`, the claim of one that no longer renews it ends."""

    def be(self, doing: str, tone: Tone = "plain") -> None:
        """Look so from now on."""
        self.doing = doing
        self.tone = tone
        self.lease_ends_at = None


class Progress(Struct):
    """Everything on the output, as the demo last left it."""

    messages: int
    workers: dict[str, WorkerView]
    put: int = 0
    done: set[str] = field(default_factory=set)
    began_at: float = field(default_factory=time.monotonic)

    @property
    def elapsed_s(self) -> float:
        return time.monotonic() - self.began_at

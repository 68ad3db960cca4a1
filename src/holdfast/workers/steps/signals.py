"""The signals that were sent to a job, and the reports of its children."""

from collections.abc import Iterable
from typing import Any

from msgspec import Raw, json

from holdfast.commands import Change
from holdfast.records import Entry
from holdfast.workers.steps.rows import CHILD, Report, decode_report, report_key, signal_key, signals_of


class Inbox:
    """What came in for one job, as far as a run has looked."""

    is_known: bool
    """Whether the run has looked at all."""

    def __init__(self, job_id: str) -> None:
        self.is_known = False
        self.keys: list[str] = []
        """Where all of it is kept."""
        self._id = job_id
        self._revisions: dict[str, int] = {}
        self._signals: dict[tuple[str, int], Raw] = {}
        self._reports: dict[str, Report] = {}

    def dict(self, queue: str) -> str:
        """The dict of the signals for the jobs of a queue."""
        return signals_of(queue)

    def take(self, entries: Iterable[Entry]) -> None:
        """Take what is stored now."""
        self.is_known = True
        self.keys, self._revisions, self._signals, self._reports = [], {}, {}, {}
        for entry in entries:
            self.keys.append(entry.key)
            parts: list[Any] = json.decode(entry.key)  # Texts and numbers alone: nothing in it is tagged.
            match parts:
                case (_, str() as name):
                    self._revisions[name] = entry.revision
                case (_, name, str() as child_id) if name == CHILD:
                    self._reports[child_id] = decode_report(entry.value)
                case (_, str() as name, int() as number):
                    self._signals[name, number] = entry.value

    def pop(self, name: str) -> tuple[int, Raw] | None:
        """The first signal of a name, for the wait that takes it."""
        numbers = sorted(number for found, number in self._signals if found == name)
        return (numbers[0], self._signals.pop((name, numbers[0]))) if numbers else None

    def forget_signal(self, name: str, number: int) -> Change:
        """What removes a signal, which is recorded elsewhere now."""
        return Change(signal_key(self._id, name, number), "delete")

    def report(self, child_id: str) -> Report | None:
        """How a child ended, if it said so."""
        return self._reports.get(child_id)

    def forget_report(self, child_id: str) -> Change:
        """What removes the report of a child, which is recorded elsewhere now."""
        return Change(report_key(self._id, child_id), "delete")

    def unchanged(self, names: Iterable[str]) -> list[Change]:
        """The condition that nothing more came under these names."""
        return [Change(signal_key(self._id, name), "compare", expect="revision", revision=self._revisions.get(name, 0)) for name in names]

"""What the children of a map report: those that end in one step share an entry, and each worker counts its own."""

from collections.abc import Callable, Iterable
from typing import Final

from msgspec import Raw, json

from holdfast.codec import encode_key, key_prefix
from holdfast.commands import Change, Entries, Read, Write
from holdfast.records import Entry, Message
from holdfast.workers.steps.rows import Report

PAGE_BYTES: Final = 8 * 1024
"""About so large an entry may become before the next one is begun."""

OVERHEAD_BYTES: Final = 30

COUNTED: Final = key_prefix(("counted",))
"""The keys of the counts begin with it: how many reports each worker wrote. Together they are never less than what was reported."""

COUNTS: Final = 1_000
"""So many of these counts are read."""

DEAD: Final = key_prefix(("dead",))
"""The keys of what the parent found dead begin with it; what a child reports itself counts more."""

_decode: Callable[[bytes], dict[int, Report]] = json.Decoder(dict[int, Report]).decode


class MapReports:
    """The reports of one step."""

    def __init__(self) -> None:
        # By the dict of a map: entries by key, and how many reports each worker wrote.
        self._entries: dict[str, dict[str, dict[int, Report]]] = {}
        self._counts: dict[str, dict[str, int]] = {}
        self._last: dict[str, tuple[str, int]] = {}

    def add(self, marks: str, number: int, report: Report, message: Message) -> None:
        """Report for a child, whose claim of this message ends in the step."""
        key, size = self._last.get(marks, ("", PAGE_BYTES))
        if size >= PAGE_BYTES:
            # No other step ends the same claim, so none has the same key.
            key, size = encode_key((number, message.token)), 0
        self._entries.setdefault(marks, {}).setdefault(key, {})[number] = report
        self._last[marks] = key, size + OVERHEAD_BYTES + len(report.result or b"") + len(report.error or "")
        counts = self._counts.setdefault(marks, {})
        holder = encode_key(("counted", message.holder or ""))
        counts[holder] = counts.get(holder, 0) + 1

    def commands(self) -> list[Write]:
        """What writes them."""
        return [Write(marks, [*_puts(entries), *_increments(self._counts[marks])]) for marks, entries in self._entries.items()]


def _puts(entries: dict[str, dict[int, Report]]) -> list[Change]:
    return [Change(key, value=Raw(json.encode(reports))) for key, reports in entries.items()]


def _increments(counts: dict[str, int]) -> list[Change]:
    return [Change(key, "increment", by=by) for key, by in counts.items()]


def dead_changes(reports: dict[int, Report]) -> list[Change]:
    """What the parent writes of children that died where no one could report it; they count, too."""
    puts = [Change(encode_key(("dead", number)), value=Raw(json.encode({number: report}))) for number, report in reports.items()]
    return [*puts, *_increments({encode_key(("counted", "")): len(puts)})]


def read_counts(marks: str) -> Read:
    """What reads how many reports each worker wrote."""
    return Read(marks, prefix=COUNTED, limit=COUNTS)


def may_be_all(counts: Entries, total: int) -> bool:
    """Whether all children may have reported: at least as many reports were counted, or so many workers wrote some that it is not known."""
    return counts.more or sum(json.decode(entry.value, type=int) for entry in counts.entries) >= total


def reports_in(entries: Iterable[Entry]) -> dict[int, Report]:
    """What was reported of each child, by its number: what it said last, else that it is dead."""
    ordered = sorted(entries, key=lambda entry: (not entry.key.startswith(DEAD), entry.revision))
    found: dict[int, Report] = {}
    for entry in ordered:
        if not entry.key.startswith(COUNTED):
            found |= _decode(entry.value)
    return found

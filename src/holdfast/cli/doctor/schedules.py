"""What `holdfast doctor` says about schedules: runs that no worker puts."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from holdfast._sync.flows.schedule_book import schedules_of
from holdfast.cli.doctor.finding import Finding
from holdfast.wording import seconds

if TYPE_CHECKING:
    from holdfast import WorkerInfo
    from holdfast.stores import Store

LATE_S: Final = 60.0
"""A run that is due for longer is overdue: workers put each within seconds."""


def schedule_findings(store: "Store", now: int, living: "Sequence[WorkerInfo]") -> Iterator[Finding]:
    """Each schedule whose run is overdue at a moment of the wall clock."""
    putters = [one.name for one in living if one.schedules]
    for name, entry in ((stored.name, stored.entry) for stored in schedules_of(store)):
        run = None if entry.paused is not None or entry.is_orphan(now) else entry.next_run(entry.last)
        if run is None or (late_s := (now - run) / 1_000_000) < LATE_S:
            continue
        found = f"its run is overdue for {seconds(late_s)}"
        if putters:
            remedy = f"{', '.join(putters[:3])} should put it: see the log for errors."
            yield Finding("warning", f"schedule {name}", found, remedy)
        else:
            remedy = "Start a worker (without --no-schedules), or `holdfast schedule run`."
            yield Finding("problem", f"schedule {name}", f"{found}, and no living worker puts the runs of schedules", remedy)

"""What the children of a map report: many in one entry, each counted once."""

import pytest
from msgspec import Raw, json

from holdfast import HoldfastError, JobContext, JobFailed, Queue, Snooze
from holdfast.codec import encode_key
from holdfast.commands import Entries, Write
from holdfast.records import Entry, Message
from holdfast.stores.memory import MemoryStore
from holdfast.testing.clock import FakeClock
from holdfast.workers.steps import map_reports
from holdfast.workers.steps._sync.maps import Maps
from holdfast.workers.steps.map_reports import COUNTED, MapReports, dead_changes, may_be_all, reports_in
from holdfast.workers.steps.rows import Report
from tests.workers.durable import Bench

DONE, FAILED = Report("done", Raw(b"1")), Report("failed", error="lost")


def child(number: int, holder: str = "ann") -> Message:
    return Message("jobs", f"parent.{number}", Raw(b"{}"), number, created_at=0, position=0, token=number, holder=holder)


def written(reports: MapReports) -> list[Write]:
    return reports.commands()


def test_children_that_end_in_one_step_share_an_entry_and_a_count() -> None:
    reports = MapReports()
    for number in range(100):
        reports.add("pages", number, DONE, child(number))
    (write,) = written(reports)
    entry, count = write.changes
    assert (write.dict, entry.key, count.key, count.by) == ("pages", encode_key((0, 0)), encode_key(("counted", "ann")), 100)
    assert json.decode(entry.value or b"", type=dict[int, Report]) == dict.fromkeys(range(100), DONE)


def test_large_results_have_entries_of_their_own() -> None:
    reports, large = MapReports(), Report("done", Raw(b'"' + b"x" * 10_000 + b'"'))
    for number in range(3):
        reports.add("pages", number, large, child(number))
    (write,) = written(reports)
    assert [change.key for change in write.changes if not change.key.startswith(COUNTED)] == [encode_key((n, n)) for n in range(3)]


def entry(key: str, reports: dict[int, Report], revision: int) -> Entry:
    return Entry("pages", key, Raw(json.encode(reports)), revision)


def test_what_a_child_said_last_counts_and_more_than_what_was_found_dead() -> None:
    dead, *_ = dead_changes({1: FAILED})
    found = reports_in(
        [
            entry(encode_key((0, 9)), {0: DONE}, 3),
            entry(encode_key((0, 5)), {0: FAILED, 1: DONE}, 2),
            entry(dead.key, {1: FAILED, 2: FAILED}, 4),
            Entry("pages", encode_key(("counted", "ann")), Raw(b"3"), 3),
        ]
    )
    assert found == {0: DONE, 1: DONE, 2: FAILED}


def test_counts_say_when_all_may_have_reported() -> None:
    counts = [Entry("pages", encode_key(("counted", name)), Raw(b"2"), 1) for name in ("ann", "bob")]
    assert [may_be_all(Entries(counts, 1), total) for total in (3, 4, 5)] == [True, True, False]
    assert may_be_all(Entries(counts, 1, more=True), 5)


def a_redriven_child() -> tuple[str, object]:
    """The state of a map of three that lacks one, when a redriven one has reported twice; and what it makes of all."""
    clock = FakeClock()
    bench = Bench(MemoryStore(clock=clock), clock)
    app, seen = bench.tasks(), list[int]()

    @app.task(name="page", queue="pages", max_attempts=1)
    def page(number: int) -> int:
        seen.append(number)
        if number == 0 and seen.count(0) == 1:
            raise ValueError("unlucky")
        if number == 2 and seen.count(2) == 1:
            raise Snooze(60.0)
        return number

    @app.task(name="book", queue="books")
    def book(job: JobContext) -> int:
        return sum(job.map(page, [page.args(number) for number in range(3)]))

    job = book.put()
    books, pages = app.worker(queues=["books"]), app.worker(queues=["pages"])
    bench.drain_workers(books)
    bench.drain_workers(pages)
    assert Queue[object]("pages", client=bench.client).redrive().count == 1
    bench.drain_workers(pages)  # Three reports of two children.
    bench.drain_workers(books)
    assert sorted(seen) == [0, 0, 1, 2]
    state = job.status().state
    bench.drain_workers(books, pages, delayed=True)
    try:
        return state, job.result(timeout_s=0)
    except HoldfastError as error:
        return state, type(error)


def test_a_redriven_child_is_one_child() -> None:
    assert a_redriven_child() == ("sleeping", 3)


def test_control_a_map_that_trusts_the_counts_ends_too_early(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Maps, "_all_reports", lambda maps, row, marks: maps._reports(marks))
    assert a_redriven_child() != ("sleeping", 3)


def test_control_reports_that_take_the_place_of_others_lose_some(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(map_reports, "encode_key", lambda key: encode_key((0,) if isinstance(key[0], int) else key))
    assert a_redriven_child() == ("sleeping", JobFailed)

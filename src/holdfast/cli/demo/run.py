"""What happens in the demo: which worker is killed, which is paused, and when that one continues."""

import random
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from typing import Literal
from urllib.parse import quote

from msgspec import Struct

from holdfast.cli.demo.counts import Counts, count
from holdfast.cli.demo.output import Output
from holdfast.cli.demo.processes import Child, Processes, Received
from holdfast.cli.demo.progress import Progress, Tone, WorkerView
from holdfast.cli.demo.protocol import LEASE_S, QUEUE, ProducerTask, Report, Trouble, Work, WorkerTask
from holdfast.commands import Browse, Configure
from holdfast.connect import connect
from holdfast.records import seconds_in
from holdfast.stores import Store

PRODUCERS = 2
SILENT_S = 25.0
"""When the demo ends even if there is work left: when no process has reported anything for so long."""

ALL_WORK_S = 6.0
"""How long all workers together take when nothing goes wrong."""
LONGEST_WORK_S = 0.25
KEPT_S = 86_400.0
LONG_WORK_S = 1.6 * LEASE_S


class ProcessFailed(Exception):  # noqa: N818 - named like the library's own errors
    """A process of the demo ended that should not have."""


def run_demo(
    output: Output, *, messages: int, workers: int, seed: int, fenced: bool = True, then: Callable[[str], None] | None = None
) -> Counts:
    """Run the demo on a temporary file, and count what became of the messages.

    Without `fenced` the workers do not check what they hold, so that there is something to find. `then` is called in the end with the URL
    of the store, before its file is removed.
    """
    names = [f"worker {number}" for number in range(1, workers + 1)]
    progress = Progress(messages, {name: WorkerView(name) for name in names})
    with tempfile.TemporaryDirectory(prefix="holdfast-demo-") as folder:
        url = f"sqlite:///{quote(folder)}/demo.db"
        with closing(connect(url)) as store, output.showing(progress), Processes() as processes:
            # For the timeline of each message in the dashboard.
            store.execute(Configure("queue", QUEUE, keep_done_s=KEPT_S))
            demo = DemoRun(processes, store, progress, output)
            demo.tell(f"{PRODUCERS} producers and {workers} workers, a process each, share one SQLite file.")
            demo.tell(f"A claim lasts {LEASE_S} s; a worker renews it for as long as it works.")
            for name in names:
                demo.workers[name] = processes.start(name, "worker", WorkerTask(url, name, fenced))
            demo.share_out(url, plan_work(messages, workers, random.Random(seed)))  # noqa: S311 - a demo, not a secret
            demo.run()
            processes.dismiss()
            counts = count(store, messages)
        output.close(progress, counts)
        if then is not None:
            then(url)
    return counts


def plan_work(messages: int, workers: int, rng: random.Random) -> dict[str, Work]:
    """Every message's work, and in each of the first three quarters one that brings trouble."""
    quarter = messages // 4
    troubles: Sequence[Trouble] = ("kill", "pause", "long")
    where = {rng.randrange(place * quarter, (place + 1) * quarter): trouble for place, trouble in enumerate(troubles)}
    typical_s = min(ALL_WORK_S * workers / messages, LONGEST_WORK_S / 1.5)
    work_by_id = {}
    for number in range(messages):
        trouble = where.get(number)
        work_s = LONG_WORK_S if trouble == "long" else rng.uniform(0.5, 1.5) * typical_s
        work_by_id[f"{number + 1:03}"] = Work(round(work_s, 3), trouble)
    return work_by_id


class Stopped(Struct):
    """A worker that was killed or paused, and the claim it had."""

    child: Child
    token: int
    how: Literal["killed", "paused"]


class DemoRun:
    """Decides at each report of a process what happens next."""

    def __init__(self, processes: Processes, store: Store, progress: Progress, output: Output) -> None:
        self._processes = processes
        self._store = store
        self._progress = progress
        self._output = output
        self._tasks: list[ProducerTask] = []
        self._ready: set[str] = set()
        # By message: whoever was killed or paused over it.
        self._stopped: dict[str, Stopped] = {}
        self._long = ""
        self._killed: set[str] = set()
        self._woken: set[str] = set()
        # Who woke up and is done with what it was paused over.
        self._through: set[str] = set()
        self.workers: dict[str, Child] = {}

    def share_out(self, url: str, work_by_id: dict[str, Work]) -> None:
        """Give each producer every other message; they start when all workers are ready."""
        messages = list(work_by_id.items())
        self._tasks = [ProducerTask(url, dict(messages[number::PRODUCERS])) for number in range(PRODUCERS)]

    def run(self) -> None:
        """Run until all is done and the paused worker was refused, or nothing happens any more."""
        while not self._is_over and (received := self._processes.listen(SILENT_S)) is not None:
            self._hear(received)

    @property
    def _is_over(self) -> bool:
        return len(self._progress.done) == self._progress.messages and bool(self._through)

    def tell(self, line: str, tone: Tone = "plain") -> None:
        """Report something that happened."""
        self._output.tell(self._progress.elapsed_s, line, tone)

    def _hear(self, received: Received) -> None:
        child, report = received.child, received.report
        if report is None:
            self._check_end(child)
        elif report.what == "put":
            self._progress.put += len(report.ids)
        else:
            self._hear_worker(child, self._progress.workers[child.name], report)

    def _hear_worker(self, child: Child, view: WorkerView, report: Report) -> None:
        match report.what:
            case "ready":
                self._on_ready(child, view)
            case "began":
                self._on_began(view, report)
            case "stuck":
                self._on_stuck(child, view, report)
            case "finished":
                self._on_finished(view, report)
            case "refused":
                self._on_refused(view, report)

    def _check_end(self, child: Child) -> None:
        code = child.process.wait()
        if code and child.name not in self._killed:
            raise ProcessFailed(f"{child.name} ended unexpectedly, with exit code {code}")

    def _on_ready(self, child: Child, view: WorkerView) -> None:
        view.be("waits for a message")
        if child.name in self._woken:
            self._through.add(child.name)
        self._ready.add(child.name)
        if self._tasks and len(self._ready) == len(self.workers):
            self.tell(f"The workers are ready; the producers begin to put {self._progress.messages} messages.")
            for number, task in enumerate(self._tasks, 1):
                self._processes.start(f"producer {number}", "producer", task)
            self._tasks = []

    def _on_began(self, view: WorkerView, report: Report) -> None:
        view.be(f"works on message {report.message}, token {report.token}")
        stopped = self._stopped.get(report.message)
        if stopped is not None:
            loser = self._progress.workers[stopped.child.name]
            loser.outcome = f"{stopped.how}; message {report.message} went to {view.name}"
            loser.be(loser.outcome, loser.tone)
            self.tell(f"{view.name} gets message {report.message} next: token {report.token} > {stopped.token}.", "good")
        elif report.work and report.work.trouble == "long":
            self._long = report.message
            self.tell(f"{view.name} works on message {report.message} for {LONG_WORK_S:.1f} s, longer than a lease: it renews its claim.")

    def _on_stuck(self, child: Child, view: WorkerView, report: Report) -> None:
        if report.work and report.work.trouble == "kill":
            self._killed.add(child.name)
            self._processes.kill(child)
            self._stopped[report.message] = Stopped(child, report.token, "killed")
            self._show_stopped(view, report, "killed", "SIGKILL", "bad")
        else:
            self._processes.pause(child)
            self._stopped[report.message] = Stopped(child, report.token, "paused")
            self._show_stopped(view, report, "paused", "SIGSTOP", "odd")
            # On a slow machine the lease may have ended, and the message be done, before we received of it.
            self._wake_if_overtaken(report.message)

    def _show_stopped(self, view: WorkerView, report: Report, how: str, sent: str, tone: Tone) -> None:
        left_s = self._lease_left_s(report.message)
        view.be(f"{how} in the middle of message {report.message}", tone)
        view.lease_ends_at = time.monotonic() + left_s
        self.tell(f"{view.name} is {how} ({sent}) in the middle of message {report.message}, token {report.token}.", tone)
        self.tell(f"   Nobody renews its claim now: the lease ends in {left_s:.1f} s.", tone)

    def _on_finished(self, view: WorkerView, report: Report) -> None:
        self._progress.done.add(report.message)
        view.done += 1
        view.be("waits for a message")
        if report.message == self._long and report.attempts == 1:
            self.tell(f"{view.name} has finished message {report.message}; nobody else got it meanwhile.", "good")
        if report.message in self._stopped:
            self.tell(f"{view.name} has finished message {report.message}.", "good")
            self._wake_if_overtaken(report.message)

    def _wake_if_overtaken(self, message: str) -> None:
        """Continue the paused worker once another has done its message."""
        paused = self._stopped[message].child
        if message not in self._progress.done or paused.name in self._killed | self._woken:
            return
        self._woken.add(paused.name)
        self._progress.workers[paused.name].be(f"wakes up over message {message}", "odd")
        self.tell(f"{paused.name} wakes up (SIGCONT) and believes that message {message} is still its own.", "odd")
        self._processes.wake(paused)

    def _on_refused(self, view: WorkerView, report: Report) -> None:
        view.outcome = f"refused when it came back to message {report.message}"
        if report.refused == "settle":
            self.tell(f"{view.name} tries to finish message {report.message}: refused, it lost that claim (token {report.token}).", "odd")
        else:
            newer = report.newer_token
            self.tell(f"{view.name} tries to write its result with token {report.token}: refused, token {newer} has written.", "odd")

    def _lease_left_s(self, message_id: str) -> float:
        """How long the claim on a message lasts; no time at all if the message is done."""
        now = time.time() * 1_000_000 - self._store.wall_offset_us()
        messages = self._store.execute(Browse(QUEUE, ids=[message_id])).messages
        return max([0.0, *(seconds_in(round(message.until - now)) for message in messages)])

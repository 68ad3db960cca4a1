"""What happens in the demo: who is killed, who is paused, and when the zombie may wake up."""

import random
import tempfile
import time
from collections.abc import Sequence
from contextlib import closing
from typing import Literal
from urllib.parse import quote

from msgspec import Struct

from holdfast.cli.demo.crew import Crew, Heard, Member
from holdfast.cli.demo.parts import LEASE_S, QUEUE, ProducerPart, Report, Trouble, Work, WorkerPart
from holdfast.cli.demo.scene import Mood, Scene, WorkerView
from holdfast.cli.demo.screen import Screen
from holdfast.cli.demo.tally import Tally, count
from holdfast.commands import Browse
from holdfast.connect import connect
from holdfast.records import seconds_in
from holdfast.stores import Store

PRODUCERS = 2
LONGEST_S = 25.0
"""When the show ends even if there is work left."""

ALL_WORK_S = 6.0
"""How long all workers together take when nothing goes wrong."""
LONGEST_WORK_S = 0.25
LONG_WORK_S = 1.6 * LEASE_S


class ProcessFailed(Exception):  # noqa: N818 - named like the library's own errors
    """A process of the demo ended that should not have."""


def play(screen: Screen, *, messages: int, workers: int, seed: int, fenced: bool = True) -> Tally:
    """Perform the demo on a temporary file, and count what became of the messages.

    Without `fenced` the workers do not check what they hold, so that the tally has something to find.
    """
    names = [f"worker {number}" for number in range(1, workers + 1)]
    scene = Scene(messages, {name: WorkerView(name) for name in names})
    with tempfile.TemporaryDirectory(prefix="holdfast-demo-") as folder:
        url = f"sqlite:///{quote(folder)}/demo.db"
        with closing(connect(url)) as store, screen.showing(scene), Crew() as crew:
            plot = Plot(crew, store, scene, screen)
            plot.tell(f"{PRODUCERS} producers and {workers} workers, a process each, share one SQLite file.")
            plot.tell(f"A claim lasts {LEASE_S} s; a worker renews it for as long as it works.")
            for name in names:
                plot.cast[name] = crew.start(name, "worker", WorkerPart(url, name, fenced))
            plot.share_out(url, write_script(messages, workers, random.Random(seed)))  # noqa: S311 - a show, not a secret
            plot.run()
            crew.dismiss()
            tally = count(store, messages)
        screen.close(scene, tally)
    return tally


def write_script(messages: int, workers: int, rng: random.Random) -> dict[str, Work]:
    """Every message's work, and in each of the first three quarters one that brings trouble."""
    quarter = messages // 4
    troubles: Sequence[Trouble] = ("kill", "pause", "long")
    where = {rng.randrange(place * quarter, (place + 1) * quarter): trouble for place, trouble in enumerate(troubles)}
    typical_s = min(ALL_WORK_S * workers / messages, LONGEST_WORK_S / 1.5)
    script = {}
    for number in range(messages):
        trouble = where.get(number)
        work_s = LONG_WORK_S if trouble == "long" else rng.uniform(0.5, 1.5) * typical_s
        script[f"{number + 1:03}"] = Work(round(work_s, 3), trouble)
    return script


class Stopped(Struct):
    """A worker that was killed or paused, and the claim it had."""

    member: Member
    token: int
    how: Literal["killed", "paused"]


class Plot:
    """Answers every report of the crew with what happens next."""

    def __init__(self, crew: Crew, store: Store, scene: Scene, screen: Screen) -> None:
        self._crew = crew
        self._store = store
        self._scene = scene
        self._screen = screen
        self._parts: list[ProducerPart] = []
        self._ready: set[str] = set()
        # By message: whoever was killed or paused over it.
        self._stopped: dict[str, Stopped] = {}
        self._long = ""
        self._killed: set[str] = set()
        self._woken: set[str] = set()
        # Who woke up and is done with what it was paused over.
        self._through: set[str] = set()
        self.cast: dict[str, Member] = {}

    def share_out(self, url: str, script: dict[str, Work]) -> None:
        """Give each producer every other message; they start when all workers are ready."""
        messages = list(script.items())
        self._parts = [ProducerPart(url, dict(messages[part::PRODUCERS])) for part in range(PRODUCERS)]

    def run(self) -> None:
        """Play until all is done and the zombie had its say, or the time is up."""
        while not self._is_over and (remaining_s := LONGEST_S - self._scene.elapsed_s) > 0:
            heard = self._crew.listen(remaining_s)
            if heard is not None:
                self._hear(heard)

    @property
    def _is_over(self) -> bool:
        return len(self._scene.done) == self._scene.messages and bool(self._through)

    def tell(self, line: str, mood: Mood = "plain") -> None:
        """Say a line of the story."""
        self._screen.tell(self._scene.elapsed_s, line, mood)

    def _hear(self, heard: Heard) -> None:
        member, report = heard.member, heard.report
        if report is None:
            self._check_end(member)
        elif report.what == "put":
            self._scene.put += len(report.ids)
        else:
            self._hear_worker(member, self._scene.workers[member.name], report)

    def _hear_worker(self, member: Member, view: WorkerView, report: Report) -> None:
        match report.what:
            case "ready":
                self._on_ready(member, view)
            case "began":
                self._on_began(view, report)
            case "stuck":
                self._on_stuck(member, view, report)
            case "finished":
                self._on_finished(view, report)
            case "refused":
                self._on_refused(view, report)

    def _check_end(self, member: Member) -> None:
        code = member.process.wait()
        if code and member.name not in self._killed:
            raise ProcessFailed(f"{member.name} ended unexpectedly, with exit code {code}")

    def _on_ready(self, member: Member, view: WorkerView) -> None:
        view.be("waits for a message")
        if member.name in self._woken:
            self._through.add(member.name)
        self._ready.add(member.name)
        if self._parts and len(self._ready) == len(self.cast):
            self.tell(f"The workers are ready; the producers begin to put {self._scene.messages} messages.")
            for number, part in enumerate(self._parts, 1):
                self._crew.start(f"producer {number}", "producer", part)
            self._parts = []

    def _on_began(self, view: WorkerView, report: Report) -> None:
        view.be(f"works on message {report.message}, token {report.token}")
        stopped = self._stopped.get(report.message)
        if stopped is not None:
            loser = self._scene.workers[stopped.member.name]
            loser.fate = f"{stopped.how}; message {report.message} went to {view.name}"
            loser.be(loser.fate, loser.mood)
            self.tell(f"{view.name} gets message {report.message} next: token {report.token} > {stopped.token}.", "good")
        elif report.work and report.work.trouble == "long":
            self._long = report.message
            self.tell(f"{view.name} works on message {report.message} for {LONG_WORK_S:.1f} s, longer than a lease: it renews its claim.")

    def _on_stuck(self, member: Member, view: WorkerView, report: Report) -> None:
        if report.work and report.work.trouble == "kill":
            self._killed.add(member.name)
            self._crew.kill(member)
            self._stopped[report.message] = Stopped(member, report.token, "killed")
            self._show_stopped(view, report, "killed", "SIGKILL", "bad")
        else:
            self._crew.pause(member)
            self._stopped[report.message] = Stopped(member, report.token, "paused")
            self._show_stopped(view, report, "paused", "SIGSTOP", "odd")
            # On a slow machine the lease may have ended, and the message be done, before we heard of it.
            self._wake_if_overtaken(report.message)

    def _show_stopped(self, view: WorkerView, report: Report, how: str, sent: str, mood: Mood) -> None:
        left_s = self._lease_left_s(report.message)
        view.be(f"{how} in the middle of message {report.message}", mood)
        view.lease_ends_at = time.monotonic() + left_s
        self.tell(f"{view.name} is {how} ({sent}) in the middle of message {report.message}, token {report.token}.", mood)
        self.tell(f"   Nobody renews its claim now: the lease ends in {left_s:.1f} s.", mood)

    def _on_finished(self, view: WorkerView, report: Report) -> None:
        self._scene.done.add(report.message)
        view.done += 1
        view.be("waits for a message")
        if report.message == self._long and report.attempts == 1:
            self.tell(f"{view.name} has finished message {report.message}; nobody else got it meanwhile.", "good")
        if report.message in self._stopped:
            self.tell(f"{view.name} has finished message {report.message}.", "good")
            self._wake_if_overtaken(report.message)

    def _wake_if_overtaken(self, message: str) -> None:
        """Continue the paused worker once somebody else has done its message."""
        zombie = self._stopped[message].member
        if message not in self._scene.done or zombie.name in self._killed | self._woken:
            return
        self._woken.add(zombie.name)
        self._scene.workers[zombie.name].be(f"wakes up over message {message}", "odd")
        self.tell(f"{zombie.name} wakes up (SIGCONT) and believes that message {message} is still its own.", "odd")
        self._crew.wake(zombie)

    def _on_refused(self, view: WorkerView, report: Report) -> None:
        view.fate = f"refused when it came back to message {report.message}"
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

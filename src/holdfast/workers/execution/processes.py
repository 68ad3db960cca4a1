"""Runs handlers in child processes, which may crash, hang or leak."""

import atexit
import logging
import multiprocessing
import signal
import threading
from collections import deque
from collections.abc import Callable, Sequence
from multiprocessing.process import BaseProcess
from typing import Any

from msgspec import json

from holdfast.workers.execution import Began, Finish
from holdfast.workers.execution.child import Assignment, End, Ended, Ready, Report, Settings, Stack, Tell, ToChild, ToParent, serve
from holdfast.workers.execution.lifetime import Lifetime
from holdfast.workers.execution.questions import Answer, Ask, executed
from holdfast.workers.handlers.outcomes import Outcome
from holdfast.workers.running.runs import Run
from holdfast.workers.steps.access import Access

STACK_WAIT_S = 1.0
"""How long to wait for a child to say where it is."""

NO_PROCESS = Outcome("snoozed", error="no process could be started for it", delay_s=1.0)

UNREADY = (
    "it prints why to standard error. It imports the modules of its functions and the main program, which needs "
    "if __name__ == '__main__': around what it runs"
)

END_S = 5.0
"""How long children have to end before they are killed."""

_log = logging.getLogger("holdfast.worker")


class ProcessExecution:
    """As many children as there were ever runs at once, each running one at a time; one that died is replaced by the next run.

    Children are started afresh, never forked: a fork would copy locks that threads of this process hold.
    """

    def __init__(self, settings: Settings, most: int, began: Began, finish: Finish, *, access: Access, lifetime: Lifetime) -> None:
        self._access = access
        self._lifetime = lifetime
        self._settings = settings
        self._most = most
        self._began = began
        self._finish = finish
        self._context = multiprocessing.get_context("spawn")
        # Guards everything below.
        self._lock = threading.Lock()
        self._idle: list[_Child] = []
        self._busy: dict[Run, _Child] = {}
        self._line: deque[Run] = deque()
        self._is_over = False
        # Children ignore what ends this process, and the interpreter waits for them.
        atexit.register(self.close)

    def start(self, runs: Sequence[Run]) -> None:
        with self._lock:
            self._line.extend(runs)
        self._assign()

    def _assign(self) -> None:
        """Give runs that wait to children that are free."""
        while (assigned := self._next()) is not None:
            run, child = assigned
            if child is None:
                self._finish(run, NO_PROCESS)
                continue
            run.hold.where = child.where
            self._began(run)
            child.begin(run)
            self._prepare(child)

    def _next(self) -> tuple[Run, "_Child | None"] | None:
        """The next that may begin, and who runs it: None if no process can be started."""
        with self._lock:
            while self._line and not self._is_over and len(self._busy) < self._most:
                run = self._line.popleft()
                if not run.may_begin():
                    continue
                child = self._idle.pop() if self._idle else self._make()
                if child is not None:
                    # Here, where one that is gone is noticed: it gets no run, or the run ends with it.
                    self._busy[run], child.run = child, run
                return run, child
        return None

    def _make(self) -> "_Child | None":
        try:
            child = _Child(self._context, self._settings)
        except OSError as error:
            _log.warning("no process could be started for a job, which is retried: %s", error)
            return None
        threading.Thread(target=self._look_after, args=(child,), name="holdfast-child", daemon=True).start()
        return child

    def _prepare(self, child: "_Child") -> None:
        """Start the successor of a child that is about to reach its end, so that it is there by then."""
        if self._lifetime.is_limited and self._lifetime.is_nearly_over(child.jobs + 1, child.pid):
            with self._lock:
                # Its job may have ended by now, and the child with it.
                if child.successor is None and not child.is_over and not self._is_over:
                    child.successor = self._make()

    def _look_after(self, child: "_Child") -> None:
        """Hear what a child says, until it is gone."""
        decode = json.Decoder(ToParent).decode
        while (said := child.hear()) is not None:
            run = child.run
            match decode(said):
                case Ready():
                    child.is_ready = True
                case Stack(_, text):
                    child.stands_at(text)
                case Report(token, progress) if run is not None and run.message.token == token:
                    run.job.report_raw(progress)
                case Ask() as question:
                    child.answer(executed(self._access, question))
                case Ended(token, outcome, commands) if run is not None and run.message.token == token:
                    run.job.durable.end_with(outcome.how, commands)
                    self._ended(child, run, outcome)
        self._is_gone(child)

    def _ended(self, child: "_Child", run: Run, outcome: Outcome) -> None:
        child.jobs += 1
        is_over = self._lifetime.is_limited and self._lifetime.is_over(child.jobs, child.pid)
        with self._lock:
            child.run = None
            if self._busy.pop(run, None) is not None:
                if is_over and child.successor is None:
                    child.successor = self._make()
                child.is_over = child.successor is not None and is_over
                self._idle.append(self._succeeded(child) if child.is_over else child)
        if child.is_over:
            child.retire()
        self._finish(run, outcome)
        self._assign()

    @staticmethod
    def _succeeded(child: "_Child") -> "_Child":
        """What takes the place of a child that ends."""
        successor, child.successor = child.successor, None
        return successor or child

    def _is_gone(self, child: "_Child") -> None:
        code = child.end()
        with self._lock:
            run, child.run = child.run, None
            child.is_over = True
            if child in self._idle:
                self._idle.remove(child)
            if run is not None:
                self._busy.pop(run, None)
            if child.successor is not None:
                self._idle.append(self._succeeded(child))
        if run is not None and not child.is_ready:
            _log.error("a child process %s before it could begin a job, which is retried: %s", _ending(code), UNREADY)
            self._finish(run, NO_PROCESS)
        elif run is not None:
            # Nobody knows how far it came: what was noted when it began stays.
            run.ledger_key = None
            self._finish(run, Outcome("failed", error=f"its process {_ending(code)}"))
        self._assign()

    def stop(self, run: Run) -> None:
        with self._lock:
            child = self._busy.get(run)
        if child is not None:
            child.tell(run, run.job.stop_reason)

    def abandon(self, run: Run) -> None:
        with self._lock:
            # Not there any more, it is given no other run, whatever it says before it dies.
            child = self._busy.pop(run, None)
        if child is not None:
            child.kill()

    def close(self) -> None:
        with self._lock:
            self._is_over = True
            children = [*self._idle, *self._busy.values()]
            children += [child.successor for child in children if child.successor is not None]
            self._line.clear()
        atexit.unregister(self.close)
        for child in children:
            child.kill()


class _Child:
    """One child process, as its parent sees it."""

    def __init__(self, context: Any, settings: Settings) -> None:
        self._pipe, theirs = context.Pipe()
        self._process: BaseProcess = context.Process(target=serve, args=(settings, theirs), name="holdfast-child")
        self._process.start()
        theirs.close()
        # Guards the writing side of the pipe.
        self._lock = threading.Lock()
        self.run: Run | None = None
        self.jobs = 0
        """How many jobs it has run."""
        self.successor: _Child | None = None
        self.is_ready = False
        """Whether it has begun to listen: the end of one that has not says nothing about its job."""
        self.is_over = False
        """Whether it gets no more jobs."""
        self._stack = ""
        self._has_stack = threading.Event()

    def begin(self, run: Run) -> None:
        # Made under the lock: whoever tells it to stop before it heard of the run has said why by then.
        self._say(lambda: Assignment(run.message, run.options.key, run.is_unknown, run.job.stop_reason))

    @property
    def pid(self) -> int:
        return self._process.pid or 0

    def retire(self) -> None:
        """Let it end by itself; it has no job and gets none."""
        self._say(End)

    def answer(self, answer: Answer) -> None:
        self._say(lambda: answer)

    def tell(self, run: Run, reason: Any) -> None:
        self._say(lambda: Tell(run.message.token, reason))

    def where(self) -> str:
        run = self.run
        if run is None:
            return "(it has ended)"
        self._has_stack.clear()
        self.tell(run, None)
        return self._stack if self._has_stack.wait(STACK_WAIT_S) else "(its process does not respond)"

    def stands_at(self, text: str) -> None:
        self._stack = text
        self._has_stack.set()

    def hear(self) -> bytes | None:
        try:
            said: bytes = self._pipe.recv_bytes()
        except (EOFError, OSError):
            return None
        return said

    def kill(self) -> None:
        self._process.kill()

    def end(self) -> int | None:
        self._process.join(END_S)
        if self._process.exitcode is None:
            self._process.kill()
            self._process.join()
        return self._process.exitcode

    def _say(self, what: Callable[[], ToChild]) -> None:
        with self._lock:
            try:
                self._pipe.send_bytes(json.encode(what()))
            except OSError:
                return  # It is gone: whoever looks after it will say so.


def _ending(code: int | None) -> str:
    if code is not None and code < 0:
        return f"was killed by {signal.Signals(-code).name}"
    return f"ended with exit code {code}"

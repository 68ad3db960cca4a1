"""One run of a durable job: replays what is recorded, and records what is new."""

import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from holdfast.backoff import Backoff
from holdfast.codec import Codec, check_value_size
from holdfast.commands import Clear, Command, Read, Together, Write
from holdfast.errors import ClaimLost, ExecutionUnknown, JobCancelled, NotAllowed, StepTooLarge, StoreUnavailable
from holdfast.records import Entry
from holdfast.results import MISSING
from holdfast.workers.handlers.outcomes import Bury, Retry, Snooze, UnknownTask, text_of
from holdfast.workers.steps._async.families import AsyncFamily
from holdfast.workers.steps._async.maps import AsyncMaps
from holdfast.workers.steps.access import AsyncAccess
from holdfast.workers.steps.history import History
from holdfast.workers.steps.log_lines import log_failed_step
from holdfast.workers.steps.options import StepCall, StepRules
from holdfast.workers.steps.rows import CANCELS, Key, Row, head_key
from holdfast.workers.steps.turns import AsyncTurns
from holdfast.workers.steps.waits import Wait

PAGE = 3_000
"""How many rows one read brings."""

REASON_CHARACTERS = 200
"""How much of a step's error is shown while it waits for its next try."""

AWAY = Backoff(first_s=0.1, factor=2.0, most_s=5.0)
"""How long to wait before trying a store again that could not be reached."""


class AsyncSteps:
    """The steps of one run."""

    def __init__(self, history: History, turns: AsyncTurns, access: AsyncAccess) -> None:
        self.history = history
        self.turns = turns
        self.family: AsyncFamily = AsyncFamily(self)
        self.maps: AsyncMaps = AsyncMaps(self)
        self.dicts: list[str] = []
        """Dicts that go with the job when it ends."""
        self.before_cancelling: Callable[[], Awaitable[None]] = _nothing
        """Asks jobs to end that no row is about."""
        self._access = access
        self._is_loaded = history.is_new

    async def load(self, connection: Any = None) -> None:
        """Read what is recorded, if anything can be; raises `UnknownTask` for a version that this code cannot go on with.

        `connection` is the caller's own, where what is asked for next is to be recorded by it.
        """
        if not self._is_loaded:
            await self.turns.alone(self._load)
        if pending := self.history.pending(self.turns.comes_after):
            await self._look_back(pending, connection)

    async def _look_back(self, pending: list[Key], connection: Any) -> None:
        """Find out what became of steps that were recorded in transactions of the caller's."""
        history, missing = self.history, await self._missing(pending, None)
        for key in pending:
            if key not in missing:
                history.committed(key)
        if missing and connection is not None:
            missing = await self._missing(missing, connection)
        for key in missing:
            history.rolled_back(key)

    async def _missing(self, keys: list[Key], connection: Any) -> list[Key]:
        """Those of the rows that a connection does not see."""
        history = self.history
        page = await self.execute(Read(history.dict, [history.row_key(key) for key in keys]), connection)
        found = {entry.key for entry in page.entries}
        return [key for key in keys if history.row_key(key) not in found]

    async def _load(self) -> None:
        if self._is_loaded:
            return
        history = self.history
        try:
            heads, rows, requests, entries = await self._read()
        except NotAllowed:
            # Whoever may not read steps has not recorded any.
            self._is_loaded = True
            return
        history.take_head(heads.entries[0] if heads.entries else None)
        if not history.is_durable:
            self._is_loaded = True
            return
        version, versions = history.head.version, history.setting.versions
        if version is not None and versions and version not in versions:
            raise UnknownTask(f"it was begun by version {version!r}, which is not accepted here")
        history.take_rows(await self._all(history.dict, rows))
        history.inbox.take(await self._all(history.inbox.dict(history.message.queue), entries))
        history.take_request(requests.entries)
        dropped = history.dropped_by_redrive()
        if dropped:
            await self.execute(history.drop(dropped))
        self._is_loaded = True

    async def _read(self) -> list[Any]:
        history = self.history
        found: list[Any] = await self.execute(
            Together(
                [
                    Read(history.dict, [head_key(history.message.id)]),
                    Read(history.dict, prefix=history.prefix, limit=PAGE),
                    Read(CANCELS, [history.cancel_key]),
                    Read(history.inbox.dict(history.message.queue), prefix=history.prefix, limit=PAGE),
                ]
            )
        )
        return found

    async def _all(self, name: str, page: Any) -> list[Entry]:
        entries: list[Entry] = page.entries
        while page.more:
            page = await self.execute(Read(name, prefix=self.history.prefix, after=entries[-1].key, limit=PAGE))
            entries += page.entries
        return entries

    async def refresh(self) -> None:
        """Look at what came in for the job."""
        name = self.history.inbox.dict(self.history.message.queue)
        self.history.inbox.take(await self._all(name, await self.execute(Read(name, prefix=self.history.prefix, limit=PAGE))))

    async def step(self, call: StepCall) -> Any:
        """The result of a step: the recorded one, or what the function returns now."""
        with self.turns.active():
            connection = call.rules.connection
            await self.load(connection)
            key = self.history.identify(call.branch, call.name, call.hashed)
            codec = call.codec(self.history.setting.codec)
            row = await self.ask(key, connection)
            while row is None or row.state not in ("done", "failed"):
                if row is not None and row.state == "retry":
                    await self.pass_time(key, f"another try of step {call.name} after {row.reason[:REASON_CHARACTERS]}")
                if row is not None and row.state == "begun":
                    row = await self._reconcile(key, row, call, codec)
                else:
                    row = await self._try(key, row, call, codec)
            if row.state == "failed":
                raise row.error(call.name)
            return None if row.result is None else codec.decode(row.result)

    async def _reconcile(self, key: Key, row: Row, call: StepCall, codec: Codec) -> Row:
        """Find out what became of a step that a run died in."""
        rules, message = call.rules, self.history.message
        if rules.reconcile is None:
            raise ExecutionUnknown(
                f"step {call.name!r} of job {message.id} of queue {message.queue!r} was begun under claim {row.by} by a worker that died, "
                "so it may have happened: give it reconcile=, a function that finds out, and redrive the job"
            )
        result = await self.turns.call(rules.reconcile, call.args, call.kwargs, rules.timeout_s)
        return Row("retry", failures=row.failures) if result is MISSING else await self._record_result(key, call, codec, result)

    async def _try(self, key: Key, row: Row | None, call: StepCall, codec: Codec) -> Row:
        """Do a step, and record how that ended."""
        failures, rules = 0 if row is None else row.failures, call.rules
        if rules.once:
            by = self.history.message.receipt.claim_id
            await self.record(key, Row("begun", failures=failures, by=by, at=time.time()))
        try:
            result = await self.turns.call(call.function, call.args, call.kwargs, rules.timeout_s)
        except (Snooze, Bury, UnknownTask, ClaimLost, JobCancelled):
            raise  # They are about the job.
        except Exception as error:
            if rules.connection is not None:
                raise  # Its transaction is rolled back by whoever began it, and any record with that.
            return await self._record_failure(key, rules, failures + 1, error)
        return await self._record_result(key, call, codec, result)

    async def _record_failure(self, key: Key, rules: StepRules, failures: int, error: Exception) -> Row:
        kind, text, at = type(error).__name__, text_of(error), time.time()
        if failures >= rules.max_attempts:
            row = Row("failed", failures=failures, type=kind, message=text, at=at)
            await self.record(key, row)
            raise row.error(key[1]) from error
        delay_s = error.delay_s if isinstance(error, Retry) and error.delay_s is not None else rules.backoff.delay_s(failures)
        row = Row("retry", failures=failures, type=kind, message=text, at=at)
        await self.record(key, row, timer_s=delay_s)
        log_failed_step(self.history.message, key[1], f"attempt {failures} of {rules.max_attempts}", delay_s, error)
        return row

    async def _record_result(self, key: Key, call: StepCall, codec: Codec, result: Any) -> Row:
        limits = self.history.setting.limits
        try:
            row = Row("done", codec.encode(result), at=time.time())
            check_value_size(row.raw, limits)
        except Exception as error:  # noqa: BLE001 - codecs and results are foreign code
            is_large = isinstance(error, ValueError) and "more than the limit" in str(error)
            kind = StepTooLarge.__name__ if is_large else type(error).__name__
            advice = "return a reference to where the value is kept, or use an offloading codec" if is_large else "return plain data"
            row = Row("failed", type=kind, message=f"the result of step {call.name!r} cannot be recorded: {text_of(error)}; {advice}")
        if call.rules.connection is None:
            await self.record(key, row)
        elif row.state == "done":
            await self._record_within(call.rules.connection, key, row)
        return row

    async def _record_within(self, connection: Any, key: Key, row: Row) -> None:
        """Write a row in a transaction of the caller's, if the claim is still held."""
        await self.execute(self.history.checkpoint(key, row), connection)
        self.history.recorded_within(self.turns.branch, key, row)

    async def sleep(self, branch: str, name: str, hashed: str, seconds: float) -> None:
        """Let so much time pass, from when it was first asked for."""
        with self.turns.active():
            await self.load()
            key = self.history.identify(branch, name, hashed)
            if await self.ask(key) is None:
                await self.record(key, Row("timer", at=time.time()), timer_s=seconds)
            await self.pass_time(key, "time to pass")

    async def pass_time(self, key: Key, what: str) -> None:
        """Wait until the timer of a row has ended."""
        while (due := self.history.due_at(key)) is not None and due > self.history.setting.now():
            await self.rest(key, Wait(what, due))

    async def wait(self, branch: str, name: str, codec: Codec, timeout_s: float | None) -> Any:
        """The payload of the next signal of a name."""
        with self.turns.active():
            await self.load()
            key = self.history.identify(branch, f"~wait {name}", "")
            row = await self.ask(key)
            while row is None or row.state == "timer":
                row = await self._take_signal(key, row, name, timeout_s)
            if row.state == "timeout":
                raise TimeoutError(f"no signal {name!r} came in time")
            return None if row.result is None else codec.decode(row.result)

    async def _take_signal(self, key: Key, row: Row | None, name: str, timeout_s: float | None) -> Row | None:
        """Take the next signal of a name, or wait until it is worth another look; `row` is what is recorded of the wait by now."""
        history = self.history
        if not history.inbox.is_known:
            await self.refresh()
        if (signal := history.inbox.pop(name)) is not None:
            row = Row("done", signal[1], at=time.time())
            forget = Write(history.inbox.dict(history.message.queue), [history.inbox.forget_signal(name, signal[0])])
            await self.record(key, row, also=[forget])
            return row
        if row is None and timeout_s is not None:
            row = Row("timer", at=time.time())
            await self.record(key, row, timer_s=timeout_s)
        due = history.due_at(key)
        if row is not None and (due is None or due <= history.setting.now()):
            row = Row("timeout", at=time.time())
            await self.record(key, row)
            return row
        await self.rest(key, Wait(f"signal {name}", due, (name,)))
        return row

    async def ask(self, key: Key, connection: Any = None) -> Row | None:
        """What is recorded under a key; None if it is new, and may begin now."""
        row = self.history.ask(key)
        if row is None:
            await self.turns.admit(key)
            self.history.check_room()
            if connection is None:  # Else a transaction is open that may block the record of it: the next step delivers it.
                await self.check_cancelled(key)
        elif row.state == "cancelled":
            raise self._cancelled()
        return row

    async def rest(self, key: Key, wait: Wait) -> None:
        """Wait until it is worth another look at what came in; a request to cancel the job is delivered here."""
        await self.check_cancelled(key)
        await self.turns.wait(wait)
        self.history.inbox.is_known = False
        await self.check_cancelled(key)

    async def check_cancelled(self, key: Key) -> None:
        """Deliver a request to cancel the job, once, and record where."""
        history = self.history
        if not history.is_cancel_requested:
            return
        await self.before_cancelling()
        history.begin_cancelling()
        await self.execute(history.cancelled(key, also=await self.family.cancelling()))
        history.recorded(key, Row("cancelled"))
        raise self._cancelled()

    def _cancelled(self) -> JobCancelled:
        return JobCancelled(f"job {self.history.message.id} of queue {self.history.message.queue!r} was cancelled")

    async def record(self, key: Key, row: Row, *, timer_s: float | None = None, also: Sequence[Any] = ()) -> None:
        """Write a row, if the claim is still held."""
        await self.execute(self.history.checkpoint(key, row, timer_s=timer_s, also=also))
        self.history.recorded(key, row, timer_s=timer_s)

    async def execute(self, command: Command[Any], connection: Any = None) -> Any:
        """Execute a command; while the store is away, it is tried again for as long as the claim may last."""
        tried, since = 0, time.monotonic()
        while True:
            try:
                return await self._access.execute(command, connection)
            except StoreUnavailable:
                tried += 1
                if connection is not None or time.monotonic() - since > self.history.setting.lease_s:
                    raise
                await self.turns.pause(AWAY.delay_s(tried))

    async def deletion(self) -> list[Any]:
        """What removes everything that is recorded of a job that ends."""
        if not self.history.is_durable:
            return []
        await self.refresh()
        return [*self.history.deletion(), *self.maps.dropping(), *(Clear("dict", name, drop=True) for name in self.dicts)]


async def _nothing() -> None:
    pass

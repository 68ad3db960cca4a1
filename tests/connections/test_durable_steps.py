"""`job.options(connection=…).step(…)`: a step is recorded exactly if the rows of its transaction are committed."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from holdfast import AsyncJobContext, Backoff, JobContext, JobFailed, Tasks
from holdfast.workers.steps import turns
from holdfast.workers.steps.history import History
from tests.connections.conftest import Place
from tests.connections.drivers import Shop, order
from tests.connections.test_done import OF_THREADS, finished
from tests.connections.test_transactions import POSTGRES, SQLITE, Open

pytestmark = pytest.mark.anyio

ON_SQLITE = ("sqlite3", "django")
ON_POSTGRES = ("psycopg", "sqlalchemy async session asyncpg")

Body = Callable[["Run"], Awaitable[Any]]


class Died(BaseException):
    """The process ends here."""


class Run:
    """One run of the job: its steps are awaited, whatever kind of handler it has."""

    def __init__(self, job: JobContext, shop: Shop, effects: list[str]) -> None:
        self.job, self.shop, self.effects = job, shop, effects

    async def step(self, name: str, *, alone: bool = False) -> str:
        """A step that inserts an order of its name in the transaction; `alone` it is a step without one."""
        effect: Any = self._note if alone else self._effect
        view: Any = self.job if alone else self.job.options(connection=self.shop.given)
        if isinstance(self.job, AsyncJobContext):
            return str(await view.step(name, effect, name))
        return str(view.step(name, lambda given: finished(effect(given)), name))

    async def _effect(self, name: str) -> str:
        self.effects.append(name)
        await order(self.shop, name)
        if name == "bad":
            raise ValueError("no paper")
        return f"did {name}"

    async def _note(self, name: str) -> str:
        self.effects.append(name)
        return f"did {name}"


class Scene:
    """A store, and shops of one driver."""

    def __init__(self, place: Place, open_shop: Open, level: str, *, in_thread: bool) -> None:
        self.place, self.open_shop, self.level, self.in_thread = place, open_shop, level, in_thread
        self.effects: list[str] = []
        self.app = Tasks(client=place.client, max_attempts=3, backoff=Backoff(first_s=0.0))

    async def run(self, body: Body) -> Any:
        """Run a job until it ends: its result, or its error."""

        async def whole(job: JobContext) -> Any:
            shop = await self.open_shop(self.place.where, self.level)
            try:
                return await body(Run(job, shop, self.effects))
            finally:
                await shop.rollback()
                await shop.close()

        async def in_task(job: AsyncJobContext) -> Any:
            return await whole(job)

        def in_thread(job: JobContext) -> Any:
            return finished(whole(job))

        task: Any = self.app.task(name="buy")(in_thread if self.in_thread else in_task)
        job = await task.aio.put()
        worker = self.app.aio.worker(schedules=False, heartbeat_s=None)
        await worker.run(until_empty=True, signals=False)
        try:
            return await job.result(timeout_s=0)
        except JobFailed as error:
            return str(error)


@pytest.fixture(params=[("sqlite", kind) for kind in ON_SQLITE] + [("postgres", kind) for kind in ON_POSTGRES], ids=" ".join)
def scene(request: pytest.FixtureRequest) -> Scene:
    store, kind = request.param
    place = request.getfixturevalue(f"on_{store}")
    if store == "sqlite":
        return Scene(place, SQLITE[kind][0], "immediate" if kind == "sqlite3" else "deferred", in_thread=False)
    return Scene(place, POSTGRES[kind], "read committed", in_thread=kind in OF_THREADS)


async def test_a_committed_step_is_not_done_again(scene: Scene) -> None:
    runs = list[int]()

    async def body(run: Run) -> str:
        runs.append(1)
        first = await run.step("paper")
        second = await run.step("pens")
        await run.shop.commit()
        third = await run.step("posted", alone=True)
        if len(runs) == 1:
            raise Died
        return f"{first}, {second}, {third}"

    assert await scene.run(body) == "did paper, did pens, did posted"
    assert (scene.effects, scene.place.rows(), len(runs)) == (["paper", "pens", "posted"], ["paper", "pens"], 2)


async def test_a_step_of_a_transaction_that_is_rolled_back_is_done_again(scene: Scene) -> None:
    async def body(run: Run) -> str:
        found = await run.step("paper")
        if len(scene.effects) == 1:
            await run.shop.rollback()
            raise ConnectionError("no money")
        if len(scene.effects) == 2:
            raise Died
        await run.shop.commit()
        return found

    assert await scene.run(body) == "did paper"
    assert (scene.effects, scene.place.rows()) == (["paper"] * 3, ["paper"])


async def test_a_transaction_that_was_rolled_back_can_be_tried_again_in_the_same_run(scene: Scene) -> None:
    assert await scene.run(conflicting(runs := list[int]())) == "did paper, did pens, did posted"
    assert (scene.effects, scene.place.rows(), len(runs)) == ([*["paper", "pens"] * 2, "posted"], ["paper", "pens"], 2)


async def test_control_a_row_that_counts_as_recorded_before_the_commit(on_sqlite: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "CHANGED_S", 0.01)
    monkeypatch.setattr(History, "recorded_within", lambda history, _, key, row: history.recorded(key, row))
    scene = Scene(on_sqlite, SQLITE["sqlite3"][0], "immediate", in_thread=False)
    assert await scene.run(conflicting([])) != "did paper, did pens, did posted"


def conflicting(runs: list[int]) -> Body:
    """A job whose first transaction is rolled back and tried again, and whose first run dies behind all of its steps."""

    async def body(run: Run) -> str:
        runs.append(1)
        found = ""
        for conflicts in (len(runs) == 1, False):
            found = await run.step("paper") + ", " + await run.step("pens")
            await (run.shop.rollback() if conflicts else run.shop.commit())
            if not conflicts:
                break
        posted = await run.step("posted", alone=True)
        if len(runs) == 1:
            raise Died
        return f"{found}, {posted}"

    return body


async def test_a_job_that_goes_on_without_a_step_that_was_rolled_back_is_stopped(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "CHANGED_S", 0.01)

    async def body(run: Run) -> str:
        await run.step("paper")
        await run.shop.rollback()
        return await run.step("posted", alone=True)

    assert "StepsChanged" in (found := await scene.run(body))
    assert "'paper'" in found
    assert "not committed" in found
    assert (scene.effects, scene.place.rows()) == (["paper"] * 3, [])


async def test_what_a_step_in_a_transaction_raises_is_the_handlers(scene: Scene) -> None:
    async def body(run: Run) -> str:
        try:
            await run.step("bad")
        except ValueError:
            await run.shop.rollback()
            if len(scene.effects) < 3:
                raise
        return "gave up"

    assert await scene.run(body) == "gave up"
    assert (scene.effects, scene.place.rows()) == (["bad"] * 3, [])


async def test_the_job_can_be_done_in_the_transaction_of_its_last_step(scene: Scene) -> None:
    async def body(run: Run) -> str:
        found = await run.step("paper")
        done: Any = run.job.done
        ended = done(found, connection=run.shop.given)
        if ended is not None:
            await ended
        await run.shop.commit()
        return "ignored"

    assert await scene.run(body) == "did paper"
    assert (scene.effects, scene.place.rows()) == (["paper"], ["paper"])


@pytest.mark.parametrize("option", [{"once": True}, {"max_attempts": 2}, {"once": True, "reconcile": print}])
def test_options_that_need_another_transaction_are_refused(on_sqlite: Place, option: dict[str, Any]) -> None:
    app, seen = Tasks(client=on_sqlite.client), list[str]()

    @app.task(name="buy")
    def buy(job: JobContext) -> None:
        with pytest.raises(ValueError, match=r"connection=.*of its own") as refused:
            job.options(connection=object(), **option)  # type: ignore[call-arg, arg-type]
        seen.append(str(refused.value))

    buy.put()
    app.worker(schedules=False).run(until_empty=True, signals=False)
    assert len(seen) == 1

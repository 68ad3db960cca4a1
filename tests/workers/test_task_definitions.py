"""What is checked where a task is defined: its name, its parameters, its options."""

from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest

from holdfast import ControlPlaneClient, HoldfastError, JobContext, JobFailed, Tasks, current_job, worker
from holdfast.codec import MSGPACK
from tests.workers import task_app


@pytest.fixture
def client() -> Iterator[ControlPlaneClient]:
    with ControlPlaneClient("memory://") as made:
        yield made


def positional(to: str, /) -> None: ...


def many(*to: str) -> None: ...


def named(**to: str) -> None: ...


@pytest.mark.parametrize("function", [positional, many, named])
def test_parameters_without_a_name_of_their_own_are_refused(function: Callable[..., Any]) -> None:
    with pytest.raises(TypeError, match=f"task {function.__name__} has the .* parameter 'to': the arguments of a job are kept by name"):
        Tasks().task(function)


def generator(to: str) -> Iterator[int]:
    yield len(to)


async def async_generator(to: str) -> AsyncIterator[int]:
    yield len(to)


@pytest.mark.parametrize("function", [generator, async_generator])
@pytest.mark.parametrize("decorate", [Tasks().task, Tasks().batch(), Tasks().consumer("mail"), worker("mail")])
def test_a_generator_function_is_refused_since_nothing_of_it_would_be_run(
    decorate: Callable[..., Any], function: Callable[..., Any]
) -> None:
    with pytest.raises(TypeError, match=rf"{function.__name__}\(to\) is a generator function, and nothing of it would be run"):
        decorate(function)


def test_a_coroutine_that_is_returned_and_not_awaited_is_a_failure(client: ControlPlaneClient) -> None:
    app = Tasks(client=client, max_attempts=1)

    async def inner() -> None: ...

    @app.task
    def send(to: str) -> Any:  # as a decorator makes it that is not async itself
        return inner()

    job = send.put("ann")
    app.run(until_empty=True, signals=False)
    with pytest.raises(JobFailed, match=r"send is not async and returned a coroutine that was not awaited: declare it with async def"):
        job.result()


def test_the_job_is_the_first_parameter() -> None:
    def send(to: str, job: JobContext) -> None: ...

    with pytest.raises(TypeError, match="send is given the job as its first parameter: move 'job' to the front"):
        Tasks().task(send)


def test_what_is_put_and_written_through_a_job_after_its_run_is_refused(client: ControlPlaneClient) -> None:
    app, kept = Tasks(client=client), []

    @app.task
    def send(job: JobContext) -> None:
        kept.append(job)

    send.put()
    app.run(until_empty=True, signals=False)
    with pytest.raises(HoldfastError, match="has ended, and a put of a job goes with its end: do it before the function returns"):
        kept[0].put("mail", "too late")
    with pytest.raises(HoldfastError, match="has ended, and a write of a job"):
        kept[0].write("sent", "ann", 1)


def test_a_function_of_the_main_program_needs_a_name() -> None:
    def send(to: str) -> None: ...

    send.__module__, send.__qualname__ = "__main__", "send"
    with pytest.raises(ValueError, match=r"task send is in the main program, .*@app.task\(name=\"send\"\)"):
        Tasks().task(send)
    assert Tasks().task(name="send")(send).name == "send"


def test_two_tasks_of_one_name_are_refused() -> None:
    app = Tasks()

    @app.task(name="send")
    def send(to: str) -> None: ...

    with pytest.raises(ValueError, match=r"task 'send' is .*send and .*other: give one of them another name"):

        @app.task(name="other", aliases=["send"])
        def other(to: str) -> None: ...


def test_a_misspelt_option_is_refused_with_the_one_that_was_meant() -> None:
    options: dict[str, Any] = {"max_atempts": 3}
    with pytest.raises(TypeError, match=r"the task .*positional has no option 'max_atempts': did you mean 'max_attempts'"):
        Tasks().task(**options)(positional)
    with pytest.raises(TypeError, match=r"Tasks\('shop'\) has no option 'max_atempts': did you mean 'max_attempts'"):
        Tasks("shop", **options)
    with pytest.raises(TypeError, match=r"a worker of Tasks\('numbers'\) has no option 'max_atempts'"):
        task_app.app.worker(**options)
    with pytest.raises(TypeError, match=r"using has no option 'max_atempts'"):
        task_app.double.using(**options)


def test_threads_tasks_and_processes_run_side_by_side(client: ControlPlaneClient) -> None:
    tasks = task_app.on(client)
    jobs: list[Any] = [tasks["double"].put(2), tasks["double_async"].put(3), tasks["double_apart"].put(4), tasks["where"].put()]
    task_app.worker_on(client).run(until_empty=True, signals=False)
    double, double_async, apart, where = (job.result(timeout_s=0) for job in jobs)
    assert (double, double_async, apart[0]) == (4, 6, 8)
    assert apart[1] == where[1] != where[0]


def test_a_task_that_takes_the_job_gets_the_one_that_runs(client: ControlPlaneClient) -> None:
    app = Tasks(client=client)

    @app.task
    def inner(job: JobContext, number: int) -> str:
        return f"{job.id} {number}"

    @app.task
    def outer(number: int) -> str:
        return inner(number)

    job = outer.put(7)
    app.run(until_empty=True, signals=False)
    assert job.result(timeout_s=0) == f"{job.id} 7"
    assert current_job() is None
    with pytest.raises(TypeError, match=r"takes the job, and none is running here: call .*inner.function\(job, …\)"):
        inner(7)


def test_results_are_kept_unless_the_task_says_otherwise(client: ControlPlaneClient) -> None:
    app = Tasks(client=client)

    @app.task
    def nothing(x: int) -> None: ...

    @app.task
    def something(x: int) -> int:
        return x

    @app.task(results=False)
    def dropped(x: int) -> int:
        return x

    assert [task.options.results for task in app.tasks] == [True, True, False]


def test_a_codec_of_the_user_encodes_the_arguments(client: ControlPlaneClient) -> None:
    app = Tasks(client=client, codec=MSGPACK)

    @app.task
    def size(data: Any, more: int = 0) -> int:
        return len(data) + more

    jobs = [size.put(b"abc"), size.put({1, 2}, more=5)]
    app.run(until_empty=True, signals=False)
    assert [job.result(timeout_s=0) for job in jobs] == [3, 7]

"""What is checked where a worker is defined: its queue, its function, its options, its types."""

import functools
import gc
import importlib.util
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from msgspec import Struct
from pydantic import BaseModel

from holdfast import ControlPlaneClient, Job, JobContext, Queue, Tasks, Worker, worker
from holdfast.cli.run_workers import run_workers


@pytest.fixture
def client() -> Iterator[ControlPlaneClient]:
    with ControlPlaneClient("memory://") as made:
        yield made


# The decorator


def test_the_decorator_without_parentheses_says_what_to_write() -> None:
    def send(mail: str) -> None: ...

    with pytest.raises(TypeError, match=r'@worker needs the name of a queue: write @worker\("send"\) above def send'):
        worker(send)  # type: ignore[arg-type]


def test_a_misspelt_option_is_refused_with_the_one_that_was_meant() -> None:
    def send(mail: str) -> None: ...

    options: dict[str, Any] = {"concurency": 4}
    with pytest.raises(
        TypeError, match=r"worker .*send has no option 'concurency': did you mean 'concurrency'\? supported: backoff, base_url"
    ):
        worker("mail", **options)(send)
    with pytest.raises(TypeError, match="did you mean 'concurrency'"):
        Worker(send, "mail").changed(**options)


def test_an_option_like_no_other_is_refused_with_the_list() -> None:
    def send(mail: str) -> None: ...

    options: dict[str, Any] = {"colour": "red"}
    with pytest.raises(TypeError, match="has no option 'colour': supported: backoff, "):
        worker("mail", **options)(send)


# The function


def nothing() -> None: ...
def two(to: str, text: str) -> None: ...
def by_name(*, mail: str) -> None: ...
async def three(to: str, text: str, *, copy: str, job: JobContext) -> None: ...


@pytest.mark.parametrize(
    ("function", "why"),
    [
        (nothing, r"nothing\(\) takes no value: .* write def nothing\(value\)"),
        (by_name, r"by_name\(mail\) takes no value"),
        (two, r"two\(to, text\) takes 2 values, and a job has one: .* read 'to' and 'text' from it"),
        (three, r"three\(to, text, copy, job\) takes 3 values, .* read 'to' and 'text', 'copy' from it"),
    ],
)
def test_a_function_that_cannot_take_one_value_is_refused(function: Callable[..., Any], why: str) -> None:
    with pytest.raises(TypeError, match=why):
        worker("mail")(function)


class Sender:
    def send(self, mail: str, job: JobContext, retries: int = 3) -> None: ...

    def __call__(self, mail: str) -> None: ...


def any_values(*values: Any, **options: Any) -> None: ...


@pytest.mark.parametrize(
    "function", [Sender().send, Sender(), any_values, functools.partial(two, text="hello"), len, print, lambda mail: mail]
)
def test_a_function_that_can_take_one_value_is_accepted(function: Any) -> None:
    assert Worker(function, "mail").queue == "mail"


# Types


@dataclass
class Mail:
    to: str


class Letter(Struct):
    to: str


class Card(BaseModel):
    to: str


@pytest.mark.parametrize("kind", [Mail, Letter, Card])
def test_values_and_results_have_the_types_of_the_annotations(kind: Any, client: ControlPlaneClient) -> None:
    seen: list[Any] = []

    def send(mail: Any) -> Any:
        seen.append(mail)
        return mail

    send.__annotations__ = {"mail": kind, "return": kind}
    made = worker("mail", client=client, results=True)(send)
    job = made.put(kind(to="ann"))
    Queue[Any].from_name("mail", client=client).put({"to": "bob"})
    made.run(until_empty=True)
    assert seen == [kind(to="ann"), kind(to="bob")]
    assert job.result() == kind(to="ann")
    assert Job("mail", job.id, type=kind, client=client).result() == kind(to="ann")


def send_text(mail: "Mail") -> "str":
    return mail.to


def test_an_annotation_that_is_text_counts_and_an_explicit_type_wins(client: ControlPlaneClient) -> None:
    made = Worker(send_text, "mail", client=client)
    with pytest.raises(TypeError, match="dict is not Mail"):
        made.put({"to": "ann"})  # type: ignore[arg-type]
    other = Worker(send_text, "mail", client=client, type=dict[str, str])
    assert other.put({"to": "ann"}).id  # type: ignore[arg-type]
    assert made.changed(type=Letter).put(Letter("ann")).id  # type: ignore[arg-type]


def test_a_type_and_a_codec_are_one_too_many(client: ControlPlaneClient) -> None:
    from holdfast.codec import JSON

    with pytest.raises(ValueError, match="give type= or codec=, not both"):
        Worker(send_text, "mail", client=client, type=Mail, codec=JSON)


# One function a queue

ONE = "from holdfast import worker\n\n@worker({options})\ndef a(value): ...\n"
TWO = ONE + "\n@worker({options})\ndef b(value): ...\n"


@pytest.fixture
def load(tmp_path: Path) -> Iterator[Callable[..., ModuleType]]:
    loaded: list[str] = []

    def load(text: str, name: str, file: str = "two.py", options: str = "'default', base_url='memory://two'") -> ModuleType:
        (tmp_path / file).write_text(text.format(options=options))
        spec = importlib.util.spec_from_file_location(name, tmp_path / file)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        loaded.append(name)
        spec.loader.exec_module(module)
        return module

    yield load
    for name in loaded:
        sys.modules.pop(name, None)
    gc.collect()


def test_a_second_function_of_a_queue_is_refused_by_the_names_of_both(load: Callable[..., ModuleType]) -> None:
    with pytest.raises(ValueError, match=r"queue 'default' has the functions two\.a and two\.b, .*: give each function a queue of its own"):
        load(TWO, "two")


def test_a_second_function_in_another_module_is_refused_too(load: Callable[..., ModuleType]) -> None:
    first = load(ONE, "first", "first.py")
    with pytest.raises(ValueError, match=r"first\.a and second\.a"):
        load(ONE, "second", "second.py")
    assert first.a.queue == "default"


def test_the_same_function_may_be_defined_again(load: Callable[..., ModuleType]) -> None:
    first = load(ONE, "two")
    again, under_another_name = load("\n\n" + ONE, "two"), load("\n\n" + ONE, "__other_main__")
    assert {one.a.queue for one in (first, again, under_another_name)} == {"default"}


def test_functions_of_different_stores_and_queues_are_apart(load: Callable[..., ModuleType]) -> None:
    modules = [load(ONE, f"m{n}", f"m{n}.py", options) for n, options in enumerate(("'q'", "'r'", "'q', base_url='memory://a'"))]
    assert [module.a.queue for module in modules] == ["q", "r", "q"]


def test_a_function_that_is_gone_leaves_its_queue(load: Callable[..., ModuleType]) -> None:
    load(ONE, "gone", "gone.py")
    sys.modules.pop("gone")
    gc.collect()
    assert load(ONE, "next", "next.py").a.queue == "default"


def test_functions_inside_functions_may_share_a_queue_one_after_the_other() -> None:
    def define(answer: int) -> Worker[Any, Any, Any]:
        @worker("default", base_url="memory://two")
        def handle(value: int) -> int:
            return answer

        return handle

    @worker("default", base_url="memory://two")
    def another(value: int) -> int:
        return value

    assert [made(1) for made in (define(1), define(2), another)] == [1, 2, 1]


def test_two_functions_of_a_queue_are_not_started_together(client: ControlPlaneClient) -> None:
    def a(value: int) -> None: ...
    def b(value: int) -> None: ...

    with pytest.raises(ValueError, match=r"queue 'default' has the functions .*a and .*b"):
        run_workers([Worker(a, "default", client=client), Worker(b, "default", client=client)], until_empty=True)
    run_workers([Worker(a, "default", client=client), Worker(a, "default", client=client)], until_empty=True)
    run_workers([Worker(a, "default", client=client), Worker(b, "other", client=client)], until_empty=True)


CONSUMED = "from holdfast import Tasks\n\napp = Tasks(base_url='memory://two')\n\n@app.consumer('default')\ndef c(value): ...\n"


def test_a_consumer_of_tasks_and_a_worker_cannot_share_a_queue(load: Callable[..., ModuleType]) -> None:
    first = load(ONE, "first", "first.py")
    with pytest.raises(ValueError, match=r"queue 'default' has the functions first\.a and second\.c"):
        load(CONSUMED, "second", "second.py")
    assert first.a.queue == "default"


def test_a_worker_of_a_function_is_tasks_with_one_consumer(client: ControlPlaneClient) -> None:
    def send(mail: str) -> str:
        return mail.upper()

    app = Tasks(client=client)
    app.consumer("mail", results=True)(send)
    short, long = worker("mail", client=client, results=True)(send), app.worker()
    assert {type(short), type(long)} == {Worker}
    assert short.orders.queues == long.orders.queues == ("mail",)
    job = short.put("ann")
    long.run(until_empty=True, signals=False)
    assert job.result(timeout_s=0) == "ANN"


def test_a_worker_of_tasks_has_no_function_of_its_own(client: ControlPlaneClient) -> None:
    app = Tasks(client=client)

    @app.task
    def send(to: str) -> None: ...

    made: Any = app.worker()
    with pytest.raises(TypeError, match="has no function of its own: call and put its tasks"):
        made.put(1)

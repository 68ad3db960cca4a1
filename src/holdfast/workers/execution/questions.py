"""Commands that a job in a child process asks its parent to execute, over the pipe."""

import asyncio
import itertools
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

from msgspec import Raw, Struct, json

from holdfast.commands import Command
from holdfast.commands.together import decode_command, encode_command
from holdfast.errors import StoreError
from holdfast.records import MaybeRaw
from holdfast.stores.http.problems import Problem, error_of, problem_of
from holdfast.stores.http.protocol import decode_answer
from holdfast.workers.handlers.outcomes import shown
from holdfast.workers.steps.access import Access

R = TypeVar("R")


class Ask(Struct, tag=True):
    """A command that a job asks its parent to execute."""

    token: int
    number: int
    command: Raw


class Answer(Struct, tag=True, omit_defaults=True):
    """What came of a command: its answer, or its error."""

    number: int
    answer: MaybeRaw = None
    problem: Problem | None = None


class Questions:
    """The questions of a child that wait for an answer."""

    def __init__(self, say: Callable[[Ask], None]) -> None:
        self._say = say
        self._numbers = itertools.count(1)
        # Guards _waiting.
        self._lock = threading.Lock()
        self._waiting: dict[int, Future[Answer]] = {}

    def ask(self, token: int, command: Command[Any]) -> "Future[Answer]":
        """Send a command to the parent."""
        number, future = next(self._numbers), Future[Answer]()
        with self._lock:
            self._waiting[number] = future
        self._say(Ask(token, number, Raw(encode_command(command))))
        return future

    def answer(self, answer: Answer) -> None:
        """Give an answer to who asked for it."""
        with self._lock:
            future = self._waiting.pop(answer.number, None)
        if future is not None:
            future.set_result(answer)


class PipeAccess:
    """Executes commands by asking the parent, for handlers in the main thread of a child."""

    def __init__(self, questions: Questions, token: int) -> None:
        self._questions = questions
        self._token = token

    def execute(self, command: Command[R], connection: Any = None) -> R:
        """See `Access.execute`."""
        _refuse_connection(connection)
        return _answered(command, self._questions.ask(self._token, command).result())


class AsyncPipeAccess:
    """Executes commands by asking the parent, for async handlers of a child."""

    def __init__(self, questions: Questions, token: int) -> None:
        self._questions = questions
        self._token = token

    async def execute(self, command: Command[R], connection: Any = None) -> R:
        """See `Access.execute`."""
        _refuse_connection(connection)
        return _answered(command, await asyncio.wrap_future(self._questions.ask(self._token, command)))


def executed(access: Access, question: Ask) -> Answer:
    """Execute what a child asks for."""
    try:
        return Answer(question.number, Raw(json.encode(_execute(access, decode_command(question.command)))))
    except Exception as error:  # noqa: BLE001 - whatever it is, it is raised in the child
        problem = problem_of(error) or Problem("store_error", 500, shown(error))
        return Answer(question.number, problem=problem)


def _execute(access: Access, command: Command[Any]) -> Any:
    return access.execute(command)


def _answered(command: Command[R], answer: Answer) -> R:
    if answer.problem is not None:
        raise error_of(answer.problem)
    answered: R = decode_answer(command, answer.answer or b"null")
    return answered


def _refuse_connection(connection: Any) -> None:
    if connection is not None:
        raise StoreError("a function in a child process has no store of its own for connection=: run it in threads or as tasks")

"""Random durable handlers: programs as data, which a task interprets."""

import asyncio
import random
from collections import Counter
from collections.abc import Iterator
from itertools import count, islice
from typing import Any

from holdfast import AsyncJobContext, Backoff, StepFailed, Tasks

Program = list[Any]
"""Operations, each a tuple of its kind and its parts."""

KINDS = ("step", "step", "step", "sleep", "wait", "call", "gather", "fails")


def program(chosen: random.Random, size: int, depth: int = 2, numbers: Iterator[int] | None = None) -> Program:
    """A random program; each of its operations has a number of its own."""
    numbers, made = numbers or count(), list[Any]()
    for number in islice(numbers, size):
        kind = chosen.choice(KINDS if depth else KINDS[:-2])
        if kind == "gather":
            made.append(("gather", [program(chosen, chosen.randint(1, 3), depth - 1, numbers) for _ in range(2)]))
        elif kind == "sleep":
            made.append(("sleep", 10 + number % 7))
        else:
            made.append((kind, number))
    return made


def mutated(chosen: random.Random, made: Program) -> Program:
    """The program with a step renamed, inserted, removed or with another argument."""
    changed = [*made]
    place, how = chosen.randrange(len(changed)), chosen.choice(("rename", "insert", "remove"))
    if how == "insert":
        changed.insert(place, ("step", 99_999))
    elif how == "remove" and len(changed) > 1:
        del changed[place]
    else:
        changed[place] = ("step", 88_888)
    return changed


class Effects:
    """What the steps of a program did."""

    def __init__(self) -> None:
        self.count: Counter[str] = Counter()

    def of(self, step: str) -> int:
        """How often a step was done."""
        return sum(count for effect, count in self.count.items() if effect.startswith(f"{step} "))


def tasks_of(client: Any, effects: Effects, made: Program) -> Tasks:
    """A task that runs the program."""
    app = Tasks("random", client=client, max_attempts=10)

    def note(name: str, number: int) -> int:
        effects.count[f"{name} {number}"] += 1
        return number + 1

    def fail(number: int) -> int:
        effects.count[f"fails {number}"] += 1
        raise ValueError(number)

    @app.task(name="child")
    def child(number: int) -> int:
        return number * 3

    @app.task(name="run")
    async def run(job: AsyncJobContext) -> Any:
        return await block(job, made)

    async def block(job: AsyncJobContext, operations: Program) -> list[Any]:
        return [await operations_of[kind](job, what) for kind, what in operations]

    async def gather(job: AsyncJobContext, parts: list[Program]) -> list[Any]:
        return list(await asyncio.gather(*(block(job.branch(str(one)), part) for one, part in enumerate(parts))))

    async def fails(job: AsyncJobContext, number: int) -> Any:
        try:
            return await job.options(max_attempts=2, backoff=Backoff(first_s=2.0)).step(f"fails {number}", fail, number)
        except StepFailed as error:
            return str(error)

    operations_of: dict[str, Any] = {
        "step": lambda job, number: job.step(f"step {number}", note, f"step {number}", number),
        "sleep": lambda job, seconds: job.sleep(seconds),
        "wait": lambda job, number: job.wait(f"go {number}", int),
        "call": lambda job, number: job.call(child, number),
        "gather": gather,
        "fails": fails,
    }

    return app


def waits_of(made: Program) -> list[int]:
    """The numbers of all waits in a program."""
    found: list[int] = []
    for kind, what in made:
        found += [what] if kind == "wait" else [number for part in what for number in waits_of(part)] if kind == "gather" else []
    return found

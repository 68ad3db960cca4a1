"""Every call that localqueue's document or the package itself accepts is accepted here: names, places and defaults of parameters.

`localqueue_signatures.txt` was printed from localqueue 0.5.0 with `inspect`; `...` stands for a default that is an object. The package is
not needed to run this.
"""

import inspect
import re
from pathlib import Path
from typing import Any

import pytest

from holdfast.surfaces import localqueue

PACKAGE = (Path(__file__).parent / "localqueue_signatures.txt").read_text().splitlines()

DOCUMENT = """\
PersistentQueue.put(item, block=True, timeout=None, delay=0.0, priority=0)
PersistentQueue.put_nowait(item)
PersistentQueue.get(block=True, timeout=None, leased_by=None)
PersistentQueue.get_message(block=True, timeout=None, leased_by=None)
PersistentQueue.inspect(message_id)
PersistentQueue.ack(message)
PersistentQueue.release(message, delay=0.0, error=None)
PersistentQueue.dead_letter(message, error=None)
PersistentQueue.dead_letters(limit=None)
PersistentQueue.requeue_dead(message, delay=0.0)
PersistentQueue.prune_dead_letters(older_than)
PersistentQueue.count_dead_letters_older_than(older_than)
persistent_worker(queue, config=None, **retry_kwargs)
persistent_async_worker(queue, config=None, **retry_kwargs)
key_from_argument(name)
key_from_attr(argument_name, attribute_name, *, prefix=None)
idempotency_key_from_id(argument_name, *, prefix=None)
close_default_store(all_threads=False)
""".splitlines()
"""As the document writes them: what stands before a `*`, or where there is none, may be given by its place."""

BY_PLACE = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.POSITIONAL_ONLY)


@pytest.mark.parametrize("owner", dict.fromkeys(re.split(r"[.(]", line)[0] for line in [*PACKAGE, *DOCUMENT]))
def test_calls_that_localqueue_accepts_are_accepted(owner: str) -> None:
    lines = [line for line in [*PACKAGE, *DOCUMENT] if re.split(r"[.(]", line)[0] == owner]
    assert not {line: problems for line in lines if (problems := problems_of(line))}


def problems_of(line: str) -> list[str]:
    name, _, rest = line.partition("(")
    theirs = inspect.signature(eval(f"lambda {rest[: rest.rindex(')')]}: None"))  # noqa: S307 - our own file
    return refused(theirs, signature_of(name))


def signature_of(name: str) -> inspect.Signature:
    owner: Any = localqueue
    *path, last = name.split(".")
    for part in path:
        owner = getattr(owner, part)
    thing = getattr(owner, last)
    signature = inspect.signature(thing)
    if not inspect.isclass(owner) or inspect.ismethod(thing):
        return signature
    return signature.replace(parameters=[*signature.parameters.values()][1:])


def refused(theirs: inspect.Signature, ours: inspect.Signature) -> list[str]:
    """What can be said there and not here."""
    found = dict(ours.parameters)
    several = {one.kind: one.name for one in found.values() if one.kind in (one.VAR_POSITIONAL, one.VAR_KEYWORD)}
    places = [one.name for one in found.values() if one.kind in BY_PLACE]
    problems = []
    for index, one in enumerate(theirs.parameters.values()):
        if one.kind in (one.VAR_POSITIONAL, one.VAR_KEYWORD):
            problems += [] if one.kind in several else [f"no {one}"]
        elif one.name not in found:
            problems += [] if one.kind is one.KEYWORD_ONLY and one.VAR_KEYWORD in several else [f"no parameter {one.name}"]
        else:
            problems += [f"{one.name} is not in place {index}"] if one.kind in BY_PLACE and places[index : index + 1] != [one.name] else []
            problems += _defaults_differ(one, found[one.name])
    needed = {name for name, one in found.items() if one.default is one.empty and one.kind not in several}
    return problems + [f"{name} is needed" for name in needed - {*theirs.parameters}]


def _defaults_differ(theirs: inspect.Parameter, ours: inspect.Parameter) -> list[str]:
    if theirs.default is ... and ours.default is not ours.empty:
        return []
    return [] if theirs.default == ours.default else [f"{theirs.name} is {ours.default!r} by default, not {theirs.default!r}"]

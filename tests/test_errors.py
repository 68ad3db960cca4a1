"""Errors cross processes: each is the same after it was pickled."""

import importlib
import inspect
import pickle
import pkgutil
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

import pytest

import holdfast
from holdfast.errors import ClaimLost, Compacted, LockTimeout, StoreMoved
from holdfast.records import Receipt
from holdfast.surfaces.localqueue import PersistentRetryExhausted, QueueStoreLockedError

INTERNAL = ("holdfast.__main__", "holdfast.cli", "holdfast.stores", "holdfast.testing", "holdfast.integrations.django")

ARGUMENTS = {"str": "text", "int": 3, "float": 1.5, "str | PathLike[str]": "a/path", "collections.abc.Mapping[int, BaseException]": {}}
"""What constructors are given, by the type they ask for; what has a default is left out."""


def errors() -> list[type[Exception]]:
    """Every class that programs can meet: not what stores and commands keep to themselves."""
    found: dict[str, type[Exception]] = {}
    for module in pkgutil.walk_packages(holdfast.__path__, "holdfast.", onerror=lambda _: None):
        if module.name.startswith(INTERNAL):
            continue
        for name, value in vars(importlib.import_module(module.name)).items():
            is_error = inspect.isclass(value) and issubclass(value, Exception) and value.__module__.startswith("holdfast")
            if is_error and not name.startswith("_") and not value.__module__.startswith(INTERNAL):
                found[f"{value.__module__}.{value.__name__}"] = value
    return [found[name] for name in sorted(found)]


def made(kind: type[Exception]) -> Exception:
    if not inspect.isfunction(kind.__init__):
        return kind("text")
    parameters = [p for p in inspect.signature(kind).parameters.values() if p.default is p.empty and p.kind is p.POSITIONAL_OR_KEYWORD]
    return kind(*[ARGUMENTS.get(inspect.formatannotation(p.annotation), "text") for p in parameters] or ["text"])


@pytest.mark.parametrize("kind", errors(), ids=lambda kind: kind.__name__)
def test_an_error_is_the_same_after_pickling(kind: type[Exception]) -> None:
    error = made(kind)
    error.add_note("a note")
    found = pickle.loads(pickle.dumps(error))  # noqa: S301 - our own
    assert type(found) is kind
    assert (str(found), found.args, vars(found)) == (str(error), error.args, vars(error))


def raise_here(error: Exception) -> None:
    raise error


@pytest.mark.parametrize(
    "error",
    [
        Compacted("gone", 7),
        StoreMoved("moved", "sqlite:///there"),
        PersistentRetryExhausted("key", 3),
        QueueStoreLockedError("a/path"),
        ClaimLost("lost", [Receipt("q", "id", 1)]),
        LockTimeout("late"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_an_error_comes_out_of_a_process_pool(error: Any) -> None:
    with ProcessPoolExecutor(1, mp_context=get_context("fork")) as pool, pytest.raises(type(error)) as caught:
        pool.submit(raise_here, error).result(60)
    assert str(caught.value) == str(error)
    assert {name: value for name, value in vars(caught.value).items() if not name.startswith("__")} == vars(error)

"""The parts of one atomic step, and their results."""

from typing import Any, Generic, Protocol, TypeVar

from holdfast.arguments.where import reach, refuse_pickle
from holdfast.client import ControlPlaneClient
from holdfast.codec import JSON, Codec
from holdfast.records import Entry

R = TypeVar("R")


class Handle(Protocol):
    """A queue, a dict, a lock or a limiter, of threads or of tasks."""

    @property
    def name(self) -> str:
        """What it is called."""
        ...


class Step(Generic[R]):
    """One part of an atomic step; `result` is there once the whole was committed."""

    def __init__(self) -> None:
        self._results: list[R] = []

    @property
    def result(self) -> R:
        """What this part returned; RuntimeError before the commit."""
        if not self._results:
            raise RuntimeError("the step was not committed: its results are there after the `with` block was left without an error")
        return self._results[0]

    def answer(self, result: R) -> None:
        """Keep the result."""
        self._results = [result]


def named(handle: Handle | str, client: ControlPlaneClient) -> tuple[str, Codec]:
    """The name and codec of a queue or dict, which must be in the client's store."""
    if isinstance(handle, str):
        return handle, JSON
    codec: Codec = vars(handle)["_codec"]
    refuse_pickle(client, codec)
    return name_of(handle, client), codec


def name_of(handle: Handle, client: ControlPlaneClient) -> str:
    """The name of a handle, which must be in the client's store."""
    own: dict[str, Any] = vars(handle)
    if (own["_client"] is not None or own["_base_url"] is not None) and not is_same_store(reach(own["_client"], own["_base_url"]), client):
        raise in_another_store(handle.name)
    return handle.name


def in_another_store(name: object) -> ValueError:
    """What is said of a part that one step cannot have."""
    return ValueError(f"{name!r} is in another store than this step, and one step is of one store")


def is_same_store(one: ControlPlaneClient, other: ControlPlaneClient) -> bool:
    """Whether one atomic step can have parts of both."""
    if one is other or one.store is other.store:
        return True
    return one.store.url == other.store.url and one.store.guarantees.shared_by != "threads"


def value_of(codec: Codec, entry: Entry | None) -> Any:
    """The value of an entry, None where there is none."""
    return None if entry is None else codec.decode(entry.value)

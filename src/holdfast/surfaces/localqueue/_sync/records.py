# Generated from src/holdfast/surfaces/localqueue/_async/records.py by tools/unasync.py; do not edit.
"""Records under text keys: ours in a dict, where those with an age are found without reading the others; a user's store by its methods."""

from collections.abc import Iterator
from typing import Any

from holdfast._sync.handles.mapping import Dict
from holdfast._sync.handles.together import Together
from holdfast.surfaces.localqueue.record_location import RecordLocation, age_line, fitting, moment_text


def load(store: Any, key: str) -> Any | None:
    """The record, None where there is none."""
    if not isinstance(store, RecordLocation):
        return store.load(key)
    return store.decoded(_records(store).get(fitting(key)))


def save(store: Any, key: str, record: Any) -> None:
    """Keep a record in place of what was there."""
    if not isinstance(store, RecordLocation):
        store.save(key, record)
        return
    with Together(store.client) as step:
        write(step, store, key, record)


def write(step: Together, store: RecordLocation[Any], key: str, record: Any) -> None:
    """Keep a record as a part of an atomic step."""
    value, moment = store.encoded(record)
    step.write(_records(store), fitting(key), value)
    if moment is not None:
        # An earlier line of the same key stays: a prune looks at the record, too.
        step.write(_ages(store), age_line(moment, key), True)  # noqa: FBT003 - the value of a line


def delete(store: Any, key: str) -> None:
    """Remove a record, if there is one."""
    if isinstance(store, RecordLocation):
        _records(store).delete(fitting(key))
    else:
        store.delete(key)


def count(store: RecordLocation[Any], cutoff: float) -> int:
    """How many records have an age that counts from the cutoff or before."""
    return len([line for line in _lines(store, cutoff) if _is_current(store, line)])


def prune(store: RecordLocation[Any], cutoff: float) -> int:
    """Remove those, and return how many they were."""
    removed = 0
    for line in _lines(store, cutoff):
        if _is_current(store, line):
            _records(store).delete(_key_of(line))
            removed += 1
        _ages(store).delete(line)
    return removed


def _lines(store: RecordLocation[Any], cutoff: float) -> Iterator[str]:
    # Sorts behind every line of the cutoff, and before those of the next moment.
    end = f"{moment_text(cutoff)}!"
    for page in _ages(store).pages():
        for line, _ in page:
            if line >= end:
                return
            yield line


def _is_current(store: RecordLocation[Any], line: str) -> bool:
    """Whether the record still is as it was when the line was written."""
    value = _records(store).get(_key_of(line))
    moment = None if value is None else value[store.moment]
    return moment is not None and line.startswith(f"{moment_text(moment)} ")


def _records(store: RecordLocation[Any]) -> Dict[Any]:
    return Dict(store.dict_name, client=store.client)


def _ages(store: RecordLocation[Any]) -> Dict[Any]:
    return Dict(f"{store.dict_name}-ages", client=store.client)


def _key_of(line: str) -> str:
    return line.partition(" ")[2]

"""Records under text keys: ours in a dict, where those with an age are found without reading the others; a user's store by its methods."""

from collections.abc import AsyncIterator
from typing import Any

from holdfast._async.handles.mapping import AsyncDict
from holdfast._async.handles.together import AsyncTogether
from holdfast.surfaces.localqueue.record_location import RecordLocation, age_line, fitting, moment_text


async def load(store: Any, key: str) -> Any | None:
    """The record, None where there is none."""
    if not isinstance(store, RecordLocation):
        return store.load(key)
    return store.decoded(await _records(store).get(fitting(key)))


async def save(store: Any, key: str, record: Any) -> None:
    """Keep a record in place of what was there."""
    if not isinstance(store, RecordLocation):
        store.save(key, record)
        return
    async with AsyncTogether(store.client) as step:
        write(step, store, key, record)


def write(step: AsyncTogether, store: RecordLocation[Any], key: str, record: Any) -> None:
    """Keep a record as a part of an atomic step."""
    value, moment = store.encoded(record)
    step.write(_records(store), fitting(key), value)
    if moment is not None:
        # An earlier line of the same key stays: a prune looks at the record, too.
        step.write(_ages(store), age_line(moment, key), True)  # noqa: FBT003 - the value of a line


async def delete(store: Any, key: str) -> None:
    """Remove a record, if there is one."""
    if isinstance(store, RecordLocation):
        await _records(store).delete(fitting(key))
    else:
        store.delete(key)


async def count(store: RecordLocation[Any], cutoff: float) -> int:
    """How many records have an age that counts from the cutoff or before."""
    return len([line async for line in _lines(store, cutoff) if await _is_current(store, line)])


async def prune(store: RecordLocation[Any], cutoff: float) -> int:
    """Remove those, and return how many they were."""
    removed = 0
    async for line in _lines(store, cutoff):
        if await _is_current(store, line):
            await _records(store).delete(_key_of(line))
            removed += 1
        await _ages(store).delete(line)
    return removed


async def _lines(store: RecordLocation[Any], cutoff: float) -> AsyncIterator[str]:
    # Sorts behind every line of the cutoff, and before those of the next moment.
    end = f"{moment_text(cutoff)}!"
    async for page in _ages(store).pages():
        for line, _ in page:
            if line >= end:
                return
            yield line


async def _is_current(store: RecordLocation[Any], line: str) -> bool:
    """Whether the record still is as it was when the line was written."""
    value = await _records(store).get(_key_of(line))
    moment = None if value is None else value[store.moment]
    return moment is not None and line.startswith(f"{moment_text(moment)} ")


def _records(store: RecordLocation[Any]) -> AsyncDict[Any]:
    return AsyncDict(store.dict_name, client=store.client)


def _ages(store: RecordLocation[Any]) -> AsyncDict[Any]:
    return AsyncDict(f"{store.dict_name}-ages", client=store.client)


def _key_of(line: str) -> str:
    return line.partition(" ")[2]

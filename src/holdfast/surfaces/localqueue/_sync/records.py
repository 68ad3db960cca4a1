# Generated from src/holdfast/surfaces/localqueue/_async/records.py by tools/unasync.py; do not edit.
"""Records under text keys, kept in a dict; those with a moment can be found by age without reading the others."""

from collections.abc import Iterator
from typing import Any

from holdfast._sync.handles.mapping import Dict
from holdfast._sync.handles.together import Together
from holdfast.surfaces.localqueue.places import Place, fitting, microseconds


class Records:
    """The records of one kind at a place. A save replaces what was there."""

    def __init__(self, place: Place, name: str) -> None:
        self._place = place
        self._name = name

    def load(self, key: str) -> Any | None:
        """The record, None where there is none."""
        return self._dict.get(fitting(key))

    def save(self, key: str, record: Any, at: float | None = None) -> None:
        """Keep a record; `at` is the moment from which its age counts, for those that have one."""
        with Together(self._place.client) as step:
            self.write(step, key, record, at)

    def write(self, step: Together, key: str, record: Any, at: float | None = None) -> None:
        """Keep a record as a part of an atomic step."""
        step.write(self._dict, fitting(key), record)
        if at is not None:
            # An earlier line of the same key stays: whoever prunes looks at the record, too.
            step.write(self._ages, f"{microseconds(at):020d} {fitting(key)}", True)  # noqa: FBT003 - the value of a line

    def delete(self, key: str) -> None:
        """Remove a record, if there is one."""
        self._dict.delete(fitting(key))

    def count(self, cutoff: float, field: str) -> int:
        """How many have their moment, in this field, at the cutoff or before."""
        return len([line for line in self._lines(cutoff) if self._is_of(line, field)])

    def prune(self, cutoff: float, field: str) -> int:
        """Remove those, and answer how many they were."""
        count = 0
        for page in self._ages.pages():
            for line, _ in page:
                if line >= _end(cutoff):
                    return count
                if self._is_of(line, field):
                    self._dict.delete(_key_of(line))
                    count += 1
                self._ages.delete(line)
        return count

    def _lines(self, cutoff: float) -> Iterator[str]:
        for page in self._ages.pages():
            for line, _ in page:
                if line >= _end(cutoff):
                    return
                yield line

    def _is_of(self, line: str, field: str) -> bool:
        """Whether the record still is as it was when the line was written."""
        record = self._dict.get(_key_of(line))
        return record is not None and record[field] is not None and line.startswith(f"{microseconds(record[field]):020d} ")

    @property
    def _dict(self) -> Dict[Any]:
        return Dict(self._name, client=self._place.client)

    @property
    def _ages(self) -> Dict[Any]:
        return Dict(f"{self._name}-ages", client=self._place.client)


def _end(cutoff: float) -> str:
    """What stands behind every line of the cutoff and before."""
    return f"{microseconds(cutoff):020d}!"


def _key_of(line: str) -> str:
    return line.partition(" ")[2]

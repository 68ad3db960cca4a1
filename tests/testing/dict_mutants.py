"""What a careless store might do when it clears a dict by prefix."""

from typing import Any

from msgspec.structs import replace

from holdfast.commands.objects import Clear
from holdfast.records import Entry
from tests.testing.controls import Mutant


def everything(original: Any, clear: Clear, tx: Any, plan: Any) -> Any:
    return original(replace(clear, prefix=None), tx, plan)


def forgetting_the_fence(_: Any, entry: Entry) -> Entry:
    return Entry(entry.dict, entry.key, entry.value, 0)


DICT_MUTANTS = [
    Mutant(
        "clears all, not the prefix", Clear, "write", everything, "test_clearing_by_prefix_removes_the_entries_whose_keys_begin_with_it"
    ),
    Mutant(
        "forgets fences when it clears a prefix",
        Entry,
        "deleted",
        forgetting_the_fence,
        "test_clearing_by_prefix_leaves_leases_and_fences_and_counts_no_ended_entry",
    ),
]

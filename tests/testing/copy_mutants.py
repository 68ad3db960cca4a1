"""What a careless store might do as the source or the target of a copy."""

from typing import Any

from msgspec.structs import replace

from holdfast.commands import copying, lease_list
from holdfast.records.policies import NO_SETTINGS
from holdfast.stores.memory.log import Log
from holdfast.stores.memory.transaction import MemoryTransaction as Tx
from tests.testing.controls import Mutant
from tests.testing.mutants import nothing


def in_an_order_of_its_own(original: Any, tx: Any, messages: Any) -> Any:
    first = tx.tables.last_number + 1
    original(tx, [replace(message, n=n) for n, message in enumerate(messages, first)])


def at_its_beginning(original: Any, tx: Any, copying: Any) -> Any:
    original(tx, copying and replace(copying, place=""))


COPY_MUTANTS = [
    Mutant(
        "copies moments",
        copying.Copying,
        "_moment",
        lambda _, __, moment: moment,
        "test_everything_is_moved_out_as_it_was",
    ),
    Mutant(
        "does not tell which capacities were set",
        lease_list,
        "_held",
        lambda original, *given: (replace(one, resized=False) for one in original(*given)),
        "test_a_capacity_that_was_set_is_set_in_the_copy",
    ),
    Mutant(
        "copies groups without their settings",
        copying.Copying,
        "lane",
        lambda original, *given: replace(original(*given), own=NO_SETTINGS),
        "test_everything_is_moved_out_as_it_was",
    ),
    Mutant("copies without order", Tx, "add", in_an_order_of_its_own, "test_messages_of_one_moment_keep_their_order_whatever_their_state"),
    Mutant("begins its tokens anew", Tx, "raise_numbers", nothing, "test_tokens_and_revisions_go_on_above_those_of_the_source"),
    Mutant("tells old watchers nothing", Log, "floor", lambda *_: 0, "test_a_watch_that_goes_on_from_the_source_is_told_to_begin_anew"),
    Mutant("forgets fences of deleted keys", copying.Import, "_raise_fences", nothing, "test_a_stale_fence_stays_refused"),
    Mutant("goes on after it was moved", Tx, "seal", nothing, "test_nobody_goes_on_with_the_source"),
    Mutant(
        "seals whatever was written meanwhile", copying.Seal, "check", nothing, "test_a_source_that_is_written_to_meanwhile_is_not_sealed"
    ),
    Mutant("copies while leases are held", Tx, "leases_of", lambda *_: iter(()), "test_a_source_with_a_lease_is_not_copied"),
    Mutant("overwrites what is there", copying.Import, "_refuse_taken", nothing, "test_a_merge_refuses_an_entry_that_is_in_both"),
    Mutant("forgets how far it came", Tx, "save_copying", at_its_beginning, "test_an_interrupted_copy_goes_on_where_it_was"),
]

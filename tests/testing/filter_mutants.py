"""Stores that look through queues in a wrong way."""

from holdfast.commands import Count, filtered
from holdfast.commands.filtered import Walk
from tests.testing.controls import Mutant

FILTER_MUTANTS = [
    Mutant(
        "counts all",
        Count,
        "check",
        lambda _, count, tx: tx.tally(count.queue).stats(tx.now),
        "test_what_a_filter_finds_is_counted_in_every_state",
    ),
    Mutant("looks at everything", filtered, "LOOKED_AT", 10**9, "test_a_filter_looks_at_a_part_of_a_queue_and_says_where_to_go_on"),
    Mutant("looks at everything to count", filtered, "LOOKED_AT", 10**9, "test_what_a_filter_finds_is_counted_part_by_part"),
    Mutant(
        "counts from the beginning again",
        Walk,
        "found_behind",
        lambda found_behind, walk, _: found_behind(walk, None),
        "test_what_a_filter_finds_is_counted_part_by_part",
    ),
    Mutant(
        "ends a page at its last message only",
        Walk,
        "behind",
        lambda _, __, found, asked: filtered.cursor(found[-1]) if len(found) == asked.limit else None,
        "test_a_filter_looks_at_a_part_of_a_queue_and_says_where_to_go_on",
    ),
]

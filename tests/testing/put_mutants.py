"""What a careless store might do with the options of a put, with signals and with progress."""

from typing import Any

from msgspec.structs import replace

from holdfast.commands import dicts
from holdfast.commands.change import Change
from holdfast.commands.moving import Move
from holdfast.commands.placement import Placement
from holdfast.commands.recent import Recent
from holdfast.commands.settling import Extend
from holdfast.records import Message
from tests.testing.controls import Mutant, PlainStore
from tests.testing.mutants import look_first_write_later, nothing


def counting_updates(original: Any, placement: Any, message: Any, item: Any, wall_offset: int) -> None:
    original(placement, message, item, wall_offset)
    if placement.recent is not None:
        placement.recent.begin(item.key, message.id, item.unique_for_s)


def to_the_dead(original: Any, move: Any, tx: Any) -> Any:
    return original(replace(move, to="ready") if move.to == "due" else move, tx)


PUT_MUTANTS = [
    Mutant("knows no rate", Change, "due_in", lambda *_: 0, "test_a_burst_comes_at_once_and_then_one_in_each_interval"),
    Mutant(
        "forgets the rate that was left",
        Change,
        "used_up_until",
        lambda original, change, until, now: original(change, None, now),
        "test_no_window_has_more_than_its_rate_and_little_is_left_unused",
    ),
    Mutant(
        "wastes the rate",
        Change,
        "due_in",
        lambda original, change, until, now: original(change, until, now) + change.interval_us // 20 * (until is not None),
        "test_no_window_has_more_than_its_rate_and_little_is_left_unused",
    ),
    Mutant(
        "looks at the rate before it has the entry",
        PlainStore,
        "execute",
        look_first_write_later,
        "test_of_many_at_once_no_more_than_the_burst_come_through",
    ),
    Mutant(
        "does not say when the rate of a step is free",
        dicts,
        "not_written",
        lambda original, *given: original(*given[:4]),
        "test_a_step_is_refused_whole_where_a_rate_is_used_up",
    ),
    Mutant("revives the dead on a signal", Move, "check", to_the_dead, "test_a_signal_leaves_all_others_as_they_are"),
    Mutant(
        "forgets progress",
        Extend,
        "write",
        lambda original, extend, tx, plan: original(replace(extend, progress=False), tx, plan),
        "test_failures_before_progress_do_not_count",
    ),
    Mutant(
        "takes every extension for progress",
        Extend,
        "write",
        lambda original, extend, tx, plan: original(replace(extend, progress=True), tx, plan),
        "test_without_progress_an_extension_keeps_the_failures",
    ),
    Mutant(
        "ignores another value under a known id",
        Placement,
        "_has_other_value",
        lambda *_: False,
        "test_another_value_under_a_known_id_is_refused_if_the_put_says_so",
    ),
    Mutant(
        "postpones for ever",
        Message,
        "postponed",
        lambda original, message, position, _: original(message, position, None),
        "test_a_message_is_postponed_only_so_far",
    ),
    Mutant(
        "saves the value of what it postpones, and not its place",
        Message,
        "postponed",
        lambda _, message, *__: message,
        "test_a_message_that_is_postponed_is_due_when_the_last_put_says",
    ),
    Mutant(
        "forgets which keys were put",
        Recent,
        "look_up",
        nothing,
        "test_a_key_is_put_once_in_its_time_whatever_became_of_the_message",
    ),
    Mutant(
        "lets every put of a key count",
        Placement,
        "_update",
        counting_updates,
        "test_only_puts_that_create_a_message_count",
    ),
    Mutant(
        "looks whether a key was put before it has the key",
        PlainStore,
        "execute",
        look_first_write_later,
        "test_of_many_producers_one_puts_a_unique_key",
    ),
]

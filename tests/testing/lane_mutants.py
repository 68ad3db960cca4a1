"""What a careless store might do with groups, limits and rates, and the conformance test that must notice."""

from typing import Any

from msgspec.structs import replace

from holdfast.commands import lanes, ruled_claim, settling
from holdfast.commands.endings import Endings
from holdfast.commands.lanes import Given
from holdfast.commands.ruled_claim import RuledClaim
from holdfast.records.policies import Lane, Policy
from tests.testing.controls import Mutant


def at_the_front(original: Any, lane: Any, policy: Any, first_at: Any, now: int, _: int) -> Any:
    return original(lane, policy, first_at, now, 1)


def for_what_is_due_alone(original: Any, tx: Any, before: Any, lane: Lane, arrived: int) -> None:
    if lane.open:
        original(tx, before, lane, arrived)


def with_the_old_turn(_: Any, given: Given, __: int) -> Any:
    return replace(given.lane, credit=given.credit)


def without_new_credit(original: Any, given: Given, token: int) -> Any:
    return replace(original(given, token), credit=min(given.credit, 1))


def as_in_a_fair_group(_: Any, endings: Endings, return_to: Any) -> Any:
    if endings.policy is not None:
        endings.policy = replace(endings.policy, groups="fair")
    return return_to


def by_lines_alone(original: Any, tx: Any, left: Any, entered: Any, number: int | None = None) -> None:
    original(tx, [replace(message, tied=0) for message in left], entered, number)


def twice(original: Any, tx: Any, left: Any, entered: Any, number: int | None = None) -> None:
    """A failure frees two slots."""
    came, went = list(entered), list(left)
    original(tx, [*went, *(went if came else ())], came, number)


def room_from_before_the_sweep(original: Any, claim: Any) -> Any:
    room = RuledClaim._room(claim)
    claim._room = lambda: room
    return original(claim)


def as_if_nothing_came_after(original: Any, tx: Any, queue: str, messages: Any) -> None:
    settings = tx.settings("queue", queue)
    last = messages[0].token if messages else 0
    if settings is not None:
        tx.save([replace(settings, last=last)])
        tx.save([replace(lane, last=last) for lane in tx.lanes(queue, {m.lane for m in messages if m.lane is not None}).values()])
    original(tx, queue, messages)


def for_puts_alone(original: Any, tx: Any, before: Any, lane: Any, arrived: int) -> None:
    if arrived:
        original(tx, before, lane, arrived)


def for_every_put(original: Any, tx: Any, before: Any, lane: Any, arrived: int) -> None:
    original(tx, before, replace(lane, open=True) if arrived else lane, arrived)


LANE_MUTANTS = [
    Mutant("lets new groups begin at the front", lanes, "refreshed", at_the_front, "test_who_puts_one_at_a_time_gains_nothing"),
    Mutant("renews no turn", Given, "served", with_the_old_turn, "test_a_group_gets_as_many_as_its_weight_in_each_round"),
    Mutant("refills no credit", Given, "served", without_new_credit, "test_a_group_gets_as_many_as_its_weight_in_each_round"),
    Mutant(
        "honours return_to in a strict group",
        Endings,
        "_returned_to",
        as_in_a_fair_group,
        "test_a_strict_group_keeps_its_order_however_its_head_comes_back",
    ),
    Mutant("keeps the slots of ended leases", ruled_claim, "follow", by_lines_alone, "test_an_ended_lease_frees_the_place_in_its_group"),
    Mutant("counts before the sweep", RuledClaim, "claim", room_from_before_the_sweep, "test_a_place_is_free_again_however_a_claim_ends"),
    Mutant("frees two slots for a failure", settling, "follow", twice, "test_what_is_counted_is_what_is_claimed"),
    Mutant(
        "gives back to a rate under a later claim",
        settling,
        "give_back",
        as_if_nothing_came_after,
        "test_nothing_is_given_back_behind_a_later_claim",
    ),
    Mutant("gives nothing back to a rate", settling, "give_back", lambda *_: None, "test_what_was_not_started_is_given_back_to_the_rate"),
    Mutant(
        "counts no group before one",
        Lane,
        "order",
        property(lambda _: (0, 0, "")),
        "test_one_group_says_what_it_hands_out_and_how_many_are_served_before_it",
    ),
    Mutant(
        "keeps in an idle queue what is done",
        ruled_claim,
        "forget_done",
        lambda *_: 0,
        "test_claims_that_find_nothing_forget_what_was_kept_long_enough",
    ),
    Mutant("is never careful", Policy, "is_careful", property(lambda _: False), "test_a_queue_hands_out_no_more_than_its_rate"),
    Mutant("wakes waiters for puts alone", lanes, "announce_lane", for_puts_alone, "test_an_end_that_frees_a_place_wakes_who_waits"),
    Mutant(
        "wakes waiters for what is due alone",
        lanes,
        "announce_lane",
        for_what_is_due_alone,
        "test_a_put_that_a_rate_lets_through_later_wakes_who_waits",
    ),
    Mutant("wakes waiters for every put", lanes, "announce_lane", for_every_put, "test_a_put_into_a_full_group_wakes_nobody"),
]

"""What a careless store might do with leases that have a capacity, and with lists of leases."""

from typing import Any

from msgspec.structs import replace

from holdfast.commands import lease_list, shares
from holdfast.commands.breaking import Break
from tests.testing.controls import Mutant


def without_limit(*_: Any) -> int:
    return -1_000


def given_to_the_first(_: Any, tx: Any, found: Any) -> None:
    first = next(iter(tx.find_shares(found.key, "line", 1)), None)
    if first is None or first.weight > found.room:
        return
    tx.save([replace(first, token=tx.append([shares.told("acquired", first)]), place=0, until=tx.now + 60_000_000)])
    tx.save([replace(found, used=found.used + first.weight, waiting=found.waiting - 1)])


def as_before(_: Any, found: Any, gone: Any) -> Any:
    return replace(found, waiting=found.waiting - sum(not share.token for share in gone))


def whoever_holds_it(original: Any, command: Any, tx: Any) -> Any:
    return original(replace(command, token=None), tx)


SHARE_MUTANTS = [
    Mutant("breaks no lease", Break, "check", lambda *_: [], "test_a_broken_lease_is_lost_and_the_next_token_is_higher"),
    Mutant("breaks whatever lease is held", Break, "check", whoever_holds_it, "test_only_the_lease_with_the_token_is_broken"),
    Mutant("lists leases that have ended", lease_list, "held_of", lambda _, __, lease, ___: [lease], "test_held_leases_are_listed_by_key"),
    Mutant("grants a share for nothing", shares, "_ahead", without_limit, "test_as_much_as_the_capacity_is_granted_and_no_more"),
    Mutant("has no line", shares, "_line", lambda *_: iter(()), "test_whoever_came_first_is_served_first"),
    Mutant(
        "gives what is released to the first in line",
        shares,
        "wake_line",
        given_to_the_first,
        "test_a_place_lapses_when_nobody_asks_again_and_delays_no_longer",
    ),
    Mutant("counts what has ended", shares, "without", as_before, "test_a_share_ends_by_itself_and_its_place_is_free"),
    Mutant("wakes nobody in line", shares, "wake_line", lambda *_: None, "test_giving_back_wakes_those_who_fit"),
]

"""The checkers of a queue's log find what they are for: each is shown a log that keeps its promise, and one that does not."""

from holdfast import Rate
from holdfast.testing.claim_log import (
    Added,
    Claiming,
    Ended,
    Fact,
    claims_past_ends,
    out_of_order,
    over_limit,
    over_rate,
    unfair,
    used_of_rate,
)

S = 1_000_000


def claimed(one: str, group: str = "a", at: float = 0.0) -> Claiming:
    return Claiming(one, group, round(at * S), "w")


def test_a_limit_counts_claims_until_they_end() -> None:
    kept: list[Fact] = [claimed("1"), claimed("2"), Ended("1", "done"), claimed("3"), Ended("2", "expired"), claimed("2")]
    assert over_limit(kept, 2, group_limit=2) == []
    broken: list[Fact] = [claimed("1"), claimed("2"), claimed("3")]
    assert over_limit(broken, 2) == ["3 were claimed at 0, over 2"]
    assert over_limit(broken, group_limit=2) == ["3 of group 'a' were claimed at 0, over 2"]


def test_a_limit_of_a_group_counts_each_group_by_itself() -> None:
    facts: list[Fact] = [claimed("1", "a"), claimed("2", "b"), claimed("3", "c")]
    assert over_limit(facts, group_limit=1) == []


def test_a_message_with_two_claims_at_once_is_found() -> None:
    assert over_limit([claimed("1"), claimed("1")]) == ["message 1 was handed out twice at once"]


def test_a_retry_in_its_place_is_in_order_and_one_behind_is_not() -> None:
    put: list[Fact] = [Added("1", "a"), Added("2", "a"), Added("x", "b")]
    retried: list[Fact] = [claimed("1"), Ended("1", "ready"), claimed("1"), Ended("1", "done"), claimed("2"), Ended("2", "done")]
    assert out_of_order(put + retried) == []
    behind: list[Fact] = [claimed("1"), Ended("1", "ready"), claimed("2"), Ended("2", "done"), claimed("1"), Ended("1", "done")]
    assert out_of_order(put + behind) == ["message 2 of group 'a' ended before 1"]


def test_two_claims_of_a_strict_group_are_found_although_they_end_in_order() -> None:
    facts: list[Fact] = [Added("1", "a"), Added("2", "a"), claimed("1"), claimed("2"), Ended("1", "done"), Ended("2", "done")]
    assert len(out_of_order(facts)) == 1


def test_a_window_over_the_rate_is_found_wherever_it_begins() -> None:
    rate = Rate(2, per_s=1.0)
    assert over_rate([claimed(str(n), at=n / 2) for n in range(20)], rate) == []
    crowded = [claimed(str(n), at=at) for n, at in enumerate([0.0, 0.9, 1.1, 1.2, 2.5])]
    assert len(over_rate(crowded, rate)) == 1
    bursting = [claimed(str(n), at=at) for n, at in enumerate([0.0, 0.0, 0.0, 0.5, 1.0, 1.5])]
    assert over_rate(bursting, Rate(2, per_s=1.0, burst=3)) == []
    assert over_rate(bursting, Rate(2, per_s=1.0, burst=2)) != []


def test_control_a_refund_under_a_later_claim_would_be_found() -> None:
    """One in a second, no burst: claimed at 10, at 11, and, after the first was given back, at 11.5."""
    facts = [claimed("1", at=10.0), claimed("2", at=11.0), claimed("3", at=11.5)]
    assert over_rate(facts[:2], Rate(1, per_s=1.0)) == []
    assert len(over_rate(facts, Rate(1, per_s=1.0))) == 1


def test_how_much_of_a_rate_was_used() -> None:
    rate = Rate(10, per_s=1.0)
    assert used_of_rate([claimed(str(n), at=n / 10) for n in range(101)], rate) == 1.0
    assert used_of_rate([claimed(str(n), at=n / 5) for n in range(101)], rate) == 0.5


def test_what_waits_for_its_retry_leaves_nothing_of_a_rate_unused() -> None:
    """Used up to the last that was handed out for the first time: behind it nothing is ready."""
    steady = [claimed(str(n), at=n / 10) for n in range(101)]
    assert used_of_rate([*steady, claimed("3", at=99.0)], Rate(10, per_s=1.0)) == 1.0


def test_claims_between_the_end_of_a_lease_and_its_notice_are_counted() -> None:
    put: list[Fact] = [Added("1", "a"), Added("2", "a"), Added("3", "a")]
    facts: list[Fact] = [*put, claimed("1", at=1.0), claimed("2", at=2.9), claimed("3", at=3.1), Ended("1", "expired"), Ended("2", "done")]
    assert claims_past_ends(facts, 2.0) == [1]
    assert claims_past_ends([fact for fact in facts if fact != claimed("3", at=3.1)], 2.0) == [0]


def test_rounds_by_weight() -> None:
    weights = {"a": 2, "b": 1}
    assert unfair([claimed(str(n), "aab"[n % 3]) for n in range(30)], weights) == []
    assert len(unfair([claimed(str(n), "ab"[n % 2]) for n in range(30)], weights)) == 5

"""What can be broken in the SQL of leases with a capacity, and the conformance test that must notice."""

from tests.testing.text_mutant import TextMutant

MUTANTS = [
    TextMutant(
        "grants a share for nothing",
        r"l\.capacity - l\.used - weight_ahead\(l, own\.place, now\) < of_weight",
        "false",
        "test_as_much_as_the_capacity_is_granted_and_no_more",
    ),
    TextMutant(
        "grants a share for nothing by the fast path",
        r"l\.capacity - l\.used >= of_weight",
        "true",
        "test_as_much_as_the_capacity_is_granted_and_no_more",
    ),
    TextMutant("has no line", r"ahead := ahead \+ other\.weight", "ahead := ahead", "test_whoever_came_first_is_served_first"),
    TextMutant(
        "counts what has ended",
        r"coalesce\(sum\(g\.weight\), 0\)",
        "0 * count(*)",
        "test_a_share_ends_by_itself_and_its_place_is_free",
    ),
    TextMutant("wakes nobody in line", r"perform wake\('line:' [^\n]*", "null;", "test_giving_back_wakes_those_who_fit"),
    TextMutant("takes any number into the line", r"l\.waiting >= max_waiters", "false", "test_a_line_that_is_full_takes_nobody"),
    TextMutant(
        "gives what is released to the first in line",
        r"perform wake\('line:' [^\n]*",
        """update shares
      set token = append('lease::' || l.key, 'acquired', told_of_share(other), now), place = 0, until = now + 60000000
      where key = l.key and lease_id = other.lease_id;
      update leases set used = used + other.weight, waiting = waiting - 1 where dict = '' and key = l.key;""",
        "test_a_place_lapses_when_nobody_asks_again_and_delays_no_longer",
    ),
    TextMutant(
        "looks before it has the name",
        r"perform lock_to_take\('', of_key\);",
        "",
        "test_threads_together_never_hold_more_than_the_capacity",
    ),
]

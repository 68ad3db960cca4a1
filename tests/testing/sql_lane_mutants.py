"""What can be broken in the SQL of groups, limits and rates, and the conformance test that must notice."""

from tests.testing.text_mutant import TextMutant

MUTANTS = [
    TextMutant(
        "lets new groups begin at the front",
        r"(\(s\.name, of_lane, |    l\.turn := )number(, 1, true\)|;\n    l\.place := 0;\n    l\.credit := lane_weight)",
        r"\g<1>1\2",
        "test_who_puts_one_at_a_time_gains_nothing",
    ),
    TextMutant(
        "renews no turn",
        r"      l\.turn := token;\n      l\.place := number;\n",
        "",
        "test_a_group_gets_as_many_as_its_weight_in_each_round",
    ),
    TextMutant(
        "refills no credit",
        r"(      l\.place := number;\n)      l\.credit := lane_weight\(l\);\n",
        r"\1",
        "test_a_group_gets_as_many_as_its_weight_in_each_round",
    ),
    TextMutant(
        "honours return_to in a strict group",
        r"when \(s\)\.rules & 2 > 0 (then 'place'|and rank is not null then rank)",
        r"when false \1",
        "test_a_strict_group_keeps_its_order_however_its_head_comes_back",
    ),
    TextMutant(
        "opens a strict group whose head is not due",
        r"case when s\.rules & 2 > 0 then head else 0 end",
        "0",
        "test_a_delayed_retry_holds_its_strict_group_and_no_other",
    ),
    TextMutant(
        "keeps the slots of ended leases",
        r"greatest\(0, l\.live - freed\)",
        "l.live",
        "test_an_ended_lease_frees_the_place_in_its_group",
    ),
    TextMutant(
        "keeps the slots of a batch",
        r"live = greatest\(0, l\.live - f\.count\)",
        "live = l.live",
        "test_several_groups_get_their_places_back_at_once_and_keep_their_turns",
    ),
    TextMutant(
        "keeps groups whose last was settled in a batch",
        r"dry := close_lanes\(s, dry, now\)",
        "dry := '{}'",
        "test_several_groups_get_their_places_back_at_once_and_keep_their_turns",
    ),
    TextMutant(
        "renews no place of a batch",
        r"place = g\.o, live",
        "live",
        "test_several_groups_get_their_places_back_at_once_and_keep_their_turns",
    ),
    TextMutant(
        "reads the limit of a queue before it has the lock",
        r" or s\.rules & 8 > 0",
        "",
        "test_many_claimers_at_once_never_pass_a_limit",
    ),
    TextMutant(
        "knows no limit of a group",
        r"coalesce\(\(\(l\)\.own ->> 'limit'\)::integer, .*::integer\)",
        "null::integer",
        "test_each_group_has_as_many_claims_as_its_limit",
    ),
    TextMutant(
        "lets a queue pass its rate",
        r"allowed_by\(s\.policy -> 'rate', s\.tat, now\)",
        "room",
        "test_a_queue_hands_out_no_more_than_its_rate",
    ),
    TextMutant(
        "gives back under a later claim",
        r" and last = used\.token",
        "",
        "test_nothing_is_given_back_behind_a_later_claim",
    ),
    TextMutant(
        "gives nothing back",
        r"set tat = (l\.)?tat - used\.count",
        r"set tat = \1tat - 0 * used.count",
        "test_what_was_not_started_is_given_back_to_the_rate",
    ),
    TextMutant("wakes waiters for puts alone", r" or not was_open\)", ")", "test_an_end_that_frees_a_place_wakes_who_waits"),
    TextMutant(
        "wakes waiters for every put",
        r"case when l\.is_open then arrived else 0 end",
        "arrived",
        "test_a_put_into_a_full_group_wakes_nobody",
    ),
    TextMutant(
        "counts the groups behind one",
        r"\(l\.turn, l\.place, l\.name\) <",
        "(l.turn, l.place, l.name) >",
        "test_one_group_says_what_it_hands_out_and_how_many_are_served_before_it",
    ),
    TextMutant(
        "keeps in an idle queue what is done",
        r"    perform forget_done_of\(s, now, [^;]*where s\.rules & 16 > 0;\n",
        "",
        "test_claims_that_find_nothing_forget_what_was_kept_long_enough",
    ),
]

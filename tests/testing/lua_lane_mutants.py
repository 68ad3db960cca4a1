"""What can be broken in the Lua of groups, limits, rates, policies and capacity leases, and the conformance test that must notice."""

from tests.testing.text_mutant import TextMutant

LANES = [
    TextMutant(
        "lets new groups begin at the front",
        r"lane\.turn, lane\.credit = number,",
        "lane.turn, lane.credit = 1,",
        "test_who_puts_one_at_a_time_gains_nothing",
    ),
    TextMutant(
        "takes for fresh what was claimed in another queue",
        r" or string\.find\(put, ATTEMPTS, 1, true\)",
        "",
        "test_a_message_that_was_claimed_elsewhere_is_claimed_again_where_it_was_moved_to",
    ),
    TextMutant("renews no turn", r"lane\.turn, lane\.place = token, lane\.renewed_at", "", "test_groups_take_turns"),
    TextMutant(
        "refills no credit",
        r"lane\.left, lane\.renewed_at = lane\.own\.weight or 1, #order",
        "lane.renewed_at = #order",
        "test_a_group_gets_as_many_as_its_weight_in_each_round",
    ),
    TextMutant(
        "wakes waiters for puts alone",
        r"wake\(queue\.topic, math\.max\(1, arrivals\)\)",
        "wake(queue.topic, arrivals)",
        "test_an_end_that_frees_a_place_wakes_who_waits",
    ),
    TextMutant(
        "wakes waiters for every put",
        r"count \+ \(lane\.open and lane\.arrivals or",
        "count + (lane.arrivals or",
        "test_a_put_into_a_full_group_wakes_nobody",
    ),
    TextMutant(
        "wakes waiters for what is due alone",
        r"lanes\.is_sooner\(lane, woke\) and 1 or 0\)",
        "0)",
        "test_a_put_that_a_rate_lets_through_later_wakes_who_waits",
    ),
    TextMutant(
        "grants a share before the line the fast way",
        r"not name\.capacity or name\.waiting > 0 or",
        "not name.capacity or",
        "test_a_writer_waits_for_the_readers_inside_and_for_no_later_ones",
    ),
    TextMutant(
        "knows no weight",
        r"lane\.left, lane\.renewed_at = lane\.own\.weight or 1, #order",
        "lane.left, lane.renewed_at = 1, #order",
        "test_a_group_gets_as_many_as_its_weight_in_each_round",
    ),
    TextMutant(
        "gives the head of a strict group another place",
        r"if policy\.groups == \"strict\" and message\.lane == lane and message\.rank then",
        "if false then",
        "test_a_delayed_retry_holds_its_strict_group_and_no_other",
    ),
    TextMutant(
        "opens a strict group whose head is not due",
        r"policy\.groups == \"strict\" and head or 0",
        "0",
        "test_a_delayed_retry_holds_its_strict_group_and_no_other",
    ),
    TextMutant(
        "never pauses a group for its dead head",
        r"\n    hold_groups\(endings\)",
        "",
        "test_a_strict_group_is_held_by_its_dead_head_until_that_is_redriven",
    ),
    TextMutant(
        "resumes no group",
        r"    resume_groups\(queue, plan\.messages\)",
        "",
        "test_a_strict_group_is_held_by_its_dead_head_until_that_is_redriven",
    ),
    TextMutant(
        "leaves delayed messages out of line",
        r"queue\.joins\[message\] = \"due\"\n    end\n  end\n  plan",
        "end\n  end\n  plan",
        "test_a_delayed_message_joins_its_group_when_it_is_due",
    ),
    TextMutant(
        "forgets the order where priorities age",
        r"local rank = policy\.order == \"lifo\" and -position or position",
        "local rank = not policy.aging_s and policy.order == 'lifo' and -position or position",
        "test_the_last_come_first_also_where_priorities_age",
    ),
    TextMutant(
        "keeps what ends when nothing is kept any more",
        r"ipairs\(not kept_s and ended or \{\}\)",
        "ipairs({})",
        "test_what_ends_when_nothing_is_kept_any_more_is_gone",
    ),
    TextMutant(
        "frees no place under a limit that is no more",
        r"\n    load_rules\(\)\.untie\(queue, message\)[^\n]*",
        "\n    if rules_of(queue) then load_rules().untie(queue, message) end",
        "test_a_claim_under_a_limit_that_is_no_more_is_counted_no_more",
    ),
    TextMutant(
        "refreshes no lane when claims are counted",
        r"    if lane then\n      found\.touch\(queue, lane\.name, 0\)\n    end\n",
        "",
        "test_groups_follow_limits_that_come_and_go_at_once",
    ),
    TextMutant(
        "is careful for lanes that gave nothing",
        r"careful or \(lane\.given > 0 and \(rate or limit\)\)",
        "careful or rate or limit",
        "test_only_groups_that_gave_something_make_a_claim_careful",
    ),
    TextMutant(
        "tells of held groups last",
        r"    hold_groups\(endings\)\n(    for _, name in ipairs\(places\) do\n(?:      [^\n]*\n)*    end\n)",
        r"\1    hold_groups(endings)\n",
        "test_a_group_that_is_held_is_told_of_before_its_message_is_moved",
    ),
    TextMutant(
        "wakes no lane",
        r"rules\.refresh\(queue, name, numbers\.latest\(\), 0\)\n  end\n  return #names",
        "end\n  return #names",
        "test_a_throttled_group_gives_nothing_for_a_while",
    ),
    TextMutant(
        "chooses before the step is written",
        r"\n    flush_ruled\(\)",
        "",
        "test_a_settlement_and_a_claim_in_one_step_hand_out_the_next_of_a_full_group",
    ),
]

LIMITS = [
    TextMutant(
        "knows no limit of a queue",
        r"room = math\.min\(room, policy\.limit - settings\.live\)",
        "room = room",
        "test_no_more_messages_of_a_queue_are_claimed_than_its_limit",
    ),
    TextMutant(
        "knows no limit of a group", r"lane\.own\.limit or policy\.group_limit", "nil", "test_each_group_has_as_many_claims_as_its_limit"
    ),
    TextMutant(
        "leaks the place of an ended claim",
        r"lane\.live = math\.max\(lane\.live - 1, 0\)",
        "lane.live = lane.live",
        "test_an_ended_lease_frees_the_place_in_its_group",
    ),
    TextMutant(
        "leaks a place of the queue",
        r"settings\.live = math\.max\(settings\.live - 1, 0\)",
        "settings.live = settings.live",
        "test_a_place_is_free_again_however_a_claim_ends",
    ),
    TextMutant(
        "counts no claim the fast way",
        r"lane\.live \+ \(limited and lane\.given or 0\)",
        "lane.live",
        "test_each_group_has_as_many_claims_as_its_limit",
    ),
    TextMutant(
        "leaks a place the fast way",
        r"math\.max\(found\[i\]\.live - used\[names\[i\]\], 0\)",
        "found[i].live",
        "test_each_group_has_as_many_claims_as_its_limit",
    ),
    TextMutant(
        "uses nothing of a rate",
        r"\(count > 0 and math\.max\(tat, now\) or tat\) \+ count \* lanes\.interval_of\(rate\)",
        "tat",
        "test_each_group_has_a_rate",
    ),
    TextMutant(
        "lets a queue pass its rate",
        r"room = math\.min\(room, rules\.lanes\.allowed\(settings\.tat, policy\.rate\)\)",
        "",
        "test_a_queue_hands_out_no_more_than_its_rate",
    ),
    TextMutant(
        "gives back under a later claim",
        r"policy\.rate and settings\.last == message\.token",
        "policy.rate",
        "test_nothing_is_given_back_behind_a_later_claim",
    ),
    TextMutant(
        "gives nothing back",
        r"settings\.tat - lanes\.interval_of\(policy\.rate\)",
        "settings.tat",
        "test_what_was_not_started_is_given_back_to_the_rate",
    ),
    TextMutant("never doubles a delay", r"\* 2 \^ doublings", "", "test_failures_wait_as_long_as_the_back_off_says"),
    TextMutant(
        "drops what is late", r"policy_of\(queue\)\.late_to == \"dead\"", "false", "test_late_messages_are_buried_where_the_queue_says_so"
    ),
    TextMutant(
        "forgets what is done",
        r"load_rules\(\)\.keep_done\(group\.queue, kept, command\.trace\)",
        "remove(group.queue, kept)",
        "test_what_is_done_is_kept_with_its_holder_and_its_end",
    ),
    TextMutant(
        "keeps what is done for good",
        r"local members = call\(\"ZRANGEBYLEX\", queue\.key \.\. \":done\".+",
        "local members = {}",
        "test_pruning_forgets_what_was_kept_long_enough",
    ),
    TextMutant(
        "counts all open groups",
        r'"\(" \.\. string\.sub\(packed, 1, 12\) \.\. lane\.name',
        '"+"',
        "test_one_group_says_what_it_hands_out_and_how_many_are_served_before_it",
    ),
    TextMutant(
        "keeps in an idle queue what is done",
        r"rules\.prune_done\(queue, SWEEP, \{\}\)",
        "local _",
        "test_claims_that_find_nothing_forget_what_was_kept_long_enough",
    ),
]

SHARES = [
    TextMutant(
        "grants a share for nothing", r"room - ahead < command\.weight", "false", "test_as_much_as_the_capacity_is_granted_and_no_more"
    ),
    TextMutant("has no line", r"ahead = ahead \+ share\.weight", "", "test_whoever_came_first_is_served_first"),
    TextMutant(
        "counts what has ended",
        r"name\.used = name\.used - share\.weight\n    else",
        "else",
        "test_a_share_ends_by_itself_and_its_place_is_free",
    ),
    TextMutant(
        "wakes nobody in line",
        r"wake\(\"line:\" \.\. share\.lease_id \.\. \":\" \.\. name\.key, 1\)",
        "",
        "test_giving_back_wakes_those_who_fit",
    ),
    TextMutant(
        "gives what is released to the first in line",
        r"wake\(\"line:\" \.\. share\.lease_id \.\. \":\" \.\. name\.key, 1\)",
        """local given = { lease_id = share.lease_id, holder = share.holder, weight = share.weight, since = now, place = 0 }
      given.token, given["until"] = shares.tell_share(name.key, "acquired", share), now + 60000000
      name.used, name.waiting = name.used + share.weight, name.waiting - 1
      shares.save(name.key, given)
      shares.save_name(name)""",
        "test_a_place_lapses_when_nobody_asks_again_and_delays_no_longer",
    ),
    TextMutant(
        "takes any number into the line", r"name\.waiting >= command\.max_waiters", "false", "test_a_line_that_is_full_takes_nobody"
    ),
]

MUTANTS = [*LANES, *LIMITS, *SHARES]

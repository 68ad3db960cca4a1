"""What can be broken in the SQL and in the Lua of the networked stores, and the conformance test that must notice."""

from tests.testing import lua_lane_mutants, sql_lane_mutants, sql_share_mutants
from tests.testing.text_mutant import TextMutant

SQL = [
    *sql_lane_mutants.MUTANTS,
    *sql_share_mutants.MUTANTS,
    TextMutant(
        "looks at everything for a filter",
        r"else \S+ end;\n  looked integer;",
        "else 1000000000 end;\n  looked integer;",
        "test_a_filter_looks_at_a_part_of_a_queue_and_says_where_to_go_on",
    ),
    TextMutant(
        "knows no rate",
        r"case when due_in\([^)]*\) > 0 then 'rate'",
        "case when false then 'rate'",
        "test_of_many_at_once_no_more_than_the_burst_come_through",
    ),
    TextMutant(
        "forgets the rate that was left",
        r"select greatest\(until, now\) \+",
        "select now +",
        "test_no_window_has_more_than_its_rate_and_little_is_left_unused",
    ),
    TextMutant(
        "revives the dead on a signal",
        r"where m.state = 'ready' and m.position > now",
        "where m.position > now or m.state = 'dead'",
        "test_a_signal_leaves_all_others_as_they_are",
    ),
    TextMutant(
        "reckons with groups that gave nothing",
        r"    continue when i <> all \(places\);\n",
        "",
        "test_a_claim_that_a_group_had_no_part_in_does_not_keep_what_it_gave_back",
    ),
    TextMutant(
        "tells of an entry as the step leaves it",
        r"entry text := p ->> 'entry';",
        "entry text := (select entry_json(e) from entries as e where e.dict = c ->> 'dict' and e.key = c ->> 'key' and is_there(e, now));",
        "test_a_lease_taken_in_a_step_tells_of_the_entry_before_it",
    ),
    TextMutant(
        "forgets progress",
        r"case when \(c ->> 'progress'\)::boolean then 0",
        "case when false then 0",
        "test_failures_before_progress_do_not_count",
    ),
    TextMutant(
        "looks whether a key was put before it has the key",
        r"    perform lock_entry\(wanted.dict, wanted.key\);",
        "    insert into entries (dict, key) select wanted.dict, wanted.key where not exists (\n"
        "      select from entries where dict = wanted.dict and key = wanted.key\n"
        "    ) on conflict do nothing;",
        "test_of_many_producers_one_puts_a_unique_key",
    ),
    TextMutant(
        "ignores another value under a known id",
        r"and value <> value_known",
        "and false",
        "test_another_value_under_a_known_id_is_refused_if_the_put_says_so",
    ),
    TextMutant(
        "compares an id with what the put changes",
        r"coalesce\(value_given\([^)]*\), item.value\)",
        "item.value",
        "test_an_id_is_compared_with_the_value_that_the_same_batch_gave_it",
    ),
    TextMutant(
        "postpones for ever",
        r"least\(due_at\(item, now\), [^;]*\);",
        "due_at(item, now);",
        "test_a_message_is_postponed_only_so_far",
    ),
    TextMutant(
        "hands out what somebody is just claiming",
        r"for update skip locked",
        "",
        "test_eight_claimers_never_hold_one_message_twice",
    ),
    TextMutant("gives out one token for all", r"nextval\('numbers'\)", "7", "test_tokens_grow_from_claim_to_claim_over_all_queues"),
    TextMutant(
        "settles without looking at the token",
        r"(and )?[hm]\.token = r\.token( and)?",
        "",
        "test_a_stale_receipt_changes_nothing_of_what_a_newer_holder_has",
    ),
    TextMutant(
        "settles without looking at the clock",
        r"and [hm]\.until > now",
        "",
        "test_a_claim_whose_lease_has_ended_is_lost_even_if_nobody_took_the_message",
    ),
    TextMutant("never finds an ended lease", r"until <= now", "until < 0", "test_a_message_whose_lease_has_ended_is_handed_out_again"),
    TextMutant(
        "counts all",
        r"array_agg\(b\.id\) filter \(where b\.fits\)",
        "array_agg(b.id)",
        "test_what_a_filter_finds_is_counted_in_every_state",
    ),
    TextMutant(
        "counts a dead letter's age from its put",
        r"is_meant\(which, m\.dead_at, m\)",
        "is_meant(which, m.created_at, m)",
        "test_a_filter_counts_ages_from_the_burial_of_the_dead_and_from_the_put_of_others",
    ),
    TextMutant("knows no priorities", r"priority desc", "priority", "test_higher_priorities_come_first"),
    TextMutant("knows no delays", r"(m\.)?position <= now", "true", "test_a_delayed_message_is_not_handed_out_early"),
    TextMutant(
        "forgets failures",
        r"failures \+ 1 >=",
        "failures + 1 > 1000 *",
        "test_a_message_is_dead_when_its_failures_reach_its_budget",
    ),
    TextMutant(
        "loses the buffered copy", r"m\.state = 'buffered'", "false", "test_a_buffered_copy_becomes_claimable_however_the_first_ends"
    ),
    TextMutant(
        "says nothing of what it did not redrive",  # That it redrives over newer work is impossible: the index on keys is unique.
        r"'kept', \(",
        "'left', (",
        "test_a_dead_letter_whose_key_is_taken_stays_dead_and_the_answer_says_why",
    ),
    TextMutant(
        "returns a message past its buffered copy",
        r" and h\.key is null",
        "",
        "test_a_buffered_copy_becomes_claimable_however_the_first_ends",
    ),
    TextMutant("drops an option of a plain put", r"r\.max_attempts", "null", "test_a_message_is_dead_when_its_failures_reach_its_budget"),
    TextMutant(
        "keeps quiet about what it returns", r", wake_queue\(of_queue, cardinality\(ids\)\)", "", "test_a_released_message_wakes_who_waits"
    ),
    TextMutant("hands out of a paused queue", r"\b(s|settings)\.paused", "false", "test_a_paused_queue_takes_puts_and_hands_out_nothing"),
    TextMutant("is never full", r"used \+ wanted >", "-1 >", "test_a_full_queue_refuses_a_put_and_keeps_nothing_of_it"),
    TextMutant(
        "ends every lease at once",
        r"(\w+\.)?until > now",
        "false",
        "test_a_held_lease_is_not_granted_and_the_answer_says_who_holds_it",
    ),
    TextMutant("never ends a lease", r"(\w+\.)?until > now", "true", "test_a_lease_can_be_taken_when_it_has_ended"),
    TextMutant("looks at no fence", r"of_fence < e\.fence", "false", "test_a_write_under_a_lower_token_is_refused"),
    TextMutant("takes any fence", r"of_fence > newest", "false", "test_a_fence_above_every_token_is_refused_and_nothing_is_written"),
    TextMutant("lowers every fence", r"greatest\(latest\(\), 1\)", "1", "test_a_fence_that_is_too_high_can_be_lowered_and_no_other_is"),
    TextMutant(
        "compares nothing", r"when 'value' then", "when 'value' then true or", "test_a_change_happens_only_where_its_expectation_is_met"
    ),
    TextMutant("keeps entries for ever", r"e\.expires_at > now", "true", "test_an_entry_with_a_time_ends_by_itself"),
    TextMutant(
        "loses an update between looking and writing",
        r"(select \* into e from entries where dict = of_dict and key = of_key) for update",
        r"\1",
        "test_compare_and_set_loses_no_update",
    ),
    TextMutant("applies what it can of a step", r":= is_step or", ":=", "test_whatever_fails_refuses_everything"),
    TextMutant("applies a repeated write again", r"command_id <> ''", "false", "test_a_repeated_write_answers_the_same_and_writes_once"),
    TextMutant("wakes nobody", r"perform pg_notify\([^;]*;", "null;", "test_a_put_wakes_who_waits"),
    TextMutant("says nothing of pruned events", r"asked < known\.floor", "false", "test_a_number_below_the_oldest_is_compacted"),
    TextMutant("prunes too young events", r"moment_in\(120\.0\)", "0", "test_events_younger_than_two_minutes_are_never_pruned"),
    TextMutant(
        "begins its tokens anew",
        r"perform setval\('numbers'",
        "perform concat('numbers'",
        "test_tokens_and_revisions_go_on_above_those_of_the_source",
    ),
    TextMutant(
        "sends to the front what the next claims pass",
        r"without_next\(of_queue, fates, chosen\);",
        "fates;",
        "test_many_that_return_to_the_front_come_in_order_of_lease_end",
    ),
]

LUA = [
    *lua_lane_mutants.MUTANTS,
    TextMutant("counts all", r"next\(which\)", "false", "test_what_a_filter_finds_is_counted_in_every_state"),
    TextMutant(
        "forgets the rate that was left",
        r"math.max\(entry and entry.expires_at or now, now\) \+",
        "now +",
        "test_no_window_has_more_than_its_rate_and_little_is_left_unused",
    ),
    TextMutant("forgets progress", r"if command.progress then", "if false then", "test_failures_before_progress_do_not_count"),
    TextMutant(
        "leaves a delay on a signal",
        r"message.position = now\n",
        "\n",
        "test_a_signal_ends_a_delay_and_keeps_the_failures",
    ),
    TextMutant(
        "forgets which keys were put",
        r"local known = item.options.unique_for and recent.id_of\(placement.recent, item.key\)",
        "local known = nil",
        "test_a_key_is_put_once_in_its_time_whatever_became_of_the_message",
    ),
    TextMutant(
        "ignores another value under a known id",
        r"if value ~= item.value then",
        "if false then",
        "test_another_value_under_a_known_id_is_refused_if_the_put_says_so",
    ),
    TextMutant(
        "postpones for ever",
        r"if item.options.at_latest then",
        "if false then",
        "test_a_message_is_postponed_only_so_far",
    ),
    TextMutant(
        "gives out one token for all",
        r"command\.holder, token, now",
        "command.holder, 7, now",
        "test_tokens_grow_from_claim_to_claim_over_all_queues",
    ),
    TextMutant(
        "settles without looking at the token",
        r"message\.token == receipt\[3\] and",
        "",
        "test_a_stale_receipt_changes_nothing_of_what_a_newer_holder_has",
    ),
    TextMutant(
        "settles the fast way without looking at the token",
        r"(message\.)?token ~= tokens\[i\] or",
        "not token or",
        "test_a_stale_receipt_changes_nothing_of_what_a_newer_holder_has",
    ),
    TextMutant(
        "settles without looking at the clock",
        r'message\.state == "leased" and message\["until"\] > now',
        'message.state == "leased"',
        "test_a_claim_whose_lease_has_ended_is_lost_even_if_nobody_took_the_message",
    ),
    TextMutant(
        "never finds an ended lease",
        r'"-", "\(" \.\. sortable\(now \+ 1\)',
        '"-", "(" .. sortable(0)',
        "test_a_message_whose_lease_has_ended_is_handed_out_again",
    ),
    TextMutant("knows no priorities", r"TOP - \(message\.priority or 0\)", "TOP", "test_higher_priorities_come_first"),
    TextMutant(
        "knows no delays", r"struct\.unpack\(NUMBER, member, POSITION_AT\) > now", "false", "test_a_delayed_message_is_not_handed_out_early"
    ),
    TextMutant("forgets failures", r"failures >= limit", "false", "test_a_message_is_dead_when_its_failures_reach_its_budget"),
    TextMutant(
        "loses the buffered copy",
        r"if copy and not live_of\(queue, key\) then",
        "if false then",
        "test_a_buffered_copy_becomes_claimable_however_the_first_ends",
    ),
    TextMutant(
        "redrives over newer work",
        r"\(live_of\(target, key\) or message\)\.id\) ~= id",
        "id) ~= id",
        "test_newer_work_of_the_key_outlives_a_redrive_however_its_claim_ends",
    ),
    TextMutant("hands out of a paused queue", r"or settings\.paused then", "then", "test_a_paused_queue_takes_puts_and_hands_out_nothing"),
    TextMutant("is never full", r"used \+ wanted > settings\.maxsize", "false", "test_a_full_queue_refuses_a_put_and_keeps_nothing_of_it"),
    TextMutant(
        "ends every lease at once",
        r'lease\["until"\] > now and',
        "false and",
        "test_a_held_lease_is_not_granted_and_the_answer_says_who_holds_it",
    ),
    TextMutant("never ends a lease", r'lease\["until"\] > now and', "true and", "test_a_lease_can_be_taken_when_it_has_ended"),
    TextMutant(
        "looks at no fence", r"fence_of\(dict, change\.key\) > change\.fence", "false", "test_a_write_under_a_lower_token_is_refused"
    ),
    TextMutant(
        "takes any fence",
        r"change\.fence > numbers\.latest\(\)",
        "false",
        "test_a_fence_above_every_token_is_refused_and_nothing_is_written",
    ),
    TextMutant(
        "takes any fence the fast way",
        r"change\.fence > newest or",
        "",
        "test_a_fence_above_every_token_is_refused_and_nothing_is_written",
    ),
    TextMutant(
        "lowers every fence", r"math\.max\(numbers\.latest\(\), 1\)", "1", "test_a_fence_that_is_too_high_can_be_lowered_and_no_other_is"
    ),
    TextMutant(
        "compares nothing", r"not meets\[[^]]*\]\(entry, change\)", "false", "test_a_change_happens_only_where_its_expectation_is_met"
    ),
    TextMutant("keeps entries for ever", r"entry\.expires_at > now", "true", "test_an_entry_with_a_time_ends_by_itself"),
    TextMutant(
        "applies what it can of a step",
        r"plans\[i\] = { commands\[one\.command\]\.check\(one\) }",
        "one.all_or_none = false; plans[i] = { commands[one.command].check(one) }",
        "test_whatever_fails_refuses_everything",
    ),
    TextMutant(
        "applies a repeated write again",
        r'command_id ~= "" and call\("GET", answer_key\)',
        "false",
        "test_a_repeated_write_answers_the_same_and_writes_once",
    ),
    TextMutant(
        "looks at everything for a filter",
        r"left = next\(which\) and \S+ or",
        "left = next(which) and 1e9 or",
        "test_what_a_filter_finds_is_counted_part_by_part",
    ),
    TextMutant("wakes nobody", r'redis\.pcall\("PUBLISH", ', "tostring(", "test_a_put_wakes_who_waits"),
    TextMutant("says nothing of pruned events", r"after < floor or", "", "test_a_number_below_the_oldest_is_compacted"),
    TextMutant(
        "prunes too young events", r"local RETRY_S = \S+", "local RETRY_S = 1", "test_events_younger_than_two_minutes_are_never_pruned"
    ),
    TextMutant(
        "forgets the fence of a key that is written again",
        r"local fence = before and .+",
        "local fence = before and before.fence or change.fence or 0",
        "test_an_entry_has_the_fence_of_its_key",
    ),
    TextMutant(
        "writes the fast way whatever the fence",
        r"or change\.fence < fence",
        "",
        "test_a_write_under_a_lower_token_is_refused",
    ),
    TextMutant(
        "writes the fast way whatever was expected",
        r"or not is_met\(change, before\)",
        "",
        "test_a_change_happens_only_where_its_expectation_is_met",
    ),
    TextMutant(
        "writes the fast way whoever holds the lease",
        r"\(change\.lease and not is_lease_held\(dict, change\)\)",
        "false",
        "test_a_write_that_names_a_lease_happens_only_while_it_is_held",
    ),
    TextMutant(
        "reads the fast way what has ended",
        r"\(entry\.expires_at == nil or entry\.expires_at > now\)",
        "entry",
        "test_an_entry_with_a_time_ends_by_itself",
    ),
    TextMutant(
        "forgets options the fast way",
        r"in pairs\(kept\) do",
        "in pairs({}) do",
        "test_a_message_comes_back_with_the_value_and_metadata_it_was_put_with",
    ),
    TextMutant(
        "puts back the fast way whatever the budget",
        r"if counts and is_spent\(",
        "if false and is_spent(",
        "test_a_message_is_dead_when_its_failures_reach_its_budget",
    ),
    TextMutant(
        "puts back the fast way and wakes nobody",
        r"channels\[2\], counts\[2\] = [^\n]*",
        "",
        "test_a_released_message_wakes_who_waits",
    ),
    TextMutant(
        "sends to the front what the next claims pass",
        r"    leave_next\(plan\)\n",
        "",
        "test_many_that_return_to_the_front_come_in_order_of_lease_end",
    ),
]

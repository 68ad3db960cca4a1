"""Every guarantee, broken once: what a careless store might do."""

import asyncio
import time
from contextlib import suppress
from typing import Any

from msgspec import Raw, json
from msgspec.structs import replace

from holdfast import records
from holdfast.codec import metadata
from holdfast.codec.fields import JsonObject, Text, Whole
from holdfast.commands import ALL, Claimed, endings, events, hints, placement, putting, settling
from holdfast.commands.change import Change
from holdfast.commands.claiming import Claim, ClaimPlan
from holdfast.commands.configuring import Configure
from holdfast.commands.dicts import Write
from holdfast.commands.endings import Budget, Endings
from holdfast.commands.fences import LowerFences
from holdfast.commands.leases import Acquire, LeaseName, Release
from holdfast.commands.moving import Move
from holdfast.commands.objects import Names
from holdfast.commands.placement import Placement
from holdfast.commands.putting import Put
from holdfast.commands.together import Together
from holdfast.commands.transaction import Line
from holdfast.errors import HoldfastError
from holdfast.records import Lease, Message
from holdfast.stores.memory.store import AsyncMemoryStore
from holdfast.stores.memory.transaction import MemoryTransaction as Tx
from holdfast.stores.waiting.waiters import Waiters
from holdfast.testing.clock import FakeClock
from tests.testing.controls import Mutant, PlainStore


def by_id_alone(_: Any, tx: Any, receipts: Any) -> Any:
    found = [tx.messages(receipt.queue, [receipt.id]) for receipt in receipts]
    return [messages[0] if messages and messages[0].state == "leased" else None for messages in found]


def by_token_alone(_: Any, tx: Any, receipts: Any) -> Any:
    found = [tx.messages(receipt.queue, [receipt.id]) for receipt in receipts]
    return [m[0] if m and m[0].state == "leased" and m[0].token == r.token else None for m, r in zip(found, receipts, strict=True)]


def with_the_held(original: Any, tx: Any, queue: str, *rest: Any) -> Any:
    line = original(tx, queue, *rest)
    held = [message for message in tx.browse(queue, "leased", None, 100) if message.held_at(tx.now)]
    return replace(line, heads=[*line.heads, *held])


def without_the_overdue(original: Any, *given: Any) -> Any:
    return replace(original(*given), overdue=[])


def behind_newer_work(original: Any, move: Any, tx: Any, messages: Any) -> Any:
    plan = original(move, tx, [replace(message, key=None) for message in messages])
    after = [replace(message, key=old.key, state="buffered") for message, old in zip(plan.after, messages, strict=True)]
    return replace(plan, after=after)


def never_paused(original: Any, tx: Any, queue: str, limit: int, overdue_limit: int) -> Any:
    line = original(tx, queue, limit, overdue_limit)
    if line.settings is None or not line.settings.paused:
        return line
    found = tx._found(queue)
    return Line(replace(line.settings, paused=False), found.heads(limit), found.overdue(overdue_limit))


def all_equal(original: Any, tx: Any, messages: Any) -> Any:
    original(tx, [replace(message, priority=0) for message in messages])


def all_due(original: Any, tx: Any, messages: Any) -> Any:
    original(tx, [replace(message, position=min(message.position, tx.now)) for message in messages])


def all_null(original: Any, tx: Any, messages: Any) -> Any:
    original(tx, [replace(message, value=Raw(b"null")) for message in messages])


def forgetting_what_it_was(original: Any, endings: Any, *given: Any, **more: Any) -> Any:
    original(endings, *given, **more)
    endings.moved_from = list(endings.moved)


def what_can_be(_: Any, step: Any, tx: Any) -> Any:
    plans = []
    for command in step.commands:
        try:
            plans.append((command, command.strictly().check(tx)))
        except HoldfastError:
            continue
    return plans


def one_by_one(original: Any, store: Any, command: Any) -> Any:
    if not isinstance(command, Together):
        return original(store, command)
    answers = []
    for part in command.commands:
        answers.append(original(store, part))
        time.sleep(0.0001)
    return answers


def look_first_write_later(_: Any, store: Any, command: Any) -> Any:
    tx = Tx(store._tables, store._now_us(), 0)
    plan = command.check(tx)
    time.sleep(0.005)  # Long enough for others to look, too, on a busy machine.
    with store._lock:
        return command.write(tx, plan)


def entries_alone(original: Any, tx: Any, *asked: Any) -> Any:
    return {key: entry for key, entry in original(tx, *asked).items() if entry.is_there(tx.now)}


def without_fences(original: Any, *asked: Any) -> Any:
    return {key: replace(entry, fence=0) for key, entry in original(*asked).items()}


def without_a_floor(original: Any, *asked: Any) -> Any:
    return replace(original(*asked), floor=0)


def nobody_of_that_name(original: Any, command: Any, tx: Any) -> Any:
    plan = original(command, tx)
    return replace(plan, held=None) if plan.held is not None and plan.held.holder == command.holder else plan


def no_lease_named(original: Any, write: Any, tx: Any, change: Any, *rest: Any) -> Any:
    return original(write, tx, replace(change, lease=None), *rest)


def without_expiries(original: Any, tx: Any, drafts: Any) -> Any:
    return original(tx, [draft for draft in drafts if draft.event != "expired"])


def effects_first(original: Any, tx: Any, drafts: Any) -> Any:
    return original(tx, list(reversed(drafts)))


def only_more_room(original: Any, tx: Any, queue: str, delta: int) -> Any:
    original(tx, queue, min(delta, 0))


def for_ever(original: Any, tx: Any, saved: Any) -> Any:
    original(tx, [replace(one, expires_at=None) if isinstance(one, records.Entry) else one for one in saved])


def as_it_was(_: Any, claim: Any, tx: Any, note: bytes) -> Any:
    claims = json.decode(note, type=list[tuple[str, int]])
    return Claimed(tx.messages(claim.queue, [message_id for message_id, _ in claims]))


def as_it_is_now(_: Any, command: Configure, tx: Any, __: bytes) -> Any:
    return tx.settings(command.kind, command.name)


def outdated_of_all(original: Any, tx: Any, limit: int, *, done: bool) -> Any:
    del done
    return original(tx, limit, done=True)


def outdated_of_entries(original: Any, tx: Any, limit: int, *, done: bool) -> Any:
    del done
    return original(tx, limit, done=False)


def nothing(*_: Any) -> None:
    """Instead of the method."""


def everything_with_the_prefix(original: Any, names: Names, tx: Any) -> Any:
    return original(replace(names, exact=False), tx)


def only_the_lease(original: Any, *given: Any) -> Any:
    return original(*given)[-1:]


def whatever_is_there(_: Any, command: Acquire, answer: Any) -> Any:
    release = Release([LeaseName(command.dict, command.key, command.lease_id)])
    return [Write(command.dict or "", [Change(command.key, "delete")]), release]


async def without_giving_back(original: Any, face: Any, command: Any) -> Any:
    answer = await original(face, command)
    await asyncio.sleep(0)
    return answer


async def whatever_is_cancelled(original: Any, face: Any, command: Any) -> Any:
    answer = await original(face, command)
    with suppress(asyncio.CancelledError):
        await asyncio.sleep(0)
    return answer


MUTANTS = [
    Mutant("lists all with the prefix", Names, "check", everything_with_the_prefix, "test_one_queue_is_asked_for_by_its_exact_name"),
    Mutant("prunes what is done when told not to", Tx, "outdated", outdated_of_all, "test_pruning_leaves_what_is_done_where_it_is_told_to"),
    Mutant(
        "prunes nothing that is done",
        Tx,
        "outdated",
        outdated_of_entries,
        "test_pruning_forgets_all_that_is_done_once_no_policy_keeps_it",
    ),
    Mutant(
        "answers a repeated configure as it is now",
        Configure,
        "recall",
        as_it_is_now,
        "test_a_repetition_answers_as_the_first_time_whatever_has_changed_since",
    ),
    Mutant("leaves the default of a lease", Acquire, "undo", only_the_lease, "test_taking_back_a_lease_takes_back_the_default_it_stored"),
    Mutant(
        "deletes what was there before a lease that it takes back",
        Acquire,
        "undo",
        whatever_is_there,
        "test_taking_back_a_lease_leaves_the_value_that_was_there",
    ),
    Mutant(
        "deletes what was written since a lease that it takes back",
        Acquire,
        "undo",
        whatever_is_there,
        "test_taking_back_a_lease_leaves_what_was_written_since_it_was_granted",
    ),
    Mutant(
        "settles without looking at the token",
        settling,
        "_held",
        by_id_alone,
        "test_a_stale_receipt_changes_nothing_of_what_a_newer_holder_has",
    ),
    Mutant(
        "settles without looking at the clock",
        settling,
        "_held",
        by_token_alone,
        "test_a_claim_whose_lease_has_ended_is_lost_even_if_nobody_took_the_message",
    ),
    Mutant("hands out what is held", Tx, "line", with_the_held, "test_a_held_message_is_handed_to_nobody_else"),
    Mutant("never finds an ended lease", Tx, "line", without_the_overdue, "test_a_message_whose_lease_has_ended_is_handed_out_again"),
    Mutant(
        "gives out one token for all",
        Tx,
        "append",
        lambda original, *given: original(*given) * 0 + 7,
        "test_tokens_grow_from_claim_to_claim_over_all_queues",
    ),
    Mutant(
        "gives out one revision for all",
        Tx,
        "append",
        lambda original, *given: original(*given) * 0 + 7,
        "test_a_revision_changes_with_every_write",
    ),
    Mutant(
        "forgets failures",
        Message,
        "returned",
        lambda original, *given, failed, ending: original(*given, failed=False, ending=ending),
        "test_a_message_is_dead_when_its_failures_reach_its_budget",
    ),
    Mutant(
        "counts a release as a failure",
        Message,
        "returned",
        lambda original, *given, failed, ending: original(*given, failed=True, ending=ending),
        "test_a_release_burns_nothing",
    ),
    Mutant(
        "loses the buffered copy", endings, "ready_copies", lambda *_: [], "test_a_buffered_copy_becomes_claimable_however_the_first_ends"
    ),
    Mutant(
        "releases to the back whatever was said",
        Endings,
        "position",
        lambda _, endings, tx, *rest: tx.now,
        "test_released_messages_go_where_they_were_sent_and_keep_their_order",
    ),
    Mutant(
        "returns an expiry to the back whatever was said",
        Endings,
        "position",
        lambda _, endings, tx, *rest: tx.now,
        "test_expired_messages_go_where_their_claim_said_and_keep_their_order",
    ),
    Mutant("wakes nobody", hints.Hints, "wake", nothing, "test_a_put_wakes_who_waits"),
    Mutant(
        "wakes everybody",
        hints.Hints,
        "wake",
        lambda original, given, topic, count: original(given, topic, ALL),
        "test_a_put_wakes_what_can_use_it_and_not_every_waiter",
    ),
    Mutant(
        "keeps a wake-up that nobody used",
        Waiters,
        "_pass_on",
        lambda *_: [],
        "test_a_wake_up_for_a_waiter_that_was_just_cancelled_is_passed_on",
    ),
    Mutant("closes and leaves others waiting", Waiters, "close", nothing, "test_closing_ends_every_wait"),
    Mutant("prunes too young events", events, "RETRY_S", 0.0, "test_events_younger_than_two_minutes_are_never_pruned"),
    Mutant("forgets answers too early", events, "RETRY_S", 0.0, "test_an_answer_outlives_two_minutes_of_pruning"),
    Mutant("says nothing of pruned events", Tx, "changes", without_a_floor, "test_a_number_below_the_oldest_is_compacted"),
    Mutant("takes any event number for its own", Tx, "latest", lambda *_: 10**9, "test_a_number_above_the_newest_is_of_another_store"),
    Mutant(
        "writes no expiries down",
        Tx,
        "append",
        without_expiries,
        "test_an_expiry_is_written_by_the_command_that_finds_it_before_the_new_claim",
    ),
    Mutant("writes effects before causes", Tx, "append", effects_first, "test_a_burial_elsewhere_is_an_event_of_both_queues"),
    Mutant("forgets a fence with its entry", Tx, "entries", entries_alone, "test_a_fence_stays_after_a_delete"),
    Mutant("takes any fence", Write, "_refuse_foreign_fences", nothing, "test_a_fence_above_every_token_is_refused_and_nothing_is_written"),
    Mutant("lowers no fence", Tx, "fenced", lambda *_: iter(()), "test_a_fence_that_is_too_high_can_be_lowered_and_no_other_is"),
    Mutant("lowers every fence", LowerFences, "check", lambda *_: 1, "test_a_fence_that_is_too_high_can_be_lowered_and_no_other_is"),
    Mutant("looks at no fence", Tx, "entries", without_fences, "test_a_write_under_a_lower_token_is_refused"),
    Mutant(
        "looks at no lease that a write names",
        Write,
        "_answer",
        no_lease_named,
        "test_a_write_that_names_a_lease_happens_only_while_it_is_held",
    ),
    Mutant("compares nothing", Change, "meets", lambda *_: True, "test_a_change_happens_only_where_its_expectation_is_met"),
    Mutant(
        "loses an update between looking and writing",
        PlainStore,
        "execute",
        look_first_write_later,
        "test_compare_and_set_loses_no_update",
    ),
    Mutant(
        "hands out twice between looking and writing",
        PlainStore,
        "execute",
        look_first_write_later,
        "test_eight_claimers_never_hold_one_message_twice",
    ),
    Mutant(
        "grants twice between looking and writing",
        PlainStore,
        "execute",
        look_first_write_later,
        "test_of_all_who_ask_one_is_granted_a_lease",
    ),
    Mutant("keeps entries for ever", Tx, "save", for_ever, "test_an_entry_with_a_time_ends_by_itself"),
    Mutant("applies what it can of a step", Together, "check", what_can_be, "test_whatever_fails_refuses_everything"),
    Mutant("takes a step apart", PlainStore, "execute", one_by_one, "test_a_step_of_two_writes_is_never_seen_half"),
    Mutant("applies a repeated put again", Tx, "recall", lambda *_: None, "test_a_repeated_put_adds_nothing"),
    Mutant("applies a repeated write again", Tx, "recall", lambda *_: None, "test_a_repeated_write_answers_the_same_and_writes_once"),
    Mutant("claims again when a claim is repeated", Tx, "recall", lambda *_: None, "test_a_repeated_claim_answers_the_same_messages"),
    Mutant(
        "answers a repeated claim with what is lost", Claim, "recall", as_it_was, "test_a_repeated_claim_leaves_out_what_is_no_longer_held"
    ),
    Mutant("knows no priorities", Tx, "add", all_equal, "test_higher_priorities_come_first"),
    Mutant("knows no delays", Tx, "add", all_due, "test_a_delayed_message_is_not_handed_out_early"),
    Mutant("loses values", Tx, "add", all_null, "test_a_message_comes_back_with_the_value_and_metadata_it_was_put_with"),
    Mutant(
        "follows the wall clock",
        FakeClock,
        "now_us",
        lambda original, clock: original(clock) + clock.wall_offset_us(),
        "test_a_step_of_the_wall_clock_moves_no_lease_and_no_delay",
    ),
    Mutant(
        "hands out what is too late",
        Message,
        "is_late",
        lambda *_: False,
        "test_a_message_not_started_in_time_is_dropped_and_an_event_says_so",
    ),
    Mutant("is never full", Placement, "check_room", nothing, "test_a_full_queue_refuses_a_put_and_keeps_nothing_of_it"),
    Mutant("counts no release against its room", endings, "resize", only_more_room, "test_a_release_is_never_refused_and_counts"),
    Mutant("hands out of a paused queue", Tx, "line", never_paused, "test_a_paused_queue_takes_puts_and_hands_out_nothing"),
    Mutant("keeps what was taken", Claim, "_remove", nothing, "test_take_removes_what_it_hands_out"),
    Mutant("empties nothing", Tx, "clear", lambda *_, **__: 2, "test_emptying_a_queue_takes_its_claims_away"),
    Mutant("puts an id twice", placement, "taken_ids", lambda *_: set(), "test_a_put_under_an_id_that_exists_changes_nothing"),
    Mutant("sees no keys", Tx, "keyed", lambda *_: [], "test_a_put_on_a_waiting_key_follows_if_ready"),
    Mutant("sees no leased keys", Tx, "keyed", lambda *_: [], "test_a_put_on_a_leased_key_follows_if_leased"),
    Mutant(
        "knows no fallback budget",
        Budget,
        "is_spent",
        lambda _, budget, message, failures: message.max_attempts is not None and failures >= message.max_attempts,
        "test_the_claimers_budget_holds_for_messages_that_carry_none",
    ),
    Mutant(
        "buries without a word",
        Message,
        "dead_lettered",
        lambda original, *given, **more: replace(original(*given, **more), metadata=None),
        "test_with_a_dead_letter_queue_the_payload_moves_there",
    ),
    Mutant(
        "redrives a spent budget",
        Message,
        "redriven",
        lambda original, message, *rest: replace(original(message, *rest), failures=message.failures),
        "test_a_redriven_message_has_its_whole_budget_again",
    ),
    Mutant(
        "sends to the front what the next claims pass",
        ClaimPlan,
        "leave_next",
        nothing,
        "test_many_that_return_to_the_front_come_in_order_of_lease_end",
    ),
    Mutant(
        "redrives behind newer work",
        Move,
        "_redrive",
        behind_newer_work,
        "test_newer_work_of_the_key_outlives_a_redrive_however_its_claim_ends",
    ),
    Mutant("remembers five endings", records, "HISTORY", 5, "test_only_the_last_twenty_endings_are_kept_and_all_are_counted"),
    Mutant(
        "says nothing when all it found was buried",
        Claim,
        "_due_in_s",
        lambda *_: None,
        "test_when_all_that_ended_were_buried_the_claim_says_to_ask_again",
    ),
    Mutant(
        "grants a lease twice to one name", Acquire, "check", nobody_of_that_name, "test_a_holder_does_not_get_its_lease_twice_by_its_name"
    ),
    Mutant("never ends a lease", Lease, "held_at", lambda *_: True, "test_a_lease_can_be_taken_when_it_has_ended"),
    Mutant(
        "ends every lease at once", Lease, "held_at", lambda *_: False, "test_a_held_lease_is_not_granted_and_the_answer_says_who_holds_it"
    ),
    Mutant("drops a dict and keeps its leases", Tx, "leases_of", lambda *_: iter(()), "test_dropping_the_dict_ends_its_leases"),
    Mutant(
        "tells of new values by id alone",
        putting,
        "told_updated",
        lambda original, messages: {name: fact for name, fact in original(messages).items() if name == "updated"},
        "test_an_update_by_key_is_an_event",
    ),
    Mutant(
        "tells of a burial by what it became",
        Endings,
        "bury",
        forgetting_what_it_was,
        "test_a_message_buried_elsewhere_is_told_by_the_id_and_key_it_had",
    ),
    Mutant(
        "breaks on metadata of before it was checked",
        metadata,
        "readable_metadata",
        lambda _, metadata, *__: metadata,
        "test_metadata_that_cannot_be_read_stops_no_claim",
    ),
    Mutant(
        "takes any metadata",
        JsonObject,
        "check",
        lambda _, __, metadata: metadata,
        "test_bad_arguments_are_refused_before_anything_is_sent",
    ),
    Mutant("takes any receipt", records, "check_fields", nothing, "test_bad_arguments_are_refused_before_anything_is_sent"),
    Mutant("takes any whole number", Whole, "check", lambda _, __, value: value, "test_bad_arguments_are_refused_before_anything_is_sent"),
    Mutant("takes any text", Text, "check", lambda _, __, value: value, "test_bad_arguments_are_refused_before_anything_is_sent"),
    Mutant("measures nothing", Put, "measure", nothing, "test_batches_over_the_limit_are_refused"),
    Mutant("measures no steps", Together, "measure", nothing, "test_steps_about_more_than_a_batch_are_refused"),
    Mutant(
        "grants something to who was cancelled",
        AsyncMemoryStore,
        "execute",
        without_giving_back,
        "test_whoever_is_cancelled_at_any_moment_hears_it_and_leaves_nothing_held",
    ),
    Mutant(
        "swallows cancellations",
        AsyncMemoryStore,
        "execute",
        whatever_is_cancelled,
        "test_whoever_is_cancelled_at_any_moment_hears_it_and_leaves_nothing_held",
    ),
    Mutant(
        "grants something to a loop that ends",
        AsyncMemoryStore,
        "execute",
        without_giving_back,
        "test_an_event_loop_ends_whatever_is_under_way",
    ),
]

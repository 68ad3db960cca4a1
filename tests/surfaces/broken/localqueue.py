"""What localqueue does wrong, or a careless surface for it would."""

from contextlib import nullcontext
from threading import Event
from typing import Any

from msgspec import Raw, structs

from holdfast import records
from holdfast._async.handles.claimed import AsyncQueueClaimContext
from holdfast._sync.flows import putting
from holdfast._sync.handles.claimed import QueueClaimContext
from holdfast._sync.handles.claims import QueueClaim
from holdfast.codec import JSON, encode_key
from holdfast.commands import Browse, Change, Settle, Write
from holdfast.errors import QueueFull
from holdfast.records import Receipt
from holdfast.stores.sqlite.writer import Writer
from holdfast.surfaces.localqueue import engine_backend, persistent_queue, put_request
from holdfast.surfaces.localqueue._sync import commit, worker_calls
from holdfast.surfaces.localqueue._sync.records import load
from holdfast.surfaces.localqueue.unfinished import Unfinished
from holdfast.testing.clock import FakeClock
from tests.surfaces.broken.fault import Fault, instead
from tests.surfaces.localqueue import test_commits, test_deaths, test_faults_of_the_original, test_overrides, test_queue, test_workers


def settled_by_id(backend: Any, message: Any, _join: Any, **how: Any) -> bool:
    """Whoever holds it."""
    store = backend._location.client.store
    (found,) = store.execute(Browse(message.queue, ids=[message.id])).messages
    held: bool = store.execute(Settle([Receipt(message.queue, message.id, found.token)], **how)).held[0]
    return held


def one_after_the_other(original: Any) -> Any:
    return lambda store, commands, *how: [original(store, [command], *how)[0] for command in commands]


def without_a_limit(_: Any) -> Any:
    return lambda store, commands, room, *waiting: putting.put_together(store, commands, *waiting)


def without_a_note(_: Any) -> Any:
    """Checks, then puts: what others put in between goes unnoticed."""
    return lambda *_: Write(engine_backend.ROOM, [Change(encode_key("nobody's"), value=Raw(b"1"))])


def swallowed(original: Any) -> Any:
    def put(queue: Any, item: Any, *args: Any, dedupe_key: str | None = None, **options: Any) -> Any:
        known = [one for one in queue.dead_letters() if dedupe_key is not None and one.dedupe_key == dedupe_key]
        return known[0] if known else original(queue, item, *args, dedupe_key=dedupe_key, **options)

    return put


def unscoped(original: Any) -> Any:
    def init(commit: Any, queue: Any, message: Any) -> None:
        original(commit, queue, message)
        commit._key = f"dedupe:{message.dedupe_key}"

    return init


def strict_about_results(_: Any) -> Any:
    def keep_result(commit: Any, step: Any, result: Any) -> Any:
        return "inline", {"result": JSON.decode(JSON.encode(result))}

    return keep_result


def oldest_of_all(_: Any) -> Any:
    return lambda unfinished: unfinished._messages.pop(0)[1]


def blind_to_time(_: Any) -> Any:
    return lambda queue: len(queue.client.store.execute(Browse(queue.name, state="ready")).messages)


def with_option(name: str, value: object) -> Any:
    return lambda original: lambda made, *args, **options: original(made, *args, **{**options, name: value})


def sometimes_checked(original: Any) -> Any:
    """Looks away three times, lest the test never end."""
    looks = iter((True, True, True))

    def check(claim: Any) -> None:
        if not next(looks, False):
            original(claim)

    return check


def always_the_same_object(original: Any) -> Any:
    known: dict[str, Any] = {}

    def claimed(message: Any, offset: int) -> Any:
        told = original(message, offset)
        object.__setattr__(told, "value", known.setdefault(told.id, told.value))
        return told

    return claimed


def outside_of_the_step(_: Any) -> Any:
    return lambda *_: False


def deaf_to_others(original: Any) -> Any:
    """Waits for room that is made through the same object."""

    def put_within(store: Any, commands: Any, room: Any, *_: Any) -> Any:
        try:
            return original(store, commands, room, None, 0.0)
        except QueueFull:
            Event().wait(5.0)
            raise

    return put_within


FAULTS = [
    Fault(
        "a stale worker settles what another holds",
        engine_backend.EngineBackend,
        "_end",
        instead(settled_by_id),
        test_faults_of_the_original.test_a_stale_worker_changes_nothing_of_what_another_holds,
    ),
    Fault(
        "priority is taken and forgotten",
        put_request.PutRequest,
        "item",
        lambda original: lambda place, value, key: original(structs.replace(place, priority=0), value, key),
        test_faults_of_the_original.test_priority_wins,
    ),
    Fault(
        "a put is not woken by others who make room",
        engine_backend,
        "put_within",
        deaf_to_others,
        test_faults_of_the_original.test_a_bounded_put_is_woken_when_another_object_makes_room,
    ),
    Fault(
        "fan-out is one put after the other",
        engine_backend,
        "put_within",
        one_after_the_other,
        test_faults_of_the_original.test_a_fan_out_is_all_or_nothing,
    ),
    Fault(
        "a dead letter's key swallows new work",
        persistent_queue.PersistentQueue,
        "put",
        swallowed,
        test_faults_of_the_original.test_a_dead_letters_key_does_not_swallow_new_work,
    ),
    Fault(
        "the ledger knows no queues", commit.Commit, "__init__", unscoped, test_faults_of_the_original.test_the_ledger_tells_queues_apart
    ),
    Fault(
        "a result that is not JSON fails the job",
        commit.Commit,
        "_keep_result",
        strict_about_results,
        test_faults_of_the_original.test_a_result_that_cannot_be_kept_does_not_repeat_the_effect,
    ),
    Fault(
        "task_done takes the oldest of all threads",
        Unfinished,
        "pop",
        oldest_of_all,
        test_faults_of_the_original.test_task_done_acknowledges_the_message_of_its_own_thread,
    ),
    Fault(
        "qsize counts rows",
        persistent_queue.PersistentQueue,
        "qsize",
        blind_to_time,
        test_faults_of_the_original.test_sizes_see_that_leases_have_ended,
    ),
    Fault(
        "Ctrl-C leaves a transaction open",
        Writer,
        "_roll_back",
        instead(lambda _: None),
        test_faults_of_the_original.test_an_interrupt_inside_a_transaction_leaves_nothing_behind,
    ),
    Fault(
        "who dies burns nothing",
        worker_calls.WorkerCalls,
        "_budget",
        instead(None),
        test_workers.TestTheLease.test_a_message_that_kills_its_workers_is_dead_at_its_budget,
    ),
    Fault(
        "leases are moments of the wall clock",
        FakeClock,
        "now_us",
        instead(FakeClock.wall_us),
        test_faults_of_the_original.test_a_step_of_the_wall_clock_neither_hides_nor_delivers_again,
    ),
    Fault(
        "nobody renews",
        QueueClaimContext,
        "__init__",
        with_option("auto_renew", value=False),
        test_faults_of_the_original.test_a_long_handler_is_not_joined_by_a_second_one,
    ),
    Fault(
        "a history grows for ever", records, "HISTORY", instead(1_000), test_faults_of_the_original.test_a_history_does_not_grow_without_end
    ),
    Fault(
        "attempts outlive a burial",
        worker_calls,
        "delete",
        instead(lambda *_: None),
        test_faults_of_the_original.test_a_requeued_dead_letter_is_handled,
    ),
    Fault(
        "retries go on in a lease that has ended",
        QueueClaim,
        "check",
        sometimes_checked,
        test_faults_of_the_original.test_a_worker_does_not_retry_in_a_lease_that_has_ended,
    ),
    Fault(
        "a cancelled worker keeps its lease",
        AsyncQueueClaimContext,
        "__init__",
        with_option("release_on_error", value=False),
        test_workers.TestFailures.test_a_cancelled_worker_gives_its_message_back,
    ),
    Fault(
        "the limit is nobody's",
        engine_backend,
        "put_within",
        without_a_limit,
        test_faults_of_the_original.test_many_producers_never_exceed_the_limit,
    ),
    Fault(
        "a limit is looked at, and then put",
        putting,
        "_note_of",
        without_a_note,
        test_faults_of_the_original.test_a_put_that_another_overtakes_looks_again,
    ),
    Fault(
        "memory hands out one object to all",
        engine_backend,
        "claimed",
        always_the_same_object,
        test_faults_of_the_original.test_a_stored_value_is_nobodys_alias,
    ),
    Fault(
        "values are changed in silence",
        put_request,
        "make_item",
        lambda original: lambda value, codec, options: original(repr(value), codec, options),
        test_queue.TestPuttingAndGetting.test_a_value_that_would_not_is_refused,
    ),
    Fault(
        "a result that is too large is noticed when the message is acknowledged",
        commit,
        "check_value_size",
        instead(lambda *_: 0),
        test_faults_of_the_original.test_a_result_that_cannot_be_kept_does_not_repeat_the_effect,
    ),
    Fault(
        "the plain key is not looked at",
        commit.Commit,
        "_load_record",
        instead(lambda made, ledger: load(ledger, made._key)),
        test_commits.TestLedger.test_a_key_that_was_marked_as_done_under_its_own_name_is_not_handled,
    ),
    Fault(
        "an envelope that could not be saved is forgotten",
        commit.Commit,
        "resume",
        instead(lambda *_: None),
        test_commits.TestAtomicity.test_an_envelope_that_could_not_be_saved_is_saved_with_the_next_delivery,
    ),
    Fault(
        "workers go past the methods of a subclass",
        persistent_queue.PersistentQueue,
        "overrides",
        instead(lambda *_: False),
        test_overrides.test_a_success_is_acknowledged_by_the_subclass,
    ),
    Fault(
        "what a subclass acknowledges is a step of its own",
        engine_backend.EngineBackend,
        "joined",
        instead(lambda *_: nullcontext()),
        test_overrides.test_what_is_kept_is_still_one_step_with_the_acknowledgement,
    ),
    Fault(
        "ledger and result are saved before the acknowledgement",
        commit,
        "is_same_store",
        outside_of_the_step,
        test_deaths.test_a_worker_that_dies_at_any_step_has_committed_all_or_nothing_and_is_followed,
    ),
    Fault(
        "ledger and result survive what was not acknowledged",
        commit,
        "is_same_store",
        outside_of_the_step,
        test_commits.TestAtomicity.test_what_cannot_be_committed_leaves_nothing_behind,
    ),
]

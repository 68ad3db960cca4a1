"""Plain commands on the fast path: each function returns the command's answer, or None and has done nothing."""

from collections.abc import Callable, Mapping
from operator import attrgetter
from typing import Any, Final

from msgspec import Raw
from msgspec.structs import fields

from holdfast.commands import Claim, Claimed, Command, Held, Item, Put, Puts, Settle
from holdfast.commands.plain import uses_only
from holdfast.commands.putting import KEPT
from holdfast.records import moment_in
from holdfast.stores import FastQueue
from holdfast.stores.memory.fast.queue import Ground, fast_queue
from holdfast.stores.memory.log import NOTHING
from holdfast.stores.memory.queue import MemoryQueue

OPTIONS: Final = tuple(field for field in fields(Item) if field.name in KEPT and field.name not in ("key", "priority"))
_options = attrgetter(*(field.name for field in OPTIONS))
_defaults = tuple(field.default for field in OPTIONS)


def without_id(kind: type[Command[Any]], *also: str) -> Callable[[Any], bool]:
    """Whether a command is plain and has no id: an answer that must be kept takes a transaction."""
    return uses_only(kind, *(name for name in kind.plain_fields if name != "id"), *also)


_is_put = without_id(Put)
_is_item = uses_only(Item, "id", "value", "if_ready", "if_leased", "delay_s", *KEPT)
_is_claim = without_id(Claim, "key")
_is_settle = without_id(Settle)

FastCommands = Mapping[type[Command[Any]], Callable[[Any], Any]]


def fast_commands(ground: Ground) -> FastCommands:
    """The fast path of each command that has one."""
    return {Put: putting(ground), Claim: claiming(ground), Settle: settling(ground)}


def fast_queue_of(queue: MemoryQueue, ground: Ground) -> FastQueue:
    """The fast path of a queue, made when it is first needed."""
    if queue.fast is None:
        queue.fast = fast_queue(queue, ground)
    return queue.fast


def putting(ground: Ground) -> Callable[[Put], Puts | None]:
    """Put one message."""
    queues, is_copied, value_bytes = ground.tables.queues, not ground.tables.by_reference, ground.tables.value_bytes

    def put(command: Put) -> Puts | None:
        queue = queues.get(command.queue)
        if queue is None or len(command.items) != 1 or not _is_put(command):
            return None
        item = command.items[0]
        if not _is_item(item) or (is_copied and len(item.value) > value_bytes):
            return None
        value = item.value.copy() if is_copied else item.value
        options = _options(item)
        given = NOTHING if options == _defaults else options_given(options, is_copied=is_copied)
        is_put = (queue.fast or fast_queue_of(queue, ground)).put(
            item.key, value, item.id, item.priority, moment_in(item.delay_s) if item.delay_s else 0, given
        )
        return Puts([item.id], [True]) if is_put else None

    return put


def options_given(options: tuple[Any, ...], *, is_copied: bool) -> dict[str, Any]:
    """The options that are not the defaults; texts are copied, since they may be part of something larger."""
    given = {field.name: value for field, value in zip(OPTIONS, options, strict=True) if value != field.default}
    return {name: value.copy() if is_copied and isinstance(value, Raw) else value for name, value in given.items()}


def claiming(ground: Ground) -> Callable[[Claim], Claimed | None]:
    """Claim one message."""
    queues = ground.tables.queues

    def claim(command: Claim) -> Claimed | None:
        queue = queues.get(command.queue)
        if queue is None or command.limit != 1 or not _is_claim(command):
            return None
        lease = (queue.fast or fast_queue_of(queue, ground)).claim
        message = lease(command.key, command.holder, command.lease_s, command.expired_to)
        if message is None:
            return None
        try:
            return Claimed([message])
        except BaseException:
            ground.give_back(message)
            raise

    return claim


def settling(ground: Ground) -> Callable[[Settle], Held | None]:
    """Settle one message that is done, or is to be tried again at once."""
    queues, messages = ground.tables.queues, ground.tables.messages

    def settle(command: Settle) -> Held | None:
        if len(command.receipts) != 1 or command.to == "dead" or not _is_settle(command):
            return None
        receipt = command.receipts[0]
        queue = queues.get(receipt.queue)
        if queue is None:
            return None
        fast = queue.fast or fast_queue_of(queue, ground)
        message = messages.get(queue.ids.get(receipt.id) or queue.find(receipt.id) or 0)
        # Its token tells a message that moved elsewhere, and is claimed there, from what was claimed here.
        if message is None or message.token != receipt.token:
            return None
        if command.to == "done":
            return Held([True]) if fast.ack(message) else None
        if command.counts or command.delay_s or command.error is not None:
            return None
        return Held([True]) if fast.release(message, command.return_to) else None

    return settle

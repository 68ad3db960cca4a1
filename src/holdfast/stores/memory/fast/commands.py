"""Plain commands on the fast path: each function returns the command's answer, or None and has done nothing."""

from collections.abc import Callable, Mapping
from typing import Any

from msgspec.structs import replace

from holdfast.commands import Claim, Claimed, Command, Held, Item, Put, Puts, Settle
from holdfast.commands.plain import uses_only
from holdfast.commands.putting import KEPT
from holdfast.records import moment_in
from holdfast.stores import FastQueue
from holdfast.stores.memory.fast.queue import Ground, fast_queue
from holdfast.stores.memory.queue import MemoryQueue


def without_id(kind: type[Command[Any]], *also: str) -> Callable[[Any], bool]:
    """Whether a command is plain and has no id: an answer that must be kept takes a transaction."""
    return uses_only(kind, *(name for name in kind.plain_fields if name != "id"), *also)


_is_put = without_id(Put)
_has_no_options = uses_only(Item, "id", "value", "key", "if_ready", "if_leased", "priority")
_is_item = uses_only(Item, "id", "value", "if_ready", "if_leased", "delay_s", *(name for name in KEPT if name != "group"))
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
        value = item.value
        if is_copied:
            if len(value) > value_bytes:
                return None
            value = value.copy()
        message_id, add = item.id, (queue.fast or fast_queue_of(queue, ground)).put
        if _has_no_options(item):
            is_put = add(item.key, value, message_id, item.priority)
        elif _is_item(item):
            delay = moment_in(item.delay_s) if item.delay_s else 0
            is_put = add(item.key, value, message_id, item.priority, delay, copied(item) if is_copied else item)
        else:
            return None
        return Puts([message_id], [True]) if is_put else None

    return put


def copied(item: Item) -> Item:
    """The item with texts of its own: they may be part of something larger, which they would keep."""
    value, metadata = item.value.copy(), item.metadata and item.metadata.copy()
    return item if value is item.value and metadata is item.metadata else replace(item, value=value, metadata=metadata)


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

"""The commonest commands answered by shortcuts; each answers as `check` and `write` would, or None with nothing done."""

from collections.abc import Callable, Mapping
from typing import Any

from holdfast.commands import Claim, Claimed, Command, Held, Item, Put, Puts, Settle
from holdfast.commands.plain import uses_only
from holdfast.stores.memory.queue import MemoryQueue
from holdfast.stores.memory.shortcuts import Ground, Shortcuts, shortcuts

_is_plain_put = uses_only(Put, "queue", "items")
_is_plain_item = uses_only(Item, "id", "value", "key", "if_ready", "if_leased", "priority", "max_attempts", "dead_letter", "metadata")
_is_plain_claim = uses_only(Claim, "queue", "holder", "lease_s", "key", "expired_to", "max_attempts", "dead_letter")
_is_done = uses_only(Settle, "receipts", "return_to", "delay_s", "error", "counts", "max_attempts", "dead_letter", "all_or_none")
_is_back = uses_only(Settle, "receipts", "to", "return_to", "max_attempts", "dead_letter", "all_or_none")

Native = Mapping[type[Command[Any]], Callable[[Any], Any]]


def natives(ground: Ground) -> Native:
    """The native answers of one store, by command."""
    return {Put: putting(ground), Claim: claiming(ground), Settle: settling(ground)}


def shortcuts_of(queue: MemoryQueue, ground: Ground) -> Shortcuts:
    """The shortcuts of a queue, made when they are first wanted."""
    if queue.shortcuts is None:
        queue.shortcuts = shortcuts(queue, ground)
    return queue.shortcuts


def putting(ground: Ground) -> Callable[[Put], Puts | None]:
    """Put one message that is due at once."""
    queues, is_copied, value_bytes = ground.tables.queues, not ground.tables.by_reference, ground.tables.value_bytes

    def put(command: Put) -> Puts | None:
        queue = queues.get(command.queue)
        if queue is None or len(command.items) != 1 or not _is_plain_put(command):
            return None
        item = command.items[0]
        value, metadata = item.value, item.metadata
        if not _is_plain_item(item):
            return None
        if is_copied:
            if len(value) > value_bytes:
                return None
            value = value.copy()
            metadata = metadata and metadata.copy()
        add = (queue.shortcuts or shortcuts_of(queue, ground)).add
        message_id = item.id
        added = add(item.key, value, message_id, item.priority, item.max_attempts, item.dead_letter, metadata)
        return Puts([message_id], [True]) if added else None

    return put


def claiming(ground: Ground) -> Callable[[Claim], Claimed | None]:
    """Claim one message."""
    queues = ground.tables.queues

    def claim(command: Claim) -> Claimed | None:
        queue = queues.get(command.queue)
        if queue is None or not _is_plain_claim(command):
            return None
        lease = (queue.shortcuts or shortcuts_of(queue, ground)).claim
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
        if len(command.receipts) != 1:
            return None
        receipt = command.receipts[0]
        queue = queues.get(receipt.queue)
        if queue is None:
            return None
        of = queue.shortcuts or shortcuts_of(queue, ground)
        message = messages.get(queue.ids.get(receipt.id) or queue.find(receipt.id) or 0)
        # Its token tells a message that moved elsewhere, and is claimed there, from what was claimed here.
        if message is None or message.token != receipt.token:
            return None
        if _is_done(command):
            return Held([True]) if of.ack(message) else None
        if command.to != "ready" or not _is_back(command):
            return None
        return Held([True]) if of.release(message, command.return_to) else None

    return settle

"""The keys that were put not long ago: entries of a dict beside the queue, each with the id of its message and an end of its own."""

from collections.abc import Collection

from msgspec import Raw, Struct, json

from holdfast.commands.change import Change
from holdfast.commands.dicts import Write, WritePlan, living
from holdfast.commands.transaction import Transaction


def recent_dict(queue: str) -> str:
    """The dict that remembers the keys of a queue, unless a put names another."""
    return f"{queue}-recent"


class Recent(Struct):
    """The keys of one put that were put not long ago, and those that the put lets count as such."""

    name: str
    """The dict's."""
    ids: dict[str, str] = {}
    """By key the id under which it was put."""
    begun: dict[str, Change] = {}
    step: tuple[Write, WritePlan] | None = None

    def look_up(self, tx: Transaction, keys: Collection[str]) -> None:
        for key, entry in living(tx, self.name, list(keys)).items():
            message_id = json.decode(entry.value)
            if isinstance(message_id, str):
                self.ids[key] = message_id

    def begin(self, key: str, message_id: str, unique_for_s: float) -> None:
        """From now on the key counts as put not long ago; the last message of a key in one put is the one that counts."""
        self.begun.pop(key, None)
        self.begun[key] = Change(key, value=Raw(json.encode(message_id)), ttl_s=unique_for_s)

    def check(self, tx: Transaction) -> None:
        if self.begun:
            command = Write(self.name, list(self.begun.values()))
            self.step = command, command.check(tx)

    def write(self, tx: Transaction) -> None:
        if self.step is not None:
            command, plan = self.step
            command.write(tx, plan)

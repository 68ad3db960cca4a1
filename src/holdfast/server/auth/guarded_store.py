"""The store as one caller may use it; routes use no other.

Every command of every route passes here: is the caller still welcome, may they do all that it takes, is there room for it in their quota,
into their namespace, into the audit if it is an administrator's, and its answer back out.
"""

from collections.abc import Collection
from typing import Any, Final, TypeVar

from msgspec.structs import replace

from holdfast.codec import Limits, check_name
from holdfast.commands import Command, Configure, Fences, Names, Seal, Survey, Together
from holdfast.commands.sizes import brought, may_bring
from holdfast.errors import NotAllowed
from holdfast.records import Receipt
from holdfast.records.policies import Kind, Settings
from holdfast.server.audit import acts_of, is_told, recorded, tell
from holdfast.server.auth.callers import Caller, check, may_know
from holdfast.server.auth.hidden_leases import hide_ids, hide_ids_in_error
from holdfast.server.auth.permissions import Need, needs_of
from holdfast.server.effects import last_failures
from holdfast.server.load.answer_memory import Share
from holdfast.server.namespaces.admission import Tenants
from holdfast.server.namespaces.answers import error_outside, outside
from holdfast.server.namespaces.commands import inside
from holdfast.server.namespaces.names import AUDIT, RESERVED
from holdfast.stores import AsyncStore, Guarantees
from holdfast.stores.waiting.waiters import Mark, Waiters

R = TypeVar("R")

COPIED: Final = (Survey, Fences, Seal)
"""What a copy asks of its source."""
KINDS: Final[tuple[Kind, ...]] = ("queue", "dict")
ID_LIMITS: Final = Limits(name_bytes=100)


class Reach:
    """An `AsyncStore` for the length of one request."""

    def __init__(self, store: AsyncStore, caller: Caller, tenants: Tenants, share: Share) -> None:
        self._store = store
        # What its answers take of the server's memory; whoever has no more use for one says so.
        self._share = share
        self._tenants = tenants
        self._caller = caller
        self._namespace = caller.namespace
        self.url: str = store.url
        self.limits: Limits = store.limits
        self.waiters: Waiters = store.waiters

    @property
    def guarantees(self) -> Guarantees:
        return self._store.guarantees

    async def execute(self, command: Command[R]) -> R:
        if not self._caller.is_known():
            await self._caller.stay()
        if isinstance(command, Configure) and (settings := await self._unless_changed(command)) is not None:
            same: R = settings
            return same
        for need in needs_of(command):
            check(self._caller, need)
        brings, held = may_bring(command, self.limits), self._share.held
        if brings and not self._share.take(brings):
            await self._share.wait_for(brings)
            await self._caller.stay()
        size_bytes = 0
        try:
            if not self._tenants.is_free(command, self._namespace):
                size_bytes = await self._tenants.enter(command, self._namespace)
            answer = hide_ids(command, await self._execute(command))
        except Exception as error:
            self._share.keep(held)  # A flow may go on behind an error.
            hide_ids_in_error(error)
            if self._namespace.prefix:
                error_outside(error, self._namespace)
            raise
        finally:
            if size_bytes:
                self._tenants.leave(self._namespace, size_bytes)
        if brings:
            self._share.keep(brought(answer))
        theirs: R = outside(answer, self._namespace) if self._namespace.prefix else answer
        return theirs

    async def last_failures(self, command: Command[Any]) -> Collection[Receipt]:
        """The claims in the command whose failure buries their message; only for counting."""
        return await last_failures(self._store, command, self._caller)

    async def _execute(self, command: Command[Any]) -> Any:
        entered = inside(command, self._namespace)
        if (whose := self._id_of(command)) != command.id:
            entered = replace(entered, id=whose)
        if isinstance(command, COPIED):
            await self._refuse_a_part()
        acts = acts_of(command)
        if not acts:
            if is_told(command):
                tell(self._caller.actor, command)
            return await self._store.execute(entered)
        write = recorded(self._caller.actor, *acts)
        if isinstance(entered, Together):
            return (await self._store.execute(replace(entered, commands=[*entered.commands, write])))[:-1]
        return (await self._store.execute(Together([entered, write], id=entered.id)))[0]  # type: ignore[list-item]

    async def _unless_changed(self, command: Configure) -> Any:
        """The answer, where the settings are already as asked; None where the command has to change them."""
        found = await self._unchanged(command)
        if found is None:
            return None
        kept = await self._kept_answer(command, found)
        if kept is None:  # Somebody changed them at this very moment: what stands under the id is what they were.
            return await self.execute(replace(command, id=""))
        return outside(kept, self._namespace)

    async def _unchanged(self, command: Configure) -> Settings | None:
        """The settings, if they are already as asked: programs say `create` at every start, and that is no act.

        So it takes no more than that the caller may do anything with what is there.
        """
        if not may_know(self._caller, Need(command.kind, command.name, "read")) and not self._caller.may(*needs_of(command)):
            return None
        entered = inside(command, self._namespace)
        found = (await self._store.execute(Names(command.kind, entered.name, limit=1))).settings
        return found[0] if found and found[0].name == entered.name and entered.is_kept_by(found[0]) else None

    async def _kept_answer(self, command: Configure, found: Settings) -> Settings | None:
        """The settings, kept as the answer under the command's id, so that its repetition undoes nothing that has changed since.

        If it is itself a repetition, what was answered then. None if the settings are no longer as they were found. A caller who may not
        change them cannot do so by a repetition either.
        """
        if not command.id or not self._caller.may(*needs_of(command)):
            return found
        entered = inside(command, self._namespace)
        step = Together([Configure(entered.kind, entered.name), recorded(self._caller.actor)], id=self._id_of(command))
        settings: Settings = (await self._store.execute(step))[0]
        return settings if settings.created_at <= found.created_at and entered.is_kept_by(settings) else None

    def _id_of(self, command: Command[Any]) -> str:
        """Under which id the store keeps the answer."""
        if command.id:
            check_name(command.id, "command id", ID_LIMITS)
        return self._caller.commands + self._namespace.prefix + command.id if command.id else ""

    async def _refuse_a_part(self) -> None:
        """A copy through a server sees the default namespace alone: what else there is would be left behind in a sealed store."""
        for kind in KINDS:
            found = await self._store.execute(Names(kind, RESERVED, limit=2))
            if any(settings.name != AUDIT for settings in found.settings):
                raise NotAllowed(
                    "the store has tokens or namespaces, which a copy through its server would leave behind: copy the store itself"
                )

    def mark(self, topic: str) -> Mark:
        return self._store.mark(self._namespace.topic_inside(topic))

    async def wait(self, mark: Mark, timeout_s: float, due_in_s: float | None = None, poll_s: float | None = None) -> None:
        await self._store.wait(mark, timeout_s, due_in_s, poll_s)

    def wall_offset_us(self) -> int:
        return self._store.wall_offset_us()

    async def aclose(self) -> None:
        """The store is the server's: nothing to do."""

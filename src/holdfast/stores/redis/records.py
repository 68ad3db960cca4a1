"""Records as the scripts keep and answer them, in msgpack: what is left out is the default, and false stands for null."""

from msgspec import Raw, Struct

from holdfast.records import Ending, Entry, Lease, Message, ReturnTo, State, with_letter


class Letter(Struct, frozen=True, gc=False):
    """Where a dead letter comes from and why; it becomes part of the metadata when somebody reads it."""

    queue: str
    attempts: int
    failures: int
    at: int
    error: str | None = None
    key: str | None = None

    def report(self) -> dict[str, object]:
        told: dict[str, object] = {"queue": self.queue, "attempts": self.attempts, "failures": self.failures, "error": self.error}
        told["at"] = self.at / 1_000_000
        return told if self.key is None else {**told, "key": self.key}


class KeptClaim(Struct, frozen=True, gc=False):
    """What a first claim added to a message."""

    token: int
    until: int
    holder: str
    since: int
    state: State
    attempts: int
    expired_to: ReturnTo = "place"


class KeptMessage(Struct, frozen=True, gc=False):
    """A message, perhaps without its id, and perhaps with its value."""

    n: int
    position: int
    created_at: int
    id: str = ""
    key: str | None = None
    priority: int = 0
    state: State = "ready"
    attempts: int = 0
    failures: int = 0
    max_attempts: int | None = None
    dead_letter: str | None = None
    start_by: int | None = None
    holder: str = ""
    token: int = 0
    since: int = 0
    until: int = 0
    expired_to: ReturnTo = "place"
    dead_at: int | None = None
    last_error: str | None = None
    endings: int = 0
    history: tuple[Ending, ...] = ()
    metadata: str | None = None
    letter: Letter | None = None
    value: str = ""

    def message(self, queue: str, message_id: str, value: str, claim: "KeptClaim | KeptMessage") -> Message:
        metadata = None if self.metadata is None else Raw(self.metadata)
        return Message(
            queue,
            message_id,
            Raw(value),
            self.n,
            self.key,
            self.priority,
            self.position,
            claim.state,
            claim.attempts,
            self.failures,
            self.max_attempts,
            self.dead_letter,
            self.start_by,
            self.created_at,
            claim.holder,
            claim.token,
            claim.since,
            claim.until,
            claim.expired_to,
            self.dead_at,
            self.last_error,
            self.endings,
            self.history,
            metadata if self.letter is None else with_letter(metadata, self.letter.report(), message_id),
        )


class KeptEntry(Struct, frozen=True, gc=False):
    """An entry of a dict."""

    key: str
    value: str
    revision: int
    fence: int = 0
    expires_at: int | None = None

    def entry(self, name: str) -> Entry:
        return Entry(name, self.key, Raw(self.value), self.revision, self.fence, self.expires_at)


class KeptLease(Struct, frozen=True, gc=False):
    """A lease, perhaps without what it is on."""

    holder: str
    lease_id: str
    token: int
    since: int
    until: int
    key: str = ""
    dict: str | None = None

    def lease(self) -> Lease:
        return self.on(self.dict, self.key)

    def on(self, name: str | None, key: str) -> Lease:
        """The lease on a key of a dict, or with no dict on a name of its own."""
        return Lease(name, key, self.holder, self.lease_id, self.token, self.since, self.until)

"""How the commands that move everything to another store go to Redis and come back."""

from typing import Final

from msgspec import Struct, msgpack
from msgspec.structs import asdict

from holdfast.commands import BeginImport, Copying, EndImport, Fenced, Fences, Import, Seal, Survey, Surveyed
from holdfast.commands.copying import SHOWN
from holdfast.records import Ending, Entry, Message, Settings
from holdfast.stores.redis.plans import Fields, Plan, Plans, given, text
from holdfast.stores.redis.records import KeptLease, KeptMessage


class _Surveyed(Struct, frozen=True):
    now: int
    latest: int
    next_n: int
    held: list[KeptLease] = []


DEFAULTS = asdict(KeptMessage(0, 0, 0))
"""What a message that is kept leaves out."""


def _message(message: Message) -> Fields:
    fields = {name: fact for name, fact in asdict(message).items() if name in DEFAULTS and fact != DEFAULTS[name]}
    fields |= {"queue": message.queue, "id": message.id, "value": text(message.value)}
    fields |= {"n": message.n, "position": message.position, "created_at": message.created_at}
    if message.metadata is not None:
        fields["metadata"] = text(message.metadata)
    if message.history:
        fields["history"] = [_ending(ending) for ending in message.history]
    return fields


def _ending(ending: Ending) -> list[str | int]:
    kept: list[str | int] = [ending.holder, ending.token, ending.since, ending.until, ending.how]
    return kept if ending.error is None else [*kept, ending.error]


def _entry(entry: Entry) -> Fields:
    return given(
        dict=entry.dict,
        key=entry.key,
        value=text(entry.value),
        revision=entry.revision,
        fence=entry.fence or None,
        expires_at=entry.expires_at,
    )


def _settings(settings: Settings) -> Fields:
    return given(kind=settings.kind, name=settings.name, paused=settings.paused, maxsize=settings.maxsize, created_at=settings.created_at)


def _import(command: Import) -> Fields:
    return {
        "source": command.source,
        "after": command.after,
        "place": command.place,
        "checksum": command.checksum,
        "settings": [_settings(one) for one in command.settings],
        "messages": [_message(one) for one in command.messages],
        "fences": [(one.dict, one.key, one.fence) for one in command.fences],
        "entries": [_entry(one) for one in command.entries],
    }


def _begin(command: BeginImport) -> Fields:
    survey = command.survey
    return {
        "source": command.source,
        "now": survey.now,
        "latest": survey.latest,
        "next_n": survey.next_n,
        "merge": command.merge,
    }


_decode_surveyed = msgpack.Decoder(_Surveyed).decode
_decode_fences = msgpack.Decoder(list[Fenced]).decode
_decode_copying = msgpack.Decoder(Copying).decode
_decode_ended = msgpack.Decoder(Copying | bool).decode


def _surveyed(_: Survey, reply: bytes) -> Surveyed:
    found = _decode_surveyed(reply)
    return Surveyed(found.now, found.latest, found.next_n, [one.lease() for one in found.held])


def _seal(command: Seal) -> dict[str, object]:
    at = {"to": command.to, "at": command.at}
    return at if command.target_at is None else {**at, "target_at": command.target_at}


def _ended(_: EndImport, reply: bytes) -> Copying | None:
    found = _decode_ended(reply)
    return None if isinstance(found, bool) else found


PLANS: Final[Plans] = {
    Survey: Plan(lambda _: {"limit": SHOWN}, _surveyed),
    Fences: Plan(lambda command: {"after": command.after, "limit": command.limit}, lambda _, reply: _decode_fences(reply)),
    BeginImport: Plan(_begin, lambda _, reply: _decode_copying(reply)),
    Import: Plan(_import, lambda _, reply: _decode_copying(reply)),
    EndImport: Plan(lambda _: {}, _ended),
    Seal: Plan(_seal, lambda *_: None),
}

"""Encodes copy commands for Redis, and decodes their results."""

from typing import Final

from msgspec import Struct, msgpack

from holdfast.commands import BeginImport, Copying, EndImport, Fenced, Fences, Import, Seal, Survey, Surveyed
from holdfast.commands.surveying import SHOWN
from holdfast.records import Entry, Message
from holdfast.records.policies import Settings
from holdfast.stores.redis.plans import Fields, Plan, Plans, given, stated_fields
from holdfast.stores.redis.records import KeptLease, KeptMessage


class _Surveyed(Struct, frozen=True):
    now: int
    latest: int
    next_n: int
    held: list[KeptLease] = []


_settings = stated_fields(Settings, Settings.__struct_fields__)
_message = stated_fields(KeptMessage, Message.__struct_fields__)
_entry = stated_fields(Entry, Entry.__struct_fields__)


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
        "lanes": command.lanes,
    }


def _begin(command: BeginImport) -> Fields:
    survey = command.survey
    return {
        "source": command.source,
        "now": survey.now,
        "latest": survey.latest,
        "next_n": survey.next_n,
        "merge": command.merge,
        "lost": command.lost,
    }


_decode_surveyed = msgpack.Decoder(_Surveyed).decode
_decode_fences = msgpack.Decoder(list[Fenced]).decode
_decode_copying = msgpack.Decoder(Copying).decode
_decode_ended = msgpack.Decoder(Copying | bool).decode


def _surveyed(_: Survey, reply: bytes) -> Surveyed:
    found = _decode_surveyed(reply)
    return Surveyed(found.now, found.latest, found.next_n, [one.lease() for one in found.held])


def _ended(_: EndImport, reply: bytes) -> Copying | None:
    found = _decode_ended(reply)
    return None if isinstance(found, bool) else found


PLANS: Final[Plans] = {
    Survey: Plan(lambda _: {"limit": SHOWN}, _surveyed),
    Fences: Plan(given, lambda _, reply: _decode_fences(reply)),
    BeginImport: Plan(_begin, lambda _, reply: _decode_copying(reply)),
    Import: Plan(_import, lambda _, reply: _decode_copying(reply)),
    EndImport: Plan(lambda _: {}, _ended),
    Seal: Plan(given, lambda *_: None),
}

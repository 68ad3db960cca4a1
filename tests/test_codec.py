"""Values: what comes back equal, what is refused, and the text in between."""

import json
import pickle
from collections import OrderedDict, defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, timezone, tzinfo
from decimal import Decimal, localcontext
from enum import IntEnum, StrEnum
from fractions import Fraction
from math import copysign, inf, nan
from typing import Any, NamedTuple
from uuid import UUID
from zoneinfo import ZoneInfo

import msgspec
import pytest
from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st
from msgspec import Raw

from holdfast.codec import JSON, MSGPACK, PICKLE, REFERENCE, Codec, encode_key
from holdfast.codec.texts import MessageId

BERLIN = ZoneInfo("Europe/Berlin")


class Level(IntEnum):
    LOW = 1


class Colour(StrEnum):
    RED = "red"


class Name(str):
    __slots__ = ()


class Point(NamedTuple):
    x: int
    y: int


@dataclass(frozen=True)
class Job:
    image_id: str


class Task(msgspec.Struct, frozen=True):
    image_id: str


class JsonDumps:
    """A codec that changes values silently, to show that the properties notice."""

    name = "broken"

    def encode(self, value: object) -> Raw:
        return Raw(json.dumps(value))

    def decode(self, raw: Raw | bytes | memoryview) -> Any:
        return json.loads(bytes(raw))


BROKEN: Codec = JsonDumps()
QUICK = settings(max_examples=2000, derandomize=True, database=None, phases=[Phase.generate])

offsets = st.timedeltas(timedelta(hours=-23), timedelta(hours=23))
zones: st.SearchStrategy[tzinfo] = (
    st.builds(timezone, offsets) | st.builds(timezone, offsets, st.sampled_from(["CEST", "X"])) | st.sampled_from([UTC, BERLIN])
)
moments = st.datetimes(timezones=st.none() | zones) | st.times(timezones=st.none() | zones)
hashable_scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(-(2**70), 2**70)
    | st.floats()
    | st.sampled_from([inf, -inf, nan, -0.0])
    | st.text()
    | st.text(st.characters(), max_size=3)
    | st.sampled_from(["$", "$bytes", "$dict", "$tuple", "$pickle", "$unknown"])
    | st.binary()
    | moments
    | moments.map(lambda moment: moment.replace(fold=1))
    | st.dates()
    | st.timedeltas()
    | st.decimals().filter(lambda number: not number.is_snan())  # it has no hash
    | st.uuids()
    | st.sampled_from([Level.LOW, Colour.RED, Name("n"), Fraction(1, 3), 1j, Job("a"), Task("a"), Point(1, 2)])
)
hashables = st.recursive(
    hashable_scalars,
    lambda inner: st.lists(inner, max_size=3).map(tuple) | st.frozensets(inner, max_size=3),
    max_leaves=4,
)
odd_objects = st.sampled_from([bytearray(b"a"), OrderedDict(a=1), defaultdict(int, a=1), range(3), object()])
values: st.SearchStrategy[Any] = st.recursive(
    hashables | odd_objects,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(st.text(max_size=5), inner, max_size=4)
        | st.dictionaries(hashables, inner, max_size=3)
        | st.sets(hashables, max_size=3)
    ),
    max_leaves=6,
)


def same(one: Any, other: Any) -> bool:
    """Equal, of the same types, all the way down."""
    if type(one) is not type(other) or one != other:
        return False
    match one:
        case list() | tuple():
            return all(map(same, one, other))
        case set() | frozenset():
            others = {member: member for member in other}
            return all(same(member, others[member]) for member in one)
        case dict():
            others = {key: key for key in other}
            return all(same(key, others[key]) and same(one[key], other[key]) for key in one)
        case datetime() | time():
            return (one.fold, str(one.tzinfo)) == (other.fold, str(other.tzinfo))
        case float():
            return copysign(1, one) == copysign(1, other)
        case Decimal():
            return str(one) == str(other)
    return True


def encoded(codec: Codec, value: object) -> Raw | None:
    try:
        return codec.encode(value)
    except (TypeError, ValueError):
        return None


def comes_back_or_is_refused(codec: Codec, value: object) -> bool:
    raw = encoded(codec, value)
    return raw is None or same(codec.decode(raw), value)


def is_json(codec: Codec, value: object) -> bool:
    raw = encoded(codec, value)
    if raw is None:
        return True
    try:
        json.loads(bytes(raw).decode(), parse_constant=int)
    except ValueError:
        return False
    return True


def reordered(value: Any) -> Any:
    """The same value with its dicts and sets filled the other way round."""
    if type(value) is dict:
        return {reordered(key): reordered(item) for key, item in reversed(value.items())}
    if type(value) in {set, frozenset, list, tuple}:
        items = [reordered(item) for item in value]
        return type(value)(items if type(value) in {list, tuple} else reversed(items))
    return value


def ignores_order(codec: Codec, value: object) -> bool:
    return encoded(codec, value) == encoded(codec, reordered(value))


@pytest.mark.parametrize("codec", [JSON, MSGPACK], ids=lambda codec: codec.name)
@given(value=values)
@settings(max_examples=300, deadline=None)
def test_a_value_comes_back_equal_and_of_the_same_types_or_is_refused(codec: Codec, value: object) -> None:
    assert comes_back_or_is_refused(codec, value)


@pytest.mark.parametrize("codec", [JSON, MSGPACK], ids=lambda codec: codec.name)
@given(value=values)
@settings(max_examples=100, deadline=None)
def test_the_order_in_which_dicts_and_sets_were_filled_does_not_show(codec: Codec, value: object) -> None:
    assert ignores_order(codec, value)


@pytest.mark.parametrize("codec", [JSON, MSGPACK], ids=lambda codec: codec.name)
@given(value=values)
@settings(max_examples=100, deadline=None)
def test_an_encoded_value_is_json_in_utf_8(codec: Codec, value: object) -> None:
    assert is_json(codec, value)


@pytest.mark.parametrize("holds", [comes_back_or_is_refused, ignores_order, is_json])
def test_each_property_finds_a_codec_that_breaks_it(holds: Callable[[Codec, object], bool]) -> None:
    find(values, lambda value: not holds(BROKEN, value), settings=QUICK)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("é\n", '"é\\n"'),
        ([1, 1.0, True, None], "[1,1.0,true,null]"),
        ({"b": 1, "a": {"d": 2, "c": 3}}, '{"a":{"c":3,"d":2},"b":1}'),
        (2**64 - 1, "18446744073709551615"),
        (2**64, '{"$int":"0x10000000000000000"}'),
        (-(2**63) - 1, '{"$int":"-0x8000000000000001"}'),
        (-inf, '{"$float":"-inf"}'),
        (b"hi", '{"$bytes":"aGk="}'),
        ((1, ("a",)), '{"$tuple":[1,{"$tuple":["a"]}]}'),
        ({16, 8, 0}, '{"$set":[0,16,8]}'),
        (frozenset(), '{"$frozenset":[]}'),
        ({2: "b", (1,): "a"}, '{"$dict":[[2,"b"],[{"$tuple":[1]},"a"]]}'),
        ({"$bytes": "aGk="}, '{"$dict":[["$bytes","aGk="]]}'),
        ({"$ref": 1, "b": 2}, '{"$ref":1,"b":2}'),
        (datetime(2030, 1, 2, 3, 4, 5, 6), '{"$datetime":"2030-01-02T03:04:05.000006"}'),  # noqa: DTZ001
        (datetime(2030, 1, 2, tzinfo=UTC), '{"$datetime":"2030-01-02T00:00:00+00:00"}'),
        (datetime(2030, 10, 27, 2, 30, tzinfo=BERLIN, fold=1), '{"$datetime":["2030-10-27T02:30:00",1,"Europe/Berlin"]}'),
        (time(2, 30, fold=1), '{"$time":["02:30:00",1,null]}'),
        (date(2030, 1, 2), '{"$date":"2030-01-02"}'),
        (timedelta(days=-1, microseconds=5), '{"$timedelta":[-1,0,5]}'),
        (Decimal("1.50E+9"), '{"$decimal":"1.50E+9"}'),
        (UUID(int=1), '{"$uuid":"00000000-0000-0000-0000-000000000001"}'),
    ],
)
def test_the_text_of_a_value_is_fixed_since_stores_keep_it(value: object, text: str) -> None:
    assert bytes(JSON.encode(value)).decode() == text
    assert same(JSON.decode(text.encode()), value)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"items": [1, {"when": Job("a")}]}, "$.items[1].when: Job is not plain data; give the queue or dict a type= that holds Job"),
        (Task("a"), "$: Task is not plain data; give the queue or dict type=Task"),
        ([Level.LOW], "$[0]: Level would come back as int; convert it first"),
        ({"p": Point(1, 2)}, "$.p: Point would come back as tuple; convert it first"),
        (OrderedDict(a=1), "$: OrderedDict would come back as dict; convert it first"),
        ({"odd key": 1j}, "$['odd key']: complex is not plain data; convert it first"),
        ({"a": {(1, 2): {1j}}}, "$.a[tuple]{}: complex is not plain data"),
        ({"a": {3: nan}}, "$.a[3]: NaN does not equal itself"),
        ([Decimal("sNaN")], "$[0]: a NaN Decimal does not equal itself"),
        (["ok", "\ud800"], "$[1]: text with a lone surrogate"),
        ({"\ud800": 1}, "$['\\ud800']: text with a lone surrogate"),
        ([time(1, tzinfo=timezone(timedelta(hours=2), "CEST"))], "$[0]: the name of its fixed offset (CEST) would be lost"),
        (datetime(2030, 1, 1, tzinfo=ZoneInfo.no_cache("Europe/Berlin")), "$: its time zone (ZoneInfo) cannot be found again"),
    ],
)
def test_a_refusal_names_the_place_and_what_to_do(value: object, message: str) -> None:
    with pytest.raises(TypeError) as refused:
        JSON.encode(value)
    assert str(refused.value).startswith("value at " + message)


def nested(levels: int, innermost: object) -> object:
    value = innermost
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize("codec", [JSON, MSGPACK], ids=lambda codec: codec.name)
@pytest.mark.parametrize("innermost", [1, b"tagged"])
def test_a_hundred_levels_come_back_and_one_more_is_refused(codec: Codec, innermost: object) -> None:
    deep = nested(100, innermost)
    assert codec.decode(codec.encode(deep)) == deep
    with pytest.raises(TypeError, match="more than 100 levels deep"):
        codec.encode(nested(101, innermost))


@pytest.mark.parametrize("codec", [JSON, MSGPACK], ids=lambda codec: codec.name)
def test_a_value_that_contains_itself_is_refused(codec: Codec) -> None:
    items: list[object] = []
    items.append(({"again": items}, items))
    with pytest.raises(TypeError, match="contains itself"):
        codec.encode(items)


def test_the_decimal_context_of_the_caller_does_not_show_in_the_text() -> None:
    plain = JSON.encode(Decimal("1E+9"))
    with localcontext() as context:
        context.capitals = 0
        assert JSON.encode(Decimal("1E+9")) == plain


def test_an_integer_of_more_digits_than_python_prints_comes_back() -> None:
    assert JSON.decode(JSON.encode(10**6000)) == 10**6000


@pytest.mark.parametrize("codec", [JSON, MSGPACK, PICKLE], ids=lambda codec: codec.name)
def test_raw_bytes_and_memoryviews_are_all_read(codec: Codec) -> None:
    raw = codec.encode({"a": (1,)})
    assert codec.decode(raw) == codec.decode(bytes(raw)) == codec.decode(memoryview(bytes(raw))) == {"a": (1,)}


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"{",
        b"\xff",
        b'"\xff"',
        b"[" * 5000,
        b'{"$new":1}',
        b'{"$bytes":"?"}',
        b'{"$bytes":1}',
        b'{"$decimal":"x"}',
        b'{"$set":[[]]}',
        b'{"$uuid":{}}',
        b'{"$dict":[1]}',
        b'{"$timedelta":{}}',
        b'{"$datetime":[]}',
        b'{"$datetime":["2030-01-01",0,"No/Where"]}',
    ],
)
def test_text_that_no_codec_wrote_is_a_value_error(text: bytes) -> None:
    with pytest.raises(ValueError, match=r"stored value|utf-8"):
        JSON.decode(text)


def test_a_struct_field_of_raw_carries_the_text_as_it_is() -> None:
    class Item(msgspec.Struct):
        value: Raw

    text = msgspec.json.encode(Item(JSON.encode({"b": (1,), "a": 2})))
    assert text == b'{"value":{"a":2,"b":{"$tuple":[1]}}}'
    assert JSON.decode(msgspec.json.decode(text, type=Item).value) == {"b": (1,), "a": 2}


@pytest.mark.parametrize("codec", [MSGPACK, PICKLE], ids=lambda codec: codec.name)
@pytest.mark.parametrize("value", [{"$msgpack": "YQ=="}, {"$msgpack": "", "b": 1}, {"$pickle": "", "b": 1}, (1, b"a"), None])
def test_msgpack_and_pickle_read_what_json_wrote_and_their_own(codec: Codec, value: object) -> None:
    assert codec.decode(JSON.encode(value)) == codec.decode(codec.encode(value)) == value


def test_msgpack_keeps_bytes_without_encoding_them_twice() -> None:
    assert len(MSGPACK.encode(bytes(3000))) < 4100


@pytest.mark.parametrize("text", [b'{"$msgpack":"wQ=="}', b'{"$msgpack":"!"}', b'{"$msgpack":"a"}', b'{"$msgpack":""}'])
def test_malformed_msgpack_is_a_value_error(text: bytes) -> None:
    with pytest.raises(ValueError, match=r".+"):
        MSGPACK.decode(text)


class Explosive:
    def __reduce__(self) -> tuple[object, ...]:
        return (pytest.fail, ("a pickle was loaded",))


@pytest.mark.parametrize("codec", [JSON, MSGPACK], ids=lambda codec: codec.name)
def test_only_the_pickle_codec_loads_pickles(codec: Codec) -> None:
    raw = PICKLE.encode([Explosive()])
    with pytest.raises(ValueError, match="written with codec PICKLE"):
        codec.decode(raw)


def test_pickle_takes_objects_and_refuses_what_it_cannot_pickle() -> None:
    assert PICKLE.decode(PICKLE.encode({"job": Job("a")})) == {"job": Job("a")}
    with pytest.raises(TypeError, match=r"value at \$: pickle refuses it"):
        PICKLE.encode(lambda: None)
    assert pickle.HIGHEST_PROTOCOL >= 5


@pytest.mark.parametrize("microseconds", [1, -1, 999_999])
def test_an_offset_of_less_than_a_second_is_refused(microseconds: int) -> None:
    with pytest.raises(TypeError, match="less than a second"):
        JSON.encode(time(tzinfo=timezone(timedelta(microseconds=microseconds))))


def test_reference_hands_back_the_very_object() -> None:
    value = object()
    assert REFERENCE.decode(REFERENCE.encode(value)) is value


@pytest.mark.parametrize("codec", [JSON, MSGPACK])
def test_the_id_of_a_message_is_written_as_its_text(codec: Codec) -> None:
    put_id = MessageId("a")
    assert codec.encode({put_id: [put_id, {put_id}]}) == codec.encode({"a": ["a", {"a"}]})
    assert encode_key((put_id,)) == encode_key(("a",))

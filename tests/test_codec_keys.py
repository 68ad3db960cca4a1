"""Keys: one text for each key, told apart by type, and prefixes that mean what they say."""

import json
from collections.abc import Callable, Hashable
from datetime import UTC, date, datetime
from enum import IntEnum
from math import inf, nan
from typing import Any
from uuid import UUID

import pytest
from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st

from holdfast.codec import KEY_BYTES, decode_key, decode_key_prefix, encode_key, key_prefix


class Level(IntEnum):
    LOW = 1


texts = st.text(max_size=8) | st.text(st.sampled_from('a"\\\n\x1f'), max_size=3)
scalars = (
    st.none()
    | st.booleans()
    | st.integers(-2, 2)
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False)
    | st.sampled_from([0.0, 1.0, 2.0, inf, -inf])
    | texts
    | st.sampled_from(["1", "1.0", "true", "null", "[]", "a,1"])
    | st.binary(max_size=8)
    | st.uuids()
    | st.dates()
    | st.datetimes(timezones=st.just(UTC) | st.none())
)
keys: st.SearchStrategy[Hashable] = st.recursive(scalars, lambda inner: st.lists(inner, max_size=3).map(tuple), max_leaves=4)
lookalikes: st.SearchStrategy[Hashable] = (
    st.sampled_from([0, 0.0, False, "0", "0.0", "False", None, "None", 1, 1.0, True, "1", "1.0", "True"])
    | st.sampled_from([(), "()", "[]", (1,), (1.0,), (True,), ("1",), ((1,),), "(1,)", b"1", "b'1'"])
    | st.sampled_from([UUID(int=1), str(UUID(int=1)), date(2030, 1, 2), "2030-01-02", datetime(2030, 1, 2, tzinfo=UTC)])
)
pairs = st.tuples(lookalikes, lookalikes) | st.tuples(keys, keys)
tuples = st.lists(scalars, max_size=3).map(tuple)


def same(one: Any, other: Any) -> bool:
    if type(one) is not type(other) or one != other:
        return False
    return not isinstance(one, tuple) or all(map(same, one, other))


def json_text(key: Hashable) -> str:
    """A way to write keys that loses types, to show that the properties notice."""
    return json.dumps(key, default=str)


def comes_back(encode: Callable[[Hashable], str], decode: Callable[[str], Hashable], key: Hashable) -> bool:
    return same(decode(encode(key)), key)


def tells_apart(encode: Callable[[Hashable], str], one: Hashable, other: Hashable) -> bool:
    return (encode(one) == encode(other)) == same(one, other)


def finds_what_begins_with(opening: Callable[[str], str], prefix: str, key: str) -> bool:
    return encode_key(key).startswith(opening(prefix)) == key.startswith(prefix)


@given(keys)
@settings(deadline=None)
def test_a_key_comes_back_equal_and_of_the_same_types(key: Hashable) -> None:
    assert comes_back(encode_key, decode_key, key)


@given(pairs)
@settings(deadline=None, max_examples=300)
def test_keys_have_one_text_if_and_only_if_they_are_the_same(pair: tuple[Hashable, Hashable]) -> None:
    assert tells_apart(encode_key, *pair)


@given(texts, texts)
@settings(deadline=None)
def test_a_str_prefix_matches_the_keys_that_begin_with_it(prefix: str, key: str) -> None:
    assert encode_key(prefix + key).startswith(key_prefix(prefix))
    assert finds_what_begins_with(key_prefix, prefix, key)


@given(tuples, tuples)
@settings(deadline=None)
def test_a_tuple_prefix_matches_the_longer_tuples(prefix: tuple[Hashable, ...], key: tuple[Hashable, ...]) -> None:
    assert encode_key((*prefix, "more", *key)).startswith(key_prefix(prefix))
    assert encode_key(key).startswith(key_prefix(prefix)) == ((len(key) > len(prefix) and same(key[: len(prefix)], prefix)) or prefix == ())


@given(texts, keys.filter(lambda key: not isinstance(key, str)))
@settings(deadline=None)
def test_a_str_prefix_matches_no_key_of_another_type(prefix: str, key: Hashable) -> None:
    assert not encode_key(key).startswith(key_prefix(prefix))


def test_the_properties_find_an_encoding_that_confuses_keys() -> None:
    quick = settings(max_examples=2000, derandomize=True, database=None, phases=[Phase.generate])
    find(keys, lambda key: not comes_back(json_text, json.loads, key), settings=quick)
    find(pairs, lambda pair: not tells_apart(str, *pair), settings=quick)
    find(st.tuples(texts, texts), lambda pair: not finds_what_begins_with(lambda text: encode_key(text).rstrip('"'), *pair), settings=quick)


@pytest.mark.parametrize(
    ("key", "text"),
    [
        (1, "1"),
        (1.0, "1.0"),
        (True, "true"),
        ("1", '"1"'),
        (None, "null"),
        (2**64, '{"$int":"0x10000000000000000"}'),
        (inf, '{"$float":"inf"}'),
        ("é\n", '"é\\n"'),
        (("a", 1, (None,)), '["a",1,[null]]'),
        ((), "[]"),
        (b"hi", '{"$bytes":"aGk="}'),
        (UUID(int=1), '{"$uuid":"00000000-0000-0000-0000-000000000001"}'),
        (date(2030, 1, 2), '{"$date":"2030-01-02"}'),
        (datetime(2030, 1, 2, tzinfo=UTC), '{"$datetime":"2030-01-02T00:00:00+00:00"}'),
    ],
)
def test_the_text_of_a_key_is_fixed_since_stores_keep_it(key: Hashable, text: str) -> None:
    assert encode_key(key) == text
    assert same(decode_key(text), key)


@pytest.mark.parametrize(("prefix", "text"), [("user:", '"user:'), ("", '"'), ('"', '"\\"'), (("a", 1), '["a",1,'), ((), "[")])
def test_the_text_of_a_prefix_is_left_open(prefix: str | tuple[Hashable, ...], text: str) -> None:
    assert key_prefix(prefix) == text
    assert decode_key_prefix(text) == prefix


@pytest.mark.parametrize("text", ["", "a", "1", '"a"', '["a"', "[1,[2", '{"$bytes":"', "[]", "\\"])
def test_text_that_no_prefix_has_stays_text(text: str) -> None:
    assert decode_key_prefix(text) == text


def test_minus_zero_is_the_key_zero() -> None:
    assert encode_key(-0.0) == encode_key(0.0) == "0.0"
    assert encode_key((-0.0,)) == "[0.0]"


@pytest.mark.parametrize("key", [[1], {"a": 1}, {1}, frozenset(), object(), Level.LOW, 1j, bytearray(), (1, [2]), nan, (nan,)])
def test_what_cannot_be_a_key_is_a_type_error(key: Any) -> None:
    with pytest.raises(TypeError, match="key"):
        encode_key(key)


def test_only_a_str_or_a_tuple_is_a_prefix() -> None:
    with pytest.raises(TypeError, match="a key prefix must be a str or a tuple, not int"):
        key_prefix(1)  # type: ignore[arg-type]


def test_a_lone_surrogate_in_a_key_is_a_value_error() -> None:
    with pytest.raises(ValueError, match="lone surrogate"):
        encode_key(("a", "\ud800"))


def test_a_key_may_have_400_bytes_and_the_refusal_names_size_and_limit() -> None:
    assert KEY_BYTES == 400
    assert len(encode_key("a" * 398)) == 400
    with pytest.raises(ValueError, match=r"is 402 bytes encoded, more than the limit of 400"):
        encode_key("é" * 200)
    with pytest.raises(ValueError, match=r"is 6 bytes encoded, more than the limit of 5"):
        encode_key("abcd", limit_bytes=5)


def test_a_key_is_at_most_eight_tuples_deep() -> None:
    key: Hashable = 1
    for _ in range(8):
        key = (key,)
    assert decode_key(encode_key(key)) == key
    with pytest.raises(ValueError, match="at most 8 tuples deep"):
        encode_key((key,))


@pytest.mark.parametrize("text", ["", "{", "{}", '{"a":1}', '{"$tuple":[1]}', '{"$pickle":""}', '{"$bytes":1}', "[" * 5000])
def test_text_that_is_no_key_is_a_value_error(text: str) -> None:
    with pytest.raises(ValueError, match="stored"):
        decode_key(text)

"""Typed values: Structs, dataclasses, pydantic models, TypedDicts and generics come back as declared."""

from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from decimal import Decimal
from math import nan
from typing import Any, TypedDict
from uuid import UUID

import msgspec
import pydantic
import pytest
from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st
from msgspec import Raw

from holdfast.codec import Codec, typed


class Job(msgspec.Struct):
    image_id: str
    size: float = 1.0
    tags: frozenset[str] = frozenset()
    sizes: tuple[int, ...] = ()
    by_page: dict[int, bytes] = {}
    due: datetime | None = None
    price: Decimal | None = None
    extra: Any = None


@dataclass
class Step:
    name: str
    on: date
    id: UUID
    jobs: list[Job] = field(default_factory=list)
    extra: Any = None


class Person(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(strict=True)

    name: str = pydantic.Field(alias="fullName")
    born: date
    extra: Any = None


class Page(TypedDict):
    number: int
    text: str


class Unchecked:
    """A codec that writes whatever msgspec writes, to show that the property notices."""

    name = "unchecked"

    def encode(self, value: object) -> Raw:
        return Raw(msgspec.json.encode(value))

    def decode(self, raw: Raw | bytes | memoryview) -> Any:
        return msgspec.json.decode(raw, type=Job)


extras = st.none() | st.integers() | st.text() | st.binary() | st.floats() | st.tuples(st.integers()) | st.just(Job("inner"))
jobs = st.builds(
    Job,
    st.text(),
    size=st.floats() | st.integers(-5, 5),
    tags=st.frozensets(st.text(max_size=3), max_size=3),
    sizes=st.lists(st.integers(), max_size=3).map(tuple),
    by_page=st.dictionaries(st.integers(-5, 5), st.binary(max_size=3), max_size=3),
    due=st.none() | st.datetimes(timezones=st.none() | st.just(UTC)),
    price=st.none() | st.decimals(),
    extra=extras,
)
steps = st.builds(Step, st.text(), st.dates(), st.uuids(), st.lists(jobs, max_size=2), extras)


def comes_back_or_is_refused(codec: Codec, value: object) -> bool:
    try:
        raw = codec.encode(value)
    except TypeError:
        return True
    try:
        back = codec.decode(raw)
        return type(back) is type(value) and bool(back == value)
    except (ArithmeticError, ValueError, msgspec.MsgspecError):
        return False


@given(jobs)
@settings(deadline=None)
def test_a_struct_comes_back_equal_or_is_refused(job: Job) -> None:
    assert comes_back_or_is_refused(typed(Job), job)


@given(steps)
@settings(deadline=None)
def test_a_dataclass_comes_back_equal_or_is_refused(step: Step) -> None:
    assert comes_back_or_is_refused(typed(Step), step)


def test_the_property_finds_a_codec_that_does_not_check() -> None:
    quick = settings(max_examples=2000, derandomize=True, database=None, phases=[Phase.generate])
    find(jobs, lambda job: not comes_back_or_is_refused(Unchecked(), job), settings=quick)


def test_fields_are_written_in_order_of_their_names_and_sets_sorted() -> None:
    job = Job("a", tags=frozenset("cab"), by_page={2: b"", 1: b""})
    text = b'{"by_page":{"1":"","2":""},"due":null,"extra":null,"image_id":"a","price":null,"size":1.0,"sizes":[],"tags":["a","b","c"]}'
    assert bytes(typed(Job).encode(job)) == text


def test_a_pydantic_model_comes_back_though_strict_and_with_aliases() -> None:
    codec = typed(Person)
    ada = Person(fullName="Ada", born=date(1815, 12, 10))
    assert bytes(codec.encode(ada)) == b'{"born":"1815-12-10","extra":null,"fullName":"Ada"}'
    assert codec.decode(codec.encode(ada)) == ada
    people = typed(list[Person])
    assert people.decode(people.encode([ada])) == [ada]


@pytest.mark.parametrize(
    ("type_", "value"),
    [
        (Page, {"number": 1, "text": "a"}),
        (list[int], [1, 2]),
        (dict[str, set[int]], {"a": {8, 0}}),
        (Job | None, None),
        (tuple[int, str], (1, "a")),
    ],
)
def test_typed_dicts_generics_and_unions_come_back(type_: Any, value: object) -> None:
    codec = typed(type_)
    assert codec.decode(memoryview(bytes(codec.encode(value)))) == value


@pytest.mark.parametrize(
    ("type_", "value", "message"),
    [
        (Job, {"image_id": "a"}, r"value at \$: dict is not Job"),
        (Job, Job(1), r"it does not fit Job: Expected `str`, got `int` - at `\$.image_id`"),  # type: ignore[arg-type]
        (Job, Job("a", size=nan), r"does not fit Job: .* at `\$.size`"),
        (Job, Job("a", price=Decimal("sNaN")), "does not fit Job"),
        (Job, Job("a", extra=(1, 2)), "would not come back from Job as an equal value"),
        (Job, Job("a", extra=object()), "object is neither plain data nor a declared type"),
        (Job, Job("\ud800"), "does not fit Job: .*surrogates not allowed"),
        (Person, Person(fullName="A", born=date.min, extra=(1, 2)), "would not come back from Person"),
        (list[int], [1, "2"], r"does not fit list.*at `\$\[1\]`"),
        (list[int], (1, 2), "would not come back"),
        (Page, {"number": 1}, "missing required field `text`"),
    ],
)
def test_what_would_change_is_refused_with_the_reason(type_: Any, value: object, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        typed(type_).encode(value)


def test_a_subclass_is_refused_since_it_would_come_back_as_its_base() -> None:
    class Bigger(Job):
        more: int = 1

    with pytest.raises(TypeError, match="would not come back"):
        typed(Job).encode(Bigger("a"))


def test_a_record_that_contains_itself_is_refused() -> None:
    job = Job("a")
    job.extra = [job]
    with pytest.raises(TypeError, match="does not fit Job"):
        typed(Job).encode(job)


@pytest.mark.parametrize("text", [b"", b"1", b'{"image_id":1}', b'{"$tuple":[]}', b"[" * 5000])
def test_a_stored_value_of_another_shape_is_a_value_error(text: bytes) -> None:
    with pytest.raises(ValueError, match="stored value does not fit Job"):
        typed(Job).decode(text)


def test_a_codec_is_named_after_its_type() -> None:
    assert typed(Job).name == "Job"

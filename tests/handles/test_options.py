"""Options that a TypedDict lists: a call takes them all and nothing else, and its signature shows each of them."""

import inspect
from collections.abc import Callable
from typing import Any, TypedDict, Unpack

import pytest

from holdfast import Dict, Election, Lock, Once, PutOptions, Queue, Together, Worker
from holdfast.arguments.options import show_options
from holdfast.arguments.put_options import OPTIONS, TRANSLATED, make_item
from holdfast.codec import JSON
from holdfast.commands import Browse, Item
from holdfast.workers.handlers.jobs import JobContext
from tests.handles.test_arguments import CALLS, Handles

OWNERS: dict[str, Any] = {owner.__name__: owner for owner in (Queue, Dict, Lock, Election, Once, Worker, Together)}


def shown(call: str) -> dict[str, inspect.Parameter]:
    owner, _, method = call.partition(".")
    function = getattr(OWNERS[owner], method) if method else OWNERS[owner]
    return dict(inspect.signature(function).parameters)


KNOWN = {name for call in CALLS if not call.startswith("Job") for name in shown(call)} - {"self", "value", "values"}


REQUIRED: dict[str, dict[str, Any]] = {"Queue.prune_dead_letters": {"older_than_s": 1.0}, "Dict.renew_lease": {"lease_s": 1.0}}
"""What a call must be given besides what the table gives it."""


def taken(handles: Handles, call: str, name: str) -> bool:
    """Whether a call takes an argument that its signature does not show."""
    try:
        CALLS[call][1](handles, {name: None, **REQUIRED.get(call, {})})
    except TypeError as error:
        return f"'{name}'" not in str(error)
    return True


class TestSignatures:
    @pytest.mark.parametrize("call", [call for call in CALLS if not call.startswith("Job")])
    def test_a_call_refuses_what_its_signature_does_not_show(self, call: str) -> None:
        handles = Handles()
        others = KNOWN - set(shown(call))
        assert sorted(name for name in {*others, "colour"} if taken(handles, call, name)) == []
        assert handles.client.store.execute(Browse("jobs")).messages == []

    def test_control_a_call_that_takes_more_than_it_shows_would_be_found(self, monkeypatch: pytest.MonkeyPatch) -> None:
        original = Queue.length
        monkeypatch.setattr(Queue, "length", lambda self, colour=None, **where: original(self, **where))
        monkeypatch.setitem(CALLS, "Queue.length", (original, lambda h, o: h.queue.length(**o)))
        assert taken(Handles(), "Queue.length", "colour")
        assert not taken(Handles(), "Queue.length", "color")

    @pytest.mark.parametrize("put", [Queue.put, Queue.aio.put, Worker.put, Together.put, JobContext.put])
    def test_every_put_shows_every_option_with_its_default(self, put: Any) -> None:
        parameters = inspect.signature(put).parameters
        assert set(parameters) >= set(PutOptions.__annotations__)
        assert (parameters["key"].default, parameters["delay_s"].default, parameters["priority"].default) == (None, 0.0, 0)
        assert not [one for one in parameters.values() if one.kind is one.VAR_KEYWORD]

    def test_a_default_that_is_unknown_is_left_open(self) -> None:
        class Options(TypedDict, total=False):
            size: int

        @show_options
        def function(**options: Unpack[Options]) -> None: ...

        assert str(inspect.signature(function)) == "(*, size: int = Ellipsis) -> None"


class TestPutting:
    def test_every_field_of_an_item_is_an_option_and_every_option_a_field(self) -> None:
        renamed = {"dead_letter_queue": "dead_letter"}
        short = {"if_present"}
        fields = {renamed.get(option, option) for option in OPTIONS - short}
        assert fields == set(Item.__struct_fields__) - {"value"}

    def test_what_is_translated_is_an_option(self) -> None:
        assert TRANSLATED < OPTIONS

    def test_an_option_that_only_travels_needs_no_code_of_its_own(self) -> None:
        travelling = dict.fromkeys(OPTIONS - TRANSLATED, 7) | {
            "labels": ("red",),
            "if_id": "reject",
            "if_recent": "reject",
            "group": "acme",
        }
        item = make_item("a", JSON, {**travelling, "key": "k", "if_ready": "postpone"})
        assert {name: getattr(item, name) for name in travelling} == travelling

    def test_a_mistyped_option_is_named_with_the_one_that_was_meant(self) -> None:
        handles = Handles()
        with pytest.raises(TypeError, match=r"^put has no option 'prioirty': did you mean 'priority'\? supported: at, at_latest_s, dead"):
            handles.queue.put("a", prioirty=1)  # type: ignore[call-arg]
        with pytest.raises(TypeError, match="put_many has no option 'id'"):
            handles.queue.put_many(["a", "b"], id="x")  # type: ignore[call-arg]
        assert handles.client.store.execute(Browse("jobs")).messages == []

    @pytest.mark.parametrize(
        ("make", "why"),
        [
            (lambda: Lock("report", leas_s=1.0), "^Lock has no option 'leas_s': did you mean 'lease_s'?"),  # type: ignore[call-arg]
            (lambda: Dict("state", ttl=1.0), "^Dict has no option 'ttl': supported: base_url, client, codec, name$"),  # type: ignore[call-arg]
            (lambda: Queue.create("jobs", max_size=1), "^create has no option 'max_size': did you mean 'maxsize'?"),  # type: ignore[call-overload]
        ],
    )
    def test_a_mistyped_option_of_a_handle_is_named_with_those_there_are(self, make: Callable[[], object], why: str) -> None:
        with pytest.raises(TypeError, match=why):
            make()

    def test_a_field_of_an_item_under_another_name_is_no_option(self) -> None:
        with pytest.raises(TypeError, match="no option 'dead_letter': did you mean 'dead_letter_queue'"):
            Handles().queue.put("a", dead_letter="other")  # type: ignore[call-arg]

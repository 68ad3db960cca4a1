"""How a command becomes a call: which function, with what, and which queues and dicts it locks."""

from typing import Any

import pytest
from msgspec import Raw, json

from holdfast.commands import (
    Acquire,
    Change,
    Claim,
    Clear,
    Command,
    Configure,
    Item,
    LowerFences,
    Move,
    Prune,
    Put,
    Settle,
    Together,
    Write,
)
from holdfast.records import Receipt
from holdfast.stores.postgres.calls import Calls, objects_of

VALUE = Raw(b"1")
RECEIPT = Receipt("jobs", "a", 1)


@pytest.mark.parametrize(
    ("command", "objects"),
    [
        (Put("jobs", [Item("a", VALUE, key="k")]), [("queue", "jobs", False)]),
        (Move("jobs", "ready", to_queue="again"), [("queue", "again", False), ("queue", "jobs", False)]),
        (Settle([RECEIPT, Receipt("other", "b", 1)]), [("queue", "jobs", False), ("queue", "other", False)]),
        (Acquire(None, "lock", "me", "id", 30.0), []),
        (Acquire("leases", "lock", "me", "id", 30.0), [("dict", "leases", False)]),
        (Configure("queue", "jobs", paused=True), [("queue", "jobs", False)]),
        (Configure("queue", "jobs", maxsize=None), [("queue", "jobs", False)]),
        (Configure("queue", "jobs", maxsize=5), [("queue", "jobs", True)]),
        (Clear("dict", "config"), [("dict", "config", True)]),
        (LowerFences("config"), [("dict", "config", True)]),
        (Prune(), []),
        (
            Together([Put("jobs", [Item("a", VALUE)]), Write("config", [Change("k", value=VALUE)]), Settle([Receipt("jobs", "b", 1)])]),
            [("dict", "config", False), ("queue", "jobs", False)],
        ),
    ],
    ids=lambda part: type(part).__name__,
)
def test_the_objects_of_a_command_are_sorted_and_those_that_it_empties_or_counts_it_needs_alone(
    command: Command[Any], objects: list[tuple[str, str, bool]]
) -> None:
    assert objects_of(command) == objects
    call = Calls("s").call(command, "", again=True)
    if b".execute_" in call.statement:
        assert json.decode(call.parameters[-1], type=list[tuple[str, str, bool]]) == objects


@pytest.mark.parametrize(
    ("command", "function"),
    [
        (Put("jobs", [Item("a", VALUE)]), "fast_put"),
        (Put("jobs", [Item("a", VALUE, max_attempts=3, delay_s=1.0, metadata=Raw(b"{}"))]), "fast_put"),
        (Put("jobs", [Item("a", VALUE, key="k")]), "fast_put"),
        (Put("jobs", [Item("a", VALUE, key="k"), Item("b", VALUE)]), "execute"),
        (Put("jobs", [Item("a", VALUE, key="k", unique_for_s=1.0)]), "execute"),
        (Claim("jobs", "me", 30.0, take=True), "fast_claim"),
        (Claim("jobs", "me", 30.0, key="k"), "execute"),
        (Settle([RECEIPT]), "fast_settle"),
        (Settle([RECEIPT], "ready", "front", counts=True, max_attempts=3), "fast_return"),
        (Settle([RECEIPT], "dead"), "execute"),
        (Settle([RECEIPT], all_or_none=True), "execute"),
    ],
    ids=lambda part: part if isinstance(part, str) else type(part).__name__,
)
def test_plain_commands_have_functions_of_their_own(command: Command[Any], function: str) -> None:
    statement = Calls("s").call(command, "", again=False).statement.decode()
    assert statement.startswith(f'select "s".{function}_')


def test_a_put_without_options_sends_none_and_another_all_of_them() -> None:
    assert Calls("s").call(Put("jobs", [Item("a", VALUE, if_ready="keep")]), "", again=False).parameters[-1] is None
    items = [Item("a", VALUE), Item("b", VALUE, at=5, dead_letter="dead", metadata=Raw(b'{"a":1}'))]
    sent = Calls("s").call(Put("jobs", items), "", again=False).parameters[-1]
    assert json.decode(sent) == [{}, {"at": 5, "dead_letter": "dead", "metadata": '{"a":1}'}]

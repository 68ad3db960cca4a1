"""Each field of a message can be seen by those who hold it and those who look, or is named here as one that only its record has."""

from typing import Any

import pytest

from holdfast import JobContext, QueueClaim, QueueMessage, QueueWorkItem
from holdfast.records import Message
from holdfast.views.messages import MessageView

NAMES = {"dead_letter": "dead_letter_queue", "position": "due_at", "holder": "claimer", "until": "expires_at", "ended_at": "done_at"}
"""Fields that are shown under another name."""

IN_LINE = {"n", "priority", "position", "state", "dead_letter", "start_by", "since", "expired_to", "dead_at", "endings", "history"}
"""About a message in line, or its past: who holds it finds them in `record`, or in `message` of a job."""

OF_GROUPS = {"lane", "level", "rank", "tied"}
"""How the store keeps its place in a group, and what the end of its claim has to do."""

IN_LINE |= OF_GROUPS | {"ended_at", "trace"}

HIDDEN: list[tuple[type[Any], set[str]]] = [
    (QueueClaim, IN_LINE),
    (QueueWorkItem, IN_LINE),
    # A job has no store to ask what its moments are on the wall clock.
    (JobContext, IN_LINE | {"created_at", "until"}),
    (QueueMessage, {"queue", "n", "start_by", "since", "expired_to", "endings", "token"} | OF_GROUPS),
]


@pytest.mark.parametrize(("shown", "hidden"), HIDDEN, ids=lambda value: getattr(value, "__name__", ""))
def test_every_field_of_a_message_is_shown_or_named_as_hidden(shown: type[Any], hidden: set[str]) -> None:
    assert {field for field in Message.__struct_fields__ if not hasattr(shown, NAMES.get(field, field))} == hidden


@pytest.mark.parametrize("shown", [QueueClaim, QueueClaim.aio, QueueWorkItem, QueueWorkItem.aio, JobContext])
def test_the_fields_are_written_in_one_place(shown: type[Any]) -> None:
    again = {name for name in vars(MessageView) if isinstance(vars(MessageView)[name], property) and name in vars(shown)}
    assert again == ({"max_attempts"} if "WorkItem" in shown.__name__ else set())

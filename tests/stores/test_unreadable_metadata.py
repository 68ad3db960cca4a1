"""Metadata of before it was checked: it is set aside, the log says so, and the messages behind it are delivered."""

import logging
from pathlib import Path

import pytest
from msgspec import Raw
from msgspec.structs import replace

from holdfast.codec.metadata import read_metadata
from holdfast.commands import BeginImport, Browse, EndImport, Import, Survey
from holdfast.records import Message
from holdfast.records.policies import Settings
from holdfast.testing.clock import FakeClock
from holdfast.testing.conformance.asking import claim, claim_one, ids, put
from tests.stores_by_name import factory_of


@pytest.mark.parametrize("kind", ["memory", "sqlite", "lmdb", "postgres", "redis"])
def test_metadata_that_cannot_be_read_is_reported_and_the_rest_goes_on(kind: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    clock = FakeClock()
    store = factory_of(kind, tmp_path).make(clock)
    poison = Message("jobs", "bad", Raw(b"1"), n=1, position=1, created_at=1, max_attempts=1, dead_letter="grave", metadata=Raw(b"[1]"))
    store.execute(BeginImport("there@5", replace(store.execute(Survey()), latest=5)))
    store.execute(Import("there@5", "", "one", "", settings=[Settings("queue", "jobs", created_at=1)], messages=[poison]))
    store.execute(EndImport())
    claim_one(store, queue="jobs", lease_s=1)
    clock.advance(1)
    put(store, "good", queue="jobs")
    with caplog.at_level(logging.WARNING, "holdfast"):
        assert ids(claim(store, 2, queue="jobs")) == ["good"]
        (letter,) = store.execute(Browse("grave")).messages
    assert letter.metadata is not None
    assert read_metadata(letter.metadata)["unreadable"] == "[1]"
    assert [record.getMessage().count("cannot be read") for record in caplog.records] == [1]
    assert "[1]" not in caplog.text, "what a message holds is not for the log"
    store.close()

"""The server against its own OpenAPI document: whatever is generated from it never breaks the server nor the document's word."""

from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from msgspec import Struct
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    response_schema_conformance,
    status_code_conformance,
    unsupported_method,
)

from holdfast.server.audit import Actor
from holdfast.server.auth.tokens import create_token
from holdfast.server.routes.openapi import openapi
from holdfast.stores.sqlite.store import SqliteStore
from tests.server.serving import Served

Case = schemathesis.Case[Any]

DOCUMENT = schemathesis.openapi.from_dict(openapi())
# A watch never ends; the others make of the store one that answers nothing else.
ROUTES = DOCUMENT.exclude(path=["/v1/watch", "/v1/beginimport", "/v1/seal"])
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
    negative_data_rejection,
    unsupported_method,
]


class Signed(Struct):
    """A server that asks for tokens, and one that may do everything."""

    served: Served
    token: str


@pytest.fixture(scope="module")
def signed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Signed]:
    store = SqliteStore(tmp_path_factory.mktemp("served") / "store.db", durability="process")
    _, token = create_token(store, "all", ["admin"], ["*"], by=Actor("the suite", "here"))
    served = Served(store)
    yield Signed(served, token)
    served.close()


def check(case: Case, signed: Signed) -> None:
    case.query.pop("wait_s", None)  # Nothing would come, so it would only wait.
    case.call_and_validate(base_url=signed.served.url, headers={"Authorization": f"Bearer {signed.token}"}, checks=CHECKS)


@ROUTES.parametrize()
@settings(max_examples=6, deadline=None, suppress_health_check=list(HealthCheck))
def test_the_server_keeps_to_its_document(case: Case, signed: Signed) -> None:
    check(case, signed)


@pytest.mark.verify
@ROUTES.parametrize()
@settings(max_examples=2_000, deadline=None, suppress_health_check=list(HealthCheck))
def test_the_server_keeps_to_its_document_for_long(case: Case, signed: Signed) -> None:
    check(case, signed)

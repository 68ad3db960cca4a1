"""The OpenAPI document, generated from the routes and the types of the commands."""

import re
from copy import deepcopy
from typing import Any, Final

from msgspec.json import schema_components

from holdfast import __version__
from holdfast.codec.fields import AFTER
from holdfast.commands import Claim, Together
from holdfast.server.audit import AUDIT_PAGE, AuditPage
from holdfast.server.auth.tokens import TokenPage
from holdfast.server.routes.flows import FLOWS, FlowSpec
from holdfast.server.routes.signal import SIGNAL_PATH
from holdfast.stores.http.problems import CONTENT_TYPE, Problem
from holdfast.stores.http.protocol import (
    ABOUT_PATH,
    AUDIT_PATH,
    HEALTH_PATH,
    METRICS_PATH,
    READY_PATH,
    ROUTES,
    TOKENS_PATH,
    WAIT_MAX_S,
    WAIT_PATH,
    WATCH_PATH,
    About,
    Route,
    Waited,
    WaitFor,
)

REFS: Final = "#/components/schemas/{name}"
Json = dict[str, Any]


def openapi() -> Json:
    """The whole document."""
    schemas = _Schemas()
    paths = {route.path: {"post": _command(route, schemas)} for route in ROUTES}
    paths[WAIT_PATH] = {"post": _operation("Wait for a hint on a topic after its mark.", Waited, schemas, body=schemas.of(WaitFor))}
    paths[SIGNAL_PATH] = {"post": _signal(schemas)}
    paths |= {spec.path: {spec.method.lower(): _flow(spec, schemas)} for spec in FLOWS}
    paths[ABOUT_PATH] = {"get": _operation("The server, and the guarantees of its store.", About, schemas)}
    paths[WATCH_PATH] = {"get": _watch(schemas)}
    paths[AUDIT_PATH] = {"get": _audit(schemas)}
    paths[TOKENS_PATH] = {"get": _operation("Tokens that are good now, for an administrator.", TokenPage, schemas)}
    for path, what in ((HEALTH_PATH, "Whether the server is alive."), (READY_PATH, "Whether its store responds.")):
        paths[path] = {"get": _operation(what, dict[str, bool], schemas)}
    paths[METRICS_PATH] = {"get": _operation("Metrics, for Prometheus.", str, schemas, content_type="text/plain")}
    return {
        "openapi": "3.1.0",
        "info": {"title": "Holdfast", "version": __version__, "description": "Queues, dicts, leases and watches over HTTP."},
        "paths": paths,
        "components": {"schemas": schemas.components, "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}},
        "security": [{}, {"token": []}],
    }


class _Schemas:
    """The schemas of all types that are named, each once."""

    def __init__(self) -> None:
        self.components: Json = {}

    def of(self, each: Any) -> Json:
        (schema,), components = schema_components([each], ref_template=REFS)
        self.components |= components
        return dict(schema)

    def body_of(self, route: Route) -> Json:
        """A command's schema, but that the path names it already: its type may be left out, which it may not in a step of several."""
        self.of(route.command)
        body: Json = deepcopy(self.components[route.command.__name__])
        body["required"] = [name for name in body["required"] if name != "type"]
        return body


def _command(route: Route, schemas: _Schemas) -> Json:
    answers = Any if route.command is Together else route.command.answer_type
    operation = _operation((route.command.__doc__ or "").partition("\n")[0], answers, schemas, body=schemas.body_of(route))
    operation["operationId"] = route.command.__name__.lower()
    operation["x-holdfast-verb"] = route.command.verb
    if route.command is Claim:
        wait_s = {"type": "number", "minimum": 0, "maximum": WAIT_MAX_S}
        operation["parameters"] = [{"name": "wait_s", "in": "query", "description": "How long to wait for a message.", "schema": wait_s}]
    return operation


def _watch(schemas: _Schemas) -> Json:
    operation = _operation("Follow the events of a topic as Server-Sent Events.", str, schemas, content_type="text/event-stream")
    after = {"type": "integer", "minimum": -1, "maximum": AFTER.most}
    operation["parameters"] = [
        {"name": "topic", "in": "query", "required": True, "schema": {"type": "string", "minLength": 1}},
        {"name": "after", "in": "query", "description": "The index of the last event seen.", "schema": after},
        {"name": "Last-Event-ID", "in": "header", "description": "Like `after`, and takes precedence.", "schema": after},
    ]
    return operation


def _signal(schemas: _Schemas) -> Json:
    operation = _operation("Send a signal to a durable job; the body is its payload.", dict[str, bool], schemas, body={})
    operation["x-holdfast-verb"] = "signal"
    text = {"type": "string", "minLength": 1}
    operation["parameters"] = [
        *({"name": name, "in": "path", "required": True, "schema": text} for name in ("queue", "id", "name")),
        {"name": "Idempotency-Key", "in": "header", "description": "A signal with the same key is sent once.", "schema": text},
    ]
    return operation


def _flow(spec: FlowSpec, schemas: _Schemas) -> Json:
    body = schemas.of(spec.body) if spec.method == "POST" else None
    operation = _operation((spec.flow.__doc__ or "").partition("\n")[0], spec.answers, schemas, body=body)
    text = {"type": "string", "minLength": 1}
    names = re.findall(r"\{(\w+)\}", spec.path)
    operation["parameters"] = [{"name": name, "in": "path", "required": True, "schema": text} for name in names]
    operation["parameters"] += [{"name": name, "in": "query", "schema": {"type": "string"}} for name in spec.query]
    return operation


def _audit(schemas: _Schemas) -> Json:
    operation = _operation("Acts of administrators.", AuditPage, schemas)
    record_id = {"type": "string", "pattern": "^[0-9a-f-]{0,36}$"}
    operation["parameters"] = [
        {"name": "after", "in": "query", "description": "The id of the last record seen.", "schema": record_id},
        {"name": "limit", "in": "query", "schema": {"type": "integer", "minimum": 1, "maximum": AUDIT_PAGE}},
        {"name": "newest", "in": "query", "description": "Whether the newest come first.", "schema": {"type": "boolean"}},
    ]
    return operation


def _operation(summary: str, answers: Any, schemas: _Schemas, body: Json | None = None, content_type: str = "application/json") -> Json:
    problem = {"description": "An error, with a stable code.", "content": {CONTENT_TYPE: {"schema": schemas.of(Problem)}}}
    operation: Json = {
        "summary": summary,
        "responses": {
            "200": {"description": "Done.", "content": {content_type: {"schema": schemas.of(answers)}}},
            "default": problem,
        },
    }
    if body is not None:
        operation["requestBody"] = {"required": True, "content": {"application/json": {"schema": body}}}
    return operation

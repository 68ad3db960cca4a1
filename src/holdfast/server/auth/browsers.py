"""Refuses requests of web pages of other origins while a server has no tokens."""

from collections.abc import Mapping
from typing import Any, Final

from holdfast.server.asgi import Scope, header
from holdfast.stores.http.problems import WireError

POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""Pages of this server, which are those of the dashboard, run its own scripts and reach only this server."""

ANSWER_HEADERS: Final = [
    ("cache-control", "no-store"),
    ("content-security-policy", POLICY),
    ("cross-origin-resource-policy", "same-origin"),
    ("referrer-policy", "no-referrer"),
    ("x-content-type-options", "nosniff"),
]
"""They go with every answer to what a browser may have sent."""

OWN_SITES: Final = frozenset({b"same-origin", b"none"})
"""What `Sec-Fetch-Site` says of a page of this server, and of a user who typed the address."""

JSON: Final = b"application/json"


def refuse_other_origins(scope: Scope) -> None:
    """Refuse a request that a page of another origin made; programs send neither of these headers."""
    for name, value in scope["headers"]:
        if name == b"sec-fetch-site" and value not in OWN_SITES:
            raise _cross_origin()
        if name == b"origin" and not _is_own(value, header(scope, b"host") or b""):
            raise _cross_origin()


def may_be_of_a_browser(scope: Mapping[str, Any]) -> bool:
    """Whether a browser may have sent the request. In a POST each names the origin of its page, if only as `null`."""
    if scope["method"] != "POST":
        return True
    for name, _ in scope["headers"]:  # noqa: SIM110 - asked for every command, and a generator would double what it costs
        if name in (b"origin", b"sec-fetch-site"):
            return True
    return False


def is_json(content_type: bytes | None) -> bool:
    """Whether the type is JSON's, which a page of another origin may not send without asking first."""
    return content_type == JSON or (content_type is not None and content_type.partition(b";")[0].strip().lower() == JSON)


def _is_own(origin: bytes, host: bytes) -> bool:
    # The scheme is left out: behind a proxy that terminates TLS the server does not know it.
    scheme, _, authority = origin.lower().partition(b"://")
    return scheme in (b"http", b"https") and authority == host.lower()


def _cross_origin() -> WireError:
    detail = "requests of a web page of another origin are refused while the server has no tokens: make one with `holdfast token create`"
    return WireError("cross_origin", 403, detail, ((b"connection", b"close"),))

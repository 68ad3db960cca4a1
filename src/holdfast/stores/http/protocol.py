"""The protocol between the HTTP store and the server: one route per command.

The server takes its routes, its scopes and its OpenAPI document from here, and the client its paths. A body is the command's own JSON;
an answer is the JSON of what the command returns.
"""

from collections.abc import Callable
from typing import Any, Final, get_args

from msgspec import Raw, Struct, json

from holdfast.codec import Limits
from holdfast.commands import AnyCommand, Command, Together
from holdfast.stores import Guarantees

VERSION: Final = 1
PREFIX: Final = f"/v{VERSION}"

ABOUT_PATH: Final = f"{PREFIX}/about"
WAIT_PATH: Final = f"{PREFIX}/wait"
WATCH_PATH: Final = f"{PREFIX}/watch"
OPENAPI_PATH: Final = "/openapi.json"
HEALTH_PATH: Final = "/healthz"
READY_PATH: Final = "/readyz"
METRICS_PATH: Final = "/metrics"
AUDIT_PATH: Final = f"{PREFIX}/audit"
TOKENS_PATH: Final = f"{PREFIX}/tokens"

NAMESPACE_PREFIX: Final = "/ns/"
"""What a path begins with that names its namespace."""

WALL_OFFSET: Final = "holdfast-wall-offset-us"
"""The header that says, with every answer, what to add to a moment of the store's clock to get one of the wall clock."""

POLL_S: Final = 25.0
"""How long a client lets one wait last; below what proxies allow a request that says nothing."""

WAIT_MAX_S: Final = 300.0
"""How long the server lets one wait last."""


class Route(Struct, frozen=True):
    """Where a command is sent."""

    command: type[Command[Any]]

    @property
    def path(self) -> str:
        return f"{PREFIX}/{self.command.__name__.lower()}"


ROUTES: Final = tuple(Route(command) for command in get_args(AnyCommand))

PATHS: Final[dict[type[Command[Any]], str]] = {route.command: route.path for route in ROUTES}


class About(Struct, frozen=True):
    """What a server reports about itself and the store behind it."""

    version: str
    protocol: int
    guarantees: Guarantees
    limits: Limits
    wall_offset_us: int
    scopes: tuple[str, ...] = ()
    """What the caller may do, as scopes of tokens."""


class Asked(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, gc=False):
    """A topic to wait on, and the mark up to which the client has heard of it; without one the answer comes at once."""

    topic: str
    mark: str | None = None


class WaitFor(Struct, frozen=True, forbid_unknown_fields=True):
    """The body of a wait: it ends when any of the topics was hinted after its mark, or at the time-out."""

    topics: list[Asked]
    timeout_s: float = POLL_S


class Heard(Struct, frozen=True, array_like=True, gc=False):
    """What came of a topic: the mark to wait from next, and how many waiters may find something, None for all of them."""

    topic: str
    mark: str
    count: int | None = None

    @property
    def size_bytes(self) -> int:
        return len(self.topic) + len(self.mark)


class Waited(Struct, frozen=True, omit_defaults=True):
    """The topics that were hinted; none at the time-out. Where some were refused, the answer comes at once: ask for them no more."""

    topics: list[Heard]
    refused: list[str] = []
    """The topics that the caller may not wait on."""


encode_command: Callable[[object], bytes] = json.Encoder().encode

_decoders: dict[Any, json.Decoder[Any]] = {}


def decode_answer(command: Command[Any], body: bytes | Raw) -> Any:
    """What the server answered to the command."""
    if isinstance(command, Together):
        parts = json.decode(body, type=list[Raw])
        return [decode_answer(step, part) for step, part in zip(command.commands, parts, strict=True)]
    decoder = _decoders.get(command.answer_type)
    if decoder is None:
        decoder = _decoders[command.answer_type] = json.Decoder(command.answer_type)
    return decoder.decode(body)

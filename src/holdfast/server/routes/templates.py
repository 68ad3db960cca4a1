"""Paths with names in them, as `/v1/queues/{queue}/jobs/{id}`."""

from typing import Final
from urllib.parse import unquote

from msgspec import Struct

from holdfast.codec import check_name
from holdfast.server.asgi import App, Scope

KEY: Final = "holdfast.names"
"""Where the names of the path are in the scope."""


class Template(Struct, frozen=True):
    """A route whose path has names in braces."""

    method: str
    path: str
    app: App

    def names_in(self, path: str) -> dict[str, str] | None:
        """The names in a path of this form, None if it has another. The path is as it was sent: a name may have an escaped slash."""
        wanted, given = self.path.split("/"), [unquote(part) for part in path.split("/")]
        if len(wanted) != len(given) or any(want != part for want, part in zip(wanted, given, strict=True) if not want.startswith("{")):
            return None
        return {want[1:-1]: check_name(part, want[1:-1]) for want, part in zip(wanted, given, strict=True) if want.startswith("{")}


def sent_path(scope: Scope) -> str:
    """The path as it was sent, without what was taken off its beginning: a namespace, or where the app is mounted."""
    path: str = scope["path"]
    sent: str = scope["raw_path"].decode("latin-1")
    while sent and unquote(sent) != path:
        _, slash, rest = sent[1:].partition("/")
        sent = slash + rest
    return sent or path


def names_of(scope: Scope) -> dict[str, str]:
    """The names in the path of the request; its route has found them."""
    names: dict[str, str] = scope[KEY]
    return names

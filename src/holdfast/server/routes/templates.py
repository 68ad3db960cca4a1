"""Paths with names in them, as `/v1/queues/{queue}/jobs/{id}`."""

from typing import Final

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
        """The names in a path of this form, None if it has another."""
        wanted, given = self.path.split("/"), path.split("/")
        if len(wanted) != len(given) or any(want != part for want, part in zip(wanted, given, strict=True) if not want.startswith("{")):
            return None
        return {want[1:-1]: check_name(part, want[1:-1]) for want, part in zip(wanted, given, strict=True) if want.startswith("{")}


def names_of(scope: Scope) -> dict[str, str]:
    """The names in the path of the request; its route has found them."""
    names: dict[str, str] = scope[KEY]
    return names

"""Names that belong to the server itself: nobody reaches them as a queue or a dict, but for the audit, which administrators read."""

from typing import Final

from holdfast.server.needs import SERVER, Need

PREFIX: Final = "holdfast/"
TOKENS: Final = f"{PREFIX}tokens"
AUDIT: Final = f"{PREFIX}audit"


def instead_of(need: Need) -> Need | None:
    """What the need really takes: itself for what is the users', to be an administrator for the audit, and nothing helps for the rest."""
    if not need.name.startswith(PREFIX):
        return need
    return SERVER if need.name == AUDIT and need.verb == "read" else None

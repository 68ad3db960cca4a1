"""The condition that a store is kept in: the form of its data, what stands before it, and the space that holds nothing."""

from msgspec import Struct

NEWER = "A newer release has added to it what this one does not need: upgrade the programs of this release, too."


def newer_form(applied: int, known: int) -> str:
    """What to do where more steps of a schema are applied than this release knows; empty where there are not."""
    return NEWER if applied > known else ""


class Transaction(Struct, frozen=True):
    """A transaction that is open, and keeps the engine from using space again."""

    whose: str
    open_s: float
    remedy: str


class Condition(Struct, frozen=True):
    """What only the engine itself can be asked."""

    form: str
    """The form of the data, and of which releases it has parts."""
    form_remedy: str = ""
    """What to do about it; empty where nothing is to be done."""
    is_pooled: bool = False
    """Whether a pooler stands before the server."""
    size_bytes: int = 0
    unused_bytes: int = 0
    """Those of them that hold nothing, as far as the engine knows."""
    limit_bytes: int | None = None
    """How large it may become, where something but the disk limits it."""
    compact: str = ""
    """How the unused space is given back."""
    free_bytes: int | None = None
    """How much room the disk of its file has left; None where that is not known."""
    oldest: Transaction | None = None
    """The transaction that has been open for longest, where that matters."""

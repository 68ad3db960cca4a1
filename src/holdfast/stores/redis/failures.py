"""Maps errors of redis-py to Holdfast's own, and to errors worth a retry."""

import redis.exceptions as theirs

from holdfast.errors import HoldfastError, NotAllowed, StoreError, StoreFull
from holdfast.stores.retrying import Lost

PASSING = ("LOADING", "BUSY", "MASTERDOWN", "CLUSTERDOWN", "TRYAGAIN", "READONLY")
"""Answers of a server that is not ready, or no longer the primary: nothing was written, and another try may find it otherwise."""
PASSING_ERRORS = (
    # For these the library takes the word away from the text.
    theirs.BusyLoadingError,
    theirs.NoScriptError,
    theirs.ReadOnlyError,
    theirs.MasterDownError,
    theirs.ClusterDownError,
    theirs.TryAgainError,
)

COMMANDS = "EVALSHA, SCRIPT LOAD, INFO, SUBSCRIBE and the commands of the scripts"


def translate(error: Exception, where: str, *, was_sent: bool) -> HoldfastError | Lost:
    """What to raise instead; `was_sent` says whether the command may have reached the server."""
    text = str(error)
    if isinstance(error, theirs.AuthenticationError | theirs.AuthenticationWrongNumberOfArgsError):
        return NotAllowed(f"{where} refused the user name or password: check those of the URL ({text})")
    if isinstance(error, theirs.NoPermissionError) or "unknown command" in text:
        return NotAllowed(f"{where} denied a command ({text}): allow {COMMANDS} on keys and channels that begin with the prefix")
    if isinstance(error, PASSING_ERRORS) or text.startswith(PASSING) or "-READONLY" in text:
        return Lost(f"{where} is not ready: {text}", maybe_applied=False)
    if isinstance(error, theirs.ConnectionError | theirs.TimeoutError | OSError):
        return Lost(f"{where} cannot be reached: {text}", maybe_applied=was_sent)
    if isinstance(error, theirs.OutOfMemoryError) or "OOM " in text:
        return StoreFull(f"{where} has used up its maxmemory, and nothing was written: raise it, or delete something")
    if "MISCONF" in text:
        return StoreFull(f"{where} cannot write to its disk, and nothing was written: {text}")
    return StoreError(f"{where} returned an error: {text}")

"""Ids made by the client: UUIDv7 text, so that they sort by the time they were made."""

import sys

if sys.version_info >= (3, 14):
    from uuid import uuid7
else:
    # It also reseeds itself in a forked child, where the inherited generator would repeat the parent's ids.
    from uuid_utils import uuid7


def new_id() -> str:
    """Make an id no other process makes, larger than every earlier one of this process."""
    return str(uuid7())

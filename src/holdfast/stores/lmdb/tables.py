"""The named databases of an environment."""

import lmdb
from msgspec import Struct

Handle = lmdb._Database  # noqa: SLF001 - its only name


class Tables(Struct, frozen=True, gc=False):
    """A handle for each. A scope is the queue, dict or topic that a key belongs to, see `layout`."""

    about: Handle
    """The format, the clock's anchor, the latest moment, how far pruning went."""
    names: Handle
    """Kind and name: settings."""
    messages: Handle
    """Scope and id: the row of a message."""
    values: Handle
    """Number of a message: its value, if that is large."""
    histories: Handle
    """Number of a message: how its claims ended, if any ended other than done."""
    extras: Handle
    """Number of a message: the fields that it uses and that have no place in its row, as JSON."""
    ready: Handle
    """Scope, priority, position, number: when it must be started by, and id."""
    starts: Handle
    """Scope, moment by which it must be started, number: id; only of messages that wait for their first claim."""
    leased: Handle
    """Scope, lease end, number: id."""
    dead: Handle
    """Scope, burial, number: id."""
    keys: Handle
    """Scope, living or buffered, key: id."""
    entries: Handle
    """Scope and key: end, revision, fence, value."""
    ends: Handle
    """End, scope and key: the name of the dict; only of entries with an end."""
    leases: Handle
    """Scope and key: a lease, or what stands for a name with capacity."""
    shares: Handle
    """Scope of such a name, and id: a grant, or a place in line for one."""
    share_ends: Handle
    """Scope of the name, whether it waits, end, id: nothing."""
    share_lines: Handle
    """Scope of the name, place in line: id."""
    events: Handle
    """Number: moment, topic, name, data."""
    topics: Handle
    """Scope of a topic: how many events it has, the highest number that was pruned, and its name."""
    answers: Handle
    """Id of a command: moment, note."""
    answered: Handle
    """Moment, id of a command: nothing."""
    gaps: Handle
    """Number of an event: the number of the one before it, where those in between were never given out."""
    lines: Handle
    """Scope, scope of a lane, level, rank, number: when it must be started by, and id; of messages that stand in lanes."""
    delayed: Handle
    """Scope, position, number: id; of messages that are out of line until they are due."""
    done: Handle
    """Scope, end, number: id; of messages that are kept after they were done."""
    lanes: Handle
    """Scope and name: a lane."""
    open_lanes: Handle
    """Scope, turn, place, name of a lane: nothing."""
    asleep_lanes: Handle
    """Scope, moment at which it wakes, name of a lane: nothing."""


TABLES = Tables.__struct_fields__

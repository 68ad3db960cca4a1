"""Every atomic thing that can be asked of a store."""

from holdfast.commands.claiming import Claim, Claimed
from holdfast.commands.command import Command, run
from holdfast.commands.dicts import Change, Entries, Length, Read, Write, Written
from holdfast.commands.events import Changes, Page, Prune
from holdfast.commands.leases import Acquire, Acquired, LeaseName, Release, Released, Renew, Renewed
from holdfast.commands.looking import Look, Looked
from holdfast.commands.moving import Browse, Browsed, Count, Move, Moved
from holdfast.commands.objects import Clear, Configure, Named, Names
from holdfast.commands.putting import Item, Put, Puts
from holdfast.commands.settling import Extend, Held, Settle
from holdfast.commands.together import AnyCommand, Together, decode_command, encode_command
from holdfast.commands.transaction import ALL, Filter, Stats, Transaction

__all__ = [
    "ALL",
    "Acquire",
    "Acquired",
    "AnyCommand",
    "Browse",
    "Browsed",
    "Change",
    "Changes",
    "Claim",
    "Claimed",
    "Clear",
    "Command",
    "Configure",
    "Count",
    "Entries",
    "Extend",
    "Filter",
    "Held",
    "Item",
    "LeaseName",
    "Length",
    "Look",
    "Looked",
    "Move",
    "Moved",
    "Named",
    "Names",
    "Page",
    "Prune",
    "Put",
    "Puts",
    "Read",
    "Release",
    "Released",
    "Renew",
    "Renewed",
    "Settle",
    "Stats",
    "Together",
    "Transaction",
    "Write",
    "Written",
    "decode_command",
    "encode_command",
    "run",
]

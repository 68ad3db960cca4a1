"""All commands of a store."""

from holdfast.commands.acquired import Acquired
from holdfast.commands.breaking import Break, Broken
from holdfast.commands.change import Change, Written
from holdfast.commands.claim_line import Claimed
from holdfast.commands.claiming import Claim
from holdfast.commands.command import Command, run
from holdfast.commands.configuring import Configure
from holdfast.commands.copying import BeginImport, Copying, EndImport, Import, Seal
from holdfast.commands.counting import Counted, Counts, QueueCount
from holdfast.commands.dicts import Entries, Length, Read, Write
from holdfast.commands.events import Changes, Page, Prune
from holdfast.commands.fences import LowerFences
from holdfast.commands.groups import Grouped, Groups
from holdfast.commands.hints import ALL
from holdfast.commands.lease_list import Holding, Leases, Listed
from holdfast.commands.leases import Acquire, LeaseName, Release, Released, Renew, Renewed
from holdfast.commands.looking import Look, Looked
from holdfast.commands.moving import Browse, Browsed, Count, Move, Moved
from holdfast.commands.objects import Clear, Named, Names
from holdfast.commands.putting import Item, Put, Puts
from holdfast.commands.resizing import Resize, Resized
from holdfast.commands.settling import Extend, Held, Settle
from holdfast.commands.stats import Stats
from holdfast.commands.surveying import Fences, Survey, Surveyed
from holdfast.commands.together import AnyCommand, Together, decode_command, encode_command
from holdfast.commands.transaction import Fenced, Filter, Transaction

__all__ = [
    "ALL",
    "Acquire",
    "Acquired",
    "AnyCommand",
    "BeginImport",
    "Break",
    "Broken",
    "Browse",
    "Browsed",
    "Change",
    "Changes",
    "Claim",
    "Claimed",
    "Clear",
    "Command",
    "Configure",
    "Copying",
    "Count",
    "Counted",
    "Counts",
    "EndImport",
    "Entries",
    "Extend",
    "Fenced",
    "Fences",
    "Filter",
    "Grouped",
    "Groups",
    "Held",
    "Holding",
    "Import",
    "Item",
    "LeaseName",
    "Leases",
    "Length",
    "Listed",
    "Look",
    "Looked",
    "LowerFences",
    "Move",
    "Moved",
    "Named",
    "Names",
    "Page",
    "Prune",
    "Put",
    "Puts",
    "QueueCount",
    "Read",
    "Release",
    "Released",
    "Renew",
    "Renewed",
    "Resize",
    "Resized",
    "Seal",
    "Settle",
    "Stats",
    "Survey",
    "Surveyed",
    "Together",
    "Transaction",
    "Write",
    "Written",
    "decode_command",
    "encode_command",
    "run",
]

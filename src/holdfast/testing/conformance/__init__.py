"""The conformance suite: one class of tests per theme, which every store runs.

A store joins with a few lines:

    class TestMyStore(StoreConformance):
        @pytest.fixture
        def factory(self, tmp_path):
            return MyFactory(tmp_path)

`StoreConformance` is what every store must keep, `CopyConformance` what it must keep to be moved from and to, `FileConformance` what it
must keep as well if it survives its process, and `StatementConformance` is for stores whose statements can be counted.
"""

from holdfast.testing.conformance.answers import AnswerConformance
from holdfast.testing.conformance.bad_input import BadInputConformance
from holdfast.testing.conformance.batches import BatchConformance
from holdfast.testing.conformance.budgets import BudgetConformance
from holdfast.testing.conformance.cancelling import CancellationConformance
from holdfast.testing.conformance.claims import ClaimConformance
from holdfast.testing.conformance.concurrency import ConcurrencyConformance
from holdfast.testing.conformance.copying import CopyConformance
from holdfast.testing.conformance.cost import StatementConformance
from holdfast.testing.conformance.crash import FileConformance
from holdfast.testing.conformance.dicts import DictConformance
from holdfast.testing.conformance.events import EventConformance
from holdfast.testing.conformance.factory import Conformance, ForTasks, StoreFactory
from holdfast.testing.conformance.fences import FenceConformance
from holdfast.testing.conformance.filters import FilterConformance
from holdfast.testing.conformance.group_changes import GroupChangeConformance
from holdfast.testing.conformance.group_copies import GroupCopyConformance
from holdfast.testing.conformance.group_wakes import GroupWakeConformance
from holdfast.testing.conformance.groups import GroupConformance
from holdfast.testing.conformance.history import HistoryConformance
from holdfast.testing.conformance.keys import KeyConformance
from holdfast.testing.conformance.lease_lists import LeaseListConformance
from holdfast.testing.conformance.leases import LeaseConformance
from holdfast.testing.conformance.limits import LimitConformance
from holdfast.testing.conformance.line import LineConformance
from holdfast.testing.conformance.looking import LookConformance
from holdfast.testing.conformance.policies import PolicyConformance
from holdfast.testing.conformance.policy_changes import PolicyChangeConformance
from holdfast.testing.conformance.puts import PutConformance
from holdfast.testing.conformance.rates import RateConformance
from holdfast.testing.conformance.redrive import RedriveConformance
from holdfast.testing.conformance.retries import RetryConformance
from holdfast.testing.conformance.returning import ReturnConformance
from holdfast.testing.conformance.room import RoomConformance
from holdfast.testing.conformance.shares import ShareConformance
from holdfast.testing.conformance.signals import SignalConformance
from holdfast.testing.conformance.together import TogetherConformance
from holdfast.testing.conformance.waiting import WaitingConformance

__all__ = [
    "THEMES",
    "Conformance",
    "CopyConformance",
    "FaceConformance",
    "FileConformance",
    "ForTasks",
    "GroupCopyConformance",
    "PolicyConformances",
    "StatementConformance",
    "StoreConformance",
    "StoreFactory",
]


class StoreConformance(
    LineConformance,
    ClaimConformance,
    ReturnConformance,
    BudgetConformance,
    KeyConformance,
    PutConformance,
    RedriveConformance,
    SignalConformance,
    RoomConformance,
    LookConformance,
    FilterConformance,
    BatchConformance,
    DictConformance,
    RateConformance,
    FenceConformance,
    LeaseConformance,
    LeaseListConformance,
    ShareConformance,
    EventConformance,
    TogetherConformance,
    RetryConformance,
    WaitingConformance,
    ConcurrencyConformance,
    CancellationConformance,
    BadInputConformance,
    AnswerConformance,
):
    """Everything that every store must keep."""


class PolicyConformances(
    GroupConformance,
    GroupChangeConformance,
    GroupWakeConformance,
    LimitConformance,
    PolicyConformance,
    PolicyChangeConformance,
    HistoryConformance,
):
    """What every store that has groups and policies of queues must keep."""


class FaceConformance(TogetherConformance, RetryConformance, WaitingConformance, ConcurrencyConformance):
    """Where the two faces of one store may differ: sending, trying again, waiting, and doing several things at once.

    For a run that must be short, beside all of `StoreConformance` for the other face.
    """


THEMES: tuple[type[Conformance], ...] = (
    *StoreConformance.__bases__,
    *PolicyConformances.__bases__,
    CopyConformance,
    FileConformance,
    StatementConformance,
)

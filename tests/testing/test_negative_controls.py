"""For every guarantee a broken store: the suite would be worth nothing if it passed."""

import pytest

from holdfast.clock import Clock
from holdfast.stores import Store
from holdfast.stores.memory import MemoryStore
from holdfast.testing.conformance import THEMES
from tests.testing.controls import Mutant, PlainFactory, failures, run
from tests.testing.copy_mutants import COPY_MUTANTS
from tests.testing.dict_mutants import DICT_MUTANTS
from tests.testing.filter_mutants import FILTER_MUTANTS
from tests.testing.lane_mutants import LANE_MUTANTS
from tests.testing.mutants import MUTANTS
from tests.testing.put_mutants import PUT_MUTANTS
from tests.testing.share_mutants import SHARE_MUTANTS

ALL = (*MUTANTS, *COPY_MUTANTS, *PUT_MUTANTS, *DICT_MUTANTS, *FILTER_MUTANTS, *SHARE_MUTANTS, *LANE_MUTANTS)


@pytest.mark.parametrize("mutant", ALL, ids=lambda mutant: mutant.name.replace(" ", "-"))
def test_a_broken_store_is_noticed(mutant: Mutant) -> None:
    assert failures(mutant), f"a store that {mutant.name} passes {mutant.noticed_by}"


@pytest.mark.parametrize("name", sorted({mutant.noticed_by for mutant in ALL}))
def test_the_whole_store_passes_what_the_broken_one_fails(name: str) -> None:
    assert list(run(name, PlainFactory())) == []


class Forgetful:
    """Opens an empty store each time: nothing survives."""

    def make(self, clock: Clock) -> Store:
        return MemoryStore(clock=clock)


@pytest.mark.parametrize(
    "name",
    [
        "test_what_was_acknowledged_is_there_when_the_store_is_opened_again",
        "test_claims_and_leases_go_on_when_the_store_is_opened_again",
        "test_tokens_go_on_growing_when_the_store_is_opened_again",
        "test_a_watch_goes_on_where_it_was_when_the_store_is_opened_again",
        "test_a_command_repeated_after_opening_again_is_applied_once",
        "test_two_who_opened_it_see_each_others_changes",
        "test_a_writer_killed_at_any_moment_loses_nothing_and_leaves_nothing_half",
    ],
)
def test_a_store_that_forgets_is_noticed(name: str) -> None:
    assert list(run(name, Forgetful()))


def test_no_two_themes_have_a_test_of_one_name() -> None:
    names = [name for theme in THEMES for name in vars(theme) if name.startswith("test_")]
    assert len(names) == len(set(names)), "one test would take the other's place in the whole suite"

"""Who stands where in line, in memory."""

from holdfast.stores.memory.schedule import SPARE, Schedule


def test_a_schedule_gives_slots_in_order_however_they_came() -> None:
    schedule = Schedule(lambda _moment, _n: True)
    for moment, n in [(3, 1), (1, 2), (2, 3), (3, 4), (1, 5)]:
        schedule.add(moment, n)
    schedule.add(2, 6, ahead=True)
    assert schedule.upto(2, 10) == [2, 5, 3, 6]
    assert schedule.upto(9, 10) == [2, 5, 3, 6, 1, 4]
    assert schedule.upto(9, 2) == [2, 5]


def test_who_left_and_came_back_to_its_place_stands_there_once() -> None:
    schedule = Schedule(lambda _moment, _n: True)
    schedule.add(0, 9)
    schedule.add(1, 1)
    schedule.leave(1)
    schedule.add(1, 1)
    assert schedule.upto(1, 10) == [9, 1]


def test_stale_slots_are_bounded_whatever_leaves() -> None:
    there = dict.fromkeys(range(10_000))
    schedule = Schedule(lambda _moment, n: n in there)
    for n in there:
        schedule.add(n, n, ahead=n % 2 == 0)
    for n in range(9_999, 0, -1):
        del there[n]
        schedule.leave(n)
        assert len(schedule.line) + len(schedule.heap) <= 2 * schedule.count + SPARE
    assert schedule.upto(10_000, 10) == [0]


def test_the_next_moment_behind_another_is_found_without_losing_what_comes_before() -> None:
    schedule = Schedule(lambda _moment, _n: True)
    for moment in (1, 2, 5, 7):
        schedule.add(moment, moment, ahead=moment == 5)
    assert schedule.after(2) == 5
    assert schedule.after(7) is None
    assert schedule.upto(9, 9) == [1, 2, 5, 7]

"""Store time: one for all processes of a host, never moved by a step of the wall clock, never back over a reboot."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from holdfast.clock import HOST, Anchor, AnchoredClock, Clock, Host, SystemClock, anchored, namespace_us
from holdfast.errors import StoreError

SECOND = 1_000_000
NOON = 1_700_000_000 * SECOND


class Machine:
    """A machine whose clocks a test sets."""

    def __init__(self, wall_us: int, boot_us: int = 0, boot_id: str = "first") -> None:
        self.wall_us = wall_us
        self.boot_us = boot_us
        self.boot_id = boot_id
        self.host = self.host_in_namespace(0)

    def host_in_namespace(self, offset_us: int) -> Host:
        """The machine as a process sees it whose time namespace adds so much to the time since the boot."""
        return Host(
            boot_us=lambda: self.boot_us + offset_us,
            boot_id=lambda: self.boot_id,
            wall_us=lambda: self.wall_us,
            namespace_us=lambda: offset_us,
        )

    def pass_time(self, us: int) -> None:
        self.wall_us += us
        self.boot_us += us

    def reboot(self, wall_us: int) -> None:
        self.wall_us, self.boot_us, self.boot_id = wall_us, 0, self.boot_id + "+"


def anchored_clock(machine: Machine) -> Clock:
    return AnchoredClock(anchored(None, 0, machine.host), machine.host)


def system_clock(machine: Machine) -> Clock:
    return SystemClock(machine.host)


@pytest.fixture(params=[anchored_clock, system_clock])
def make(request: pytest.FixtureRequest) -> Callable[[Machine], Clock]:
    made: Callable[[Machine], Clock] = request.param
    return made


def test_a_clock_goes_on_with_the_machine(make: Callable[[Machine], Clock]) -> None:
    machine = Machine(NOON, boot_us=55 * SECOND)
    clock = make(machine)
    begun = clock.now_us()
    machine.pass_time(3 * SECOND)
    assert clock.now_us() == begun + 3 * SECOND


def test_a_file_begins_at_wall_time_and_memory_at_the_boot() -> None:
    machine = Machine(NOON, boot_us=55 * SECOND)
    assert anchored_clock(machine).now_us() == NOON
    assert SystemClock(machine.host).now_us() == 55 * SECOND
    assert SystemClock(machine.host).now_ns() == 55 * SECOND * 1000


@pytest.mark.parametrize("step_us", [3600 * SECOND, -3600 * SECOND])
def test_a_step_of_the_wall_clock_does_not_move_store_time(make: Callable[[Machine], Clock], step_us: int) -> None:
    machine = Machine(NOON)
    clock = make(machine)
    begun = clock.now_us()
    machine.wall_us += step_us
    assert clock.now_us() == begun


def test_the_wall_offset_makes_a_moment_recognisable_after_a_step(make: Callable[[Machine], Clock]) -> None:
    machine = Machine(NOON)
    clock = make(machine)
    machine.wall_us -= 3600 * SECOND
    machine.pass_time(5 * SECOND)
    assert clock.now_us() + clock.wall_offset_us() == machine.wall_us


def test_the_stored_anchor_stays_during_its_boot() -> None:
    machine = Machine(NOON, boot_us=10 * SECOND)
    stored = anchored(None, 0, machine.host)
    machine.pass_time(60 * SECOND)
    machine.wall_us -= 3600 * SECOND
    assert anchored(stored, NOON + 60 * SECOND, machine.host) is stored


def test_a_new_boot_makes_a_new_anchor_at_wall_time() -> None:
    machine = Machine(NOON, boot_us=500 * SECOND)
    stored = anchored(None, 0, machine.host)
    machine.reboot(wall_us=NOON + 3600 * SECOND)
    fresh = anchored(stored, NOON + 60 * SECOND, machine.host)
    assert fresh == Anchor(NOON + 3600 * SECOND, 0, "first+")
    assert AnchoredClock(fresh, machine.host).now_us() == NOON + 3600 * SECOND


def test_time_goes_on_when_the_wall_clock_was_set_back_before_a_reboot() -> None:
    machine = Machine(NOON, boot_us=500 * SECOND)
    stored = anchored(None, 0, machine.host)
    machine.pass_time(60 * SECOND)
    latest_us = AnchoredClock(stored, machine.host).now_us()
    machine.reboot(wall_us=NOON - 86_400 * SECOND)
    assert AnchoredClock(anchored(stored, latest_us, machine.host), machine.host).now_us() > latest_us


def test_the_machine_says_which_boot_it_is_and_that_time_passes() -> None:
    assert HOST.boot_id()
    assert HOST.boot_id() == HOST.boot_id()
    assert HOST.boot_us() <= HOST.boot_us()


def test_a_moment_taken_before_a_signal_is_not_after_one_taken_on_its_arrival() -> None:
    anchor = anchored(None, 0)
    clock = AnchoredClock(anchor)
    program = f"""
from holdfast.clock import AnchoredClock, Anchor
clock = AnchoredClock({anchor!r})
while input():
    print(clock.now_us(), flush=True)
"""
    with subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdin
        assert other.stdout
        for _ in range(200):
            before = clock.now_us()
            print("now", file=other.stdin, flush=True)
            there = int(other.stdout.readline())
            assert before <= there <= clock.now_us()
        print(file=other.stdin, flush=True)
    assert other.returncode == 0


@pytest.mark.parametrize(("first", "second"), [(0, 900 * SECOND), (900 * SECOND, 0), (-10 * SECOND, 3 * SECOND)])
def test_processes_in_different_time_namespaces_read_one_time(first: int, second: int) -> None:
    machine = Machine(NOON, boot_us=500 * SECOND)
    anchor = anchored(None, 0, machine.host_in_namespace(first))
    machine.pass_time(7 * SECOND)
    assert AnchoredClock(anchor, machine.host_in_namespace(first)).now_us() == NOON + 7 * SECOND
    assert AnchoredClock(anchor, machine.host_in_namespace(second)).now_us() == NOON + 7 * SECOND


def fake_process(folder: Path, offsets: str | None, own: str = "time:[1]") -> Path:
    (folder / "ns").mkdir()
    (folder / "ns/time").symlink_to(own)
    (folder / "ns/time_for_children").symlink_to("time:[1]")
    if offsets is not None:
        (folder / "timens_offsets").write_text(offsets)
    return folder


def test_the_offset_of_a_time_namespace_is_read_in_microseconds(tmp_path: Path) -> None:
    offsets = "monotonic           5         0\nboottime       -86401 999000000\n"
    assert namespace_us(fake_process(tmp_path, offsets)) == -86_401 * SECOND + 999_000
    assert HOST.namespace_us() == namespace_us()


def test_a_kernel_without_time_namespaces_has_no_offset(tmp_path: Path) -> None:
    assert namespace_us(fake_process(tmp_path, None)) == 0


def test_a_process_that_left_its_namespace_to_its_children_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="child process"):
        namespace_us(fake_process(tmp_path, "boottime 5 0\n", own="time:[2]"))

"""The clock of the embedded stores: whole microseconds that no step of the wall clock moves.

Store time is an anchor plus what has passed since on a clock that counts from the boot and goes on while the machine sleeps. The anchor
is kept in the file, so all processes of a host read one time. Store time only measures; what people see adds `wall_offset_us()`.
"""

import sys
import time
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Protocol, runtime_checkable

from msgspec import Struct

from holdfast.errors import StoreError


class Clock(Protocol):
    """What a store needs to know about time."""

    def now_us(self) -> int: ...

    def now_ns(self) -> int:
        """The same in nanoseconds, as the machine counts: the memory store asks at every step, and a division more would be noticed."""
        ...

    def wall_offset_us(self) -> int: ...


@runtime_checkable
class MovableClock(Clock, Protocol):
    """A clock that a test moves."""

    def subscribe(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Call `callback` after each move, until what is returned is called."""
        ...


if sys.platform == "linux":
    boot_ns = partial(time.clock_gettime_ns, time.CLOCK_BOOTTIME)

    def boot_us() -> int:
        """Return the time since the boot, sleep included."""
        return boot_ns() // 1000

    @cache
    def boot_id() -> str:
        """Return what the kernel calls this boot."""
        return Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()

    def namespace_us(process: Path = Path("/proc/self")) -> int:
        """Return what this process's time namespace adds to the time since the boot; processes of one file may be in several."""
        try:
            offsets = (process / "timens_offsets").read_text("ascii")
        except FileNotFoundError:  # A kernel without time namespaces.
            return 0
        # The offsets are those that a child will have.
        if (process / "ns/time").readlink() != (process / "ns/time_for_children").readlink():
            raise StoreError("This process has unshared its time namespace and is not in it: open the file in a child process.")
        fields = next((line.split() for line in offsets.splitlines() if line.startswith("boottime")), ["boottime", "0", "0"])
        return int(fields[1]) * 1_000_000 + int(fields[2]) // 1000

elif sys.platform == "darwin":

    def namespace_us() -> int:
        """Return nothing: there are no time namespaces here."""
        return 0

    boot_ns = partial(time.clock_gettime_ns, time.CLOCK_MONOTONIC_RAW)

    def boot_us() -> int:
        """Return the time since the boot, sleep included."""
        return boot_ns() // 1000

    @cache
    def boot_id() -> str:
        """Return what the kernel calls this boot."""
        import ctypes  # noqa: PLC0415 - slow to import, and needed on this system alone

        text = ctypes.create_string_buffer(64)
        size = ctypes.c_size_t(len(text))
        failed = ctypes.CDLL(None).sysctlbyname(b"kern.bootsessionuuid", text, ctypes.byref(size), None, ctypes.c_size_t(0))
        if failed:
            raise StoreError("The kernel does not report its boot session (kern.bootsessionuuid): use a store that is not a file.")
        return text.value.decode("ascii")

else:

    def namespace_us() -> int:
        """Return nothing: there are no time namespaces here."""
        return 0

    boot_ns: Callable[[], int] = time.monotonic_ns

    def boot_us() -> int:
        """Return the time since an arbitrary moment before this process began."""
        return boot_ns() // 1000

    def boot_id() -> str:
        """Refuse: processes of this system share no clock that a file could be anchored to."""
        raise StoreError(f"File stores are not supported on {sys.platform}: use memory, PostgreSQL, Redis or HTTP.")


def wall_us() -> int:
    """Return what the wall clock shows, in microseconds since 1970."""
    return time.time_ns() // 1000


def wall_s() -> float:
    """Return what the wall clock shows, in seconds since 1970."""
    return wall_us() / 1_000_000


class Host(Struct, frozen=True):
    """The clocks of the machine; tests make one of their own."""

    boot_us: Callable[[], int] = boot_us
    boot_id: Callable[[], str] = boot_id
    wall_us: Callable[[], int] = wall_us
    namespace_us: Callable[[], int] = namespace_us


HOST = Host()


class Anchor(Struct, frozen=True):
    """One moment read on both clocks, and the boot in which they were read; in the time of no namespace."""

    wall_us: int
    boot_us: int
    boot_id: str


def anchored(stored: Anchor | None, latest_us: int, host: Host = HOST) -> Anchor:
    """Return the anchor to measure from: the stored one during its boot, else a new one after `latest_us`.

    `latest_us` is the latest moment at which anything was written, not one that lies ahead. Time goes on after it even if the wall clock
    was set back before the reboot. Ask inside the transaction that keeps the answer, or two processes anchor one boot twice.
    """
    if stored and stored.boot_id == host.boot_id():
        return stored
    return Anchor(max(host.wall_us(), latest_us + 1), host.boot_us() - host.namespace_us(), host.boot_id())


class AnchoredClock:
    """Store time, as every process with the same anchor reads it."""

    def __init__(self, anchor: Anchor, host: Host = HOST) -> None:
        self.anchor = anchor
        boot_us, shift_us = host.boot_us, anchor.wall_us - anchor.boot_us - host.namespace_us()
        shift_ns = 1000 * shift_us
        # On this very host one call instead of three: every command asks, and it is noticed.
        self.now_us: Callable[[], int] = (lambda: (boot_ns() + shift_ns) // 1000) if host is HOST else (lambda: boot_us() + shift_us)
        self.now_ns: Callable[[], int] = (lambda: boot_ns() + shift_ns) if host is HOST else (lambda: 1000 * (boot_us() + shift_us))
        self._wall_us = host.wall_us

    def wall_offset_us(self) -> int:
        """Return what to add to a moment of the store for people to recognise it."""
        return self._wall_us() - self.now_us()


class SystemClock:
    """Store time of one process alone, for the memory store: it counts from the boot, since no other process has to agree."""

    def __init__(self, host: Host = HOST) -> None:
        self._wall_us = host.wall_us
        self.now_us: Callable[[], int] = host.boot_us
        self.now_ns: Callable[[], int] = boot_ns if host is HOST else lambda: 1000 * host.boot_us()

    def wall_offset_us(self) -> int:
        """Return what to add to a moment of the store for people to recognise it."""
        return self._wall_us() - self.now_us()

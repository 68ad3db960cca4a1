"""The signals that stop a worker, whichever thread they interrupt and whatever the main thread does at that moment."""

import subprocess
import sys

import pytest

BEGINNING = """
import os, signal, socket, threading
from holdfast.workers.signals import stop_signals

told = threading.Semaphore(0)
"""

# The main thread sleeps, and the signal interrupts another one: nothing tells Python to run a handler.
IN_ANOTHER_THREAD = """
main, sleeps = threading.get_native_id(), threading.Event()

def is_asleep():
    return open(f"/proc/self/task/{main}/stat").read().rpartition(")")[2].split()[0] == "S"

def signal_oneself():
    sleeps.wait()
    # It may sleep because this thread runs: not as often as this thread reads, and so lets it run.
    while not all(is_asleep() for _ in range(100)):
        pass
    signal.pthread_kill(threading.get_ident(), signal.SIGTERM)

with stop_signals(told.release):
    threading.Thread(target=signal_oneself, daemon=True).start()
    sleeps.set()
    told.acquire()
"""

TWICE = """
with stop_signals(told.release):
    for _ in range(2):
        os.kill(os.getpid(), signal.SIGTERM)
        told.acquire()
assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
assert signal.set_wakeup_fd(-1) == -1
"""

IN_A_CHILD = """
with stop_signals(told.release):
    if (child := os.fork()) == 0:
        os.kill(os.getpid(), signal.SIGTERM)
        threading.Event().wait()
    assert os.waitpid(child, 0)[1] == signal.SIGTERM
assert not told.acquire(blocking=False)
"""

PASSED_ON = """
hears, tells = socket.socketpair()
tells.setblocking(False)
signal.set_wakeup_fd(tells.fileno())
with stop_signals(told.release):
    os.kill(os.getpid(), signal.SIGTERM)
    told.acquire()
    assert hears.recv(1) == bytes([signal.SIGTERM])
assert signal.set_wakeup_fd(-1) == tells.fileno()
"""


@pytest.mark.parametrize(
    "program",
    [
        pytest.param(IN_ANOTHER_THREAD, id="that-interrupted-another-thread"),
        pytest.param(TWICE, id="that-comes-twice"),
        pytest.param(IN_A_CHILD, id="of-a-child-is-its-own"),
        pytest.param(PASSED_ON, id="that-another-listens-to"),
    ],
)
def test_a_signal_stops_once_and_leaves_all_as_it_was(program: str) -> None:
    subprocess.run([sys.executable, "-c", BEGINNING + program], check=True, timeout=60)

"""A site whose web processes and workers are killed; and what must hold afterwards."""

import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

ROOT = Path(__file__).parents[3]

WEB = """
import django
django.setup()
from django.test import Client
client = Client()
while True:
    print(client.get("/order/?item=paper").content.decode(), flush=True)
"""

COUNTS = """
import django
django.setup()
from django.core.management import call_command
from holdfast import Dict, Queue
from holdfast.integrations.django.compat import task_backends
from tests.django_site.models import Order
client = task_backends["default"].place.client
queue = Queue("default", client=client)
while queue.stats().total:
    # The leases of the killed workers end soon. What was in the hands of three of them is a dead letter, which is not lost.
    queue.redrive()
    call_command("holdfast_worker", until_empty=True, concurrency=4, queues="default", verbosity=0)
packed = Order.objects.filter(packed=True).count()
print(Order.objects.count(), packed, Dict("default-django", client=client).length(), queue.stats().total)
"""


class Site:
    """A site on a database, as Django's settings say it, and the processes that use it."""

    def __init__(self, database: Mapping[str, Any]) -> None:
        self.settings = {
            **os.environ,
            "SITE_DB": json.dumps(database),
            "DJANGO_SETTINGS_MODULE": "tests.django_site.settings",
            "PYTHONPATH": str(ROOT),
        }
        self.run("-m", "django", "migrate", "--run-syncdb", "--verbosity", "0")

    def run(self, *arguments: str) -> str:
        answer = subprocess.run([sys.executable, *arguments], cwd=ROOT, env=self.settings, check=True, stdout=subprocess.PIPE, text=True)
        return answer.stdout

    def start(self, *arguments: str) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            [sys.executable, *arguments], cwd=ROOT, env=self.settings, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )

    def worker(self) -> "subprocess.Popen[str]":
        return self.start("-m", "django", "holdfast_worker", "--queues", "default", "--lease-s", "5", "--verbosity", "0")

    def counts(self) -> tuple[int, int, int, int]:
        """Orders, packed orders, jobs that ended well, jobs that are left, once a worker has found nothing more to do."""
        orders, packed, done, left = self.run("-c", COUNTS).split()
        return int(orders), int(packed), int(done), int(left)


def kill(process: "subprocess.Popen[str]") -> None:
    process.send_signal(signal.SIGKILL)
    process.wait()
    if process.stdout is not None:
        process.stdout.close()


def order_under_kills(site: Site, *, requests: int, rounds: int, seed: int) -> int:
    """Order with web processes that are killed after a random number of answers, each time with a worker; how many orders were answered."""
    chance = random.Random(seed)
    answered = 0
    for number in range(rounds):
        web, worker = site.start("-c", WEB), site.worker()
        kill_worker_at = chance.randrange(1, 2 * requests // rounds)
        for count in range(chance.randrange(1, 2 * requests // rounds)):
            if not _answer(web.stdout):
                raise AssertionError(f"the web process of round {number} ended by itself")
            answered += 1
            if count == kill_worker_at:
                kill(worker)
        kill(web)
        kill(worker)
    return answered


def _answer(stream: "IO[str] | None") -> str:
    return "" if stream is None else stream.readline()

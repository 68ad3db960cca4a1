"""`manage.py holdfast_worker`: runs the jobs of a backend."""

import logging
from argparse import ArgumentParser
from typing import Any

from django.core.exceptions import ImproperlyConfigured
from django.core.management.base import BaseCommand, CommandError
from django.utils.autoreload import run_with_reloader

from holdfast.errors import HoldfastError
from holdfast.integrations.django.running import import_tasks, our_backend, tasks_of


class Command(BaseCommand):
    """The command."""

    help = "Run the jobs of a HoldfastBackend until SIGTERM or Ctrl-C; jobs may then finish, the rest is given back."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the arguments."""
        parser.add_argument("--backend", default="default", help="The alias in TASKS.")
        parser.add_argument("--queues", help="Queues separated by commas, the first before the others; by default all, with equal shares.")
        parser.add_argument("--concurrency", type=int, default=4, help="How many jobs run at once; by default 4.")
        parser.add_argument("--lease-s", type=float, default=60.0, help="How long after the death of a worker its jobs are run again.")
        parser.add_argument("--until-empty", action="store_true", help="End when nothing is due and nothing runs.")
        parser.add_argument("--max-jobs", type=int, help="End after so many jobs: a process manager then starts a fresh process.")
        parser.add_argument("--reload", action="store_true", help="Start again when the code changes, for development.")

    def handle(self, *args: Any, **options: Any) -> None:
        """Run it."""
        del args
        if not logging.getLogger("holdfast").hasHandlers():
            logging.basicConfig(
                level=logging.INFO if options["verbosity"] else logging.WARNING, format="%(asctime)s %(levelname)s %(message)s"
            )
        if options["reload"]:
            run_with_reloader(self._run, **options)
        else:
            self._run(**options)

    def _run(self, *, backend: str, queues: str | None, max_jobs: int | None, until_empty: bool, reload: bool, **options: Any) -> None:
        try:
            ours = our_backend(backend)
            import_tasks(ours)
            chosen = queues.split(",") if queues else dict.fromkeys(sorted(ours.queues), 1.0)
            # Under the reloader the work is done beside the main thread, which alone may be asked about signals.
            tasks_of(ours).run(
                queues=chosen,
                concurrency=options["concurrency"],
                lease_s=options["lease_s"],
                until_empty=until_empty,
                max_jobs=max_jobs,
                signals=not reload,
            )
        except (HoldfastError, ImproperlyConfigured, ValueError) as error:
            raise CommandError(str(error)) from error

"""`celery.utils.log`."""

import logging


def get_task_logger(name: str) -> logging.Logger:
    """A logger for tasks."""
    return logging.getLogger(name)

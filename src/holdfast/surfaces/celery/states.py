"""`celery.states`: the states of a task, as `AsyncResult.state` says them."""

from typing import Final

PENDING: Final = "PENDING"
RECEIVED: Final = "RECEIVED"
STARTED: Final = "STARTED"
SUCCESS: Final = "SUCCESS"
FAILURE: Final = "FAILURE"
REVOKED: Final = "REVOKED"
REJECTED: Final = "REJECTED"
RETRY: Final = "RETRY"
IGNORED: Final = "IGNORED"

READY_STATES: Final = frozenset({SUCCESS, FAILURE, REVOKED})
UNREADY_STATES: Final = frozenset({PENDING, RECEIVED, STARTED, REJECTED, RETRY})
EXCEPTION_STATES: Final = frozenset({RETRY, FAILURE, REVOKED})
PROPAGATE_STATES: Final = frozenset({FAILURE, REVOKED})
ALL_STATES: Final = READY_STATES | UNREADY_STATES

"""What sentinel does wrong, or a careless surface for it would."""

from typing import Any

from msgspec import structs

from holdfast.holding.hold import Hold
from holdfast.surfaces import sentinel
from tests.surfaces.broken.fault import Fault, instead
from tests.surfaces.sentinel import test_surface


def committing_all(original: Any) -> Any:
    def acquire(conn: Any, *args: Any, **options: Any) -> Any:
        answer = original(conn, *args, **options)
        conn.commit()
        return answer

    return acquire


def of_one_token(original: Any) -> Any:
    return lambda conn, *args, **options: structs.replace(original(conn, *args, **options), fencing_token=1)


FAULTS = [
    Fault(
        "the caller's transaction is committed",
        sentinel,
        "acquire",
        committing_all,
        test_surface.test_an_open_transaction_is_never_committed,
    ),
    Fault("tokens do not grow", sentinel, "acquire", of_one_token, test_surface.test_tokens_grow_and_owners_differ_from_grant_to_grant),
    Fault(
        "a lease is valid until somebody says otherwise",
        Hold,
        "lost",
        instead(property(lambda _: False)),
        test_surface.test_without_a_heartbeat_it_turns_invalid_in_time,
    ),
]

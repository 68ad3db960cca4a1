"""Many who claim at once, each over a connection of its own."""

from collections.abc import Callable

import pytest

from holdfast.commands import Claim, Settle
from holdfast.connect import connect
from holdfast.testing.conformance.asking import JOBS, put, stats
from holdfast.testing.conformance.threads import together
from holdfast.testing.histories import Delivery, leased_violations
from tests.postgres import own_postgres_url
from tests.servers import own_redis_url

CLAIMERS = 32
MESSAGES = 1_600


@pytest.mark.parametrize("own_url", [own_redis_url, own_postgres_url], ids=["redis", "postgres"])
def test_of_32_claimers_no_two_hold_one_message_and_tokens_only_grow(own_url: Callable[[], str]) -> None:
    url = own_url()
    store = connect(url)
    names = [str(number) for number in range(MESSAGES)]
    put(store, *names)

    def work(name: str) -> list[Delivery]:
        mine = connect(url)
        log = []
        while found := mine.execute(Claim(JOBS, name, 600.0, 3)).messages:
            held = mine.execute(Settle([message.receipt for message in found])).held
            log += [Delivery(m.id, m.holder, m.token, m.since, m.until, "done", accepted) for m, accepted in zip(found, held, strict=True)]
        mine.close()
        return log

    logs = together(*[lambda name=str(name): work(name) for name in range(CLAIMERS)])
    history = [delivery for log in logs for delivery in log]
    assert leased_violations(history, put=names) == []
    for log in logs:
        tokens = [delivery.token for delivery in log]
        assert tokens == sorted(tokens), "the tokens of one claimer went back"
    assert stats(store).total == 0
    store.close()

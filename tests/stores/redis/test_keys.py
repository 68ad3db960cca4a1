"""Every key of a queue or dict has one hash tag, so that a cluster would keep it in one place whatever its name is."""

import pytest
from redis import Redis
from redis.crc import key_slot

from holdfast.connect import connect
from holdfast.ids import new_id
from holdfast.testing.conformance.asking import claim, grant, move, put, settle, write
from tests.servers import shared_redis


@pytest.mark.parametrize("name", ["jobs", "{", "}", "{}", "a}b{c", "{user}:1", "100%", "%7B"])
def test_all_keys_of_a_queue_and_of_a_dict_are_in_one_slot(name: str) -> None:
    prefix = f"slots-{new_id()}"
    store = connect(f"{shared_redis()}?prefix={prefix}")
    put(store, "first", "copy", queue=name, key='"k"')
    put(store, *map(str, range(9)), queue=name)
    put(store, "late", queue=name, delay_s=60, start_within_s=60, metadata=None)
    held = claim(store, 6, queue=name)
    settle(store, held[:2], to="dead")
    settle(store, held[2:4], to="ready")
    settle(store, held[4:5])
    move(store, "ready", queue=name, limit=1)
    write(store, "key", 1, dict=name, ttl_s=60, fence=held[0].token)
    grant(store, "key", dict=name)
    store.close()
    with Redis.from_url(shared_redis()) as redis:
        keys = [key for key in redis.scan_iter(f"{prefix}:*", 1_000) if b"{" in key]
    for kind in (b":{queue:", b":{dict:"):
        of_kind = [key for key in keys if kind in key]
        assert len(of_kind) > 5
        assert len({key_slot(key) for key in of_kind}) == 1

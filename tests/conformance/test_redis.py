"""The Redis store keeps the contract, for threads and for tasks."""

import pytest

from holdfast.testing.conformance import (
    CopyConformance,
    FaceConformance,
    FileConformance,
    ForTasks,
    GroupCopyConformance,
    PolicyConformances,
    StoreConformance,
    StoreFactory,
)
from tests.conformance.factories import RedisFactory
from tests.servers import own_redis_url


class TestRedis(StoreConformance, PolicyConformances, GroupCopyConformance, CopyConformance, FileConformance):
    @pytest.fixture
    def factory(self) -> StoreFactory:
        return RedisFactory(own_redis_url())


class TestRedisForTasks(FaceConformance):
    @pytest.fixture
    def factory(self) -> StoreFactory:
        return ForTasks(RedisFactory(own_redis_url()))


@pytest.mark.verify
class TestAllOfRedisForTasks(StoreConformance, PolicyConformances, GroupCopyConformance, CopyConformance, FileConformance):
    @pytest.fixture
    def factory(self) -> StoreFactory:
        return ForTasks(RedisFactory(own_redis_url()))

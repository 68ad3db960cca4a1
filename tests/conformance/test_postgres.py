"""The PostgreSQL store keeps the contract, for threads and for tasks."""

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
from tests.conformance.factories import PostgresFactory


class TestPostgres(StoreConformance, PolicyConformances, GroupCopyConformance, CopyConformance, FileConformance):
    @pytest.fixture
    def factory(self, postgres_url: str) -> StoreFactory:
        return PostgresFactory(postgres_url)


class TestPostgresForTasks(FaceConformance):
    @pytest.fixture
    def factory(self, postgres_url: str) -> StoreFactory:
        return ForTasks(PostgresFactory(postgres_url))


@pytest.mark.verify
class TestAllOfPostgresForTasks(StoreConformance, PolicyConformances, GroupCopyConformance, CopyConformance, FileConformance):
    @pytest.fixture
    def factory(self, postgres_url: str) -> StoreFactory:
        return ForTasks(PostgresFactory(postgres_url))

"""The PostgreSQL store keeps the contract, for threads and for tasks."""

import pytest

from holdfast.testing.conformance import CopyConformance, FileConformance, ForTasks, StoreConformance, StoreFactory
from tests.conformance.factories import PostgresFactory


class TestPostgres(StoreConformance, CopyConformance, FileConformance):
    @pytest.fixture
    def factory(self, postgres_url: str) -> StoreFactory:
        return PostgresFactory(postgres_url)


class TestPostgresForTasks(StoreConformance, CopyConformance, FileConformance):
    @pytest.fixture
    def factory(self, postgres_url: str) -> StoreFactory:
        return ForTasks(PostgresFactory(postgres_url))

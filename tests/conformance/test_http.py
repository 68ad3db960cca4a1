"""Stores behind a server keep the contract over a real socket: in every run for threads on one store and for tasks on another."""

from pathlib import Path

import pytest

from holdfast.testing.conformance import (
    CopyConformance,
    FaceConformance,
    FileConformance,
    ForTasks,
    PolicyConformances,
    StoreConformance,
    StoreFactory,
)
from tests.conformance.factories import HttpFactory, MemoryFactory, PostgresFactory, SqliteFactory, TenantFactory


class TestHttpOverMemory(StoreConformance, PolicyConformances, CopyConformance):
    @pytest.fixture
    def factory(self) -> StoreFactory:
        return HttpFactory(MemoryFactory())


@pytest.mark.verify
class TestHttpInANamespace(StoreConformance, PolicyConformances):
    @pytest.fixture
    def factory(self) -> StoreFactory:
        return TenantFactory(MemoryFactory())


@pytest.mark.verify
class TestHttpForTasksOverMemory(StoreConformance, CopyConformance):
    @pytest.fixture
    def factory(self) -> StoreFactory:
        return ForTasks(HttpFactory(MemoryFactory()))


@pytest.mark.verify
class TestHttpOverSqlite(StoreConformance, CopyConformance, FileConformance):
    @pytest.fixture
    def factory(self, tmp_path: Path) -> StoreFactory:
        return HttpFactory(SqliteFactory(tmp_path))


class TestHttpForTasksOverSqlite(FaceConformance, CopyConformance, FileConformance):
    @pytest.fixture
    def factory(self, tmp_path: Path) -> StoreFactory:
        return ForTasks(HttpFactory(SqliteFactory(tmp_path)))


@pytest.mark.verify
class TestAllOfHttpForTasksOverSqlite(StoreConformance, CopyConformance, FileConformance):
    @pytest.fixture
    def factory(self, tmp_path: Path) -> StoreFactory:
        return ForTasks(HttpFactory(SqliteFactory(tmp_path)))


class TestHttpOverPostgres(FaceConformance, CopyConformance, FileConformance):
    @pytest.fixture
    def factory(self, postgres_url: str) -> StoreFactory:
        return HttpFactory(PostgresFactory(postgres_url))


@pytest.mark.verify
class TestAllOfHttpOverPostgres(StoreConformance):
    @pytest.fixture
    def factory(self, postgres_url: str) -> StoreFactory:
        return HttpFactory(PostgresFactory(postgres_url))


@pytest.mark.verify
class TestAllOfHttpForTasksOverPostgres(StoreConformance, CopyConformance, FileConformance):
    @pytest.fixture
    def factory(self, postgres_url: str) -> StoreFactory:
        return ForTasks(HttpFactory(PostgresFactory(postgres_url)))

"""Holdfast in a real FastAPI and a real Starlette application."""

import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated, Any

import pytest
from fastapi import Depends, FastAPI
from fastapi.testclient import TestClient
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Mount, Route

from holdfast import ControlPlaneClient, Queue, Worker, worker
from holdfast.aio import Dict as AsyncDict
from holdfast.aio import Queue as AsyncQueue
from holdfast.integrations.starlette import HoldfastState, dict_named, holdfast_client, holdfast_lifespan, queue_named

Jobs = Annotated[AsyncQueue[Any], Depends(queue_named("jobs"))]
Totals = Annotated[AsyncDict[Any], Depends(dict_named("totals"))]
Client = Annotated[ControlPlaneClient, Depends(holdfast_client)]


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/jobs.db?durability=process"


def fastapi_app(url: str, *workers: Worker[Any, Any, Any]) -> FastAPI:
    app = FastAPI(lifespan=holdfast_lifespan(url, workers=workers))

    @app.post("/jobs")
    async def put(value: int, jobs: Jobs) -> str:
        return await jobs.put(value)

    @app.get("/totals/{key}")
    async def total(key: str, totals: Totals) -> int | None:
        found: int | None = await totals.get(key)
        return found

    @app.get("/length")
    def length(client: Client) -> int:
        return Queue[int]("jobs", client=client).length()

    return app


def test_a_request_puts_a_job_and_a_worker_of_the_application_runs_it(url: str) -> None:
    done = threading.Event()

    @worker("jobs")
    async def add(value: int, job: Any) -> None:
        job.write("totals", "sum", value)
        done.set()

    with TestClient(fastapi_app(url, add)) as http:
        assert http.post("/jobs", params={"value": 7}).status_code == 200
        assert done.wait(60)
        assert http.get("/length").status_code == 200
    with TestClient(fastapi_app(url)) as http:
        assert http.get("/totals/sum").json() == 7
        assert http.get("/length").json() == 0


def test_the_end_of_the_application_gives_back_what_runs_and_closes_the_client(url: str) -> None:
    began = threading.Event()
    clients: list[ControlPlaneClient] = []

    @worker("jobs", grace_s=0.0, max_attempts=1)
    async def hang(value: int) -> None:
        import asyncio

        began.set()
        await asyncio.Event().wait()

    app = fastapi_app(url, hang)

    @app.get("/client")
    async def keep(client: Client) -> None:
        clients.append(client)

    with TestClient(app) as http:
        http.post("/jobs", params={"value": 1})
        http.get("/client")
        assert began.wait(60)
    with ControlPlaneClient(url) as client:
        (message,) = Queue[int]("jobs", client=client).browse()
        assert (message.state, message.failures) == ("ready", 0)
        assert Worker.list(client=client) == []
    from holdfast import Closed

    with pytest.raises(Closed):
        Queue[int]("jobs", client=clients[0]).length()


def test_starlette_and_what_is_mounted_in_it_share_the_client_of_a_wrapped_lifespan(url: str) -> None:
    async def put(request: Request) -> JSONResponse:
        await queue_named("jobs")(request).put(1)
        return JSONResponse({"length": await queue_named("jobs")(request).length()})

    inner = holdfast_lifespan(url)

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[HoldfastState]:
        async with inner(app) as state:
            yield state

    below = Starlette(routes=[Route("/put", put)])
    with TestClient(Starlette(routes=[Mount("/below", app=below)], lifespan=lifespan)) as http:
        assert http.get("/below/put").json() == {"length": 1}


def test_an_application_without_the_lifespan_is_told_what_is_missing() -> None:
    app = FastAPI()

    @app.get("/")
    async def put(client: Client) -> None:
        raise AssertionError("not reached")

    with TestClient(app) as http, pytest.raises(RuntimeError, match="lifespan=holdfast_lifespan"):
        http.get("/")

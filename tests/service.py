"""A service under test: started as the command line starts it, asked over HTTP."""

import asyncio
import contextlib
import secrets
from collections.abc import AsyncIterator
from typing import Any

import httpx
import uvicorn
from pymilvus import AsyncMilvusClient

from api.app import create_app, running
from api.cli import Server
from api.context import Cairn
from api.settings import Settings


class Refused(Exception):
    """The service answered with errors."""

    def __init__(self, errors: list[dict[str, Any]]) -> None:
        super().__init__("; ".join(error["message"] for error in errors))
        self.errors = errors
        self.code: str = errors[0]["extensions"]["code"]
        self.fields = [one["field"] for error in errors for one in error["extensions"].get("problems", [])]


class Service:
    def __init__(self, cairn: Cairn, http: httpx.AsyncClient) -> None:
        self.cairn = cairn
        self.http = http

    async def ask(self, query: str, /, **variables: Any) -> dict[str, Any]:
        """The data of an answer without errors; otherwise Refused."""
        answer = (await self.http.post("/graphql", json={"query": query, "variables": variables})).json()
        if answer.get("errors"):
            raise Refused(answer["errors"])
        data: dict[str, Any] = answer["data"]
        return data

    async def remember(self, conv_id: str = "c1", **parts: Any) -> dict[str, Any]:
        data = await self.ask(REMEMBER, input={"convId": conv_id, **parts})
        answer: dict[str, Any] = data["remember"]
        return answer

    async def integrity(self) -> dict[str, Any]:
        data = await self.ask(INTEGRITY)
        report: dict[str, Any] = data["integrity"]
        return report

    async def settled(self, seconds: float = 60) -> dict[str, Any]:
        """The integrity report once nothing is pending, also what the service writes by itself meanwhile."""
        for _ in range(int(seconds * 20)):
            if (await self.ask("{ status { pending } }"))["status"]["pending"] == 0:
                report = await self.integrity()
                if report["pending"] == 0:
                    return report
            await asyncio.sleep(0.05)
        return await self.integrity()


REMEMBER = """mutation($input: RememberInput!) { remember(input: $input) {
  created updated unchanged
  memories { id type text tags convId ingestionTime updateTime embeddingId reasoningPointerIds }
  edges { id text weight band tags createdTime source { id } target { id } }
  lessons { rbId title keyLesson linkNodes version outcome namespace scope status confidence }
} }"""
INTEGRITY = """{ integrity { nodes edges lessons nodeVectors lessonVectors danglingPointers danglingLinks oneSidedLinks
  missingVectors orphanVectors staleVectors pending ok } }"""


@contextlib.asynccontextmanager
async def serving(settings: Settings) -> AsyncIterator[Service]:
    async with _own_database(settings) as settings, running(settings) as cairn:
        config = uvicorn.Config(
            create_app(cairn), host=settings.host, port=settings.port, log_level="warning", lifespan="off"
        )
        server = Server(config)
        task = asyncio.create_task(server.serve())
        while not server.started:
            assert not task.done()
            await asyncio.sleep(0.01)
        try:
            async with httpx.AsyncClient(base_url=f"http://{settings.host}:{settings.port}", timeout=60) as http:
                yield Service(cairn, http)
        finally:
            server.should_exit = True
            await task


@contextlib.asynccontextmanager
async def _own_database(settings: Settings) -> AsyncIterator[Settings]:
    """On a Milvus server: a database of its own, dropped afterwards. Milvus Lite: a file of its own is enough."""
    if settings.milvus_uri is None or settings.milvus_database != "default":
        yield settings
        return
    name = f"cairn_test_{secrets.token_hex(4)}"
    token = settings.milvus_token.get_secret_value()
    client = AsyncMilvusClient(uri=settings.milvus_uri, token=token)
    await client.create_database(name)
    try:
        yield settings.model_copy(update={"milvus_database": name})
    finally:
        await client.use_database(name)
        for collection in await client.list_collections():
            await client.drop_collection(collection)
        await client.drop_database(name)
        await client.close()

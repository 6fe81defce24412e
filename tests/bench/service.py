"""A service of its own for a measurement: started by its command line, with new data, stopped afterwards."""

import asyncio
import contextlib
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import httpx
import psutil

from graph.queries import CYPHER
from tests.ports import free_port

IDLE_SECONDS = 2.0


class Measured:
    """A running service: its address, its folder, its processes."""

    def __init__(self, process: subprocess.Popen[bytes], http: httpx.AsyncClient, data: Path, bolt_port: int) -> None:
        self._process = process
        self.http = http
        self._plain = HTTPConnection(http.base_url.host, http.base_url.port)
        self._asked = time.monotonic()
        self.data = data
        self.bolt_uri = f"bolt://127.0.0.1:{bolt_port}"

    @property
    def password(self) -> str:
        return (self.data / "neo4j" / "password").read_text().strip()

    async def ask(self, query: str, /, **variables: Any) -> dict[str, Any]:
        return _data((await self.http.post("/graphql", json={"query": query, "variables": variables})).json())

    async def ask_alone(self, query: str, /, **variables: Any) -> dict[str, Any]:
        """For the time of one call by itself: httpx takes some milliseconds of its own, Python's plain client hardly any."""
        body = json.dumps({"query": query, "variables": variables})
        if time.monotonic() - self._asked > IDLE_SECONDS:
            self._plain.close()  # the service may have done so; the next request opens it again
        self._plain.request("POST", "/graphql", body, {"Content-Type": "application/json"})
        answer = json.loads(self._plain.getresponse().read())
        self._asked = time.monotonic()
        return _data(answer)

    def memory(self) -> dict[str, float]:
        """Megabytes in use by each process."""
        used = {"service": psutil.Process(self._process.pid).memory_info().rss / 1e6}
        for child in psutil.Process(self._process.pid).children(recursive=True):
            name = "Neo4j" if "java" in child.name() else "Milvus Lite"
            used[name] = used.get(name, 0) + child.memory_info().rss / 1e6
        return used

    def processor(self) -> float:
        """Seconds of processor that its processes have used."""
        service = psutil.Process(self._process.pid)
        return sum(sum(one.cpu_times()[:2]) for one in (service, *service.children(recursive=True)))


def _data(answer: dict[str, Any]) -> dict[str, Any]:
    if answer.get("errors"):
        raise RuntimeError(answer["errors"][:2])
    data: dict[str, Any] = answer["data"]
    return data


@contextlib.contextmanager
def new_folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="cairn-bench-") as folder:
        yield Path(folder)


@contextlib.asynccontextmanager
async def measured(
    embedder: str, more: dict[str, str] | None = None, folder: Path | None = None
) -> AsyncIterator[Measured]:
    """With new data that is gone afterwards, or with what is in a folder."""
    with new_folder() if folder is None else contextlib.nullcontext(folder) as folder:
        port, bolt, http_port = free_port(), free_port(), free_port()
        settings = {
            "CAIRN_DATA": str(folder),
            "CAIRN_PORT": str(port),
            "CAIRN_NEO4J_BOLT_PORT": str(bolt),
            "CAIRN_NEO4J_HTTP_PORT": str(http_port),
            "CAIRN_EMBEDDER": embedder,
            **(more or {}),
        }
        process = subprocess.Popen(
            [sys.executable, "-m", "api", "run"],
            cwd=CYPHER.parent,
            env={**os.environ, **settings},
            stderr=subprocess.DEVNULL,
        )
        try:
            limits = httpx.Limits(max_connections=32)
            async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=300, limits=limits) as http:
                await _until_up(process, http)
                yield Measured(process, http, folder, bolt)
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait()


async def _until_up(process: subprocess.Popen[bytes], http: httpx.AsyncClient) -> None:
    for _ in range(3_000):
        with contextlib.suppress(httpx.TransportError):
            if (await http.get("/health")).status_code == 200:
                return
        if process.poll() is not None:
            raise RuntimeError("the service did not start: run `make run` to see why")
        await asyncio.sleep(0.1)
    raise RuntimeError("the service did not start within five minutes")


Call = Callable[[int], Awaitable[Any]]


async def times(call: Call, count: int, warm: int = 5) -> tuple[float, float]:
    """p50 and p95 of a call in milliseconds, after a few that do not count."""
    ((middle, high),) = await times_in_turn([call], count, warm)
    return middle, high


async def times_in_turn(
    calls: Sequence[Call], count: int, warm: int = 5, pause: float = 0
) -> list[tuple[float, float]]:
    """The same for several calls, one after the other in each round: whatever the machine is busy with, and however far
    Java has compiled what they run, is the same for all of them. `pause`: seconds before each."""
    taken: list[list[float]] = [[] for _ in calls]
    for number in range(count + warm):
        for call, own in zip(calls, taken, strict=True):
            await asyncio.sleep(pause)
            start = time.perf_counter()
            await call(number)
            if number >= warm:
                own.append((time.perf_counter() - start) * 1000)
    return [(statistics.median(own), sorted(own)[int(len(own) * 0.95)]) for own in taken]

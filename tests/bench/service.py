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
MOST_ROUNDS = 3  # for each that is to count
LEAST_QUIET = 20  # rounds that were left alone, to say anything by them


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
    Java has compiled what they run, is the same for all of them. `pause`: seconds before each. Rounds in which the host
    took a processor away are made again, up to three times as many in all."""
    rounds: list[Round] = []
    for number in range(warm + MOST_ROUNDS * count):
        before, taken = stolen(), []
        for call in calls:
            await asyncio.sleep(pause)
            start = time.perf_counter()
            await call(number)
            taken.append((time.perf_counter() - start) * 1000)
        if number >= warm:
            rounds.append((stolen() - before, taken))
        if sum(lost == 0 for lost, _ in rounds) == count:
            break
    _, kept = undisturbed(rounds)
    return [(statistics.median(own), sorted(own)[int(len(own) * 0.95)]) for own in zip(*kept, strict=True)]


# How much of a processor the host took away meanwhile (in ticks), and how long each call took.
Round = tuple[int, list[float]]


def stolen() -> int:
    """Hundredths of a second in which a program of ours was ready to run and the host gave its processor to others. A call
    on two processors suffers more by that than one on a single one, so a ratio of the two says something about the
    neighbours then. Always 0 where a system does not tell."""
    try:
        with open("/proc/stat") as file:
            return int(file.readline().split()[8])
    except (OSError, IndexError):
        return 0


def undisturbed(rounds: Sequence[Round]) -> tuple[int, list[list[float]]]:
    """How many rounds were left alone, and these rounds; all of them, where too few were."""
    quiet = [taken for lost, taken in rounds if lost == 0]
    return len(quiet), quiet if len(quiet) >= min(LEAST_QUIET, len(rounds)) else [taken for _, taken in rounds]

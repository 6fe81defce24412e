"""Sessions and death: a service killed at every step, and two services on one queue, one of them killed.

The usual run tries every second step of a session that teaches by a model, and every fifth of one that supports by the
rules; `CAIRN_TEST_EVERY_DEATH=1` tries every step of each by both."""

import asyncio
import itertools
import json
import os
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from api.settings import Settings
from graph.queries import CYPHER
from tests.bank.chat import ChatServer, completion, lessons, record_of
from tests.crash.dying import EVERY_DEATH
from tests.crash.test_two_services import REPORT, service_process
from tests.milvus import MilvusServer

ROOT = CYPHER.parent
SERIES = 4


def card(body: dict[str, Any]) -> tuple[int, Any]:
    lesson = {"title": "Card", "when_to_use": "A refund.", "content": "Refund to the card; cash is refused.", "tags": [], "outcome": "SUCCESS", "steps": [1, 2]}  # fmt: skip
    return 200, completion(lessons(lesson))


@pytest.fixture
def chat() -> Iterator[ChatServer]:
    chat = ChatServer()
    chat.always = card
    chat.start()
    yield chat
    chat.stop()


@pytest.mark.parametrize(
    ("distiller", "way", "usual"),
    [
        ("openai", "teaching", 4),
        ("rules", "supporting", 8),
        ("rules", "teaching", None),
        ("openai", "supporting", None),
    ],
)
async def test_death_at_every_step_of_a_sessions_way(
    settings: Settings, chat: ChatServer, distiller: str, way: str, usual: int | None
) -> None:
    """Wherever the process dies between `submitSession` and the lesson in the index: handed in again with its key, the
    session is there once, ends DONE, and has taught one lesson, stored and found once, or supported it once; both stores
    agree. `usual`: every how manieth step is tried in the usual run."""
    if usual is None and EVERY_DEATH not in os.environ:
        pytest.skip("only where every death is asked for")
    every = 1 if usual is None or EVERY_DEATH in os.environ else usual
    side_by_side = SERIES if every <= 2 else 1
    first_steps = [(every + 1) // 2 + every * place for place in range(side_by_side)]
    strides = every * side_by_side
    series = await asyncio.gather(*(_series(settings, chat, distiller, way, at, strides) for at in first_steps))
    whole = {trials[-1]["whole"]["seen"] for trials in series}
    assert len(whole) == 1
    (seen,) = whole
    assert json.loads(seen)["session"]["state"] == "DONE"
    (lesson,) = json.loads(seen)["lessons"]["nodes"]
    assert len(lesson["signals"]["nodes"]) == (way == "supporting")
    assert len(json.loads(seen)["searchLessons"]) == 1
    deaths = 0
    for trials in series:
        for died, following in itertools.pairwise(trials):
            deaths += 1
            left = following["left"]
            assert (left["seen"], left["ok"]) == (seen, True), (f"died before step {died['at']}", left)
    assert deaths >= 18 // every
    print(f"{deaths} deaths")


async def _series(
    settings: Settings, chat: ChatServer, distiller: str, way: str, first: int, every: int
) -> list[dict[str, Any]]:
    name = f"{distiller}-{way}-{first}"
    own = settings.model_dump(mode="json", include={"neo4j_uri", "neo4j_user", "port"}) | {
        "neo4j_password": settings.neo4j_secret(),
        "tenant": f"{settings.tenant}-{name}",
        "data": str(settings.data / name),
        "embedder": "wordllama",
        "distiller": distiller,
        "distiller_base_url": chat.url,
        "worker_lease": 1,
    }
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.crash.dying_sessions", str(first), str(every), way),
        cwd=ROOT,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    output, _ = await process.communicate((json.dumps(own) + "\n").encode())
    trials = [json.loads(line) for line in output.splitlines() if line.startswith(b"{")]
    assert process.returncode == 0 and not any("error" in trial for trial in trials), trials[-1]
    return trials


SUBMIT = "mutation($input: SessionInput!) { submitSession(input: $input) { id } }"
SEEN = "query($id: ID!, $namespace: String!) { session(id: $id) { state attempts lessons { rbId } } lessons(filter: {namespace: $namespace}) { nodes { rbId } } }"


async def _ask(http: httpx.AsyncClient, query: str, **variables: Any) -> dict[str, Any]:
    answer = (await http.post("/graphql", json={"query": query, "variables": variables})).json()
    assert "errors" not in answer, answer
    data: dict[str, Any] = answer["data"]
    return data


async def _submit(http: httpx.AsyncClient, name: str) -> tuple[str, str]:
    input = {"convId": name, "namespace": name, "request": f"{name} asks for a refund.", "outcome": "SUCCESS", "steps": [{"action": "refund", "result": "done"}]}  # fmt: skip
    return name, (await _ask(http, SUBMIT, input=input))["submitSession"]["id"]


async def _ends(http: httpx.AsyncClient, sessions: list[tuple[str, str]]) -> list[dict[str, Any]]:
    for _ in range(300):
        found = await asyncio.gather(*(_ask(http, SEEN, id=id, namespace=name) for name, id in sessions))
        if all(one["session"]["state"] not in ("QUEUED", "RUNNING") for one in found):
            return found
        await asyncio.sleep(0.1)
    raise AssertionError(found)


async def test_two_services_share_the_queue(settings: Settings, tmp_path: Path, chat: ChatServer) -> None:
    """Twelve sessions and two processes: each is read by the model once and teaches one lesson. Then one process is
    killed with its hands full: the other one takes over, and still no session teaches twice."""
    milvus = MilvusServer(tmp_path)
    milvus.start()
    chat.pause = 0.1
    extra = {"CAIRN_DISTILLER": "openai", "CAIRN_DISTILLER_BASE_URL": chat.url, "CAIRN_WORKER_LEASE": "1"}
    try:
        async with (
            service_process(settings, milvus, tmp_path / "a", extra) as (one, _),
            service_process(settings, milvus, tmp_path / "b", extra) as (two, process),
        ):
            sessions = await asyncio.gather(*(_submit((one, two)[n % 2], f"calm{n}") for n in range(12)))
            ends = await _ends(two, sessions)
            assert all(end["session"]["attempts"] == 1 for end in ends)
            read = Counter(re.findall(r"calm\d+ asks", " ".join(record_of(call) for call in chat.calls)))
            assert read == {f"calm{n} asks": 1 for n in range(12)}
            chat.pause, many = 0.5, len(chat.calls)
            sessions += await asyncio.gather(*(_submit((one, two)[n % 2], f"killed{n}") for n in range(12)))
            while len(chat.calls) < many + 6:
                await asyncio.sleep(0.01)
            process.kill()
            ends = await _ends(one, sessions)
            assert {end["session"]["state"] for end in ends} == {"DONE"}
            assert all(len(end["lessons"]["nodes"]) == 1 for end in ends)
            assert any(end["session"]["attempts"] == 2 for end in ends)
            for _ in range(100):
                report = (await _ask(one, REPORT))["integrity"]
                if report["ok"]:
                    break
                await asyncio.sleep(0.2)
            assert report["ok"], report
    finally:
        milvus.stop()

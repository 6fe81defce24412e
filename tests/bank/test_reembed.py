"""Another embedder: the data is refused until it was indexed anew, by the command that the refusal names."""

import asyncio
import contextlib
import os
import pty
import re
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from api.app import create_app, running
from api.settings import Settings
from graph.errors import SetupError
from tests.service import Service, serving

ROOT = Path(__file__).parents[2]
MEMORIES = 150


@contextlib.asynccontextmanager
async def opened(settings: Settings) -> AsyncIterator[Service]:
    """A service that leaves its data where it is."""
    async with running(settings) as cairn:
        transport = httpx.ASGITransport(create_app(cairn))
        async with httpx.AsyncClient(transport=transport, base_url="http://cairn", timeout=60) as http:
            yield Service(cairn, http)


def environment_of(settings: Settings) -> dict[str, str]:
    own = {name: value for name, value in os.environ.items() if not name.startswith("CAIRN_")}
    return {
        **own,
        "CAIRN_DATA": str(settings.data),
        "CAIRN_TENANT": settings.tenant,
        "CAIRN_EMBEDDER": settings.embedder,
        "CAIRN_NEO4J_URI": settings.neo4j_uri or "",
        "CAIRN_NEO4J_USER": settings.neo4j_user,
        "CAIRN_NEO4J_PASSWORD": settings.neo4j_secret(),
    }


async def on_a_terminal(settings: Settings, command: str) -> tuple[int, str]:
    """Runs `python -m api …` on a terminal; its exit code and what it showed there."""
    ours, theirs = pty.openpty()
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "api", command, cwd=ROOT, env=environment_of(settings), stdout=theirs, stderr=theirs
    )
    os.close(theirs)
    shown = await asyncio.to_thread(_all_of, ours)
    return await process.wait(), shown


def _all_of(terminal: int) -> str:
    parts = []
    with contextlib.suppress(OSError):  # how a terminal says that the other side is gone
        while part := os.read(terminal, 4096):
            parts.append(part)
    os.close(terminal)
    return b"".join(parts).decode()


async def test_another_embedder_takes_the_command_that_reembeds(settings: Settings) -> None:
    """Opened with another embedder, the data is refused, and the message has both names and `make reembed`. That command
    shows how far it is and indexes everything; then the data opens with the new one, refuses the old, and is found."""
    before = settings.model_copy(update={"milvus_uri": None})
    after = before.model_copy(update={"embedder": "onnx"})
    async with opened(before) as cairn:
        events = [{"event": {"id": f"E{n}", "text": f"Delivery {n} arrived late."}} for n in range(MEMORIES - 1)]
        fire = {"event": {"id": "FIRE", "text": "A blaze destroyed the warehouse in May."}}
        lesson = {"rbId": "7", "keyLesson": "Insure the stock.", "contextToPrefer": "storage", "linkNodes": ["FIRE"]}
        await cairn.remember(memories=[*events, fire], lessons=[lesson])
        assert (await cairn.settled())["ok"]

    with pytest.raises(SetupError) as refused:
        async with running(after):
            pytest.fail("it must not start")
    for part in ("wordllama", "256", "onnx:bge-small-en-v1.5-q", "384", "CAIRN_EMBEDDER", "`make reembed`"):
        assert part in str(refused.value)

    code, shown = await on_a_terminal(after, "reembed")
    assert code == 0, shown
    assert re.search(rf"Indexing: \d+ of {MEMORIES + 1}", shown), shown
    assert f"{MEMORIES + 1} records are indexed with onnx:bge-small-en-v1.5-q (384 dimensions)" in shown

    with pytest.raises(SetupError, match="make reembed"):
        async with running(before):
            pytest.fail("it must not start")
    async with serving(after) as cairn:
        report = await cairn.settled()
        assert report["ok"], report
        assert (report["nodeVectors"], report["lessonVectors"]) == (MEMORIES, 1)
        found = await cairn.ask(
            '{ searchMemories(query: "fire damage to buildings", limit: 1) { memory { id } }'
            ' searchLessons(query: "insurance") { lesson { rbId } } status { embedder } }'
        )
        assert found["searchMemories"] == [{"memory": {"id": "FIRE"}}]
        assert found["searchLessons"] == [{"lesson": {"rbId": "7"}}]
        assert found["status"]["embedder"] == "onnx:bge-small-en-v1.5-q"


def test_the_command_is_in_the_makefile() -> None:
    """`make reembed` runs what was tried above."""
    assert re.search(r"^reembed:.*\n\t@exec .*python -m api reembed$", (ROOT / "Makefile").read_text(), re.MULTILINE)

"""Neo4j is killed under concurrent writes: nothing acknowledged is lost, calls fail fast, and the service goes on by itself."""

import asyncio
import os
import signal
import time
from collections.abc import Awaitable, Iterable
from dataclasses import replace
from typing import Any

import psutil
import pytest

import api.app
from api.app import neo4j_server
from api.settings import Settings
from graph.server import Neo4jServer
from tests.conftest import KEPT_PLANS
from tests.ports import free_port
from tests.service import Refused, Service, serving

# What a service has acknowledged: memories by their ids, each as it may be: its text and its lesson, or None: deleted. A change
# that was refused may have been done or not, so that there are two ways.
Acknowledged = dict[str, list[dict[str, Any] | None]]


CALLS = (
    '{ memory(id: "own0-1") { id } }',
    "{ memories(first: 5) { nodes { id } } }",
    '{ conversation(convId: "c1") { memories { id } } }',
    '{ searchMemories(query: "event") { memory { id } } }',
    '{ searchLessons(query: "kills") { lesson { rbId } } }',
    '{ recall(input: {query: "What event?"}) { id } }',
    '{ provenance(rbId: "10001") { traces { strength } } }',
    'mutation { linkLesson(rbId: "10001", nodeIds: ["own0-1"]) { rbId } }',
    'mutation { giveFeedback(rbId: "10001", helpful: true) { rbId } }',
    '{ paths(source: "own0-1", target: "own0-2") { score } }',
    "{ integrity { ok } }",
    "mutation { repair(dryRun: false) { ok } }",
    'mutation { submitSession(input: {convId: "s", request: "R.", outcome: SUCCESS, steps: [{action: "a"}], answer: "A."}) { id } }',
)


async def _write_until(
    cairn: Service, name: str, first: int, stop: asyncio.Event, acknowledged: Acknowledged, slowest: list[float]
) -> None:
    """Writes one memory with a lesson after the other, changes it, deletes every third, and notes what was acknowledged, and
    how long a refusal took."""
    ask = "mutation($id: ID!, $text: String!) { updateMemory(id: $id, patch: {text: $text}) { id } }"
    number = 0
    while not stop.is_set():
        number += 1
        key, rb_id, text = f"{name}-{number}", str(first + number), f"It became {name} {number}."
        lesson = {"rbId": rb_id, "keyLesson": f"Of {key}.", "contextToPrefer": "Kills.", "linkNodes": [key]}
        started = time.monotonic()
        try:
            await cairn.remember(memories=[{"event": {"id": key, "text": f"Event {key}."}}], lessons=[lesson])
            new, changed = ({"text": one, "lessons": [{"rbId": rb_id}]} for one in (f"Event {key}.", text))
            acknowledged[key] = [new, changed]
            started = time.monotonic()
            await cairn.ask(ask, id=key, text=text)
            acknowledged[key] = [changed]
            if number % 3 == 0:
                acknowledged[key] = [changed, None]
                started = time.monotonic()
                await cairn.ask("mutation($id: ID!) { deleteMemory(id: $id) { deleted } }", id=key)
                acknowledged[key] = [None]
        except Refused as refused:
            if refused.code != "UNAVAILABLE":
                raise
            slowest.append(time.monotonic() - started)


async def _read_until(cairn: Service, stop: asyncio.Event, slowest: list[float]) -> None:
    """Reads one memory over and over, and notes how long a refusal took."""
    while not stop.is_set():
        started = time.monotonic()
        try:
            await cairn.ask('{ memory(id: "own0-1") { id } }')
        except Refused as refused:
            if refused.code != "UNAVAILABLE":
                raise
            slowest.append(time.monotonic() - started)
        await asyncio.sleep(0.05)


async def _refused_within(seconds: float, call: Awaitable[Any]) -> None:
    started = time.monotonic()
    with pytest.raises(Refused) as refused:
        await call
    assert refused.value.code == "UNAVAILABLE"
    assert time.monotonic() - started < seconds


async def _status(cairn: Service) -> dict[str, Any]:
    return (await cairn.ask("{ status { ready stores { name up } } }"))["status"]  # type: ignore[no-any-return]


@pytest.fixture
def plain_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    """No recording for faster starts: this Neo4j is killed before it would pay. Plans are kept as in tests/conftest.py."""

    def plain(settings: Settings) -> Neo4jServer:
        server = neo4j_server(settings)
        return Neo4jServer(replace(server.settings, archive_classes=False, more_configuration=KEPT_PLANS))

    monkeypatch.setattr(api.app, "neo4j_server", plain)


async def test_neo4j_is_killed_under_writes(plain_starts: None, settings: Settings, tmp_path: Any) -> None:
    """Two services on one Neo4j: its own, which starts its child again, and one that knows it by its address."""
    mine = Settings(
        data=tmp_path / "mine",
        port=free_port(),
        neo4j_bolt_port=free_port(),
        neo4j_http_port=free_port(),
        embedder="wordllama",
    )
    async with serving(mine) as own:
        home = mine.data / "neo4j"
        other = Settings(
            data=tmp_path / "other",
            port=free_port(),
            tenant="other",
            neo4j_uri=f"bolt://127.0.0.1:{mine.neo4j_bolt_port}",
            neo4j_password_file=home / "password",
            embedder="wordllama",
        )
        async with serving(other) as elsewhere:
            services = {"own": own, "elsewhere": elsewhere}
            stop = asyncio.Event()
            acknowledged: dict[str, Acknowledged] = {name: {} for name in services}
            slowest: list[float] = []
            slowest_reads: list[float] = []
            writers = [
                asyncio.create_task(
                    _write_until(service, f"{name}{n}", 10_000 * (6 * place + n), stop, acknowledged[name], slowest)
                )
                for place, (name, service) in enumerate(services.items())
                for n in range(6)
            ]
            writers += [asyncio.create_task(_read_until(one, stop, slowest_reads)) for one in services.values()]
            deadline = time.monotonic() + 60
            while not all(len(keys) > 20 for keys in acknowledged.values()):
                assert time.monotonic() < deadline, "no write went through"
                await asyncio.sleep(0.1)
            before = {name: len(keys) for name, keys in acknowledged.items()}
            os.kill(int((home / "pid").read_text()), signal.SIGKILL)
            deadline = time.monotonic() + 30
            while (await _status(own))["ready"]:
                assert time.monotonic() < deadline, "the status does not tell"
                await asyncio.sleep(0.1)
            # Without the record there is no answer, degraded or not.
            await asyncio.gather(*(_refused_within(5, one.ask(call)) for one in services.values() for call in CALLS))
            deadline = time.monotonic() + 90
            while not all(len(acknowledged[name]) > before[name] + 20 for name in services):
                assert time.monotonic() < deadline, "writes did not go on"
                await asyncio.sleep(0.2)
            stop.set()
            await asyncio.gather(*writers)
            for kind, refusals in (("writes", slowest), ("reads", slowest_reads)):
                assert refusals, f"no refusal of {kind}"
                assert max(refusals) < 5, (kind, sorted(refusals)[-20:])
            await _hangs(int((home / "pid").read_text()), services.values())
            await _cannot_write(int((home / "pid").read_text()), services.values())
            for name, service in services.items():
                keys = list(acknowledged[name])
                for some in (keys[place : place + 100] for place in range(0, len(keys), 100)):
                    fields = " ".join(
                        f'a{n}: memory(id: "{key}") {{ text lessons {{ rbId }} }}' for n, key in enumerate(some)
                    )
                    found = await service.ask(f"{{ {fields} }}")
                    lost = {
                        key: found[f"a{n}"]
                        for n, key in enumerate(some)
                        if found[f"a{n}"] not in acknowledged[name][key]
                    }
                    assert not lost, {key: acknowledged[name][key] for key in lost}
                report = await service.settled()
                assert report["ok"], str(report)
                assert (await _status(service))["ready"] is True


async def _hangs(neo4j: int, services: Iterable[Service]) -> None:
    """Neo4j holds its connections and answers nothing: reads and writes are refused as soon, and go on when it goes on."""
    os.kill(neo4j, signal.SIGSTOP)
    try:
        write = {"memories": [{"event": {"id": "HANGS", "text": "While it hangs."}}]}
        await asyncio.gather(
            *(_refused_within(5, one.ask(call)) for one in services for call in CALLS),
            *(_refused_within(5, one.remember(**write)) for one in services),
        )
    finally:
        os.kill(neo4j, signal.SIGCONT)
    for one in services:
        deadline = time.monotonic() + 30
        while not (await _status(one))["ready"]:
            assert time.monotonic() < deadline, "it does not go on"
            await asyncio.sleep(0.1)
        await one.remember(**write)


async def _cannot_write(neo4j: int, services: Iterable[Service]) -> None:
    """Its disk is full: it says so, and takes no transaction from then on. It is started again, and all goes on."""
    psutil.Process(neo4j).rlimit(psutil.RLIMIT_FSIZE, (4_096, psutil.RLIM_INFINITY))
    write = {"memories": [{"event": {"id": "FULL", "text": "On a full disk."}}]}
    for one in services:
        await _refused_within(5, one.remember(**write))
    for one in services:
        deadline = time.monotonic() + 90
        while True:
            try:
                await one.remember(**write)
                break
            except Refused as refused:
                if refused.code != "UNAVAILABLE" or time.monotonic() > deadline:
                    raise
                await asyncio.sleep(0.2)


async def test_neo4j_that_is_not_there_at_all(settings: Settings) -> None:
    """The start says so, and where it looked."""
    nowhere = settings.model_copy(update={"neo4j_uri": f"bolt://127.0.0.1:{free_port()}", "port": free_port()})
    with pytest.raises(Exception, match="does not answer"):
        async with serving(nowhere):
            pass

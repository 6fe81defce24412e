"""The schema: files applied in order, once, and a database that has another schema refused."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import pytest

from api.settings import Settings
from graph.errors import Conflict, SetupError
from graph.model import embedding_id
from graph.schema import SchemaFile, apply_schema, schema_files
from graph.server import USER, Neo4jServer, ServerSettings
from graph.session import Graph, connect
from tests.ports import free_port

# Far above any number that Cairn will have: the schema is the whole database's, and tests run side by side.
FIRST, SECOND = 990_001, 990_002


@pytest.fixture
async def graph(settings: Settings) -> AsyncIterator[Graph]:
    """A graph with the schema as it is released; what a test adds to it is taken away again."""
    graph = await connect(settings.neo4j_uri or "", settings.neo4j_user, settings.neo4j_secret(), settings.tenant)
    await apply_schema(graph)
    yield graph
    await forget(graph)
    await graph.close()


async def forget(graph: Graph) -> None:
    await graph.define(f"MATCH (s:CairnSchema) WHERE s.number >= {FIRST} DELETE s")
    await graph.define("MATCH (t:SchemaTest) DETACH DELETE t")
    await graph.define("DROP INDEX schema_test IF EXISTS")


def files(folder: Path, **bodies: str) -> list[SchemaFile]:
    """The released schema, and these files after it."""
    folder.mkdir(exist_ok=True)
    for name, body in bodies.items():
        (folder / f"{name.removeprefix('f')}.cypher").write_text(body)
    return schema_files() + schema_files(folder)


async def applied(graph: Graph) -> list[int]:
    return [row["number"] for row in await graph.read("applied_schema")]


def test_the_released_files_are_numbered() -> None:
    """001, 002, …: no number twice, every one with commands and a checksum of its own."""
    released = schema_files()
    assert [file.number for file in released] == sorted({file.number for file in released})
    assert all(file.commands for file in released)
    assert len({file.checksum for file in released}) == len(released)


async def test_files_are_applied_in_order_and_once(graph: Graph, tmp_path: Path) -> None:
    """The second undoes the first, which fails in any other order or if either runs twice; then nothing is left to do."""
    ours = files(
        tmp_path,
        f990002_end="// Takes it away.\n// params: none\nDROP INDEX schema_test;\n",
        f990001_begin="// An index; a node.\nCREATE INDEX schema_test FOR (t:SchemaTest) ON (t.v);\nCREATE (:SchemaTest);\n",
    )
    assert await apply_schema(graph, ours) == ["990001_begin", "990002_end"]
    assert await apply_schema(graph, ours) == []
    assert (await applied(graph))[-2:] == [FIRST, SECOND]


async def test_a_file_that_comes_later_is_applied_alone(graph: Graph, tmp_path: Path) -> None:
    """An upgrade applies what is new."""
    await apply_schema(graph, files(tmp_path, f990001_begin="CREATE (:SchemaTest {value: 1});"))
    later = files(tmp_path, f990002_more="CREATE (:SchemaTest {value: 2});")
    assert await apply_schema(graph, later) == ["990002_more"]


@pytest.fixture
async def empty(tmp_path: Path) -> AsyncIterator[Callable[[], Awaitable[Graph]]]:
    """A Neo4j of its own that has nothing yet, and a new way to it with each call."""
    server = Neo4jServer(ServerSettings(tmp_path, free_port(), free_port(), archive_classes=False))
    await server.start()
    opened: list[Graph] = []

    async def open() -> Graph:
        opened.append(await connect(server.settings.bolt_uri, USER, server.password, f"t{len(opened)}"))
        return opened[-1]

    yield open
    for graph in opened:
        await graph.close()
    await server.stop()


async def test_services_that_start_at_once_apply_it_once(empty: Callable[[], Awaitable[Graph]]) -> None:
    """Six of them on a new database, and one that dies in the midst of it: one applies every file, and every index that a
    service applying it alone would make is there."""
    dying = await empty()
    taken = asyncio.Event()

    async def die() -> None:
        async with dying.turn(lambda: None):
            taken.set()
            await asyncio.sleep(3600)

    death = asyncio.create_task(die())
    await taken.wait()
    said: list[str] = []
    starting = [asyncio.create_task(apply_schema(await empty(), say=said.append)) for _ in range(6)]
    assert not (await asyncio.wait(starting, timeout=2.5))[0], "while another one applies it, they wait"
    death.cancel()
    applied_by = await asyncio.gather(*starting)
    assert sorted(applied_by, key=len) == [[]] * 5 + [[file.name for file in schema_files()]]
    assert len(said) == 6 and "Another service" in said[0]
    creating: dict[str, str] = {}  # by name; a later file may drop what an earlier one has made
    for command in (command for file in schema_files() for command in file.commands):
        match command.replace("FULLTEXT ", "").split():
            case ["CREATE", "INDEX" | "CONSTRAINT", name, *_]:
                creating[name] = command
            case ["DROP", _, name, *_]:
                creating.pop(name, None)
    for command in creating.values():
        with pytest.raises(Conflict):  # Neo4j says that it exists already
            await dying.define(command.replace(" IF NOT EXISTS", ""))


async def test_a_newer_schema_is_refused(graph: Graph, tmp_path: Path) -> None:
    """A database that a newer Cairn has written: which schema it has, and which version to run."""
    await apply_schema(graph, files(tmp_path, f990001_begin="CREATE (:SchemaTest {value: 1});"))
    with pytest.raises(SetupError, match=r"has the schema 990001_begin, which this version.*does not know.*newer"):
        await apply_schema(graph)


async def test_an_altered_file_is_refused(graph: Graph, tmp_path: Path) -> None:
    """A file that is not the one that was applied, be it by a comment: which one, and how to change a schema."""
    *before, last = files(tmp_path, f990001_begin="CREATE (:SchemaTest {value: 1});")
    await apply_schema(graph, [*before, last])
    altered = replace(last, checksum="0" * 64)
    with pytest.raises(SetupError, match=r"990001_begin is not the one that was applied.*new file"):
        await apply_schema(graph, [*before, altered])


async def test_a_file_that_fails_is_not_noted(graph: Graph, tmp_path: Path) -> None:
    """What was not applied is tried again at the next start."""
    broken = files(tmp_path, f990001_begin="CREATE (:SchemaTest {value: 1}); THIS IS NO CYPHER;")
    with pytest.raises(Exception, match="THIS"):
        await apply_schema(graph, broken)
    assert FIRST not in await applied(graph)


async def test_stored_records_that_break_a_new_rule_are_named(graph: Graph, tmp_path: Path) -> None:
    """Two records where the new version allows one: the start is refused, and says which value they share."""
    body = "CREATE (:SchemaTest {v: 7001}), (:SchemaTest {v: 7001}); CREATE CONSTRAINT schema_test FOR (t:SchemaTest) REQUIRE t.v IS UNIQUE;"
    with pytest.raises(SetupError, match=r"breaks a rule of this version.*`v` = 7001"):
        await apply_schema(graph, files(tmp_path, f990001_begin=body))


async def test_keys_of_ids_with_a_slash_are_spelt_anew(graph: Graph) -> None:
    """Memories of versions before 012: their keys become what the service computes, and they are marked."""
    planted = {"a/b%c'd": "emb_old", "plain": "emb_plain"}
    for id, key in planted.items():
        await graph.define(
            f'CREATE (:Memory:Event {{tenant: "{graph.tenant}", id: "{id}", embedding_id: "{key}", revision: 1}})'
        )
    (file,) = (file for file in schema_files() if file.number == 12)
    await graph.define(file.commands[-1])
    rows = {row["properties"]["id"]: row["properties"] for row in await graph.read("memories_by_id", ids=list(planted))}
    assert rows["a/b%c'd"]["embedding_id"] == embedding_id(graph.tenant, "a/b%c'd") and rows["a/b%c'd"]["to_index"]
    assert rows["plain"]["embedding_id"] == "emb_plain" and "to_index" not in rows["plain"]

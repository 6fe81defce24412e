"""Applies `cypher/schema` in order, once, and refuses a database whose schema is newer or was altered."""

import asyncio
import hashlib
import logging
import random
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from graph.errors import Conflict, SetupError, Unavailable
from graph.queries import CYPHER
from graph.session import Graph

TRIES = 20

log = logging.getLogger("cairn.neo4j")


@dataclass(frozen=True)
class SchemaFile:
    number: int
    name: str
    checksum: str
    commands: tuple[str, ...]


def schema_files(folder: Path = CYPHER / "schema") -> list[SchemaFile]:
    found = []
    for path in sorted(folder.glob("*.cypher")):
        text = path.read_text(encoding="utf-8")
        body = re.sub(r"^//.*$", "", text, flags=re.MULTILINE)
        commands = tuple(part.strip() for part in body.split(";") if part.strip())
        checksum = hashlib.sha256(text.encode()).hexdigest()
        found.append(SchemaFile(int(path.stem.split("_")[0]), path.stem, checksum, commands))
    return found


async def apply_schema(
    graph: Graph, files: list[SchemaFile] | None = None, say: Callable[[str], object] = log.info
) -> list[str]:
    """Brings the database's schema up to date. Returns the names of the files that were applied now. Of services that
    start at the same moment one applies it and the others wait: a file may drop what it makes anew."""
    files = schema_files() if files is None else files
    for _ in range(TRIES - 1):
        try:
            return await _apply(graph, files, say)
        except (Unavailable, Conflict):  # they may still be in each other's way to the first turn
            await asyncio.sleep(random.uniform(0.05, 0.5))
    return await _apply(graph, files, say)


async def _apply(graph: Graph, files: list[SchemaFile], say: Callable[[str], object]) -> list[str]:
    if not await _missing(graph, files):
        return []
    async with graph.turn(lambda: say("Another service brings this database's schema up to date; waiting for it …")):
        fresh = await _missing(graph, files)
        for file in fresh:
            for command in file.commands:
                await graph.define(command)
            await graph.run("record_schema", number=file.number, name=file.name, checksum=file.checksum)
    return [file.name for file in fresh]


async def _missing(graph: Graph, files: list[SchemaFile]) -> list[SchemaFile]:
    """The files that were not applied yet."""
    applied = {row["number"]: row for row in await graph.read("applied_schema")}
    known = {file.number: file for file in files}
    newer = sorted(set(applied) - set(known))
    if newer:
        raise SetupError(
            f"This Neo4j database has the schema {applied[newer[-1]]['name']}, which this version of Cairn does not know. "
            "Run the version that wrote it, or a newer one."
        )
    for number, row in applied.items():
        if row["checksum"] != known[number].checksum:
            raise SetupError(
                f"The schema file {known[number].name} is not the one that was applied to this database. "
                "Restore cypher/schema as it was released; a change of the schema goes into a new file."
            )
    return [file for file in files if file.number not in applied]

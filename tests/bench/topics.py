"""What machine-made edges do to recall where nobody wrote any: no edges, Cairn's own, and those that came with the data."""

import gzip
import json
import logging
import sys
import time
from typing import Any

from neo4j import AsyncGraphDatabase

from tests.bench.service import Measured, measured
from tests.bench.sets import DATA
from tests.bench.stores import REMEMBER, shown

SETS = {"2Wiki": "multihop_2wiki", "MuSiQue": "multihop_musique"}
QUESTIONS = 200
BATCH = 500
LINK = "mutation($input: RememberInput!) { remember(input: $input) { edges { id } } }"
RECALL = "query($q: String!) { recall(input: {query: $q}) { memories { memory { id } } } }"


async def run() -> None:
    logging.disable(logging.INFO)
    table = []
    for name, file in SETS.items():
        path = DATA / f"{file}.json.gz"
        if not path.exists():
            print(f"Topics: {path.name} is not beside this checkout; left out")
            continue
        with gzip.open(path) as packed:
            data = json.load(packed)
        async with measured("wordllama") as service:
            table += await measure(service, name, data)
    if table:
        print(f"\nTopics: recall with the edges removed, {QUESTIONS} questions a set; wordllama; {sys.platform}\n")
        print(f"{'':10}{'edges':24}{'number':>10}{'recall@2':>10}{'recall@5':>10}{'all@5':>8}")
        for row in table:
            print(f"{row[0]:10}{row[1]:24}{row[2]:>10,}" + f"{row[3]:>10.1f}{row[4]:>10.1f}{row[5]:>8.1f}")


async def measure(service: Measured, name: str, data: dict[str, Any]) -> list[tuple[Any, ...]]:
    memories = [{"dataSource": row} for row in data["memories"]]
    questions = data["questions"][:QUESTIONS]
    rows = []
    await _send(service, REMEMBER, "memories", memories)
    rows.append((name, "none", 0, *await _recalled(service, questions)))
    start = time.perf_counter()
    made = await _send(service, LINK, "memories", memories, linkTopics=True)
    print(f"{name}: {made:,} edges between {len(memories):,} memories in {time.perf_counter() - start:.0f} s")
    rows.append((name, "machine-made", made, *await _recalled(service, questions)))
    async with AsyncGraphDatabase.driver(service.bolt_uri, auth=("neo4j", service.password)) as driver:
        await driver.execute_query("MATCH (:Memory)-[r:RELATES]->(:Memory) WHERE r.machine_made DELETE r")
    await _send(service, REMEMBER, "edges", data["edges"])
    rows.append((name, "as they came", len(data["edges"]), *await _recalled(service, questions)))
    return rows


async def _send(service: Measured, query: str, part: str, items: list[Any], **more: Any) -> int:
    """Returns how many edges the answers hold, where they are asked for them."""
    made = 0
    for place in range(0, len(items), BATCH):
        answer = await service.ask(query, input={"convId": "bench", part: items[place : place + BATCH], **more})
        made += len(answer["remember"].get("edges", ()))
        shown(f"sending {part}", place + BATCH, len(items))
    return made


async def _recalled(service: Measured, questions: list[Any]) -> tuple[float, float, float]:
    """recall@2, recall@5 and all@5, in percent."""
    found = []
    for number, question in enumerate(questions):
        answer = await service.ask(RECALL, q=question["query"])
        found.append((set(question["gold"]), [one["memory"]["id"] for one in answer["recall"]["memories"]]))
        shown("asking", number, len(questions))
    shares = [sum(len(gold & set(ids[:k])) / len(gold) for gold, ids in found) for k in (2, 5)]
    whole = sum(gold <= set(ids[:5]) for gold, ids in found)
    two, five, all_five = (100 * value / len(found) for value in (*shares, whole))
    return two, five, all_five

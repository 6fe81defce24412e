"""What the agreement of the two stores costs: each thing through the service, and on the bare store beside it."""

import asyncio
import logging
import random
import sys
import time
from typing import Any

from neo4j import AsyncDriver, AsyncGraphDatabase
from pymilvus import AnnSearchRequest, AsyncMilvusClient, RRFRanker

from bank import expressions
from bank.embed import WordLlamaModel
from bank.milvus import LESSONS, MEMORIES, Milvus
from bank.model import LessonQuery
from bank.search import CANDIDATES, LESSON_CANDIDATES
from bank.vectors import Vectors
from graph.model import MemoryFilter
from tests.bench.looks import looked_at
from tests.bench.service import MOST_ROUNDS, Call, Measured, measured, times, times_in_turn

SIZES = (2_000, 20_000)  # memories; three edges each, a lesson for every ten
BATCH = 1_000
COUNTED = 100  # calls, each beside its bare one
WARM_CALLS = 400  # before any is counted: meanwhile Java compiles most of what they run
WORDS = (
    "revenue delivery order margin forecast region dealer warehouse price discount port strike ship customs factory battery model "
    "segment quarter week return claim campaign budget survey churn visit lead invoice payment contract"
).split()
REMEMBER = "mutation($input: RememberInput!) { remember(input: $input) { created } }"
SEARCH = "query($q: String!) { searchMemories(query: $q, limit: 10) { score memory { id text } } }"
BY_ID = "query($id: ID!) { memory(id: $id) { id text tags } }"
LISTED = "query($filter: MemoryFilter) { memories(filter: $filter, first: 20) { nodes { id text } } }"
LESSONS_LISTED = "query($filter: LessonFilter) { lessons(filter: $filter, first: 20) { nodes { rbId title } } }"
UPDATE = "mutation($id: ID!, $text: String!) { updateMemory(id: $id, patch: {text: $text}) { id } }"
DELETE = "mutation($id: ID!) { deleteMemory(id: $id) { deleted } }"
LEARNT = "query($q: String!) { searchLessons(query: $q, limit: 5) { score lesson { rbId keyLesson } } }"
PAGE = """query($after: String) { memories(first: 20, after: $after) { nodes { id text edges(first: 5) { nodes { text weight target { id text } } }
  lessons { rbId title } } pageInfo { endCursor } } }"""

BARE_PAGE = """MATCH (n:Bare) WHERE n.id IS NOT NULL WITH n ORDER BY n.id DESC LIMIT 20
  CALL (n) { OPTIONAL MATCH (n)-[r:BARE]->(t:Bare) WITH r, t LIMIT 5 RETURN collect([r.text, r.weight, t.id, t.text]) AS edges }
  RETURN n.id, n.text, edges"""


def text(chance: random.Random) -> str:
    return " ".join(chance.choices(WORDS, k=18)).capitalize() + f" {chance.randrange(10**6)}."


def records(start: int, end: int, chance: random.Random) -> tuple[list[Any], list[Any], list[Any]]:
    memories = [
        {"dataSource": {"id": f"N{n}", "text": text(chance), "tags": [chance.choice(WORDS)]}} for n in range(start, end)
    ]
    edges = [
        {"id": f"E{n}-{k}", "source": f"N{n}", "target": f"N{(n * 7 + k * 13 + 1) % end if (n * 7 + k * 13 + 1) % end != n else (n + 1) % end}",
         "text": f"Both speak of {chance.choice(WORDS)}.", "weight": round(chance.random(), 3)}
        for n in range(start, end) for k in range(3)
    ]  # fmt: skip
    lessons = [
        {"rbId": str(n + 1), "keyLesson": text(chance), "contextToPrefer": text(chance), "linkNodes": [f"N{n}"]}
        for n in range(start, end, 10)
    ]
    return memories, edges, lessons


async def load(service: Measured, parts: tuple[list[Any], list[Any], list[Any]]) -> float:
    """Items a second through GraphQL, searchable at the end."""
    start = time.perf_counter()
    for name, items in zip(("memories", "edges", "lessons"), parts, strict=True):
        for place in range(0, len(items), BATCH):
            await service.ask(REMEMBER, input={"convId": "bench", name: items[place : place + BATCH]})
            shown(f"loading {name}", place + BATCH, len(items))
    while (await service.ask("{ status { pending } }"))["status"]["pending"]:
        await asyncio.sleep(0.05)
    return sum(map(len, parts)) / (time.perf_counter() - start)


async def bare_load(
    driver: AsyncDriver, vectors: Vectors, parts: tuple[list[Any], list[Any], list[Any]]
) -> tuple[float, float]:
    """Items a second into a bare Neo4j (nodes, edges) and rows a second into a bare Milvus (vectors made beforehand)."""
    memories, edges, lessons = parts
    nodes = [item["dataSource"] for item in memories]
    start = time.perf_counter()
    for place in range(0, len(nodes), BATCH):
        await driver.execute_query("UNWIND $rows AS row CREATE (n:Bare) SET n = row", rows=nodes[place : place + BATCH])
    for place in range(0, len(edges), BATCH):
        await driver.execute_query(
            "UNWIND $rows AS row MATCH (s:Bare {id: row.source}) CALL (row) { MATCH (t:Bare {id: row.target}) RETURN t } "
            "CREATE (s)-[r:BARE]->(t) SET r = row",
            rows=edges[place : place + BATCH],
        )
    graph = (len(nodes) + len(edges)) / (time.perf_counter() - start)
    model = WordLlamaModel()
    rows = [
        {"embedding_id": row["id"], "pointer_to_node": row["id"], "text": row["text"], "dense_vector": vector.tolist(), "tenant": "bare",
         "type": "DataSource", "conv_id": "bench", "tags": row["tags"], "ingestion_time": 0, "window_start": 0, "window_end": 0,
         "version": 1, "revision": 1}
        for row, vector in zip(nodes, model.encode([row["text"] for row in nodes], query=False), strict=True)
    ]  # fmt: skip
    start = time.perf_counter()
    for place in range(0, len(rows), BATCH):
        await vectors.insert(MEMORIES, rows[place : place + BATCH])
    rate = len(rows) / (time.perf_counter() - start)
    encoded = [model.encode([row[name] for row in lessons], query=False) for name in ("keyLesson", "contextToPrefer")]
    learnt = [
        {"rb_id": int(row["rbId"]), "key_lesson": row["keyLesson"], "key_lesson_vector": lesson.tolist(), "context_to_prefer": row["contextToPrefer"],
         "context_to_prefer_vector": context.tolist(), "tags": [], "link_nodes": row["linkNodes"], "tenant": "bare", "namespace": "", "team": "",
         "scope": "PROJECT", "outcome": "SUCCESS", "status": "ACTIVE", "version": 1, "revision": 1}
        for row, lesson, context in zip(lessons, *encoded, strict=True)
    ]  # fmt: skip
    for place in range(0, len(learnt), BATCH):
        await vectors.insert(LESSONS, learnt[place : place + BATCH])
    return graph, rate


async def run() -> None:
    logging.disable(logging.INFO)  # wordllama switches everybody's on
    chance = random.Random(7)
    model = WordLlamaModel()
    table: dict[str, list[str]] = {}
    async with measured("wordllama") as service:
        driver = AsyncGraphDatabase.driver(
            service.bolt_uri, auth=("neo4j", service.password), notifications_min_severity="OFF"
        )
        await driver.execute_query("CREATE CONSTRAINT bare IF NOT EXISTS FOR (n:Bare) REQUIRE n.id IS UNIQUE")
        milvus = Milvus(str(service.data / "bare.db"), "", "", model.name, model.dimensions)
        await milvus.connect()
        await milvus.open()
        vectors, client = Vectors(milvus, "bare"), milvus.client
        loaded = 0
        for size in SIZES:
            parts = records(loaded, size, chance)
            rate = await load(service, parts)
            graph_rate, row_rate = await bare_load(driver, vectors, parts)
            loaded = size
            slower = min(graph_rate, row_rate)
            note(table, "load, items/s", f"{rate:,.0f}")
            note(table, "  bare Neo4j / bare Milvus, items/s", f"{graph_rate:,.0f} / {row_rate:,.0f}")
            note(table, "  share of the slower bare store", f"{rate / slower:.0%}")
            for name, count in (await looked_at(driver, size)).items():
                note(table, f"db hits: {name}", f"{count:,}")
            await measure(service, driver, client, model, size, table, chance)
        await driver.close()
        await milvus.close()
    print(f"\nStores: memories, three times as many edges, a tenth as many lessons; wordllama; {sys.platform}\n")
    print(f"{'':44}" + "".join(f"{size:>20,}" for size in SIZES))
    for name, values in table.items():
        print(f"{name:44}" + "".join(f"{value:>20}" for value in values))


async def measure(
    service: Measured, driver: AsyncDriver, client: AsyncMilvusClient, model: WordLlamaModel, size: int, table: dict[str, list[str]], chance: random.Random
) -> None:  # fmt: skip
    async def compared(
        name: str, own: Call, bare_name: str, bare: Call, pause: float = 0, warm: int = WARM_CALLS
    ) -> tuple[float, float]:
        """Through the service and bare, in turn, and the medians of both. `pause` before each: what the one before has left
        to others is done."""
        shown(name, 0, 1)
        (middle, high), (bare_middle, bare_high) = await times_in_turn([own, bare], COUNTED, warm=warm, pause=pause)
        note(table, f"{name}, p50 / p95 ms", f"{middle:.1f} / {high:.1f}")
        note(table, f"  {bare_name}", f"{bare_middle:.1f} / {bare_high:.1f}")
        note(table, f"  times the {bare_name}", f"{middle / bare_middle:.1f}")
        return middle, bare_middle

    stamp = f"{size}-"
    written = ({"event": {"id": f"{stamp}{n}", "text": text(chance)}} for n in range(1_000_000))
    await compared(
        "one remember",
        lambda n: service.ask_alone(REMEMBER, input={"convId": "b", "memories": [next(written)]}),
        "bare Neo4j write",
        lambda n: driver.execute_query("CREATE (n:Bare $made)", made={"id": f"{stamp}{n}", "text": text(chance)}),
        pause=0.02,
    )
    await compared(
        "memory by id",
        lambda n: service.ask_alone(BY_ID, id=f"N{chance.randrange(size)}"),
        "bare Neo4j read",
        lambda n: driver.execute_query("MATCH (n:Bare {id: $id}) RETURN n", id=f"N{chance.randrange(size)}"),
    )
    await compared(
        "a page of 20 with edges and lessons",
        lambda n: service.ask_alone(PAGE),
        "bare page of 20 with edges",
        lambda n: driver.execute_query(BARE_PAGE),
        warm=COUNTED,
    )
    pages: dict[str, Call] = {
        "a page of 20 of a tag that every 35th has": lambda n: service.ask_alone(LISTED, filter={"tags": [WORDS[n % len(WORDS)]]}),
        "a page of a tag that nobody has": lambda n: service.ask_alone(LISTED, filter={"tags": [f"{n}"]}),
        "a page of a type that nobody is": lambda n: service.ask_alone(LISTED, filter={"types": ["UserPreference"]}),
        "a page of what came since now": lambda n: service.ask_alone(LISTED, filter={"since": "2100-01-01T00:00:00Z"}),
        "a page of lessons of an empty namespace": lambda n: service.ask_alone(LESSONS_LISTED, filter={"namespace": f"{n}"}),
    }  # fmt: skip
    for name, call in pages.items():
        shown(name, 0, 1)
        middle, high = await times(call, 40, warm=COUNTED)
        note(table, name, f"{middle:.1f} / {high:.1f}")

    async def bare_hybrid(query: str, collection: str, dense: tuple[str, ...], words: str, limit: int) -> None:
        """One call for all the lists that the service asks for one by one: among the same rows, as long, with the same
        columns."""
        vector = model.encode([query], query=True)[0].tolist()
        wanted = [
            AnnSearchRequest([vector], field, {"metric_type": "COSINE"}, limit, rows[collection]) for field in dense
        ]
        wanted.append(AnnSearchRequest([query], words, {"metric_type": "BM25"}, limit, rows[collection]))
        await client.hybrid_search(collection, wanted, RRFRanker(), limit=limit, output_fields=["revision", "version"])

    questions = [" ".join(chance.choices(WORDS, k=5)) for _ in range(WARM_CALLS + MOST_ROUNDS * COUNTED)]
    rows = {
        MEMORIES: expressions.of_memories("bare", MemoryFilter()),
        LESSONS: expressions.of_lessons("bare", LessonQuery(query="")),
    }
    _, bare_search = await compared(
        "searchMemories",
        lambda n: service.ask_alone(SEARCH, q=questions[n]),
        "bare hybrid search of memories",
        lambda n: bare_hybrid(questions[n], MEMORIES, ("dense_vector",), "sparse_vector", CANDIDATES),
    )
    dense = ("key_lesson_vector", "context_to_prefer_vector")
    learnt, _ = await compared(
        "searchLessons",
        lambda n: service.ask_alone(LEARNT, q=questions[n]),
        "bare hybrid search of lessons",
        lambda n: bare_hybrid(questions[n], LESSONS, dense, "context_sparse_vector", LESSON_CANDIDATES),
    )

    note(table, "  times that of memories", f"{learnt / bare_search:.1f}")

    async def client_at_work(place: int) -> None:
        own_chance = random.Random(place)
        for number in range(15):
            await service.ask(SEARCH, q=own_chance.choice(questions))
            await service.ask(
                REMEMBER,
                input={
                    "convId": "b",
                    "memories": [{"event": {"id": f"{stamp}c{place}-{number}", "text": text(own_chance)}}],
                },
            )

    async def bare_client(place: int) -> None:
        own_chance = random.Random(place)
        for number in range(15):
            await bare_hybrid(own_chance.choice(questions), MEMORIES, ("dense_vector",), "sparse_vector", CANDIDATES)
            made = {"id": f"{stamp}bc{place}-{number}", "text": text(own_chance)}
            await driver.execute_query("CREATE (n:Bare $made)", made=made)

    async def bare_upsert(number: int) -> None:
        row = {**unlike, "text": text(chance), "embedding_id": f"{stamp}bare{number % COUNTED}"}
        await client.upsert(MEMORIES, [row])

    unlike = {
        "pointer_to_node": "", "dense_vector": [1.0] + [0.0] * (model.dimensions - 1), "tenant": "bare", "type": "Event", "conv_id": "b",
        "tags": [], "ingestion_time": 0, "window_start": 0, "window_end": 0, "version": 1, "revision": 1,
    }  # fmt: skip
    await compared(
        "updateMemory",
        lambda n: service.ask_alone(UPDATE, id=f"N{n % size}", text=text(chance)),
        "bare Milvus upsert",
        bare_upsert,
        warm=COUNTED,
    )
    middle, high = await times(lambda n: service.ask_alone(DELETE, id=f"{stamp}{n}"), 40, warm=COUNTED)
    note(table, "deleteMemory", f"{middle:.1f} / {high:.1f}")

    shown("16 clients at once", 0, 1)
    for name, client_of in (
        ("16 clients, half reads half writes", client_at_work),
        ("  the same on the bare stores", bare_client),
    ):
        start = time.perf_counter()
        await asyncio.gather(*(client_of(place) for place in range(16)))
        note(table, f"{name}, calls/s", f"{16 * 30 / (time.perf_counter() - start):,.0f}")
    for name, used in service.memory().items():
        bare = ", with the bare graph's records" if name == "Neo4j" else ""
        note(table, f"memory of {name}{bare}, MB", f"{used:,.0f}")


def note(table: dict[str, list[str]], name: str, value: str) -> None:
    table.setdefault(name, []).append(value)


def shown(what: str, done: int, of: int) -> None:
    if sys.stderr.isatty():
        print(f"\r{what}: {min(done, of):,} of {of:,}          ", end="", file=sys.stderr, flush=True)

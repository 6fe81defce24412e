"""integrity counts every kind of disagreement, repair mends it, and both work while writes go on. Planted by hand in both stores."""

import asyncio
from typing import Any

import pytest

from bank.hits import Hits, newest
from bank.milvus import LESSONS, MEMORIES
from bank.rows import lesson_row, memory_row
from graph.model import MemoryType, embedding_id
from tests.service import Service

COUNTS = ("danglingPointers", "danglingLinks", "oneSidedLinks", "missingVectors", "orphanVectors", "staleVectors")
REPAIR = """mutation($dry: Boolean!) { repair(dryRun: $dry) { nodes edges lessons nodeVectors lessonVectors danglingPointers danglingLinks
  oneSidedLinks missingVectors orphanVectors staleVectors pending ok } }"""
LINKS = '{ memory(id: "A") { reasoningPointerIds } b: memory(id: "B") { reasoningPointerIds } lesson(rbId: "1") { linkNodes lostSources sources { id } } }'

EVERYTHING = """{ a: memory(id: "A") { id lessons { rbId sources { id } } } b: memory(id: "B") { id lessons { rbId } }
  lesson(rbId: "1") { rbId sources { id } } lessons { nodes { rbId sources { id lessons { rbId } } } }
  searchMemories(query: "alpha beta happened", limit: 50) { memory { id lessons { rbId } } }
  searchLessons(query: "first second", limit: 50) { lesson { rbId sources { id } } }
  recall(input: {query: "What happened first, alpha or beta?", lessonLimit: 50}) { context
    memories { why memory { id lessons { rbId } } } paths { text } lessons { via lesson { rbId sources { id } } } }
  provenance(rbId: "1") { traces { origin { id } path { text } } } }"""


@pytest.fixture(autouse=True)
async def records(cairn: Service) -> None:
    """Two memories, two lessons, one link; whatever the test before left is mended."""
    await cairn.remember(
        memories=[{"event": {"id": "A", "text": "Alpha happened."}}, {"event": {"id": "B", "text": "Beta happened."}}],
        lessons=[
            {"rbId": "1", "keyLesson": "One.", "contextToPrefer": "First.", "linkNodes": ["A"]},
            {"rbId": "2", "keyLesson": "Two.", "contextToPrefer": "Second."},
        ],
    )
    await cairn.ask(REPAIR, dry=False)
    assert (await cairn.settled())["ok"]


async def _plant(cairn: Service, statement: str) -> None:
    """Straight into Neo4j, past the service."""
    await cairn.cairn.graph.define(statement.replace("TENANT", f"'{cairn.cairn.graph.tenant}'"))


async def _rows(cairn: Service, revision: int | None = None) -> dict[str, dict[str, Any]]:
    """The true index rows of A and of lesson 1, or such that claim another revision."""
    memory = (await cairn.cairn.bank.memories.by_id(["A"]))["A"]
    lesson = (await cairn.cairn.bank.lessons.by_id([1]))[1]
    vectors = await cairn.cairn.embedder.passages([memory.text, lesson.key_lesson, lesson.context_to_prefer])
    rows = {
        MEMORIES: memory_row(memory, cairn.cairn.graph.tenant, vectors[0]),
        LESSONS: lesson_row(lesson, cairn.cairn.graph.tenant, vectors[1], vectors[2]),
    }
    return {name: row if revision is None else {**row, "revision": revision} for name, row in rows.items()}


async def _nothing_untrue_is_told(cairn: Service) -> None:
    """Whatever is wrong in the stores: every memory and lesson that any answer names is there."""
    there = "MATCH (n {tenant: $tenant}) RETURN collect(n.id) AS ids, collect(toString(n.rb_id)) AS rb_ids"
    found = await cairn.cairn.graph._driver.execute_query(there, tenant=cairn.cairn.graph.tenant)
    ids, rb_ids = found.records[0].values()

    def look(answer: Any) -> None:
        if isinstance(answer, list):
            for one in answer:
                look(one)
        elif isinstance(answer, dict):
            assert answer.get("id", ids[0]) in ids and answer.get("rbId", rb_ids[0]) in rb_ids, answer
            assert set(answer.get("via", ()) or ()) <= set(ids), answer
            for one in answer.values():
                look(one if isinstance(one, dict | list) else None)

    told = await cairn.ask(EVERYTHING)
    look(told)
    assert "404" not in str(told) and "GONE" not in str(told)  # what the tests plant that is not there


async def _found_wrong(cairn: Service) -> dict[str, int]:
    report = await cairn.integrity()
    assert report["ok"] is False
    assert (await cairn.ask(REPAIR, dry=True))["repair"] == report  # a dry run only counts
    await _nothing_untrue_is_told(cairn)  # last: what an answer meets that is not true is mended behind its back
    return {name: report[name] for name in COUNTS if report[name]}


async def _mended(cairn: Service) -> None:
    report = (await cairn.ask(REPAIR, dry=False))["repair"]
    assert report["ok"], str(report)
    assert (await cairn.integrity())["ok"]


async def test_a_pointer_to_no_lesson(cairn: Service) -> None:
    """Counted, and dropped; the true pointer stays."""
    await _plant(
        cairn, "MATCH (m:Memory {tenant: TENANT, id: 'A'}) SET m.reasoning_pointer_ids = m.reasoning_pointer_ids + 404"
    )
    assert await _found_wrong(cairn) == {"danglingPointers": 1}
    await _mended(cairn)
    assert (await cairn.ask(LINKS))["memory"]["reasoningPointerIds"] == ["1"]


async def test_a_link_to_no_memory(cairn: Service) -> None:
    """Counted, and kept as a lost source."""
    await _plant(cairn, "MATCH (l:Lesson {tenant: TENANT, rb_id: 1}) SET l.link_nodes = l.link_nodes + 'GONE'")
    assert await _found_wrong(cairn) == {"danglingLinks": 1}
    await _mended(cairn)
    assert (await cairn.ask(LINKS))["lesson"] == {"linkNodes": ["A"], "lostSources": ["GONE"], "sources": [{"id": "A"}]}
    await _plant(cairn, "MATCH (l:Lesson {tenant: TENANT, rb_id: 1}) REMOVE l.lost_sources")


@pytest.mark.parametrize(
    "plant",
    [
        "MATCH (m:Memory {tenant: TENANT, id: 'B'}) SET m.reasoning_pointer_ids = [1]",
        "MATCH (l:Lesson {tenant: TENANT, rb_id: 1}) SET l.link_nodes = l.link_nodes + 'B'",
        "MATCH (l:Lesson {tenant: TENANT, rb_id: 1}) MATCH (m:Memory {tenant: TENANT, id: 'B'}) CREATE (l)-[:LEARNED_FROM]->(m)",
    ],
)
async def test_a_link_that_one_side_knows(cairn: Service, plant: str) -> None:
    """Counted, and completed on the other side: nothing that anybody knew is lost."""
    await _plant(cairn, plant)
    assert await _found_wrong(cairn) == {"oneSidedLinks": 1}
    await _mended(cairn)
    links = await cairn.ask(LINKS)
    assert links["b"]["reasoningPointerIds"] == ["1"]
    assert links["lesson"]["linkNodes"] == ["A", "B"]
    await cairn.ask('mutation { unlinkLesson(rbId: "1", nodeIds: ["B"]) { rbId } }')


async def test_missing_rows(cairn: Service) -> None:
    """Records whose rows are gone: counted in both collections, and indexed anew."""
    rows = await _rows(cairn)
    await cairn.cairn.vectors.delete(MEMORIES, [rows[MEMORIES]["embedding_id"]])
    await cairn.cairn.vectors.delete(LESSONS, [1])
    assert await _found_wrong(cairn) == {"missingVectors": 2}
    await _mended(cairn)


async def test_stale_rows(cairn: Service) -> None:
    """Rows of another revision: counted, never shown, and replaced."""
    for name, row in (await _rows(cairn, revision=7)).items():
        await cairn.cairn.vectors.upsert(name, [row])
    assert await _found_wrong(cairn) == {"staleVectors": 2}
    await _mended(cairn)


@pytest.mark.parametrize(
    ("collection", "wrong"),
    [
        (MEMORIES, {"version": 99, "text": "Xylophone quartz banquet."}),
        (MEMORIES, {"type": "DataSource"}),
        (LESSONS, {"version": 99}),
        (LESSONS, {"link_nodes": ["nobody"]}),
    ],
)
async def test_rows_that_claim_the_true_revision(cairn: Service, collection: str, wrong: dict[str, Any]) -> None:
    """Changed by hand in Milvus: counted, never an answer to a filter that the record does not pass, and replaced."""
    row = (await _rows(cairn))[collection]
    await cairn.cairn.vectors.upsert(collection, [{**row, **wrong}])
    assert await _found_wrong(cairn) == {"staleVectors": 1}
    asked = """{ searchMemories(query: "alpha", filter: {types: [DataSource]}) { memory { id } } }"""
    assert (await cairn.ask(asked))["searchMemories"] == []
    await _mended(cairn)


async def test_a_memory_made_by_hand(cairn: Service) -> None:
    """Straight into Neo4j, without what the index needs of it: counted, indexed and found."""
    await _plant(
        cairn,
        """CREATE (:Memory:Event {tenant: TENANT, id: 'HAND', text: 'A zeppelin flew.', conv_id: 'c', tags: [],
          ingestion_time: datetime(), update_time: datetime()})""",
    )
    assert await _found_wrong(cairn) == {"missingVectors": 1}
    await _mended(cairn)
    found = (await cairn.ask('{ searchMemories(query: "zeppelin", limit: 1) { memory { id } } }'))["searchMemories"]
    assert found == [{"memory": {"id": "HAND"}}]
    await cairn.ask('mutation { deleteMemory(id: "HAND") { deleted } }')


async def test_a_node_that_is_no_record_stops_nobody(cairn: Service) -> None:
    """It cannot be indexed and stays pending; what is written after it is indexed all the same."""
    await _plant(cairn, "CREATE (:Memory:Event {tenant: TENANT, id: 'HALF'})")
    report = (await cairn.ask(REPAIR, dry=False))["repair"]
    assert (report["ok"], report["pending"]) == (False, 1)
    await cairn.remember(memories=[{"event": {"id": "WHOLE", "text": "A whole record."}}])
    found = (await cairn.ask('{ searchMemories(query: "whole record", limit: 1) { memory { id } } }'))["searchMemories"]
    assert found == [{"memory": {"id": "WHOLE"}}]
    await _plant(cairn, "MATCH (m:Memory {tenant: TENANT, id: 'HALF'}) DETACH DELETE m")


async def test_nor_does_a_record_with_something_else_in_a_field(cairn: Service) -> None:
    """Numbers for texts, a text for a list, a word for a time, a label of its own, a number that is not whole, a name that is too
    long for the index: each stays pending by itself, and a whole one of each type that was made by hand is indexed; one
    with a longer text than the index holds, by its beginning."""
    whole = """conv_id: 'c', text: 'Odd.', tags: [], ingestion_time: datetime(), update_time: datetime()"""
    odd = [
        "conv_id: 5",
        "text: 5",
        "tags: [5]",
        "tags: 'x'",
        "ingestion_time: 'noon'",
        "update_time: 'noon'",
        "version: 2.0",
        "revision: 2.0",
        f"conv_id: '{'x' * 600}'",
        f"tags: ['{'x' * 600}']",
    ]
    plants = [f"(:Memory:Event {{tenant: TENANT, id: 'ODD{n}', {whole}}})" for n in range(len(odd))]
    plants += [f"(:Memory:Zebra {{tenant: TENANT, id: 'ODD{len(odd)}', {whole}}})"]
    lesson = """title: 'Odd.', key_lesson: 'Odd.', context_to_prefer: 'Odd.', namespace: 'default', scope: 'ORG', outcome: 'SUCCESS',
      status: 'ACTIVE', tags: [], link_nodes: []"""
    odd_lessons = ["key_lesson: 5", "tags: [5]", "link_nodes: 7", "created_at: 'noon'", "version: 2.0", "revision: 2.0"]
    odd_lessons += [f"namespace: '{'x' * 600}'"]
    plants += [f"(:Lesson {{tenant: TENANT, rb_id: {7_000 + n}, {lesson}}})" for n in range(len(odd_lessons))]
    even = [f"(:Memory:{kind} {{tenant: TENANT, id: 'ODD-{kind}', {whole}}})" for kind in MemoryType]
    await _plant(cairn, f"CREATE {', '.join(plants + even)}")
    await _plant(cairn, f"MATCH (m:Memory {{tenant: TENANT, id: 'ODD-Event'}}) SET m.text = 'Odd. {'ä' * 40_000}'")
    for n, one in enumerate(odd):
        await _plant(cairn, f"MATCH (m:Memory {{tenant: TENANT, id: 'ODD{n}'}}) SET m += {{{one}}}")
    for n, one in enumerate(odd_lessons):
        await _plant(cairn, f"MATCH (l:Lesson {{tenant: TENANT, rb_id: {7_000 + n}}}) SET l += {{{one}}}")
    assert (await cairn.ask(REPAIR, dry=False))["repair"]["pending"] == len(plants)
    await cairn.remember(memories=[{"event": {"id": "EVEN", "text": "An even record."}}])
    found = (await cairn.ask('{ searchMemories(query: "even record", limit: 1) { memory { id } } }'))["searchMemories"]
    assert found == [{"memory": {"id": "EVEN"}}]
    found = (await cairn.ask('{ searchMemories(query: "odd", limit: 50) { memory { id } } }'))["searchMemories"]
    assert {f"ODD-{kind}" for kind in MemoryType} <= {hit["memory"]["id"] for hit in found}
    await _plant(cairn, "MATCH (m:Memory {tenant: TENANT}) WHERE m.id STARTS WITH 'ODD' DETACH DELETE m")
    await _plant(cairn, "MATCH (l:Lesson {tenant: TENANT}) WHERE l.rb_id >= 7000 DETACH DELETE l")


async def test_a_number_that_is_not_whole_in_what_is_indexed(cairn: Service) -> None:
    """As other clients of Neo4j write any number: counted, not a fault, and nothing else waits for it."""
    for record in ("(r:Memory {tenant: TENANT, id: 'A'})", "(r:Lesson {tenant: TENANT, rb_id: 1})"):
        await _plant(cairn, f"MATCH {record} SET r.whole = r.version, r.version = 7.5")
    assert await _found_wrong(cairn) == {"staleVectors": 2}
    assert (await cairn.ask(REPAIR, dry=False))["repair"]["pending"] == 2
    await _plant(cairn, "MATCH (r {tenant: TENANT}) WHERE r.whole IS NOT NULL SET r.version = r.whole REMOVE r.whole")
    await _mended(cairn)


@pytest.mark.parametrize("drawn", [True, False], ids=["drawn to a memory", "by itself"])
async def test_a_lesson_made_by_hand(cairn: Service, drawn: bool) -> None:
    """Without what else a lesson has: counted, linked on both sides if it is drawn to a memory, indexed and found, recalled,
    changed and linked like any other."""
    await _plant(
        cairn,
        """MATCH (m:Memory {tenant: TENANT, id: 'B'}) CREATE (l:Lesson {tenant: TENANT, rb_id: 3, title: 'Hand.', key_lesson: 'Zeppelins fly.',
          context_to_prefer: 'A zeppelin.', namespace: 'default', scope: 'ORG', outcome: 'SUCCESS', status: 'ACTIVE', tags: [],
          confidence: 0.8, usage_count: 0, created_at: datetime(), updated_at: datetime()})"""
        + ("-[:LEARNED_FROM]->(m)" if drawn else ""),
    )
    assert await _found_wrong(cairn) == {**({"oneSidedLinks": 1} if drawn else {}), "missingVectors": 1}
    await _mended(cairn)
    await _nothing_untrue_is_told(cairn)
    found = (await cairn.ask('{ searchLessons(query: "zeppelin", limit: 1) { lesson { rbId linkNodes } } }'))[
        "searchLessons"
    ]
    assert found == [{"lesson": {"rbId": "3", "linkNodes": ["B"] if drawn else []}}]
    recalled = (await cairn.ask('{ recall(input: {query: "zeppelin"}) { lessons { lesson { rbId } } } }'))["recall"]
    assert recalled["lessons"][0] == {"lesson": {"rbId": "3"}}
    await cairn.ask(
        'mutation { linkLesson(rbId: "3", nodeIds: ["A"]) { rbId } updateLesson(rbId: "3", patch: {title: "T"}) { rbId } }'
    )
    await cairn.ask('mutation { deleteLesson(rbId: "3") { deleted } }')


@pytest.mark.parametrize("odd", ["[5]", "'x'", "7"])
async def test_something_else_in_the_place_of_links(cairn: Service, odd: str) -> None:
    """Numbers or a word where a lesson's or a memory's links belong: told apart from links, counted, and replaced by what is
    drawn."""
    await _plant(cairn, f"MATCH (l:Lesson {{tenant: TENANT, rb_id: 1}}) SET l.link_nodes = {odd}")
    assert (await cairn.integrity())["oneSidedLinks"] == 1
    await _mended(cairn)
    links = await cairn.ask(LINKS)
    assert links["lesson"]["linkNodes"] == ["A"] == [one["id"] for one in links["lesson"]["sources"]]
    if odd != "[5]":  # which is a list of numbers, as pointers are
        await _plant(cairn, f"MATCH (m:Memory {{tenant: TENANT, id: 'A'}}) SET m.reasoning_pointer_ids = {odd}")
        assert (await cairn.integrity())["oneSidedLinks"] == 1
        await _mended(cairn)
        assert (await cairn.ask(LINKS))["memory"]["reasoningPointerIds"] == ["1"]


async def test_mending_keeps_which_link_was_made_last(cairn: Service) -> None:
    """A memory tells its lessons in the order in which they were linked, also after a repair."""
    for rb_id in ("2", "1"):
        await cairn.ask('mutation($id: ID!) { linkLesson(rbId: $id, nodeIds: ["B"]) { rbId } }', id=rb_id)
    await _mended(cairn)
    assert (await cairn.ask(LINKS))["b"]["reasoningPointerIds"] == ["2", "1"]
    await cairn.ask(
        'mutation { a: unlinkLesson(rbId: "1", nodeIds: ["B"]) { rbId } b: unlinkLesson(rbId: "2", nodeIds: ["B"]) { rbId } }'
    )


async def test_a_link_to_another_tenants_lesson(cairn: Service) -> None:
    """Drawn by hand: counted, and it goes."""
    await _plant(
        cairn,
        "MATCH (m:Memory {tenant: TENANT, id: 'B'}) CREATE (:Lesson {tenant: TENANT + '-x', rb_id: 404404})-[:LEARNED_FROM]->(m)",
    )
    assert await _found_wrong(cairn) == {"danglingPointers": 1}
    await _mended(cairn)


async def test_answers_do_without_the_index_until_a_sweep_is_mended(
    cairn: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows that somebody deleted are missed by a sweep. From then on until they are there again questions are answered by
    words, with all that was acknowledged, and say so."""
    rows = await _rows(cairn)
    await cairn.cairn.vectors.delete(MEMORIES, [rows[MEMORIES]["embedding_id"]])
    drain, go_on, waits = cairn.cairn.sync.drain, asyncio.Event(), asyncio.Event()

    async def when_told(*given: Any, **named: Any) -> None:
        waits.set()
        await go_on.wait()
        await drain(*given, **named)

    monkeypatch.setattr(cairn.cairn.sync, "drain", when_told)
    repairing = asyncio.create_task(cairn.ask(REPAIR, dry=False))
    await waits.wait()
    asked = {"query": '{ searchMemories(query: "alpha", limit: 1) { memory { id } } }'}
    answer = (await cairn.http.post("/graphql", json=asked)).json()
    assert answer["data"]["searchMemories"] == [{"memory": {"id": "A"}}]
    assert "behind" in answer["extensions"]["degraded"]
    go_on.set()
    assert (await repairing)["repair"]["ok"]
    answer = (await cairn.http.post("/graphql", json=asked)).json()
    assert answer["data"]["searchMemories"] == [{"memory": {"id": "A"}}] and "extensions" not in answer


async def test_a_memory_that_names_another_row(cairn: Service) -> None:
    await _plant(cairn, "MATCH (m:Memory {tenant: TENANT, id: 'A'}) SET m.embedding_id = 'emb_WRONG'")
    assert await _found_wrong(cairn) == {"staleVectors": 1}
    await _mended(cairn)
    own = (await _rows(cairn))[MEMORIES]["embedding_id"]
    assert own == f"emb_{cairn.cairn.graph.tenant}/A"


@pytest.mark.parametrize(
    "plant",
    [
        "MATCH (m:Memory {tenant: TENANT, id: 'A'}) SET m.reasoning_pointer_ids = [1, 1]",
        "MATCH (l:Lesson {tenant: TENANT, rb_id: 1}) SET l.link_nodes = ['A', 'A']",
        "MATCH (l:Lesson {tenant: TENANT, rb_id: 1}) MATCH (m:Memory {tenant: TENANT, id: 'A'}) CREATE (l)-[:LEARNED_FROM]->(m)",
    ],
)
async def test_a_link_that_is_there_twice(cairn: Service, plant: str) -> None:
    """The second has no other side: counted, and dropped."""
    await _plant(cairn, plant)
    assert await _found_wrong(cairn) == {"oneSidedLinks": 1}
    await _mended(cairn)
    links = await cairn.ask(LINKS)
    assert links["memory"]["reasoningPointerIds"] == ["1"]
    assert links["lesson"]["linkNodes"] == ["A"] and links["lesson"]["sources"] == [{"id": "A"}]


async def test_orphan_rows(cairn: Service) -> None:
    """Rows without a record: counted, never shown, and removed."""
    rows = await _rows(cairn)
    ghost = {**rows[MEMORIES], "embedding_id": f"emb_{cairn.cairn.graph.tenant}/GHOST", "pointer_to_node": "GHOST"}
    await cairn.cairn.vectors.insert(MEMORIES, [ghost])
    await cairn.cairn.vectors.insert(LESSONS, [{**rows[LESSONS], "rb_id": 404}])
    assert await _found_wrong(cairn) == {"orphanVectors": 2}
    await _mended(cairn)
    assert await cairn.cairn.vectors.revisions_of(LESSONS, [404]) == {}


async def test_rows_under_keys_that_no_record_has(cairn: Service) -> None:
    """As versions before this one made them of ids with a slash: counted as orphans, and removed, the record's own stays."""
    rows = await _rows(cairn)
    await cairn.cairn.vectors.insert(MEMORIES, [{**rows[MEMORIES], "embedding_id": "emb_odd"}])
    assert await _found_wrong(cairn) == {"orphanVectors": 1}
    await _mended(cairn)
    own = rows[MEMORIES]["embedding_id"]
    assert list(await cairn.cairn.vectors.revisions_of(MEMORIES, ["emb_odd", own])) == [own]


async def test_a_record_that_is_indexed_twice(cairn: Service) -> None:
    """Two rows under one key: counted, and one of them goes."""
    rows = await _rows(cairn)
    await cairn.cairn.vectors.insert(MEMORIES, [rows[MEMORIES]])
    if await cairn.cairn.vectors.count(MEMORIES) == (await cairn.integrity())["nodes"]:
        pytest.skip("this Milvus keeps one row a key by itself")
    assert await _found_wrong(cairn) == {"staleVectors": 1}
    await _mended(cairn)
    assert await cairn.cairn.vectors.count(MEMORIES) == (await cairn.integrity())["nodes"]


def test_of_two_rows_the_later_counts() -> None:
    """As there may be while a record is deleted and made anew: also where one list has only the old one."""
    both = Hits.of(["A", "B", "A"], [7, 3, 8], [2, 1, 1], [0.9, 0.5, 0.1])
    assert both == Hits({"B": (3, 1), "A": (8, 1)}, {"B": 0.5, "A": 0.1})
    assert list(both.scores) == ["B", "A"]
    old, new = Hits({"A": (7, 2)}, {"A": 0.9}), Hits({"A": (8, 1)}, {"A": 0.1})
    assert newest([both, old, new]) == [both, Hits(), new]
    assert newest([old]) == [old]
    assert newest([]) == []


async def test_counting_and_mending_while_writes_go_on(cairn: Service) -> None:
    """No false alarm from a write that is under way; what is wrong meanwhile is counted, neither more nor less, and mended;
    and no write is lost to a repair."""
    stop = asyncio.Event()
    written: dict[str, str | None] = {}  # as they must be, by their ids

    async def writer(name: str) -> None:
        number = 0
        while not stop.is_set():
            number += 1
            key, text = f"W{name}-{number % 5}", f"Event {name} {number}."
            await cairn.remember(memories=[{"event": {"id": key, "text": text}}])
            written[key] = text
            if number % 4 == 0:
                key = f"W{name}-{number % 3}"
                await cairn.ask("mutation($id: ID!) { deleteMemory(id: $id) { deleted } }", id=key)
                written[key] = None

    async def both() -> list[dict[str, int]]:
        reports = [await cairn.integrity(), (await cairn.ask(REPAIR, dry=False))["repair"]]
        return [{name: report[name] for name in COUNTS if report[name]} for report in reports]

    writers = [asyncio.create_task(writer(str(n))) for n in range(4)]
    for _ in range(4):
        assert await both() == [{}, {}]
        rows = await _rows(cairn)
        ghost = rows[MEMORIES] | {"embedding_id": embedding_id(cairn.cairn.graph.tenant, "GHOST")}
        await cairn.cairn.vectors.delete(MEMORIES, [rows[MEMORIES]["embedding_id"]])
        await cairn.cairn.vectors.delete(LESSONS, [1, 2])
        await cairn.cairn.vectors.insert(MEMORIES, [ghost])
        assert await both() == [{"missingVectors": 3, "orphanVectors": 1}, {}]
    stop.set()
    await asyncio.gather(*writers)
    assert len(written) == 20 and None in written.values()
    assert (await cairn.settled())["ok"]
    asked = " ".join(f'm{n}: memory(id: "{key}") {{ text }}' for n, key in enumerate(written))
    found = (await cairn.ask(f"{{ {asked} }}")).values()
    assert [one and one["text"] for one in found] == list(written.values())


async def test_thirty_two_identical_writes_make_one_record(cairn: Service) -> None:
    """The same call, without a key, at the same moment: one record, one row, one of them created it."""
    call: dict[str, Any] = {
        "memories": [{"event": {"id": "SAME", "text": "At once."}}],
        "edges": [{"id": "SAME-E", "source": "SAME", "target": "A", "text": "The same.", "weight": 0.5}],
        "lessons": [{"rbId": "99", "keyLesson": "Same.", "contextToPrefer": "At once.", "linkNodes": ["SAME"]}],
    }
    answers = await asyncio.gather(*(cairn.remember(**call) for _ in range(32)))
    assert sorted(answer["created"] for answer in answers) == [0] * 31 + [3]
    assert (await cairn.settled())["ok"]


async def test_a_write_between_two_looks_is_indexed_once(cairn: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    """The service looks for what was left unindexed and, before Neo4j answers, a write is committed: the answer has the
    new record in it, which the write itself is about to index."""
    read, writes = cairn.cairn.graph.read, []

    async def late(name: str, /, **parameters: Any) -> Any:
        if name == "pending_memories" and not writes:
            writes.append(asyncio.create_task(cairn.remember(memories=[{"event": {"id": "LATE", "text": "Late."}}])))
            while not await cairn.cairn.bank.memories.by_id(["LATE"]):
                await asyncio.sleep(0.01)
        return await read(name, **parameters)

    monkeypatch.setattr(cairn.cairn.graph, "read", late)
    await cairn.cairn.sync.drain()
    await asyncio.gather(*writes)
    report = await cairn.settled()
    assert report["ok"], str(report)
    assert report["nodes"] == report["nodeVectors"]


@pytest.mark.parametrize("settling", [False, True], ids=["its marks wait", "its marks are cleared meanwhile"])
async def test_a_record_that_comes_back_before_its_first_row_is_settled(
    cairn: Service, monkeypatch: pytest.MonkeyPatch, settling: bool
) -> None:
    """Written, deleted, and its row removed before there was one; then the row of the first write arrives, and the record
    is written again. The second write replaces the row of the first: two of one record would stay. Also where a batch of
    a repair, say, has cleared the marks of the first one before the second write has its turn."""
    await cairn.ask('mutation { one: deleteMemory(id: "BACK") { deleted } two: deleteMemory(id: "HOLD") { deleted } }')
    await cairn.settled()
    insert, held, waiting = cairn.cairn.vectors.insert, asyncio.Event(), asyncio.Event()
    again: list[asyncio.Task[Any]] = []

    async def text_is(text: str) -> None:
        while getattr((await cairn.cairn.bank.memories.by_id(["BACK"])).get("BACK"), "text", None) != text:
            await asyncio.sleep(0.01)

    async def a_batch() -> None:
        async with cairn.cairn.sync._turn_of_a_batch():
            await cairn.cairn.sync.settle()

    async def late(collection: str, rows: list[dict[str, Any]], *how: Any) -> None:
        names = [row.get("pointer_to_node") for row in rows]
        if "HOLD" in names:
            waiting.set()
            await held.wait()
        await insert(collection, rows, *how)
        if "BACK" in names and not again:
            if settling:
                again.append(asyncio.create_task(a_batch()))
            again.append(asyncio.create_task(cairn.remember(memories=[{"event": {"id": "BACK", "text": "Second."}}])))
            await text_is("Second.")

    monkeypatch.setattr(cairn.cairn.vectors, "insert", late)
    hold = asyncio.create_task(cairn.remember(memories=[{"event": {"id": "HOLD", "text": "Hold."}}]))
    await waiting.wait()
    remover = asyncio.create_task(cairn.cairn.sync.drain())
    first = asyncio.create_task(cairn.remember(memories=[{"event": {"id": "BACK", "text": "First."}}]))
    await text_is("First.")
    await cairn.ask('mutation { deleteMemory(id: "BACK") { deleted } }')
    held.set()
    await asyncio.gather(hold, remover, first)
    await asyncio.gather(*again)
    report = await cairn.settled()
    assert report["ok"], str(report)
    assert report["nodes"] == report["nodeVectors"]
    found = (await cairn.ask('{ searchMemories(query: "second", limit: 1) { memory { id } } }'))["searchMemories"]
    assert found == [{"memory": {"id": "BACK"}}]

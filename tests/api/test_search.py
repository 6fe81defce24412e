"""searchMemories and searchLessons: by meaning and by words, filtered in Milvus, verified against the graph."""

import asyncio
import json
from typing import Any

import pytest
from pymilvus import MilvusException

from bank.milvus import LESSONS, MEMORIES
from bank.model import LessonQuery
from bank.rows import lesson_row
from graph.errors import Unavailable
from graph.model import MemoryFilter, embedding_id
from tests.service import Service

FOUND = """query($query: String!, $filter: MemoryFilter, $limit: Int!) { searchMemories(query: $query, filter: $filter, limit: $limit) {
  score vectorScore bm25Score pathScore via { text } memory { id text } } }"""
LEARNT = """query($query: String!, $namespace: String, $tags: [String!], $scope: Scope, $outcome: Outcome, $min: Float!, $limit: Int!) {
  searchLessons(query: $query, namespace: $namespace, tags: $tags, scope: $scope, outcome: $outcome, minConfidence: $min, limit: $limit) {
    score semantic reliability recency diversity via lesson { rbId keyLesson scope } } }"""


@pytest.fixture(scope="module", autouse=True)
async def records(cairn: Service) -> None:
    await cairn.remember(
        memories=[
            {"dataSource": {"id": "S1", "text": "Quarterly revenue of the automotive division by region.", "tags": ["finance"]}},
            {"dataSource": {"id": "S2", "text": "Weather observations at coastal stations since 1950.", "tags": ["climate"]}},
            {"event": {"id": "S3", "text": "The port of Busan closed because of a dock workers' strike.", "tags": ["news"]}},
            {"agentAnswer": {"id": "S4", "text": "Cars arrived late because ships could not unload.", "tags": ["news"]}},
            {"userRequest": {"id": "S5", "text": "How many vehicles were sold in spring?"}},
        ],
        lessons=[
            {"rbId": "1", "keyLesson": "Check deliveries before blaming demand.", "contextToPrefer": "Sales of cars drop for a month.", "namespace": "marketing/q4"},
            {"rbId": "2", "keyLesson": "Ask the dealers how many cars wait.", "contextToPrefer": "Sales of cars drop for a month.", "namespace": "marketing/q3", "scope": "TEAM"},
            {"rbId": "3", "keyLesson": "Compare with the same month of last year.", "contextToPrefer": "Sales of cars drop for a month.", "namespace": "finance", "scope": "ORG"},
            {"rbId": "4", "keyLesson": "Do not trust the March file.", "contextToPrefer": "Sales of cars drop for a month.", "namespace": "marketing/q3", "outcome": "FAILURE"},
            {"rbId": "5", "keyLesson": "Rain gauges freeze in winter.", "contextToPrefer": "Weather stations report no rain.", "namespace": "climate", "tags": ["weather"]},
        ],
    )  # fmt: skip


async def _found(cairn: Service, query: str, limit: int = 10, **filter: Any) -> list[dict[str, Any]]:
    return (await cairn.ask(FOUND, query=query, limit=limit, filter=filter or None))["searchMemories"]  # type: ignore[no-any-return]


async def _learnt(cairn: Service, query: str = "sales of cars dropped", **wanted: Any) -> list[dict[str, Any]]:
    given = {"min": 0, "limit": 10, **wanted}
    return (await cairn.ask(LEARNT, query=query, **given))["searchLessons"]  # type: ignore[no-any-return]


async def test_found_by_words_and_by_meaning(cairn: Service) -> None:
    """Each hit says how: the word that stands in it, and what it is close to."""
    hits = await _found(cairn, "strike in the harbour of Busan")
    assert hits[0]["memory"]["id"] == "S3"
    assert hits[0]["bm25Score"] > 0 and hits[0]["vectorScore"] > 0
    assert [hit["score"] for hit in hits] == sorted((hit["score"] for hit in hits), reverse=True)
    assert all(0 <= hit["score"] <= 1 and hit["pathScore"] is None and hit["via"] is None for hit in hits)
    stemmed = await _found(cairn, "observing station")
    assert stemmed[0]["memory"]["id"] == "S2" and stemmed[0]["bm25Score"] > 0


async def test_a_slow_index_holds_up_the_search_and_not_the_write(
    cairn: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A memory is acknowledged when the graph has it. Who searches next, asks how much is pending or counts what disagrees
    waits until it can be found; many memories, changes and lessons are waited for by their writer."""
    going = asyncio.Event()

    def slowly(write: Any) -> Any:
        async def slow(*given: Any) -> None:
            await going.wait()
            await write(*given)

        return slow

    for name in ("insert", "upsert"):
        monkeypatch.setattr(cairn.cairn.vectors, name, slowly(getattr(cairn.cairn.vectors, name)))
    try:
        await cairn.remember(memories=[{"event": {"id": "slow", "text": "A tugboat sank off Incheon."}}])
        searching = [
            asyncio.create_task(_found(cairn, "tugboat Incheon")),
            asyncio.create_task(
                cairn.ask('{ recall(input: {query: "tugboat Incheon"}) { memories { memory { id } } } }')
            ),
            asyncio.create_task(cairn.ask("{ integrity { missingVectors } }")),
        ]
        many = [{"event": {"id": f"slow-{n}", "text": f"Crane {n} stood still."}} for n in range(9)]
        writing = [
            asyncio.create_task(cairn.ask('mutation { updateMemory(id: "S2", patch: {tags: ["sea"]}) { id } }')),
            asyncio.create_task(cairn.remember(memories=many)),
            asyncio.create_task(cairn.remember(lessons=[{"rbId": "91", "keyLesson": "Ask for tugs.", "contextToPrefer": "Ships wait."}])),
        ]  # fmt: skip
        assert not (await asyncio.wait([*searching, *writing], timeout=1.5))[0]
    finally:
        going.set()
    found, recalled, agreement, *_ = await asyncio.gather(*searching, *writing)
    assert found[0]["memory"]["id"] == "slow"
    assert recalled["recall"]["memories"][0]["memory"]["id"] == "slow"
    assert agreement["integrity"]["missingVectors"] == 0
    assert (await cairn.ask("{ integrity { ok } }"))["integrity"]["ok"]
    assert (await cairn.ask("{ status { pending } }"))["status"]["pending"] == 0
    await cairn.ask('mutation { deleteLesson(rbId: "91") { deleted } }')


async def test_what_could_not_be_indexed_is_found_all_the_same(cairn: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    """The index answers, but a write could not be put there: until it is, the graph is asked, and the answer says so."""

    async def refuses(*_: Any) -> None:
        raise Unavailable("It takes no passages just now.")

    async def asked(query: str) -> dict[str, Any]:
        answer: dict[str, Any] = (await cairn.http.post("/graphql", json={"query": query})).json()
        return answer

    memories = '{ searchMemories(query: "lighthouse gulls", limit: 1) { memory { id } } }'
    lessons = '{ searchLessons(query: "gulls are counted", limit: 1) { lesson { rbId } } }'
    with monkeypatch.context() as away:
        away.setattr(cairn.cairn.embedder, "passages", refuses)
        await cairn.remember(
            memories=[{"event": {"id": "gulls", "text": "The lighthouse keeper counted gulls."}}],
            lessons=[{"rbId": "92", "keyLesson": "Count twice.", "contextToPrefer": "Gulls are counted."}],
        )
        found, learnt = await asked(memories), await asked(lessons)
        assert found["data"]["searchMemories"][0]["memory"]["id"] == "gulls"
        assert learnt["data"]["searchLessons"][0]["lesson"]["rbId"] == "92"
        assert "behind" in found["extensions"]["degraded"] and "behind" in learnt["extensions"]["degraded"]
        assert (await cairn.ask("{ status { pending } }"))["status"]["pending"] >= 2
    assert (await cairn.settled())["ok"]
    found = await asked(memories)
    assert found["data"]["searchMemories"][0]["memory"]["id"] == "gulls" and "extensions" not in found
    await cairn.ask('mutation { deleteLesson(rbId: "92") { deleted } deleteMemory(id: "gulls") { deleted } }')


async def test_what_was_acknowledged_is_found_at_once(cairn: Service) -> None:
    """Written, updated, deleted: the next search knows."""
    for n in range(5):
        text = f"Zeppelin number {n} left Friedrichshafen."
        await cairn.remember(memories=[{"event": {"id": f"Z{n}", "text": text}}])
        assert (await _found(cairn, f"zeppelin number {n}", limit=1))[0]["memory"]["text"] == text
    await cairn.ask('mutation { updateMemory(id: "Z0", patch: {text: "A balloon left Geneva."}) { id } }')
    assert (await _found(cairn, "balloon from Geneva", limit=1))[0]["memory"]["id"] == "Z0"
    await cairn.ask('mutation { deleteMemory(id: "Z1") { deleted } }')
    assert "Z1" not in [hit["memory"]["id"] for hit in await _found(cairn, "zeppelin number 1", limit=50)]


async def test_a_search_that_fails_once_is_asked_once_more(cairn: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the way of Milvus' own client: nobody notices, and the answer is the same."""
    await cairn.settled()
    before = await _found(cairn, "ships and cars")
    client = cairn.cairn.vectors.milvus.client
    search, failed = client._found, set[str]()

    async def fails_once(connection: Any, request: Any, metadata: Any) -> Any:
        (field,) = [one.value for one in request.search_params if one.key == "anns_field"]
        if field not in failed:
            failed.add(field)
            raise MilvusException(message="not just now")
        return await search(connection, request, metadata)

    monkeypatch.setattr(client, "_found", fails_once)
    assert await _found(cairn, "ships and cars") == before
    assert failed == {"dense_vector", "sparse_vector"}


async def test_limit_and_nothing_found(cairn: Service) -> None:
    """At most so many; a filter that nothing passes is an empty answer."""
    assert len(await _found(cairn, "cars", limit=2)) == 2
    assert await _found(cairn, "cars", tags=["nobody uses this"]) == []


async def test_same_question_same_answer(cairn: Service) -> None:
    """In the same order, every time, once the index has caught up with what was deleted before."""
    await cairn.settled()
    first = await _found(cairn, "ships and cars")
    assert all([await _found(cairn, "ships and cars") == first for _ in range(3)])


async def test_a_namespace_sees_its_own_its_teams_and_the_organisations(cairn: Service) -> None:
    """Its own at 1.0, the team's at 0.9, the organisation's at 0.8, and no other project's."""
    hits = {hit["lesson"]["rbId"]: hit for hit in await _learnt(cairn, namespace="marketing/q4")}
    assert set(hits) == {"1", "2", "3"}
    for rb_id, weight in (("1", 1.0), ("2", 0.9), ("3", 0.8)):
        hit = hits[rb_id]
        factors = 0.4 * hit["semantic"] + 0.3 * hit["reliability"] + 0.2 * hit["recency"] + 0.1 * hit["diversity"]
        assert hit["score"] == pytest.approx(weight * factors)
        assert hit["reliability"] == 0.8 and hit["recency"] > 0.99
    assert {hit["lesson"]["rbId"] for hit in await _learnt(cairn)} == {"1", "2", "3", "4", "5"}
    assert {hit["lesson"]["rbId"] for hit in await _learnt(cairn, namespace="elsewhere")} == {"3"}


async def test_lessons_by_tag_scope_outcome_confidence(cairn: Service) -> None:
    """Every condition holds; a retired or quarantined lesson is never offered."""
    assert [hit["lesson"]["rbId"] for hit in await _learnt(cairn, tags=["weather"])] == ["5"]
    assert [hit["lesson"]["rbId"] for hit in await _learnt(cairn, scope="TEAM")] == ["2"]
    assert [hit["lesson"]["rbId"] for hit in await _learnt(cairn, outcome="FAILURE")] == ["4"]
    assert await _learnt(cairn, min=0.9) == []
    for status in ("RETIRED", "QUARANTINED"):
        await cairn.ask(
            'mutation($s: LessonStatus) { updateLesson(rbId: "4", patch: {status: $s}) { rbId } }', s=status
        )
        assert await _learnt(cairn, outcome="FAILURE") == []
    await cairn.ask('mutation { updateLesson(rbId: "4", patch: {status: ACTIVE}) { rbId } }')
    assert len(await _learnt(cairn, outcome="FAILURE")) == 1


async def test_the_nearest_lesson_comes_first(cairn: Service) -> None:
    """By its context and by what it says; scores fall."""
    hits = await _learnt(cairn, "the weather station shows no rain in January")
    assert hits[0]["lesson"]["rbId"] == "5"
    assert [hit["score"] for hit in hits] == sorted((hit["score"] for hit in hits), reverse=True)


@pytest.mark.parametrize(
    "question",
    [
        "searchMemories(query: $q, limit: 50) { memory { id text } }",
        "searchLessons(query: $q, limit: 50) { lesson { rbId keyLesson } }",
        "recall(input: {query: $q, hops: 0, limit: 50}) { memories { memory { id text } } lessons { lesson { rbId } } context }",
        "recall(input: {query: $q, hops: 3, limit: 50}) { memories { memory { id text } } lessons { lesson { rbId } } context }",
    ],
)
async def test_a_row_that_is_not_true_is_never_an_answer(
    cairn: Service, question: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stale rows, orphans and another tenant's rows of both kinds, planted by hand nearer to the question than anything
    else, are hidden from every question, and what it met is mended behind the scenes."""
    vectors, embedder, tenant = cairn.cairn.vectors, cairn.cairn.embedder, cairn.cairn.graph.tenant
    text = "Unicorns graze on the moon."
    (vector,) = await embedder.passages([text])
    row = {
        "pointer_to_node": "S1", "text": text, "dense_vector": vector.tolist(), "tenant": tenant, "type": "DataSource", "conv_id": "c1",
        "tags": [], "ingestion_time": 0, "window_start": 0, "window_end": 0, "version": 1, "revision": 5,
    }  # fmt: skip
    stale = {**row, "embedding_id": embedding_id(tenant, "S1")}
    orphan = {**row, "embedding_id": embedding_id(tenant, "GHOST"), "pointer_to_node": "GHOST"}
    foreign = {**row, "embedding_id": "emb_foreign/S1", "tenant": "foreign"}
    true = await cairn.cairn.bank.memories.by_id(["S3", "S4"])
    stray = {
        **row,
        "embedding_id": f"{embedding_id(tenant, 'S3')}x",
        "pointer_to_node": "S3",
        "revision": true["S3"].revision,
    }
    # As somebody would make one who knows nothing of revisions: a copy of the true row, of another version.
    recounted = {
        **row,
        "embedding_id": embedding_id(tenant, "S4"),
        "pointer_to_node": "S4",
        "revision": true["S4"].revision,
        "version": true["S4"].version + 1,
    }
    await vectors.upsert(MEMORIES, [stale, orphan, foreign, stray, recounted])
    lesson_row = {
        "rb_id": 999, "key_lesson": text, "key_lesson_vector": vector.tolist(), "context_to_prefer": text, "context_to_prefer_vector": vector.tolist(),
        "tags": [], "link_nodes": [], "tenant": tenant, "namespace": "default", "team": "default", "scope": "ORG",
        "outcome": "SUCCESS", "status": "ACTIVE", "version": 1, "revision": 5,
    }  # fmt: skip
    (fourth,) = (await cairn.cairn.bank.lessons.by_id([4])).values()
    recounted = {**lesson_row, "rb_id": 4, "revision": fourth.revision, "version": fourth.version + 1}
    await vectors.upsert(
        LESSONS, [lesson_row, {**lesson_row, "rb_id": 998, "tenant": "foreign"}, {**lesson_row, "rb_id": 5}, recounted]
    )
    report = await cairn.integrity()
    assert (report["staleVectors"], report["orphanVectors"], report["ok"]) == (4, 3, False)
    (near,) = await vectors.memories_by_meaning([vector], MemoryFilter(), 4)
    assert set(near.scores) == {"S1", "S3x", "S4", "GHOST"}
    (learnt, _) = await vectors.lessons_by_meaning(vector, LessonQuery(query=text), 3)
    assert set(learnt.scores) == {4, 5, 999}
    with monkeypatch.context() as unmended:  # a row that is mended meanwhile may be an answer
        unmended.setattr(cairn.cairn.sync, "met_untrue", lambda collection, keys: None)
        said = json.dumps(await cairn.ask(f"query($q: String!) {{ {question} }}", q=text))
    for planted in ('"S1"', '"S4"', '"GHOST"', '"4"', '"5"', '"998"', '"999"', "nicorns"):
        assert planted not in said, said
    if "searchLessons" not in question:
        assert '"S2"' in said
    if "searchMemories" not in question:
        assert '"3"' in said
    await cairn.ask(
        "query($q: String!) { searchMemories(query: $q) { score } searchLessons(query: $q) { score } }", q=text
    )
    await vectors.delete(MEMORIES, [stray["embedding_id"]])  # which only a sweep would find
    for _ in range(50):
        report = await cairn.settled()
        if report["ok"]:
            break
    assert report["ok"], report
    assert "S1" in [hit["memory"]["id"] for hit in await _found(cairn, "quarterly revenue", limit=3)]


async def test_the_vector_of_a_row_that_is_not_true_is_not_kept(cairn: Service) -> None:
    """A copy of a true row with another version and another vector: what it was found by is forgotten with it."""
    vectors, embedder, tenant = cairn.cairn.vectors, cairn.cairn.embedder, cairn.cairn.graph.tenant
    (lesson,) = (await cairn.cairn.bank.lessons.by_id([3])).values()
    own, foreign = await embedder.passages([lesson.key_lesson, "Unicorns graze on the moon."])
    row = lesson_row(lesson, tenant, foreign, foreign) | {"version": lesson.version + 1}
    await vectors.upsert(LESSONS, [row])
    await _learnt(cairn)  # it meets the row, which is mended behind the answer's back
    async with asyncio.timeout(30):
        while not (await cairn.settled())["ok"]:
            await asyncio.sleep(0.05)
    (lesson,) = (await cairn.cairn.bank.lessons.by_id([3])).values()
    (kept,) = (await vectors.lesson_vectors({3: (lesson.revision, lesson.version)})).values()
    assert float(kept @ own) > 0.99


async def test_what_may_be_offered_is_found_behind_many_that_fit_better(cairn: Service) -> None:
    """Those that fit best are looked at first; where too few of them may be offered, the others are looked at too."""
    crowd = [{"rbId": str(5_000 + n), "keyLesson": f"Count the forklifts twice, note {n}.", "contextToPrefer": "Forklifts go missing at night.", "namespace": "yard"} for n in range(45)]  # fmt: skip
    trusted = [{"rbId": str(5_100 + n), "keyLesson": f"Lock the gate, note {n}.", "contextToPrefer": "Pallets go missing on Sundays.", "namespace": "yard"} for n in range(3)]  # fmt: skip
    await cairn.remember(lessons=crowd + trusted)
    for rb_id in (5_100, 5_101, 5_102):
        for source in ("ana", "ben"):
            said = f'mutation {{ giveFeedback(rbId: {rb_id}, helpful: true, source: "{source}") {{ confidence }} }}'
            await cairn.ask(said)
    found = await _learnt(cairn, "forklifts go missing at night", namespace="yard", min=0.9, limit=3)
    assert {hit["lesson"]["rbId"] for hit in found} == {"5100", "5101", "5102"}
    assert all(hit["semantic"] < 0.5 for hit in found)

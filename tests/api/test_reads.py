"""Reads: filters, stable pages, paths, nested fields in one query a level."""

from typing import Any

import pytest

import graph.session
from tests.service import Refused, Service

PAGE = """query($filter: MemoryFilter, $first: Int!, $after: String) { memories(filter: $filter, first: $first, after: $after) {
  nodes { id } pageInfo { hasNextPage endCursor } } }"""
LESSONS = """query($filter: LessonFilter, $first: Int!, $after: String) { lessons(filter: $filter, first: $first, after: $after) {
  nodes { rbId } pageInfo { hasNextPage endCursor } } }"""
PATHS = """query($source: ID!, $target: ID!, $hops: Int!, $limit: Int!, $min: Float!) {
  paths(source: $source, target: $target, maxHops: $hops, limit: $limit, minWeight: $min) {
    score text steps { memory { id } edge { id } forward energy } } }"""


@pytest.fixture(scope="module", autouse=True)
async def records(cairn: Service) -> None:
    """Thirty memories in three conversations, a small web of edges, a few lessons."""
    kinds = ["userRequest", "agentAction", "event"]
    memories: list[dict[str, Any]] = [
        {
            kinds[n % 3]: {
                "id": f"M{n:02}",
                "text": f"Memory {n} speaks of {'Größe' if n == 7 else 'size'}.",
                "convId": f"c{n % 3}",
                "tags": ["all", f"mod{n % 5}"],
                "ingestionTime": f"2025-01-{1 + n // 3:02}T00:00:00Z",  # three at the same moment
            }
        }
        for n in range(30)
    ]
    memories[2]["event"] |= {"startDate": "2025-03-01", "endDate": "2025-03-10"}
    memories[5]["event"] |= {"startDate": "2025-03-10"}
    memories[8]["event"] |= {"endDate": "2025-04-01"}
    edges = [
        ("A", "M00", "M01", 0.9),
        ("B", "M01", "M02", 0.9),
        ("C", "M00", "M02", 0.5),
        ("D", "M03", "M02", 0.8),
        ("E", "M02", "M00", 0.1),
        ("F", "M03", "M04", 0.0),
    ]
    lessons = [
        {
            "rbId": str(100 + n),
            "keyLesson": f"Lesson {n}.",
            "contextToPrefer": "Tests.",
            "tags": [f"odd{n % 2}"],
            "outcome": "FAILURE" if n == 3 else "SUCCESS",
            "namespace": "marketing/q4" if n == 4 else "default",
            "scope": "TEAM" if n == 5 else "PROJECT",
            "linkNodes": ["M00", "M01"] if n < 2 else [],
        }
        for n in range(6)
    ]
    await cairn.remember(
        memories=memories,
        edges=[
            {
                "id": key,
                "source": s,
                "target": t,
                "text": f"Edge {key}.",
                "weight": w,
                "tags": ["odd"] if key in "AC" else [],
            }
            for key, s, t, w in edges
        ],
        lessons=lessons,
    )


async def _all(cairn: Service, query: str, field: str, key: str, first: int, **variables: Any) -> list[str]:
    found, after = [], None
    while True:
        page = (await cairn.ask(query, first=first, after=after, **variables))[field]
        found += [node[key] for node in page["nodes"]]
        after = page["pageInfo"]["endCursor"]
        if not page["pageInfo"]["hasNextPage"]:
            return found


@pytest.mark.parametrize("first", [1, 2, 7, 30, 100])
async def test_pages_show_everything_once_newest_first(cairn: Service, first: int) -> None:
    """Whatever the size of a page, also where several memories have the same time."""
    found = await _all(cairn, PAGE, "memories", "id", first, filter=None)
    assert found == [f"M{n:02}" for n in reversed(range(30))]


async def test_a_page_is_not_disturbed_by_later_writes(cairn: Service) -> None:
    """What is written between two pages neither shifts nor doubles an item."""
    first = (await cairn.ask(PAGE, first=10, filter={"convId": "c0"}))["memories"]
    await cairn.remember(conv_id="c0", memories=[{"event": {"id": "NEW", "text": "New."}}])
    rest = await cairn.ask(PAGE, first=10, after=first["pageInfo"]["endCursor"], filter={"convId": "c0"})
    ids = [node["id"] for node in first["nodes"] + rest["memories"]["nodes"]]
    assert ids == [f"M{n:02}" for n in reversed(range(0, 30, 3))]
    await cairn.ask('mutation { deleteMemory(id: "NEW") { deleted } }')


@pytest.mark.parametrize(
    ("filter", "expected"),
    [
        ({"types": ["Event"]}, [n for n in range(30) if n % 3 == 2]),
        ({"types": ["Event", "UserRequest"]}, [n for n in range(30) if n % 3 != 1]),
        ({"types": []}, []),
        ({"convId": "c1"}, [n for n in range(30) if n % 3 == 1]),
        ({"tags": ["mod2"]}, [n for n in range(30) if n % 5 == 2]),
        ({"tags": ["all", "mod2"], "types": ["UserRequest"]}, [12, 27]),
        ({"tags": ["nobody uses this"]}, []),
        ({"tags": ['"all" OR +mod2', "\\"]}, []),
        ({"types": ["Event"], "since": "2025-01-10T00:00:00Z"}, [29]),
        ({"tags": ["all"], "types": ["Event"], "convId": "c2", "since": "2025-01-10T00:00:00Z"}, [29]),
        ({"textContains": "GRÖSSE"}, []),
        ({"textContains": "größE"}, [7]),
        ({"textContains": "memory 2 "}, [2]),
        ({"since": "2025-01-10T00:00:00Z"}, [27, 28, 29]),
        ({"until": "2025-01-01T00:00:00Z"}, [0, 1, 2]),
        ({"since": "2025-01-02T00:00:00+00:00", "until": "2025-01-02T01:00:00+01:00"}, [3, 4, 5]),
        ({"overlaps": {"start": "2025-03-10", "end": "2025-03-31"}}, [2, 5]),
        ({"overlaps": {"start": "2025-03-11", "end": "2025-12-31"}}, [8]),
    ],
)
async def test_filters_hold(cairn: Service, filter: dict[str, Any], expected: list[int]) -> None:
    """Every condition given holds, in the listing and in the search alike."""
    listed = await _all(cairn, PAGE, "memories", "id", 4, filter=filter)
    assert sorted(listed) == [f"M{n:02}" for n in expected]
    search = """query($filter: MemoryFilter) { searchMemories(query: "memory speaks of size", filter: $filter, limit: 50) {
      memory { id } } }"""
    found = [hit["memory"]["id"] for hit in (await cairn.ask(search, filter=filter))["searchMemories"]]
    assert sorted(found) == [f"M{n:02}" for n in expected]


@pytest.mark.parametrize("few", [1, 5, 30])
async def test_pages_are_the_same_whichever_index_serves_them(
    cairn: Service, few: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By tags and types where few have them, by time where many do: the same memories in the same order."""
    monkeypatch.setattr("graph.store.FEW", few)
    for wanted in ({"tags": ["all"]}, {"tags": ["mod2"]}, {"types": ["Event"]}, {"tags": ["all"], "types": ["Event"]}):
        everything = (await cairn.ask(PAGE, filter=None, first=100, after=None))["memories"]["nodes"]
        found = await _all(cairn, PAGE, "memories", "id", 4, filter=wanted)
        assert found == [one["id"] for one in everything if _passes(int(one["id"][1:]), wanted)]


def _passes(number: int, wanted: dict[str, Any]) -> bool:
    return ("mod2" not in wanted.get("tags", ()) or number % 5 == 2) and ("types" not in wanted or number % 3 == 2)


@pytest.mark.parametrize(
    ("filter", "expected"),
    [
        (None, [105, 104, 103, 102, 101, 100]),
        ({"tags": ["odd1"]}, [105, 103, 101]),
        ({"linkedTo": "M00"}, [101, 100]),
        ({"linkedTo": "M29"}, []),
        ({"outcome": "FAILURE"}, [103]),
        ({"namespace": "marketing/q4"}, [104]),
        ({"scope": "TEAM"}, [105]),
        ({"status": "RETIRED"}, []),
        ({"status": "ACTIVE", "namespace": "marketing/q4"}, [104]),
        ({"status": "RETIRED", "namespace": "marketing/q4"}, []),
        ({"minConfidence": 0.81}, []),
    ],
)
async def test_lessons_by_page_and_filter(cairn: Service, filter: dict[str, Any] | None, expected: list[int]) -> None:
    """Newest id first, every condition holds."""
    found = await _all(cairn, LESSONS, "lessons", "rbId", 2, filter=filter)
    assert found == [str(n) for n in expected]


async def test_a_conversation_is_told_oldest_first(cairn: Service) -> None:
    """Its memories in order, and the edges among them only."""
    answer = (await cairn.ask('{ conversation(convId: "c0") { convId memories { id } edges { id } } }'))["conversation"]
    assert [memory["id"] for memory in answer["memories"]] == [f"M{n:02}" for n in range(0, 30, 3)]
    assert answer["edges"] == []
    empty = (await cairn.ask('{ conversation(convId: "nobody") { memories { id } edges { id } } }'))["conversation"]
    assert empty == {"memories": [], "edges": []}


async def test_edges_of_a_memory(cairn: Service) -> None:
    """By direction, weight and tags, strongest first, by pages."""
    query = """query($direction: Direction!, $min: Float!, $tags: [String!], $first: Int!, $after: String) { memory(id: "M02") {
      edges(direction: $direction, minWeight: $min, tags: $tags, first: $first, after: $after) {
        nodes { id source { id } target { id } } pageInfo { hasNextPage endCursor } } } }"""

    async def edges(**wanted: Any) -> tuple[list[str], dict[str, Any]]:
        given = {"direction": "BOTH", "min": 0, "tags": None, "first": 20, "after": None, **wanted}
        page = (await cairn.ask(query, **given))["memory"]["edges"]
        return [node["id"] for node in page["nodes"]], page["pageInfo"]

    assert (await edges())[0] == ["B", "D", "C", "E"]
    assert (await edges(direction="OUT"))[0] == ["E"]
    assert (await edges(direction="IN"))[0] == ["B", "D", "C"]
    assert (await edges(min=0.6))[0] == ["B", "D"]
    assert (await edges(tags=["odd"]))[0] == ["C"]
    first, info = await edges(first=3)
    assert (first, info["hasNextPage"]) == (["B", "D", "C"], True)
    assert (await edges(first=3, after=info["endCursor"]))[0] == ["E"]


async def test_paths_are_the_best_products_without_cycles(cairn: Service) -> None:
    """Edges are walked both ways; `forward` says which; the text reads as prose."""
    found = (await cairn.ask(PATHS, source="M00", target="M03", hops=4, limit=5, min=0))["paths"]
    assert [[step["memory"]["id"] for step in path["steps"]] for path in found] == [
        ["M00", "M01", "M02", "M03"],
        ["M00", "M02", "M03"],
        ["M00", "M02", "M03"],
    ]
    assert [round(path["score"], 4) for path in found] == [0.648, 0.4, 0.08]
    assert [step["forward"] for step in found[0]["steps"]] == [True, True, True, False]
    assert [step["edge"] and step["edge"]["id"] for step in found[2]["steps"]] == [None, "E", "D"]
    assert found[0]["text"] == (
        '(M00: "Memory 0 speaks of size.") -["Edge A."]-> (M01: "Memory 1 speaks of size.") -["Edge B."]-> '
        '(M02: "Memory 2 speaks of size.") <-["Edge D."]- (M03: "Memory 3 speaks of size.")'
    )


async def test_paths_keep_to_their_limits(cairn: Service) -> None:
    """maxHops, limit, minWeight; nothing over an edge of weight 0; no way is an empty list."""
    assert len((await cairn.ask(PATHS, source="M00", target="M03", hops=2, limit=5, min=0))["paths"]) == 2
    assert len((await cairn.ask(PATHS, source="M00", target="M03", hops=4, limit=1, min=0))["paths"]) == 1
    assert len((await cairn.ask(PATHS, source="M00", target="M03", hops=4, limit=5, min=0.6))["paths"]) == 1
    assert (await cairn.ask(PATHS, source="M00", target="M04", hops=4, limit=5, min=0))["paths"] == []
    assert (await cairn.ask(PATHS, source="M00", target="M20", hops=4, limit=5, min=0))["paths"] == []
    assert (await cairn.ask(PATHS, source="M00", target="M00", hops=4, limit=5, min=0))["paths"] == []
    with pytest.raises(Refused) as refused:
        await cairn.ask(PATHS, source="M00", target="NOBODY", hops=4, limit=5, min=0)
    assert refused.value.code == "NOT_FOUND" and "NOBODY" in str(refused.value)


async def test_nested_fields_take_one_query_a_level(cairn: Service) -> None:
    """Memories, their edges, the ends of these, their lessons, the lessons' sources, the sources' edges: one round trip
    a level at most, however many there are; what was read before in the same request is not read again."""
    query = """query($first: Int!) { memories(first: $first) { nodes { id
      edges { nodes { source { id } target { lessons { rbId sources { id edges(direction: OUT) { nodes { id } } } } } } } } } }"""
    for first in (30, 28):
        spent = []
        for _ in range(5):  # the least of five: the service looks for index work now and then, which counts too
            before = cairn.cairn.graph.round_trips
            await cairn.ask(query, first=first)
            spent.append(cairn.cairn.graph.round_trips - before)
        assert min(spent) == 5  # the sources were among the ends: no sixth


async def test_a_record_that_is_deleted_while_it_is_read(cairn: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neo4j then returns it without its type and its properties: it is read again, and the answer is whole."""
    data, torn = graph.session._data, []

    async def late(result: Any) -> list[graph.session.Row]:
        rows = await data(result)
        if rows and "properties" in rows[0] and len(torn) < 2:
            torn.append(rows[0])
            lost = {"type": None} if "type" in rows[0] else {}
            return [{**rows[0], **lost, "properties": {"ingestion_time": None, "update_time": None}}, *rows[1:]]
        return rows

    monkeypatch.setattr(graph.session, "_data", late)
    page = (await cairn.ask(PAGE, filter=None, first=29, after=None))["memories"]
    assert len(torn) == 2 and len(page["nodes"]) == 29 and page["pageInfo"]["hasNextPage"]
    torn.clear()
    assert (await cairn.ask('{ lesson(rbId: "100") { rbId } }'))["lesson"] == {"rbId": "100"}
    assert len(torn) == 2


async def test_a_memory_of_no_type_or_no_id_is_none(cairn: Service) -> None:
    """A node that somebody made by hand is no answer, and stands in nobody's way."""
    tenant = cairn.cairn.graph.tenant
    await cairn.cairn.graph.define(
        f"""CREATE (:Memory {{tenant: '{tenant}', id: 'BARE', text: 'Bare.', conv_id: 'c0', tags: ['all'], revision: 1, version: 1,
          ingestion_time: datetime('2025-01-10T12:00:00Z'), update_time: datetime()}}),
        (:Memory:Event {{tenant: '{tenant}', text: 'Nameless.', conv_id: 'c0', tags: ['all'], revision: 1, version: 1,
          ingestion_time: datetime('2025-01-10T12:00:00Z'), update_time: datetime()}})"""
    )
    try:
        for filter in (None, {"convId": "c0"}, {"tags": ["all"]}, {"types": ["Event"]}):
            page = (await cairn.ask(PAGE, filter=filter, first=2, after=None))["memories"]
            assert len(page["nodes"]) == 2 and page["pageInfo"]["hasNextPage"]
            assert "BARE" not in [node["id"] for node in page["nodes"]]
        answer = await cairn.ask('{ memory(id: "BARE") { id } conversation(convId: "c0") { memories { id } } }')
        assert answer["memory"] is None and len(answer["conversation"]["memories"]) == 10
    finally:
        await cairn.cairn.graph.define(
            f"MATCH (m:Memory {{tenant: '{tenant}'}}) WHERE m.text IN ['Bare.', 'Nameless.'] DETACH DELETE m"
        )

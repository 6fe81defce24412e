"""Whatever is sent as variables, the answer is an answer or a refusal: never our fault."""

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.service import REMEMBER, Service


def calm(examples: int) -> settings:
    """The same examples in every run, however slow the machine."""
    return settings(
        max_examples=examples,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
    )


# Also halves of characters, control characters and the letters of every script.
text = st.text(st.characters(exclude_categories=()), max_size=12)
leaf = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(allow_nan=False, allow_infinity=False),
    text,
    st.sampled_from(["", " ", "\0", "\ud800", "N1", "E1", "1", "2025-01-31T09:00:00Z", "2025-01-31", "Event", "ORG"]),
)
junk = st.recursive(
    leaf, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3), max_leaves=6
)


def mostly(right: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Seven times of eight the right kind of value, so that the call comes far enough to be interesting."""
    return st.integers(0, 7).flatmap(lambda n: right if n else junk)


def record(required: dict[str, Any], optional: dict[str, Any]) -> st.SearchStrategy[Any]:
    return st.fixed_dictionaries(
        {name: mostly(value) for name, value in required.items()},
        optional={name: mostly(value) for name, value in optional.items()},
    )


ids = st.sampled_from(["N1", "N2", "N3", '"] or tenant != "', "\\"]) | text
tags = st.lists(mostly(text), max_size=3)
times = st.datetimes().map(lambda moment: moment.isoformat() + "Z")
days = st.dates().map(lambda day: day.isoformat())
rb_ids = st.integers(1, 2**63 - 1).map(str) | st.sampled_from(["1", "2"])
common = {"id": ids, "tags": tags, "convId": text, "ingestionTime": times}
memory = st.one_of(
    record({"userRequest": record({"text": text}, {**common, "userRole": text, "userId": text})}, {}),
    record({"event": record({"text": text}, {**common, "startDate": days, "endDate": days})}, {}),
    record({"agentAnswer": record({"text": text}, {**common, "analysisTypes": tags, "metrics": tags})}, {}),
)
edge = record(
    {"source": ids, "target": ids, "text": text, "weight": st.floats(-0.1, 1.1)},
    {"id": ids, "tags": tags, "createdTime": times},
)
lesson = record(
    {"keyLesson": text, "contextToPrefer": text},
    {
        "rbId": rb_ids,
        "title": text,
        "tags": tags,
        "linkNodes": st.lists(ids, max_size=3),
        "outcome": st.sampled_from(["SUCCESS", "FAILURE"]),
        "namespace": text,
        "scope": st.sampled_from(["PROJECT", "TEAM", "ORG"]),
    },
)
call = record(
    {"convId": text},
    {
        "memories": st.lists(mostly(memory), max_size=3),
        "edges": st.lists(mostly(edge), max_size=2),
        "lessons": st.lists(mostly(lesson), max_size=2),
        "idempotencyKey": text,
    },
)
filters = record(
    {},
    {
        "types": st.lists(st.sampled_from(["Event", "UserRequest"]), max_size=2),
        "convId": text,
        "tags": tags,
        "textContains": text,
        "since": times,
        "until": times,
        "overlaps": record({"start": days, "end": days}, {}),
    },
)
lesson_filters = record(
    {}, {"tags": tags, "linkedTo": ids, "namespace": text, "minConfidence": st.floats(0, 1), "scope": st.just("ORG")}
)
patch = record({}, {"text": text, "tags": tags, "userRole": text, "startDate": days, "endDate": days, "metrics": tags})
sizes = st.integers(-1, 600)

SEARCH = """query($query: String!, $filter: MemoryFilter, $limit: Int! = 10) {
  searchMemories(query: $query, filter: $filter, limit: $limit) { score memory { id text tags edges { nodes { id } } } } }"""
SEARCH_LESSONS = """query($query: String!, $tags: [String!], $namespace: String, $limit: Int! = 5) {
  searchLessons(query: $query, tags: $tags, namespace: $namespace, limit: $limit) { score lesson { rbId linkNodes } } }"""
LIST = """query($filter: MemoryFilter, $lessons: LessonFilter, $first: Int! = 20) {
  memories(filter: $filter, first: $first) { nodes { id } } lessons(filter: $lessons, first: $first) { nodes { rbId } } }"""
LOOK = """query($id: ID!, $rbId: ID!, $convId: String!, $after: String) {
  memory(id: $id) { id } edge(id: $id) { id } lesson(rbId: $rbId) { rbId } conversation(convId: $convId) { edges { id } }
  paths(source: $id, target: "N1") { text } memories(after: $after) { nodes { id } } }"""
CHANGE = """mutation($id: ID!, $patch: MemoryPatch!, $rbId: ID!, $nodes: [ID!]!, $weight: Float) {
  updateMemory(id: $id, patch: $patch) { id } linkLesson(rbId: $rbId, nodeIds: $nodes) { rbId }
  unlinkLesson(rbId: $rbId, nodeIds: $nodes) { rbId } updateEdge(id: $id, weight: $weight) { id } }"""


async def never_our_fault(cairn: Service, query: str, variables: Any) -> None:
    content = json.dumps({"query": query, "variables": variables})
    response = await cairn.http.post("/graphql", content=content)
    assert response.status_code < 500
    for error in response.json().get("errors", []):
        assert error["extensions"]["code"] not in ("INTERNAL", "UNAVAILABLE"), error["message"]


async def test_a_search_of_nothing(cairn: Service) -> None:
    """A service with nothing in it finds nothing; it does not fail. First, while there is nothing."""
    answer = await cairn.ask('{ searchMemories(query: "words") { score } searchLessons(query: "words") { score } }')
    assert answer == {"searchMemories": [], "searchLessons": []}


@pytest.fixture(scope="module")
async def stock(cairn: Service) -> None:
    """Something that the calls below can meet."""
    await cairn.remember(
        memories=[{"userRequest": {"id": f"N{n}", "text": "words", "tags": ["t"]}} for n in range(1, 4)],
        edges=[{"id": "N1", "source": "N1", "target": "N2", "text": "why", "weight": 0.5}],
        lessons=[{"rbId": "1", "keyLesson": "do", "contextToPrefer": "when", "linkNodes": ["N1"]}],
    )


@calm(100)
@given(variables=st.fixed_dictionaries({"input": mostly(call)}))
async def test_any_remember(cairn: Service, stock: None, variables: Any) -> None:
    """Any call to remember is stored or refused."""
    await never_our_fault(cairn, REMEMBER, variables)


@calm(60)
@given(variables=record({"query": text}, {"filter": filters, "limit": sizes}))
async def test_any_search(cairn: Service, stock: None, variables: Any) -> None:
    """Any search of memories is answered or refused."""
    await never_our_fault(cairn, SEARCH, variables)


@calm(50)
@given(variables=record({"query": text}, {"tags": tags, "namespace": text, "limit": sizes}))
async def test_any_search_of_lessons(cairn: Service, stock: None, variables: Any) -> None:
    """Any search of lessons is answered or refused."""
    await never_our_fault(cairn, SEARCH_LESSONS, variables)


@calm(60)
@given(variables=record({}, {"filter": filters, "lessons": lesson_filters, "first": sizes}))
async def test_any_listing(cairn: Service, stock: None, variables: Any) -> None:
    """Any filter of a listing is answered or refused."""
    await never_our_fault(cairn, LIST, variables)


@calm(60)
@given(variables=record({"id": ids, "rbId": rb_ids, "convId": text}, {"after": text}))
async def test_any_lookup(cairn: Service, stock: None, variables: Any) -> None:
    """Any lookup is answered or refused."""
    await never_our_fault(cairn, LOOK, variables)


@calm(60)
@given(
    variables=record(
        {"id": ids, "patch": patch, "rbId": rb_ids, "nodes": st.lists(ids, max_size=2)}, {"weight": st.floats(0, 1)}
    )
)
async def test_any_change(cairn: Service, stock: None, variables: Any) -> None:
    """Any change is made or refused."""
    await never_our_fault(cairn, CHANGE, variables)


@calm(30)
@given(variables=st.dictionaries(st.sampled_from(["input", "query", "filter", "id", "patch"]), junk), query=st.text())
async def test_any_request(cairn: Service, stock: None, query: str, variables: Any) -> None:
    """Any text as a query, and anything as its variables, is refused."""
    await never_our_fault(cairn, query or "{", variables)
    for known in (REMEMBER, SEARCH, LIST):
        await never_our_fault(cairn, known, variables)

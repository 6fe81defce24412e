"""Bad input is refused whole: a code, every wrong field by name, and nothing stored. Strange input is kept exactly."""

import base64
import copy
import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

import pytest

from bank.milvus import LESSONS, MEMORIES
from bank.model import Lesson
from bank.rows import lesson_row, memory_row
from bank.vectors import Vectors
from graph.model import UserRequest, embedding_id
from graph.session import Graph
from tests.hostile.asking import counts, refused
from tests.service import REMEMBER, Service

HALF = "a\ud800b"  # half of a surrogate pair
NUL = "a\0b"
LARGEST = 2**63 - 1


def request(**fields: Any) -> dict[str, Any]:
    return {"userRequest": {"text": "some words", **fields}}


def event(**fields: Any) -> dict[str, Any]:
    return {"event": {"text": "some words", **fields}}


def edge(source: str = "A", target: str = "B", **fields: Any) -> dict[str, Any]:
    return {"source": source, "target": target, "text": "why", "weight": 0.5, **fields}


def lesson(**fields: Any) -> dict[str, Any]:
    return {"keyLesson": "do this", "contextToPrefer": "when that", **fields}


@pytest.fixture(autouse=True, scope="module")
async def world(cairn: Service) -> None:
    """What the tests below find: two memories, an edge, a lesson. The same call in every module run, so an upsert."""
    await cairn.remember(
        memories=[request(id="A", userRole="analyst"), event(id="B", startDate="2025-02-01", endDate="2025-02-28")],
        edges=[edge(id="E")],
        lessons=[lesson(rbId="42", linkNodes=["A"])],
    )


async def nothing_stored(cairn: Service, before: tuple[int, ...] | None = None) -> None:
    """No valid item of a refused call is there; `before`: and nothing else that was not."""
    found = await cairn.ask('{ memory(id: "valid") { id } edge(id: "valid") { id } lesson(rbId: "777") { rbId } }')
    assert found == {"memory": None, "edge": None, "lesson": None}
    if before is not None:
        assert await counts(cairn) == before


# ---------------------------------------------------------------- remember

LONG = "x" * 65_536
WRONG: dict[str, tuple[dict[str, Any], list[str]]] = {
    "unknown ends": (
        {"edges": [edge("A", "none1"), edge("none2", "B"), edge("none3", "none4")]},
        ["edges[0].target", "edges[1].source", "edges[2].source", "edges[2].target"],
    ),
    "unknown sources of lessons": (
        {"lessons": [lesson(linkNodes=["A", "none1"]), lesson(linkNodes=["none2"])]},
        ["lessons[0].linkNodes", "lessons[1].linkNodes"],
    ),
    "unknown ends and sources": (
        {"edges": [edge("none1", "B")], "lessons": [lesson(linkNodes=["none2"])]},
        ["edges[0].source", "lessons[0].linkNodes"],
    ),
    "a second type": ({"memories": [event(id="A"), request(id="B")]}, ["memories[0].id", "memories[1].id"]),
    "two types in one call": ({"memories": [request(id="C"), event(id="C")]}, ["memories[1].id"]),
    "another edge's id": ({"edges": [edge("B", "A", id="E")]}, ["edges[0].id"]),
    "weight below 0": ({"edges": [edge(weight=-0.001)]}, ["edges[0].weight"]),
    "weight above 1": ({"edges": [edge(weight=1.0000001), edge(weight=1e308)]}, ["edges[0].weight", "edges[1].weight"]),
    "blank text": ({"memories": [request(text="")]}, ["memories[0].text"]),
    "white text": ({"memories": [request(text=" \n\t\u3000")]}, ["memories[0].text"]),
    "blank edge": ({"edges": [edge(text=" ")]}, ["edges[0].text"]),
    "blank lesson": (
        {"lessons": [lesson(keyLesson=" ", contextToPrefer="", title=" ")]},
        ["lessons[0].keyLesson", "lessons[0].contextToPrefer", "lessons[0].title"],
    ),
    "long text": ({"memories": [request(text=LONG)]}, ["memories[0].text"]),
    "long text of few letters": ({"memories": [request(text="é" * 32_768)]}, ["memories[0].text"]),
    "long edge": ({"edges": [edge(text=LONG)]}, ["edges[0].text"]),
    "long lesson": (
        {"lessons": [lesson(keyLesson=LONG, contextToPrefer=LONG, title="x" * 1_025)]},
        ["lessons[0].keyLesson", "lessons[0].contextToPrefer", "lessons[0].title"],
    ),
    "long own field": ({"memories": [request(userRole=LONG)]}, ["memories[0].userRole"]),
    "many tags": (
        {
            "memories": [request(tags=[f"t{n}" for n in range(101)])],
            "edges": [edge(tags=[f"t{n}" for n in range(101)])],
            "lessons": [lesson(tags=[f"t{n}" for n in range(101)])],
        },
        ["memories[0].tags", "edges[0].tags", "lessons[0].tags"],
    ),
    "long tags": (
        {
            "memories": [request(tags=["fine", "t" * 257])],
            "edges": [edge(tags=["é" * 129])],
            "lessons": [lesson(tags=["t" * 257])],
        },
        ["memories[0].tags[1]", "edges[0].tags[0]", "lessons[0].tags[0]"],
    ),
    "blank tags": ({"memories": [request(tags=["", " ", "x "])]}, [f"memories[0].tags[{n}]" for n in range(3)]),
    "long ids": (
        {"memories": [request(id="n" * 257)], "edges": [edge(id="e" * 257)]},
        ["memories[0].id", "edges[0].id"],
    ),
    "blank ids": ({"memories": [request(id="")], "edges": [edge(id=" ")]}, ["memories[0].id", "edges[0].id"]),
    "ids with a line break": (
        {"memories": [request(id="a\nb"), request(id="a\u2028b")]},
        ["memories[0].id", "memories[1].id"],
    ),
    "a memory twice": ({"memories": [request(id="C"), request(id="C", text="other")]}, ["memories[1].id"]),
    "an edge twice": ({"edges": [edge(id="F"), edge(id="F", weight=0.6)]}, ["edges[1].id"]),
    "a lesson twice": ({"lessons": [lesson(rbId="7"), lesson(rbId="7", title="x")]}, ["lessons[1].rbId"]),
    "an edge onto itself": ({"edges": [edge("A", "A")]}, ["edges[0].target"]),
    "an end before its start": (
        {"memories": [event(id="C", startDate="2025-02-02", endDate="2025-02-01")]},
        ["memories[0] (C).endDate"],
    ),
    "a namespace with an empty part": (
        {"lessons": [lesson(namespace=name) for name in ("", "/", "a//b", "a/", " a")]},
        [f"lessons[{n}].namespace" for n in range(5)],
    ),
    "a blank conversation": ({"convId": " ", "memories": [request(text="")]}, ["convId", "memories[0].text"]),
    "many things at once": (
        {
            "memories": [request(text="", tags=[" "])],
            "edges": [edge("A", "A", weight=2)],
            "lessons": [lesson(rbId="x", keyLesson="")],
            "idempotencyKey": " ",
        },
        [
            "idempotencyKey",
            "memories[0].text",
            "memories[0].tags[0]",
            "edges[0].target",
            "edges[0].weight",
            "lessons[0].rbId",
            "lessons[0].keyLesson",
        ],
    ),
}


def with_valid(parts: dict[str, Any]) -> dict[str, Any]:
    """The same call with a memory, an edge and a lesson at its end that nothing is wrong with."""
    return {
        "convId": "c1",
        **parts,
        "memories": [*parts.get("memories", []), request(id="valid")],
        "edges": [*parts.get("edges", []), edge(id="valid")],
        "lessons": [*parts.get("lessons", []), lesson(rbId="777")],
    }


@pytest.mark.parametrize("name", WRONG)
async def test_a_wrong_call_names_every_field_and_stores_nothing(cairn: Service, name: str) -> None:
    """The valid items of a call with a wrong one are not stored either; `problems` names all that is wrong, only that."""
    parts, fields = WRONG[name]
    error = await refused(cairn, REMEMBER, input=with_valid(parts))
    assert error.code == "BAD_USER_INPUT"
    assert sorted(set(error.fields)) == sorted(fields)
    await nothing_stored(cairn)


async def test_unknown_ids_are_named_in_the_message(cairn: Service) -> None:
    """Whoever reads only the message learns every id that does not exist."""
    error = await refused(cairn, REMEMBER, input=with_valid({"edges": [edge("none1", "none2"), edge("A", "none3")]}))
    assert all(name in str(error) for name in ("none1", "none2", "none3"))


STRANGE_WRITES: dict[str, Any] = {
    "convId": lambda bad: {"convId": bad},
    "idempotencyKey": lambda bad: {"idempotencyKey": bad},
    **{
        f"memories[0].{field}": lambda bad, field=field: {"memories": [request(**{field: bad})]}
        for field in ("id", "text", "convId", "userRole", "userId")
    },
    "memories[0].tags[0]": lambda bad: {"memories": [request(tags=[bad])]},
    "memories[0].preferenceType": lambda bad: {"memories": [{"userPreference": {"text": "x", "preferenceType": bad}}]},
    "memories[0].analysisTypes[0]": lambda bad: {"memories": [{"agentAnswer": {"text": "x", "analysisTypes": [bad]}}]},
    "memories[0].metrics[0]": lambda bad: {"memories": [{"agentAnswer": {"text": "x", "metrics": [bad]}}]},
    "memories[0].status": lambda bad: {"memories": [{"agentAction": {"text": "x", "status": bad}}]},
    "memories[0].parameterField": lambda bad: {"memories": [{"agentAction": {"text": "x", "parameterField": bad}}]},
    "memories[0].sourceType": lambda bad: {"memories": [event(sourceType=bad)]},
    "memories[0].docPointer": lambda bad: {"memories": [{"dataSource": {"text": "x", "docPointer": bad}}]},
    "memories[0].relevantParts": lambda bad: {"memories": [{"dataSource": {"text": "x", "relevantParts": bad}}]},
    **{
        f"edges[0].{field}": lambda bad, field=field: {"edges": [edge(**{field: bad})]}
        for field in ("id", "source", "target", "text")
    },
    "edges[0].tags[0]": lambda bad: {"edges": [edge(tags=[bad])]},
    **{
        f"lessons[0].{field}": lambda bad, field=field: {"lessons": [lesson(**{field: bad})]}
        for field in ("rbId", "title", "keyLesson", "contextToPrefer", "namespace")
    },
    "lessons[0].tags[0]": lambda bad: {"lessons": [lesson(tags=[bad])]},
    "lessons[0].linkNodes[0]": lambda bad: {"lessons": [lesson(linkNodes=[bad])]},
}


@pytest.mark.parametrize("bad", [HALF, NUL], ids=["surrogate", "NUL"])
async def test_half_characters_and_nul_are_written_nowhere(cairn: Service, bad: str) -> None:
    """A lone surrogate or NUL in any text of a write refuses the whole call and names the field."""
    before = await counts(cairn)
    for field, parts in STRANGE_WRITES.items():
        error = await refused(cairn, REMEMBER, input=with_valid(parts(bad)))
        assert (error.code, error.fields) == ("BAD_USER_INPUT", [field])
    await nothing_stored(cairn, before)


async def test_numbers_that_are_none(cairn: Service) -> None:
    """NaN is no JSON: 400. A number beyond all floats is refused as a variable and as a literal."""
    before = await counts(cairn)
    body = json.dumps({"query": REMEMBER, "variables": {"input": with_valid({"edges": [edge(weight=0.125)]})}})
    for word in ("NaN", "Infinity", "-Infinity"):
        response = await cairn.http.post("/graphql", content=body.replace("0.125", word))
        assert response.status_code == 400
        assert response.json()["errors"][0]["extensions"]["code"] == "BAD_USER_INPUT"
    response = await cairn.http.post("/graphql", content=body.replace("0.125", "1e999"))
    (error,) = response.json()["errors"]
    assert error["extensions"]["code"] == "BAD_USER_INPUT"
    assert "edges[0].weight" in error["message"]
    literal = """mutation { remember(input: {convId: "c", memories: [{userRequest: {id: "valid", text: "x"}}],
      edges: [{source: "A", target: "B", text: "x", weight: 1e999}]}) { created } }"""
    assert (await refused(cairn, literal)).fields == ["edges[0].weight"]
    assert (await refused(cairn, 'mutation { updateEdge(id: "E", weight: 1e999) { id } }')).fields == ["weight"]
    await nothing_stored(cairn, before)


COERCED = {
    "a time without an offset": {"memories": [request(ingestionTime="2025-01-31T09:00:00")]},
    "no time": {"memories": [request(ingestionTime="yesterday")]},
    "a time after the year 9999": {"memories": [request(ingestionTime="9999-12-31T23:59:59-05:00")]},
    "a time as a number": {"memories": [request(ingestionTime=1_700_000_000)]},
    "an edge's time without an offset": {"edges": [edge(createdTime="2025-01-31T09:00:00")]},
    "no day": {"memories": [event(startDate="2025-02-30")]},
    "a day with a time": {"memories": [event(endDate="2025-02-01T00:00:00Z")]},
    "a day as a number": {"memories": [event(startDate=20250201)]},
    "two types in one item": {"memories": [{"userRequest": {"text": "x"}, "event": {"text": "y"}}]},
    "a type and a null": {"memories": [{"userRequest": {"text": "x"}, "event": None}]},
    "no type in an item": {"memories": [{}]},
    "a type that is null": {"memories": [{"userRequest": None}]},
    "an unknown outcome": {"lessons": [lesson(outcome="PERHAPS")]},
    "an enum with half a character": {"lessons": [lesson(scope=HALF)]},
    "an unknown field": {"memories": [request(color="red")]},
    "another type's field": {"memories": [request(startDate="2025-01-01")]},
    "text that is a number": {"memories": [request(text=5)]},
    "a text that is null": {"memories": [request(text=None)]},
    "a tag that is null": {"memories": [request(tags=[None])]},
    "an item that is null": {"memories": [None]},
    "a list that is null": {"edges": [edge()], "idempotencyKey": 5},
    "weight as text": {"edges": [edge(weight="0.5")]},
    "weight that is true": {"edges": [edge(weight=True)]},
}


@pytest.mark.parametrize("name", COERCED)
async def test_values_of_the_wrong_kind(cairn: Service, name: str) -> None:
    """A value that its type does not take is BAD_USER_INPUT, and nothing of the call is stored."""
    error = await refused(cairn, REMEMBER, input=with_valid(COERCED[name]))
    assert {one["extensions"]["code"] for one in error.errors} == {"BAD_USER_INPUT"}
    await nothing_stored(cairn)


async def test_all_of_these_together_leave_no_trace(cairn: Service) -> None:
    """After every wrong call of this file both stores hold as many rows as before."""
    before = await counts(cairn)
    for parts in (*(parts for parts, _ in WRONG.values()), *COERCED.values()):
        await refused(cairn, REMEMBER, input=with_valid(parts))
    await nothing_stored(cairn, before)


async def test_at_most_a_thousand_items(cairn: Service) -> None:
    """1,001 items, of whatever kind, are refused; 1,000 are stored."""
    before = await counts(cairn)
    memories = [request(id=f"many{n}", text=f"words {n}", convId="many") for n in range(998)]
    edges = [edge("many0", "many1", id="many")]
    over = {"convId": "many", "memories": memories, "edges": edges, "lessons": [lesson(rbId="777"), lesson()]}
    error = await refused(cairn, REMEMBER, input=over)
    assert (error.code, error.fields) == ("BAD_USER_INPUT", ["input"])
    await nothing_stored(cairn, before)
    answer = await cairn.remember("many", memories=memories, edges=edges, lessons=[lesson(rbId="1000")])
    assert answer["created"] == 1_000


async def test_the_largest_texts_are_stored(cairn: Service) -> None:
    """65,535 bytes fit, of one byte a letter or of several, and come back whole; so do 100 tags of 256 bytes."""
    texts = ["x" * 65_535, "é" * 32_767 + "x", "🙂" * 16_383 + "abc"]
    tags = [f"{n:03}" + "é" * 126 + "t" for n in range(100)]
    answer = await cairn.remember(
        "large",
        memories=[request(id=f"large{n}", text=text, tags=tags) for n, text in enumerate(texts)],
        edges=[edge("large0", "large1", text=texts[1], tags=tags)],
        lessons=[lesson(rbId="65535", keyLesson=texts[1], contextToPrefer=texts[2], tags=tags)],
    )
    assert [memory["text"] for memory in answer["memories"]] == texts
    assert all(memory["tags"] == tags for memory in answer["memories"])
    assert answer["edges"][0]["text"] == answer["lessons"][0]["keyLesson"] == texts[1]
    found = await cairn.ask('{ searchMemories(query: "x", filter: {convId: "large"}) { memory { id } } }')
    assert {hit["memory"]["id"] for hit in found["searchMemories"]} == {"large0", "large1", "large2"}
    assert (await cairn.settled())["ok"]


async def test_the_same_item_twice_is_one(cairn: Service) -> None:
    """The same id twice with the same content is one item."""
    parts = {
        "memories": [request(id="twin"), request(id="twin")],
        "edges": [edge("twin", "A", id="twin"), edge("twin", "A", id="twin")],
        "lessons": [lesson(rbId="22"), lesson(rbId="22")],
    }
    assert (await cairn.remember(**parts))["created"] == 3
    assert (await cairn.remember(**parts))["unchanged"] == 3


async def test_a_key_is_for_one_body(cairn: Service) -> None:
    """An idempotency key with another body is CONFLICT, and nothing of that body is stored."""
    first = await cairn.remember(idempotencyKey="k", memories=[request(text="once")])
    assert await cairn.remember(idempotencyKey="k", memories=[request(text="once")]) == first
    before = await counts(cairn)
    error = await refused(cairn, REMEMBER, input={**with_valid({}), "idempotencyKey": "k"})
    assert (error.code, error.fields) == ("CONFLICT", ["idempotencyKey"])
    await nothing_stored(cairn, before)


async def test_a_refused_call_does_not_take_its_key(cairn: Service) -> None:
    """After a refusal the same key serves the mended call."""
    await refused(cairn, REMEMBER, input={"convId": "c", "idempotencyKey": "k2", "edges": [edge("none1", "A")]})
    assert (await cairn.remember(idempotencyKey="k2", edges=[edge("B", "A", id="k2")]))["created"] == 1


# ---------------------------------------------------------------- changes

UPDATE = "mutation($id: ID!, $patch: MemoryPatch!) { updateMemory(id: $id, patch: $patch) { id } }"
UPDATE_LESSON = "mutation($id: ID!, $patch: LessonPatch!) { updateLesson(rbId: $id, patch: $patch) { rbId } }"
UPDATE_EDGE = """mutation($id: ID!, $text: String, $weight: Float, $tags: [String!]) {
  updateEdge(id: $id, text: $text, weight: $weight, tags: $tags) { id } }"""
PATCHES: list[tuple[str, str, dict[str, Any], list[str]]] = [
    (UPDATE, "A", {"text": None}, ["patch.text"]),
    (UPDATE, "A", {"text": " ", "tags": None}, ["patch.text", "patch.tags"]),
    (UPDATE, "A", {"text": LONG}, ["patch.text"]),
    (UPDATE, "A", {"text": HALF, "userRole": NUL, "tags": [HALF]}, ["patch.text", "patch.userRole", "patch.tags[0]"]),
    (UPDATE, "A", {"tags": ["t"] * 101}, ["patch.tags"]),
    (UPDATE, "A", {"text": "new", "status": "x", "startDate": "2025-01-01"}, ["patch.status", "patch.startDate"]),
    (UPDATE, "B", {"text": "new", "userRole": "x"}, ["patch.userRole"]),
    (UPDATE, "A", {"text": "new", "metrics": None}, ["patch.metrics"]),
    (UPDATE, "B", {"text": "new", "endDate": "2025-01-01"}, ["patch.endDate"]),
    (UPDATE, "B", {"text": "new", "startDate": "2025-03-01"}, ["patch.endDate"]),
    (UPDATE, "B", {"startDate": "2025-03-01", "endDate": "2025-02-01"}, ["patch.endDate"]),
    (UPDATE_LESSON, "42", {"keyLesson": None, "tags": None}, ["keyLesson", "tags"]),
    (
        UPDATE_LESSON,
        "42",
        {"title": " ", "contextToPrefer": HALF, "status": None},
        ["title", "contextToPrefer", "status"],
    ),
    (UPDATE_LESSON, "42", {"keyLesson": LONG, "outcome": None, "tags": [NUL]}, ["keyLesson", "outcome", "tags[0]"]),
]


@pytest.mark.parametrize(("mutation", "id", "patch", "fields"), PATCHES, ids=range(len(PATCHES)))
async def test_a_wrong_patch_changes_nothing(
    cairn: Service, mutation: str, id: str, patch: dict[str, Any], fields: list[str]
) -> None:
    """A null for text, another type's field, an end before a start: all are named, and what was right is not stored."""
    state = """{ a: memory(id: "A") { text tags updateTime } b: memory(id: "B") { text updateTime }
      lesson(rbId: "42") { title keyLesson contextToPrefer tags version } }"""
    before = await cairn.ask(state)
    error = await refused(cairn, mutation, id=id, patch=patch)
    assert error.code == "BAD_USER_INPUT"
    assert sorted(error.fields) == sorted(fields)
    assert await cairn.ask(state) == before


async def test_a_title_is_short_however_it_is_written(cairn: Service) -> None:
    """A patch may not write a title that recordLesson refuses."""
    error = await refused(cairn, UPDATE_LESSON, id="42", patch={"title": "x" * 1_025})
    assert error.code == "BAD_USER_INPUT"


async def test_a_wrong_change_of_an_edge_changes_nothing(cairn: Service) -> None:
    """Every wrong argument of updateEdge is named, and the right ones are not stored."""
    before = await cairn.ask('{ edge(id: "E") { text weight tags } }')
    error = await refused(cairn, UPDATE_EDGE, id="E", text=" ", weight=1.5, tags=[HALF])
    assert (error.code, sorted(error.fields)) == ("BAD_USER_INPUT", ["tags[0]", "text", "weight"])
    assert (await refused(cairn, UPDATE_EDGE, id="E", text="new", weight=-1)).fields == ["weight"]
    assert await cairn.ask('{ edge(id: "E") { text weight tags } }') == before


# ---------------------------------------------------------------- ids that are not there

NOT_FOUND = {
    'mutation { updateMemory(id: "none1", patch: {text: "x"}) { id } }': ["none1"],
    'mutation { updateEdge(id: "none1", text: "x") { id } }': ["none1"],
    'mutation { updateLesson(rbId: "404", patch: {title: "x"}) { rbId } }': ["404"],
    'mutation { promoteLesson(rbId: "404", scope: ORG) { rbId } }': ["404"],
    'mutation { giveFeedback(rbId: "404", helpful: true) { rbId } }': ["404"],
    'mutation { recordStability(rbId: "404", reverted: true) { rbId } }': ["404"],
    'mutation { recordOutcome(rbIds: ["404", "405"], succeeded: true) { rbId } }': ["404", "405"],
    'mutation { linkLesson(rbId: "404", nodeIds: ["A"]) { rbId } }': ["404"],
    'mutation { linkLesson(rbId: "42", nodeIds: ["B", "none1", "none2"]) { rbId } }': ["none1", "none2"],
    'mutation { unlinkLesson(rbId: "404", nodeIds: ["A"]) { rbId } }': ["404"],
    'mutation { unlinkLesson(rbId: "42", nodeIds: ["A", "none1", "none2"]) { rbId } }': ["none1", "none2"],
    '{ paths(source: "none1", target: "none2") { text } }': ["none1", "none2"],
    '{ paths(source: "A", target: "none1") { text } }': ["none1"],
}


@pytest.mark.parametrize("query", NOT_FOUND)
async def test_what_needs_an_id_that_is_not_there(cairn: Service, query: str) -> None:
    """NOT_FOUND names every id that does not exist; the ids that do are not linked or parted."""
    before = await cairn.ask('{ lesson(rbId: "42") { linkNodes version } }')
    error = await refused(cairn, query)
    assert error.code == "NOT_FOUND"
    assert all(name in str(error) for name in NOT_FOUND[query])
    assert len(error.fields) == len(NOT_FOUND[query])
    assert await cairn.ask('{ lesson(rbId: "42") { linkNodes version } }') == before


async def test_lookups_and_deletions_of_nothing(cairn: Service) -> None:
    """A lookup of an unknown id is null; its deletion says that nothing was deleted."""
    found = await cairn.ask("""{ memory(id: "none1") { id } edge(id: "none1") { id } lesson(rbId: "404") { rbId }
      conversation(convId: "none1") { memories { id } edges { id } } }""")
    nothing = {"memories": [], "edges": []}
    assert found == {"memory": None, "edge": None, "lesson": None, "conversation": nothing}
    gone = await cairn.ask("""mutation { a: deleteMemory(id: "none1") { id deleted edgesRemoved pointersRemoved }
      b: deleteEdge(id: "none1") { id deleted edgesRemoved } c: deleteLesson(rbId: "404") { id deleted } }""")
    assert gone["a"] == {"id": "none1", "deleted": False, "edgesRemoved": 0, "pointersRemoved": 0}
    assert gone["b"] == {"id": "none1", "deleted": False, "edgesRemoved": 0}
    assert gone["c"] == {"id": "404", "deleted": False}


# ---------------------------------------------------------------- lesson ids

NO_RB_IDS = [
    "abc",
    "-1",
    "0",
    "9223372036854775808",
    "1.5",
    " 1",
    "1 ",
    "",
    "+1",
    "01",
    "1e3",
    "٣",
    "0x1",
    "1_000",
    HALF,
    NUL,
]
RB_ID_FIELDS = [
    "query($id: ID!) { lesson(rbId: $id) { rbId } }",
    "mutation($id: ID!) { deleteLesson(rbId: $id) { id } }",
    'mutation($id: ID!) { updateLesson(rbId: $id, patch: {title: "x"}) { rbId } }',
    "mutation($id: ID!) { giveFeedback(rbId: $id, helpful: true) { rbId } }",
    "mutation($id: ID!) { recordStability(rbId: $id, reverted: true) { rbId } }",
    "mutation($id: ID!) { promoteLesson(rbId: $id, scope: ORG) { rbId } }",
    'mutation($id: ID!) { linkLesson(rbId: $id, nodeIds: ["A"]) { rbId } }',
    'mutation($id: ID!) { unlinkLesson(rbId: $id, nodeIds: ["A"]) { rbId } }',
]
RECORD = "mutation($input: LessonInput!) { recordLesson(input: $input) { rbId } }"


@pytest.mark.parametrize("rb_id", [*NO_RB_IDS, pytest.param("1" * 5_000, id="5,000 digits")])
async def test_what_is_no_lesson_id(cairn: Service, rb_id: str) -> None:
    """An rbId is a whole number from 1 to 2^63 - 1, as its shortest text; all else is BAD_USER_INPUT."""
    for query in RB_ID_FIELDS:
        error = await refused(cairn, query, id=rb_id)
        assert (error.code, error.fields) == ("BAD_USER_INPUT", ["rbId"])
    error = await refused(cairn, RECORD, input=lesson(rbId=rb_id))
    assert (error.code, error.fields) == ("BAD_USER_INPUT", ["input.rbId"])
    error = await refused(cairn, REMEMBER, input=with_valid({"lessons": [lesson(rbId=rb_id)]}))
    assert (error.code, error.fields) == ("BAD_USER_INPUT", ["lessons[0].rbId"])
    await nothing_stored(cairn)


async def test_large_lesson_ids_are_exact_in_both_stores(cairn: Service) -> None:
    """2^63 - 1 and its neighbours, which no float tells apart, are three lessons everywhere."""
    ids = [str(LARGEST - n) for n in range(3)]
    await cairn.remember(
        memories=[request(id="exact")],
        lessons=[lesson(rbId=one, contextToPrefer=f"exact {one}", linkNodes=["exact"], tags=["exact"]) for one in ids],
    )
    for one in ids:
        assert (await cairn.ask("query($id: ID!) { lesson(rbId: $id) { rbId } }", id=one))["lesson"] == {"rbId": one}
        as_number = await cairn.ask("query($id: ID!) { lesson(rbId: $id) { rbId } }", id=int(one))
        assert as_number["lesson"] == {"rbId": one}
    found = await cairn.ask("""{ memory(id: "exact") { reasoningPointerIds lessons { rbId } }
      lessons(filter: {tags: ["exact"]}) { nodes { rbId } }
      searchLessons(query: "exact", tags: ["exact"]) { lesson { rbId } } }""")
    assert found["memory"]["reasoningPointerIds"] == ids
    assert [one["rbId"] for one in found["memory"]["lessons"]] == ids
    assert [one["rbId"] for one in found["lessons"]["nodes"]] == ids
    assert sorted(hit["lesson"]["rbId"] for hit in found["searchLessons"]) == sorted(ids)
    assert set(await cairn.cairn.vectors.revisions_of(LESSONS, [int(one) for one in ids])) == {int(one) for one in ids}
    (gone,) = (await cairn.ask("mutation($id: ID!) { deleteLesson(rbId: $id) { deleted } }", id=ids[1])).values()
    assert gone == {"deleted": True}
    left = await cairn.ask('{ memory(id: "exact") { reasoningPointerIds } }')
    assert left["memory"]["reasoningPointerIds"] == [ids[0], ids[2]]
    assert (await cairn.settled())["ok"]


# ---------------------------------------------------------------- reads

STRANGE_READS = [
    ("query($x: ID!) { memory(id: $x) { id } }", "id"),
    ("query($x: ID!) { edge(id: $x) { id } }", "id"),
    ("query($x: ID!) { lesson(rbId: $x) { rbId } }", "rbId"),
    ("query($x: String!) { conversation(convId: $x) { convId } }", "convId"),
    ('query($x: ID!) { paths(source: $x, target: "A") { text } }', "source"),
    ('query($x: ID!) { paths(source: "A", target: $x) { text } }', "target"),
    ("query($x: String) { memories(filter: {convId: $x}) { nodes { id } } }", "filter.convId"),
    ("query($x: String!) { memories(filter: {tags: [$x]}) { nodes { id } } }", "filter.tags[0]"),
    ("query($x: String) { memories(filter: {textContains: $x}) { nodes { id } } }", "filter.textContains"),
    ("query($x: String) { memories(after: $x) { nodes { id } } }", "after"),
    ("query($x: String!) { lessons(filter: {tags: [$x]}) { nodes { rbId } } }", "filter.tags[0]"),
    ("query($x: ID) { lessons(filter: {linkedTo: $x}) { nodes { rbId } } }", "filter.linkedTo"),
    ("query($x: String) { lessons(filter: {namespace: $x}) { nodes { rbId } } }", "filter.namespace"),
    ("query($x: String) { lessons(after: $x) { nodes { rbId } } }", "after"),
    ("query($x: String!) { searchMemories(query: $x) { score } }", "query"),
    ('query($x: String) { searchMemories(query: "x", filter: {convId: $x}) { score } }', "filter.convId"),
    ('query($x: String!) { searchMemories(query: "x", filter: {tags: [$x]}) { score } }', "filter.tags[0]"),
    ('query($x: String) { searchMemories(query: "x", filter: {textContains: $x}) { score } }', "filter.textContains"),
    ("query($x: String!) { searchLessons(query: $x) { score } }", "query"),
    ('query($x: String!) { searchLessons(query: "x", tags: [$x]) { score } }', "tags[0]"),
    ('query($x: String) { searchLessons(query: "x", namespace: $x) { score } }', "namespace"),
    ('mutation($x: ID!) { updateMemory(id: $x, patch: {text: "x"}) { id } }', "id"),
    ('mutation($x: ID!) { updateEdge(id: $x, text: "x") { id } }', "id"),
    ("mutation($x: ID!) { deleteMemory(id: $x) { id } }", "id"),
    ("mutation($x: ID!) { deleteEdge(id: $x) { id } }", "id"),
    ('mutation($x: ID!) { linkLesson(rbId: "42", nodeIds: [$x]) { rbId } }', "nodeIds[0]"),
    ('mutation($x: ID!) { unlinkLesson(rbId: "42", nodeIds: [$x]) { rbId } }', "nodeIds[0]"),
    ('query($x: String) { memory(id: "A") { edges(after: $x) { nodes { id } } } }', "after"),
    pytest.param('query($x: String!) { memory(id: "A") { edges(tags: [$x]) { nodes { id } } } }', "tags[0]"),
]


@pytest.mark.parametrize(("query", "field"), STRANGE_READS)
async def test_half_characters_and_nul_are_asked_for_nowhere(cairn: Service, query: str, field: str) -> None:
    """A lone surrogate or NUL in an id, a query, a filter or a cursor is BAD_USER_INPUT, and the field is named."""
    for bad in (HALF, NUL):
        error = await refused(cairn, query, x=bad)
        assert (error.code, error.fields) == ("BAD_USER_INPUT", [field])


OUT_OF_BOUNDS = [
    *[(f"{{ memories(first: {n}) {{ nodes {{ id }} }} }}", "first") for n in (0, -1, 501)],
    *[(f"{{ lessons(first: {n}) {{ nodes {{ rbId }} }} }}", "first") for n in (0, -1, 501)],
    *[(f'{{ memory(id: "A") {{ edges(first: {n}) {{ nodes {{ id }} }} }} }}', "first") for n in (0, -1, 501)],
    *[(f'{{ searchMemories(query: "x", limit: {n}) {{ score }} }}', "limit") for n in (0, -1, 201)],
    *[(f'{{ searchLessons(query: "x", limit: {n}) {{ score }} }}', "limit") for n in (0, -1, 201)],
    *[(f'{{ searchLessons(query: "x", minConfidence: {n}) {{ score }} }}', "minConfidence") for n in (-0.1, 1.1)],
    *[
        (f"{{ lessons(filter: {{minConfidence: {n}}}) {{ nodes {{ rbId }} }} }}", "filter.minConfidence")
        for n in (-1, 2)
    ],
    *[(f'{{ paths(source: "A", target: "B", maxHops: {n}) {{ text }} }}', "maxHops") for n in (0, -1, 7)],
    *[(f'{{ paths(source: "A", target: "B", limit: {n}) {{ text }} }}', "limit") for n in (0, -1, 101)],
    *[(f'{{ paths(source: "A", target: "B", minWeight: {n}) {{ text }} }}', "minWeight") for n in (-0.1, 1.1, "1e999")],
    *[(f'{{ {name}(query: "") {{ score }} }}', "query") for name in ("searchMemories", "searchLessons")],
    (
        '{ memories(filter: {since: "2025-01-02T00:00:00Z", until: "2025-01-01T00:00:00Z"}) { nodes { id } } }',
        "filter.until",
    ),
    (
        '{ memories(filter: {overlaps: {start: "2025-01-02", end: "2025-01-01"}}) { nodes { id } } }',
        "filter.overlaps.end",
    ),
    *[
        pytest.param(f'{{ memory(id: "A") {{ edges(minWeight: {n}) {{ nodes {{ id }} }} }} }}', "minWeight")
        for n in (-0.1, 1.1, "1e999")
    ],
]


@pytest.mark.parametrize(("query", "field"), OUT_OF_BOUNDS)
async def test_arguments_out_of_bounds(cairn: Service, query: str, field: str) -> None:
    """Page sizes, limits, hops, weights and windows outside their bounds are refused by name."""
    error = await refused(cairn, query)
    assert (error.code, error.fields) == ("BAD_USER_INPUT", [field])


@pytest.mark.parametrize(
    "query",
    [
        "{ memories(first: 2147483648) { nodes { id } } }",
        "{ memories(first: 1.5) { nodes { id } } }",
        '{ memories(first: "1") { nodes { id } } }',
        "{ memories(first: %s) { nodes { id } } }" % ("1" * 5_000),
        "{ memories(filter: {types: [Thought]}) { nodes { id } } }",
        '{ memories(filter: {types: ["Event"]}) { nodes { id } } }',
        '{ memories(filter: {since: "2025-01-01T00:00:00"}) { nodes { id } } }',
        '{ memories(filter: {overlaps: {start: "2025-01-01"}}) { nodes { id } } }',
        '{ memory(id: "A") { edges(direction: UP) { nodes { id } } } }',
        '{ searchLessons(query: "x", scope: WORLD) { score } }',
        "{ memory { id } }",
        "{ memory(id: null) { id } }",
        "{ memory(id: 1.5) { id } }",
        "{ nothing }",
        "{ memories }",
        "{ memories(color: 1) { nodes { id } } }",
    ],
)
async def test_queries_that_do_not_fit_the_schema(cairn: Service, query: str) -> None:
    """What the schema does not know is BAD_USER_INPUT."""
    error = await refused(cairn, query)
    assert {one["extensions"]["code"] for one in error.errors} == {"BAD_USER_INPUT"}


# ---------------------------------------------------------------- cursors

LISTINGS = {
    "memories": "query($after: String) { memories(first: 1, after: $after) { pageInfo { endCursor } } }",
    "lessons": "query($after: String) { lessons(first: 1, after: $after) { pageInfo { endCursor } } }",
    "edges": 'query($after: String) { memory(id: "A") { edges(first: 1, after: $after) { pageInfo { endCursor } } } }',
}


def cursor(value: Any) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")


MALFORMED: list[Any] = [
    *("x", "!!!", "====", "é", "🙂", "null", "[]", "bnVsbA", "A" * 100_000),
    *(
        cursor(value)
        for value in (None, {}, [], [None], ["x"], [None, None], ["x", "y"], ["2025-01-01", "x"], [1, 2, 3])
    ),
    cursor(["2025-01-01T00:00:00", "x"]),
    base64.urlsafe_b64encode(b"[" * 100_000).decode(),
    base64.urlsafe_b64encode(b'["\xff"]').decode(),
]
FORGERIES = [
    ("lessons", [2**70]),
    ("lessons", [-(2**70)]),
    ("lessons", [float("inf")]),
    ("memories", ["2025-01-01T00:00:00Z", HALF]),
    ("memories", ["0001-01-01T00:00:00+23:59", "x"]),
    ("edges", [0.5, HALF]),
    ("edges", [10**400, "x"]),
]


@pytest.mark.parametrize("listing", LISTINGS)
async def test_malformed_cursors(cairn: Service, listing: str) -> None:
    """What no page has given as its end is refused, and named `after`."""
    for after in MALFORMED:
        error = await refused(cairn, LISTINGS[listing], after=after)
        assert (error.code, error.fields) == ("BAD_USER_INPUT", ["after"]), after[:60]


@pytest.mark.parametrize(("listing", "value"), FORGERIES)
async def test_forged_cursors(cairn: Service, listing: str, value: Any) -> None:
    """A cursor that was made by hand of values that no store takes is refused like any other."""
    error = await refused(cairn, LISTINGS[listing], after=cursor(value))
    assert (error.code, error.fields) == ("BAD_USER_INPUT", ["after"])


async def test_another_listings_cursor(cairn: Service) -> None:
    """The end of one listing's page is no place in another listing."""
    data = {name: await cairn.ask(query) for name, query in LISTINGS.items()}
    ends = {
        "memories": data["memories"]["memories"]["pageInfo"]["endCursor"],
        "lessons": data["lessons"]["lessons"]["pageInfo"]["endCursor"],
        "edges": data["edges"]["memory"]["edges"]["pageInfo"]["endCursor"],
    }
    for name, query in LISTINGS.items():
        await cairn.ask(query, after=ends[name])
        for other in ends.keys() - {name}:
            error = await refused(cairn, query, after=ends[other])
            assert (error.code, error.fields) == ("BAD_USER_INPUT", ["after"])


# ---------------------------------------------------------------- strange, and allowed

STRANGE = [
    *("it's", 'say "hi"', "back\\slash", "end\\", '\\"', '"] or tenant != "', '" or tenant like "%', "' or 1=1 --"),
    *(
        "}) DETACH DELETE n //",
        "`) MATCH (n) DELETE n",
        "$tenant",
        "${tenant}",
        "{0} %s %(x)s",
        "100%",
        "_",
        "*",
        "a;b",
    ),
    *(
        "\\u0041",
        "\\n",
        "\\x00",
        "[1, 2]",
        '{"a": 1}',
        "null",
        "true",
        "#",
        "a/b?c=d&e",
        "<script>",
        "../../etc/passwd",
    ),
    *("🙂", "👩‍👩‍👧‍👦", "ключ", "鍵", "مفتاح", "e\u0301", "é", "zero\u200bwidth", "\ufeffmark", "İ", "ß", "\U0010ffff"),
]


@pytest.fixture(scope="module")
async def strange(cairn: Service) -> dict[str, str]:
    """One memory and one lesson for each strange text, which is its id, its tag and its conversation."""
    await cairn.remember(
        "strange",
        memories=[
            request(id=one, text=f"words about {one} here", tags=[one, "strange"], convId=one, userRole=one)
            for one in STRANGE
        ],
        edges=[edge(one, "A", id=one, text=f"because {one}", tags=[one]) for one in STRANGE],
        lessons=[
            lesson(
                rbId=str(5_000 + n), keyLesson=f"key {one}", contextToPrefer=f"when {one}", tags=[one], linkNodes=[one]
            )
            for n, one in enumerate(STRANGE)
        ],
    )
    return {one: str(5_000 + n) for n, one in enumerate(STRANGE)}


@pytest.mark.parametrize("one", STRANGE)
async def test_strange_text_is_stored_found_and_returned_exactly(
    cairn: Service, strange: dict[str, str], one: str
) -> None:
    """Quotes, expressions of either store and letters of any script are text: never code, never another text."""
    found = await cairn.ask(
        """query($id: ID!, $x: String!) {
          memory(id: $id) { id text tags convId embeddingId ... on UserRequest { userRole }
            edges(tags: [$x]) { nodes { id text tags source { id } } } lessons { rbId keyLesson tags linkNodes } }
          edge(id: $id) { id } conversation(convId: $x) { memories { id } }
          byTag: memories(filter: {tags: [$x]}) { nodes { id } }
          byConversation: memories(filter: {convId: $x}) { nodes { id } }
          byText: memories(filter: {textContains: $x}, first: 500) { nodes { id } }
          lessons(filter: {tags: [$x], linkedTo: $id}) { nodes { rbId } }
          searchTag: searchMemories(query: "words", filter: {tags: ["strange", $x]}) { memory { id } }
          searchConversation: searchMemories(query: $x, filter: {convId: $x}) { memory { id } }
          searchText: searchMemories(query: $x, filter: {textContains: $x, tags: ["strange"]}, limit: 200) { memory { id } }
          searchLessons(query: $x, tags: [$x]) { lesson { rbId } }
        }""",
        id=one,
        x=one,
    )
    memory, rb_id = found["memory"], strange[one]
    assert (memory["id"], memory["text"], memory["tags"]) == (one, f"words about {one} here", [one, "strange"])
    assert (memory["convId"], memory["userRole"]) == (one, one)
    assert memory["edges"]["nodes"] == [{"id": one, "text": f"because {one}", "tags": [one], "source": {"id": one}}]
    assert memory["lessons"] == [{"rbId": rb_id, "keyLesson": f"key {one}", "tags": [one], "linkNodes": [one]}]
    assert found["edge"] == {"id": one}
    assert found["conversation"]["memories"] == [{"id": one}]
    assert found["byTag"]["nodes"] == found["byConversation"]["nodes"] == [{"id": one}]
    assert {"id": one} in found["byText"]["nodes"]
    assert found["lessons"]["nodes"] == [{"rbId": rb_id}]
    assert found["searchTag"] == found["searchConversation"] == [{"memory": {"id": one}}]
    assert {"memory": {"id": one}} in found["searchText"]
    assert found["searchLessons"] == [{"lesson": {"rbId": rb_id}}]


async def test_strange_namespaces(cairn: Service) -> None:
    """A namespace is text too: only its own lessons are seen through it."""
    names = [one for one in STRANGE if "/" not in one]
    await cairn.remember(
        lessons=[lesson(rbId=str(6_000 + n), namespace=one, tags=["named"]) for n, one in enumerate(names)]
    )
    for n, one in enumerate(names):
        found = await cairn.ask(
            """query($x: String) { searchLessons(query: "do this", namespace: $x, tags: ["named"], limit: 200)
              { lesson { rbId namespace } } lessons(filter: {namespace: $x}) { nodes { rbId } } }""",
            x=one,
        )
        assert found["searchLessons"] == [{"lesson": {"rbId": str(6_000 + n), "namespace": one}}]
        assert found["lessons"]["nodes"] == [{"rbId": str(6_000 + n)}]


# ---------------------------------------------------------------- another tenant


@pytest.fixture
async def foreign(cairn: Service) -> AsyncIterator[Graph]:
    """Another tenant's records, planted straight into both stores: one with an id of its own, one with an id of ours."""
    ours, vectors = cairn.cairn.graph, cairn.cairn.vectors
    tenant = f"{ours.tenant}-other"
    theirs = Graph(ours._driver, tenant, ours._database)
    now = datetime.now(UTC)
    vector = await cairn.cairn.embedder.query("foreign secret words")
    memories = [
        UserRequest(
            id=name,
            conv_id="shared",
            text="foreign secret words",
            tags=("shared",),
            ingestion_time=now,
            update_time=now,
            embedding_id=embedding_id(tenant, name),
            revision=7,
        )
        for name in ("theirs", "both")
    ]
    taught = Lesson(
        rb_id=31_337,
        title="foreign",
        key_lesson="foreign secret words",
        context_to_prefer="foreign secret words",
        tags=("shared",),
        link_nodes=("both",),
        created_at=now,
        updated_at=now,
        revision=7,
    )
    for memory in memories:
        stored = memory.model_dump(exclude={"id", "tags", "reasoning_pointer_ids"})
        stored |= {"tags": ["shared"], "reasoning_pointer_ids": [31_337] if memory.id == "both" else []}
        made = {"id": memory.id, "type": "UserRequest", "properties": stored}
        await theirs.run("lock_memories", rows=[made], now=now, revision=7)
    await theirs.run("lock_lessons", ids=[taught.rb_id])
    changes = taught.model_dump(exclude={"rb_id"}) | {"tags": ["shared"], "link_nodes": ["both"], "lost_sources": []}
    await theirs.run("put_lessons", rows=[{"rb_id": taught.rb_id, "changes": changes}])
    await theirs.run("add_links", pairs=[[taught.rb_id, "both"]])
    await vectors.upsert(MEMORIES, [memory_row(memory, tenant, vector) for memory in memories])
    await vectors.upsert(LESSONS, [lesson_row(taught, tenant, vector, vector)])
    await cairn.remember(
        "shared",
        memories=[request(id="both", text="our secret words", tags=["shared"])],
        lessons=[lesson(rbId="31338", contextToPrefer="our secret words", tags=["shared"], linkNodes=["both"])],
    )
    yield theirs
    await theirs.define(f"MATCH (n {{tenant: '{tenant}'}}) DETACH DELETE n")
    await _index_of(cairn, theirs).delete(MEMORIES, [memory.embedding_id for memory in memories])
    await _index_of(cairn, theirs).delete(LESSONS, [taught.rb_id])


def _index_of(cairn: Service, theirs: Graph) -> Vectors:
    """The same index, seen by another tenant."""
    index = copy.copy(cairn.cairn.vectors)
    index._tenant = theirs.tenant
    return index


async def test_another_tenants_records_are_never_shown(cairn: Service, foreign: Graph) -> None:
    """No search, filter, lookup, walk or trace returns a row of another tenant, whatever the filter tries to say, and though
    somebody has drawn an edge between the two."""
    await cairn.cairn.graph.define(
        f"MATCH (a:Memory {{tenant: '{cairn.cairn.graph.tenant}', id: 'both'}}) MATCH (b:Memory {{tenant: '{foreign.tenant}', id: 'theirs'}}) "
        "CREATE (a)-[:RELATES {id: 'over the border', tenant: a.tenant, text: 'foreign', weight: 0.9, tags: [], created_time: datetime()}]->(b)"
    )
    seen = await cairn.ask("""{
      search: searchMemories(query: "foreign secret words", limit: 200) { memory { id text } }
      tagged: searchMemories(query: "foreign secret words", filter: {tags: ["shared"]}) { memory { id text } }
      talked: searchMemories(query: "foreign secret words", filter: {convId: "shared"}) { memory { id text } }
      searchLessons(query: "foreign secret words", limit: 200) { lesson { rbId keyLesson } }
      lessons(filter: {tags: ["shared"]}) { nodes { rbId linkNodes } }
      memories(filter: {tags: ["shared"]}) { nodes { id text } }
      conversation(convId: "shared") { memories { id text } }
      plain: recall(input: {query: "foreign secret words", hops: 0, limit: 200}) { memories { memory { text } } lessons { lesson { keyLesson } } }
      recall(input: {query: "foreign secret words", hops: 4, limit: 200}) { id memories { why memory { id text } via { text } }
        paths { text } lessons { via lesson { rbId keyLesson } } }
      provenance(rbId: "31338") { missing traces { path { text } } }
      theirs: memory(id: "theirs") { id } both: memory(id: "both") { text reasoningPointerIds }
      lesson(rbId: "31337") { rbId }
    }""")
    assert "foreign" not in json.dumps(seen) and "theirs" not in json.dumps(seen["recall"])
    assert "both" in [one["memory"]["id"] for one in seen["recall"]["memories"]]
    assert seen["tagged"] == seen["talked"] == [{"memory": {"id": "both", "text": "our secret words"}}]
    assert [hit["lesson"]["rbId"] for hit in seen["searchLessons"] if hit["lesson"]["rbId"] == "31337"] == []
    assert seen["lessons"]["nodes"] == [{"rbId": "31338", "linkNodes": ["both"]}]
    assert seen["memories"]["nodes"] == seen["conversation"]["memories"] == [{"id": "both", "text": "our secret words"}]
    assert (seen["theirs"], seen["lesson"]) == (None, None)
    assert seen["both"] == {"text": "our secret words", "reasoningPointerIds": ["31338"]}
    for attempt in ('"] or tenant != "', '") or tenant != ("', '" || tenant != "', "shared\\", "%"):
        for filter in ({"tags": [attempt]}, {"convId": attempt}):
            found = await cairn.ask(
                """query($filter: MemoryFilter, $x: String!) { searchMemories(query: "foreign", filter: $filter)
                  { memory { text } } searchLessons(query: "foreign", tags: [$x], namespace: $x) { lesson { title } } }""",
                filter=filter,
                x=attempt,
            )
            assert "foreign" not in json.dumps(found)


async def test_another_tenants_records_cannot_be_touched(cairn: Service, foreign: Graph) -> None:
    """Changes, links and deletions do not reach over the border, and the counts do not look over it."""
    for query in (
        'mutation { updateMemory(id: "theirs", patch: {text: "x"}) { id } }',
        'mutation { updateLesson(rbId: "31337", patch: {title: "x"}) { rbId } }',
        'mutation { linkLesson(rbId: "31338", nodeIds: ["theirs"]) { rbId } }',
        '{ paths(source: "both", target: "theirs") { text } }',
    ):
        assert (await refused(cairn, query)).code == "NOT_FOUND"
    error = await refused(cairn, REMEMBER, input={"convId": "c", "edges": [edge("both", "theirs")]})
    assert error.fields == ["edges[0].target"]
    gone = await cairn.ask("""mutation { a: deleteMemory(id: "theirs") { deleted } b: deleteLesson(rbId: "31337") { deleted }
      c: deleteMemory(id: "both") { deleted } }""")
    assert [gone[one]["deleted"] for one in "abc"] == [False, False, True]
    report = await cairn.settled()
    assert report["ok"]
    assert report["nodes"] == report["nodeVectors"]
    kept = await foreign.read("memories_by_id", ids=["theirs", "both"])
    assert sorted(row["properties"]["text"] for row in kept) == ["foreign secret words"] * 2
    keys = [embedding_id(foreign.tenant, name) for name in ("theirs", "both")]
    ours, others = cairn.cairn.vectors, _index_of(cairn, foreign)
    for collection, some in ((MEMORIES, keys), (LESSONS, [31_337])):
        await ours.delete(collection, some)
        assert await ours.revisions_of(collection, some) == {}
        assert set(await others.revisions_of(collection, some)) == set(some)


# ---------------------------------------------------------------- last, because what fails here leaves the index behind


async def test_strange_ids_can_be_changed_and_deleted(cairn: Service) -> None:
    """A deletion by a strange id takes that memory's row out of Milvus, and no other."""
    ids = [f"gone {one}" for one in STRANGE]
    await cairn.remember("gone", memories=[request(id=one) for one in ids])
    before = await cairn.settled()
    await cairn.ask(UPDATE, id=ids[5], patch={"text": STRANGE[5]})
    for one in ids:
        gone = await cairn.ask("mutation($id: ID!) { deleteMemory(id: $id) { id deleted } }", id=one)
        assert gone["deleteMemory"] == {"id": one, "deleted": True}
    after = await cairn.settled()
    assert after["ok"]
    assert after["nodeVectors"] == before["nodeVectors"] - len(ids)

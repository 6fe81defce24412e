"""Recall keeps the edges it has read; whatever happens to them since, no answer is given by what is no longer so."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from bank.edges import known_edges
from tests.service import Service

RECALL = """query($input: RecallInput!) { recall(input: $input) {
  memories { score pathScore why memory { id text } via { text } }
  paths { score text steps { memory { id } edge { id weight text } energy } } } }"""
QUESTION = "Why did the harbour of Busan close?"
TEXTS = {
    "SEED": "Harbour of Busan: closed.",
    "CRANE": "Cranes stood still.",
    "WAGES": "Wages of operators.",
    "LAMPS": "A maker of lamps.",
    "BOATS": "Boats for hire.",
}


@pytest.fixture(autouse=True)
async def records(cairn: Service) -> None:
    """The same before each test, whatever the last one did to them."""
    for id in TEXTS:
        await cairn.ask("mutation($id: ID!) { deleteMemory(id: $id) { deleted } }", id=id)
    await cairn.remember(
        memories=[{"event": {"id": id, "text": text}} for id, text in TEXTS.items()],
        edges=[
            {"id": "SC", "source": "SEED", "target": "CRANE", "weight": 0.9, "text": "The cranes had no current."},
            {"id": "CW", "source": "WAGES", "target": "CRANE", "weight": 0.8, "text": "Who moves them was on strike."},
            {"id": "SB", "source": "SEED", "target": "BOATS", "weight": 0.3, "text": "They are moored there."},
        ],
    )
    await cairn.settled()  # rows of what was deleted count in BM25 until they are gone


async def _recall(cairn: Service, **wanted: Any) -> Any:
    return (await cairn.ask(RECALL, input={"query": QUESTION, **wanted}))["recall"]


async def _as_new(cairn: Service, monkeypatch: pytest.MonkeyPatch, **wanted: Any) -> Any:
    """What a service answers that knows nothing from before."""
    with monkeypatch.context() as forgetting:
        forgetting.setattr(cairn.cairn.recall, "_edges", known_edges())
        return await _recall(cairn, **wanted)


def _asked(query: str) -> Callable[[Service], Awaitable[Any]]:
    async def done(cairn: Service) -> None:
        await cairn.ask(query)
        await cairn.settled()

    return done


def _by_hand(statement: str) -> Callable[[Service], Awaitable[Any]]:
    """As somebody does it in Neo4j Browser, or another service."""

    async def done(cairn: Service) -> None:
        graph = cairn.cairn.graph
        await graph.define(statement.replace("TENANT", repr(graph.tenant)))
        await cairn.ask("mutation { repair(dryRun: false) { ok } }")

    return done


CHANGES = {
    "a new edge": _asked(
        'mutation { remember(input: {convId: "c", edges: [{source: "CRANE", target: "LAMPS", weight: 0.9, text: "Dark."}]}) { created } }'
    ),
    "a weight": _asked('mutation { updateEdge(id: "SC", weight: 0.2) { id } }'),
    "a sentence": _asked('mutation { updateEdge(id: "SB", text: "Why the harbour of Busan closed: boats.") { id } }'),
    "a tag of an edge": _asked('mutation { updateEdge(id: "SB", tags: ["port"]) { id } }'),
    "an edge that is gone": _asked('mutation { deleteEdge(id: "CW") { deleted } }'),
    "a neighbour": _asked('mutation { updateMemory(id: "CRANE", patch: {text: "The harbour of Busan."}) { id } }'),
    "a neighbour that is gone": _asked('mutation { deleteMemory(id: "CRANE") { deleted } }'),
    "the seed": _asked('mutation { updateMemory(id: "SEED", patch: {text: "Harbour of Busan: open."}) { id } }'),
    "a new edge by hand": _by_hand(
        "MATCH (a:Memory {tenant: TENANT, id: 'CRANE'}), (b:Memory {tenant: TENANT, id: 'LAMPS'}) CREATE (a)-[:RELATES "
        "{id: 'hand', tenant: TENANT, text: 'Dark.', weight: 0.9, tags: [], created_time: datetime()}]->(b)"
    ),
    "a weight by hand": _by_hand("MATCH ()-[r:RELATES {tenant: TENANT, id: 'SC'}]->() SET r.weight = 0.2"),
    "two weights by hand, of one sum": _by_hand(
        "MATCH ()-[r:RELATES {tenant: TENANT, id: 'SC'}]->() MATCH ()-[s:RELATES {tenant: TENANT, id: 'SB'}]->() "
        "SET r.weight = 0.3, s.weight = 0.9"
    ),
    "an edge that is gone by hand": _by_hand("MATCH ()-[r:RELATES {tenant: TENANT, id: 'CW'}]->() DELETE r"),
    "a neighbour that is gone by hand": _by_hand("MATCH (m:Memory {tenant: TENANT, id: 'WAGES'}) DETACH DELETE m"),
}


# With tags, what is found is confirmed before the walk; without, by what the walk reads.
ASKED: list[dict[str, Any]] = [{}, {"tags": ["port"]}]


@pytest.mark.parametrize("wanted", ASKED, ids=["plain", "tagged"])
@pytest.mark.parametrize("change", CHANGES)
async def test_a_change_is_seen_at_once(
    cairn: Service, monkeypatch: pytest.MonkeyPatch, change: str, wanted: dict[str, Any]
) -> None:
    """Whoever made it: the next answer is another, and the very one that a service gives which knows nothing yet."""
    before = await _recall(cairn, **wanted)
    assert await _recall(cairn, **wanted) == before
    await CHANGES[change](cairn)
    after = await _recall(cairn, **wanted)
    assert (after != before) is (change != "a tag of an edge" or "tags" in wanted)
    assert after == await _as_new(cairn, monkeypatch, **wanted)


@pytest.mark.parametrize("wanted", ASKED, ids=["plain", "tagged"])
@pytest.mark.parametrize("change", ["a weight", "a weight by hand", "an edge that is gone by hand"])
async def test_a_change_while_the_walk_is_on_its_way_is_seen(
    cairn: Service, monkeypatch: pytest.MonkeyPatch, change: str, wanted: dict[str, Any]
) -> None:
    """The walk has gone along an edge that is another by the time it is looked at again."""
    await _recall(cairn, **wanted)
    graph = cairn.cairn.graph
    read = graph.read
    changed = False

    async def reading(name: str, /, **parameters: Any) -> Any:
        nonlocal changed
        if name == "recall_edges" and not changed:
            changed = True
            await CHANGES[change](cairn)
        return await read(name, **parameters)

    with monkeypatch.context() as meanwhile:
        meanwhile.setattr(graph, "read", reading)
        during = await _recall(cairn, **wanted)
    assert changed and during == await _as_new(cairn, monkeypatch, **wanted)


async def test_edges_belong_to_the_conditions_they_were_read_under(
    cairn: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A question with a filter, a least weight or tags is not answered by the edges of one without."""
    await _recall(cairn)
    for wanted in ({"minWeight": 0.5}, {"filter": {"textContains": "cranes"}}, {"tags": ["port"]}, {"hops": 1}):
        assert await _recall(cairn, **wanted) == await _as_new(cairn, monkeypatch, **wanted)
        assert await _recall(cairn, **wanted) == await _as_new(cairn, monkeypatch, **wanted)
    light = await _recall(cairn, minWeight=0.5)
    assert all(step["edge"] is None or step["edge"]["weight"] >= 0.5 for path in light["paths"] for step in path["steps"])  # fmt: skip


async def test_what_is_known_takes_one_look_however_many_hops(cairn: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    """Edges are read hop by hop the first time, and all at once from then on."""
    graph = cairn.cairn.graph
    read = graph.read
    reads: list[str] = []

    async def counted(name: str, /, **parameters: Any) -> Any:
        reads.append(name)
        return await read(name, **parameters)

    await _recall(cairn, hops=3)
    with monkeypatch.context() as counting:
        counting.setattr(graph, "read", counted)
        await _recall(cairn, hops=3)
    assert reads.count("recall_edges") == 1

"""provenance over HTTP: every way back from a lesson, against brute force and against what Neo4j Browser shows."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bank import provenance
from graph.queries import CYPHER
from tests.service import Refused, Service

PROVENANCE = """query($rbId: ID!, $maxHops: Int!) { provenance(rbId: $rbId, maxHops: $maxHops) { missing complete truncated
  lesson { rbId } traces { strength origin { id } path { score text steps { energy forward memory { id } edge { id } } } } } }"""
KINDS = ("agentAnswer", "agentAction", "userPreference", "dataSource", "userRequest", "event")
ORIGINS = {"dataSource", "userRequest", "event"}
LESSON = {"keyLesson": "Ask twice.", "contextToPrefer": "Always."}

# A memory is a number and a kind; an edge joins two numbers. Two edges may join the same two.
Edges = Sequence[tuple[int, int, float]]
WEIGHTS = st.sampled_from([0.0, 0.3, 0.5, 0.9, 1.0])


async def _asked(cairn: Service, rb_id: int, hops: int = 4) -> dict[str, Any]:
    answer: dict[str, Any] = (await cairn.ask(PROVENANCE, rbId=str(rb_id), maxHops=hops))["provenance"]
    return answer


def _ways(traces: list[dict[str, Any]]) -> list[tuple[float, list[str], list[str]]]:
    """Each trace as its strength, its memories and its edges."""
    return [
        (
            round(one["strength"], 9),
            [step["memory"]["id"] for step in one["path"]["steps"]],
            [step["edge"]["id"] for step in one["path"]["steps"][1:]],
        )
        for one in traces
    ]


def _by_hand(
    kinds: Sequence[str], edges: Edges, sources: Sequence[int], hops: int
) -> list[tuple[float, list[int], list[int]]]:
    """Every simple way from a source to an origin, by trying all of them."""
    found: list[tuple[float, list[int], list[int]]] = []

    def go(seen: list[int], used: list[int], product: float) -> None:
        if kinds[seen[-1]] in ORIGINS:
            found.append((round(product, 9), seen, used))
        if len(used) < hops:
            for number, (one, other, weight) in enumerate(edges):
                for start, end in ((one, other), (other, one)):
                    if start == seen[-1] and end not in seen and weight > 0:
                        go([*seen, end], [*used, number], product * weight)

    for source in sources:
        go([source], [], 1.0)
    return found


async def _in_browser(cairn: Service, rb_id: int) -> list[tuple[float, list[str], list[str]]]:
    """What cypher/browser/traces.cypher shows of this lesson, run as a user of Neo4j Browser would."""
    title, hint, *rest = (CYPHER / "browser" / "traces.cypher").read_text().splitlines()
    said = hint.split("by: ")[1].replace("7001", str(rb_id))
    text = "\n".join([title, said, *rest[2:]]).replace("'default'", f"'{cairn.cairn.graph.tenant}'")
    records, _, _ = await cairn.cairn.graph._driver.execute_query(text)
    return [
        (
            round(record["strength"], 9),
            [node["id"] for node in record["way"].nodes],
            [edge["id"] for edge in record["way"].relationships],
        )
        for record in records
    ]


numbers = iter(range(1, 10_000))


@given(
    kinds=st.lists(st.sampled_from(KINDS), min_size=2, max_size=6),
    joined=st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5), WEIGHTS), max_size=9),
    sources=st.sets(st.integers(0, 5), min_size=1, max_size=3),
)
@settings(derandomize=True, database=None, max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
async def test_the_traces_are_every_way_there_is(
    cairn: Service, kinds: list[str], joined: list[tuple[int, int, float]], sources: set[int]
) -> None:
    """Cycles, parallel edges, many ways, edges of weight 0: the same ways as by brute force, and as in Neo4j Browser."""
    number = next(numbers)
    edges = [(one % len(kinds), other % len(kinds), weight) for one, other, weight in joined]
    edges = [edge for edge in edges if edge[0] != edge[1]]
    learnt = sorted({source % len(kinds) for source in sources})
    await cairn.remember(
        memories=[{kind: {"id": f"{number}-{n}", "text": f"Note {n}."}} for n, kind in enumerate(kinds)],
        edges=[
            {"id": f"{number}-e{n}", "source": f"{number}-{one}", "target": f"{number}-{other}", "text": "So.", "weight": weight}
            for n, (one, other, weight) in enumerate(edges)
        ],
        lessons=[{**LESSON, "rbId": str(number), "linkNodes": [f"{number}-{n}" for n in learnt]}],
    )  # fmt: skip
    for hops in (4, 1):
        answer = await _asked(cairn, number, hops)
        expected = [
            (product, [f"{number}-{n}" for n in seen], [f"{number}-e{n}" for n in used])
            for product, seen, used in _by_hand(kinds, edges, learnt, hops)
        ]
        ways = _ways(answer["traces"])
        assert sorted(ways) == sorted(expected) and not answer["truncated"]
        assert [way[0] for way in ways] == sorted((way[0] for way in ways), reverse=True)
        assert all(one["origin"]["id"] == one["path"]["steps"][-1]["memory"]["id"] for one in answer["traces"])
        rooted = {seen[0] for _, seen, _ in _by_hand(kinds, edges, learnt, hops) if kinds[seen[-1]] != "event"}
        assert answer["complete"] == (rooted == set(learnt))
    assert sorted(await _in_browser(cairn, number)) == sorted(_ways((await _asked(cairn, number))["traces"]))


async def test_a_trace_reads_as_prose_and_says_how_it_was_walked(cairn: Service) -> None:
    """From the memory that the lesson was learnt from to the origin, each step with its edge, direction and strength."""
    await cairn.remember(
        memories=[
            {"agentAnswer": {"id": "ANSWER", "text": "Deliveries slipped."}},
            {"dataSource": {"id": "TABLE", "text": "Deliveries by week."}},
            {"userRequest": {"id": "ASKED", "text": "Why did sales dip?"}},
        ],
        edges=[
            {"id": "AT", "source": "ANSWER", "target": "TABLE", "text": "It rests on this table.", "weight": 0.8},
            {"id": "QA", "source": "ASKED", "target": "ANSWER", "text": "It was answered by this.", "weight": 0.9},
        ],
        lessons=[{**LESSON, "rbId": "20001", "linkNodes": ["ANSWER"]}],
    )  # fmt: skip
    answer = await _asked(cairn, 20001)
    asked, table = answer["traces"]
    assert (asked["origin"]["id"], table["origin"]["id"]) == ("ASKED", "TABLE")
    assert asked["path"]["text"] == '(ANSWER: "Deliveries slipped.") <-["It was answered by this."]- (ASKED: "Why did sales dip?")'  # fmt: skip
    assert [step["forward"] for step in asked["path"]["steps"]] == [True, False]
    assert [step["energy"] for step in table["path"]["steps"]] == [1.0, 0.8] and table["path"]["score"] == 0.8
    assert answer["complete"] and answer["missing"] == []


async def test_a_deleted_source_is_missing(cairn: Service) -> None:
    """What was deleted since is named, and the trace is no longer complete."""
    await cairn.remember(
        memories=[{"dataSource": {"id": f"S{n}", "text": "A table."}} for n in (1, 2)],
        lessons=[
            {**LESSON, "rbId": "20002", "linkNodes": ["S1", "S2"]},
            {**LESSON, "rbId": "20003"},
        ],
    )
    assert (await _asked(cairn, 20002))["complete"]
    await cairn.ask('mutation { deleteMemory(id: "S1") { deleted } }')
    answer = await _asked(cairn, 20002)
    assert (answer["missing"], answer["complete"], len(answer["traces"])) == (["S1"], False, 1)
    nothing = await _asked(cairn, 20003)
    assert (nothing["traces"], nothing["missing"], nothing["complete"]) == ([], [], False)


async def test_a_source_that_goes_meanwhile_is_missing(cairn: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    """Deleted between the reading of the lesson and of its sources, or by hand in Neo4j Browser: what is told is told of
    what is there, and is not complete."""
    sources = [f"MW{n}" for n in (1, 2, 3)]
    await cairn.remember(
        memories=[{"dataSource": {"id": id, "text": "A table."}} for id in sources],
        lessons=[{**LESSON, "rbId": "20004", "linkNodes": sources}],
    )
    graph = cairn.cairn.graph
    read, deleted = graph.read, []

    async def late(name: str, /, **parameters: Any) -> Any:
        if name == "memories_by_id" and not deleted:
            deleted.append(await graph.run("delete_memory", id="MW1", revision=1))
        return await read(name, **parameters)

    monkeypatch.setattr(graph, "read", late)
    answer = await _asked(cairn, 20004)
    assert deleted and (answer["missing"], answer["complete"]) == (["MW1"], False)
    await graph.define(f"MATCH (m:Memory {{tenant: '{graph.tenant}', id: 'MW2'}}) DETACH DELETE m")
    answer = await _asked(cairn, 20004)
    assert (answer["missing"], answer["complete"], len(answer["traces"])) == (["MW1", "MW2"], False, 1)
    await cairn.ask('mutation { deleteLesson(rbId: "20004") { deleted } }')


async def test_one_query_a_hop(cairn: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many memories a hop goes on from."""
    ids = [[f"H{hop}-{n}" for n in range(10)] for hop in range(3)]
    await cairn.remember(
        memories=[{"agentAction": {"id": id, "text": "A step."}} for id in [*ids[0], *ids[1]]]
        + [{"dataSource": {"id": id, "text": "A table."}} for id in ids[2]],
        edges=[
            {"id": f"{a}>{b}", "source": a, "target": b, "text": "Next.", "weight": 0.5}
            for one, other in pairwise(ids)
            for a, b in zip(one, other, strict=True)
        ],
        lessons=[{**LESSON, "rbId": "20005", "linkNodes": ids[0]}],
    )
    graph, asked = cairn.cairn.graph, []
    read = graph.read

    async def counted(name: str, **parameters: Any) -> Any:
        asked.append(name)
        return await read(name, **parameters)

    with monkeypatch.context() as counting:
        counting.setattr(graph, "read", counted)
        answer = await _asked(cairn, 20005, 2)
    assert len(answer["traces"]) == 10 and answer["complete"]
    assert asked.count("trace_edges") == 2
    # What the service asks by itself meanwhile is its own business.
    assert all(asked.count(name) == 1 for name in ("lessons_by_id", "memories_by_id", "memories_and_edges"))


async def test_very_many_ways_are_bounded(cairn: Service) -> None:
    """Five layers of six memories, all joined: thousands of ways, of which the strongest are answered, and it says so."""
    layers = [[f"L{layer}-{n}" for n in range(6)] for layer in range(5)]
    await cairn.remember(
        memories=[
            {("dataSource" if layer == 4 else "agentAction"): {"id": id, "text": "A step."}}
            for layer, ids in enumerate(layers)
            for id in ids
        ],
        edges=[
            {"id": f"{one}>{other}", "source": one, "target": other, "text": "Next.", "weight": 0.5 + 0.05 * ((i + j) % 9)}
            for layer in range(4)
            for i, one in enumerate(layers[layer])
            for j, other in enumerate(layers[layer + 1])
        ],
        lessons=[{**LESSON, "rbId": "20004", "linkNodes": layers[0]}],
    )  # fmt: skip
    answer = await _asked(cairn, 20004)
    assert len(answer["traces"]) == 1_000 and answer["truncated"] and answer["complete"]
    ways = _ways(answer["traces"])
    shown = await _in_browser(cairn, 20004)
    assert [way[0] for way in ways] == [way[0] for way in shown]


@pytest.mark.parametrize(("bound", "least"), [("EDGES_OF_A_HUB", 4), ("MEMORIES", 2)])
async def test_what_is_beyond_a_bound_is_not_searched_and_the_answer_says_so(
    cairn: Service, monkeypatch: pytest.MonkeyPatch, bound: str, least: int
) -> None:
    """Of a hub its strongest edges, of too many memories those that the strongest ways lead to: strongest first still."""
    weights = [0.9, 0.8, 0.7, 0.6, 0.5, 0.4]
    await cairn.remember(
        memories=[{"agentAction": {"id": "B0", "text": "A step."}}]
        + [{"event": {"id": f"B{n}", "text": "An event."}} for n in range(1, 7)]
        + [{"dataSource": {"id": f"B{n}-0", "text": "A table."}} for n in range(1, 7)],
        edges=[{"id": f"B0>{n}", "source": "B0", "target": f"B{n}", "text": "Next.", "weight": weights[n - 1]} for n in range(1, 7)]
        + [{"id": f"B{n}>", "source": f"B{n}", "target": f"B{n}-0", "text": "Next.", "weight": 1} for n in range(1, 7)],
        lessons=[{**LESSON, "rbId": "20006", "linkNodes": ["B0"]}],
    )  # fmt: skip
    whole = await _asked(cairn, 20006, 2)
    assert len(whole["traces"]) == 12 and not whole["truncated"]
    monkeypatch.setattr(provenance, bound, least)
    answer = await _asked(cairn, 20006, 2)
    ways = _ways(answer["traces"])
    assert answer["truncated"] and 0 < len(ways) < 12 and ways[0] == _ways(whole["traces"])[0]
    reached = {seen[-1] for _, seen, _ in ways}
    assert {"B1", "B1-0"} <= reached and "B6-0" not in reached


async def test_what_cannot_be_traced_is_named(cairn: Service) -> None:
    """A lesson that is not there is NOT_FOUND; an id that is none and too many hops are BAD_USER_INPUT."""
    with pytest.raises(Refused) as refused:
        await _asked(cairn, 99999)
    assert (refused.value.code, refused.value.fields) == ("NOT_FOUND", ["rbId"])
    with pytest.raises(Refused) as refused:
        await cairn.ask(PROVENANCE, rbId="x", maxHops=7)
    assert (refused.value.code, refused.value.fields) == ("BAD_USER_INPUT", ["rbId", "maxHops"])
    with pytest.raises(Refused) as refused:
        await _asked(cairn, 1, -1)
    assert refused.value.fields == ["maxHops"]

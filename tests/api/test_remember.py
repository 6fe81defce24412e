"""remember and the mutations beside it: one atomic write, upserts by id, both sides of a link."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from datetime import datetime
from typing import Any

import pytest
from neo4j.exceptions import Neo4jError

import graph.session
from graph.session import Row, Transaction
from tests.service import Refused, Service

ALL_SIX: list[dict[str, Any]] = [
    {"userRequest": {"id": "N1001", "text": "Why did EV9 sales dip in March?", "userRole": "analyst", "userId": "u7"}},
    {"userPreference": {"id": "N1002", "text": "Prefers weekly charts.", "preferenceType": "format"}},
    {"agentAction": {"id": "N1003", "text": "Queried weekly sales.", "status": "ok", "parameterField": "SELECT 1"}},
    {
        "dataSource": {
            "id": "N1004",
            "text": "Sales table.",
            "sourceType": "sql",
            "docPointer": "dwh.sales",
            "relevantParts": "2025",
        }
    },
    {
        "event": {
            "id": "N1005",
            "text": "Port strike.",
            "sourceType": "news",
            "startDate": "2025-03-03",
            "endDate": "2025-03-12",
        }
    },
    {"agentAnswer": {"id": "N1006", "text": "Deliveries slipped.", "analysisTypes": ["trend"], "metrics": ["units"]}},
]
EDGES = [
    {"id": "E3001", "source": "N1001", "target": "N1006", "text": "The question was answered by this.", "weight": 0.9},
    {
        "id": "E3002",
        "source": "N1006",
        "target": "N1004",
        "text": "The answer rests on this table.",
        "weight": 0.5,
        "tags": ["evidence"],
    },
    {"id": "E3003", "source": "N1005", "target": "N1006", "text": "The strike explains the slip.", "weight": 0.499},
]
LESSONS = [
    {
        "rbId": "9223372036854775807",
        "keyLesson": "Compare orders with deliveries before explaining a dip.",
        "contextToPrefer": "A sales figure falls for one month.",
        "linkNodes": ["N1006", "N1004"],
        "tags": ["sales"],
    }
]
EVERYTHING = """{ memories(first: 50) { nodes { id type text ... on UserRequest { userRole userId }
  ... on UserPreference { preferenceType } ... on AgentAction { status parameterField }
  ... on DataSource { sourceType docPointer relevantParts } ... on Event { sourceType startDate endDate }
  ... on AgentAnswer { analysisTypes metrics } } } }"""
RECORD = "mutation($input: LessonInput!) { recordLesson(input: $input) { rbId linkNodes } }"
LINKS = """query($ids: [String!]) { lessons(first: 500) { nodes { rbId linkNodes lostSources version sources { id } } }
  memories(first: 500, filter: {tags: $ids}) { nodes { id reasoningPointerIds lessons { rbId } } } }"""


async def test_one_call_writes_all_kinds_and_twice_changes_nothing(cairn: Service) -> None:
    """Memories, edges and lessons of one call; the same call again is unchanged, with no version and no time moved."""
    first = await cairn.remember(memories=ALL_SIX, edges=EDGES, lessons=LESSONS)
    assert (first["created"], first["updated"], first["unchanged"]) == (10, 0, 0)
    assert [memory["id"] for memory in first["memories"]] == [f"N100{n}" for n in range(1, 7)]
    assert [edge["band"] for edge in first["edges"]] == ["CORE", "BRIDGE", "TOPICAL"]
    again = await cairn.remember(memories=ALL_SIX, edges=EDGES, lessons=LESSONS)
    assert (again["created"], again["updated"], again["unchanged"]) == (0, 0, 10)
    assert again["memories"] == first["memories"]
    assert again["lessons"] == first["lessons"]
    assert again["edges"] == first["edges"]


async def test_every_type_keeps_its_own_fields(cairn: Service) -> None:
    """What was written of each of the six types is read back."""
    nodes = {node["id"]: node for node in (await cairn.ask(EVERYTHING))["memories"]["nodes"]}
    for item in ALL_SIX:
        ((kind, given),) = item.items()
        assert nodes[given["id"]]["type"].lower() == kind.lower()
        assert given.items() <= nodes[given["id"]].items()


async def test_an_update_moves_version_and_time_and_leaves_the_rest(cairn: Service) -> None:
    """A changed item is updated, its ingestion time stays; items beside it are unchanged."""
    before = (await cairn.ask('{ memory(id: "N1002") { ingestionTime updateTime } }'))["memory"]
    changed = [
        {"userPreference": {"id": "N1002", "text": "Prefers monthly charts.", "preferenceType": "format"}},
        ALL_SIX[0],
    ]
    answer = await cairn.remember(memories=changed)
    assert (answer["created"], answer["updated"], answer["unchanged"]) == (0, 1, 1)
    after = answer["memories"][0]
    assert after["ingestionTime"] == before["ingestionTime"]
    assert datetime.fromisoformat(after["updateTime"]) > datetime.fromisoformat(before["updateTime"])


async def test_ids_are_minted_short_readable_and_sortable(cairn: Service) -> None:
    """Ids not given come out in order, with their prefix."""
    answer = await cairn.remember(memories=[{"event": {"text": f"Event {n}."}} for n in range(20)])
    ids = [memory["id"] for memory in answer["memories"]]
    assert ids == sorted(ids) and len(set(ids)) == 20
    assert all(one.startswith("N") and one.isalnum() and len(one) == 14 for one in ids)
    joined = await cairn.remember(edges=[{"source": ids[0], "target": ids[1], "text": "Came before.", "weight": 0.4}])
    assert joined["edges"][0]["id"].startswith("E")
    lesson = await cairn.remember(lessons=[{"keyLesson": "Order matters.", "contextToPrefer": "Always."}])
    assert 2**53 < int(lesson["lessons"][0]["rbId"]) < 2**63


async def test_edges_and_lessons_may_name_ids_of_the_same_call(cairn: Service) -> None:
    """In any order: an edge to a memory further down, a lesson from it."""
    answer = await cairn.remember(
        edges=[{"source": "B2", "target": "B1", "text": "Follows.", "weight": 1}],
        memories=[{"event": {"id": "B2", "text": "Second."}}, {"event": {"id": "B1", "text": "First."}}],
        lessons=[{"rbId": "42", "keyLesson": "First things first.", "contextToPrefer": "Order.", "linkNodes": ["B1"]}],
    )
    assert answer["created"] == 4
    assert answer["memories"][1]["reasoningPointerIds"] == ["42"]


async def test_defaults_of_conversation_and_time(cairn: Service) -> None:
    """convId defaults to the call's; a time that is given is kept to the microsecond, in UTC."""
    answer = await cairn.remember(
        conv_id="c9",
        memories=[
            {
                "event": {
                    "id": "D1",
                    "text": "Own.",
                    "convId": "c10",
                    "ingestionTime": "2025-01-31T09:00:00.123456+02:00",
                }
            },
            {"event": {"id": "D2", "text": "The call's."}},
        ],
    )
    own, calls = answer["memories"]
    assert (own["convId"], calls["convId"]) == ("c10", "c9")
    assert own["ingestionTime"] == "2025-01-31T07:00:00.123456+00:00"


async def test_an_idempotency_key_gives_the_same_answer(cairn: Service) -> None:
    """Same key and body: the same answer, minted ids too. Same key, another body: CONFLICT, nothing stored."""
    call: dict[str, Any] = {"memories": [{"event": {"text": "Once."}}], "idempotencyKey": "k1"}
    first = await cairn.remember(**call)
    assert first["created"] == 1
    assert await cairn.remember(**call) == first
    with pytest.raises(Refused) as refused:
        await cairn.remember(memories=[{"event": {"id": "K9", "text": "Another."}}], idempotencyKey="k1")
    assert refused.value.code == "CONFLICT"
    assert (await cairn.ask('{ memory(id: "K9") { id } }'))["memory"] is None


async def test_many_at_once_under_one_key_write_once(cairn: Service) -> None:
    """32 identical calls at the same moment make one record and get one answer."""
    call: dict[str, Any] = {"memories": [{"event": {"text": "At the same moment."}}], "idempotencyKey": "k2"}
    answers = await asyncio.gather(*(cairn.remember(**call) for _ in range(32)))
    assert {answer["memories"][0]["id"] for answer in answers} == {answers[0]["memories"][0]["id"]}


async def test_update_memory_changes_what_is_given(cairn: Service) -> None:
    """Only the given fields change; null clears an optional one; the same patch again changes nothing."""
    patch = 'mutation { updateMemory(id: "N1004", patch: {text: "Sales table, weekly.", docPointer: null, tags: ["x"]}) { %s } }'
    fields = "text tags updateTime ... on DataSource { sourceType docPointer relevantParts }"
    changed = (await cairn.ask(patch % fields))["updateMemory"]
    assert changed["text"] == "Sales table, weekly."
    assert (changed["docPointer"], changed["sourceType"], changed["tags"]) == (None, "sql", ["x"])
    assert (await cairn.ask(patch % fields))["updateMemory"]["updateTime"] == changed["updateTime"]


async def test_update_and_delete_an_edge(cairn: Service) -> None:
    """An edge's sentence, weight and tags change; deleted, it is gone, and deleting again says so."""
    answer = await cairn.ask(
        'mutation { updateEdge(id: "E3003", weight: 0.8, tags: ["cause"]) { text weight band tags } }'
    )
    assert answer["updateEdge"] == {"text": EDGES[2]["text"], "weight": 0.8, "band": "CORE", "tags": ["cause"]}
    delete = 'mutation { deleteEdge(id: "E3003") { id deleted edgesRemoved } }'
    assert (await cairn.ask(delete))["deleteEdge"] == {"id": "E3003", "deleted": True, "edgesRemoved": 1}
    assert (await cairn.ask(delete))["deleteEdge"]["deleted"] is False
    assert (await cairn.ask('{ edge(id: "E3003") { id } }'))["edge"] is None


async def test_an_edge_keeps_its_ends(cairn: Service) -> None:
    """An id that joins other memories already is refused, not silently moved."""
    with pytest.raises(Refused, match="joins N1001 to N1006 already") as refused:
        await cairn.remember(edges=[{**EDGES[0], "target": "N1004"}])
    assert refused.value.code == "BAD_USER_INPUT"


async def test_lessons_are_recorded_revised_and_deleted(cairn: Service) -> None:
    """recordLesson, updateLesson with status, deleteLesson; a title that was not given follows the lesson."""
    record = """mutation($input: LessonInput!) { recordLesson(input: $input) {
      rbId title outcome namespace scope status confidence version usageCount lastUsedAt } }"""
    given = {
        "rbId": "77",
        "keyLesson": "Never average ratios.",
        "contextToPrefer": "Rates over groups.",
        "outcome": "FAILURE",
    }
    lesson = (await cairn.ask(record, input=given))["recordLesson"]
    assert lesson == {
        "rbId": "77",
        "title": "Never average ratios.",
        "outcome": "FAILURE",
        "namespace": "default",
        "scope": "PROJECT",
        "status": "ACTIVE",
        "confidence": 0.8,
        "version": 1,
        "usageCount": 0,
        "lastUsedAt": None,
    }
    update = 'mutation { updateLesson(rbId: "77", patch: {keyLesson: "Never average percentages.", status: RETIRED}) { title version status } }'
    assert (await cairn.ask(update))["updateLesson"] == {
        "title": "Never average percentages.",
        "version": 2,
        "status": "RETIRED",
    }
    assert (await cairn.ask(update))["updateLesson"]["version"] == 2
    delete = 'mutation { deleteLesson(rbId: "77") { id deleted pointersRemoved } }'
    assert (await cairn.ask(delete))["deleteLesson"] == {"id": "77", "deleted": True, "pointersRemoved": 0}
    assert (await cairn.ask(delete))["deleteLesson"]["deleted"] is False


async def test_link_and_unlink_set_both_sides(cairn: Service) -> None:
    """linkNodes and reasoningPointerIds say the same, after linking, after unlinking, after an upsert."""
    await cairn.remember(
        memories=[{"event": {"id": f"L{n}", "text": f"Link {n}.", "tags": ["links"]}} for n in range(3)],
        lessons=[{"rbId": "500", "keyLesson": "Linked.", "contextToPrefer": "Links.", "linkNodes": ["L0"]}],
    )
    await cairn.ask('mutation { linkLesson(rbId: "500", nodeIds: ["L1", "L2", "L1"]) { linkNodes } }')
    assert await _pointers(cairn) == {"L0": ["500"], "L1": ["500"], "L2": ["500"]}
    unlinked = await cairn.ask('mutation { unlinkLesson(rbId: "500", nodeIds: ["L0"]) { linkNodes version } }')
    assert unlinked["unlinkLesson"] == {"linkNodes": ["L1", "L2"], "version": 3}
    await cairn.remember(
        lessons=[{"rbId": "500", "keyLesson": "Linked.", "contextToPrefer": "Links.", "linkNodes": ["L2"]}]
    )
    assert await _pointers(cairn) == {"L0": [], "L1": [], "L2": ["500"]}
    assert (await cairn.settled())["ok"]


async def test_a_lesson_written_again_keeps_what_others_did_to_it(cairn: Service) -> None:
    """An agent sends its lessons once more: what was promoted stays promoted, what was linked stays linked."""
    lesson = {"rbId": "510", "keyLesson": "Knot the rope.", "contextToPrefer": "Wind.", "namespace": "a/b"}
    await cairn.remember(memories=[{"event": {"id": "K1", "text": "A rope."}}], lessons=[lesson])
    await cairn.ask(
        'mutation { promoteLesson(rbId: 510, scope: TEAM) { rbId } linkLesson(rbId: 510, nodeIds: "K1") { rbId } }'
    )
    again = await cairn.remember(lessons=[lesson])
    assert (again["updated"], again["unchanged"]) == (0, 1)
    assert (again["lessons"][0]["scope"], again["lessons"][0]["linkNodes"]) == ("TEAM", ["K1"])
    wider = await cairn.remember(lessons=[{**lesson, "scope": "ORG"}])
    assert (wider["updated"], wider["lessons"][0]["scope"]) == (1, "ORG")
    update = "mutation { updateLesson(rbId: 510, patch: {scope: PROJECT}) { scope linkNodes } }"
    assert (await cairn.ask(update))["updateLesson"] == {"scope": "PROJECT", "linkNodes": ["K1"]}
    with pytest.raises(Refused, match="scope"):
        await cairn.ask("mutation { updateLesson(rbId: 510, patch: {scope: null}) { scope } }")
    assert (await cairn.settled())["ok"]


async def test_deleting_a_memory_keeps_a_record_of_the_lost_source(cairn: Service) -> None:
    """Its edges, its vector and its pointers go; the lesson says which source it lost, and can still be found."""
    deleted = (await cairn.ask('mutation { deleteMemory(id: "N1006") { id deleted edgesRemoved pointersRemoved } }'))[
        "deleteMemory"
    ]
    assert deleted == {"id": "N1006", "deleted": True, "edgesRemoved": 2, "pointersRemoved": 1}
    lesson = (await cairn.ask('{ lesson(rbId: "9223372036854775807") { linkNodes lostSources } }'))["lesson"]
    assert lesson == {"linkNodes": ["N1004"], "lostSources": ["N1006"]}
    found = (await cairn.ask('{ searchLessons(query: "orders and deliveries") { lesson { rbId } } }'))["searchLessons"]
    assert "9223372036854775807" in [hit["lesson"]["rbId"] for hit in found]
    gone = await cairn.ask(
        '{ searchMemories(query: "Deliveries slipped.") { memory { id } } edge(id: "E3001") { id } }'
    )
    assert gone["edge"] is None
    assert "N1006" not in [hit["memory"]["id"] for hit in gone["searchMemories"]]
    assert (await cairn.settled())["ok"]


async def test_a_deleted_id_can_be_written_again(cairn: Service) -> None:
    """A new memory under an old id is found by its own text, not by the old one's; a source that is back is not lost."""
    await cairn.remember(memories=[{"event": {"id": "N1006", "text": "A wholly different matter: volcano."}}])
    found = (await cairn.ask('{ searchMemories(query: "volcano", limit: 1) { memory { id text } } }'))["searchMemories"]
    assert found[0]["memory"]["id"] == "N1006"
    lesson = await cairn.ask(
        'mutation { linkLesson(rbId: "9223372036854775807", nodeIds: ["N1006"]) { lostSources linkNodes } }'
    )
    assert lesson["linkLesson"] == {"lostSources": [], "linkNodes": ["N1004", "N1006"]}
    report = await cairn.settled()
    assert report["ok"], str(report)


@pytest.mark.parametrize("beside", [[], [{"event": {"id": "BESIDE", "text": "Another one."}}]])
async def test_what_is_written_while_it_is_deleted_is_there(cairn: Service, beside: list[Any]) -> None:
    """A write that waits for the lock of a deletion makes the memory anew, alone as well as among others: what is
    acknowledged as made exists."""
    async with _deleted_meanwhile(cairn, "delete_memory", id="PHOENIX", revision=1):
        writing = asyncio.create_task(
            cairn.remember(memories=[{"event": {"id": "PHOENIX", "text": "It rose again."}}, *beside])
        )
    assert (await writing)["created"] == 1 + len(beside)
    assert (await cairn.ask('{ memory(id: "PHOENIX") { text } }'))["memory"] == {"text": "It rose again."}
    found = (await cairn.ask('{ searchMemories(query: "rose again", limit: 1) { memory { id } } }'))["searchMemories"]
    assert found == [{"memory": {"id": "PHOENIX"}}]
    await cairn.ask('mutation { a: deleteMemory(id: "PHOENIX") { id } b: deleteMemory(id: "BESIDE") { id } }')


async def test_of_two_deletions_at_once_one_has_deleted(cairn: Service) -> None:
    async with _deleted_meanwhile(cairn, "delete_memory", id="PHOENIX", revision=1):
        memory = asyncio.create_task(cairn.ask('mutation { deleteMemory(id: "PHOENIX") { deleted } }'))
    assert (await memory)["deleteMemory"] == {"deleted": False}
    await cairn.remember(lessons=[{"rbId": "777", "keyLesson": "Soon gone.", "contextToPrefer": "Never."}])
    async with _deleted_meanwhile(cairn, "delete_lesson", ids=[777]):
        lesson = asyncio.create_task(cairn.ask('mutation { deleteLesson(rbId: "777") { deleted } }'))
    assert (await lesson)["deleteLesson"] == {"deleted": False}


@contextlib.asynccontextmanager
async def _deleted_meanwhile(cairn: Service, statement: str, **parameters: Any) -> AsyncIterator[None]:
    """A deletion is under way while whatever is started inside waits for its lock, and is committed then."""
    if statement == "delete_memory":
        await cairn.remember(memories=[{"event": {"id": parameters["id"], "text": "It was there before."}}])
    deleted, commit = asyncio.Event(), asyncio.Event()

    async def deletion(tx: Transaction) -> None:
        await tx.run(statement, **parameters)
        deleted.set()
        await commit.wait()

    deleting = asyncio.create_task(cairn.cairn.graph.write(deletion))
    await deleted.wait()
    yield
    await asyncio.sleep(0.5)  # what was started waits by now
    commit.set()
    await deleting


async def test_links_agree_whatever_runs_at_the_same_time(cairn: Service) -> None:
    """32 links to one memory, beside unlinks and a deletion, leave both sides the same; no link is lost."""
    await cairn.remember(
        memories=[{"event": {"id": "HUB", "text": "Hub.", "tags": ["links"]}}, {"event": {"id": "RIM", "text": "Rim."}}]
    )
    await cairn.remember(
        lessons=[
            {"rbId": str(600 + n), "keyLesson": f"Lesson {n}.", "contextToPrefer": "Concurrency."} for n in range(32)
        ]
    )
    link = "mutation($id: ID!, $to: [ID!]!) { linkLesson(rbId: $id, nodeIds: $to) { rbId } }"
    await asyncio.gather(*(cairn.ask(link, id=str(600 + n), to=["HUB"]) for n in range(32)))
    assert sorted((await _pointers(cairn))["HUB"]) == [str(600 + n) for n in range(32)]
    unlink = 'mutation($id: ID!) { unlinkLesson(rbId: $id, nodeIds: ["HUB"]) { rbId } }'
    mixed = [cairn.ask(unlink, id=str(600 + n)) for n in range(0, 32, 2)]
    mixed += [cairn.ask(link, id=str(600 + n), to=["RIM"]) for n in range(32)]
    mixed += [cairn.ask('mutation { deleteMemory(id: "RIM") { deleted } }')]
    await asyncio.gather(*mixed, return_exceptions=True)
    assert sorted((await _pointers(cairn))["HUB"]) == [str(600 + n) for n in range(1, 32, 2)]
    report = await cairn.settled()
    assert report["ok"], str(report)


async def test_lessons_move_off_a_memory_while_others_come(cairn: Service) -> None:
    """16 lessons are linked to a memory while 16 others are recorded anew with another source: none is refused, for
    Neo4j is well, and every link is where it should be."""
    link = "mutation($id: ID!, $to: [ID!]!) { linkLesson(rbId: $id, nodeIds: $to) { rbId } }"
    for turn in range(4):
        hub, rim, first = f"FROM{turn}", f"INTO{turn}", 2_000 + 100 * turn
        stay, move = range(first, first + 16), range(first + 50, first + 66)
        moved = [_lesson(n, hub) for n in move]
        await cairn.remember(
            memories=[{"event": {"id": id, "text": id, "tags": ["links"]}} for id in (hub, rim)],
            lessons=[*moved, *(_lesson(n) for n in stay)],
        )
        calls = [cairn.ask(link, id=str(n), to=[hub]) for n in stay]
        calls += [cairn.ask(RECORD, input=_lesson(n, rim)) for n in move]
        refused = [
            one for one in await asyncio.gather(*calls, return_exceptions=True) if isinstance(one, BaseException)
        ]
        assert not refused
        pointers = await _pointers(cairn)
        assert sorted(pointers[hub]) == [str(n) for n in stay]
        assert sorted(pointers[rim]) == [str(n) for n in move]
    report = await cairn.settled()
    assert report["ok"], str(report)


async def test_a_lesson_waits_for_what_it_is_parted_from(cairn: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever parts a lesson from a memory locks the memory before the lesson, as everybody does: while he waits for it,
    its holder can have the lesson, and neither has to begin anew."""
    monkeypatch.setattr(graph.session, "MOST_STARTS", 1)
    await cairn.remember(memories=[_event("HELD"), _event("FREE")], lessons=[_lesson(3_001, "HELD")])
    waiting: list[asyncio.Task[Any]] = []

    async def hold(tx: Transaction) -> list[Row]:
        await tx.run("lock_known_memories", ids=["HELD"])
        waiting.append(asyncio.create_task(cairn.ask(RECORD, input=_lesson(3_001, "FREE"))))
        await asyncio.sleep(1)
        return await tx.run("lock_known_lessons", ids=[3_001])

    assert len(await cairn.cairn.graph.write(hold)) == 1
    assert (await waiting[0])["recordLesson"]["linkNodes"] == ["FREE"]
    assert (await cairn.settled())["ok"]


async def test_a_source_that_a_lesson_gets_meanwhile_is_locked_too(
    cairn: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A lesson that is joined to another memory after its sources were read is parted from that one under its lock."""
    await cairn.remember(memories=[_event(f"W{n}") for n in range(3)], lessons=[_lesson(3_002, "W0")])
    locked: dict[Transaction, set[str]] = {}
    parted: dict[str, bool] = {}
    run = Transaction.run

    async def watched(tx: Transaction, name: str, /, **parameters: Any) -> list[Row]:
        if name == "lock_known_memories":
            if "W2" in parameters["ids"] and not locked:  # its sources are read
                locked[tx] = set()
                await cairn.ask('mutation { linkLesson(rbId: "3002", nodeIds: ["W1"]) { rbId } }')
            locked.setdefault(tx, set()).update(parameters["ids"])
        if name == "remove_links":
            parted.update({node: node in locked[tx] for _, node in parameters["pairs"]})
        return await run(tx, name, **parameters)

    monkeypatch.setattr(Transaction, "run", watched)
    answer = await cairn.ask(RECORD, input=_lesson(3_002, "W2"))
    assert answer["recordLesson"]["linkNodes"] == ["W2"]
    assert parted == {"W0": True, "W1": True}
    assert (await cairn.settled())["ok"]


async def test_a_deadlock_does_not_mean_that_neo4j_is_away(cairn: Service) -> None:
    """A write that meets others more often than a lost connection is tried again is still written, once."""
    met = 0

    async def unlucky(tx: Transaction) -> list[Row]:
        nonlocal met
        met += 1
        if met < 12:
            raise Neo4jError._hydrate_neo4j(code="Neo.TransientError.Transaction.DeadlockDetected", message="A circle.")
        return await tx.run("lock_known_memories", ids=["N1001"])

    assert len(await cairn.cairn.graph.write(unlucky)) == 1
    assert met == 12


async def test_a_new_lesson_is_written_without_reading_ahead(cairn: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only a lesson with an id of the caller's, and with sources, may part from some: no other is looked up before."""
    ran: list[str] = []
    run = Transaction.run

    async def watched(tx: Transaction, name: str, /, **parameters: Any) -> list[Row]:
        ran.append(name)
        return await run(tx, name, **parameters)

    monkeypatch.setattr(Transaction, "run", watched)
    new = {"keyLesson": "New.", "contextToPrefer": "Always.", "linkNodes": ["N1001"]}
    await cairn.remember(lessons=[new, _lesson(3_003)])
    assert "lock_lessons" in ran and "sources_of_lessons" not in ran


def _event(id: str) -> dict[str, Any]:
    return {"event": {"id": id, "text": id}}


def _lesson(rb_id: int, *sources: str) -> dict[str, Any]:
    lesson = {"rbId": str(rb_id), "keyLesson": f"Lesson {rb_id}.", "contextToPrefer": "Concurrency."}
    return {**lesson, "linkNodes": list(sources)}


async def _pointers(cairn: Service) -> dict[str, list[str]]:
    """Each memory's pointers, checked against the lessons' side."""
    answer = await cairn.ask(LINKS, ids=["links"])
    for lesson in answer["lessons"]["nodes"]:
        assert sorted(lesson["linkNodes"]) == sorted(source["id"] for source in lesson["sources"])
    pointers = {node["id"]: node["reasoningPointerIds"] for node in answer["memories"]["nodes"]}
    for memory, ids in pointers.items():
        backwards = [lesson["rbId"] for lesson in answer["lessons"]["nodes"] if memory in lesson["linkNodes"]]
        assert sorted(ids) == sorted(backwards)
    return pointers


async def test_all_problems_are_told_at_once(cairn: Service) -> None:
    """What is wrong in itself and what does not exist, in one answer."""
    with pytest.raises(Refused) as refused:
        await cairn.remember(
            memories=[{"event": {"text": " "}}],
            edges=[{"source": "N1001", "target": "N9", "text": "To nobody.", "weight": 2}],
            lessons=[{"keyLesson": "From nobody.", "contextToPrefer": "Never.", "linkNodes": ["N8"]}],
        )
    assert refused.value.fields == ["memories[0].text", "edges[0].weight", "edges[0].target", "lessons[0].linkNodes"]
    assert "N9" in str(refused.value) and "N8" in str(refused.value)

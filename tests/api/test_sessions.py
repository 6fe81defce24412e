"""Finished work: handed in as a path in the graph, watched, tried again, deleted."""

import asyncio
import json
from typing import Any

import pytest

from bank.harvest import Harvest
from bank.milvus import LESSONS
from graph.errors import Unavailable
from tests.service import Refused, Service

SESSION = """id state attempts error reason namespace outcome tags tokensUsed learnedBy dueAt
  memories { id type text tags convId ... on AgentAction { status parameterField result } }
  lessons { rbId title keyLesson contextToPrefer confidence outcome status learnedBy linkNodes tags }"""
SUBMIT = "mutation($input: SessionInput!) { submitSession(input: $input) { " + SESSION + " } }"
READ = "query($id: ID!) { session(id: $id) { " + SESSION + " } }"
DELETE = """mutation($id: ID!) { deleteSession(id: $id) {
  id deleted memoriesRemoved edgesRemoved lessonsRemoved keptMemories keptLessons } }"""


def work(**parts: Any) -> dict[str, Any]:
    return {
        "convId": "refunds",
        "request": "Refund order 4711 for Ms Berg.",
        "outcome": "SUCCESS",
        "steps": [
            {"action": "get_order", "parameters": '{"order": "4711"}', "result": "paid by card, delivered"},
            {
                "action": "refund",
                "parameters": '{"order": "4711", "to": "cash"}',
                "result": "Error: cash is not possible",
            },
            {"action": "refund", "parameters": '{"order": "4711", "to": "card"}', "result": "refunded"},
        ],
        "answer": "Order 4711 is refunded to the card.",
        "tags": ["refund"],
        **parts,
    }


async def submit(cairn: Service, **parts: Any) -> dict[str, Any]:
    answer: dict[str, Any] = (await cairn.ask(SUBMIT, input=work(**parts)))["submitSession"]
    return answer


async def ended(cairn: Service, session: str, seconds: float = 20) -> dict[str, Any]:
    """The session once it is in one of its three last states."""
    for _ in range(int(seconds * 20)):
        found: dict[str, Any] = (await cairn.ask(READ, id=session))["session"]
        if found["state"] not in ("QUEUED", "RUNNING"):
            return found
        await asyncio.sleep(0.05)
    raise AssertionError(found)


async def test_a_session_is_a_path_from_the_request_to_the_answer(cairn: Service) -> None:
    """The request, each step with its parameters, result and status, and the answer, in order; each edge says which
    step it is, strongly."""
    session = await submit(cairn, convId="path")
    assert session["state"] in ("QUEUED", "RUNNING", "NOTHING_LEARNED")
    memories = session["memories"]
    assert [m["type"] for m in memories] == ["UserRequest", *["AgentAction"] * 3, "AgentAnswer"]
    assert [m.get("status") for m in memories[1:4]] == ["done", "failed", "done"]
    assert memories[2]["parameterField"] == '{"order": "4711", "to": "cash"}'
    assert memories[2]["result"] == "Error: cash is not possible"
    assert "cash is not possible" in memories[2]["text"] and memories[2]["text"].startswith("refund")
    assert all(m["tags"] == ["refund"] and m["convId"] == "path" for m in memories)
    seen = await cairn.ask(
        '{ conversation(convId: "path") { memories { id } edges { text weight band source { id } target { id } } } }'
    )
    assert [m["id"] for m in seen["conversation"]["memories"]] == [m["id"] for m in memories]
    edges = {(e["source"]["id"], e["target"]["id"]): e for e in seen["conversation"]["edges"]}
    ids = [m["id"] for m in memories]
    for number in (1, 2, 3):
        edge = edges[ids[number - 1], ids[number]]
        assert edge["text"] == f"Step {number} of 3 for the request: Refund order 4711 for Ms Berg."
        assert edge["band"] == "CORE"
    assert edges[ids[3], ids[4]]["text"] == "The last of 3 steps led to the answer: Order 4711 is refunded to the card."
    assert edges[ids[0], ids[4]]["band"] == "CORE"
    assert len(edges) == 5


async def test_steps_are_read_in_whatever_shape_agents_write_them(cairn: Service) -> None:
    """What Python prints, a tool's answer by MCP, an exit code: what failed is marked so, and what got past it is told."""
    steps = [
        {"action": "fetch", "parameters": "{'limit': 500}", "result": "{'error': 'too many requests', 'status': 429}"},
        {"action": '{"name": "fetch", "arguments": {"limit": 100}}', "result": "{'rows': 100, 'error': None}"},
        {"action": "check", "result": '{"content": [{"type": "text", "text": "no such sheet"}], "isError": true}'},
        {"action": "make report", "result": "make: *** No rule to make target\nexit code: 2"},
        {"action": "GET /reports/7?page=1", "result": ""},
    ]
    parts = {"convId": "shapes", "namespace": "shapes", "request": "Draw up the report on returned parcels"}
    end = await ended(cairn, (await submit(cairn, **parts, steps=steps))["id"])
    assert [m["status"] for m in end["memories"][1:6]] == ["failed", "done", "failed", "failed", "done"]
    assert any("`limit` was changed from `500` to `100`" in lesson["keyLesson"] for lesson in end["lessons"])


async def test_a_trajectory_is_recalled(cairn: Service) -> None:
    """What was handed in is found by the next question, and the path leads from the request to the step."""
    session = await submit(
        cairn, convId="recall", request="Move the Lisbon offsite to June.",
        steps=[{"action": "Asked the hotel for the first week.", "result": "fully booked"},
               {"action": "Asked for the third week of June.", "result": "confirmed"}],
        answer="The offsite is in the third week.",
    )  # fmt: skip
    found = await cairn.ask(
        """{ recall(input: {query: "Lisbon offsite in June", filter: {convId: "recall"}, limit: 5}) {
             memories { memory { id } } paths { text } } }"""
    )
    ids = {row["memory"]["id"] for row in found["recall"]["memories"]}
    assert {m["id"] for m in session["memories"]} == ids
    assert (await cairn.settled())["ok"]


async def test_a_failed_session_ties_its_answer_less(cairn: Service) -> None:
    """An answer that did not do what was asked is a BRIDGE to the request, and says so."""
    await submit(cairn, convId="failed", outcome="FAILURE", steps=[], answer="It cannot be done.")
    seen = await cairn.ask('{ conversation(convId: "failed") { edges { text weight band } } }')
    assert seen["conversation"]["edges"] == [
        {"text": "The request was answered, but not as asked: It cannot be done.", "weight": 0.6, "band": "BRIDGE"}
    ]


async def test_long_details_that_are_the_same_are_no_difference(cairn: Service) -> None:
    """A failed and a successful try with the same long parameters and results, signs of any plane in them: nothing is
    learnt, though the earlier one is read cut."""
    parameters = '{"note": "retries=5 ' + "é🔍 " * 4_000 + '"}'
    step = {"action": "upload", "parameters": parameters, "result": "done 🔍 " + "é🔍 " * 4_000}
    for outcome in ("FAILURE", "SUCCESS"):
        session = await submit(cairn, convId="long", namespace="long", outcome=outcome, steps=[step])
        end = await ended(cairn, session["id"])
    assert (end["state"], end["lessons"]) == ("NOTHING_LEARNED", [])
    assert "compared with one earlier session" in end["reason"]


async def test_nothing_learned_is_an_end_with_a_reason(cairn: Service) -> None:
    """A single session with nothing to compare it to ends NOTHING_LEARNED, says why, and names its distiller."""
    session = await submit(cairn, convId="nothing", namespace="lonely", steps=[], answer=None)
    end = await ended(cairn, session["id"])
    assert (end["state"], end["attempts"], end["error"]) == ("NOTHING_LEARNED", 1, None)
    assert end["reason"] == (
        "No earlier session with a like request is known to compare it with. It has no error that was got past, and states "
        "no preference."
    )
    assert (end["learnedBy"], end["tokensUsed"], end["dueAt"]) == ("rules", 0, None)
    again = await cairn.ask("mutation($id: ID!) { retrySession(id: $id) { state attempts reason } }", id=session["id"])
    assert again["retrySession"] == {"state": "QUEUED", "attempts": 0, "reason": None}
    assert (await ended(cairn, session["id"]))["state"] == "NOTHING_LEARNED"


async def test_what_got_past_an_error_is_learnt_without_a_model(cairn: Service) -> None:
    """By default: a lesson from one session, with its evidence, found by the next search; a like session supports it."""
    first = await ended(cairn, (await submit(cairn, convId="r1", namespace="rules"))["id"])
    assert (first["state"], first["learnedBy"]) == ("DONE", "rules")
    (lesson,) = first["lessons"]
    assert (lesson["learnedBy"], lesson["confidence"], lesson["status"]) == ("rules", 0.7, "ACTIVE")
    memories = [memory["id"] for memory in first["memories"]]
    assert {memories[0], memories[2], memories[3]} <= set(lesson["linkNodes"]) <= set(memories)
    await cairn.settled()
    found = await cairn.ask('{ searchLessons(query: "refund an order", namespace: "rules") { lesson { rbId } } }')
    assert [hit["lesson"]["rbId"] for hit in found["searchLessons"]] == [lesson["rbId"]]
    again = await submit(cairn, convId="r2", namespace="rules", request="Refund order 4712 for Mr Lund.")
    second = await ended(cairn, again["id"])
    assert [one["rbId"] for one in second["lessons"]] == [lesson["rbId"]]
    assert {second["memories"][0]["id"], *lesson["linkNodes"]} <= set(second["lessons"][0]["linkNodes"])


async def test_what_the_rules_find_is_known_by_what_it_is_about(cairn: Service) -> None:
    """Two wishes in one request are two lessons, though their sentences are alike; a third session that has one of them
    in other words supports that one."""
    parts: dict[str, Any] = {"namespace": "wishes", "steps": [], "answer": None}
    request = "Report the margin by region. Please always answer in French. I prefer short answers."
    first = await ended(cairn, (await submit(cairn, convId="w1", request=request, **parts))["id"])
    titles = {lesson["title"]: lesson["rbId"] for lesson in first["lessons"]}
    assert titles.keys() == {"Preference: Please always answer in French", "Preference: I prefer short answers"}
    request = "Report the margin by region. Please never draw any charts."
    other = await ended(cairn, (await submit(cairn, convId="w2", request=request, **parts))["id"])
    assert [lesson["title"] for lesson in other["lessons"]] == ["Preference: Please never draw any charts"]
    request = "Report the margin by region. I'd really prefer short answers."
    third = await ended(cairn, (await submit(cairn, convId="w3", request=request, **parts))["id"])
    assert [lesson["rbId"] for lesson in third["lessons"]] == [titles["Preference: I prefer short answers"]]


async def test_what_was_found_before_is_known_among_many_like_it(cairn: Service) -> None:
    """Thirty lessons of somebody's hand say nearly the same: the second session supports the lesson that the first one
    taught, and nothing is learnt twice."""
    first = await ended(cairn, (await submit(cairn, convId="m1", namespace="many"))["id"])
    (lesson,) = first["lessons"]
    nearly = [
        {
            "keyLesson": lesson["keyLesson"].replace("In one session", "In 2 sessions") + f" Case {number}.",
            "contextToPrefer": lesson["contextToPrefer"],
            "linkNodes": [first["memories"][0]["id"]],
            "namespace": "many",
        }
        for number in range(30)
    ]
    await cairn.ask(
        "mutation($input: RememberInput!) { remember(input: $input) { created } }",
        input={"convId": "m", "lessons": nearly},
    )
    second = await ended(cairn, (await submit(cairn, convId="m2", namespace="many"))["id"])
    assert [one["rbId"] for one in second["lessons"]] == [lesson["rbId"]]


async def test_a_lesson_is_offered_only_when_it_is_whole(cairn: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    """The session is done, its lesson's row is still on its way into the index: neither the memories that point at it
    nor a lesson that requires it lead to it. What somebody recorded by hand is offered all the same."""
    insert, arrived = cairn.cairn.vectors.insert, asyncio.Event()

    async def slow(collection: str, rows: Any, *more: Any) -> None:
        if collection == LESSONS:
            await arrived.wait()
        await insert(collection, rows, *more)

    by_hand = {"rbId": "501", "keyLesson": "Ask for the till.", "contextToPrefer": "Quibbex money goes back."}
    await cairn.remember(lessons=[{**by_hand, "namespace": "whole"}])
    monkeypatch.setattr(cairn.cairn.vectors, "insert", slow)
    session = await submit(cairn, convId="w1", namespace="whole", request="Refund the Quibbex order.")
    found = await ended(cairn, session["id"])
    (lesson,) = found["lessons"]
    assert found["state"] == "DONE"
    await cairn.ask(
        "mutation($to: ID!) { connectLessons(source: 501, target: $to, type: REQUIRES) { type } }", to=lesson["rbId"]
    )
    late = cairn.remember(lessons=[{"keyLesson": "Keep the receipt.", "contextToPrefer": "Till.", "namespace": "whole", "linkNodes": [found["memories"][0]["id"]]}])  # fmt: skip
    writing = asyncio.create_task(late)

    async def offered() -> set[str]:
        data = await cairn.ask("""{ recall(input: {query: "Refund the Quibbex order.", namespace: "whole"}) { lessons { lesson { keyLesson } } }
          searchLessons(query: "Refund the Quibbex order", namespace: "whole") { lesson { keyLesson } } }""")
        return {hit["lesson"]["keyLesson"] for hit in (*data["recall"]["lessons"], *data["searchLessons"])}

    for _ in range(100):
        if "Keep the receipt." in await offered():
            break
        await asyncio.sleep(0.05)
    assert await offered() == {"Ask for the till.", "Keep the receipt."}
    with monkeypatch.context() as away:
        away.setattr(cairn.cairn.search._embedder, "query", _away)
        assert await offered() == {"Ask for the till.", "Keep the receipt."}
    arrived.set()
    await writing
    await cairn.settled()
    assert await offered() == {"Ask for the till.", "Keep the receipt.", lesson["keyLesson"]}


async def _away(*_: Any) -> None:
    raise Unavailable("The embedder is away for this test")


async def test_like_sessions_are_found_however_many_others_ask_the_same(cairn: Service) -> None:
    """Many memories and some sessions elsewhere have the very words of a request, and thirty sessions of its namespace
    ended well: three that failed are compared with those all the same."""
    request = "Export the ledger to the archive"
    await cairn.remember("crowd", memories=[{"userRequest": {"text": request}} for _ in range(150)])

    async def export(namespace: str, mode: str, outcome: str) -> str:
        steps = [{"action": "export", "parameters": f'{{"mode": "{mode}"}}', "result": "ok"}]
        parts = {"request": request, "steps": steps, "answer": None, "outcome": outcome, "namespace": namespace}
        session: str = (await submit(cairn, convId="crowd", **parts))["id"]
        return session

    await asyncio.gather(*(export(f"crowd/elsewhere{n}", "full", "SUCCESS") for n in range(5)))
    sessions = await asyncio.gather(*(export("crowd/here", "full", "SUCCESS") for _ in range(30)))
    await asyncio.gather(*(ended(cairn, session, 60) for session in sessions))
    ends = [await ended(cairn, await export("crowd/here", "delta", "FAILURE")) for _ in range(3)]
    lessons = [lesson["keyLesson"] for end in ends for lesson in end["lessons"]]
    assert any("given `full` for `mode`; in 0 of 2 such failed tries" in lesson for lesson in lessons), lessons


async def test_a_lesson_takes_the_support_of_so_many_sessions(cairn: Service) -> None:
    """Beyond ten a session is one that stands behind the lesson and no more: neither sources nor a signal are added, and
    the lesson is as it was."""
    ends = [await ended(cairn, (await submit(cairn, convId="many", namespace="support"))["id"]) for _ in range(13)]
    rb_id = ends[0]["lessons"][0]["rbId"]
    assert all(rb_id in (lesson["rbId"] for lesson in end["lessons"]) for end in ends)
    assert rb_id in ends[12]["reason"]
    seen = "query($id: ID!) { lesson(rbId: $id) { linkNodes version signals(first: 100) { nodes { kind } } } }"
    lesson = (await cairn.ask(seen, id=rb_id))["lesson"]
    assert len(lesson["signals"]["nodes"]) == 10
    behind = [any(memory["id"] in lesson["linkNodes"] for memory in end["memories"]) for end in ends]
    assert behind == [True] * 11 + [False] * 2
    assert lesson["version"] == 11
    await delete(cairn, ends[3]["id"])  # and there is room for another
    last = await ended(cairn, (await submit(cairn, convId="many", namespace="support"))["id"])
    lesson = (await cairn.ask(seen, id=rb_id))["lesson"]
    assert len(lesson["signals"]["nodes"]) == 10 and last["memories"][0]["id"] in lesson["linkNodes"]
    for end in (*ends[:3], *ends[4:], last):
        assert (await delete(cairn, end["id"]))["keptMemories"] == []
    assert await left_of(cairn, "support") == {"memories": [], "edges": [], "lessons": []}


async def test_a_lesson_that_became_part_of_another_meanwhile_is_supported_there(
    cairn: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A sweep merges the lesson between the moment it was found and the moment it is locked."""
    first = await ended(cairn, (await submit(cairn, convId="race", namespace="race"))["id"])
    (lesson,) = first["lessons"]
    same = {"keyLesson": lesson["keyLesson"], "contextToPrefer": lesson["contextToPrefer"], "namespace": "race"}
    await cairn.remember("race", lessons=[{"rbId": "90", **same}])
    await cairn.settled()
    compared, merged = Harvest._sorted, []

    async def then_merged(self: Harvest, *parts: Any) -> Any:
        learnt = await compared(self, *parts)
        if not merged:
            merge = 'mutation { consolidate(dryRun: false, namespace: "race") { nodes { merged { rbId } } } }'
            merged.extend((await cairn.ask(merge))["consolidate"]["nodes"])
        return learnt

    monkeypatch.setattr(Harvest, "_sorted", then_merged)
    second = await ended(cairn, (await submit(cairn, convId="race", namespace="race"))["id"])
    rb_id = merged[0]["merged"]["rbId"]
    assert [one["rbId"] for one in second["lessons"]] == [rb_id]
    assert second["reason"] == f"Known already, and supported by it: {rb_id}."
    assert second["memories"][0]["id"] in second["lessons"][0]["linkNodes"]
    told = (await cairn.ask(LESSON, id=rb_id))["lesson"]
    assert [signal["kind"] for signal in told["signals"]["nodes"]] == ["SUPPORTED"]
    assert (await cairn.settled())["ok"]


async def test_what_has_lost_its_sources_meanwhile_is_not_learnt(
    cairn: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All memories of a session are deleted while it is read: nothing is learnt, and the reason says why."""
    compared = Harvest._sorted

    async def then_deleted(self: Harvest, tx: Any, work: Any, drafts: Any) -> Any:
        learnt = await compared(self, tx, work, drafts)
        for id in {node for draft in drafts for node in draft.link_nodes}:
            await cairn.ask("mutation($id: ID!) { deleteMemory(id: $id) { deleted } }", id=id)
        return learnt

    monkeypatch.setattr(Harvest, "_sorted", then_deleted)
    end = await ended(cairn, (await submit(cairn, convId="lost", namespace="lost"))["id"])
    assert (end["state"], end["lessons"]) == ("NOTHING_LEARNED", [])
    assert end["reason"] == "What it taught is not kept: the memories behind it have been deleted meanwhile."


async def test_a_lesson_that_came_back_with_the_work_is_not_learnt_again(cairn: Service) -> None:
    """The agent recalls a lesson of the rules and pastes it into its work, which shows the same once more: neither a
    new lesson nor support for the old one, be it the context, the answer as JSON, or the text alone in a string."""
    refused = [{"action": "refund", "parameters": '{"way": "cash"}', "result": "Error: cash is not allowed"},
               {"action": "refund", "parameters": '{"way": "card"}', "result": "refunded"}]  # fmt: skip
    first = await ended(cairn, (await submit(cairn, convId="b1", namespace="back", steps=refused))["id"])
    (lesson,) = first["lessons"]
    await cairn.settled()
    recalled = await cairn.ask('{ recall(input: {query: "refund an order", namespace: "back"}) { context } }')
    context, told = recalled["recall"]["context"], lesson["keyLesson"]
    assert f"(lesson {lesson['rbId']})" in context
    found = await cairn.ask('{ searchLessons(query: "refund", namespace: "back") { lesson { rbId } } }')
    assert "“not allowed”" in told and told not in json.dumps(told)

    async def with_it(result: str) -> dict[str, Any]:
        steps = [{"action": "recall", "result": result}, *refused]
        return await ended(cairn, (await submit(cairn, convId="b2", namespace="back", steps=steps))["id"])

    shapes = (context, json.dumps(found), json.dumps([told]), json.dumps(json.dumps(told)), str([told]))
    for end in await asyncio.gather(*map(with_it, shapes)):
        assert (end["state"], end["lessons"]) == ("NOTHING_LEARNED", [])
        assert end["reason"] == f"It repeats lessons that it had been given: {lesson['rbId']}."


async def test_the_same_key_is_one_session(cairn: Service) -> None:
    """Eight calls at once with one key: one session. Another body under it is a CONFLICT."""
    answers = await asyncio.gather(*(submit(cairn, convId="key", idempotencyKey="k1") for _ in range(8)))
    assert len({answer["id"] for answer in answers}) == 1
    seen = await cairn.ask('{ conversation(convId: "key") { memories { id } } }')
    assert len(seen["conversation"]["memories"]) == 5
    with pytest.raises(Refused) as refused:
        await submit(cairn, convId="key", idempotencyKey="k1", answer="Something else.")
    assert (refused.value.code, refused.value.fields) == ("CONFLICT", ["idempotencyKey"])


async def test_what_is_wrong_is_named_and_nothing_is_stored(cairn: Service) -> None:
    """Every field that is wrong, at once; nothing of it is stored."""
    with pytest.raises(Refused) as refused:
        await submit(
            cairn, convId=" bad", request=" ", namespace="a//b", answer="\0", tags=["ok", ""], idempotencyKey="",
            steps=[{"action": "wrong"}, {"action": ""}, {"action": "a", "result": "x" * 70_000}, {"action": "b", "parameters": "\0"}],
        )  # fmt: skip
    assert refused.value.code == "BAD_USER_INPUT"
    assert set(refused.value.fields) == {
        *("convId", "request", "namespace", "answer", "tags[1]", "idempotencyKey"),
        *("steps[1].action", "steps[2].result", "steps[3].parameters"),
    }
    with pytest.raises(Refused, match=r"steps: has 501 items; at most 500"):
        await submit(cairn, convId="toomany", steps=[{"action": "again"}] * 501)
    found = await cairn.ask('{ memories(filter: {textContains: "wrong"}) { nodes { id } } }')
    assert found["memories"]["nodes"] == []


async def test_sessions_by_page_and_state(cairn: Service) -> None:
    """Newest first, a page after the other, of one state or of all."""
    own = [(await submit(cairn, convId="page", namespace="page", steps=[], answer=None))["id"] for _ in range(5)]
    for session in own:
        await ended(cairn, session)
    page = """query($state: SessionState, $after: String) { sessions(filter: {state: $state}, first: 2, after: $after) {
      nodes { id state memories { id } } pageInfo { hasNextPage endCursor } } }"""
    found: list[str] = []
    after = None
    for _ in range(2):
        answer = (await cairn.ask(page, state="NOTHING_LEARNED", after=after))["sessions"]
        assert answer["pageInfo"]["hasNextPage"] is True
        assert all(node["state"] == "NOTHING_LEARNED" and node["memories"] for node in answer["nodes"])
        found += [node["id"] for node in answer["nodes"]]
        after = answer["pageInfo"]["endCursor"]
    assert found == own[:0:-1]
    assert (await cairn.ask(page, state="RUNNING"))["sessions"] == {
        "nodes": [], "pageInfo": {"hasNextPage": False, "endCursor": None},
    }  # fmt: skip
    assert [node["id"] for node in (await cairn.ask(page))["sessions"]["nodes"]] == own[:2:-1]


async def test_unknown_sessions(cairn: Service) -> None:
    """session is null, retrySession is NOT_FOUND, deleteSession answers that nothing was deleted."""
    assert (await cairn.ask(READ, id="S0"))["session"] is None
    with pytest.raises(Refused, match="No session has the id S0"):
        await cairn.ask('mutation { retrySession(id: "S0") { id } }')
    assert (await cairn.ask(DELETE, id="S0"))["deleteSession"]["deleted"] is False


async def test_a_session_goes_with_all_that_came_only_from_it(cairn: Service) -> None:
    """Its lesson, its memories and edges go, but for a memory that another's edge leads to and one that a lesson of
    somebody's hand was learnt from; an edge nobody wrote keeps nothing. The stores agree, and its key cannot be used
    again."""
    request = {"request": "Refund the Zephyrion to Ms Berg."}
    session = await submit(cairn, convId="gone", namespace="gone", idempotencyKey="gone", **request)
    assert len((await ended(cairn, session["id"]))["lessons"]) == 1
    ids = [m["id"] for m in session["memories"]]
    await cairn.remember(
        "other", memories=[{"event": {"id": "EV1", "text": "The card terminal was changed."}}],
        edges=[{"source": "EV1", "target": ids[3], "text": "Why the card works.", "weight": 0.7}],
        lessons=[{"rbId": "88", "keyLesson": "Refund to the card.", "contextToPrefer": "Refunds.", "linkNodes": [ids[4]]}],
    )  # fmt: skip
    alike = [{"event": {"id": "EV2", "text": "The Zephyrion arrived."}}]
    linked = await cairn.remember("other", memories=alike, linkTopics=True)
    assert [edge["target"]["id"] for edge in linked["edges"]] == [ids[0]]
    answer = (await cairn.ask(DELETE, id=session["id"]))["deleteSession"]
    assert answer == {
        "id": session["id"], "deleted": True, "memoriesRemoved": 3, "edgesRemoved": 5, "lessonsRemoved": 1,
        "keptMemories": [ids[3], ids[4]], "keptLessons": [],
    }  # fmt: skip
    seen = await cairn.ask('{ conversation(convId: "gone") { memories { id } } lesson(rbId: "88") { linkNodes } }')
    assert [m["id"] for m in seen["conversation"]["memories"]] == ids[3:]
    assert seen["lesson"]["linkNodes"] == [ids[4]]
    assert (await cairn.ask(READ, id=session["id"]))["session"] is None
    assert (await cairn.settled())["ok"]
    with pytest.raises(Refused, match="has been deleted") as refused:
        await submit(cairn, convId="gone", namespace="gone", idempotencyKey="gone", **request)
    assert refused.value.code == "CONFLICT"


LESSON = """query($id: ID!) { lesson(rbId: $id) { linkNodes lostSources confidence status scope
  sources { id } signals { nodes { kind } } } }"""


async def delete(cairn: Service, session: str) -> dict[str, Any]:
    answer: dict[str, Any] = (await cairn.ask(DELETE, id=session))["deleteSession"]
    return answer


async def left_of(cairn: Service, name: str) -> dict[str, Any]:
    """What is there of a conversation and a namespace of the same name."""
    data = await cairn.ask(
        """query($name: String!) { conversation(convId: $name) { memories { id } edges { id } }
             lessons(filter: {namespace: $name}) { nodes { rbId } } }""",
        name=name,
    )
    return {**data["conversation"], "lessons": data["lessons"]["nodes"]}


@pytest.mark.parametrize("first", [0, 1])
async def test_a_lesson_goes_with_the_last_session_behind_it(cairn: Service, first: int) -> None:
    """One session teaches, another supports: whichever is deleted first, its memories and its signal go and the lesson
    stays with the other's; with the second nothing is left."""
    name = f"both{first}"
    ends = [await ended(cairn, (await submit(cairn, convId=name, namespace=name))["id"]) for _ in range(2)]
    (lesson,) = ends[1]["lessons"]
    assert ends[0]["lessons"][0]["rbId"] == lesson["rbId"]
    assert (await cairn.ask(LESSON, id=lesson["rbId"]))["lesson"]["signals"]["nodes"] == [{"kind": "SUPPORTED"}]
    own = [[memory["id"] for memory in end["memories"]] for end in ends]
    answer = await delete(cairn, ends[first]["id"])
    assert answer == {
        "id": ends[first]["id"], "deleted": True, "memoriesRemoved": 5, "edgesRemoved": 5, "lessonsRemoved": 0,
        "keptMemories": [], "keptLessons": [lesson["rbId"]],
    }  # fmt: skip
    left = (await cairn.ask(LESSON, id=lesson["rbId"]))["lesson"]
    assert set(left["linkNodes"]) == set(lesson["linkNodes"]) & set(own[1 - first])
    assert set(left["lostSources"]) == set(lesson["linkNodes"]) & set(own[first])
    assert {source["id"] for source in left["sources"]} == set(left["linkNodes"])
    assert [signal["kind"] for signal in left["signals"]["nodes"]] == ["SUPPORTED"][first:]
    assert left["confidence"] == 0.7
    assert (await cairn.settled())["ok"]
    answer = await delete(cairn, ends[1 - first]["id"])
    assert (answer["memoriesRemoved"], answer["lessonsRemoved"], answer["keptLessons"]) == (5, 1, [])
    assert await left_of(cairn, name) == {"memories": [], "edges": [], "lessons": []}
    assert (await cairn.settled())["ok"]


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0)])
async def test_what_was_learnt_by_comparing_goes_with_the_last_of_them(cairn: Service, order: tuple[int, ...]) -> None:
    """Three sessions were compared for one lesson, which one of them taught: it goes with the last, in whatever order."""
    name = "compared" + "".join(map(str, order))
    check = [{"action": "query", "result": "ok"}, {"action": "check", "result": "ok"}]
    sessions = []
    for outcome, steps in (("SUCCESS", check), ("SUCCESS", check), ("FAILURE", check[:1])):
        parts = {"request": "Report the weekly margin by region", "outcome": outcome, "steps": steps, "answer": None}
        sessions.append(await ended(cairn, (await submit(cairn, convId=name, namespace=name, **parts))["id"]))
    assert sessions[-1]["lessons"]
    rb_ids = [lesson["rbId"] for lesson in sessions[-1]["lessons"]]
    for place in order[:2]:
        answer = await delete(cairn, sessions[place]["id"])
        assert (answer["lessonsRemoved"], answer["keptMemories"], answer["keptLessons"]) == (0, [], rb_ids)
        assert answer["memoriesRemoved"] == len(sessions[place]["memories"])
    assert (await delete(cairn, sessions[order[2]]["id"]))["lessonsRemoved"] == len(rb_ids)
    assert await left_of(cairn, name) == {"memories": [], "edges": [], "lessons": []}
    assert (await cairn.settled())["ok"]


@pytest.mark.parametrize(
    "hand",
    [
        'updateLesson(rbId: $id, patch: {keyLesson: "Our finance team decided: to the card only."}) { rbId }',
        'recordLesson(input: {rbId: $id, keyLesson: "To the card.", contextToPrefer: "Refunds.", namespace: "NAME"}) { rbId }',
        "promoteLesson(rbId: $id, scope: ORG) { rbId }",
        'giveFeedback(rbId: $id, helpful: true, source: "ana") { rbId }',
        "updateLesson(rbId: $id, patch: {status: RETIRED}) { rbId } again: updateLesson(rbId: $id, patch: {status: ACTIVE}) { rbId }",
    ],
    ids=["rewritten", "written again", "promoted", "praised", "accepted"],
)
async def test_a_lesson_that_a_person_had_a_hand_in_stays(cairn: Service, hand: str) -> None:
    """It did not come only from the session: the answer names it, and it says which sources it has lost."""
    name = f"hand{len(hand)}"
    end = await ended(cairn, (await submit(cairn, convId=name, namespace=name))["id"])
    (lesson,) = end["lessons"]
    await cairn.ask(f"mutation($id: ID!) {{ {hand.replace('NAME', name)} }}", id=lesson["rbId"])
    answer = await delete(cairn, end["id"])
    assert (answer["memoriesRemoved"], answer["lessonsRemoved"]) == (5, 0)
    assert (answer["keptMemories"], answer["keptLessons"]) == ([], [lesson["rbId"]])
    left = (await cairn.ask(LESSON, id=lesson["rbId"]))["lesson"]
    assert left["linkNodes"] == [] and set(left["lostSources"]) == set(lesson["linkNodes"])
    assert (await cairn.settled())["ok"]


async def test_a_lesson_that_was_rejected_goes(cairn: Service) -> None:
    """Nobody vouches for a lesson by retiring it."""
    end = await ended(cairn, (await submit(cairn, convId="rejected", namespace="rejected"))["id"])
    (lesson,) = end["lessons"]
    await cairn.ask(
        "mutation($id: ID!) { updateLesson(rbId: $id, patch: {status: RETIRED}) { rbId } }", id=lesson["rbId"]
    )
    assert (await delete(cairn, end["id"]))["lessonsRemoved"] == 1
    assert await left_of(cairn, "rejected") == {"memories": [], "edges": [], "lessons": []}


async def test_a_lesson_that_became_part_of_another_goes_and_the_other_is_named(cairn: Service) -> None:
    """What the session taught was merged with a lesson of somebody's hand: the part goes, the merged lesson stays without
    the session's memories, and the answer names it."""
    end = await ended(cairn, (await submit(cairn, convId="merged", namespace="merged"))["id"])
    (lesson,) = end["lessons"]
    same = {"keyLesson": lesson["keyLesson"], "contextToPrefer": lesson["contextToPrefer"], "namespace": "merged"}
    await cairn.remember("merged", lessons=[{"rbId": "89", **same}])
    await cairn.settled()
    merge = 'mutation { consolidate(dryRun: false, namespace: "merged") { nodes { merged { rbId linkNodes } } } }'
    (merged,) = (await cairn.ask(merge))["consolidate"]["nodes"]
    assert set(merged["merged"]["linkNodes"]) == set(lesson["linkNodes"])
    answer = await delete(cairn, end["id"])
    assert (answer["memoriesRemoved"], answer["lessonsRemoved"], answer["keptMemories"]) == (5, 1, [])
    assert answer["keptLessons"] == [merged["merged"]["rbId"]]
    left = (await cairn.ask(LESSON, id=merged["merged"]["rbId"]))["lesson"]
    assert (left["linkNodes"], left["status"]) == ([], "ACTIVE")
    assert (await cairn.settled())["ok"]


async def test_a_memory_of_a_session_can_be_deleted(cairn: Service) -> None:
    """Deleting a step leaves the session with the others; without its request there is nothing to learn from."""
    session = await submit(cairn, convId="less", namespace="less", steps=[{"action": "look"}, {"action": "refund"}])
    await ended(cairn, session["id"])
    for place in (1, 0):
        gone = session["memories"][place]["id"]
        deleted = await cairn.ask("mutation($id: ID!) { deleteMemory(id: $id) { deleted } }", id=gone)
        assert deleted["deleteMemory"]["deleted"] is True
    left = await ended(cairn, session["id"])
    assert [m["id"] for m in left["memories"]] == [m["id"] for m in session["memories"][2:]]
    await cairn.ask("mutation($id: ID!) { retrySession(id: $id) { id } }", id=session["id"])
    end = await ended(cairn, session["id"])
    assert (end["state"], end["error"]) == ("FAILED", "Its request has been deleted; there is nothing to learn from.")

"""Near-duplicates become one lesson that keeps all of them, and back again; by call, by sweep and by the clock."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from api.settings import Settings
from tests.ports import free_port
from tests.service import Refused, Service, serving

CONSOLIDATE = """mutation($dryRun: Boolean! = true, $namespace: String, $first: Int! = 20, $after: String) {
  consolidate(dryRun: $dryRun, namespace: $namespace, first: $first, after: $after) {
    nodes { parts { rbId } keeps { rbId } merged { rbId } } pageInfo { hasNextPage endCursor } } }"""
UNDO = "mutation($rbId: ID!) { undoConsolidation(rbId: $rbId) { rbId status updatedAt } }"
LESSON = """query($rbId: ID!) { lesson(rbId: $rbId) {
  rbId title keyLesson contextToPrefer tags linkNodes sources { id } outcome namespace scope status confidence usageCount
  createdAt updatedAt lastUsedAt mergedInto mergedFrom signals(first: 50) { nodes { kind comment } }
  links { source { rbId } target { rbId } type strength } } }"""
CONNECT = """mutation($source: ID!, $target: ID!, $type: LinkType!, $strength: Float!) {
  connectLessons(source: $source, target: $target, type: $type, strength: $strength) { type } }"""
SEARCH = """query($query: String!, $namespace: String) {
  searchLessons(query: $query, namespace: $namespace, limit: 20) { lesson { rbId } } }"""


def lesson(rb_id: int, text: str, context: str, **more: Any) -> dict[str, Any]:
    return {"rbId": str(rb_id), "keyLesson": text, "contextToPrefer": context, **more}


async def one(cairn: Service, rb_id: str) -> dict[str, Any]:
    return (await cairn.ask(LESSON, rbId=rb_id))["lesson"]  # type: ignore[no-any-return]


async def merges(cairn: Service, **asked: Any) -> list[dict[str, Any]]:
    page = (await cairn.ask(CONSOLIDATE, **asked))["consolidate"]
    assert not page["pageInfo"]["hasNextPage"]
    return page["nodes"]  # type: ignore[no-any-return]


def ids(lessons: list[dict[str, Any]]) -> list[str]:
    return sorted(found["rbId"] for found in lessons)


async def searched(cairn: Service, query: str, namespace: str) -> set[str]:
    found = (await cairn.ask(SEARCH, query=query, namespace=namespace))["searchLessons"]
    return {hit["lesson"]["rbId"] for hit in found}


CONTEXT = "Weekly sales are compared with stock."


async def test_a_merge_keeps_every_source_signal_and_link_and_can_be_undone(cairn: Service) -> None:
    """Proposed first, without a change; done, the parts are RETIRED and point to it; undone, they are as they were."""
    await cairn.remember(
        memories=[{"event": {"id": f"A{n}", "text": f"Event number {n}."}} for n in range(3)],
        lessons=[
            lesson(1, "Join sales and stock on the order date.", CONTEXT, namespace="n1", linkNodes=["A0"], tags=["x"]),
            lesson(2, "Sales and stock: join on the order date.", CONTEXT, namespace="n1", linkNodes=["A1", "A0"], tags=["y"]),
            lesson(3, "Join stock and sales on their order date.", CONTEXT, namespace="n1", linkNodes=["A2"]),
            lesson(4, "Ask who maintains the table.", "A table is new.", namespace="n1"),
            lesson(5, "Look at the last load.", "A table is old.", namespace="n1"),
        ],
    )  # fmt: skip
    for n in range(2):
        await cairn.ask(f'mutation {{ giveFeedback(rbId: "2", helpful: true, comment: "good {n}") {{ rbId }} }}')
    await cairn.ask('mutation { recordOutcome(rbIds: ["1", "2"], succeeded: true) { rbId } }')
    await cairn.ask(CONNECT, source="1", target="4", type="REQUIRES", strength=0.3)
    await cairn.ask(CONNECT, source="2", target="4", type="REQUIRES", strength=0.7)
    await cairn.ask(CONNECT, source="5", target="3", type="ENHANCES", strength=0.6)
    await cairn.ask(CONNECT, source="1", target="3", type="ENHANCES", strength=0.6)
    before = {rb_id: await one(cairn, rb_id) for rb_id in "123"}

    (proposed,) = await merges(cairn, namespace="n1")
    assert (ids(proposed["parts"]), proposed["keeps"]["rbId"], proposed["merged"]) == (["1", "2", "3"], "2", None)
    assert {rb_id: await one(cairn, rb_id) for rb_id in "123"} == before

    (done,) = await merges(cairn, namespace="n1", dryRun=False)
    merged = await one(cairn, done["merged"]["rbId"])
    assert merged["status"] == "ACTIVE" and merged["mergedFrom"] == ["1", "2", "3"]
    for field in ("title", "keyLesson", "contextToPrefer", "outcome", "namespace", "scope", "createdAt"):
        assert merged[field] == before["2"][field]
    assert sorted(merged["tags"]) == ["x", "y"]
    assert sorted(merged["linkNodes"]) == sorted(source["id"] for source in merged["sources"]) == ["A0", "A1", "A2"]
    said = sorted((signal["kind"], signal["comment"] or "") for signal in merged["signals"]["nodes"])
    assert said == [("HELPFUL", "good 0"), ("HELPFUL", "good 1"), ("SUCCEEDED", ""), ("SUCCEEDED", "")]
    assert merged["usageCount"] == 3 and merged["confidence"] >= before["2"]["confidence"]
    links = {
        (link["source"]["rbId"], link["type"], link["target"]["rbId"], link["strength"]) for link in merged["links"]
    }
    assert links == {(merged["rbId"], "REQUIRES", "4", 0.7), ("5", "ENHANCES", merged["rbId"], 0.6)}
    for rb_id in "123":
        part = await one(cairn, rb_id)
        assert (part["status"], part["mergedInto"]) == ("RETIRED", merged["rbId"])
        assert part["linkNodes"] == before[rb_id]["linkNodes"] and part["signals"] == before[rb_id]["signals"]
    assert await searched(cairn, "join sales and stock", "n1") == {merged["rbId"], "4", "5"}
    assert await merges(cairn, namespace="n1") == []
    assert (await cairn.settled())["ok"]

    parts = (await cairn.ask(UNDO, rbId=merged["rbId"]))["undoConsolidation"]
    assert [(part["rbId"], part["status"]) for part in parts] == [("1", "ACTIVE"), ("2", "ACTIVE"), ("3", "ACTIVE")]
    assert [part["updatedAt"] for part in parts] == [before[rb_id]["updatedAt"] for rb_id in "123"]
    for rb_id in "123":
        assert await one(cairn, rb_id) == before[rb_id]
    for rb_id in ("4", "5"):
        assert merged["rbId"] not in str((await one(cairn, rb_id))["links"])
    assert (await one(cairn, merged["rbId"]))["status"] == "RETIRED"
    assert await searched(cairn, "join sales and stock", "n1") == {"1", "2", "3", "4", "5"}
    assert await merges(cairn, namespace="n1", dryRun=False) == []  # somebody wants them apart
    assert (await cairn.settled())["ok"]
    with pytest.raises(Refused) as again:
        await cairn.ask(UNDO, rbId=merged["rbId"])
    assert (again.value.code, again.value.fields) == ("BAD_USER_INPUT", ["rbId"])


async def test_what_only_looks_alike_is_not_merged(cairn: Service) -> None:
    """Neither contradictions, nor another outcome, namespace, scope or context, nor what is linked as a conflict."""
    await cairn.remember(
        lessons=[
            lesson(11, "Always close the valve before the test.", "The boiler is tested.", namespace="n2"),
            lesson(12, "Never close the valve before the test.", "The boiler is tested.", namespace="n2"),
            lesson(13, "Set the boiler to 60 degrees.", "The boiler starts.", namespace="n2"),
            lesson(14, "Set the boiler to 80 degrees.", "The boiler starts.", namespace="n2"),
            lesson(15, "Drain the tank slowly.", "The tank is full.", namespace="n2"),
            lesson(16, "Drain the tank slowly.", "The tank is full.", namespace="n2", outcome="FAILURE"),
            lesson(17, "Drain the tank slowly.", "The tank is full.", namespace="n3"),
            lesson(18, "Drain the tank slowly.", "The tank is full.", namespace="n2", scope="TEAM"),
            lesson(19, "Drain the tank slowly.", "Winter has come to town.", namespace="n2"),
            lesson(20, "Oil the hinge.", "The hatch squeaks.", namespace="n2"),
            lesson(21, "Oil the hinge.", "The hatch squeaks.", namespace="n2"),
        ]
    )
    await cairn.ask(CONNECT, source="20", target="21", type="CONFLICTS", strength=0.5)
    assert await merges(cairn, namespace="n2", dryRun=False) == []
    await cairn.ask('mutation { disconnectLessons(source: "20", target: "21", type: CONFLICTS) { deleted } }')
    assert [ids(merge["parts"]) for merge in await merges(cairn, namespace="n2")] == [["20", "21"]]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Read orders from the replica, not the primary, for reports.", "Read orders from the primary, not the replica, for reports."),
        ("Check the totals of the invoices first, then send the file.", "Send the file first, then check the totals of the invoices."),
        ("Retry the payment call three times with a pause between.", "Retry the payment call five times with a pause between."),
        ("The pricing service returns all prices in euros.", "The pricing service returns all prices in dollars."),
        ("Send the weekly sales report to the finance team on Monday.", "Send the weekly sales report to the finance team on Friday."),
        ("Load the deliveries from orders_eu into the warehouse.", "Load the deliveries from orders_us into the warehouse."),
    ],
)  # fmt: skip
async def test_nearly_the_same_words_are_not_merged(cairn: Service, one: str, other: str) -> None:
    """Another word or number, or the same words the other way round, in the very same context."""
    said = [lesson(100 + n, text, CONTEXT, namespace="n15") for n, text in enumerate((one, other))]
    await cairn.remember(lessons=said)
    assert await merges(cairn, namespace="n15") == []


async def test_a_merge_of_merges_is_undone_from_the_outside(cairn: Service) -> None:
    """The inner one says which to undo first."""
    same = {"context": "A ladder is used.", "namespace": "n4"}
    await cairn.remember(lessons=[_ladder(n, **same) for n in (31, 32)])
    (inner,) = await merges(cairn, namespace="n4", dryRun=False)
    await cairn.remember(lessons=[_ladder(33, **same)])
    (outer,) = await merges(cairn, namespace="n4", dryRun=False)
    assert ids(outer["parts"]) == sorted(["33", inner["merged"]["rbId"]])
    with pytest.raises(Refused) as refused:
        await cairn.ask(UNDO, rbId=inner["merged"]["rbId"])
    assert refused.value.code == "CONFLICT" and outer["merged"]["rbId"] in str(refused.value)
    await cairn.ask(UNDO, rbId=outer["merged"]["rbId"])
    await cairn.ask(UNDO, rbId=inner["merged"]["rbId"])
    assert [(await one(cairn, rb_id))["status"] for rb_id in ("31", "32", "33")] == ["ACTIVE"] * 3
    with pytest.raises(Refused) as unknown:
        await cairn.ask(UNDO, rbId="999")
    assert unknown.value.code == "NOT_FOUND"


async def test_a_part_that_is_set_active_by_hand_stands_for_itself(cairn: Service) -> None:
    """It names no lesson that it became part of, nor does that one name it; what is said of it counts for it alone, it is
    not merged again, and undoing leaves it as it is."""
    await cairn.remember(lessons=[_ladder(rb_id, "A ladder is borrowed.", "n14") for rb_id in (91, 92)])
    (done,) = await merges(cairn, namespace="n14", dryRun=False)
    await cairn.ask("mutation { updateLesson(rbId: 91, patch: {status: ACTIVE}) { rbId } }")
    part = await one(cairn, "91")
    assert (part["status"], part["mergedInto"]) == ("ACTIVE", None)
    assert (await one(cairn, "92"))["mergedInto"] == done["merged"]["rbId"]
    assert (await one(cairn, done["merged"]["rbId"]))["mergedFrom"] == ["92"]
    await cairn.ask("mutation { giveFeedback(rbId: 91, helpful: true) { rbId } }")
    assert (await one(cairn, done["merged"]["rbId"]))["signals"]["nodes"] == []
    assert await merges(cairn, namespace="n14", dryRun=False) == []
    await cairn.ask(UNDO, rbId=done["merged"]["rbId"])
    assert [(part["status"], part["mergedInto"]) for part in [await one(cairn, "91"), await one(cairn, "92")]] == [("ACTIVE", None)] * 2  # fmt: skip


async def test_what_is_given_to_a_part_later_is_given_to_what_it_became(cairn: Service) -> None:
    """Links, sources and tags, over two merges; taken away again, they go there too, unless another part has them."""
    await cairn.remember(
        memories=[{"event": {"id": f"G{n}", "text": f"Gate number {n}."}} for n in range(3)],
        lessons=[
            *(_ladder(rb_id, "A ladder is new.", "n15") | {"tags": ["first"]} for rb_id in (111, 112)),
            lesson(114, "Ask the neighbour.", "Nobody is at home.", namespace="n15"),
        ],
    )
    (inner,) = await merges(cairn, namespace="n15", dryRun=False)
    await cairn.remember(lessons=[_ladder(113, "A ladder is new.", "n15")])
    (outer,) = await merges(cairn, namespace="n15", dryRun=False)
    wholes = [inner["merged"]["rbId"], outer["merged"]["rbId"]]

    async def has(rb_id: str) -> tuple[bool, bool, bool]:
        seen = await one(cairn, rb_id)
        return "114" in str(seen["links"]), "G1" in seen["linkNodes"], "late" in seen["tags"]

    for rb_id in ("111", "112"):
        await cairn.ask(CONNECT, source=rb_id, target="114", type="REQUIRES", strength=0.4)
        await cairn.ask('mutation($id: ID!) { linkLesson(rbId: $id, nodeIds: ["G1"]) { rbId } }', id=rb_id)
    await cairn.ask('mutation { updateLesson(rbId: 111, patch: {tags: ["first", "late"]}) { rbId } }')
    await cairn.remember(
        lessons=[_ladder(112, "A ladder is new.", "n15") | {"tags": ["late"], "linkNodes": ["G1", "G2"]}]
    )
    for whole in wholes:
        assert await has(whole) == (True, True, True)
        seen = await one(cairn, whole)
        assert seen["tags"] == ["first", "late"] and seen["linkNodes"] == ["G1", "G2"]
    for rb_id, there in (("111", True), ("112", False)):
        await cairn.ask(
            f'mutation {{ disconnectLessons(source: {rb_id}, target: "114", type: REQUIRES) {{ deleted }} }}'
        )
        await cairn.ask('mutation($id: ID!) { unlinkLesson(rbId: $id, nodeIds: ["G1"]) { rbId } }', id=rb_id)
        await cairn.ask(f'mutation {{ updateLesson(rbId: {rb_id}, patch: {{tags: ["first"]}}) {{ rbId }} }}')
        assert [await has(whole) for whole in wholes] == [(there, there, there)] * 2
    assert (await cairn.settled())["ok"]


async def test_a_link_that_is_made_while_its_lesson_is_merged(cairn: Service) -> None:
    """Whichever comes first, the merged lesson has it."""
    twins = [_ladder(rb_id, f"Ladder {rb_id // 2} is wet.", "n21") for rb_id in range(140, 148)]
    await cairn.remember(lessons=[*twins, lesson(139, "Wait.", "It rains.", namespace="n21")])
    ends = [{"source": str(rb_id), "target": "139"} for rb_id in range(140, 148, 2)]
    calls = [cairn.ask(CONNECT, **end, type="REQUIRES", strength=0.4) for end in ends]
    await asyncio.gather(merges(cairn, namespace="n21", dryRun=False), *calls)
    for end in ends:
        whole = (await one(cairn, end["source"]))["mergedInto"]
        assert whole and [link["target"]["rbId"] for link in (await one(cairn, whole))["links"]] == ["139"]


@pytest.mark.parametrize(
    "call",
    [
        'recordLesson(input: {rbId: 116, keyLesson: "Buy a new ladder.", contextToPrefer: "A ladder is red.", namespace: "n16"})',
        'updateLesson(rbId: 116, patch: {keyLesson: "Buy a new ladder."})',
        'updateLesson(rbId: 116, patch: {contextToPrefer: "A ladder is old."})',
        "promoteLesson(rbId: 116, scope: TEAM)",
    ],
)
async def test_a_part_says_what_it_said(cairn: Service, call: str) -> None:
    """Nobody would hear it: the refusal names the lesson to change. Set ACTIVE, it may be changed in the same call."""
    await cairn.remember(lessons=[_ladder(rb_id, "A ladder is red.", "n16") for rb_id in (116, 117)])
    for merge in await merges(cairn, namespace="n16", dryRun=False):
        assert ids(merge["parts"]) == ["116", "117"]
    before = await one(cairn, "116")
    with pytest.raises(Refused) as refused:
        await cairn.ask(f"mutation {{ {call} {{ rbId }} }}")
    assert refused.value.code == "CONFLICT" and f"lesson {before['mergedInto']}" in str(refused.value)
    assert await one(cairn, "116") == before


async def test_a_part_may_be_changed_as_it_is_taken_out(cairn: Service) -> None:
    """Set ACTIVE, it stands for itself, and says what it is told to say."""
    await cairn.remember(lessons=[_ladder(rb_id, "A ladder is blue.", "n17") for rb_id in (118, 119)])
    await merges(cairn, namespace="n17", dryRun=False)
    await cairn.ask('mutation { updateLesson(rbId: 118, patch: {status: ACTIVE, keyLesson: "Paint it."}) { rbId } }')
    part = await one(cairn, "118")
    assert (part["keyLesson"], part["status"], part["mergedInto"]) == ("Paint it.", "ACTIVE", None)


async def test_what_a_merged_lesson_was_given_goes_back_to_the_part_whose_text_it_showed(cairn: Service) -> None:
    """Signals, sources, links, and the outcomes of recalls; the other part is as it was."""
    await cairn.remember(
        memories=[{"event": {"id": "H1", "text": "A heron stood on the ladder."}}],
        lessons=[
            *(_ladder(rb_id, "A heron sits on it.", "n18") for rb_id in (121, 122)),
            lesson(123, "Wait.", "A bird is near.", namespace="n18"),
        ],
    )
    await cairn.ask("mutation { giveFeedback(rbId: 122, helpful: true) { rbId } }")
    before = await one(cairn, "121")
    (done,) = await merges(cairn, namespace="n18", dryRun=False)
    whole = done["merged"]["rbId"]
    assert done["keeps"]["rbId"] == "122"
    await cairn.ask(f'mutation {{ giveFeedback(rbId: {whole}, helpful: true, comment: "of the whole") {{ rbId }} }}')
    await cairn.ask(f'mutation {{ linkLesson(rbId: {whole}, nodeIds: ["H1"]) {{ rbId }} }}')
    await cairn.ask(CONNECT, source=whole, target="123", type="REQUIRES", strength=0.4)
    recall = (
        '{ recall(input: {query: "a heron sits on the ladder", namespace: "n18"}) { id lessons { lesson { rbId } } } }'
    )
    for used in (whole, "[]"):
        for _ in range(5):
            asked = (await cairn.ask(recall))["recall"]
            assert whole in [hit["lesson"]["rbId"] for hit in asked["lessons"]]
            tell = f'recordOutcome(rbIds: {used}, succeeded: true, recallId: "{asked["id"]}")'
            await cairn.ask(f"mutation {{ {tell} {{ rbId }} }}")
    told = (await cairn.ask(UNDO, rbId=whole))["undoConsolidation"]
    assert ids(told) == ["121", "122"]
    heir = await one(cairn, "122")
    assert [said["comment"] for said in heir["signals"]["nodes"]] == [None] * 5 + ["of the whole", None]
    assert heir["usageCount"] == 7 and heir["confidence"] == 1.0 and heir["linkNodes"] == ["H1"]
    assert heir["links"] == [
        {"source": {"rbId": "122"}, "target": {"rbId": "123"}, "type": "REQUIRES", "strength": 0.4}
    ]
    uplift = (await cairn.ask('{ lesson(rbId: "122") { uplift { callsWith callsWithout } } }'))["lesson"]["uplift"]
    assert uplift == {"callsWith": 5, "callsWithout": 5}
    assert await one(cairn, "121") == before
    assert (await one(cairn, "123"))["links"] == heir["links"]
    assert (await cairn.settled())["ok"]


async def test_the_history_of_a_merged_lesson_is_in_the_order_of_time(cairn: Service) -> None:
    """The text that it keeps is younger than the first thing that was said of another part."""
    await cairn.remember(lessons=[_ladder(128, "A crow sits on it.", "n22")])
    await cairn.ask("mutation { giveFeedback(rbId: 128, helpful: false) { rbId } }")
    await cairn.remember(lessons=[_ladder(129, "A crow sits on it.", "n22")])
    for _ in range(2):
        await cairn.ask("mutation { giveFeedback(rbId: 129, helpful: true) { rbId } }")
    (done,) = await merges(cairn, namespace="n22", dryRun=False)
    assert done["keeps"]["rbId"] == "129"
    query = "query($id: ID!) { lesson(rbId: $id) { confidenceHistory { time why } } }"
    history = (await cairn.ask(query, id=done["merged"]["rbId"]))["lesson"]["confidenceHistory"]
    assert len(history) == 4 and history[0]["why"].startswith("starts")
    assert [point["time"] for point in history] == sorted(point["time"] for point in history)


async def test_a_merge_whose_parts_are_gone_is_not_undone(cairn: Service) -> None:
    """What is left of them is the merged lesson: it stays."""
    await cairn.remember(lessons=[_ladder(rb_id, "A ladder is lost.", "n19") for rb_id in (124, 125)])
    (done,) = await merges(cairn, namespace="n19", dryRun=False)
    await cairn.ask('mutation { a: deleteLesson(rbId: "124") { deleted } b: deleteLesson(rbId: "125") { deleted } }')
    with pytest.raises(Refused) as refused:
        await cairn.ask(UNDO, rbId=done["merged"]["rbId"])
    assert refused.value.code == "CONFLICT"
    assert (await one(cairn, done["merged"]["rbId"]))["status"] == "ACTIVE"


async def test_a_piece_of_work_counts_once_for_a_merged_lesson(cairn: Service) -> None:
    """Both parts were offered in twelve recalls and named in six; a recall of before the merge whose outcome is told after
    it counts as well; an outcome that names a part and the whole is one."""
    await cairn.remember(lessons=[_ladder(rb_id, "An owl sits on it.", "n20") for rb_id in (126, 127)])
    recall = '{ recall(input: {query: "an owl sits on the ladder", namespace: "n20"}) { id } }'
    tell = """mutation($ids: [ID!]!, $recall: ID) { recordOutcome(rbIds: $ids, succeeded: true, recallId: $recall) {
      rbId confidence usageCount uplift { callsWith callsWithout } } }"""
    asked = [(await cairn.ask(recall))["recall"]["id"] for _ in range(16)]
    for place, id in enumerate(asked[:12]):
        await cairn.ask(tell, ids=["126", "127"] if place < 6 else [], recall=id)
    await cairn.cairn.offers.flush()
    (done,) = await merges(cairn, namespace="n20", dryRun=False)
    whole = done["merged"]["rbId"]
    query = "query($id: ID!) { lesson(rbId: $id) { usageCount offeredCount uplift { callsWith callsWithout } } }"

    async def counts() -> tuple[int, int, int]:
        seen = (await cairn.ask(query, id=whole))["lesson"]
        return seen["usageCount"], seen["uplift"]["callsWith"], seen["uplift"]["callsWithout"]

    assert await counts() == (6, 6, 6)
    assert (await cairn.ask(query, id=whole))["lesson"][
        "offeredCount"
    ] == 20  # twice only where nobody told the outcome
    await cairn.ask(tell, ids=["126"], recall=asked[12])
    assert await counts() == (7, 7, 6)
    await cairn.ask(tell, ids=[], recall=asked[13])
    assert await counts() == (7, 7, 7)
    await cairn.ask(tell, ids=[whole], recall=asked[14])
    assert await counts() == (8, 8, 7)
    told = (await cairn.ask(tell, ids=["127", whole]))["recordOutcome"]
    seen = (await cairn.ask("query($id: ID!) { lesson(rbId: $id) { rbId confidence usageCount uplift { callsWith callsWithout } } }", id=whole))["lesson"]  # fmt: skip
    assert seen == told[1] and seen["usageCount"] == 9


def _ladder(rb_id: int, context: str, namespace: str) -> dict[str, Any]:
    return lesson(rb_id, "Fix the ladder at its top.", context, namespace=namespace)


async def test_a_few_at_a_time(cairn: Service) -> None:
    """`first` merges a call; the cursor goes on from there."""
    texts = ["Sharpen the chisel on wet stone.", "Count the screws twice.", "Varnish the door outside."]
    await cairn.remember(
        lessons=[
            lesson(40 + 2 * place + twin, text, f"Job {place} begins.", namespace="n5")
            for place, text in enumerate(texts)
            for twin in (0, 1)
        ]
    )
    seen: list[list[str]] = []
    after = None
    while True:
        page = (await cairn.ask(CONSOLIDATE, namespace="n5", first=1, after=after))["consolidate"]
        seen += [ids(merge["parts"]) for merge in page["nodes"]]
        after = page["pageInfo"]["endCursor"]
        if not page["pageInfo"]["hasNextPage"]:
            break
    assert seen == [["40", "41"], ["42", "43"], ["44", "45"]]
    done = (await cairn.ask(CONSOLIDATE, namespace="n5", first=2, dryRun=False))["consolidate"]
    assert len(done["nodes"]) == 2 and done["pageInfo"]["hasNextPage"]
    rest = await merges(cairn, namespace="n5", dryRun=False, after=done["pageInfo"]["endCursor"])
    assert [ids(merge["parts"]) for merge in rest] == [["44", "45"]]


async def test_two_calls_at_once_merge_once(cairn: Service) -> None:
    """A part that another call has merged meanwhile is left alone."""
    await cairn.remember(
        lessons=[lesson(50 + n, "Paint the fence green.", "Spring is near.", namespace="n6") for n in range(4)]
    )
    calls = await asyncio.gather(*(merges(cairn, namespace="n6", dryRun=False) for _ in range(4)))
    assert sum(len(call) for call in calls) == 1
    active = '{ lessons(filter: {namespace: "n6", status: ACTIVE}) { nodes { mergedFrom } } }'
    assert (await cairn.ask(active))["lessons"]["nodes"] == [{"mergedFrom": ["50", "51", "52", "53"]}]


async def test_no_two_parts_of_a_merge_are_in_conflict(cairn: Service) -> None:
    """Also where the one that they both resemble stands on another page than they do."""
    fillers = [
        lesson(1001 + n, f"Call number {n} twice.", f"Number {n} is busy.", namespace="n8/x") for n in range(130)
    ]
    await cairn.remember(lessons=[_ladder(rb_id, "A ladder leans.", "n8") for rb_id in (1000, 2000, 2001)] + fillers)
    await cairn.ask(CONNECT, source="2001", target="2000", type="CONFLICTS", strength=0.5)
    (done,) = await merges(cairn, namespace="n8", dryRun=False)
    assert ids(done["parts"]) == ["1000", "2000"]
    assert await merges(cairn, namespace="n8") == []


async def test_what_is_to_stay_apart_does_not_come_together_by_another_merge(cairn: Service) -> None:
    """Whoever takes a merge back means it, whatever the parts become later."""
    await cairn.remember(lessons=[_ladder(rb_id, "A ladder wobbles.", "n9") for rb_id in (71, 72)])
    (done,) = await merges(cairn, namespace="n9", dryRun=False)
    await cairn.ask(UNDO, rbId=done["merged"]["rbId"])
    await cairn.remember(lessons=[_ladder(73, "A ladder wobbles.", "n9")])
    (other,) = await merges(cairn, namespace="n9", dryRun=False)
    assert ids(other["parts"]) == ["71", "73"]
    assert await merges(cairn, namespace="n9", dryRun=False) == []


async def test_links_between_the_parts_of_two_merges(cairn: Service) -> None:
    """They are made at once; what joined their parts joins them, and is there when one of them is undone."""
    await cairn.remember(
        lessons=[
            *(_ladder(rb_id, "A ladder is long.", "n12") for rb_id in (81, 82)),
            *(lesson(rb_id, "Ask for help.", "Something is heavy.", namespace="n12") for rb_id in (83, 84)),
        ]
    )
    await cairn.ask(CONNECT, source="81", target="83", type="REQUIRES", strength=0.4)
    done = await merges(cairn, namespace="n12", dryRun=False)
    assert [ids(merge["parts"]) for merge in done] == [["81", "82"], ["83", "84"]]
    first, second = (merge["merged"]["rbId"] for merge in done)

    async def linked(rb_id: str) -> set[tuple[str, str]]:
        return {(link["source"]["rbId"], link["target"]["rbId"]) for link in (await one(cairn, rb_id))["links"]}

    assert (first, second) in await linked(first) and (first, second) in await linked(second)
    await cairn.ask(UNDO, rbId=second)
    assert (first, "83") in await linked("83")


async def test_a_rejected_link_stays_rejected_for_what_a_lesson_became(cairn: Service) -> None:
    """The merged lesson has another id; what was said of its parts holds for it."""
    await cairn.remember(
        memories=[{"event": {"id": "B0", "text": "The ladder fell."}}],
        lessons=[
            lesson(74, "Nobody held it.", "It is in a hurry.", outcome="FAILURE", linkNodes=["B0"], namespace="n10"),
            *({**_ladder(rb_id, "A ladder is tall.", "n10"), "linkNodes": ["B0"]} for rb_id in (75, 76)),
        ],
    )
    suggest = "query($rbId: ID!) { suggestLessonLinks(rbId: $rbId) { nodes { type source { rbId } } } }"
    found = (await cairn.ask(suggest, rbId="76"))["suggestLessonLinks"]["nodes"]
    assert {"type": "CAUSES", "source": {"rbId": "74"}} in found
    await cairn.ask('mutation { rejectLessonLink(source: "74", target: "76", type: CAUSES) }')
    (done,) = await merges(cairn, namespace="n10", dryRun=False)
    assert (await cairn.ask(suggest, rbId=done["merged"]["rbId"]))["suggestLessonLinks"]["nodes"] == []


async def test_what_is_said_of_a_part_later_counts_for_what_it_became(cairn: Service) -> None:
    """An agent that was given the part before the merge tells afterwards how it went."""
    await cairn.remember(lessons=[_ladder(rb_id, "A ladder is wet.", "n11") for rb_id in (77, 78)])
    (inner,) = await merges(cairn, namespace="n11", dryRun=False)
    await cairn.remember(lessons=[_ladder(79, "A ladder is wet.", "n11")])
    (outer,) = await merges(cairn, namespace="n11", dryRun=False)
    await cairn.ask('mutation { giveFeedback(rbId: "77", helpful: true, comment: "held") { rbId } }')
    for rb_id in ("77", inner["merged"]["rbId"], outer["merged"]["rbId"]):
        assert (await one(cairn, rb_id))["signals"]["nodes"] == [{"kind": "HELPFUL", "comment": "held"}]
        assert (await one(cairn, rb_id))["usageCount"] == 1
    assert (await one(cairn, "79"))["signals"]["nodes"] == []
    await cairn.ask(f'mutation {{ deleteLesson(rbId: "{outer["merged"]["rbId"]}") {{ deleted }} }}')
    assert (await one(cairn, "79"))["mergedInto"] is None  # what it named is gone
    assert (await cairn.settled())["ok"]


# ---------------------------------------------------------------- sweeps


async def test_twins_are_found_however_many_are_nearer_elsewhere(cairn: Service) -> None:
    """Thirty other namespaces say the same in the same words: the two of one namespace are found all the same."""
    said = ("Count the cash twice.", "The till is closed at night.")
    others = [lesson(700 + n, *said, namespace=f"elsewhere{n}") for n in range(30)]
    await cairn.remember(lessons=[lesson(699, *said, namespace="till"), *others, lesson(730, *said, namespace="till")])
    (merge,) = await merges(cairn, namespace="till")
    assert ids(merge["parts"]) == ["699", "730"]


@pytest.fixture(scope="module")
async def ticking(settings: Settings, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Service]:
    """A service whose clock is set to every second."""
    changed = {"port": free_port(), "data": tmp_path_factory.mktemp("data"), "tenant": f"{settings.tenant}-clock"}
    async with serving(settings.model_copy(update={**changed, "sweep_hours": 1 / 3600})) as service:
        yield service


async def _sweep(cairn: Service, kind: str) -> dict[str, Any] | None:
    sweeps = (await cairn.ask("{ sweeps { kind state examined found total startedAt finishedAt error } }"))["sweeps"]
    return next((sweep for sweep in sweeps if sweep["kind"] == kind), None)


async def _until(found: Any) -> Any:
    for _ in range(600):
        if (answer := await found()) is not None:
            return answer
        await asyncio.sleep(0.05)
    raise AssertionError("it does not come")


async def test_a_sweep_merges_everything_and_tells_how_far_it_is(cairn: Service) -> None:
    """It begins at once, runs behind the answer, and its state is there afterwards; one of a kind at a time."""
    await cairn.remember(lessons=[lesson(60 + n, "Fold the map.", "The trip ends.", namespace="n7") for n in range(3)])
    began = (await cairn.ask("mutation { startSweep(kind: CONSOLIDATE) { kind state examined } }"))["startSweep"]
    assert began == {"kind": "CONSOLIDATE", "state": "RUNNING", "examined": 0}

    async def over() -> dict[str, Any] | None:
        sweep = await _sweep(cairn, "CONSOLIDATE")
        return sweep if sweep and sweep["state"] != "RUNNING" else None

    done = await _until(over)
    assert (done["state"], done["error"]) == ("DONE", None)
    assert done["found"] >= 1 and done["examined"] >= 3 and done["total"] >= done["examined"]
    assert (await one(cairn, "60"))["mergedInto"] == (await one(cairn, "62"))["mergedInto"] is not None


async def test_the_clock_starts_sweeps_by_itself(ticking: Service, cairn: Service) -> None:
    """Where a time is set, every kind of sweep runs again and again; where none is, never."""
    await ticking.remember(lessons=[lesson(n, "Knot the rope.", "Wind comes up.") for n in (901, 902)])

    async def merged() -> str | None:
        return (await one(ticking, "901"))["mergedInto"]  # type: ignore[no-any-return]

    assert await _until(merged)
    first = await _sweep(ticking, "CONSOLIDATE")

    async def again() -> bool | None:
        now = await _sweep(ticking, "CONSOLIDATE")
        others = [await _sweep(ticking, kind) for kind in ("SUGGEST", "PRUNE")]
        return True if all(others) and now and first and now["startedAt"] > first["startedAt"] else None

    assert await _until(again)
    assert await _sweep(cairn, "SUGGEST") is None

"""The bank learns: signals, the confidence that follows from them, and what a client sees of both."""

import asyncio
from typing import Any

import pytest

from tests.service import Refused, Service

LESSON = """lesson(rbId: $id) { confidence startConfidence usageCount lastUsedAt version updatedAt
  signals(first: 100) { nodes { id kind comment convId source namespace createdTime } }
  confidenceHistory { time value why } }"""


async def record(cairn: Service, rb_id: int, **more: Any) -> str:
    lesson = {"rbId": str(rb_id), "keyLesson": f"Lesson {rb_id}.", "contextToPrefer": f"Context {rb_id}.", **more}
    await cairn.remember(lessons=[lesson])
    return str(rb_id)


async def seen(cairn: Service, rb_id: str) -> dict[str, Any]:
    return (await cairn.ask(f"query($id: ID!) {{ {LESSON} }}", id=rb_id))["lesson"]  # type: ignore[no-any-return]


async def feedback(cairn: Service, rb_id: str, helpful: bool, **more: Any) -> dict[str, Any]:
    data = await cairn.ask(
        """mutation($id: ID!, $helpful: Boolean!, $comment: String, $source: String) {
          giveFeedback(rbId: $id, helpful: $helpful, comment: $comment, source: $source) {
            rbId confidence usageCount lastUsedAt version } }""",
        **{"id": rb_id, "helpful": helpful, **more},
    )
    return data["giveFeedback"]  # type: ignore[no-any-return]


async def outcome(cairn: Service, rb_ids: list[str], succeeded: bool, **more: Any) -> list[dict[str, Any]]:
    data = await cairn.ask(
        """mutation($ids: [ID!]!, $succeeded: Boolean!, $conv: String, $source: String, $namespace: String) {
          recordOutcome(rbIds: $ids, succeeded: $succeeded, convId: $conv, source: $source, namespace: $namespace) {
            rbId confidence usageCount } }""",
        **{"ids": rb_ids, "succeeded": succeeded, **more},
    )
    return data["recordOutcome"]  # type: ignore[no-any-return]


async def test_feedback_is_kept_and_moves_the_confidence(cairn: Service) -> None:
    """The first waits for a second that agrees; both are there with who, when and what, newest first."""
    rb_id = await record(cairn, 100)
    first = await feedback(cairn, rb_id, False, comment="It sent me the wrong way.", source="ana")
    assert (first["confidence"], first["usageCount"], first["version"]) == (0.8, 1, 1)
    second = await feedback(cairn, rb_id, False, source="ben")
    assert (second["confidence"], second["usageCount"]) == (0.4, 2)
    lesson = await seen(cairn, rb_id)
    assert [(one["kind"], one["source"], one["comment"]) for one in lesson["signals"]["nodes"]] == [
        ("NOT_HELPFUL", "ben", None),
        ("NOT_HELPFUL", "ana", "It sent me the wrong way."),
    ]
    assert lesson["confidence"] == 0.4 and lesson["startConfidence"] == 0.8
    assert lesson["lastUsedAt"] == lesson["signals"]["nodes"][0]["createdTime"] == second["lastUsedAt"]
    assert [point["value"] for point in lesson["confidenceHistory"]] == [0.8, 0.8, 0.4]
    assert "waits" in lesson["confidenceHistory"][1]["why"]


async def test_an_outcome_tells_several_lessons_or_none(cairn: Service) -> None:
    """Each gets its signal with the conversation; an unknown lesson among them is NOT_FOUND and nothing is stored."""
    ids = [await record(cairn, rb_id) for rb_id in (110, 111, 112)]
    told = await outcome(cairn, ids[::-1], True, conv="c7", namespace="marketing/q4")
    assert [one["rbId"] for one in told] == ids[::-1] and {one["usageCount"] for one in told} == {1}
    for rb_id in ids:
        (signal,) = (await seen(cairn, rb_id))["signals"]["nodes"]
        assert (signal["kind"], signal["convId"], signal["namespace"]) == ("SUCCEEDED", "c7", "marketing/q4")
    with pytest.raises(Refused) as refused:
        await outcome(cairn, [ids[0], "999111", "999112"], False)
    assert refused.value.code == "NOT_FOUND" and "999111, 999112" in str(refused.value)
    assert (await seen(cairn, ids[0]))["usageCount"] == 1


async def test_stability_is_no_use(cairn: Service) -> None:
    """It moves the confidence; usageCount and lastUsedAt stay."""
    rb_id = await record(cairn, 120)
    for _ in range(2):
        await cairn.ask("mutation($id: ID!) { recordStability(rbId: $id, reverted: true) { rbId } }", id=rb_id)
    lesson = await seen(cairn, rb_id)
    assert (lesson["confidence"], lesson["usageCount"], lesson["lastUsedAt"]) == (0.5, 0, None)


@pytest.mark.parametrize(
    ("call", "code"),
    [
        ('giveFeedback(rbId: "999", helpful: true) { rbId }', "NOT_FOUND"),
        ('recordStability(rbId: "999", reverted: true) { rbId }', "NOT_FOUND"),
        ('recordOutcome(rbIds: ["999"], succeeded: true) { rbId }', "NOT_FOUND"),
        ('giveFeedback(rbId: "x", helpful: true) { rbId }', "BAD_USER_INPUT"),
        ('giveFeedback(rbId: "130", helpful: true, comment: "a\\u0000b") { rbId }', "BAD_USER_INPUT"),
        ('giveFeedback(rbId: "130", helpful: true, source: " ") { rbId }', "BAD_USER_INPUT"),
        ('recordOutcome(rbIds: [], succeeded: true) { rbId }', "BAD_USER_INPUT"),
        ('recordOutcome(rbIds: ["130", "-1"], succeeded: true) { rbId }', "BAD_USER_INPUT"),
        ('recordOutcome(rbIds: ["130"], succeeded: true, namespace: "a//b") { rbId }', "BAD_USER_INPUT"),
    ],
)  # fmt: skip
async def test_what_is_refused_stores_nothing(cairn: Service, call: str, code: str) -> None:
    """An unknown lesson is NOT_FOUND, a bad argument BAD_USER_INPUT."""
    rb_id = await record(cairn, 130)
    with pytest.raises(Refused) as refused:
        await cairn.ask(f"mutation {{ {call} }}")
    assert refused.value.code == code and refused.value.fields
    assert (await seen(cairn, rb_id))["signals"]["nodes"] == []


async def test_32_signals_at_the_same_moment_are_all_counted(cairn: Service) -> None:
    """On one lesson, and on two that are named in either order."""
    one, other = await record(cairn, 140), await record(cairn, 141)
    calls = [outcome(cairn, [one, other] if n % 2 else [other, one], n % 4 != 0) for n in range(16)]
    await asyncio.gather(*calls, *(feedback(cairn, one, False, comment=str(n)) for n in range(16)))
    lesson = await seen(cairn, one)
    assert lesson["usageCount"] == len(lesson["signals"]["nodes"]) == 32
    assert {node["comment"] for node in lesson["signals"]["nodes"]} == {None, *map(str, range(16))}
    assert (await seen(cairn, other))["usageCount"] == 16
    assert lesson["confidenceHistory"][-1]["value"] == lesson["confidence"]


async def test_signals_come_in_pages(cairn: Service) -> None:
    """Newest first, none twice, none missing."""
    rb_id = await record(cairn, 150)
    for n in range(7):
        await feedback(cairn, rb_id, True, comment=str(n))
    query = """query($id: ID!, $after: String) { lesson(rbId: $id) { signals(first: 3, after: $after) {
      nodes { comment } pageInfo { hasNextPage endCursor } } } }"""
    comments, after, pages = [], None, 0
    while True:
        page = (await cairn.ask(query, id=rb_id, after=after))["lesson"]["signals"]
        comments += [node["comment"] for node in page["nodes"]]
        after, pages = page["pageInfo"]["endCursor"], pages + 1
        if not page["pageInfo"]["hasNextPage"]:
            break
    assert (comments, pages) == (list("6543210"), 3)


async def test_a_flood_from_one_source_moves_a_lesson_only_so_far(cairn: Service) -> None:
    """CAIRN_MOST_FROM_ONE_SOURCE is 0.3: twenty times the same source, and no further; every signal is kept."""
    rb_id = await record(cairn, 160)
    for _ in range(20):
        last = await feedback(cairn, rb_id, False, source="troll")
    assert 0.5 <= last["confidence"] < 0.8 and last["usageCount"] == 20
    assert "one source" in (await seen(cairn, rb_id))["confidenceHistory"][-1]["why"]
    for name in ("ana", "ben", "eva"):
        last = await feedback(cairn, rb_id, False, source=name)
    assert last["confidence"] == pytest.approx(0.0, abs=0.01)


async def test_time_without_use_counts_without_any_job(cairn: Service) -> None:
    """What is shown, what minConfidence admits and what search ranks by fall together as months pass."""
    rb_id = await record(cairn, 170, keyLesson="Zebras migrate in March.", contextToPrefer="Migration of zebras.")
    await cairn.cairn.graph.define(
        f"MATCH (l:Lesson {{tenant: '{cairn.cairn.graph.tenant}', rb_id: 170}}) SET l.idle_since = l.idle_since - 95 * 86400"
    )
    assert (await seen(cairn, rb_id))["confidence"] == 0.65
    for least, there in ((0.65, True), (0.66, False)):
        listed = await cairn.ask(
            "query($m: Float!) { lessons(filter: {minConfidence: $m}, first: 100) { nodes { rbId confidence } } }",
            m=least,
        )
        found = await cairn.ask(
            'query($m: Float!) { searchLessons(query: "zebras", minConfidence: $m) { reliability lesson { rbId confidence } } }',
            m=least,
        )
        recalled = await cairn.ask(
            'query($m: Float!) { recall(input: {query: "zebras", minConfidence: $m}) { lessons { reliability lesson { rbId } } } }',
            m=least,
        )
        assert (rb_id in [one["rbId"] for one in listed["lessons"]["nodes"]]) == there
        hits = {
            hit["lesson"]["rbId"]: hit["reliability"] for hit in found["searchLessons"] + recalled["recall"]["lessons"]
        }
        assert hits.get(rb_id) == (0.65 if there else None)


async def test_deleting_a_lesson_takes_what_was_said_of_it(cairn: Service) -> None:
    """A new lesson under the same id starts from nothing."""
    rb_id = await record(cairn, 180)
    await feedback(cairn, rb_id, True)
    assert (await cairn.ask('mutation { deleteLesson(rbId: "180") { deleted } }'))["deleteLesson"]["deleted"]
    await record(cairn, 180)
    lesson = await seen(cairn, rb_id)
    assert (lesson["confidence"], lesson["usageCount"], lesson["signals"]["nodes"]) == (0.8, 0, [])

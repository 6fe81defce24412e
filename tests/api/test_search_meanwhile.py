"""What is there before and after is found meanwhile: while records are changed, and when they were deleted and made anew."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.service import Service

RECALL = "query($query: String!, $conv: String!, $ns: String) { recall(input: {query: $query, filter: {convId: $conv}, namespace: $ns}) { memories { memory { id } } lessons { lesson { rbId } } degraded } }"
SEARCH = "query($query: String!, $conv: String!) { searchMemories(query: $query, filter: {convId: $conv}) { memory { id } } }"
LEARNT = "query($query: String!, $ns: String!) { searchLessons(query: $query, namespace: $ns) { lesson { rbId } } }"
UPDATE = "mutation($id: ID!, $tags: [String!]!) { updateMemory(id: $id, patch: {tags: $tags}) { id } }"
REVISE = "mutation($id: ID!, $tags: [String!]!) { updateLesson(rbId: $id, patch: {tags: $tags}) { rbId } }"


async def _recalled(cairn: Service, query: str, conv: str, ns: str | None = None) -> tuple[set[str], set[str]]:
    found = (await cairn.ask(RECALL, query=query, conv=conv, ns=ns))["recall"]
    return {one["memory"]["id"] for one in found["memories"]}, {one["lesson"]["rbId"] for one in found["lessons"]}


async def test_deleted_and_written_again_it_stays_found(cairn: Service) -> None:
    """The row of what was deleted is removed behind the answer's back; the row of its new self is not, not even for a moment."""
    for _ in range(8):
        await cairn.remember(
            "cc",
            memories=[{"dataSource": {"id": "Y1", "text": "a plain small thing"}}, {"dataSource": {"id": "Y2", "text": "wholly other stuff"}}],
            lessons=[{"rbId": "5501", "keyLesson": "Keep small things.", "contextToPrefer": "A small thing.", "namespace": "cc"}],
        )  # fmt: skip
        for _ in range(5):
            assert await _recalled(cairn, "small thing", "cc", "cc") == ({"Y1", "Y2"}, {"5501"})
            found = (await cairn.ask(SEARCH, query="small thing", conv="cc"))["searchMemories"]
            assert {one["memory"]["id"] for one in found} == {"Y1", "Y2"}
        await cairn.ask('mutation { one: deleteMemory(id: "Y1") { deleted } two: deleteMemory(id: "Y2") { deleted } deleteLesson(rbId: "5501") { deleted } }')  # fmt: skip
    report = await cairn.settled()
    assert report["ok"], report


@pytest.mark.parametrize("asked", ["search", "recall"])
async def test_a_memory_is_found_while_it_is_changed(cairn: Service, asked: str) -> None:
    """Its tags change all the time, and in every answer it is there."""
    conv = f"u-{asked}"
    one, other = f"{conv}-1", f"{conv}-2"
    await cairn.remember(conv, memories=[{"event": {"id": one, "text": "The purple heron wades."}}, {"event": {"id": other, "text": "A heron sleeps."}}])  # fmt: skip
    answers: list[set[str]] = []

    async def ask() -> set[str]:
        if asked == "recall":
            return (await _recalled(cairn, "purple heron", conv))[0]
        found = (await cairn.ask(SEARCH, query="purple heron", conv=conv))["searchMemories"]
        return {hit["memory"]["id"] for hit in found}

    for number in range(15):
        update = asyncio.create_task(cairn.ask(UPDATE, id=one, tags=[f"t{number}"]))
        while not update.done():
            answers.append(await ask())
        await update
    assert len(answers) >= 15 and all(found == {one, other} for found in answers), answers


async def test_a_lesson_is_found_while_it_is_changed(cairn: Service) -> None:
    lesson: dict[str, Any] = {"rbId": "5601", "keyLesson": "Count the herons.", "contextToPrefer": "Herons at a lake.", "namespace": "herons"}  # fmt: skip
    await cairn.remember("lake", lessons=[lesson])
    answers: list[list[str]] = []
    for number in range(15):
        update = asyncio.create_task(cairn.ask(REVISE, id="5601", tags=[f"t{number}"]))
        while not update.done():
            found = (await cairn.ask(LEARNT, query="herons at the lake", ns="herons"))["searchLessons"]
            answers.append([hit["lesson"]["rbId"] for hit in found])
        await update
    assert len(answers) >= 15 and all(found == ["5601"] for found in answers), answers


def _behind(event: asyncio.Event, call: Callable[..., Awaitable[None]]) -> Callable[..., Awaitable[None]]:
    async def late(*given: Any) -> None:
        await event.wait()
        await call(*given)

    return late


async def test_what_was_written_twice_at_once_is_found_behind_either_answer(
    cairn: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second of two like writes changes nothing, and is answered when the first one's records can be found: also under
    a key, and where it would change a record into what it has just become."""
    vectors = cairn.cairn.vectors
    lesson: dict[str, Any] = {"rbId": "5701", "keyLesson": "Watch egrets.", "contextToPrefer": "Egrets.", "namespace": "egrets"}  # fmt: skip
    wanted = {"memories": [{"event": {"id": "EG", "text": "Egrets nest."}}], "lessons": [lesson]}
    for change in ({"idempotencyKey": "egrets"}, {}, {}):
        for written in (lesson, wanted["memories"][0]["event"]):
            written["tags"] = [*written.get("tags", []), f"t{len(written.get('tags', []))}"]
        going_on = asyncio.Event()
        with monkeypatch.context() as slow:
            for name in ("insert", "upsert"):
                slow.setattr(vectors, name, _behind(going_on, getattr(vectors, name)))
            first = asyncio.create_task(cairn.remember("egrets", **wanted, **change))
            ask = '{ memory(id: "EG") { tags } }'
            while (found := (await cairn.ask(ask))["memory"]) is None or len(found["tags"]) < len(lesson["tags"]):
                await asyncio.sleep(0.01)
            more = [
                cairn.remember("egrets", **wanted, **change),
                cairn.ask(UPDATE, id="EG", tags=lesson["tags"]),
                cairn.ask(REVISE, id="5701", tags=lesson["tags"]),
            ]
            others = [asyncio.create_task(one) for one in more]
            await asyncio.sleep(0.3)
            early = [one.done() for one in (first, *others)]
            going_on.set()
            answers = await asyncio.gather(first, *others)
        assert early == [False] * 4 and answers[1]["unchanged"] == (0 if change else 2)
        found = (await cairn.ask(LEARNT, query="egrets", ns="egrets"))["searchLessons"]
        assert [hit["lesson"]["rbId"] for hit in found] == ["5701"]


async def test_a_session_handed_in_twice_at_once_is_found_behind_either_answer(
    cairn: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second call under its key is answered when what the first one stored can be found."""
    submit = """mutation { submitSession(input: {convId: "stilts", request: "Where do stilts breed?", outcome: SUCCESS,
      steps: [{action: "Looked at salt pans."}], answer: "In salt pans.", idempotencyKey: "stilts"}) { id } }"""
    monkeypatch.setattr("bank.sync.FEW", 0)  # nothing is acknowledged ahead of the index
    vectors, going_on = cairn.cairn.vectors, asyncio.Event()
    with monkeypatch.context() as slow:
        for name in ("insert", "upsert"):
            slow.setattr(vectors, name, _behind(going_on, getattr(vectors, name)))
        first = asyncio.create_task(cairn.ask(submit))
        while not (await cairn.ask('{ conversation(convId: "stilts") { memories { id } } }'))["conversation"][
            "memories"
        ]:
            await asyncio.sleep(0.01)
        second = asyncio.create_task(cairn.ask(submit))
        await asyncio.sleep(0.3)
        early = [first.done(), second.done()]
        going_on.set()
        answers = await asyncio.gather(first, second)
    assert early == [False, False] and answers[0] == answers[1]

"""The words of what was written are read ahead, when it is quiet; who asks before that, or after a change, gets the same."""

import asyncio
from typing import Any

import pytest

from bank import reading
from bank.reading import ReadAhead
from bank.words import WordCache, words_of
from graph.model import Memory, MemoryDraft, MemoryType, memory_from_row
from tests.service import Service

RECALL = "query($q: String!) { recall(input: {query: $q}) { memories { score why memory { id text } } } }"


async def _recall(cairn: Service, question: str) -> Any:
    return (await cairn.ask(RECALL, q=question))["recall"]["memories"]


async def _until_read(ahead: ReadAhead) -> None:
    for _ in range(200):
        if not ahead._waiting:
            return
        await asyncio.sleep(0.05)
    raise AssertionError("nothing was read")


def _texts_read(cairn: Service, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The memories whose texts recall asks the graph for, from now on."""
    asked: list[str] = []
    read = cairn.cairn.graph.read

    async def noted(name: str, /, **parameters: Any) -> Any:
        rows = await read(name, **parameters)
        if name == "recall_memories":
            asked.extend(id for id, *_, text in rows if text is not None)  # type: ignore[misc]
        return rows

    monkeypatch.setattr(cairn.cairn.graph, "read", noted)
    return asked


async def test_the_first_question_reads_no_text(cairn: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was written a moment ago is at hand; the answer is that of a service which has to read it."""
    texts = {"R1": "The quarry of Hebra was flooded.", "R2": "Pumps stood still in Hebra."}
    await cairn.remember(memories=[{"event": {"id": id, "text": text}} for id, text in texts.items()])
    await cairn.settled()
    await _until_read(cairn.cairn.reading)
    asked = _texts_read(cairn, monkeypatch)
    first = await _recall(cairn, "What happened in the quarry of Hebra?")
    assert {one["memory"]["id"] for one in first} >= texts.keys()
    assert not set(asked) & texts.keys()
    monkeypatch.setattr(cairn.cairn.recall._looking, "words", WordCache())
    assert await _recall(cairn, "What happened in the quarry of Hebra?") == first
    assert set(asked) >= texts.keys()


async def test_a_text_that_changes_is_asked_for_as_it_is(cairn: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever has been read ahead of it, and whatever still waits to be read."""
    monkeypatch.setattr(reading, "QUIET_SECONDS", 0.01)
    for text in ("The mill of Odrun grinds rye.", "The mill of Odrun was sold.", "The mill of Odrun burnt down."):
        await cairn.remember(memories=[{"event": {"id": "MILL", "text": text}}])
        found = {one["memory"]["id"]: one["memory"]["text"] for one in await _recall(cairn, "mill of Odrun")}
        assert found["MILL"] == text
    await _until_read(cairn.cairn.reading)
    found = {one["memory"]["id"]: one["memory"]["text"] for one in await _recall(cairn, "the mill of Odrun")}
    assert found["MILL"] == "The mill of Odrun burnt down."


async def test_what_waits_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of more than there is room for the last written are read; very long texts are left to whoever asks for them."""
    monkeypatch.setattr(reading, "MOST_CHARACTERS", 50)
    monkeypatch.setattr(reading, "LONGEST_TEXT", 20)
    monkeypatch.setattr(reading, "QUIET_SECONDS", 0.01)
    words = WordCache()
    ahead = ReadAhead(words)
    texts = [f"Number {n} is here." for n in range(9)] + ["A text that is far too long for this."]
    drafts = [MemoryDraft(type=MemoryType.Event, id=str(n), conv_id="c", text=text) for n, text in enumerate(texts)]
    ahead.expect([_stored(draft) for draft in drafts])
    await _until_read(ahead)
    await ahead.stop()
    known = words.known({str(n): (1, 1) for n in range(10)})
    assert known == {str(n): words_of(texts[n]) for n in (7, 8)}


def _stored(draft: MemoryDraft) -> Memory:
    moment = "2025-01-01T00:00:00Z"
    return memory_from_row(
        {
            "type": draft.type.value,
            "properties": {"id": draft.id, "conv_id": draft.conv_id, "text": draft.text, "revision": 1, "ingestion_time": moment},
        }
    )  # fmt: skip

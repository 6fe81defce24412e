"""The service warms up behind its start: what the first calls run has been run before, and nothing is left of it."""

from typing import Any

import pytest

from bank.model import RecallQuery
from bank.remember import RememberCall, Remembered
from bank.warmup import warm_up
from graph.model import MemoryDraft, MemoryType
from graph.session import Graph, Transaction
from tests.milvus import put_away
from tests.service import Service


async def _everything(cairn: Service) -> tuple[Any, ...]:
    """All that both stores hold, by number, and what is remembered of offers."""
    graph, vectors = cairn.cairn.graph, cairn.cairn.vectors
    await cairn.cairn.offers.flush()
    async with graph._driver.session() as session:
        result = await session.run(
            "MATCH (n) WITH count(n) AS nodes, sum(n.offered_count) AS offers MATCH ()-[r]->() RETURN nodes, offers, count(r)"
        )
        counts = (await result.single(strict=True)).values()
    return (*counts, await vectors.count("graphembeddings"), await vectors.count("reasoningbank"))


async def _warm_up(cairn: Service, asking: bool = True) -> None:
    await warm_up(cairn.cairn.graph, cairn.cairn.remember, cairn.cairn.recall, cairn.cairn.reading, 0.0, asking)


async def test_what_the_first_calls_run_has_been_run(cairn: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every statement of a write and of a recall on an empty store; so Neo4j has a plan of it."""
    ran: list[str] = []
    alone, within = Graph._alone, Transaction.run

    async def _alone(self: Graph, name: str, *given: Any) -> Any:
        ran.append(name)
        return await alone(self, name, *given)

    async def run(self: Transaction, name: str, /, **given: Any) -> Any:
        ran.append(name)
        return await within(self, name, **given)

    monkeypatch.setattr(Graph, "_alone", _alone)
    monkeypatch.setattr(Transaction, "run", run)
    await _warm_up(cairn)
    warm = set(ran)
    ran.clear()
    await cairn.ask(
        "mutation($input: RememberInput!) { remember(input: $input) { created } }",
        input={
            "convId": "c1",
            "memories": [{"event": {"id": id, "text": f"Harbour {id} was closed."}} for id in ("W1", "W2")],
            "edges": [{"source": "W1", "target": "W2", "weight": 0.5, "text": "The same strike."}],
            "lessons": [
                {"keyLesson": "Ask the unions.", "contextToPrefer": "A harbour is closed.", "linkNodes": ["W2"]}
            ],
        },
    )
    await cairn.cairn.recall.answered(RecallQuery(query="Which harbour was closed?"))
    # What the service does by itself meanwhile nobody waits for.
    behind = {"clear_memory_marks", "clear_lesson_marks", "pending_memories", "pending_lessons", "pending_removals", "due_sessions"}  # fmt: skip
    assert {"lock_memories", "put_edges", "put_lessons", "recall_edges", "memories_and_edges"} <= set(ran)
    assert set(ran) - warm - behind == set()


async def test_nothing_is_left_of_it(cairn: Service) -> None:
    """No record, no row, no mark, no receipt, no offer; and nobody sees it meanwhile."""
    await cairn.settled()
    before = await _everything(cairn)
    await _warm_up(cairn)
    assert await _everything(cairn) == before
    assert (await cairn.settled())["ok"]
    found = await cairn.ask('{ searchMemories(query: "rehearsal") { memory { text } } }')
    assert all("ehears" not in hit["memory"]["text"] for hit in found["searchMemories"])


async def test_it_goes_on_for_as_long_as_it_should(cairn: Service) -> None:
    """Java compiles what it has run often; once is not often."""
    graph = cairn.cairn.graph

    async def round_trips(seconds: float) -> int:
        before = graph.round_trips
        await warm_up(graph, cairn.cairn.remember, cairn.cairn.recall, cairn.cairn.reading, seconds, asking=False)
        return graph.round_trips - before

    assert await round_trips(0.0) * 2 <= await round_trips(2.0)
    assert (await cairn.settled())["ok"]


async def test_a_single_memory_is_rehearsed_too(cairn: Service) -> None:
    """Which a real write stores in a shorter way."""
    seen: list[str] = []

    async def then(tx: Transaction, written: Remembered) -> None:
        seen.extend(row["properties"]["id"] for row in await tx.run("memories_by_id", ids=["REHEARSED"]))

    draft = MemoryDraft(type=MemoryType.Event, id="REHEARSED", conv_id="c1", text="Not to be kept.")
    await cairn.cairn.remember.rehearse(RememberCall(memories=(draft,)), then)
    assert seen == ["REHEARSED"]
    assert (await cairn.ask('{ memory(id: "REHEARSED") { id } }'))["memory"] is None


async def test_an_embedder_that_costs_money_is_not_asked(cairn: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody has asked for these vectors."""
    asked: list[Any] = []
    encode = cairn.cairn.embedder._model.encode

    def paid(texts: Any, query: bool) -> Any:
        asked.extend(texts)
        return encode(texts, query)

    monkeypatch.setattr(cairn.cairn.embedder._model, "encode", paid)
    await _warm_up(cairn, asking=False)
    assert asked == []


async def test_a_store_that_is_away_does_not_matter(
    cairn: Service, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It warms up what is there."""
    caplog.set_level("DEBUG", "cairn.warmup")
    with monkeypatch.context() as away:
        put_away(cairn.cairn.vectors, away)
        await _warm_up(cairn)
    assert "not warmed up" not in caplog.text

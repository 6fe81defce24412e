"""Receipts are written behind the answer's back, and none is lost while the graph cannot take them."""

import asyncio
from typing import Any, cast

import pytest

import bank.offers
from bank.offers import Offers
from graph.errors import Unavailable
from graph.session import Graph


class Sulking:
    """A graph that fails with each of these, one after the other, and then stores."""

    def __init__(self, *troubles: Exception) -> None:
        self._troubles = list(troubles)
        self.kept: list[str] = []

    async def write(self, work: Any) -> None:
        if self._troubles:
            raise self._troubles.pop(0)
        await work(self)

    async def run(self, name: str, /, **parameters: Any) -> None:
        if name == "keep_receipts":
            self.kept += [row["id"] for row in parameters["rows"]]


async def test_receipts_wait_whatever_went_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neo4j is away, then something nobody thought of happens: they are written as soon as it goes, in their order."""
    monkeypatch.setattr(bank.offers, "FLUSH_SECONDS", 0.01)
    graph = Sulking(Unavailable("away"), ValueError("unheard of"))
    offers = Offers(cast(Graph, graph))
    offers.recalled("R1", None, [], [])
    offers.recalled("R2", None, [], [])
    async with asyncio.timeout(5):
        while not graph.kept:
            await asyncio.sleep(0.01)
    assert graph.kept == ["R1", "R2"]
    await offers.stop()
    assert graph.kept == ["R1", "R2"]


async def test_of_too_many_receipts_the_oldest_go(monkeypatch: pytest.MonkeyPatch) -> None:
    """While the graph is away, three come in and there is room for two: the last two are kept."""
    monkeypatch.setattr(bank.offers, "MOST_HELD", 2)
    graph = Sulking(Unavailable("away"))
    offers = Offers(cast(Graph, graph))
    offers.recalled("R1", None, [], [])
    offers.recalled("R2", None, [], [])
    writing = asyncio.create_task(offers.flush())
    await asyncio.sleep(0)
    offers.recalled("R3", None, [], [])
    await writing
    await offers.stop()
    assert graph.kept == ["R2", "R3"]

"""Sweeps by the clock. (What they do, and how they are asked for: tests/api/test_consolidation.py)"""

import asyncio
from typing import Any, cast

import pytest

import bank.sweeps
from bank.sweeps import SweepKind, Sweeps
from graph.errors import Unavailable
from graph.session import Graph


async def test_the_clock_goes_on_whatever_went_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neo4j is away, then something nobody thought of happens: the next time comes all the same."""
    monkeypatch.setattr(bank.sweeps, "LOOK_SECONDS", 0.01)
    troubles: list[Exception] = [Unavailable("away"), ValueError("unheard of")]
    swept = asyncio.Event()

    class Sulking:
        async def run(self, name: str, /, **_: Any) -> list[dict[str, Any]]:
            if troubles:
                raise troubles.pop(0)
            return [{"claimed": True}]

    async def step(after: int) -> tuple[int, int, int | None]:
        swept.set()
        return 0, 0, None

    sweeps = Sweeps(cast(Graph, Sulking()), {SweepKind.PRUNE: step}, hours=1)
    sweeps.open()
    async with asyncio.timeout(5):
        await swept.wait()
    await sweeps.stop()

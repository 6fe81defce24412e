"""Who waits for a server that hangs is let go; who waits for one that is slow is not."""

import asyncio
import time
from collections.abc import AsyncIterator

import pytest

import graph.pulse
from graph.pulse import Pulse


class Server:
    """Answers pings, or not; counts them."""

    def __init__(self) -> None:
        self.hangs = False
        self.pings = 0

    async def ping(self) -> None:
        self.pings += 1
        if self.hangs:
            await asyncio.sleep(60)


@pytest.fixture
def server() -> Server:
    return Server()


@pytest.fixture
async def pulse(server: Server, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Pulse]:
    monkeypatch.setattr(graph.pulse, "PATIENCE_SECONDS", 0.1)
    monkeypatch.setattr(graph.pulse, "PING_SECONDS", 0.1)
    monkeypatch.setattr(graph.pulse, "LOOK_SECONDS", 0.02)
    pulse = Pulse(server.ping)
    yield pulse
    await pulse.stop()


async def call(pulse: Pulse, seconds: float) -> None:
    async with asyncio.timeout(10) as clock:
        with pulse.waits(clock):
            await asyncio.sleep(seconds)


async def test_a_slow_answer_is_waited_for(pulse: Pulse, server: Server) -> None:
    """The server answers pings: the call takes as long as it takes."""
    await call(pulse, 0.6)
    assert 1 <= server.pings <= 6


async def test_a_quick_answer_asks_nobody(pulse: Pulse, server: Server) -> None:
    for _ in range(30):
        await call(pulse, 0.01)
    assert server.pings == 0


async def test_a_server_that_hangs_is_not_waited_for(pulse: Pulse, server: Server) -> None:
    """All who wait are let go, those who come later too; once it answers, calls go through."""
    server.hangs = True
    started = time.monotonic()
    answers = await asyncio.gather(*(call(pulse, 5) for _ in range(3)), return_exceptions=True)
    assert [type(one) for one in answers] == [TimeoutError] * 3
    with pytest.raises(TimeoutError):
        await call(pulse, 5)
    assert time.monotonic() - started < 4
    server.hangs = False
    await call(pulse, 0.5)


async def test_while_others_are_answered_nothing_hangs(pulse: Pulse, server: Server) -> None:
    """A ping that is lost says nothing as long as calls come back."""
    server.hangs = True
    slow = asyncio.create_task(call(pulse, 0.6))
    while not slow.done():
        await call(pulse, 0.01)
    await slow


async def test_a_server_that_refuses_is_not_waited_for(pulse: Pulse, monkeypatch: pytest.MonkeyPatch) -> None:
    """No answer is no answer, however it comes."""

    async def refused() -> None:
        raise OSError("refused")

    monkeypatch.setattr(pulse, "_ping", refused)
    with pytest.raises(TimeoutError):
        await call(pulse, 5)

"""Notices that a server which holds its connections open has stopped answering, and lets go those who wait for it.

A statement may take long, so waiting long is no sign. The sign is that nobody was answered for a while, and that the
smallest question, on a connection of its own, is not answered either. It is only asked while somebody waits, so that an
ordinary call costs no more than an entry in a table.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager

from graph.tasks import end

PATIENCE_SECONDS = 1.8  # that a call waits before anybody doubts
PING_SECONDS = 1.8
LOOK_SECONDS = 0.2


class Pulse:
    """`ping` asks the server something small; it fails if there is no answer."""

    def __init__(self, ping: Callable[[], Awaitable[None]]) -> None:
        self._ping = ping
        self._waiting: dict[asyncio.Timeout, float] = {}  # since when, the oldest first
        self._heard = float("-inf")
        self._watch: asyncio.Task[None] | None = None

    @contextmanager
    def waits(self, clock: asyncio.Timeout) -> Iterator[None]:
        """The call that this clock belongs to waits for the server; its time is up when the server hangs."""
        if self._watch is None or self._watch.done():
            self._watch = asyncio.create_task(self._look(), name="cairn-pulse")
        now = asyncio.get_running_loop().time
        self._waiting[clock] = now()
        try:
            yield
            self._heard = now()
        finally:
            del self._waiting[clock]

    async def stop(self) -> None:
        await end((self._watch,))

    async def _look(self) -> None:
        now = asyncio.get_running_loop().time
        while self._waiting:
            await asyncio.sleep(LOOK_SECONDS)
            oldest = next(iter(self._waiting.values()), now())
            doubted = now()
            if max(oldest, self._heard) > doubted - PATIENCE_SECONDS:
                continue
            if await self._answers():
                self._heard = now()
                continue
            await asyncio.sleep(0)  # whoever was answered while this process itself was held up goes first
            if self._heard < doubted:
                for clock, since in list(self._waiting.items()):
                    if since < now() - PATIENCE_SECONDS and not clock.expired():
                        clock.reschedule(now())

    async def _answers(self) -> bool:
        try:
            async with asyncio.timeout(PING_SECONDS):
                await self._ping()
        except Exception:  # noqa: BLE001  whatever it is, it is no answer; the calls that are let go say so
            return False
        return True

"""Many may look at the index at once, but nobody while rows are replaced in it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class Gate:
    """In the order of asking: whoever replaces waits for those who look already, and those who come later wait for him."""

    def __init__(self) -> None:
        self._turn = asyncio.Lock()
        self._looking = 0
        self._left = asyncio.Event()

    @asynccontextmanager
    async def looking(self) -> AsyncIterator[None]:
        async with self._turn:
            self._looking += 1
        try:
            yield
        finally:
            self._looking -= 1
            self._left.set()

    @asynccontextmanager
    async def replacing(self) -> AsyncIterator[None]:
        async with self._turn:
            while self._looking:
                self._left.clear()
                await self._left.wait()
            yield

"""Reads the words of memories that were just written, when it is quiet: the first who asks about them need not."""

import asyncio
import time
from collections import deque
from collections.abc import Iterable

from bank.words import WordCache, words_of
from graph.model import Memory
from graph.tasks import ahead, end

QUIET_SECONDS = 0.3  # without a write, or without somebody else at work, after which it goes on
SLICE_SECONDS = 0.001  # of reading, and of rest behind it
LONGEST_TEXT = 20_000  # characters; who asks for a longer one first reads it in a thread
MOST_CHARACTERS = 20_000_000  # in all the texts that wait; of more the last written


class ReadAhead:
    """It shares the one thread with all calls, so it reads a little at a time, and nothing while others compute."""

    def __init__(self, words: WordCache) -> None:
        self._words = words
        self._waiting: deque[Memory] = deque()
        self._characters = 0
        self._added = 0.0
        self._task: asyncio.Task[None] | None = None

    def expect(self, memories: Iterable[Memory]) -> None:
        """These were written, or are likely to be asked about for another reason."""
        for memory in memories:
            if len(memory.text) <= LONGEST_TEXT:
                self._waiting.append(memory)
                self._characters += len(memory.text)
        while self._characters > MOST_CHARACTERS:
            self._next()
        self._added = time.monotonic()
        if self._waiting and (self._task is None or self._task.done()):
            self._task = ahead(self._read())

    def _next(self) -> Memory:
        memory = self._waiting.popleft()
        self._characters -= len(memory.text)
        return memory

    async def _read(self) -> None:
        while self._waiting:
            rested = time.monotonic()
            await asyncio.sleep(SLICE_SECONDS)
            now = time.monotonic()
            if now - rested > 3 * SLICE_SECONDS or now - self._added < QUIET_SECONDS:
                await asyncio.sleep(QUIET_SECONDS)  # who was woken late shares the thread with somebody
                continue
            while self._waiting and time.monotonic() - now < SLICE_SECONDS:
                memory = self._next()
                self._words.put(memory.id, (memory.revision, memory.version), words_of(memory.text))

    async def stop(self) -> None:
        await end((self._task,))

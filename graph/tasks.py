"""What runs beside its caller: started ahead of its time, and ended."""

import asyncio
from collections.abc import Coroutine, Iterable
from typing import Any, TypeVar

AGAIN_SECONDS = 5.0
TURNS = 5  # of the event loop, that the libraries between us and a store take to send a question
T = TypeVar("T")


def ahead(work: Coroutine[Any, Any, T]) -> "asyncio.Task[T]":
    """Work that will be needed soon. Its error is told to whoever awaits it; where nobody does, to nobody."""
    task = asyncio.create_task(work)
    task.add_done_callback(lambda done: done.cancelled() or done.exception())
    return task


async def under_way() -> None:
    """Lets what was started ahead get as far as its first question to a store: whoever goes on computing at once would
    keep it waiting, for there is one thread."""
    for _ in range(TURNS):
        await asyncio.sleep(0)


async def end(tasks: Iterable["asyncio.Task[Any] | None"]) -> None:
    """Cancels tasks and waits until they have ended. A cancellation that comes together with what a task waits for can
    get lost on the way (in `asyncio.wait_for` up to Python 3.11, for one): whoever does not end is told again."""
    left = {task for task in tasks if task is not None}
    while left:
        for task in left:
            task.cancel()
        ended, left = await asyncio.wait(left, timeout=AGAIN_SECONDS)
        for task in ended:
            if not task.cancelled():
                task.exception()  # its own business, and reported by it

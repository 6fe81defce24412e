"""Ending what runs in the background."""

import asyncio
from collections.abc import Iterable
from typing import Any

AGAIN_SECONDS = 5.0


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

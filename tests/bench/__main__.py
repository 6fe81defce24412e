"""`python -m tests.bench [stores|learning|topics|trajectories|sessions [1000 10000]]`: which parts to run; all where none is named.

Numbers are the sizes at which the part before them is measured; without any it has its own.
"""

import asyncio
import sys
from collections.abc import Callable, Coroutine
from typing import Any

from tests.bench import learning, sessions, stores, topics, trajectories

PARTS: dict[str, Callable[..., Coroutine[Any, Any, None]]] = {
    "stores": stores.run,
    "learning": learning.run,
    "topics": topics.run,
    "trajectories": trajectories.run,
    "sessions": sessions.run,
}


def main() -> None:
    wanted: list[tuple[str, list[int]]] = []
    for word in sys.argv[1:] or PARTS:
        if word.isdigit():
            wanted[-1][1].append(int(word))
        else:
            wanted.append((word, []))
    for name, sizes in wanted:
        asyncio.run(PARTS[name](tuple(sizes)) if sizes else PARTS[name]())


main()

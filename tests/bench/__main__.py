"""`python -m tests.bench [stores|retrieval|learning|topics|trajectories|sessions|sweeps [10000 50000]]`: which parts to run; all where none is named.

Numbers are the sizes at which the part before them is measured; without any it has its own. Other words say which of
what it measures: `retrieval 2wiki musique onnx 100` asks the first hundred questions of two sets with one embedder.
"""

import sys
from collections.abc import Callable, Coroutine
from typing import Any

import uvloop

from tests.bench import learning, retrieval, sessions, stores, sweeps, topics, trajectories

PARTS: dict[str, Callable[..., Coroutine[Any, Any, None]]] = {
    "stores": stores.run,
    "retrieval": retrieval.run,
    "learning": learning.run,
    "topics": topics.run,
    "trajectories": trajectories.run,
    "sessions": sessions.run,
    "sweeps": sweeps.run,
}


def main() -> None:
    wanted: list[tuple[str, list[int], list[str]]] = []
    for word in sys.argv[1:] or PARTS:
        if word in PARTS:
            wanted.append((word, [], []))
        elif word.isdigit():
            wanted[-1][1].append(int(word))
        else:
            wanted[-1][2].append(word)
    for name, sizes, only in wanted:
        uvloop.run(PARTS[name](*([tuple(sizes)] if sizes else []), **({"only": only} if only else {})))


main()

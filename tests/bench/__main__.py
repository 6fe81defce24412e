"""`python -m tests.bench [stores|learning|trajectories]`: which parts to run; all of them where none is named."""

import asyncio
import sys

from tests.bench import learning, stores, trajectories

PARTS = {"stores": stores.run, "learning": learning.run, "trajectories": trajectories.run}


def main() -> None:
    for name in sys.argv[1:] or PARTS:
        asyncio.run(PARTS[name]())


main()

"""`python -m tests.bench [stores|learning]`: which parts to run; all of them where none is named."""

import asyncio
import sys

from tests.bench import learning, stores

PARTS = {"stores": stores.run, "learning": learning.run}


def main() -> None:
    for name in sys.argv[1:] or PARTS:
        asyncio.run(PARTS[name]())


main()

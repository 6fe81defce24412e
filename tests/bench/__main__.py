"""`python -m tests.bench [stores]`: which parts to run; all of them where none is named."""

import asyncio
import sys

from tests.bench import stores

PARTS = {"stores": stores.run}


def main() -> None:
    for name in sys.argv[1:] or PARTS:
        asyncio.run(PARTS[name]())


main()

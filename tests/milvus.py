"""A Milvus server to share, stop and start: the core of Milvus Lite, listening on a port instead of inside one process.

It stands in for Milvus standalone, which cannot be had without a container engine. pymilvus speaks to it as to any server.
"""

import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from bank.lite import spawn
from bank.milvus import IndexAway
from bank.vectors import Vectors
from tests.ports import free_port, listens


def put_away(vectors: Vectors, patch: pytest.MonkeyPatch) -> None:
    """From here on no question to the index is answered."""

    async def away(*_: Any) -> None:
        raise IndexAway("Milvus is away for this test")

    for collection in ("memories", "lessons"):
        for way in ("meaning", "words"):
            patch.setattr(vectors, f"{collection}_by_{way}", away)
    for name in ("memory_vectors", "lesson_vectors"):
        patch.setattr(vectors, name, away)


class MilvusServer:
    def __init__(self, folder: Path) -> None:
        self._file = folder / "shared.db"
        self.port = free_port()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def uri(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        self._process = spawn(self._file, f"127.0.0.1:{self.port}")
        deadline = time.monotonic() + 20
        while not listens(self.port):
            assert time.monotonic() < deadline, "the Milvus server does not listen"
            time.sleep(0.05)

    def stop(self) -> None:
        """As a power failure does it."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def hang(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def wake(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

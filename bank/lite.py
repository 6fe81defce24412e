"""Starts and stops Milvus Lite: a process of its own that keeps the whole index in one file and speaks on a socket."""

import contextlib
import fcntl
import importlib.util
import logging
import os
import shutil
import socket
import sqlite3
import subprocess
import tempfile
import time
from pathlib import Path
from typing import IO

from graph.errors import Unavailable

START_SECONDS = 20.0
STOP_SECONDS = 2.0

log = logging.getLogger("cairn.milvus")


def spawn(file: Path, address: str, *options: str) -> "subprocess.Popen[bytes]":
    """Milvus Lite's server on a file. Its home is the file's folder: it keeps a cache there, which it empties at its
    start. In the home of the user, two of them that start at once break each other."""
    spec = importlib.util.find_spec("milvus_lite")  # importing it takes a third of a second, for nothing
    assert spec is not None and spec.origin is not None
    program = Path(spec.origin).parent / "lib" / "milvus"
    return subprocess.Popen(
        [str(program), str(file), address, "ERROR", *options],
        env={**os.environ, "LD_LIBRARY_PATH": str(program.parent), "HOME": str(file.parent)},
        cwd=file.parent,
    )


class MilvusLite:
    """One process on one file. It ends with ours, also when ours is killed: it waits for the lock that we hold."""

    def __init__(self, file: Path) -> None:
        self._file = file.absolute()
        self._folder: str | None = None
        self._lock: IO[str] | None = None
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> str:
        """The address that it answers on. A file that is damaged is put aside: all that was in it can be made again."""
        self._file.parent.mkdir(parents=True, exist_ok=True)
        lock = self._file.parent / f".{self._file.name}.lock"
        self._lock = open(lock, "a")  # noqa: SIM115  held until stop
        try:
            fcntl.lockf(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            self._lock.close()
            self._lock = None
            raise Unavailable(
                f"Milvus Lite does not start on {self._file}: another process is using the file"
            ) from error
        self._folder = tempfile.mkdtemp(prefix="cairn-")  # the path of a socket has to be short
        path = os.path.join(self._folder, "milvus.sock")
        self._process = spawn(self._file, f"unix:{path}", str(lock))
        deadline = time.monotonic() + START_SECONDS
        while not _listens(path):
            ended = self._process.poll() is not None
            if ended or time.monotonic() > deadline:
                damaged = ended and self.put_aside_if_damaged()
                self.stop()
                if damaged:
                    return self.start()
                raise Unavailable(f"Milvus Lite does not start on {self._file}")
            time.sleep(0.01)
        return f"unix:{path}"

    def put_aside_if_damaged(self) -> bool:
        """True: the next start makes a new file. One that is damaged in its middle lets Milvus Lite start, and fail later."""
        if not _is_damaged(self._file):
            return False
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        aside = self._file.with_name(f"{self._file.name}.damaged")
        for part in ("", "-journal", "-wal", "-shm"):  # what belongs to the old file would spoil the new one
            with contextlib.suppress(FileNotFoundError):
                Path(f"{self._file}{part}").replace(f"{aside}{part}")
        log.error("%s is damaged; it is kept as %s, and the index is made anew from the graph", self._file, aside.name)
        return True

    def stop(self) -> None:
        if self._lock is not None:
            self._lock.close()  # which lets the lock go
            self._lock = None
        if self._process is not None:
            try:
                self._process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            self._process = None
        if self._folder is not None:
            with contextlib.suppress(OSError):
                shutil.rmtree(self._folder)
            self._folder = None


def _listens(path: str) -> bool:
    with socket.socket(socket.AF_UNIX) as probe:
        return probe.connect_ex(path) == 0


def _is_damaged(file: Path) -> bool:
    """Whether it is no database any more. A file that only cannot be read just now is not damaged."""
    try:
        with contextlib.closing(sqlite3.connect(f"{file.as_uri()}?mode=ro", uri=True)) as database:
            return bool(database.execute("PRAGMA quick_check(1)").fetchone() != ("ok",))
    except sqlite3.OperationalError:
        return False
    except sqlite3.DatabaseError:
        return True

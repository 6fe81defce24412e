"""Halves Neo4j's start: the classes it loads are kept, ready to use, in an archive that the JVM maps into memory.

The first run on a folder records them and writes the archive when it stops, which takes some seconds, once. Whatever
goes wrong here only costs speed: without an archive, or with one that does not fit, the JVM loads classes as ever.
"""

import hashlib
import logging
import subprocess
from collections.abc import Sequence
from pathlib import Path

log = logging.getLogger("cairn.neo4j")


class ClassArchive:
    """An archive for one JVM and one class path; another of either gets another name."""

    def __init__(self, java: Path, jars: Sequence[Path], folder: Path) -> None:
        self._java = java
        identity = "\n".join([str(java), *map(str, jars)])
        self._stem = f"classes-{hashlib.sha256(identity.encode()).hexdigest()[:12]}"
        self._folder = folder

    @property
    def _whole(self) -> Path:
        return self._folder / f"{self._stem}.jsa"

    @property
    def _recording(self) -> Path:
        return self._folder / f"{self._stem}.new"

    @property
    def _base(self) -> Path:
        return self._folder / f"{self._stem}.base"

    def options(self) -> list[str]:
        """What the JVM is told: to use the archive, or to record one."""
        if self._whole.exists():
            return [f"-XX:SharedArchiveFile={self._whole}", "-Xlog:cds=off", "-Xlog:cds+dynamic=off"]
        dump = [str(self._java), "-Xshare:dump", f"-XX:SharedArchiveFile={self._base}"]
        done = subprocess.run(dump, capture_output=True, text=True)
        if done.returncode != 0:
            log.info("no class archive can be made: %s", done.stderr[-200:])
            return []
        self._recording.unlink(missing_ok=True)
        return [f"-XX:SharedArchiveFile={self._base}", f"-XX:ArchiveClassesAtExit={self._recording}"]

    def keep(self, exit_code: int) -> None:
        """After the JVM has ended in order, what it recorded is whole."""
        if exit_code in (0, 143) and self._recording.exists():
            self._recording.replace(self._whole)

"""Pinned files: only the very bytes that Cairn was made with are used."""

import hashlib
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import jgo.maven._core
import pytest

from graph.errors import SetupError
from graph.maven import Pin, fetch, read_pins
from graph.server import JARS

JAR = b"the very bytes"
PIN = Pin("org.example:part:1.0", hashlib.sha256(JAR).hexdigest())
PLACE = Path("org/example/part/1.0/part-1.0.jar")


class Registry:
    """A Maven registry of one file, on a port of its own, and the local repository that it fills."""

    def __init__(self, folder: Path, local: Path) -> None:
        self.file = folder / PLACE
        self.kept = local / PLACE
        self.asked = 0
        self.publish(JAR)

    def publish(self, content: bytes) -> None:
        self.file.parent.mkdir(parents=True, exist_ok=True)
        self.file.write_bytes(content)
        digest = hashlib.sha1(content).hexdigest()
        self.file.with_name(self.file.name + ".sha1").write_text(digest)


@pytest.fixture
def registry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Registry]:
    registry = Registry(tmp_path / "remote", tmp_path / "local")

    class Handler(SimpleHTTPRequestHandler):
        def do_GET(self) -> None:
            registry.asked += self.path.endswith(".jar")
            super().do_GET()

        def log_message(self, format: str, *arguments: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=str(tmp_path / "remote")))
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    remote = {"here": f"http://127.0.0.1:{server.server_address[1]}"}
    monkeypatch.setattr(jgo.maven._core, "DEFAULT_REMOTE_REPOS", remote)
    monkeypatch.setenv("M2_REPO", str(tmp_path / "local"))
    yield registry
    server.shutdown()
    server.server_close()


def test_a_file_is_fetched_once(registry: Registry) -> None:
    """The first time from the registry, then from the local repository; progress is told."""
    told: list[tuple[int, int]] = []
    (path,) = fetch([PIN], lambda done, total: told.append((done, total)))
    assert path.read_bytes() == JAR
    assert path == registry.kept
    assert fetch([PIN]) == [path]
    assert registry.asked == 1
    assert told == [(1, 1)]


def test_a_file_that_was_cut_off_is_fetched_again(registry: Registry) -> None:
    """What is in the local repository has another hash: it is replaced, and nobody is bothered."""
    registry.kept.parent.mkdir(parents=True)
    registry.kept.write_bytes(JAR[:5])
    (path,) = fetch([PIN])
    assert path.read_bytes() == JAR


def test_another_file_under_the_same_name_is_refused(registry: Registry) -> None:
    """The registry has something else: never used, never kept, and the message names it."""
    registry.publish(b"other bytes")
    with pytest.raises(SetupError, match=r"org\.example:part:1\.0 is not the file that Cairn was made with"):
        fetch([PIN])
    assert not registry.kept.exists()


def test_a_file_that_nobody_has_is_refused(registry: Registry) -> None:
    """Which one, and what to look at."""
    with pytest.raises(SetupError, match=r"org\.example:none:1\.0 could not be fetched.*HTTPS_PROXY"):
        fetch([Pin("org.example:none:1.0", "00")])


def test_files_come_in_the_order_of_their_pins(registry: Registry) -> None:
    """The class path is an order."""
    pins = [PIN, PIN, PIN]
    assert fetch(pins) == [registry.kept] * 3


def test_every_jar_of_neo4j_is_pinned() -> None:
    """Coordinates and a SHA-256 for each, none of them twice; Neo4j, its server and its Browser among them."""
    pins = read_pins(JARS)
    assert len({pin.coordinates for pin in pins}) == len(pins) > 100
    assert all(len(pin.sha256) == 64 and int(pin.sha256, 16) for pin in pins)
    names = {pin.coordinates.rsplit(":", 1)[0] for pin in pins}
    assert {"org.neo4j:neo4j", "org.neo4j.app:neo4j-server", "org.neo4j.client:neo4j-browser"} <= names

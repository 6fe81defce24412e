"""The Neo4j of our own: ports, its password, and processes that are or are not ours. (Whole lives: tests/api/test_cli.py)"""

import asyncio
import socket
import stat
import subprocess
import sys
from pathlib import Path

import pytest

import graph.server
from graph.errors import SetupError
from graph.server import Neo4jServer, ServerSettings, require_free_port
from tests.conftest import free_port


def test_a_taken_port_is_refused() -> None:
    """The port, the address, and the variable that changes it."""
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(SetupError, match=rf"Port {port} on 127.0.0.1 is taken.*set CAIRN_PORT to a free port"):
            require_free_port("127.0.0.1", port, "CAIRN_PORT")
    require_free_port("127.0.0.1", port, "CAIRN_PORT")


@pytest.mark.parametrize("host", ["192.0.2.1", "not a host"])
def test_a_host_that_is_not_ours_is_refused(host: str) -> None:
    """It is not said that a port is taken when the address is the trouble."""
    with pytest.raises(SetupError, match=f"{host} is no address that this machine can listen on"):
        require_free_port(host, free_port(), "CAIRN_PORT")


@pytest.fixture
def server(tmp_path: Path) -> Neo4jServer:
    home = tmp_path / "neo4j"
    return Neo4jServer(ServerSettings(home, bolt_port=free_port(), http_port=free_port(), archive_classes=False))


async def test_a_port_is_looked_at_before_anything_starts(server: Neo4jServer) -> None:
    """A taken Browser port: refused, no process, no note of one."""
    with socket.socket() as other:
        other.bind(("127.0.0.1", server.settings.http_port))
        other.listen()
        with pytest.raises(SetupError, match="CAIRN_NEO4J_HTTP_PORT"):
            await server.start()
    assert not server.settings.pid_file.exists()
    await server.stop()


def test_the_password_is_made_once_and_is_the_owners(server: Neo4jServer) -> None:
    """Long, random, readable by its owner alone, and kept."""
    server.settings.home.mkdir()
    server._make_password()
    made = server.password
    server._make_password()
    assert server.password == made
    assert len(made) >= 20
    assert stat.S_IMODE(server.settings.password_file.stat().st_mode) == 0o600


@pytest.mark.parametrize("noted", ["", "no number", "999999999"])
def test_a_note_of_a_process_that_is_gone_is_no_trouble(server: Neo4jServer, noted: str) -> None:
    """The machine was switched off: the note says nothing."""
    server.settings.home.mkdir()
    server.settings.pid_file.write_text(noted)
    server._stop_left_over()


def test_another_program_with_the_noted_number_is_left_alone(server: Neo4jServer) -> None:
    """The number of a Neo4j of ours may be another program's by now, which must not be stopped."""
    server.settings.home.mkdir()
    other = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    try:
        server.settings.pid_file.write_text(str(other.pid))
        server._stop_left_over()
        assert other.poll() is None
        assert not server.settings.pid_file.exists()
    finally:
        other.kill()
        other.wait()


def test_what_was_left_on_our_folder_is_stopped(server: Neo4jServer) -> None:
    """A process that runs on our folder and is noted as ours is ended before a new one starts."""
    server.settings.home.mkdir()
    code = "import time; time.sleep(60)"
    left = subprocess.Popen([sys.executable, "-c", code, f"--home-dir={server.settings.home.absolute()}"])
    try:
        server.settings.pid_file.write_text(str(left.pid))
        server._stop_left_over()
        assert left.wait(5) != 0
        assert not server.settings.pid_file.exists()
    finally:
        left.kill()


async def test_it_is_started_again_until_it_answers(server: Neo4jServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has ended. There is no memory for it, then it takes too long twice, then it answers: the watch went on trying."""
    started: list[subprocess.Popen[bytes]] = []
    answering = asyncio.Event()

    def spawn(*_: object) -> subprocess.Popen[bytes]:
        if not started:
            started.append(ended)
            raise OSError(12, "Cannot allocate memory")
        started.append(subprocess.Popen(["sleep", "60"]))
        return started[-1]

    async def answers(*_: object) -> bool:
        if len(started) == 4:
            answering.set()
        return answering.is_set()

    async def no_password(*_: object) -> None: ...

    monkeypatch.setattr(graph.server, "START_SECONDS", 0.2)
    monkeypatch.setattr(graph.server, "WATCH_SECONDS", 0.01)
    monkeypatch.setattr(graph.server, "fetch_jars", list)
    monkeypatch.setattr(graph.server, "_listens", lambda port: True)
    monkeypatch.setattr(graph.server, "answers", answers)
    monkeypatch.setattr(graph.server, "set_first_password", no_password)
    monkeypatch.setattr(server, "_spawn", spawn)
    ended = server._process = subprocess.Popen(["true"])
    watching = asyncio.create_task(server.watch())
    try:
        async with asyncio.timeout(30):
            await answering.wait()
        await asyncio.sleep(0.2)
        assert not watching.done() and len(started) == 4
        assert [one.poll() is None for one in started] == [False, False, False, True]
    finally:
        watching.cancel()
        await server.stop()


async def test_a_neo4j_that_does_not_start_says_why(tmp_path: Path) -> None:
    """Java's last words and where all of them are; nothing stays behind."""
    broken = Neo4jServer(ServerSettings(tmp_path, free_port(), free_port(), heap="1k"))
    with pytest.raises(SetupError) as refused:
        await broken.start()
    await broken.stop()
    assert "Neo4j did not start: " in str(refused.value)
    assert "heap" in str(refused.value)
    assert str(tmp_path / "console.log") in str(refused.value)
    assert not broken.settings.pid_file.exists()

